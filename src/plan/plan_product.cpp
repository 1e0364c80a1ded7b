//===- plan_product.cpp - Kernels that are one matrix product -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each axis of an access becomes a position in the whole array: a dimension of
// the tile plus factors of the grid's coordinates. Axes of the output must
// cover it once. An axis of an input must have the position of an axis of the
// output, or be the summed dimension; what only the left operand shares with
// the output can be rows, what only the right one does columns, and all other
// shared axes are loops around the call.
//
//===----------------------------------------------------------------------===//

#include "plan/plan_product.h"

#include "analysis/affine.h"

#include <algorithm>
#include <climits>

using namespace mlir;

namespace tessera {

namespace {

/// The index of an axis: step 1 times a dimension, if any, plus factors of the
/// grid's coordinates; those of extent 1 do not count.
struct Position {
  StringAttr dim;
  SmallVector<int64_t, 3> factors;

  bool isZero() const {
    return !dim && llvm::all_of(factors, [](int64_t f) { return f == 0; });
  }
  bool operator==(const Position &) const = default;
};

/// An input's axes: the output's axis that moves with each, the summed one, or
/// one that stands at 0.
constexpr int summed = -1;
constexpr int fixed = -2;

struct Input {
  tile::LoadOp load;
  Access access;
  SmallVector<int, 4> roles;

  int axisOf(int role) const {
    auto found = llvm::find(roles, role);
    return found == roles.end() ? -1 : int(found - roles.begin());
  }
};

class ProductProof {
public:
  ProductProof(const KernelAnalysis &analysis, Vendor vendor)
      : analysis(analysis), vendor(vendor) {}

  Result<VendorCall> run() {
    prove();
    if (failure)
      return *failure;
    return std::move(call);
  }

private:
  /// Keeps the first thing that does not fit.
  bool refuse(Operation *op, const Twine &what) {
    if (failure)
      return false;
    SourcePosition where;
    if (auto loc =
            op ? dyn_cast<FileLineColLoc>(op->getLoc()) : FileLineColLoc())
      where = {loc.getFilename().str(), loc.getLine(), loc.getColumn()};
    tile::KernelOp kernel = analysis.kernel;
    failure =
        Error{ErrorFamily::Unsupported, "vendor.not_a_product",
              ("kernel '" + kernel.getSymName() + "' cannot be handed to '" +
               llvm::StringRef(name(vendor)) + "' as one product: " + what)
                  .str(),
              where};
    return false;
  }

  std::string viewName(const Access &access) const {
    tile::KernelOp kernel = analysis.kernel;
    return kernel.getArgName(access.view.getArgNumber()).str();
  }

  bool prove() {
    call.library = vendor;
    if (analysis.accesses.aliasMode() != AliasMode::Disjoint)
      return refuse(nullptr, "its arrays may share memory with the output, "
                             "which the library writes while it reads");
    return findStore() && findContraction() && readOutput() &&
           readInput(left) && readInput(right) && choose() && checkExtents();
  }

  /// One store in one grid, and nothing else that has an effect or an order.
  bool findStore() {
    analysis.kernel->walk([&](Operation *op) {
      if (failure)
        return;
      if (auto parallel = dyn_cast<tile::ParallelOp>(op)) {
        if (grid || parallel->getParentOp() != analysis.kernel)
          refuse(op, "there is more than one parallel region");
        grid = parallel;
      } else if (isa<tile::ScatterOp>(op)) {
        refuse(op, "a scatter writes to an array");
      } else if (auto found = dyn_cast<tile::StoreOp>(op)) {
        if (store)
          refuse(op, "a second store writes to an array");
        store = found;
      } else if (op->getNumRegions() > 0 && op != analysis.kernel &&
                 !isa<tile::ReduceOp, tile::ScanOp>(op)) {
        refuse(op, "found '" + op->getName().getStringRef() +
                       "', expected one parallel region with a load of each "
                       "operand, their contraction and its store");
      }
    });
    if (failure)
      return false;
    if (!store)
      return refuse(nullptr, "nothing is stored");
    if (grid && store->getParentOp() != grid)
      return refuse(store, "the store stands outside of the parallel region");
    reader.emplace(grid, analysis.dims);
    return true;
  }

  /// What a value is without changes of the order of its axes.
  static Value straight(Value value) {
    while (auto transpose = value.getDefiningOp<tile::TransposeOp>())
      value = transpose.getInput();
    return value;
  }

  bool findContraction() {
    Value value = straight(store.getValue());
    while (auto negation = value.getDefiningOp<arith::NegFOp>()) {
      call.alpha = -call.alpha;
      value = straight(negation.getOperand());
    }
    contraction = value.getDefiningOp<tile::ContractOp>();
    if (!contraction) {
      Operation *op = value.getDefiningOp();
      if (op && isa<arith::MulFOp>(op) &&
          llvm::any_of(op->getOperands(), [](Value factor) {
            return isa_and_present<tile::ContractOp>(
                straight(factor).getDefiningOp());
          }))
        return refuse(op, "the product is scaled, and a library may scale "
                          "before it sums or take a factor of 0 for no "
                          "product at all");
      return refuse(op ? op : store,
                    op ? "what is stored is computed by '" +
                             op->getName().getStringRef() +
                             "', expected a contraction"
                       : Twine("what is stored is no contraction").str());
    }
    if (contraction.getOrder() != tile::Order::Unordered)
      return refuse(contraction,
                    "the order of its sums is pinned ('" +
                        tile::stringifyOrder(contraction.getOrder()) +
                        "'), and a library takes its own");
    if (contraction.getAcc())
      return refuse(contraction, "the sums begin with values of their own, and "
                                 "a library would read them from the output");
    if (contraction.getOver().size() != 1)
      return refuse(contraction, "it sums over " +
                                     Twine(contraction.getOver().size()) +
                                     " dimensions, expected one");
    over = cast<StringAttr>(contraction.getOver()[0]);
    for (auto [input, operand] : {std::pair(&left, contraction.getLhs()),
                                  {&right, contraction.getRhs()}}) {
      Value loaded = straight(operand);
      input->load = loaded.getDefiningOp<tile::LoadOp>();
      if (!input->load) {
        Operation *op = loaded.getDefiningOp();
        return refuse(
            op ? op : contraction,
            "an operand is " +
                (op ? "computed by '" + op->getName().getStringRef() + "'"
                    : Twine("no array")) +
                ", expected elements of an array as they are loaded");
      }
      input->access = *getAccess(input->load);
    }
    return true;
  }

  bool isElement(const Access &access) {
    Type element = access.viewType().getElementType();
    Type wanted =
        cast<tile::ViewType>(store.getView().getType()).getElementType();
    bool isKnown =
        element.isF32() || (element.isF64() && vendor == Vendor::Cblas);
    if (element == wanted && isKnown)
      return true;
    std::string text;
    llvm::raw_string_ostream(text) << (isKnown ? wanted : element);
    return refuse(access.op, "array '" + viewName(access) +
                                 "' has elements that the library has no "
                                 "product of, or not all arrays have the same "
                                 "(" +
                                 text + ")");
  }

  std::optional<Position> positionOf(const Access &access, unsigned axis) {
    const Access::Axis &subscript = access.axes[axis];
    auto wrong = [&](const Twine &what) {
      refuse(access.op,
             "axis " + Twine(axis) + " of '" + viewName(access) + "' " + what);
      return std::nullopt;
    };
    Position position;
    position.factors.assign(grid ? grid.getDims().size() : 0, 0);
    position.dim = subscript.dim;
    if (subscript.dim && subscript.step != 1)
      return wrong("is indexed by every " + Twine(subscript.step) +
                   "th element");
    if (!subscript.offset)
      return position;
    if (isa<RankedTensorType>(subscript.offset.getType()))
      return wrong("is indexed by computed positions");
    AffineIndex offset = reader->read(subscript.offset);
    if (!offset.rest.known || offset.rest.low != offset.rest.high)
      return wrong("has an offset that the program's coordinates do not give");
    if (offset.rest.low != 0)
      return wrong("is shifted by " + Twine(offset.rest.low));
    for (auto [number, factor] : llvm::enumerate(offset.factors))
      if (coordinates(number) > 1)
        position.factors[number] = factor;
    return position;
  }

  /// The extent of a dimension of the grid.
  int64_t coordinates(size_t number) {
    return analysis.dims.extent(cast<StringAttr>(grid.getDims()[number]))
        .value_or(INT64_MAX);
  }

  bool readOutput() {
    out = *getAccess(store);
    if (!isElement(out))
      return false;
    if (out.mask)
      return refuse(store, "the store has a mask");
    SmallVector<bool, 3> used(grid ? grid.getDims().size() : 0, false);
    for (unsigned axis = 0; axis < out.axes.size(); ++axis) {
      std::optional<Position> position = positionOf(out, axis);
      if (!position)
        return false;
      const int64_t extent = analysis.accesses.extent(out, axis);
      const int64_t block =
          position->dim ? analysis.dims.extent(position->dim).value_or(-1) : 1;
      auto incomplete = [&] {
        return refuse(store, "the programs do not store each element along "
                             "axis " +
                                 Twine(axis) + " of '" + viewName(out) +
                                 "' once");
      };
      int64_t covered = block, number = -1;
      for (auto [other, factor] : llvm::enumerate(position->factors)) {
        if (factor == 0)
          continue;
        if (number >= 0 || used[other] || factor != block ||
            __builtin_mul_overflow(block, coordinates(other), &covered))
          return incomplete();
        number = int64_t(other);
        used[other] = true;
      }
      if (block < 0 || covered < extent)
        return incomplete();
      positions.push_back(std::move(*position));
    }
    for (auto [number, isUsed] : llvm::enumerate(used))
      if (!isUsed && coordinates(number) > 1)
        return refuse(store,
                      "programs that differ in '" +
                          cast<StringAttr>(grid.getDims()[number]).getValue() +
                          "' alone store the same elements");
    return true;
  }

  bool isEmpty() const {
    for (int axis = 0; axis < int(out.axes.size()); ++axis)
      if (extentOf(out, axis) == 0)
        return true;
    return false;
  }

  bool readInput(Input &input) {
    const Access &access = input.access;
    if (access.view == out.view)
      return refuse(access.op,
                    "'" + viewName(access) + "' is read and written");
    if (!isElement(access))
      return false;
    if (access.mask)
      return refuse(access.op,
                    "the load of '" + viewName(access) + "' has a mask");
    for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
      std::optional<Position> position = positionOf(access, axis);
      if (!position)
        return false;
      const int64_t extent = analysis.accesses.extent(access, axis);
      auto wrong = [&](const Twine &what) {
        return refuse(access.op, "axis " + Twine(axis) + " of '" +
                                     viewName(access) + "' " + what);
      };
      int role = fixed;
      if (position->isZero()) {
        if (extent < 1 && !isEmpty())
          return wrong("has no elements");
      } else if (position->dim == over) {
        position->dim = {};
        if (!position->isZero() || analysis.dims.extent(over) != extent)
          return wrong("is not summed from its first element to its last");
        role = summed;
        call.k = extent;
      } else {
        auto same = llvm::find(positions, *position);
        if (same == positions.end())
          return wrong("does not move with an axis of the output");
        role = int(same - positions.begin());
        if (extent != analysis.accesses.extent(out, unsigned(role)))
          return wrong("has " + Twine(extent) +
                       " elements, and the output other ones along its own");
      }
      if (role != fixed && input.axisOf(role) >= 0)
        return wrong("moves with another one of its own");
      input.roles.push_back(role);
    }
    if (input.axisOf(summed) < 0)
      return refuse(access.op, "'" + viewName(access) +
                                   "' has no axis that is summed over");
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Rows, columns and layouts
  //===--------------------------------------------------------------------===//

  int64_t extentOf(const Access &access, int axis) const {
    return axis < 0 ? 1 : analysis.accesses.extent(access, unsigned(axis));
  }
  bool isUnit(const Access &access, int axis) const {
    return axis < 0 || extentOf(access, axis) <= 1 ||
           analysis.strides.isUnit(access, unsigned(axis));
  }

  /// A matrix whose rows go along axis `down` and whose columns along
  /// `across`, -1 for a single one; false if neither is adjacent.
  bool layOut(const Access &access, int down, int across, bool mayTranspose,
              VendorMatrix &matrix) const {
    auto set = [&](bool transposed, int leading, int adjacent) {
      matrix.transposed = transposed;
      matrix.leadingAxis = extentOf(access, leading) > 1 ? leading : -1;
      matrix.leastLeading = std::max<int64_t>(1, extentOf(access, adjacent));
      return true;
    };
    if (isUnit(access, across))
      return set(false, down, across);
    if (mayTranspose && isUnit(access, down))
      return set(true, across, down);
    return false;
  }

  /// Takes rows and columns among the axes that one operand alone shares with
  /// the output: the longest that are laid out as the library needs them.
  bool choose() {
    SmallVector<int, 4> ofLeft, ofRight;
    for (int axis = 0; axis < int(positions.size()); ++axis) {
      const bool inLeft = left.axisOf(axis) >= 0;
      const bool inRight = right.axisOf(axis) >= 0;
      if (!inLeft && !inRight && !positions[axis].isZero() &&
          extentOf(out, axis) > 1)
        return refuse(store, "axis " + Twine(axis) + " of '" + viewName(out) +
                                 "' belongs to neither operand");
      if (inLeft != inRight)
        (inLeft ? ofLeft : ofRight).push_back(axis);
    }
    if (ofLeft.empty())
      ofLeft.push_back(-1);
    if (ofRight.empty())
      ofRight.push_back(-1);
    bool found = false;
    for (int row : ofLeft)
      for (int column : ofRight)
        for (bool swapped : {false, true})
          found |= swapped ? consider(right, left, column, row, found)
                           : consider(left, right, row, column, found);
    if (!found)
      return refuse(store, "no rows and columns of its arrays have stride 1 as "
                           "the library needs it");
    return true;
  }

  bool consider(const Input &a, const Input &b, int row, int column,
                bool hasOther) {
    VendorCall tried = call;
    tried.m = extentOf(out, row);
    tried.n = extentOf(out, column);
    if (hasOther && tried.m * tried.n <= call.m * call.n)
      return false;
    auto axisIn = [](const Input &input, int axis) {
      return axis < 0 ? -1 : input.axisOf(axis);
    };
    const int sumA = a.axisOf(summed), sumB = b.axisOf(summed);
    if (!layOut(out, row, column, false, tried.c) ||
        !layOut(a.access, axisIn(a, row), sumA, true, tried.a) ||
        !layOut(b.access, sumB, axisIn(b, column), true, tried.b))
      return false;
    tried.batch.clear();
    for (int axis = 0; axis < int(positions.size()); ++axis) {
      if (axis == row || axis == column || extentOf(out, axis) == 1)
        continue;
      tried.batch.push_back(extentOf(out, axis));
      tried.c.batchAxes.push_back(axis);
      tried.a.batchAxes.push_back(a.axisOf(axis));
      tried.b.batchAxes.push_back(b.axisOf(axis));
    }
    for (auto [matrix, access] : {std::pair(&tried.a, &a.access),
                                  {&tried.b, &b.access},
                                  {&tried.c, &out}}) {
      matrix->parameter = access->view.getArgNumber();
      matrix->name = viewName(*access);
    }
    call = std::move(tried);
    return true;
  }

  bool checkExtents() {
    call.isF64 = out.viewType().getElementType().isF64();
    call.function = vendor == Vendor::OneDnn ? "dnnl_sgemm"
                    : call.isF64             ? "cblas_dgemm"
                                             : "cblas_sgemm";
    if (vendor == Vendor::OneDnn && call.k == 0 && !isEmpty())
      return refuse(contraction, "there is nothing to sum, and the library "
                                 "leaves the output as it is");
    // The interface counts in int.
    for (int64_t extent : {call.m, call.n, call.k})
      if (extent > INT_MAX)
        return refuse(contraction, "an extent is " + Twine(extent) +
                                       ", expected at most " + Twine(INT_MAX));
    return true;
  }

  const KernelAnalysis &analysis;
  const Vendor vendor;
  std::optional<AffineReader> reader;
  tile::ParallelOp grid;
  tile::StoreOp store;
  tile::ContractOp contraction;
  StringAttr over;
  Input left, right;
  Access out;
  /// By axis of the output.
  SmallVector<Position, 4> positions;
  VendorCall call;
  std::optional<Error> failure;
};

} // namespace

Result<VendorCall> proveProduct(const KernelAnalysis &analysis, Vendor vendor) {
  return ProductProof(analysis, vendor).run();
}

} // namespace tessera
