//===- reduced_levels.cpp - Loops over reduced dimensions -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The running results of a nest from their first states to what becomes of the
// last ones: loops inside the kept levels, or outside of them where the reduced
// dimension is done in blocks.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/states.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

ValueRange NestEmitter::slice(ValueRange state, unsigned accumulator) {
  unsigned first = 0;
  for (unsigned i = 0; i < accumulator; ++i)
    first += accumulatorSizes[i];
  return state.slice(first, accumulatorSizes[accumulator]);
}

NestEmitter::State NestEmitter::initialState(bool isFirst) {
  State state;
  accumulatorSizes.clear();
  for (auto &accumulator : accumulators) {
    SmallVector<Value> part;
    // The blocks before have left their result.
    if (accumulator && blockBegin) {
      part = {emit.splat(
          readBuffer(*r.findBuffer(accumulator->op->getResult(0))), lanes)};
      if (atoms && atoms->isShifted())
        part[0] = emit.add(
            part[0],
            emit.splat(shiftCorrection(cast<tile::ContractOp>(accumulator->op)),
                       lanes));
    } else if (accumulator)
      part = accumulator->initial(*this, lanes, isFirst);
    accumulatorSizes.push_back(part.size());
    llvm::append_range(state, part);
  }
  return state;
}

NestEmitter::State NestEmitter::mergeStates(ValueRange x, ValueRange y) {
  State merged;
  for (auto [number, accumulator] : llvm::enumerate(accumulators))
    if (accumulator)
      llvm::append_range(merged, accumulator->merge(*this, slice(x, number),
                                                    slice(y, number)));
  return merged;
}

void NestEmitter::emitReduction() {
  bool isVector = vectorLevel >= int(keptLevels);
  if (plan.prefetchesRows)
    prefetchRows();
  int64_t count = copies();
  if (isVector) {
    lanes = plan.lanes;
    int64_t extent = *extentOf(vectorLevel);
    count = rows * (extent >= plan.lanes * plan.unroll ? plan.unroll : 1);
  }
  States states;
  chains = plan.chains > 1 && !isVector && isWindow(levels.size() - 1)
               ? plan.chains
               : 1;
  for (int64_t chain = 0; chain < chains; ++chain)
    for (copy = 0; copy < count; ++copy)
      states.push_back(initialState(!isVector || sumsRows() || copy == 0));
  copy = 0;
  for (unsigned level = keptLevels; level < levels.size(); ++level)
    levels[level].anchor = nullptr;
  emitReducedLevel(keptLevels, states);
  addUpChains(states);
  finishReduction(states);
}

void NestEmitter::emitReducedLevel(unsigned level, States &states) {
  if (level == levels.size())
    return emitBody(&states);
  auto inner = [&] { emitReducedLevel(level + 1, states); };
  levels[level].anchor = nullptr;
  if (blockBegin && level == keptLevels)
    return loopOverBlock(level, states, inner);
  if (int(level) == groupLevel)
    return emitGroups(level, &states, inner);
  if (int(level) != vectorLevel) {
    if (isWindow(level))
      return emitWindow(level, states);
    std::optional<int64_t> extent = extentOf(level);
    return loop(level, 0, extent.value_or(-1), 1, vectors, &states, inner);
  }
  int64_t extent = *extentOf(level);
  int64_t group = plan.lanes * plan.unroll;
  int64_t groups = extent / group;
  int64_t single = extent % group / plan.lanes;
  int64_t tail = extent % plan.lanes;
  if (plan.sumBlock > 0)
    emitBlockedSum(level, groups, states);
  else
    loop(level, 0, groups, group, plan.unroll, &states, inner);
  // The rest uses the first partial result only; rows of sums have one each.
  States first = sumsRows() ? states : States{states[0]};
  auto innerFirst = [&] { emitReducedLevel(level + 1, first); };
  loop(level, groups * group, single, plan.lanes, 1, &first, innerFirst);
  if (plan.tail == TailForm::Mask && tail > 0) {
    mask = emit.prefixMask(emit.index(tail), lanes);
    loop(level, extent - tail, 1, plan.lanes, 1, &first, innerFirst);
    mask = {};
  }
  std::move(first.begin(), first.end(), states.begin());
}

/// Zeros in all of a buffer. Whole lines are written, for which it has room,
/// and no function is called.
void NestEmitter::fillWithZeros(const TileBuffer &buffer) {
  auto line = VectorType::get({cacheLine / 4}, b.getI32Type());
  auto loop =
      b.create<scf::ForOp>(emit.loc, emit.index(0),
                           b.create<arith::IndexCastOp>(
                               emit.loc, b.getIndexType(), buffer.size(emit)),
                           emit.index(cacheLine));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  emit.store(
      emit.zero(line),
      emit.offsetPointer(buffer.pointer, b.getI8Type(), loop.getInductionVar()),
      b.getI32Type(), Value());
}

/// A contraction whose reduced dimension is done in blocks: all results take
/// the elements of a block before those of the next. Their memory holds them
/// meanwhile, and first what the contraction adds to.
void NestEmitter::emitReducedBlocks() {
  auto contract = cast<tile::ContractOp>(phase->roots[0].op);
  const TileBuffer result = *r.findBuffer(contract.getResult());
  if (contract.getAcc() && !isPart())
    r.materializeInto(contract.getAcc(), result);
  else
    fillWithZeros(result);
  const int64_t extent = *extentOf(keptLevels);
  Value last = fromBase(keptLevels, emit.index(extent));
  auto blocks =
      b.create<scf::ForOp>(emit.loc, fromBase(keptLevels, emit.index(0)), last,
                           emit.index(plan.reducedBlock));
  if (levels[keptLevels].base) {
    double trips = double(llvm::divideCeil(extent, plan.reducedBlock));
    blocks->setAttr(tripsAttribute, b.getDenseF64ArrayAttr({trips, trips}));
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(blocks.getBody()->getTerminator());
  blockBegin = blocks.getInductionVar();
  blockEnd = b.create<arith::MinSIOp>(
      emit.loc, emit.add(blockBegin, emit.index(plan.reducedBlock)), last);
  emitLevel(0);
  blockBegin = blockEnd = {};
}

/// The coordinates of the first reduced level in the block at hand.
void NestEmitter::loopOverBlock(unsigned level, States &states,
                                function_ref<void()> body) {
  SmallVector<Value> inits;
  flatten(states, inits);
  // Blocks are whole groups.
  elements = int(level) == groupLevel ? atom->group : 1;
  auto forOp = b.create<scf::ForOp>(emit.loc, blockBegin, blockEnd,
                                    emit.index(elements), inits);
  levels[level].anchor = forOp;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(forOp.getBody());
    unflatten(forOp.getRegionIterArgs(), states);
    enter(level, forOp.getInductionVar());
    body();
    SmallVector<Value> yielded;
    flatten(states, yielded);
    b.create<scf::YieldOp>(emit.loc, yielded);
  }
  unflatten(forOp.getResults(), states);
}

/// The main loop of a long reduction in blocks: each block starts from fresh
/// states, which are merged into the outer ones at its end.
void NestEmitter::emitBlockedSum(unsigned level, int64_t groups,
                                 States &states) {
  int64_t group = plan.lanes * plan.unroll;
  SmallVector<Value> inits;
  flatten(states, inits);
  Value end = fromBase(level, emit.index(groups * group));
  auto outer =
      b.create<scf::ForOp>(emit.loc, fromBase(level, emit.index(0)), end,
                           emit.index(plan.sumBlock * group), inits);
  levels[level].anchor = outer;
  int64_t savedVectors = vectors;
  vectors = plan.unroll;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(outer.getBody());
    States total = states;
    unflatten(outer.getRegionIterArgs(), total);
    States block;
    for (copy = 0; copy < vectors; ++copy)
      block.push_back(initialState(/*isFirst=*/false));
    copy = 0;
    SmallVector<Value> blockInits;
    flatten(block, blockInits);
    Value start = outer.getInductionVar();
    Value stop = b.create<arith::MinSIOp>(
        emit.loc, emit.add(start, emit.index(plan.sumBlock * group)), end);
    auto inner = b.create<scf::ForOp>(emit.loc, start, stop, emit.index(group),
                                      blockInits);
    {
      OpBuilder::InsertionGuard innerGuard(b);
      b.setInsertionPointToEnd(inner.getBody());
      unflatten(inner.getRegionIterArgs(), block);
      enter(level, inner.getInductionVar());
      emitReducedLevel(level + 1, block);
      SmallVector<Value> yielded;
      flatten(block, yielded);
      b.create<scf::YieldOp>(emit.loc, yielded);
    }
    unflatten(inner.getResults(), block);
    SmallVector<Value> yielded;
    for (auto [sum, part] : llvm::zip(total, block))
      llvm::append_range(yielded, mergeStates(sum, part));
    b.create<scf::YieldOp>(emit.loc, yielded);
  }
  vectors = savedVectors;
  unflatten(outer.getResults(), states);
}

void NestEmitter::finishReduction(States &states) {
  bool isVector = vectorLevel >= int(keptLevels);
  if (isVector) {
    if (sumsRows())
      finishRows(states);
    while (!sumsRows() && states.size() > 1) {
      States merged;
      for (size_t i = 0; i + 1 < states.size(); i += 2)
        merged.push_back(mergeStates(states[i], states[i + 1]));
      if (states.size() % 2 == 1)
        merged.push_back(states.back());
      states = std::move(merged);
    }
    bool isSequential = llvm::any_of(
        accumulators, [](const auto &a) { return a && a->isSequential(); });
    for (int64_t half = isSequential || sumsRows() ? 0 : lanes / 2; half >= 1;
         half /= 2) {
      SmallVector<int32_t> order(lanes);
      for (int64_t lane = 0; lane < lanes; ++lane)
        order[lane] = lane < half ? lane + half : lane;
      State upper;
      for (Value part : states[0])
        upper.push_back(emit.shuffle(part, order));
      states[0] = mergeStates(states[0], upper);
    }
    if (!sumsRows())
      for (Value &part : states[0])
        part = emit.extract(part, 0);
    lanes = 1;
    int64_t extent = *extentOf(vectorLevel);
    int64_t tail = extent % plan.lanes;
    if (plan.tail == TailForm::Scalar && tail > 0) {
      // The outer reduced levels have been run; a scalar tail needs them again
      // for its own elements.
      auto body = [&](auto &self, unsigned level) -> void {
        if (level == levels.size())
          return emitBody(&states);
        auto inner = [&] { self(self, level + 1); };
        if (int(level) == vectorLevel)
          return loop(level, extent - tail, tail, 1, 1, &states, inner);
        loop(level, 0, extentOf(level).value_or(-1), 1, 1, &states, inner);
      };
      for (unsigned level = keptLevels; level < levels.size(); ++level)
        levels[level].anchor = nullptr;
      body(body, keptLevels);
    }
  }
  for (copy = 0; copy < int64_t(states.size()); ++copy)
    for (auto [number, accumulator] : llvm::enumerate(accumulators)) {
      if (!accumulator)
        continue;
      SmallVector<Value> results =
          accumulator->finish(*this, slice(states[copy], number));
      for (auto [result, emitted] :
           llvm::zip(accumulator->op->getResults(), results)) {
        if (const TileBuffer *buffer = r.findBuffer(result))
          writeBuffer(*buffer, emitted);
        else if (!isa<RankedTensorType>(result.getType()))
          r.setScalar(result,
                      r.programsAhead() > 1 && isa<FloatType>(emitted.getType())
                          ? emit.settled(emitted)
                          : emitted);
        if (plan.epilogue)
          levels[levelOf(result)].cache[slotOf(result)][result] = emitted;
      }
    }
  copy = 0;
  if (plan.epilogue)
    emitEpilogue();
}

} // namespace tessera
