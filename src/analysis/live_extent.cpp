//===- live_extent.cpp - Coordinates whose results are seen ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block that is larger than the view it is stored to hangs over the end:
// stores drop what is outside, so nothing that only they use need be computed
// there. A product of one row by blocks of 32 rows computes one row.
//
//===----------------------------------------------------------------------===//

#include "analysis/phases.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

/// What limits the coordinates along `dim` at which the store writes.
static LiveLimit storedLimit(const Access &access, StringAttr dim,
                             const AccessAnalysis &accesses) {
  if (access.promised)
    return {};
  for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
    const Access::Axis &described = access.axes[axis];
    if (described.dim != dim || described.step != 1 || described.bound)
      continue;
    if (described.offset) {
      if (isa<RankedTensorType>(described.offset.getType()))
        continue;
      IndexRange offset = accesses.dimTable().range(described.offset);
      if (!offset.known || offset.low < 0)
        continue;
    }
    return {true, accesses.extent(access, axis), described.offset};
  }
  return {};
}

/// Adds the stores that see the root's results, by what limits them. False if
/// something else may see a result at any coordinate.
bool PhaseAnalysis::collectLimits(const Root &root, StringAttr dim,
                                  SmallVectorImpl<LiveLimit> &limits) const {
  auto add = [&](Operation *store) {
    LiveLimit limit = storedLimit(*getAccess(store), dim, accesses);
    if (limit.known && !llvm::is_contained(limits, limit))
      limits.push_back(limit);
    return limit.known;
  };
  if (root.kind == Root::Kind::Store)
    return add(root.op);
  if (root.kind == Root::Kind::Scatter)
    return false;
  // What uses the results at the same coordinates, up to stores.
  SmallVector<Value> worklist;
  if (root.kind == Root::Kind::Materialize)
    worklist.push_back(root.value);
  else
    llvm::append_range(worklist, root.op->getResults());
  llvm::SmallPtrSet<Value, 8> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      if (isa<tile::StoreOp>(user)) {
        if (!add(user))
          return false;
        continue;
      }
      bool keeps =
          isa<tile::LoadOp>(user) ||
          (isDeferred(user) && !isa<tile::GatherOp, tile::ReshapeOp>(user));
      // An index that was not computed may be any.
      if (std::optional<Access> access = getAccess(user))
        keeps &= !access->promised;
      if (auto reduce = dyn_cast<tile::ReduceOp>(user))
        keeps = !llvm::is_contained(reduce.getOver(), dim);
      if (auto contract = dyn_cast<tile::ContractOp>(user))
        keeps = !llvm::is_contained(contract.getOver(), dim);
      keeps &= llvm::all_of(user->getResults(), [&](Value result) {
        return llvm::is_contained(tile::getDims(result.getType()), dim);
      });
      if (!keeps)
        return false;
      llvm::append_range(worklist, user->getResults());
    }
  }
  return true;
}

/// What a copy runs over along the dimension, if that is not its extent.
static std::optional<int64_t> copiedSpan(const Phase &phase, StringAttr dim) {
  for (auto [copied, span] : phase.spans)
    if (copied == dim)
      return span;
  return std::nullopt;
}

std::optional<int64_t> PhaseAnalysis::liveExtent(const Phase &phase,
                                                 StringAttr dim) const {
  if (std::optional<int64_t> span = copiedSpan(phase, dim))
    return span;
  std::optional<int64_t> extent = accesses.dimTable().extent(dim);
  SmallVector<LiveLimit> limits;
  if (!extent || !llvm::is_contained(phase.kept, dim) ||
      !llvm::all_of(phase.roots, [&](const Root &root) {
        return collectLimits(root, dim, limits);
      }))
    return extent;
  int64_t live = 0;
  for (const LiveLimit &limit : limits) {
    int64_t first =
        limit.offset ? accesses.dimTable().range(limit.offset).low : 0;
    live = std::max(live,
                    std::clamp<int64_t>(limit.viewExtent - first, 0, *extent));
  }
  return live;
}

LiveLimit PhaseAnalysis::liveLimit(const Phase &phase, StringAttr dim) const {
  std::optional<int64_t> extent = accesses.dimTable().extent(dim);
  SmallVector<LiveLimit> limits;
  if (!extent || copiedSpan(phase, dim) ||
      !llvm::is_contained(phase.kept, dim) ||
      !llvm::all_of(phase.roots, [&](const Root &root) {
        return collectLimits(root, dim, limits);
      }))
    return {};
  // One for all, that differs from program to program and ends some early.
  if (limits.size() != 1 || !limits[0].offset)
    return {};
  IndexRange offset = accesses.dimTable().range(limits[0].offset);
  bool endsEarly = limits[0].viewExtent - offset.high < *extent;
  return offset.low < offset.high && endsEarly ? limits[0] : LiveLimit();
}

} // namespace tessera
