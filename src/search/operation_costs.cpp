//===- operation_costs.cpp - What one operation costs ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/operation_costs.h"

#include "realize/cpu/realize.h"
#include "realize/cpu/vector_emitter.h"
#include "target/contraction_atoms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

void Counts::add(const Counts &other, double times) {
  loads += times * other.loads;
  stores += times * other.stores;
  loadedBytes += times * other.loadedBytes;
  storedBytes += times * other.storedBytes;
  aroundBytes += times * other.aroundBytes;
  prefetchedBytes += times * other.prefetchedBytes;
  crossings += times * other.crossings;
  maskedLoads += times * other.maskedLoads;
  maskedStores += times * other.maskedStores;
  gatheredLanes += times * other.gatheredLanes;
  shuffles += times * other.shuffles;
  operations += times * other.operations;
  multiplies += times * other.multiplies;
  additions += times * other.additions;
  divisions += times * other.divisions;
  squareRoots += times * other.squareRoots;
  instructions += times * other.instructions;
  mispredictions += times * other.mispredictions;
  bubbles += times * other.bubbles;
}

static double bytesOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return double(vector.getNumElements()) *
           double((vector.getElementTypeBitWidth() + 7) / 8);
  return type.isIntOrFloat() ? double(type.getIntOrFloatBitWidth()) / 8 : 8;
}

static bool isMaximum(Operation *user, arith::CmpFOp compare) {
  auto select = dyn_cast<arith::SelectOp>(user);
  if (!select || select.getCondition() != compare.getResult())
    return false;
  auto among = [&](Value value) {
    return value == compare.getLhs() || value == compare.getRhs();
  };
  return compare.getLhs() != compare.getRhs() && among(select.getTrueValue()) &&
         among(select.getFalseValue());
}

/// Whether the operation puts one element into all lanes on its way from
/// memory, which is a form of load.
static bool isLoadedBroadcast(Operation *op) {
  auto isBroadcast = [](Operation *user) {
    auto shuffle = dyn_cast<LLVM::ShuffleVectorOp>(user);
    return shuffle && llvm::all_of(shuffle.getMask(),
                                   [](int32_t lane) { return lane == 0; });
  };
  if (isBroadcast(op))
    op = op->getOperand(0).getDefiningOp();
  auto insert = dyn_cast_or_null<LLVM::InsertElementOp>(op);
  return insert && insert.getValue().getDefiningOp<LLVM::LoadOp>() &&
         llvm::all_of(insert->getUsers(), isBroadcast);
}

static const ContractionAtom *atomOf(Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  return call ? findAtomOf(call.getIntrin()) : nullptr;
}

/// Whether a shuffle brings together lanes of two vectors. What only takes
/// registers apart, puts one behind the other, or puts what was loaded beside
/// others moves none.
static bool movesLanes(LLVM::ShuffleVectorOp shuffle) {
  if (shuffle.getV2().getDefiningOp<LLVM::PoisonOp>())
    return false;
  if (auto part = shuffle.getV2().getDefiningOp<LLVM::ShuffleVectorOp>();
      part && part.getV1().getDefiningOp<LLVM::LoadOp>())
    return false;
  ArrayRef<int32_t> lanes = shuffle.getMask();
  for (size_t i = 1; i < lanes.size(); ++i)
    if (lanes[i] != lanes[i - 1] + 1)
      return true;
  return false;
}

/// What the adders of floating numbers do.
static bool isAddition(Operation *op) {
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    return compare && isMaximum(op, compare);
  }
  return isa<arith::AddFOp, arith::SubFOp, arith::CmpFOp, arith::ExtFOp,
             arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp,
             arith::FPToUIOp, math::RoundEvenOp, math::FloorOp, math::CeilOp>(
      op);
}

/// A number times a power of two, in one instruction.
static bool isScaling(Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  return call && call.getIntrin().contains("scalef");
}

/// A prefetch takes the place of a load.
static void touchAhead(LLVM::Prefetch prefetch, Counts &counts) {
  counts.instructions = 1;
  counts.loads = 1;
  // What is stored later is not waited for; what this program reads soon
  // comes from where it would come from anyway.
  if (prefetch.getRw() == 0 && !prefetch->hasAttr(soonAttribute))
    counts.prefetchedBytes = double(cacheLine);
}

/// Registers that a value of the type takes; 0 for scalars and masks.
double OperationCosts::registersOf(Type type) const {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getElementTypeBitWidth() == 1)
    return 0;
  double bits =
      double(vector.getNumElements()) * double(vector.getElementTypeBitWidth());
  return std::max(1.0, bits / double(target.vectorBits));
}

/// The costs of vectors of the type's width: what a core does with narrower
/// ones, and with single numbers, may take less.
const CoreCosts &OperationCosts::costsOf(Type type) const {
  const double bits = 8 * bytesOf(type);
  return bits >= double(target.vectorBits) ? costs
         : bits > 128                      ? machine.core[1]
                                           : machine.core[0];
}

/// Whether the operation is part of an address, of a loop's control or of an
/// instruction that uses its result, and takes nothing by itself.
bool OperationCosts::isFree(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<LLVM::GEPOp, LLVM::PoisonOp, LLVM::UndefOp, arith::IndexCastOp,
          arith::BitcastOp, LLVM::BitcastOp, scf::YieldOp, arith::NegFOp,
          func::ReturnOp, LLVM::InlineAsmOp>(op))
    return true;
  if (op->getNumResults() != 1)
    return false;
  if (isLoadedBroadcast(op))
    return true;
  // What fills the rest of a register with nothing.
  if (auto shuffle = dyn_cast<LLVM::ShuffleVectorOp>(op);
      shuffle && shuffle.getV2().getDefiningOp<LLVM::PoisonOp>() &&
      shuffle.getMask().back() < 0)
    return true;
  Type type = op->getResult(0).getType();
  // Index arithmetic is folded into addresses and loop counters.
  if (type.isIndex() &&
      !isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(op))
    return true;
  // A comparison that only selects among its operands is a maximum.
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return compare->hasOneUse() && isMaximum(*compare->user_begin(), compare);
  return false;
}

/// Of one without regions that is not free.
Counts OperationCosts::countsOf(Operation *op) const {
  Counts counts;
  auto touch = [&](Type type, bool isLoad, bool isMasked) {
    double registers = std::max(1.0, registersOf(type));
    counts.instructions = registers;
    const CoreCosts &own = costsOf(type);
    (isLoad ? counts.loads : counts.stores) =
        registers * (isLoad ? costs.loadsPerCycle / own.loadsPerCycle
                            : costs.storesPerCycle / own.storesPerCycle);
    if (auto across = op->getAttrOfType<FloatAttr>(acrossAttribute)) {
      const double lines = registers * across.getValueAsDouble();
      (isLoad ? counts.loads : counts.stores) +=
          lines * costs.splitLineCycles *
          (isLoad ? costs.loadsPerCycle : costs.storesPerCycle);
      if (isLoad)
        counts.crossings += lines;
    }
    (isLoad ? counts.loadedBytes : counts.storedBytes) = bytesOf(type);
    if (isMasked)
      (isLoad ? counts.maskedLoads : counts.maskedStores) = registers;
  };
  auto apart = [&](Type type, bool isLoad) {
    counts.gatheredLanes = double(cast<VectorType>(type).getNumElements());
    // Lanes for which there is no gather are put together one by one.
    if (cast<VectorType>(type).getElementTypeBitWidth() < 32)
      counts.shuffles = counts.gatheredLanes;
    counts.instructions = 3 * counts.gatheredLanes;
    (isLoad ? counts.loadedBytes : counts.storedBytes) = bytesOf(type);
  };
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    touch(load.getType(), true, false);
  else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    touch(store.getValue().getType(), false, false);
    if (store.getNontemporal())
      counts.aroundBytes = counts.storedBytes;
  } else if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    touch(load.getType(), true, true);
  else if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    touch(store.getValue().getType(), false, true);
  else if (auto gather = dyn_cast<LLVM::masked_gather>(op))
    apart(gather.getType(), true);
  else if (auto scatter = dyn_cast<LLVM::masked_scatter>(op))
    apart(scatter.getValue().getType(), false);
  else if (auto prefetch = dyn_cast<LLVM::Prefetch>(op))
    touchAhead(prefetch, counts);
  else
    countArithmetic(op, counts);
  return counts;
}

/// Tile registers: an operation on them takes 16 cycles, loading or storing
/// one as many accesses as it has rows.
bool OperationCosts::countTiles(Operation *op, Counts &counts) const {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  if (!call || call->getNumResults() != 0)
    return false;
  constexpr double rows = 16, bytes = 1024;
  counts.instructions = 1;
  if (const ContractionAtom *atom = atomOf(op); atom && atom->isTile())
    counts.operations = rows * costs.operationsPerCycle;
  if (call.getIntrin() == "llvm.x86.tileloadd64") {
    counts.loads = rows;
    counts.loadedBytes = bytes;
  } else if (call.getIntrin() == "llvm.x86.tilestored64") {
    counts.stores = rows;
    counts.storedBytes = bytes;
  }
  return true;
}

void OperationCosts::countArithmetic(Operation *op, Counts &counts) const {
  if (countTiles(op, counts))
    return;
  double registers = 0;
  for (Type type : op->getResultTypes())
    registers = std::max(registers, registersOf(type));
  for (Type type : op->getOperandTypes())
    registers = std::max(registers, registersOf(type));
  counts.instructions = std::max(1.0, registers);
  bool isFloat =
      op->getNumResults() == 1 &&
      isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  // Scalar arithmetic on floats runs on the units of vectors.
  if (registers > 0 || isFloat)
    counts.operations = std::max(1.0, registers);
  // One element takes what the narrowest vector takes.
  auto unit = [&](double narrow, double full) {
    return registers > 0 ? registers : narrow / full;
  };
  if (auto shuffle = dyn_cast<LLVM::ShuffleVectorOp>(op);
      shuffle && movesLanes(shuffle))
    counts.shuffles = counts.operations;
  if (const ContractionAtom *atom = atomOf(op)) {
    const CoreCosts &own = costsOf(op->getResult(0).getType());
    counts.operations *= atom->elements == AtomElements::BF16
                             ? own.dotCycles * costs.multiplyRate()
                             : costs.multiplyRate() / own.multiplyRate();
    counts.multiplies = counts.operations;
  } else if (isa<math::FmaOp>(op)) {
    // Of a tile's last vectors, which may be narrower.
    const CoreCosts &own = costsOf(op->getResult(0).getType());
    counts.operations *= costs.operationsPerCycle / own.operationsPerCycle;
    counts.multiplies =
        counts.instructions * costs.multiplyRate() / own.multiplyRate();
  } else if (isa<arith::MulFOp>(op))
    counts.multiplies = counts.operations;
  else if (isAddition(op))
    counts.additions = counts.operations;
  else if (isScaling(op))
    counts.additions = 2 * counts.operations;
  if (isa<arith::DivFOp>(op))
    counts.divisions = unit(narrow.divideCycles, costs.divideCycles);
  else if (isa<math::SqrtOp, math::RsqrtOp>(op))
    counts.squareRoots = unit(narrow.squareRootCycles, costs.squareRootCycles);
  else if (isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(
               op))
    counts.instructions = 10;
}

/// Of an operation that takes something by itself.
double OperationCosts::latencyOf(Operation *op) const {
  if (isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(op))
    return costs.loadLatency + 2;
  if (isa<LLVM::masked_gather>(op))
    return 25;
  if (isa<LLVM::StoreOp, LLVM::MaskedStoreOp, LLVM::masked_scatter>(op))
    return 1;
  if (isa<arith::DivFOp>(op))
    return costs.divideLatency;
  if (isa<math::SqrtOp, math::RsqrtOp>(op))
    return costs.squareRootLatency;
  if (isa<LLVM::ShuffleVectorOp, LLVM::ExtractElementOp, LLVM::InsertElementOp>(
          op))
    return 3;
  if (isa<arith::DivUIOp, arith::RemUIOp, arith::DivSIOp, arith::RemSIOp>(op))
    return 18;
  if (atomOf(op))
    return 5;
  bool isFloat = llvm::any_of(op->getOperandTypes(), [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  });
  return isFloat ? costs.addLatency : 1;
}

/// Cycles that the operations keep the core busy.
double OperationCosts::throughput(const Counts &counts) const {
  double loads = (counts.loads + counts.gatheredLanes) / costs.loadsPerCycle +
                 counts.maskedLoads * costs.maskedLoadCycles;
  double stores = counts.stores / costs.storesPerCycle +
                  counts.maskedStores * costs.maskedStoreCycles;
  // One unit of a core moves lanes.
  double arithmetic =
      std::max({counts.operations / costs.operationsPerCycle,
                counts.multiplies / costs.multiplyRate(),
                counts.shuffles / std::min(1.0, costs.multiplyRate())});
  if (costs.additionsPerCycle > 0)
    arithmetic =
        std::max(arithmetic, counts.additions / costs.additionsPerCycle);
  double divisions = counts.divisions * costs.divideCycles +
                     counts.squareRoots * costs.squareRootCycles;
  double all = counts.instructions / costs.instructionsPerCycle;
  return std::max({loads, stores, arithmetic, divisions, all,
                   counts.gatheredLanes * costs.gatherLaneCycles}) +
         counts.mispredictions * costs.mispredictCycles +
         counts.bubbles * loopCycles;
}

} // namespace tessera
