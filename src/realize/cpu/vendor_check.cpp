//===- vendor_check.cpp - A second look at a call to a library ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both sides are evaluated with arbitrary addresses and strides: the emitted
// function gives, per call, the address of each element of the output and of
// the elements that are multiplied for it; the kernel's own subscripts give the
// same, by trying coordinates. First, second, middle and last index of every
// axis and iteration are looked at; how many there are in all is compared too.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/vendor.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace tessera {

namespace {

/// What is multiplied for an element of the output: by sampled index of the
/// sum, the two addresses, in rising order.
using Products = std::vector<std::pair<int64_t, int64_t>>;
/// By address of the output's element.
using Elements = std::map<int64_t, Products>;

/// The indices of an extent that are looked at.
SmallVector<int64_t, 4> samples(int64_t extent) {
  SmallVector<int64_t, 4> indices;
  for (int64_t index : {int64_t{0}, int64_t{1}, extent / 2, extent - 1})
    if (index >= 0 && index < extent && !llvm::is_contained(indices, index))
      indices.push_back(index);
  return indices;
}

/// Addresses wrap around.
int64_t plus(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) + uint64_t(y));
}
int64_t times(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) * uint64_t(y));
}

/// The memory that both sides are evaluated with: addresses of views that lie
/// far apart, and a stride for each axis.
struct Memory {
  explicit Memory(const KernelAnalysis &analysis) {
    tile::KernelOp kernel = analysis.kernel;
    uint64_t next = 1009;
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      auto view = dyn_cast<tile::ViewType>(argument.getType());
      if (!view)
        continue;
      const unsigned number = argument.getArgNumber();
      firstStride[number] = int64_t(strides.size());
      base[number] = int64_t((bases.size() + 1) * 0x9E3779B97F4A7C15u);
      bases.push_back(base[number]);
      for (int64_t axis = 0; axis < view.getRank(); ++axis) {
        next = next * 6364136223846793005u + 1442695040888963407u;
        // Near the largest leading dimension there is.
        strides.push_back(analysis.strides.unit[number][axis]
                              ? 1
                              : 2'147'000'000 + int64_t(next >> 46));
      }
    }
  }

  std::map<unsigned, int64_t> firstStride, base;
  SmallVector<int64_t> bases, strides;
};

//===----------------------------------------------------------------------===//
// The emitted function
//===----------------------------------------------------------------------===//

/// Interprets what a call to a library may consist of.
class CallReader {
public:
  CallReader(func::FuncOp function, const Memory &memory)
      : function(function), memory(memory) {}

  std::string problem;
  Elements elements;
  /// Elements that all calls write, and products for each.
  double written = 0;
  int64_t summed = 0;

  void run(int64_t elementBytes) {
    bytes = elementBytes;
    int64_t calls = 0;
    function.walk([&](Operation *op) { calls += isa<LLVM::CallOp>(op); });
    if (calls != 1)
      return fail("it has " + std::to_string(calls) + " calls, expected one");
    runBlock(function.front(), 1);
  }

private:
  void fail(const std::string &what) {
    if (problem.empty())
      problem = what;
  }

  int64_t get(Value value) {
    auto found = values.find(value);
    if (found == values.end()) {
      fail("it uses a value that is not derived from addresses and strides");
      return 0;
    }
    return found->second;
  }

  void runBlock(Block &block, double weight) {
    for (Operation &op : block) {
      if (!problem.empty())
        return;
      run(op, weight);
    }
  }

  void run(Operation &op, double weight) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
        values[constant] = number.getType().isInteger(1)
                               ? number.getValue().getZExtValue()
                               : number.getValue().getSExtValue();
      else if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
        reals[constant] = real.getValueAsDouble();
    } else if (isa<arith::IndexCastOp, arith::TruncIOp>(op)) {
      values[op.getResult(0)] = get(op.getOperand(0));
    } else if (isa<arith::AddIOp>(op)) {
      values[op.getResult(0)] =
          plus(get(op.getOperand(0)), get(op.getOperand(1)));
    } else if (isa<arith::MulIOp>(op)) {
      values[op.getResult(0)] =
          times(get(op.getOperand(0)), get(op.getOperand(1)));
    } else if (isa<arith::AndIOp>(op)) {
      values[op.getResult(0)] = get(op.getOperand(0)) & get(op.getOperand(1));
    } else if (isa<arith::OrIOp>(op)) {
      values[op.getResult(0)] = get(op.getOperand(0)) | get(op.getOperand(1));
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      values[select] = get(select.getCondition()) ? get(select.getTrueValue())
                                                  : get(select.getFalseValue());
    } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      values[compare] = holds(compare.getPredicate(), get(compare.getLhs()),
                              get(compare.getRhs()));
    } else if (auto element = dyn_cast<LLVM::GEPOp>(op)) {
      readAddress(element);
    } else if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      readSlot(load);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Block *taken =
          get(branch.getCondition()) ? branch.thenBlock() : branch.elseBlock();
      runBlock(*taken, weight);
      takeYield(*taken, branch.getResults());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      runLoop(loop, weight);
    } else if (auto call = dyn_cast<LLVM::CallOp>(op)) {
      readCall(call, weight);
    } else if (!isa<scf::YieldOp, func::ReturnOp>(op)) {
      fail("it has a '" + op.getName().getStringRef().str() +
           "', which no call needs");
    }
  }

  static bool holds(arith::CmpIPredicate predicate, int64_t x, int64_t y) {
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return x == y;
    case arith::CmpIPredicate::ne:
      return x != y;
    case arith::CmpIPredicate::slt:
      return x < y;
    case arith::CmpIPredicate::sgt:
      return x > y;
    default:
      return false;
    }
  }

  void takeYield(Block &block, ResultRange results) {
    for (auto [result, yielded] :
         llvm::zip(results, block.getTerminator()->getOperands()))
      values[result] = get(yielded);
  }

  void runLoop(scf::ForOp loop, double weight) {
    const int64_t trips = get(loop.getUpperBound());
    if (get(loop.getLowerBound()) != 0 || get(loop.getStep()) != 1)
      return fail("a loop does not count from 0 in steps of 1");
    const auto looked = samples(trips);
    for (auto [result, initial] :
         llvm::zip(loop.getResults(), loop.getInitArgs()))
      values[result] = get(initial);
    for (int64_t index : looked) {
      values[loop.getInductionVar()] = index;
      for (auto [carried, result] :
           llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
        values[carried] = get(result);
      runBlock(*loop.getBody(), weight * double(trips) / double(looked.size()));
      takeYield(*loop.getBody(), loop.getResults());
    }
  }

  /// Places in the arrays of addresses and strides, or elements of a view.
  void readAddress(LLVM::GEPOp element) {
    if (element.getDynamicIndices().size() > 1)
      return fail("an address has several indices");
    const int64_t index =
        element.getDynamicIndices().empty()
            ? cast<IntegerAttr>(element.getIndices()[0]).getInt()
            : get(element.getDynamicIndices()[0]);
    const int64_t size =
        (element.getElemType().getIntOrFloatBitWidth() + 7) / 8;
    if (auto argument = dyn_cast<BlockArgument>(element.getBase())) {
      if (argument.getOwner() != &function.front() ||
          argument.getArgNumber() > 1 || size != 8)
        return fail("it reads something else than addresses and strides");
      slots[element] = {argument.getArgNumber(), index};
      return;
    }
    if (size != bytes)
      return fail("an address counts in other elements than the arrays have");
    values[element] = plus(get(element.getBase()), index);
  }

  void readSlot(LLVM::LoadOp load) {
    std::pair<unsigned, int64_t> slot{0, 0};
    if (auto found = slots.find(load.getAddr()); found != slots.end())
      slot = found->second;
    else if (auto argument = dyn_cast<BlockArgument>(load.getAddr());
             argument && argument.getOwner() == &function.front() &&
             argument.getArgNumber() <= 1)
      slot = {argument.getArgNumber(), 0};
    else
      return fail("it reads something else than addresses and strides");
    const auto &from = slot.first == 0 ? memory.bases : memory.strides;
    if (slot.second < 0 || slot.second >= int64_t(from.size()))
      return fail("it reads past the arguments of a launch");
    values[load] = from[size_t(slot.second)];
  }

  void readCall(LLVM::CallOp call, double weight) {
    const StringRef callee = call.getCallee().value_or("");
    const bool isOneDnn = callee == "dnnl_sgemm";
    if (!isOneDnn && callee != "cblas_sgemm" && callee != "cblas_dgemm")
      return fail("it calls '" + callee.str() + "'");
    OperandRange arguments = call.getArgOperands();
    size_t next = 0;
    if (arguments.size() != (isOneDnn ? 13u : 14u))
      return fail("the call has another number of arguments");
    if (!isOneDnn && get(arguments[next++]) != 101)
      return fail("the call is not for rows of adjacent elements");
    auto isTransposed = [&](Value form) {
      const int64_t value = get(form);
      if (value != (isOneDnn ? 'N' : 111) && value != (isOneDnn ? 'T' : 112))
        fail("the call has a form that is neither plain nor transposed");
      return value == (isOneDnn ? 'T' : 112);
    };
    const bool transA = isTransposed(arguments[next]);
    const bool transB = isTransposed(arguments[next + 1]);
    const int64_t m = get(arguments[next + 2]), n = get(arguments[next + 3]),
                  k = get(arguments[next + 4]);
    alpha = reals.lookup(arguments[next + 5]);
    const int64_t a = get(arguments[next + 6]), lda = get(arguments[next + 7]),
                  b = get(arguments[next + 8]), ldb = get(arguments[next + 9]);
    if (!reals.contains(arguments[next + 10]) ||
        reals.lookup(arguments[next + 10]) != 0)
      return fail("the call reads what stands in the output");
    const int64_t c = get(arguments[next + 11]),
                  ldc = get(arguments[next + 12]);
    summed = k;
    written += weight * double(m) * double(n);
    for (int64_t i : samples(m))
      for (int64_t j : samples(n)) {
        Products &products = elements[plus(c, plus(times(i, ldc), j))];
        if (!products.empty())
          return fail("two calls write one element");
        for (int64_t p : samples(k)) {
          const int64_t x =
              plus(a, transA ? plus(times(p, lda), i) : plus(times(i, lda), p));
          const int64_t y =
              plus(b, transB ? plus(times(j, ldb), p) : plus(times(p, ldb), j));
          products.push_back(std::minmax(x, y));
        }
      }
    // Whoever calls reads no result but whether it failed.
    for (Value result : call.getResults())
      values[result] = 0;
  }

public:
  double alpha = 0;

private:
  func::FuncOp function;
  const Memory &memory;
  int64_t bytes = 4;
  llvm::DenseMap<Value, int64_t> values;
  llvm::DenseMap<Value, double> reals;
  llvm::DenseMap<Value, std::pair<unsigned, int64_t>> slots;
};

//===----------------------------------------------------------------------===//
// The kernel's own subscripts
//===----------------------------------------------------------------------===//

class SubscriptReader {
public:
  SubscriptReader(const KernelAnalysis &analysis, const Memory &memory)
      : analysis(analysis), memory(memory) {}

  std::string problem;
  Elements elements;
  double written = 1;
  int64_t summed = 0;
  double alpha = 1;
  int64_t elementBytes = 0;

  void run() {
    tile::StoreOp store;
    analysis.kernel->walk([&](tile::StoreOp found) { store = found; });
    Value value = store ? store.getValue() : Value();
    while (Operation *op = value ? value.getDefiningOp() : nullptr) {
      if (isa<arith::NegFOp>(op))
        alpha = -alpha;
      else if (!isa<tile::TransposeOp>(op))
        break;
      value = op->getOperand(0);
    }
    auto contraction =
        value ? value.getDefiningOp<tile::ContractOp>() : tile::ContractOp();
    if (!contraction)
      return fail("the kernel stores no contraction");
    auto loadOf = [](Value operand) {
      while (auto moved = operand.getDefiningOp<tile::TransposeOp>())
        operand = moved.getInput();
      return operand.getDefiningOp<tile::LoadOp>();
    };
    tile::LoadOp left = loadOf(contraction.getLhs());
    tile::LoadOp right = loadOf(contraction.getRhs());
    if (!left || !right)
      return fail("the kernel multiplies something else than arrays");
    out = *getAccess(store);
    ofLeft = *getAccess(left);
    ofRight = *getAccess(right);
    over = cast<StringAttr>(contraction.getOver()[0]);
    summed = analysis.dims.extent(over).value_or(-1);
    elementBytes = out.viewType().getElementType().getIntOrFloatBitWidth() / 8;
    for (unsigned axis = 0; axis < out.axes.size(); ++axis)
      written *= double(analysis.accesses.extent(out, axis));
    analysis.kernel->walk([&](tile::ParallelOp grid) {
      for (BlockArgument argument : grid.getBody().getArguments())
        known[argument] = 0;
    });
    visit(0, memory.base.at(out.view.getArgNumber()));
  }

private:
  void fail(const std::string &what) {
    if (problem.empty())
      problem = what;
  }

  int64_t stride(const Access &access, unsigned axis) const {
    return memory.strides[size_t(
        memory.firstStride.at(access.view.getArgNumber()) + axis)];
  }

  /// Sampled indices of the output's axes from `axis` on.
  void visit(unsigned axis, int64_t address) {
    if (!problem.empty())
      return;
    if (axis == out.axes.size())
      return readProducts(address);
    for (int64_t index : samples(analysis.accesses.extent(out, axis))) {
      if (!place(out.axes[axis], index))
        return fail("no program stores an element of the output");
      visit(axis + 1, plus(address, times(index, stride(out, axis))));
    }
  }

  /// Finds coordinates at which the axis has an index.
  bool place(const Access::Axis &axis, int64_t wanted) {
    const int64_t extent =
        axis.dim ? analysis.dims.extent(axis.dim).value_or(0) : 1;
    auto matches = [&] {
      const int64_t rest = wanted - (axis.offset ? evaluate(axis.offset) : 0);
      if (!axis.dim)
        return rest == 0;
      if (rest % axis.step != 0 || rest / axis.step < 0 ||
          rest / axis.step >= extent)
        return false;
      coordinates[axis.dim] = rest / axis.step;
      return true;
    };
    BlockArgument moving =
        axis.offset ? programOf(axis.offset) : BlockArgument();
    if (!moving)
      return matches();
    auto grid = cast<tile::ParallelOp>(moving.getOwner()->getParentOp());
    const int64_t programs =
        analysis.dims
            .extent(cast<StringAttr>(grid.getDims()[moving.getArgNumber()]))
            .value_or(0);
    for (int64_t program = 0; program < programs; ++program) {
      known[moving] = program;
      if (matches())
        return true;
    }
    return false;
  }

  /// The coordinate of the grid that an index depends on.
  BlockArgument programOf(Value index) {
    SmallVector<Value> pending{index};
    BlockArgument found;
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value))
        found = argument;
      else
        pending.append(value.getDefiningOp()->operand_begin(),
                       value.getDefiningOp()->operand_end());
    }
    return found;
  }

  int64_t evaluate(Value index) {
    if (std::optional<int64_t> constant = constantIndex(index))
      return *constant;
    if (isa<BlockArgument>(index)) {
      auto found = known.find(index);
      if (found == known.end())
        fail("an index depends on something else than the program");
      return found == known.end() ? 0 : found->second;
    }
    Operation *op = index.getDefiningOp();
    if (isa<arith::AddIOp>(op))
      return plus(evaluate(op->getOperand(0)), evaluate(op->getOperand(1)));
    if (isa<arith::SubIOp>(op))
      return evaluate(op->getOperand(0)) - evaluate(op->getOperand(1));
    if (isa<arith::MulIOp>(op))
      return times(evaluate(op->getOperand(0)), evaluate(op->getOperand(1)));
    if (isa<arith::IndexCastOp, tile::CastOp>(op))
      return evaluate(op->getOperand(0));
    fail("an index is computed by '" + op->getName().getStringRef().str() +
         "'");
    return 0;
  }

  int64_t addressOf(const Access &access) {
    int64_t address = memory.base.at(access.view.getArgNumber());
    for (auto [axis, subscript] : llvm::enumerate(access.axes)) {
      int64_t index = subscript.offset ? evaluate(subscript.offset) : 0;
      if (subscript.dim) {
        auto found = coordinates.find(subscript.dim);
        if (found == coordinates.end())
          fail("an operand has a dimension that is neither stored nor summed");
        else
          index += subscript.step * found->second;
      }
      if (index < 0 ||
          index >= analysis.accesses.extent(access, unsigned(axis)))
        fail("a load leaves its array where the element is stored");
      address = plus(address, times(index, stride(access, unsigned(axis))));
    }
    return address;
  }

  void readProducts(int64_t address) {
    Products &products = elements[address];
    for (int64_t p : samples(summed)) {
      coordinates[over] = p;
      const int64_t x = addressOf(ofLeft), y = addressOf(ofRight);
      products.push_back(std::minmax(x, y));
    }
  }

  const KernelAnalysis &analysis;
  const Memory &memory;
  Access out, ofLeft, ofRight;
  StringAttr over;
  llvm::DenseMap<Value, int64_t> known;
  llvm::DenseMap<StringAttr, int64_t> coordinates;
};

} // namespace

Result<void> checkVendorCall(ModuleOp module, StringRef symbol,
                             const KernelAnalysis &analysis) {
  auto wrong = [&](const std::string &what) {
    return Error{ErrorFamily::Internal,
                 "vendor.check",
                 "the call that was emitted for '" +
                     tile::KernelOp(analysis.kernel).getSymName().str() +
                     "' is not the product that the kernel says: " + what,
                 {}};
  };
  auto function = module.lookupSymbol<func::FuncOp>((symbol + "_body").str());
  if (!function)
    return wrong("there is no function '" + symbol.str() + "_body'");
  const Memory memory(analysis);
  SubscriptReader kernel(analysis, memory);
  kernel.run();
  if (!kernel.problem.empty())
    return wrong(kernel.problem);
  CallReader emitted(function, memory);
  emitted.run(kernel.elementBytes);
  if (!emitted.problem.empty())
    return wrong(emitted.problem);
  if (emitted.written != kernel.written)
    return wrong("it writes another number of elements");
  // Without elements there is nothing to compare.
  if (kernel.written == 0)
    return {};
  if (emitted.summed != kernel.summed)
    return wrong("it sums another number of products");
  if (emitted.alpha != kernel.alpha)
    return wrong("its factor is another one");
  if (emitted.elements != kernel.elements)
    return wrong("other elements are multiplied or stored");
  return {};
}

} // namespace tessera
