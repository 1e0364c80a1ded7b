//===- plan_windows.cpp - Contractions that read windows -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows of an image overlap: a copy of what they cover has each element once,
// and what lies beyond the edges. Vectors may lie along the image or along the
// filters; with the latter, rows of results come out along other lanes than
// they are stored.
//
//===----------------------------------------------------------------------===//

#include "plan/nest_planner.h"
#include "plan/plan_atoms.h"

#include "llvm/ADT/bit.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

bool NestPlanner::readsWindows(const Access &access) const {
  return llvm::any_of(access.axes, [&](const Access::Axis &axis) {
    SmallVector<StringAttr> dims;
    if (axis.offset && isa<RankedTensorType>(axis.offset.getType()))
      dims = tile::getDims(axis.offset.getType());
    if (axis.dim)
      dims.push_back(axis.dim);
    auto within = [&](ArrayRef<StringAttr> group) {
      return llvm::any_of(
          dims, [&](StringAttr dim) { return llvm::is_contained(group, dim); });
    };
    return within(phase.kept) && within(phase.reduced);
  });
}

std::optional<WindowRegion> NestPlanner::regionOf(Value operand) const {
  std::optional<WindowRegion> region =
      windowRegion(operand, analysis.dims, analysis.phases);
  if (!region)
    return std::nullopt;
  // Loops that end early would leave a part of it.
  for (auto [dim, span] : region->spans)
    if (extentOf(dim) != analysis.dims.extent(dim) ||
        analysis.phases.liveLimit(phase, dim).known)
      return std::nullopt;
  return region;
}

bool NestPlanner::copiesRowsOfWindows(Value rows) const {
  std::optional<WindowRegion> region = regionOf(rows);
  const int64_t size = bytesOf(tile::getElement(rows.getType()));
  if (!region || region->elements > machine.memory[1].bytes / 4 / size)
    return false;
  const Access access = *getAccess(loadOf(rows, analysis.phases));
  for (unsigned axis = 0; axis < access.axes.size(); ++axis)
    if (analysis.accesses.needsCheck(access, axis))
      return true;
  return access.viewType().getElementType() != tile::getElement(rows.getType());
}

void NestPlanner::chooseChains() {
  auto contract = phase.roots.size() == 1
                      ? dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op)
                      : tile::ContractOp();
  if (!contract || contract.getOrder() != tile::Order::Unordered ||
      contract.getAcc() || phase.reduced.size() < 2 || plan.vectorDim.empty() ||
      !llvm::is_contained(phase.kept, vectorDimension()) ||
      !plan.atom.empty() || plan.reducedBlock > 0 ||
      !isa<FloatType>(tile::getElement(contract.getType())))
    return;
  const CoreCosts &costs = machine.costs(target);
  const double together = double(plan.unroll * plan.tileRows);
  const int64_t wanted =
      int64_t(std::min(costs.addLatency * costs.multiplyRate() / together,
                       double(extentOf(phase.reduced.back()).value_or(1))));
  if (wanted < 2)
    return;
  plan.chains = int64_t(llvm::bit_floor(uint64_t(wanted)));
  reason("chains", Twine(plan.chains) +
                       " sums of each result in turn: a core starts so many "
                       "products before it has the first");
}

bool NestPlanner::isStoredAcross() const {
  if (!rowsOfVectors(vectorDimension()).isSecond ||
      !hasFreeLayout(tile::ContractOp(tiled).getResult()))
    return false;
  return llvm::any_of(phase.epilogue, [&](const Root &root) {
    if (root.kind != Root::Kind::Store)
      return false;
    StringAttr adjacent = adjacentDim(*getAccess(root.op), analysis.strides);
    return adjacent && adjacent.getValue() != plan.vectorDim;
  });
}

} // namespace tessera
