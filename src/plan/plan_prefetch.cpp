//===- plan_prefetch.cpp - What programs can prefetch ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A processor's own prefetchers follow the addresses of a loop. They know
// nothing of the next program before its loop has begun, nor of an array that
// is stored by a later loop. The compiler knows both: where an access moves by
// a constant from program to program, the element that the next program needs
// is at a known distance from the one at hand. The time for it is when a nest
// reads an array again that is near by then. Prefetching changes no result
// and never faults, so no bound is checked.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// How much an index grows from one coordinate of a program to the next;
/// std::nullopt where that is not a constant.
std::optional<int64_t> growth(Value index, BlockArgument coordinate,
                              int depth = 0) {
  constexpr int deepest = 8;
  if (index == coordinate)
    return 1;
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    // Another coordinate of the grid, or an argument of the kernel.
    Operation *parent = argument.getOwner()->getParentOp();
    if (parent == coordinate.getOwner()->getParentOp() ||
        isa<tile::KernelOp>(parent))
      return 0;
    return std::nullopt;
  }
  Operation *op = index.getDefiningOp();
  if (depth == deepest || !op)
    return std::nullopt;
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::DimSizeOp>(op))
    return 0;
  auto of = [&](unsigned operand) {
    return growth(op->getOperand(operand), coordinate, depth + 1);
  };
  int64_t result = 0;
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<int64_t> a = of(0), b = of(1);
    bool overflows =
        !a || !b ||
        (isa<arith::AddIOp>(op) ? __builtin_add_overflow(*a, *b, &result)
                                : __builtin_sub_overflow(*a, *b, &result));
    return overflows ? std::nullopt : std::optional(result);
  }
  if (isa<arith::MulIOp>(op))
    for (unsigned side : {0, 1}) {
      std::optional<int64_t> factor = constantIndex(op->getOperand(side));
      std::optional<int64_t> other = of(1 - side);
      if (factor && other && !__builtin_mul_overflow(*factor, *other, &result))
        return result;
    }
  return std::nullopt;
}

/// One nest of a program's body.
struct Pass {
  int64_t id = 0;
  StringAttr vectorDim;
  SmallVector<StringAttr> dims;
  llvm::SetVector<Operation *> loads;
  SmallVector<Operation *> stores;
};

class Finder {
public:
  Finder(tile::ParallelOp grid, const Planning &planning)
      : coordinate(grid.getBody().getArguments().back()), planning(planning),
        analysis(planning.analysis) {}

  std::map<int64_t, NestPrefetches> run(const std::vector<Step> &steps) {
    for (const Step &step : steps)
      if (!step.immediate)
        collect(step.phase);
    std::map<int64_t, NestPrefetches> found;
    for (size_t i = 0; i < passes.size(); ++i) {
      for (Operation *load : passes[i].loads)
        if (lastReader(viewOf(load)) == i && leavesTime(viewOf(load)))
          if (std::optional<PrefetchedAccess> access =
                  describe(load, passes[i]))
            found[passes[i].id].loads.push_back(*access);
      for (Operation *store : passes[i].stores)
        if (std::optional<size_t> early = placeOf(store, i))
          found[passes[*early].id].stores.push_back(store);
    }
    return found;
  }

private:
  static Value viewOf(Operation *op) { return getAccess(op)->view; }

  void collect(const Phase &phase) {
    Pass &pass = passes.emplace_back();
    NestPlan nest = planNest(phase, planning);
    pass.id = nest.id;
    if (!nest.vectorDim.empty())
      pass.vectorDim = StringAttr::get(coordinate.getContext(), nest.vectorDim);
    for (StringAttr dim :
         llvm::concat<const StringAttr>(phase.kept, phase.reduced))
      pass.dims.push_back(dim);
    for (const Root &root : phase.roots) {
      if (root.kind == Root::Kind::Store)
        pass.stores.push_back(root.op);
      for (Value value : analysis.phases.cone(root))
        // What is kept is read from its buffer by all but the nest that keeps
        // it.
        if (auto load = value.getDefiningOp<tile::LoadOp>();
            load && isa<RankedTensorType>(value.getType()) &&
            (value == root.value || !analysis.phases.isMaterialized(value)))
          pass.loads.insert(load);
    }
  }

  std::optional<size_t> lastReader(Value view) const {
    for (size_t i = passes.size(); i-- > 0;)
      if (llvm::any_of(passes[i].loads,
                       [&](Operation *load) { return viewOf(load) == view; }))
        return i;
    return std::nullopt;
  }

  /// Whether the last nest that reads an array finds it near, having read it
  /// before, so that the way to memory is free. A nest that is the only one to
  /// read it has to wait for its own elements, unless there is no other nest.
  bool leavesTime(Value view) const {
    auto reads = [&](const Pass &pass) {
      return llvm::any_of(
          pass.loads, [&](Operation *load) { return viewOf(load) == view; });
    };
    return passes.size() == 1 || llvm::count_if(passes, reads) > 1;
  }

  /// The access in a nest, if its elements are adjacent along the lanes, every
  /// one of the nest's iterations has its own, and the next program's are at a
  /// constant distance.
  std::optional<PrefetchedAccess> describe(Operation *op,
                                           const Pass &pass) const {
    Access access = *getAccess(op);
    PrefetchedAccess result{op, {}};
    SmallVector<StringAttr> along;
    bool isAdjacent = false;
    for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
      const Access::Axis &described = access.axes[axis];
      if (described.dim) {
        along.push_back(described.dim);
        isAdjacent |= described.dim == pass.vectorDim && described.step == 1 &&
                      analysis.strides.isUnit(access, axis);
      }
      std::optional<int64_t> ahead = 0;
      if (described.offset)
        ahead = isa<RankedTensorType>(described.offset.getType())
                    ? std::nullopt
                    : growth(described.offset, coordinate);
      if (!ahead)
        return std::nullopt;
      result.ahead.push_back(*ahead);
    }
    bool isOwn = llvm::all_of(pass.dims, [&](StringAttr dim) {
      return llvm::count(along, dim) == 1 || analysis.dims.extent(dim) == 1;
    });
    bool moves =
        llvm::any_of(result.ahead, [](int64_t step) { return step != 0; });
    if (!isAdjacent || !isOwn || !moves || along.size() > pass.dims.size())
      return std::nullopt;
    return result;
  }

  /// The first nest that can prefetch what nest `late` stores.
  std::optional<size_t> placeOf(Operation *store, size_t late) const {
    Value view = viewOf(store);
    if (lastReader(view))
      return std::nullopt;
    for (size_t i = 0; i < late; ++i) {
      const Pass &pass = passes[i];
      if (llvm::any_of(pass.stores,
                       [&](Operation *other) { return viewOf(other) == view; }))
        return std::nullopt;
      if (pass.vectorDim && pass.vectorDim == passes[late].vectorDim &&
          std::is_permutation(pass.dims.begin(), pass.dims.end(),
                              passes[late].dims.begin(),
                              passes[late].dims.end()) &&
          describe(store, pass))
        return i;
    }
    return std::nullopt;
  }

  BlockArgument coordinate;
  const Planning &planning;
  const KernelAnalysis &analysis;
  std::vector<Pass> passes;
};

} // namespace

std::map<int64_t, NestPrefetches> findPrefetches(tile::ParallelOp grid,
                                                 const std::vector<Step> &steps,
                                                 const Planning &planning) {
  return Finder(grid, planning).run(steps);
}

} // namespace tessera
