//===- specialize.cpp - Fixing a kernel's extents -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/specialize.h"

#include "support/launch_errors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

static SourcePosition positionOf(Operation *op) {
  SourcePosition position;
  if (auto loc = dyn_cast<FileLineColLoc>(op->getLoc())) {
    position.file = loc.getFilename().str();
    position.line = loc.getLine();
    position.column = loc.getColumn();
  }
  return position;
}

static Error at(Operation *op, Error error) {
  error.where = positionOf(op);
  return error;
}

/// Replaces an own integer op by a constant where its operands are constants.
static void foldInteger(Operation *op) {
  Type type = op->getResult(0).getType();
  if (!isa<tile::DivOp, tile::RemOp, tile::CastOp>(op) ||
      (!type.isIndex() && !type.isInteger(64)))
    return;
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> value = constantOf(operand);
    Type from = operand.getType();
    const bool isTruth = isa<tile::CastOp>(op) && from.isInteger(1);
    if (!value || !(from.isIndex() || from.isInteger(64) || isTruth))
      return;
    // A true bool is 1 as a number; its one bit alone would be -1.
    operands.push_back(isTruth ? *value != 0 : *value);
  }
  int64_t value = operands[0];
  if (operands.size() == 2) {
    if (operands[0] < 0 || operands[1] < 0)
      return;
    bool isDiv = isa<tile::DivOp>(op);
    value = operands[1] == 0 ? 0
            : isDiv          ? operands[0] / operands[1]
                             : operands[0] % operands[1];
  }
  OpBuilder builder(op);
  Value constant = builder.create<arith::ConstantOp>(
      op->getLoc(), builder.getIntegerAttr(type, value));
  op->getResult(0).replaceAllUsesWith(constant);
}

/// Folds constants and removes dead ops. The canonicalizer's patterns are not
/// needed for this and cost more.
static void fold(tile::KernelOp kernel) {
  SmallVector<Operation *> ops;
  kernel.getBody().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { ops.push_back(op); });
  OpBuilder builder(kernel.getContext());
  for (Operation *op : ops) {
    if (op->getNumResults() != 1 || op->getNumRegions() > 0 ||
        isa<arith::ConstantOp>(op))
      continue;
    Type type = op->getResult(0).getType();
    if (isa<RankedTensorType>(type))
      continue;
    builder.setInsertionPoint(op);
    SmallVector<Value, 1> results;
    // A computed index stays one, even if it equals a coordinate: an axis that
    // is indexed by a bare coordinate binds its extent.
    if (succeeded(builder.tryFold(op, results)) && results.size() == 1 &&
        !isa<BlockArgument>(results[0]))
      op->getResult(0).replaceAllUsesWith(results[0]);
    else
      foldInteger(op);
  }
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

namespace {
/// An axis that an access says has the extent of a dimension.
struct Binding {
  SourcePosition where;
  unsigned view, axis;
  StringAttr dim;
};
} // namespace

/// The bindings of all accesses, those included whose elements nobody uses.
static SmallVector<Binding> bindingsOf(tile::KernelOp kernel) {
  SmallVector<Binding> bindings;
  auto collect = [&](auto op) {
    auto view = cast<BlockArgument>(op.getView());
    unsigned rank = cast<tile::ViewType>(view.getType()).getRank();
    for (unsigned axis = 0; axis < rank; ++axis)
      if (StringAttr dim = op.getBoundDim(axis))
        bindings.push_back({positionOf(op), view.getArgNumber(), axis, dim});
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      collect(load);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      collect(store);
    else if (auto scatter = dyn_cast<tile::ScatterOp>(op))
      collect(scatter);
  });
  return bindings;
}

static Result<void> checkBindings(tile::KernelOp kernel,
                                  ArrayRef<Binding> bindings,
                                  const ViewExtents &extents,
                                  const llvm::StringMap<int64_t> &dims) {
  for (const Binding &binding : bindings) {
    int64_t actual = extents[binding.view][binding.axis];
    auto known = dims.find(binding.dim.getValue());
    if (known == dims.end() || known->second == actual)
      continue;
    Error error =
        launcherror::boundExtent(kernel.getArgName(binding.view), binding.axis,
                                 actual, binding.dim.getValue(), known->second);
    error.where = binding.where;
    return error;
  }
  return {};
}

static Result<void> checkReshape(tile::ReshapeOp op,
                                 const llvm::StringMap<int64_t> &dims) {
  auto count = [&](Type tile) -> std::optional<int64_t> {
    int64_t product = 1;
    for (StringAttr dim : tile::getDims(tile)) {
      auto known = dims.find(dim.getValue());
      if (known == dims.end() ||
          __builtin_mul_overflow(product, known->second, &product))
        return std::nullopt;
    }
    return product;
  };
  std::optional<int64_t> from = count(op.getInput().getType());
  std::optional<int64_t> to = count(op.getResult().getType());
  if (!from || !to || *from == *to)
    return {};
  return at(op, launcherror::reshape(*from, *to));
}

Result<void> specialize(tile::KernelOp kernel, const ViewExtents &extents) {
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    auto view = dyn_cast<tile::ViewType>(argument.getType());
    const std::vector<int64_t> &given = extents[argument.getArgNumber()];
    if (view && int64_t(given.size()) != view.getRank())
      return at(kernel,
                launcherror::rank(kernel.getArgName(argument.getArgNumber()),
                                  int64_t(given.size()), view.getRank()));
  }
  const SmallVector<Binding> bindings = bindingsOf(kernel);
  kernel.walk([&](tile::ExtentOp op) {
    auto view = cast<BlockArgument>(op.getView());
    OpBuilder builder(op);
    Value constant = builder.create<arith::ConstantIndexOp>(
        op.getLoc(), extents[view.getArgNumber()][op.getAxis()]);
    op.getResult().replaceAllUsesWith(constant);
    op.erase();
  });
  // Dimensions may be declared in terms of earlier ones, so fold and substitute
  // until nothing changes.
  llvm::StringMap<int64_t> dims;
  for (bool changed = true; changed;) {
    changed = false;
    fold(kernel);
    kernel.walk([&](tile::DimOp dim) {
      if (std::optional<int64_t> extent = constantOf(dim.getExtent()))
        changed |= dims.try_emplace(dim.getName(), *extent).second;
    });
    kernel.walk([&](tile::DimSizeOp op) {
      auto known = dims.find(op.getDim());
      if (known == dims.end())
        return;
      OpBuilder builder(op);
      Value constant =
          builder.create<arith::ConstantIndexOp>(op.getLoc(), known->second);
      op.getResult().replaceAllUsesWith(constant);
      op.erase();
      changed = true;
    });
  }
  // A traced kernel repeats constants, broadcasts and whole expressions.
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance;
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
  Result<void> status;
  kernel.walk([&](Operation *op) {
    if (auto dim = dyn_cast<tile::DimOp>(op)) {
      std::optional<int64_t> extent = constantOf(dim.getExtent());
      if (extent && *extent < 0)
        status = at(op, launcherror::negativeDimension(dim.getName(), extent));
    } else if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
      status = checkReshape(reshape, dims);
    }
    return status ? WalkResult::advance() : WalkResult::interrupt();
  });
  return status ? checkBindings(kernel, bindings, extents, dims) : status;
}

//===----------------------------------------------------------------------===//
// Extents from dimensions
//===----------------------------------------------------------------------===//

namespace {
/// Evaluates index arithmetic under partly known view extents.
class ExtentEvaluator {
public:
  ExtentEvaluator(const llvm::StringMap<int64_t> &dims,
                  const std::vector<std::vector<std::optional<int64_t>>> &axes)
      : dims(dims), axes(axes) {}

  /// Operands first, and once per value: shared subexpressions have far more
  /// paths than operations, and chains are longer than a stack is deep.
  std::optional<int64_t> evaluate(Value value) {
    known.clear();
    SmallVector<Value> stack{value};
    while (!stack.empty()) {
      Value next = stack.back();
      size_t before = stack.size();
      Operation *op = next.getDefiningOp();
      if (op && !known.contains(next) && op->getNumOperands() <= 2)
        for (Value operand : op->getOperands())
          if (!known.contains(operand))
            stack.push_back(operand);
      if (stack.size() > before)
        continue;
      if (!known.contains(next)) {
        std::optional<int64_t> computed = compute(next);
        known[next] = computed;
      }
      stack.pop_back();
    }
    return known.lookup(value);
  }

private:
  static std::optional<int64_t> known64(bool fits, int64_t value) {
    return fits ? std::optional<int64_t>(value) : std::nullopt;
  }

  std::optional<int64_t> compute(Value value) {
    if (std::optional<int64_t> constant = constantOf(value))
      return constant;
    Operation *op = value.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto extent = dyn_cast<tile::ExtentOp>(op))
      return axes[cast<BlockArgument>(extent.getView()).getArgNumber()]
                 [extent.getAxis()];
    if (auto size = dyn_cast<tile::DimSizeOp>(op)) {
      auto known = dims.find(size.getDim());
      return known == dims.end() ? std::nullopt
                                 : std::optional<int64_t>(known->second);
    }
    if (isa<tile::CastOp, arith::IndexCastOp>(op))
      return known.lookup(op->getOperand(0));
    if (op->getNumOperands() != 2)
      return std::nullopt;
    std::optional<int64_t> a = known.lookup(op->getOperand(0));
    std::optional<int64_t> b = known.lookup(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    int64_t exact = 0;
    if (isa<arith::AddIOp>(op))
      return known64(!__builtin_add_overflow(*a, *b, &exact), exact);
    if (isa<arith::SubIOp>(op))
      return known64(!__builtin_sub_overflow(*a, *b, &exact), exact);
    if (isa<arith::MulIOp>(op))
      return known64(!__builtin_mul_overflow(*a, *b, &exact), exact);
    if (isa<arith::MinSIOp>(op))
      return std::min(*a, *b);
    if (isa<arith::MaxSIOp>(op))
      return std::max(*a, *b);
    if (isa<tile::DivOp>(op))
      return *b == 0 ? 0 : *a / *b;
    if (isa<tile::RemOp>(op))
      return *b == 0 ? 0 : *a % *b;
    return std::nullopt;
  }

  const llvm::StringMap<int64_t> &dims;
  const std::vector<std::vector<std::optional<int64_t>>> &axes;
  llvm::DenseMap<Value, std::optional<int64_t>> known;
};
} // namespace

namespace {
/// Finds dimensions from axes and axes from dimensions until nothing is added.
class ExtentSolver {
public:
  ExtentSolver(tile::KernelOp kernel,
               const std::map<std::string, int64_t> &given,
               const KnownExtents &known)
      : kernel(kernel), given(given) {
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      auto view = dyn_cast<tile::ViewType>(argument.getType());
      auto &extents = axes.emplace_back(view ? view.getRank() : 0);
      size_t number = argument.getArgNumber();
      bool isGiven = number < known.size() && known[number];
      fromArrays.push_back(isGiven);
      if (!isGiven)
        continue;
      for (auto [axis, extent] : llvm::enumerate(*known[number]))
        if (axis < extents.size())
          extents[axis] = extent;
    }
  }

  Result<ViewExtents> run() {
    if (Result<void> status = takeDims(); !status)
      return status.error();
    do {
      changed = false;
      kernel.walk([&](Operation *op) { visit(op); });
    } while (changed && !conflict);
    if (!conflict)
      kernel.walk([&](tile::DimOp dim) { checkDeclared(dim); });
    if (conflict)
      return *conflict;
    return result();
  }

private:
  static Error usage(const Twine &message) {
    return Error{ErrorFamily::Usage, "usage.dims", message.str(), {}};
  }

  Result<void> takeDims() {
    llvm::StringMap<bool> declared;
    std::string names;
    kernel.walk([&](tile::DimOp dim) {
      declared[dim.getName()] = true;
      names += (names.empty() ? "" : ", ") + dim.getName().str();
    });
    for (const auto &[name, extent] : given) {
      if (!declared.count(name))
        return usage("kernel '" + kernel.getSymName() + "' has no dimension '" +
                     name + "'; it has " + (names.empty() ? "none" : names));
      if (extent < 0)
        return usage("dimension '" + Twine(name) + "' is " + Twine(extent) +
                     ", expected at least 0");
      dims[name] = extent;
    }
    return {};
  }

  void visit(Operation *op) {
    if (auto dim = dyn_cast<tile::DimOp>(op)) {
      // A dimension declared as an axis's extent determines that axis, and the
      // other way round.
      if (auto extent = dim.getExtent().getDefiningOp<tile::ExtentOp>())
        join(extent.getView(), extent.getAxis(), dim.getNameAttr());
      if (!dims.count(dim.getName()))
        if (std::optional<int64_t> value =
                ExtentEvaluator(dims, axes).evaluate(dim.getExtent())) {
          dims[dim.getName()] = *value;
          changed = true;
        }
      return;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case<tile::LoadOp, tile::StoreOp, tile::ScatterOp>([&](auto access) {
          auto view = cast<BlockArgument>(access.getView());
          for (unsigned axis = 0; axis < axes[view.getArgNumber()].size();
               ++axis)
            if (StringAttr dim = access.getBoundDim(axis))
              join(view, axis, dim);
        });
  }

  /// An axis and a dimension that have one extent.
  void join(Value view, unsigned axis, StringAttr dim) {
    unsigned number = cast<BlockArgument>(view).getArgNumber();
    std::optional<int64_t> &extent = axes[number][axis];
    boundTo.try_emplace({number, axis}, dim);
    auto known = dims.find(dim.getValue());
    if (known == dims.end()) {
      if (extent) {
        dims[dim.getValue()] = *extent;
        changed = true;
      }
    } else if (!extent) {
      extent = known->second;
      changed = true;
    } else if (*extent != known->second && fromArrays[number] &&
               given.count(dim.str()) && !conflict) {
      conflict = usage("dimension '" + dim.getValue() + "' is " +
                       Twine(known->second) + ", but axis " + Twine(axis) +
                       " of the given array '" + kernel.getArgName(number) +
                       "' has extent " + Twine(*extent));
    }
  }

  /// A given dimension must be what the kernel says it is.
  void checkDeclared(tile::DimOp dim) {
    auto wanted = given.find(dim.getName().str());
    if (wanted == given.end() || conflict)
      return;
    std::optional<int64_t> value =
        ExtentEvaluator(dims, axes).evaluate(dim.getExtent());
    if (value && *value != wanted->second)
      conflict = usage("dimension '" + dim.getName() + "' is " +
                       Twine(wanted->second) + ", but the kernel makes it " +
                       Twine(*value) + " from what else is given");
  }

  Result<ViewExtents> result() {
    ViewExtents extents;
    SmallVector<StringRef> missing;
    std::string arrays;
    for (auto [number, view] : llvm::enumerate(axes)) {
      auto &out = extents.emplace_back();
      StringRef name = kernel.getArgName(number);
      bool lacksDim = false;
      for (auto [axis, extent] : llvm::enumerate(view)) {
        if (extent) {
          out.push_back(*extent);
          continue;
        }
        auto dim = boundTo.find({unsigned(number), unsigned(axis)});
        if (dim == boundTo.end())
          return usage("extent " + Twine(axis) + " of '" + name +
                       "' is no dimension of the kernel and does not follow "
                       "from any; give the array with --input " +
                       name +
                       "=FILE.npy, or make the extent a dimension that --dims "
                       "can give: %n = tile.extent %" +
                       name + ", " + Twine(axis) +
                       ", then tile.dim \"n\" = %n");
        lacksDim = true;
        if (!llvm::is_contained(missing, dim->second.getValue()))
          missing.push_back(dim->second.getValue());
      }
      if (lacksDim)
        arrays += (arrays.empty() ? "--input " : ", --input ") + name.str() +
                  "=FILE.npy";
    }
    if (missing.empty())
      return extents;
    std::string names, options;
    for (StringRef dim : missing) {
      names += (names.empty() ? "'" : ", '") + dim.str() + "'";
      options += (options.empty() ? "" : ",") + dim.str() + "=N";
    }
    bool one = missing.size() == 1;
    return usage(
        (one ? "dimension " : "dimensions ") + names + " of kernel '" +
        kernel.getSymName() + (one ? "' is not known" : "' are not known") +
        "; give --dims " + options +
        (one ? ", or an array that has it: " : ", or arrays that have them: ") +
        arrays);
  }

  tile::KernelOp kernel;
  const std::map<std::string, int64_t> &given;
  llvm::StringMap<int64_t> dims;
  std::vector<std::vector<std::optional<int64_t>>> axes;
  /// Per parameter, whether its extents are those of a given array.
  std::vector<bool> fromArrays;
  /// The first dimension that each axis is bound to.
  std::map<std::pair<unsigned, unsigned>, StringAttr> boundTo;
  std::optional<Error> conflict;
  bool changed = false;
};
} // namespace

Result<ViewExtents> deriveExtents(tile::KernelOp kernel,
                                  const std::map<std::string, int64_t> &dims,
                                  const KnownExtents &known) {
  return ExtentSolver(kernel, dims, known).run();
}

} // namespace tessera
