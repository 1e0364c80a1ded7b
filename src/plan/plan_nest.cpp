//===- plan_nest.cpp - The default decisions for one loop nest ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan.h"

#include "llvm/ADT/SmallSet.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera {

namespace {

/// How the accesses of a phase behave along one dimension.
struct AxisUse {
  /// Accesses whose elements are adjacent along the dimension.
  int64_t adjacent = 0;
  /// Accesses whose elements lie apart: gathers or scatters when vectorized.
  int64_t apart = 0;
};

class NestPlanner {
public:
  NestPlanner(const Phase &phase, const KernelAnalysis &analysis,
              const Target &target, const Pins &pins)
      : phase(phase), analysis(analysis), target(target), pins(pins) {}

  NestPlan run() {
    describe();
    collect();
    chooseVectorDim();
    chooseUnroll();
    chooseTail();
    chooseSumBlock();
    estimate();
    return std::move(plan);
  }

private:
  void describe() {
    for (StringAttr dim : phase.kept)
      plan.space += (plan.space.empty() ? "" : ", ") + dim.getValue().str();
    for (StringAttr dim : phase.reduced)
      plan.space +=
          (plan.space.empty() ? "" : ", ") + ("+" + dim.getValue()).str();
    for (const Root &root : phase.roots)
      plan.roots += (plan.roots.empty() ? "" : ", ") + rootName(root);
  }

  std::string rootName(const Root &root) const {
    auto viewName = [&](Value view) {
      tile::KernelOp kernel = analysis.kernel;
      return kernel.getArgName(cast<BlockArgument>(view).getArgNumber()).str();
    };
    switch (root.kind) {
    case Root::Kind::Store:
      return "store " + viewName(cast<tile::StoreOp>(root.op).getView());
    case Root::Kind::Scatter:
      return "scatter " + viewName(cast<tile::ScatterOp>(root.op).getView());
    case Root::Kind::Reduce:
      return "reduce " + tile::stringifyCombiner(
                             cast<tile::ReduceOp>(root.op).getCombiner())
                             .str();
    case Root::Kind::ArgReduce:
      return "arg_reduce";
    case Root::Kind::Contract:
      return "contract";
    case Root::Kind::Scan:
      return "scan";
    case Root::Kind::Sort:
      return "sort";
    case Root::Kind::Materialize:
      return "keep";
    }
    return "";
  }

  /// The accesses and element widths of the phase.
  void collect() {
    llvm::SmallSet<Operation *, 16> seen;
    for (const Root &root : phase.roots) {
      if (!root.op)
        continue;
      if (std::optional<Access> access = getAccess(root.op))
        accesses.push_back(*access);
      for (Value value : analysis.phases.cone(root)) {
        Operation *op = value.getDefiningOp();
        if (!op || !seen.insert(op).second)
          continue;
        expensive += isDeferred(op) && isExpensive(op);
        ++values;
        if (std::optional<Access> access = getAccess(op))
          accesses.push_back(*access);
        note(tile::getElement(value.getType()));
      }
    }
    for (const Access &access : accesses)
      note(access.viewType().getElementType());
  }

  void note(Type type) {
    if (!type.isIntOrFloat())
      return;
    if (type.getIntOrFloatBitWidth() < 32)
      hasNarrow = true;
  }

  AxisUse useAlong(StringAttr dim) const {
    AxisUse use;
    for (const Access &access : accesses) {
      bool varies = false, adjacent = true;
      for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
        const Access::Axis &described = access.axes[axis];
        bool inOffset =
            described.offset &&
            llvm::is_contained(tile::getDims(described.offset.getType()), dim);
        if (described.dim != dim && !inOffset)
          continue;
        adjacent &= !varies && !inOffset && described.step == 1 &&
                    analysis.strides.isUnit(access, axis);
        varies = true;
      }
      if (varies)
        ++(adjacent ? use.adjacent : use.apart);
    }
    return use;
  }

  bool isOrdered() const {
    for (const Root &root : phase.roots) {
      if (!root.op)
        continue;
      if (auto reduce = dyn_cast<tile::ReduceOp>(root.op))
        if (reduce.getOrder() != tile::Order::Unordered)
          return true;
      if (auto contract = dyn_cast<tile::ContractOp>(root.op))
        if (contract.getOrder() != tile::Order::Unordered)
          return true;
      if (auto scan = dyn_cast<tile::ScanOp>(root.op))
        if (!isFreeScan(scan))
          return true;
    }
    return false;
  }

  void reason(StringRef code, const Twine &text) {
    plan.reasons.push_back({code.str(), text.str()});
  }

  void chooseVectorDim() {
    for (const Root &root : phase.roots)
      if (root.kind == Root::Kind::Sort || root.kind == Root::Kind::Scatter) {
        reason("scalar.sequential",
               "elements are processed one after another by definition");
        return;
      }
    StringAttr best;
    int64_t bestScore = 0;
    auto consider = [&](StringAttr dim) {
      AxisUse use = useAlong(dim);
      std::optional<int64_t> extent = analysis.dims.extent(dim);
      if (dim == pins.vectorAxis && !extent)
        plan.pinConflict = "the extent of vector axis '" + pins.vectorAxis +
                           "' depends on data";
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
      // An access whose elements lie apart costs about as much as it has lanes.
      int64_t score = 2 + 4 * use.adjacent - 4 * use.apart;
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
          plan.pinConflict = "vector axis '" + pins.vectorAxis +
                             "' is reduced in a fixed order";
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
    else
      reason("vector.adjacent",
             "elements along '" + best.getValue() + "' are adjacent in memory");
  }

  void chooseUnroll() {
    if (plan.vectorDim.empty())
      return;
    StringAttr dim =
        StringAttr::get(analysis.kernel->getContext(), plan.vectorDim);
    int64_t extent = *analysis.dims.extent(dim);
    int64_t wanted = pins.unroll ? pins.unroll : expensive ? 2 : 4;
    if (llvm::any_of(phase.roots,
                     [](const Root &root) {
                       return root.kind == Root::Kind::ArgReduce;
                     }) &&
        !pins.unroll)
      wanted = 2;
    // The vectors of a scan depend on each other.
    if (phase.roots[0].kind == Root::Kind::Scan &&
        llvm::is_contained(phase.reduced, dim))
      wanted = 1;
    int64_t vectors = std::max<int64_t>(1, extent / plan.lanes);
    plan.unroll = pins.unroll ? pins.unroll : std::min(wanted, vectors);
    if (pins.unroll > 1 && wanted == 1)
      plan.pinConflict =
          "the vectors of a scan depend on each other and cannot "
          "be unrolled";
    reason("unroll", Twine(plan.unroll) + " vectors per iteration: " +
                         (vectors < wanted ? "all there are"
                          : pins.unroll    ? "fixed by the schedule"
                          : expensive      ? "long chains of arithmetic"
                                           : "cheap elements"));
  }

  void chooseTail() {
    bool masks =
        hasNarrow ? target.hasMaskedByteAccess : target.hasMaskedAccess;
    plan.tail = masks ? TailForm::Mask : TailForm::Scalar;
    if (!pins.tail.empty())
      plan.tail = pins.tail == "mask" ? TailForm::Mask : TailForm::Scalar;
  }

  /// Whether the nest adds up elements along its lanes in any order.
  bool sumsAlongLanes() const {
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

  void chooseSumBlock() {
    if (!sumsAlongLanes())
      return;
    int64_t extent = *analysis.dims.extent(phase.reduced[0]);
    int64_t group = plan.lanes * plan.unroll;
    int64_t groups = extent / group;
    plan.partials = group;
    constexpr int64_t shortest = 64;
    if (groups <= 2 * shortest)
      return;
    plan.sumBlock =
        std::max<int64_t>(shortest, int64_t(std::sqrt(double(groups))));
    int64_t chain =
        plan.sumBlock + (groups + plan.sumBlock - 1) / plan.sumBlock;
    plan.partials = std::max(group, extent / chain);
    reason("sum.blocks", "partial sums are added up every " +
                             Twine(plan.sumBlock) +
                             " iterations to bound their rounding errors");
  }

  /// A rough time, good enough to size tasks: per element and vector of 512
  /// bits, fractions of a nanosecond for values, accesses and long functions.
  void estimate() {
    double elements = 1;
    for (StringAttr dim :
         llvm::concat<const StringAttr>(phase.kept, phase.reduced))
      elements *= double(analysis.dims.extent(dim).value_or(16));
    double perElement = 0.005 * double(values) +
                        0.02 * double(accesses.size()) +
                        0.12 * double(expensive);
    double width = plan.vectorDim.empty() ? 16 : 16.0 / double(plan.lanes);
    plan.nanoseconds = 5 + elements * perElement * width;
  }

  const Phase &phase;
  const KernelAnalysis &analysis;
  const Target &target;
  const Pins &pins;
  SmallVector<Access> accesses;
  bool hasNarrow = false;
  int64_t expensive = 0;
  int64_t values = 0;
  NestPlan plan;
};

} // namespace

NestPlan planNest(const Phase &phase, const KernelAnalysis &analysis,
                  const Target &target, const Pins &pins) {
  return NestPlanner(phase, analysis, target, pins).run();
}

std::string Plan::summary() const {
  std::string text;
  for (const StagePlan &stage : stages) {
    if (!text.empty())
      text += " | ";
    text += stage.grid.empty() ? "one program" : "parallel " + stage.grid;
    for (const NestPlan &nest : stage.nests) {
      text += "; " + nest.roots + " over " + nest.space;
      if (nest.vectorDim.empty())
        text += " (scalar)";
      else
        text += " (" + nest.vectorDim + " x" + std::to_string(nest.lanes) +
                (nest.unroll > 1 ? " x" + std::to_string(nest.unroll) : "") +
                ")";
    }
  }
  return text;
}

} // namespace tessera
