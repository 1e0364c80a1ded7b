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

/// Vector iterations of a nest; 0 where an extent depends on data.
int64_t vectorsOf(const Phase &phase, const NestPlan &nest,
                  const DimTable &dims) {
  int64_t vectors = 1;
  for (StringAttr dim :
       llvm::concat<const StringAttr>(phase.kept, phase.reduced)) {
    std::optional<int64_t> extent = dims.extent(dim);
    if (!extent)
      return 0;
    int64_t count = dim == nest.vectorDim
                        ? (*extent + nest.lanes - 1) / nest.lanes
                        : *extent;
    if (__builtin_mul_overflow(vectors, std::max<int64_t>(count, 1), &vectors))
      return 0;
  }
  return vectors;
}

/// Operations that one vector of the root takes, functions by what they expand
/// to; what does not vary along the vector dimension is hoisted.
int64_t operationsOf(const Root &root, const NestPlan &nest,
                     const PhaseAnalysis &phases) {
  constexpr int64_t function = 60;
  int64_t count = 1;
  for (Value value : phases.cone(root)) {
    bool varies =
        llvm::any_of(tile::getDims(value.getType()),
                     [&](StringAttr dim) { return dim == nest.vectorDim; });
    Operation *op = value.getDefiningOp();
    bool isFunction = op && isDeferred(op) && isExpensive(op) &&
                      (value == root.value || !phases.isMaterialized(value));
    if (varies || nest.vectorDim.empty())
      count += isFunction ? function : 1;
  }
  return count * nest.unroll;
}

} // namespace

GridPlan planGrid(tile::ParallelOp grid, const std::vector<Step> &steps,
                  const std::vector<NestPlan> &nests,
                  const KernelAnalysis &analysis) {
  // Loops longer than this hide the chain of the reduction before them, as far
  // as a core looks ahead; of those of at most `shortLoop` vectors it sees
  // several programs.
  constexpr int64_t longLoop = 128;
  constexpr int64_t shortLoop = 8;
  // Operations of all programs together: what the code, and the time it takes
  // to compile it, may grow to.
  constexpr int64_t mostOperations = 480;

  GridPlan plan;
  auto decide = [&](int64_t together, StringRef code, const Twine &why) {
    plan.together = together;
    plan.reasons.push_back({code.str(), why.str()});
    return plan;
  };
  int64_t chains = 0, longest = 0, operations = 0;
  size_t number = 0;
  for (const Step &step : steps) {
    if (step.immediate) {
      if (step.immediate->getNumRegions() > 0 ||
          isa<tile::DimOp, tile::ScatterOp>(step.immediate))
        return decide(1, "programs.regions",
                      "the body has more than loops over tiles");
      ++operations;
      continue;
    }
    const NestPlan &nest = nests[number++];
    bool reduces = false;
    for (const Root &root : step.phase.roots) {
      if (!isPlain(root))
        return decide(1, "programs.sequential",
                      "the body has parts that run one element after another");
      reduces |= root.kind == Root::Kind::Reduce;
      operations += operationsOf(root, nest, analysis.phases);
    }
    int64_t vectors = vectorsOf(step.phase, nest, analysis.dims);
    if (vectors == 0)
      return decide(1, "programs.extent", "an extent depends on data");
    // Sums that each lane has for itself end with nothing to wait for.
    chains += reduces && llvm::any_of(step.phase.reduced, [&](StringAttr dim) {
                return dim == nest.vectorDim;
              });
    longest = std::max(longest, vectors);
  }
  std::optional<int64_t> programs = analysis.dims.elements(
      llvm::to_vector(grid.getDims().getAsRange<StringAttr>()));
  if (chains == 0)
    return decide(1, "programs.elementwise", "no reduction to wait for");
  if (longest > longLoop)
    return decide(1, "programs.long",
                  "loops of " + Twine(longest) +
                      " vectors hide the end of a reduction");
  int64_t wanted = longest <= shortLoop ? 4 : 2;
  while (wanted > 1 && wanted * operations > mostOperations)
    wanted /= 2;
  if (wanted == 1)
    return decide(1, "programs.code",
                  "the body of one program is long: " + Twine(operations) +
                      " operations");
  if (programs && *programs < 2 * wanted)
    return decide(1, "programs.few", "there are too few programs");
  return decide(wanted, "programs.together",
                Twine(wanted) + " programs of " + Twine(operations) +
                    " operations together hide the end of their reductions");
}

} // namespace tessera
