//===- plan_edges.cpp - Programs at the edges of arrays -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a block does not divide an array, the programs at its end check some
// indices. Code without checks for the others is worth its size where they
// would check much of what they do.
//
//===----------------------------------------------------------------------===//

#include "analysis/interior.h"
#include "plan/plan.h"

using namespace mlir;

namespace tessera {

void planEdges(tile::ParallelOp grid, size_t number, const Planning &planning,
               GridPlan &plan) {
  const KernelAnalysis &analysis = planning.analysis;
  std::optional<ProgramBox> box = interiorPrograms(grid, analysis.accesses);
  if (!box)
    return;
  auto checked = [&](StringRef code, const Twine &why) {
    plan.reasons.push_back({code.str(), why.str()});
  };
  bool isDynamic = false;
  grid.getBody().walk([&](tile::DimOp dim) {
    isDynamic |= !analysis.dims.extent(dim.getNameAttr());
  });
  if (isDynamic)
    return checked("edges.extent", "an extent depends on data");
  if (plan.together > 1)
    return checked("edges.together",
                   "programs that advance together have one body");
  plan.interior = box->count;
  auto chosen = planning.choices.edges.find(number);
  if (chosen == planning.choices.edges.end() || chosen->second != Edges::Apart)
    return;
  plan.edges = Edges::Apart;
  plan.reasons.push_back(
      {"edges.apart", std::to_string(box->count) + " of " +
                          std::to_string(box->total) +
                          " programs touch no edge of an array, and have "
                          "code without checks"});
}

} // namespace tessera
