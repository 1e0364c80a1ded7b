//===- plan_tails.cpp - The last vectors of a contraction's tile ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A vector under a mask takes what a whole one takes. What is left of a tile's
// vectors often fits a narrower one, and some machines start twice as many of
// these. They need rows of their own: a tile of one vector waits for its sums
// unless it has many.
//
//===----------------------------------------------------------------------===//

#include "analysis/affine.h"
#include "plan/nest_planner.h"
#include "target/contraction_atoms.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tessera {

int64_t NestPlanner::elementsOfTail() const {
  const StringAttr dim = vectorDimension();
  const int64_t rest = *extentOf(dim) % plan.lanes;
  const LiveLimit limit = analysis.phases.liveLimit(phase, dim);
  if (!limit.known)
    return rest;
  if (rest != 0 || !limit.offset ||
      analysis.dims.range(limit.offset).high >= limit.viewExtent)
    return 0;
  // Programs begin at whole vectors: those that end early end with the array.
  AffineReader reader(tiled->getParentOfType<tile::ParallelOp>(),
                      analysis.dims);
  const AffineIndex begin = reader.read(limit.offset);
  if (!begin.rest.known || begin.rest.low != begin.rest.high ||
      begin.rest.low < 0 || begin.rest.low % plan.lanes != 0 ||
      llvm::any_of(
          begin.factors,
          [&](int64_t factor) {
            return factor < 0 || factor % plan.lanes != 0;
          }))
    return 0;
  return limit.viewExtent % plan.lanes;
}

const CoreCosts &NestPlanner::costsOf(int64_t bits) const {
  return machine.core[bits >= 512 ? 2 : bits >= 256 ? 1 : 0];
}

double NestPlanner::cyclesOfVector(int64_t lanes) const {
  Type element = tile::getElement(tile::ContractOp(tiled).getType());
  const int64_t bits =
      lanes * (element.isIndex() ? 64 : element.getIntOrFloatBitWidth());
  const CoreCosts &costs = costsOf(std::min(bits, target.vectorBits));
  const double registers =
      std::max(1.0, double(bits) / double(target.vectorBits));
  const ContractionAtom *atom = findAtom(plan.atom);
  if (atom && atom->elements == AtomElements::BF16)
    return registers * costs.dotCycles;
  return registers / costs.multiplyRate();
}

void NestPlanner::chooseNarrowTail() {
  const ContractionAtom *atom = findAtom(plan.atom);
  if (!tiled || plan.tileRows == 1 || sumsRows || plan.transposes ||
      plan.tail != TailForm::Mask || pins.lanes || !pins.tail.empty() ||
      (atom && atom->isTile()))
    return;
  const int64_t elements = elementsOfTail();
  Type element = tile::getElement(tile::ContractOp(tiled).getType());
  const int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  double least = cyclesOfVector(plan.lanes);
  int64_t chosen = 0;
  for (int64_t lanes = plan.lanes / 2; lanes >= elements && elements > 0;
       lanes /= 2) {
    constexpr int64_t narrowest = 128;
    if (lanes * bits < narrowest ||
        (atom && !atom->intrinsic(std::min(lanes * 32, target.vectorBits))))
      break;
    if (cyclesOfVector(lanes) < least) {
      least = cyclesOfVector(lanes);
      chosen = lanes;
    }
  }
  if (chosen == 0)
    return;
  plan.tailLanes = chosen;
  plan.tailElements = elements;
  // A step takes its products, its loads, or the latency between two products
  // of one sum.
  const CoreCosts &costs = costsOf(chosen * bits);
  const int64_t extent = *extentOf(tileDim);
  const int64_t most = std::min(
      {extent, int64_t{16}, addressedRows(tileDim), rowsInNearestCache()});
  auto cycles = [&](int64_t rows) {
    const double loads = 0.5 * double(rows) + 1 / costs.loadsPerCycle;
    return std::max({double(rows) * least, loads, costs.addLatency}) +
           0.2 * loads;
  };
  double best = std::numeric_limits<double>::max();
  for (int64_t rows = 1; rows <= most; ++rows) {
    // Its sums, the vector, an element and a product.
    const int64_t registers =
        (rows + 3) * std::max<int64_t>(1, chosen * bits / target.vectorBits);
    if (registers > target.vectorRegisters)
      break;
    const int64_t rest = extent % rows;
    const double total =
        double(extent / rows) * cycles(rows) + (rest > 0 ? cycles(rest) : 0);
    if (total < best) {
      best = total;
      plan.tailRows = rows;
    }
  }
  reason("tail.narrow", Twine(elements) + " of '" + plan.vectorDim +
                            "' are left: " + Twine(chosen) +
                            " lanes of a narrower vector, for " +
                            Twine(plan.tailRows) + " rows together");
}

} // namespace tessera
