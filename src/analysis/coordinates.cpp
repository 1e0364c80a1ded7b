//===- coordinates.cpp - What of a program a tile depends on --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/coordinates.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tessera {

std::optional<SmallVector<unsigned>>
coordinatesOf(Value tile, tile::ParallelOp grid, const PhaseAnalysis &phases,
              const AccessAnalysis &accesses) {
  SmallVector<Access> writes;
  grid.getBody().walk([&](Operation *op) {
    if (std::optional<Access> access = getAccess(op); access && access->writes)
      writes.push_back(*access);
  });
  for (StringAttr dim : tile::getDims(tile.getType()))
    if (!accesses.dimTable().extent(dim))
      return std::nullopt;
  llvm::SmallBitVector used(grid.getDims().size());
  llvm::SmallPtrSet<Value, 16> seen;
  SmallVector<Value> worklist{tile};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      if (parent == grid)
        used.set(argument.getArgNumber());
      else if (!isa<tile::KernelOp>(parent))
        return std::nullopt;
      continue;
    }
    Operation *op = value.getDefiningOp();
    // What was computed before the grid is the same for all of its programs,
    // unless they overwrite what it is computed from.
    bool isBefore = !grid->isAncestor(op);
    if (isBefore && !isa<RankedTensorType>(value.getType()))
      continue;
    if (phases.isMaterialized(value) && value != tile)
      return std::nullopt;
    bool isScalar = !isa<RankedTensorType>(value.getType());
    if (op->getNumRegions() > 0 || (!isScalar && !isDeferred(op)))
      return std::nullopt;
    if (std::optional<Access> access = getAccess(op)) {
      if (isScalar)
        return std::nullopt;
      for (const Access &write : writes)
        if (accesses.mayConflict(*access, write))
          return std::nullopt;
    }
    llvm::append_range(worklist, op->getOperands());
  }
  SmallVector<unsigned> result;
  for (unsigned number : used.set_bits())
    result.push_back(number);
  return result;
}

} // namespace tessera
