//===- pin_check.cpp - Whether loops are as a schedule pins them ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/pin_check.h"

#include "realize/cpu/combination.h"
#include "realize/cpu/realize.h"
#include "target/contraction_atoms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mlir;

namespace tessera {

namespace {

/// What the operations of one nest are, in all bodies that it has.
struct Loops {
  /// Lanes of results, and of accesses without a mask.
  std::set<int64_t> lanes, accessLanes;
  bool hasMasked = false, hasSingle = false;
  /// Of loops: their constant step, and the accesses of vectors in one
  /// iteration, inner loops included.
  std::multimap<int64_t, int64_t> accessesByStep;
  /// And where they end; std::nullopt where that is computed.
  std::multimap<int64_t, std::optional<int64_t>> endsByStep;
  /// Constants that are operands.
  std::set<int64_t> constants;
};

int64_t lanesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 0;
}

/// The type of what is loaded or stored; null for other operations.
Type accessedType(Operation *op) {
  if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp, LLVM::masked_gather>(op))
    return op->getResult(0).getType();
  if (isa<LLVM::StoreOp, LLVM::MaskedStoreOp, LLVM::masked_scatter>(op))
    return op->getOperand(0).getType();
  return {};
}

bool isMasked(Operation *op) {
  return isa<LLVM::MaskedLoadOp, LLVM::MaskedStoreOp, LLVM::masked_gather,
             LLVM::masked_scatter>(op);
}

Loops readLoops(ModuleOp module, int64_t id) {
  Loops loops;
  bool hasWords = false, readsWords = false;
  for (auto function : module.getOps<func::FuncOp>()) {
    // Of stages that only check indices nothing is asked.
    if (function.getSymName().contains("_check"))
      continue;
    function->walk([&](Operation *op) {
      if (nestOf(op) != id)
        return;
      for (Value result : op->getResults())
        if (int64_t lanes = lanesOf(result.getType()))
          loops.lanes.insert(lanes);
      for (Value operand : op->getOperands())
        if (std::optional<int64_t> constant = getConstantIntValue(operand))
          loops.constants.insert(*constant);
      if (Type type = accessedType(op)) {
        loops.hasMasked |= isMasked(op);
        if (auto vector = dyn_cast<VectorType>(type)) {
          hasWords |= vector.getElementType().isInteger(64);
          if (!isMasked(op))
            loops.accessLanes.insert(vector.getNumElements());
        } else if (type.isInteger(64) && isa<func::FuncOp>(op->getParentOp())) {
          // A stride, unless elements are such numbers.
          readsWords = true;
        } else {
          loops.hasSingle |= type.isIntOrFloat();
        }
      }
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop)
        return;
      int64_t accesses = 0;
      loop->walk([&](Operation *inner) {
        if (Type type = accessedType(inner))
          accesses += lanesOf(type) > 0;
      });
      if (std::optional<int64_t> step = getConstantIntValue(loop.getStep())) {
        loops.accessesByStep.emplace(*step, accesses);
        loops.endsByStep.emplace(*step,
                                 getConstantIntValue(loop.getUpperBound()));
      }
    });
  }
  loops.hasSingle |= hasWords && readsWords;
  return loops;
}

class NestCheck {
public:
  NestCheck(const Phase &phase, const NestPlan &nest, const Loops &loops,
            const Pins &pins, const KernelAnalysis &analysis,
            const Target &target)
      : nest(nest), loops(loops), pins(pins), target(target) {
    lanes = pins.lanes ? pins.lanes : target.lanes32();
    if (std::optional<int64_t> constant = analysis.phases.liveExtent(
            phase,
            StringAttr::get(analysis.kernel->getContext(),
                            pins.vectorAxis.empty() ? nest.vectorDim
                                                    : axisOf(phase).str())))
      extent = *constant;
  }

  Result<void> run() {
    checkLanes();
    checkAxis();
    checkUnroll();
    checkTail();
    if (problem)
      return *problem;
    return {};
  }

private:
  /// The pinned axis where the nest has it.
  StringRef axisOf(const Phase &phase) const {
    for (StringAttr dim :
         llvm::concat<const StringAttr>(phase.kept, phase.reduced))
      if (dim == pins.vectorAxis)
        return dim.getValue();
    return nest.vectorDim;
  }

  void fail(StringRef pin, const Twine &found) {
    if (problem)
      return;
    problem = Error{ErrorFamily::Internal,
                    "realize.pin",
                    ("the realized loops do not do what schedule pin '" + pin +
                     "' says: nest " + Twine(nest.id) + " (" + nest.roots +
                     ") " + found)
                        .str(),
                    {}};
  }

  void checkLanes() {
    // Where neither is pinned, nothing is said of lanes.
    if (extent < lanes || (!pins.lanes && pins.vectorAxis.empty()))
      return;
    const StringRef pin = pins.lanes ? "lanes" : "vector_axis";
    // A lane of an atom's operands is a group of elements.
    const ContractionAtom *atom = findAtom(nest.atom);
    const int64_t most = lanes * (atom ? atom->group : 1);
    if (!loops.lanes.count(lanes))
      fail(pin,
           "has no vectors of " + Twine(lanes) + " elements along '" +
               (pins.vectorAxis.empty() ? nest.vectorDim : pins.vectorAxis) +
               "'");
    else if (!loops.accessLanes.empty() && *loops.accessLanes.rbegin() > most)
      fail(pin, "accesses vectors of " + Twine(*loops.accessLanes.rbegin()) +
                    " elements, expected " + Twine(most));
  }

  /// Main loops end with the last whole group of vectors along the axis.
  void checkAxis() {
    const int64_t group = lanes * nest.unroll;
    if (pins.vectorAxis.empty() || extent < 2 * group ||
        loops.accessLanes.empty())
      return;
    auto [begin, end] = loops.endsByStep.equal_range(group);
    if (std::none_of(begin, end, [&](const auto &each) {
          return !each.second || *each.second == extent - extent % group;
        }))
      fail("vector_axis", "has no loop over the " + Twine(extent) +
                              " elements along '" + pins.vectorAxis +
                              "' in steps of " + Twine(group));
  }

  void checkUnroll() {
    const int64_t group = lanes * pins.unroll;
    if (!pins.unroll || extent < 2 * group || loops.accessLanes.empty())
      return;
    int64_t most = 0;
    auto [begin, end] = loops.accessesByStep.equal_range(group);
    for (auto each = begin; each != end; ++each)
      most = std::max(most, each->second);
    if (begin == end)
      fail("unroll", "has no loop that takes " + Twine(pins.unroll) +
                         " vectors, " + Twine(group) +
                         " elements, in an iteration");
    else if (most < pins.unroll && !isTiles())
      fail("unroll", "accesses " + Twine(most) +
                         " vectors in an iteration, expected " +
                         Twine(pins.unroll));
  }

  void checkTail() {
    if (pins.tail.empty() || extent % lanes == 0 || extent < lanes ||
        loops.accessLanes.empty())
      return;
    if (pins.tail == "scalar" && !loops.hasSingle)
      fail("tail", "has a tail and accesses no single elements");
    else if (pins.tail == "mask" && target.hasMaskedByteAccess &&
             !loops.hasMasked && !isTailOfParts())
      fail("tail", "has a tail and accesses nothing under a mask");
    else if (pins.tail == "overlap" && nest.alternatives.overlapsTail &&
             !loops.constants.count(extent - lanes))
      fail("tail", "has no vector that begins at " + Twine(extent - lanes) +
                       " and ends with the last element");
  }

  /// Registers of many vectors are loaded and stored by accesses of their own.
  bool isTiles() const {
    const ContractionAtom *atom = findAtom(nest.atom);
    return atom && atom->isTile();
  }

  /// An access of several registers is masked register by register: a tail of
  /// whole ones is accessed in vectors of fewer lanes, without masks.
  bool isTailOfParts() const {
    const int64_t least = *loops.accessLanes.begin();
    return least < lanes && extent % lanes % least == 0;
  }

  const NestPlan &nest;
  const Loops &loops;
  const Pins &pins;
  const Target &target;
  int64_t lanes = 1, extent = 0;
  std::optional<Error> problem;
};

} // namespace

Result<void> checkPins(ModuleOp module, const Plan &plan, const Pins &pins,
                       const KernelAnalysis &analysis, const Target &target) {
  if (pins.vectorAxis.empty() && !pins.lanes && !pins.unroll &&
      pins.tail.empty())
    return {};
  llvm::DenseMap<int64_t, Phase> phases;
  tile::KernelOp kernel = analysis.kernel;
  kernel->walk([&](Block *block) {
    // Blocks of other operations say how elements are combined.
    if (!isa<tile::KernelOp, tile::ParallelOp, tile::SerialOp, tile::PipelineOp,
             tile::FoldOp, tile::IfOp>(block->getParentOp()))
      return;
    for (const Step &step : analysis.phases.schedule(*block))
      if (!step.immediate)
        phases.insert({analysis.idOf(step.phase), step.phase});
  });
  for (const StagePlan &stage : plan.stages)
    for (const NestPlan &nest : stage.nests) {
      auto phase = phases.find(nest.id);
      if (nest.vectorDim.empty() || phase == phases.end())
        continue;
      // Scans of windows have a form of their own.
      auto scan = dyn_cast_or_null<tile::ScanOp>(phase->second.roots[0].op);
      if (scan && isWindowScan(scan))
        continue;
      const Loops loops = readLoops(module, nest.id);
      if (Result<void> fine =
              NestCheck(phase->second, nest, loops, pins, analysis, target)
                  .run();
          !fine)
        return fine.error();
    }
  return {};
}

} // namespace tessera
