//===- plan_grid.cpp - The order of a grid's programs ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction ends with a chain of dependent operations: partial results are
// merged, lanes folded, and the scalar goes through a division or a root before
// the next loop can use it. In short rows these chains are most of the time.
// Programs are independent by the language's contract, so several may advance
// phase by phase, and one's chain is hidden behind the loops of the others.
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

#include "analysis/coordinates.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// Whether copies of the root may be emitted one after another in one program's
/// place: loops of known length, without an order between programs.
bool isPlain(const Root &root) {
  switch (root.kind) {
  case Root::Kind::Store:
  case Root::Kind::Materialize:
    return true;
  case Root::Kind::Reduce:
    return cast<tile::ReduceOp>(root.op).getOrder() == tile::Order::Unordered;
  case Root::Kind::ArgReduce:
  case Root::Kind::Scatter:
  case Root::Kind::Contract:
  case Root::Kind::Scan:
  case Root::Kind::Sort:
    return false;
  }
  return false;
}

/// What could be prefetched, and what was chosen of that. Loops without a
/// reduction are not interrupted between programs, so that the core and its
/// prefetchers run into the next one by themselves.
void planPrefetch(tile::ParallelOp grid, size_t number,
                  const std::vector<Step> &steps, const Planning &planning,
                  GridPlan &plan) {
  for (const auto &[id, nest] : findPrefetches(grid, steps, planning))
    plan.mostPrefetch = std::max(
        plan.mostPrefetch, !nest.stores.empty()  ? Prefetch::InputsAndOutputs
                           : !nest.loads.empty() ? Prefetch::Inputs
                                                 : Prefetch::None);
  auto chosen = planning.choices.prefetch.find(number);
  if (chosen == planning.choices.prefetch.end())
    return;
  plan.prefetch = std::min(chosen->second, plan.mostPrefetch);
  if (plan.prefetch != Prefetch::None)
    plan.reasons.push_back({"programs.prefetch",
                            "the next program finds its inputs in a nearer "
                            "cache"});
}

/// Programs that use the same packed operand follow one another.
void planOrder(tile::ParallelOp grid, const std::vector<Step> &steps,
               const Planning &planning, GridPlan &plan) {
  for (const Step &step : steps) {
    if (step.immediate)
      continue;
    NestPlan nest = planNest(step.phase, planning);
    if (nest.packedOperand < 0)
      continue;
    std::optional<unsigned> axis = sharedInnermost(
        grid, step.phase.roots[0].op->getOperand(nest.packedOperand),
        planning.analysis);
    if (!axis)
      continue;
    plan.innermost = cast<StringAttr>(grid.getDims()[*axis]).str();
    plan.reasons.push_back({"programs.order", "programs along '" +
                                                  plan.innermost +
                                                  "' use the same packed "
                                                  "operand"});
    return;
  }
}

} // namespace

std::optional<SmallVector<unsigned>>
sharedCoordinates(tile::ParallelOp grid, Value packed,
                  const KernelAnalysis &analysis) {
  std::optional<SmallVector<unsigned>> along =
      coordinatesOf(packed, grid, analysis.phases, analysis.accesses);
  if (!along || along->size() == grid.getDims().size())
    return std::nullopt;
  return along;
}

std::optional<unsigned> sharedInnermost(tile::ParallelOp grid, Value packed,
                                        const KernelAnalysis &analysis) {
  const unsigned last = grid.getDims().size() - 1;
  std::optional<SmallVector<unsigned>> along =
      sharedCoordinates(grid, packed, analysis);
  if (!along || !llvm::is_contained(*along, last))
    return std::nullopt;
  for (unsigned axis = last; axis-- > 0;)
    if (!llvm::is_contained(*along, axis))
      return axis;
  return std::nullopt;
}

GridPlan planGrid(tile::ParallelOp grid, size_t number,
                  const std::vector<Step> &steps, const Planning &planning) {
  const KernelAnalysis &analysis = planning.analysis;
  GridPlan plan;
  planOrder(grid, steps, planning, plan);
  planSplits(grid, number, steps, planning, plan);
  auto alone = [&](StringRef code, const Twine &why) {
    plan.reasons.push_back({code.str(), why.str()});
    return plan;
  };
  // Each of several programs that share a reduction meets the others at its
  // end.
  if (plan.splits > 1)
    return alone("programs.splits",
                 "programs that share a reduction run one at a time");
  bool reduces = false;
  for (const Step &step : steps) {
    if (step.immediate) {
      if (step.immediate->getNumRegions() > 0 ||
          isa<tile::DimOp, tile::ScatterOp>(step.immediate))
        return alone("programs.regions",
                     "the body has more than loops over tiles");
      continue;
    }
    for (const Root &root : step.phase.roots) {
      if (!isPlain(root))
        return alone("programs.sequential",
                     "the body has parts that run one element after another");
      reduces |= root.kind == Root::Kind::Reduce;
    }
    for (StringAttr dim :
         llvm::concat<const StringAttr>(step.phase.kept, step.phase.reduced))
      if (!analysis.dims.extent(dim))
        return alone("programs.extent", "an extent depends on data");
  }
  if (!reduces)
    return alone("programs.elementwise", "no reduction to wait for");
  std::optional<int64_t> programs = analysis.dims.elements(
      llvm::to_vector(grid.getDims().getAsRange<StringAttr>()));
  while (plan.mostTogether < 8 &&
         (!programs || *programs >= 4 * plan.mostTogether))
    plan.mostTogether *= 2;
  if (plan.mostTogether == 1)
    return alone("programs.few", "there are too few programs");
  planPrefetch(grid, number, steps, planning, plan);
  auto chosen = planning.choices.together.find(number);
  if (chosen == planning.choices.together.end())
    return plan;
  plan.together = std::clamp<int64_t>(chosen->second, 1, plan.mostTogether);
  if (plan.together > 1)
    plan.reasons.push_back(
        {"programs.together", std::to_string(plan.together) +
                                  " programs together hide the end of their "
                                  "reductions"});
  return plan;
}

} // namespace tessera
