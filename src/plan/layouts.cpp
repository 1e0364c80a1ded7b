//===- layouts.cpp - How tiles that are kept lie in memory ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

using namespace mlir;

namespace tessera {

bool hasFreeLayout(Value tile) {
  return llvm::all_of(tile.getUsers(), [](Operation *user) {
    return isa<tile::ReduceOp, tile::ContractOp, tile::StoreOp>(user) ||
           (isDeferred(user) && !isa<tile::ReshapeOp>(user));
  });
}

StringAttr layoutFor(Value tile, const PhaseAnalysis &phases,
                     const Layouts &layouts) {
  Operation *op = tile.getDefiningOp();
  if (layouts.empty() || !op || !isDeferred(op) || !hasFreeLayout(tile))
    return {};
  SmallVector<StringAttr> dims = tile::getDims(tile.getType());
  for (Value source : phases.cone({Root::Kind::Materialize, op, tile})) {
    auto layout = layouts.find(source);
    if (layout == layouts.end())
      continue;
    SmallVector<StringAttr> others = tile::getDims(source.getType());
    if (others.size() == dims.size() &&
        llvm::all_of(others, [&](StringAttr dim) {
          return llvm::is_contained(dims, dim);
        }))
      return layout->second;
  }
  return {};
}

} // namespace tessera
