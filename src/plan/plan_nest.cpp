//===- plan_nest.cpp - The decisions for one loop nest -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/nest_planner.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

using namespace mlir;

namespace tessera {

NestPlan NestPlanner::run() {
  describe();
  collect();
  squares.emplace(phase, analysis, accesses, layouts);
  if (choice.transposes == false)
    squares->forgo();
  chooseVectorDim();
  findTile();
  chooseSquares();
  chooseUnroll();
  chooseTile();
  choosePrepacked();
  chooseReducedBlock();
  chooseEpilogue();
  findJumps();
  if (plan.reducedBlock > 0) {
    plan.blockBytes = bytesOfBlock();
    // The first rows bring the block along, the others find it.
    if (tileDim)
      plan.busyShare =
          1 - std::min(1.0, double(plan.tileRows) / double(*extentOf(tileDim)));
  }
  findRepeatedReads();
  chooseChains();
  chooseTail();
  chooseNarrowTail();
  chooseStores();
  chooseSumBlock();
  return std::move(plan);
}

void NestPlanner::chooseVectorDim() {
  for (const Root &root : phase.roots)
    if (root.kind == Root::Kind::Sort || root.kind == Root::Kind::Scatter) {
      reason("scalar.sequential",
             "the elements take their places one after another");
      return;
    }
  StringAttr best;
  int64_t bestScore = 0;
  auto consider = [&](StringAttr dim) {
    AxisUse use = useAlong(dim);
    std::optional<int64_t> extent = extentOf(dim);
    if (dim == pins.vectorAxis && !extent)
      plan.pinConflict =
          "the extent of vector axis '" + pins.vectorAxis + "' depends on data";
    if (!extent || (*extent < 2 && dim != pins.vectorAxis)) {
      reason("vector.extent", "'" + dim.getValue() + "' is " +
                                  (extent ? "too short" : "not constant"));
      return;
    }
    if (dim == pins.vectorAxis) {
      bestScore = std::numeric_limits<int64_t>::max();
      best = dim;
      return;
    }
    // An access whose elements lie apart costs about as much as it has lanes,
    // unless squares are transposed or an operand is copied.
    const RowsOfVectors rows = rowsOfVectors(dim);
    int64_t score = 2 + 4 * use.adjacent + 2 * use.stepped - 4 * use.apart +
                    3 * squares->turned(dim) + creditOfRows(rows);
    // What the caller has packed is there to be read.
    if (takesPrepacked(dim))
      score += 64;
    use.adjacent += rows.copied + use.stepped;
    if (score > 0 && use.adjacent > 0)
      plan.alternatives.vectorDims.push_back(dim.getValue().str());
    if (dim == choice.vectorDim && pins.vectorAxis.empty()) {
      bestScore = std::numeric_limits<int64_t>::max();
      best = dim;
      return;
    }
    if (score <= 0) {
      reason("vector.strided",
             "accesses along '" + dim.getValue() + "' are not adjacent");
      return;
    }
    if (score > bestScore) {
      bestScore = score;
      best = dim;
    }
  };
  if (isOrdered() && !phase.reduced.empty()) {
    reason("vector.ordered",
           "the order of evaluation is pinned along the reduced dimensions");
    for (StringAttr dim : phase.reduced)
      if (dim == pins.vectorAxis)
        plan.pinConflict =
            "vector axis '" + pins.vectorAxis + "' is reduced in a fixed order";
  } else
    for (StringAttr dim : llvm::reverse(phase.reduced))
      consider(dim);
  for (StringAttr dim : llvm::reverse(phase.kept))
    consider(dim);
  if (!best)
    return;
  plan.vectorDim = best.getValue().str();
  plan.lanes = pins.lanes ? pins.lanes : target.lanes32();
  if (best == pins.vectorAxis)
    reason("pin.vector_axis", "fixed by the schedule");
  else if (best == choice.vectorDim)
    reason("vector.chosen", "elements along '" + best.getValue() +
                                "' fill the lanes in the plan that was "
                                "chosen");
  else
    reason("vector.adjacent",
           "elements along '" + best.getValue() + "' are adjacent in memory");
  if (useAlong(best).stepped > 0)
    reason("vector.stepped", "elements a small step apart are loaded in whole "
                             "vectors and brought together");
}

void NestPlanner::chooseUnroll() {
  if (plan.vectorDim.empty() || sumsRows)
    return;
  StringAttr dim = vectorDimension();
  int64_t extent = *extentOf(dim);
  // Chains of arithmetic are mixed as far as registers hold them; running
  // results take some, too.
  const int64_t chains =
      target.vectorRegisters >= 32 && phase.reduced.empty() && !plan.epilogue
          ? 4
          : 2;
  int64_t wanted = pins.unroll ? pins.unroll : expensive ? chains : 4;
  // Running results of all roots take half of the registers at most.
  if (!pins.unroll)
    wanted = std::clamp<int64_t>(
        target.vectorRegisters / (2 * std::max<int64_t>(runningResults(), 1)),
        1, wanted);
  if (llvm::any_of(phase.roots,
                   [](const Root &root) {
                     return root.kind == Root::Kind::ArgReduce;
                   }) &&
      !pins.unroll)
    wanted = 2;
  if (plan.transposes && !pins.unroll)
    wanted = 1;
  // Rows share what is loaded, and need registers for it.
  if (tileDim && !pins.unroll)
    wanted = std::max<int64_t>(1, (target.vectorRegisters >= 32 ? 4 : 2) /
                                      registersPerVector(tiled));
  // Without rows, an operand is read once: more than a line of each of its rows
  // before the next one, which prefetchers follow.
  if (tiled && !tileDim && !pins.unroll)
    if (std::optional<Access> streamed = streamedOperand()) {
      constexpr int64_t line = 64;
      const int64_t bytes =
          plan.lanes * bytesOf(streamed->viewType().getElementType());
      wanted = std::max(wanted, 2 * line / bytes);
    }
  // The vectors of a scan depend on each other.
  bool isChained = phase.roots[0].kind == Root::Kind::Scan &&
                   llvm::is_contained(phase.reduced, dim);
  int64_t vectors = std::max<int64_t>(1, extent / plan.lanes);
  plan.alternatives.mostUnroll =
      isChained || pins.unroll
          ? 1
          : std::min({vectors, mostResults(), int64_t(16)});
  // The code of a square is long.
  if (plan.transposes)
    plan.alternatives.mostUnroll =
        std::min<int64_t>(plan.alternatives.mostUnroll, 4);
  if (choice.unroll)
    wanted = *choice.unroll;
  wanted = std::clamp<int64_t>(wanted, 1, plan.alternatives.mostUnroll);
  plan.unroll = pins.unroll ? pins.unroll : std::min(wanted, vectors);
  if (pins.unroll > 1 && isChained)
    plan.pinConflict = "the vectors of a scan depend on each other and cannot "
                       "be unrolled";
  reason("unroll", Twine(plan.unroll) + " vectors per iteration: " +
                       (vectors < wanted  ? "all there are"
                        : pins.unroll     ? "fixed by the schedule"
                        : choice.unroll   ? "chosen by predicted time"
                        : plan.transposes ? "squares share nothing"
                        : expensive       ? "long chains of arithmetic"
                                          : "cheap elements"));
}

void NestPlanner::chooseSquares() {
  if (plan.vectorDim.empty())
    return;
  StringAttr dim = vectorDimension();
  StringAttr other = squares->partner(dim);
  const int64_t most = squares->mostRows(dim, plan.lanes, target);
  if (!other || most < 2)
    return;
  plan.alternatives.transposes = true;
  if (choice.transposes == false)
    return;
  plan.transposes = true;
  plan.tileDim = other.getValue().str();
  plan.tileRows = most;
  if (choice.tileRows && *choice.tileRows >= 2 && *choice.tileRows <= most &&
      llvm::isPowerOf2_64(*choice.tileRows))
    plan.tileRows = *choice.tileRows;
  reason("tile.squares",
         "squares of " + Twine(plan.tileRows) + " by " + Twine(plan.lanes) +
             " elements are transposed in registers: other accesses are "
             "adjacent along '" +
             plan.tileDim + "'");
  // Lines of the nearest cache need not be waited for.
  plan.asksForLines =
      llvm::any_of(
          phase.roots,
          [](const Root &root) { return root.kind == Root::Kind::Store; }) &&
      bytesOfArrays(accesses, analysis) > double(machine.memory[0].bytes) &&
      hasPlacesForSquare();
  if (plan.asksForLines)
    reason("tile.lines", "lines that a square is stored to are asked for "
                         "before it is loaded: the arrays do not stay in the "
                         "nearest cache");
}

bool NestPlanner::hasPlacesForSquare() const {
  const StringAttr along = vectorDimension();
  const StringAttr across = StringAttr::get(along.getContext(), plan.tileDim);
  return llvm::all_of(phase.roots, [&](const Root &root) {
    if (root.kind != Root::Kind::Store)
      return true;
    Access stored = *getAccess(root.op);
    const bool isAlong = adjacentDim(stored, analysis.strides) == along;
    return mostRowsKept(machine.memory[0],
                        bytesApart(stored, isAlong ? across : along)) >=
           (isAlong ? plan.tileRows : plan.lanes);
  });
}

double NestPlanner::bytesOfKernel() const {
  SmallVector<Access> all;
  tile::KernelOp kernel = analysis.kernel;
  kernel->walk([&](Operation *op) {
    if (std::optional<Access> access = getAccess(op))
      all.push_back(*access);
  });
  return bytesOfArrays(all, analysis);
}

void NestPlanner::chooseStores() {
  if (plan.vectorDim.empty() || plan.transposes || tiled || sumsRows)
    return;
  SmallVector<Access> results;
  for (const Root &root : phase.roots) {
    if (root.kind != Root::Kind::Store)
      continue;
    Access stored = *getAccess(root.op);
    results.push_back(stored);
    for (unsigned axis = 0; axis < stored.axes.size(); ++axis)
      plan.alternatives.storesAround |=
          stored.axes[axis].dim && stored.axes[axis].step == 1 &&
          stored.axes[axis].dim.getValue() == plan.vectorDim &&
          *extentOf(vectorDimension()) >= plan.lanes &&
          analysis.strides.isUnit(stored, axis);
    // What is read again is better found in a cache.
    for (Operation *user : stored.view.getUsers())
      if (isa<tile::LoadOp>(user))
        return;
  }
  if (!plan.alternatives.storesAround)
    return;
  // A small result pushes little out, and is soon read.
  const double bytes = bytesOfKernel();
  plan.storesAround = choice.storesAround.value_or(
      bytes > cacheShare * double(machine.memory[2].bytes) &&
      bytesOfArrays(results, analysis) > double(machine.memory[1].bytes));
  if (!plan.storesAround)
    return;
  reason("store.around", "results are written past the caches: the arrays' " +
                             Twine(int64_t(bytes)) +
                             " bytes do not stay there");
  alignStores();
}

/// Rows that are no whole number of vectors begin anywhere: only a loop that
/// begins where a store is aligned has vectors to write past the caches.
void NestPlanner::alignStores() {
  const StringAttr dim = vectorDimension();
  if (!phase.reduced.empty() || *extentOf(dim) < 2 * plan.lanes ||
      pins.tail == "overlap" || analysis.phases.liveLimit(phase, dim).known)
    return;
  plan.alternatives.alignsStores =
      llvm::any_of(phase.roots, [&](const Root &root) {
        return root.kind == Root::Kind::Store &&
               alignedShare(*getAccess(root.op), dim, plan.lanes, analysis) < 1;
      });
  plan.alignsStores =
      plan.alternatives.alignsStores && choice.alignsStores.value_or(true);
  if (!plan.alignsStores)
    return;
  // Elements before and after the vectors are told at run time.
  plan.alternatives.overlapsTail = false;
  if (plan.tail == TailForm::Overlap)
    plan.tail = usualTail();
  reason("store.aligned", "the loop begins where results are aligned: their "
                          "rows are no whole number of vectors");
}

double alignedShare(const Access &stored, StringAttr dim, int64_t lanes,
                    const KernelAnalysis &analysis) {
  // Arrays begin at whole vectors.
  if (stored.axes.size() < 2 || adjacentDim(stored, analysis.strides) != dim)
    return 1;
  int64_t extent = lanes;
  for (unsigned axis = 0; axis < stored.axes.size(); ++axis)
    if (stored.axes[axis].dim == dim)
      extent = analysis.accesses.extent(stored, axis);
  return double(std::gcd(extent, lanes)) / double(lanes);
}

bool NestPlanner::mayOverlapTail(int64_t extent) const {
  if (tiled || extent < plan.lanes ||
      llvm::none_of(
          phase.kept, [&](StringAttr dim) { return dim == plan.vectorDim; }))
    return false;
  SmallVector<BlockArgument> stored;
  for (const Root &root : phase.roots) {
    if (root.kind == Root::Kind::Store)
      stored.push_back(getAccess(root.op)->view);
    else if (root.kind != Root::Kind::Materialize &&
             root.kind != Root::Kind::Reduce)
      return false;
  }
  if (stored.empty())
    return true;
  // What was stored must not be an operand of what is done again.
  return analysis.accesses.aliasMode() == AliasMode::Disjoint &&
         llvm::none_of(accesses, [&](const Access &access) {
           return !access.writes && llvm::is_contained(stored, access.view);
         });
}

TailForm NestPlanner::usualTail() const {
  return (hasNarrow ? target.hasMaskedByteAccess : target.hasMaskedAccess)
             ? TailForm::Mask
             : TailForm::Scalar;
}

void NestPlanner::chooseTail() {
  if (!plan.vectorDim.empty()) {
    int64_t extent = *extentOf(vectorDimension());
    plan.alternatives.hasTail = extent % plan.lanes != 0;
    plan.alternatives.overlapsTail =
        plan.alternatives.hasTail && mayOverlapTail(extent);
  }
  const TailForm usual = usualTail();
  plan.tail = choice.tail.value_or(usual);
  if (!pins.tail.empty())
    plan.tail = pins.tail == "mask"   ? TailForm::Mask
                : pins.tail == "scalar" ? TailForm::Scalar
                                      : TailForm::Overlap;
  if (plan.tail == TailForm::Overlap && !plan.alternatives.overlapsTail)
    plan.tail = usual;
}

bool NestPlanner::sumsAlongLanes() const {
  if (plan.vectorDim.empty() || phase.reduced.size() != 1 ||
      phase.reduced[0] != plan.vectorDim)
    return false;
  return llvm::any_of(phase.roots, [](const Root &root) {
    auto reduce = dyn_cast_or_null<tile::ReduceOp>(root.op);
    return root.kind == Root::Kind::Reduce &&
           reduce.getCombiner() == tile::Combiner::Add &&
           reduce.getOrder() == tile::Order::Unordered;
  });
}

void NestPlanner::chooseSumBlock() {
  if (!sumsAlongLanes())
    return;
  int64_t extent = *analysis.dims.extent(phase.reduced[0]);
  int64_t group = plan.lanes * plan.unroll;
  int64_t groups = extent / group;
  // The second loop of a joined phase has one vector per iteration.
  const int64_t fewest = phase.join ? plan.lanes : group;
  plan.partials = fewest;
  constexpr int64_t shortest = 64;
  if (groups <= 2 * shortest)
    return;
  plan.sumBlock =
      std::max<int64_t>(shortest, int64_t(std::sqrt(double(groups))));
  int64_t chain =
      plan.sumBlock + (extent / fewest + plan.sumBlock - 1) / plan.sumBlock;
  plan.partials = std::max(fewest, extent / chain);
  reason("sum.blocks", "partial sums are added up every " +
                           Twine(plan.sumBlock) +
                           " iterations to bound their rounding errors");
}

NestPlan planNest(const Phase &phase, const Planning &planning,
                  const Layouts &layouts) {
  return NestPlanner(phase, planning, layouts).run();
}

} // namespace tessera
