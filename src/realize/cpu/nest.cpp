//===- nest.cpp - The loop nest of a phase --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"

#include "realize/cpu/combination.h"
#include "realize/cpu/elementwise.h"
#include "realize/cpu/sort.h"
#include "support/launch_errors.h"

using namespace mlir;

namespace tessera {

NestEmitter::NestEmitter(Realizer &realizer)
    : r(realizer), emit(realizer.emit), b(realizer.b) {}

NestEmitter::NestEmitter(Realizer &realizer, const Phase &phase,
                         const NestPlan &plan)
    : r(realizer), emit(realizer.emit), b(realizer.b), phase(&phase),
      plan(plan) {
  SmallVector<StringAttr> kept(phase.kept), reduced(phase.reduced);
  if (!plan.vectorDim.empty()) {
    vectorDim = StringAttr::get(b.getContext(), plan.vectorDim);
    // The vector level is the innermost of its group: nothing is gained by
    // other loops inside it.
    for (auto *group : {&kept, &reduced})
      if (auto *it = llvm::find(*group, vectorDim); it != group->end())
        std::rotate(it, it + 1, group->end());
  }
  keptLevels = kept.size();
  for (StringAttr dim : llvm::concat<StringAttr>(kept, reduced)) {
    if (dim == vectorDim)
      vectorLevel = levels.size();
    levels.emplace_back().dim = dim;
  }
}

//===----------------------------------------------------------------------===//
// Values at the current coordinates
//===----------------------------------------------------------------------===//

int NestEmitter::levelOf(Value tile) {
  int level = -1;
  for (StringAttr dim : tile::getDims(tile.getType()))
    for (auto [number, candidate] : llvm::enumerate(levels))
      if (candidate.dim == dim)
        level = std::max<int>(level, number);
  return level;
}

Value NestEmitter::coordinate(StringAttr dim) {
  for (auto [number, level] : llvm::enumerate(levels)) {
    if (level.dim != dim)
      continue;
    if (int(number) == vectorLevel && copy > 0)
      return emit.add(level.coordinate, emit.index(copy * lanes));
    return level.coordinate;
  }
  r.fail(nullptr, "internal.coordinate",
         "dimension '" + dim.getValue() + "' has no loop here");
  return emit.index(0);
}

Value NestEmitter::value(Value tile) {
  if (!isa<RankedTensorType>(tile.getType()))
    return r.scalar(tile);
  int level = levelOf(tile);
  if (level < 0)
    return evaluate(tile);
  int64_t slot = vectorLevel >= 0 && level >= vectorLevel ? copy : 0;
  auto &cache = levels[level].cache[slot];
  if (auto it = cache.find(tile); it != cache.end())
    return it->second;
  OpBuilder::InsertionGuard guard(b);
  for (unsigned inner = level + 1; inner < levels.size(); ++inner)
    if (Operation *anchor = levels[inner].anchor) {
      b.setInsertionPoint(anchor);
      break;
    }
  const TileBuffer *buffer = r.findBuffer(tile);
  Value result = buffer && !evaluatedHere.contains(tile) ? readBuffer(*buffer)
                                                         : evaluate(tile);
  levels[level].cache[slot][tile] = result;
  return result;
}

Value NestEmitter::evaluate(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op || !isDeferred(op)) {
    if (const TileBuffer *buffer = r.findBuffer(tile))
      return readBuffer(*buffer);
    if (op && !isa<RankedTensorType>(tile.getType()))
      return emitOp(op);
    r.fail(op, "internal.value", "a tile was used before it was computed");
    return emit.zero(tile::getElement(tile.getType()));
  }
  return emitOp(op);
}

Value NestEmitter::emitOp(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return loadElement(*getAccess(load));
  if (isa<tile::BroadcastOp, tile::TransposeOp>(op))
    return value(op->getOperand(0));
  if (auto iota = dyn_cast<tile::IotaOp>(op)) {
    Value position = coordinate(iota.getDimAttr());
    if (isVectorDim(iota.getDimAttr()))
      return emit.add(emit.splat(position, lanes), emit.laneNumbers(lanes));
    return tile::getElement(iota.getType()).isIndex() ? position
                                                      : emit.toI64(position);
  }
  if (auto gather = dyn_cast<tile::GatherOp>(op))
    return gatherElement(gather);
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    return reshapeElement(reshape);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(value(operand));
  Value result = emitElementwise(emit, op, operands);
  if (result)
    return result;
  r.fail(op, "internal.op",
         "op '" + op->getName().getStringRef() +
             "' is not evaluated in a nest");
  return emit.zero(tile::getElement(op->getResult(0).getType()));
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Offset of the current coordinates in a buffer, leaving out one dimension.
Value NestEmitter::coordinateOffset(const TileBuffer &buffer, StringAttr except,
                                    Value &laneOffsets, bool &isContiguous) {
  Value offset = emit.index(0);
  for (auto [dim, stride] : llvm::zip(buffer.dims, buffer.strides)) {
    if (dim == except)
      continue;
    offset = emit.add(offset, emit.mul(coordinate(dim), emit.index(stride)));
    if (!isVectorDim(dim))
      continue;
    if (stride == 1)
      isContiguous = true;
    else
      laneOffsets =
          emit.mul(emit.laneNumbers(lanes),
                   emit.integer(laneType(b.getI64Type(), lanes), stride));
  }
  return offset;
}

Value NestEmitter::bufferAt(const TileBuffer &buffer, Value offset,
                            Value laneOffsets, bool isContiguous) {
  Value pointer = emit.offsetPointer(buffer.pointer, buffer.element, offset);
  if (laneOffsets)
    return emit.gather(pointer, buffer.element, laneOffsets, mask);
  // Buffers are padded, so whole vectors may be read.
  return emit.load(pointer, buffer.element, isContiguous ? lanes : 1, Value());
}

Value NestEmitter::readBuffer(const TileBuffer &buffer) {
  Value laneOffsets;
  bool isContiguous = false;
  Value offset = coordinateOffset(buffer, {}, laneOffsets, isContiguous);
  return bufferAt(buffer, offset, laneOffsets, isContiguous);
}

void NestEmitter::writeBuffer(const TileBuffer &buffer, Value value) {
  Value laneOffsets;
  bool isContiguous = false;
  Value offset = coordinateOffset(buffer, {}, laneOffsets, isContiguous);
  Value pointer = emit.offsetPointer(buffer.pointer, buffer.element, offset);
  if (laneOffsets)
    emit.scatter(emit.splat(value, lanes), pointer, buffer.element, laneOffsets,
                 mask);
  else if (isContiguous)
    emit.store(emit.splat(value, lanes), pointer, buffer.element, mask);
  else
    emit.store(value, pointer, buffer.element, Value());
}

Value NestEmitter::gatherElement(tile::GatherOp op) {
  Value index = value(op.getIndices());
  const TileBuffer *buffer = r.findBuffer(op.getSource());
  if (!buffer) {
    r.fail(op, "internal.gather", "the source of a gather has no buffer");
    return emit.zero(tile::getElement(op.getResult().getType()));
  }
  Value laneOffsets;
  bool isContiguous = false;
  Value offset =
      coordinateOffset(*buffer, op.getAlongAttr(), laneOffsets, isContiguous);
  Value indices = emit.toI64(index);
  Value limit = emit.toI64(r.extent(op.getAlongAttr()));
  Value inside = emit.compare(arith::CmpIPredicate::ult, indices,
                              emit.splat(limit, lanesOf(indices)));
  if (std::optional<int64_t> extent = r.constantExtent(op.getAlongAttr());
      extent && r.checksOnly && dependsOnData(op.getIndices()))
    r.emitCheck(outside(index, *extent),
                launchError(op, launcherror::gatherIndex(op.getAlong(), *extent,
                                                         std::nullopt)));
  Value safe = emit.select(inside, indices, emit.zero(indices.getType()));
  int64_t along =
      buffer->strides[tile::indexOf(buffer->dims, op.getAlongAttr())];
  Value step = emit.integer(safe.getType(), along);
  Value position = emit.mul(safe, step);
  Value loaded;
  if (lanesOf(position) == 1) {
    Value at = emit.add(emit.toI64(offset), position);
    // An empty source has no element 0 to read.
    Value pointer = emit.offsetPointer(buffer->pointer, buffer->element, at);
    if (laneOffsets)
      loaded = emit.gather(pointer, buffer->element, laneOffsets, mask);
    else
      loaded = emit.load(pointer, buffer->element, isContiguous ? lanes : 1,
                         Value());
  } else {
    if (isContiguous)
      position = emit.add(position, emit.laneNumbers(lanes));
    else if (laneOffsets)
      position = emit.add(position, laneOffsets);
    Value pointer =
        emit.offsetPointer(buffer->pointer, buffer->element, offset);
    loaded = emit.gather(pointer, buffer->element, position, mask);
  }
  Value fill = op.getFill()
                   ? value(op.getFill())
                   : emit.zero(tile::getElement(op.getResult().getType()));
  return emit.select(inside, loaded, fill);
}

Value NestEmitter::reshapeElement(tile::ReshapeOp op) {
  if (!isa<RankedTensorType>(op.getInput().getType()))
    return value(op.getInput());
  const TileBuffer *buffer = r.findBuffer(op.getInput());
  if (!buffer) {
    r.fail(op, "internal.reshape", "the input of a reshape has no buffer");
    return emit.zero(tile::getElement(op.getType()));
  }
  for (StringAttr dim : llvm::concat<const StringAttr>(
           buffer->dims, tile::getDims(op.getResult().getType())))
    if (!r.constantExtent(dim)) {
      r.fail(op, "unsupported.dynamic-reshape",
             "a reshape over '" + dim.getValue() +
                 "', whose extent depends on data, has no CPU realization");
      break;
    }
  // The same memory, row-major, under the result's dimensions.
  TileBuffer view = *buffer;
  view.dims = tile::getDims(op.getResult().getType());
  view.strides.assign(view.dims.size(), 1);
  for (int64_t axis = int64_t(view.dims.size()) - 2; axis >= 0; --axis)
    view.strides[axis] = view.strides[axis + 1] *
                         r.constantExtent(view.dims[axis + 1]).value_or(0);
  return readBuffer(view);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static void flatten(const SmallVector<SmallVector<Value>, 4> &states,
                    SmallVectorImpl<Value> &flat) {
  for (const SmallVector<Value> &state : states)
    llvm::append_range(flat, state);
}

static void unflatten(ValueRange flat,
                      SmallVector<SmallVector<Value>, 4> &states) {
  for (SmallVector<Value> &state : states)
    for (Value &value : state) {
      value = flat.front();
      flat = flat.drop_front();
    }
}

void NestEmitter::enter(unsigned level, Value coordinate, int64_t copyCount) {
  levels[level].coordinate = coordinate;
  for (unsigned inner = level; inner < levels.size(); ++inner) {
    int64_t slots = vectorLevel >= 0 && int(inner) >= vectorLevel
                        ? std::max(copyCount, copies)
                        : 1;
    levels[inner].cache.clear();
    levels[inner].cache.resize(slots);
    if (inner > level)
      levels[inner].anchor = nullptr;
  }
}

void NestEmitter::loop(unsigned level, int64_t first, int64_t trips,
                       int64_t step, int64_t copyCount, States *states,
                       function_ref<void()> body) {
  if (trips == 0)
    return;
  int64_t savedCopies = copies;
  copies = copyCount;
  if (trips == 1) {
    enter(level, emit.index(first), copyCount);
    body();
    copies = savedCopies;
    return;
  }
  SmallVector<Value> inits;
  if (states)
    flatten(*states, inits);
  Value lower = emit.index(first);
  Value upper = trips < 0 ? r.extent(levels[level].dim)
                          : emit.index(first + trips * step);
  auto forOp =
      b.create<scf::ForOp>(emit.loc, lower, upper, emit.index(step), inits);
  if (!levels[level].anchor)
    levels[level].anchor = forOp;
  {
    OpBuilder::InsertionGuard guard(b);
    if (inits.empty())
      b.setInsertionPoint(forOp.getBody()->getTerminator());
    else
      b.setInsertionPointToEnd(forOp.getBody());
    if (states)
      unflatten(forOp.getRegionIterArgs(), *states);
    Value position = forOp.getInductionVar();
    if (level >= keptLevels && isReversed())
      position = b.create<arith::SubIOp>(
          emit.loc, emit.add(r.extent(levels[level].dim), emit.index(-1)),
          position);
    enter(level, position, copyCount);
    body();
    if (!inits.empty()) {
      SmallVector<Value> yielded;
      flatten(*states, yielded);
      b.create<scf::YieldOp>(emit.loc, yielded);
    }
  }
  if (states)
    unflatten(forOp.getResults(), *states);
  copies = savedCopies;
}

bool NestEmitter::isReversed() const {
  return llvm::any_of(accumulators,
                      [](const auto &a) { return a && a->isReversed(); });
}

void NestEmitter::emitLevel(unsigned level) {
  if (level == keptLevels) {
    if (llvm::any_of(accumulators, [](const auto &a) { return bool(a); }))
      return emitReduction();
    if (level == levels.size())
      return emitBody(nullptr);
  }
  if (level == levels.size())
    return emitBody(nullptr);
  auto inner = [&] { emitLevel(level + 1); };
  levels[level].anchor = nullptr;
  if (int(level) != vectorLevel) {
    std::optional<int64_t> extent = r.constantExtent(levels[level].dim);
    return loop(level, 0, extent.value_or(-1), 1, copies, nullptr, inner);
  }
  int64_t extent = *r.constantExtent(vectorDim);
  int64_t group = plan.lanes * plan.unroll;
  int64_t groups = extent / group;
  int64_t vectors = extent % group / plan.lanes;
  int64_t tail = extent % plan.lanes;
  lanes = plan.lanes;
  loop(level, 0, groups, group, plan.unroll, nullptr, inner);
  loop(level, groups * group, vectors, plan.lanes, 1, nullptr, inner);
  if (plan.tail == TailForm::Mask) {
    mask = emit.prefixMask(emit.index(tail), lanes);
    loop(level, extent - tail, tail > 0, plan.lanes, 1, nullptr, inner);
    mask = {};
    lanes = 1;
  } else {
    lanes = 1;
    loop(level, extent - tail, tail, 1, 1, nullptr, inner);
  }
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

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
    if (accumulator)
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
  int64_t count = copies;
  if (isVector) {
    lanes = plan.lanes;
    int64_t extent = *r.constantExtent(vectorDim);
    count = extent >= plan.lanes * plan.unroll ? plan.unroll : 1;
  }
  States states;
  for (copy = 0; copy < count; ++copy)
    states.push_back(initialState(!isVector || copy == 0));
  copy = 0;
  for (unsigned level = keptLevels; level < levels.size(); ++level)
    levels[level].anchor = nullptr;
  emitReducedLevel(keptLevels, states);
  finishReduction(states);
}

void NestEmitter::emitReducedLevel(unsigned level, States &states) {
  if (level == levels.size())
    return emitBody(&states);
  auto inner = [&] { emitReducedLevel(level + 1, states); };
  levels[level].anchor = nullptr;
  if (int(level) != vectorLevel) {
    std::optional<int64_t> extent = r.constantExtent(levels[level].dim);
    return loop(level, 0, extent.value_or(-1), 1, copies, &states, inner);
  }
  int64_t extent = *r.constantExtent(vectorDim);
  int64_t group = plan.lanes * plan.unroll;
  int64_t groups = extent / group;
  int64_t vectors = extent % group / plan.lanes;
  int64_t tail = extent % plan.lanes;
  if (plan.sumBlock > 0)
    emitBlockedSum(level, groups, states);
  else
    loop(level, 0, groups, group, plan.unroll, &states, inner);
  // The rest uses the first partial result only.
  States first{states[0]};
  auto innerFirst = [&] { emitReducedLevel(level + 1, first); };
  loop(level, groups * group, vectors, plan.lanes, 1, &first, innerFirst);
  if (plan.tail == TailForm::Mask && tail > 0) {
    mask = emit.prefixMask(emit.index(tail), lanes);
    loop(level, extent - tail, 1, plan.lanes, 1, &first, innerFirst);
    mask = {};
  }
  states[0] = first[0];
}

/// The main loop of a long reduction in blocks: each block starts from fresh
/// states, which are merged into the outer ones at its end.
void NestEmitter::emitBlockedSum(unsigned level, int64_t groups,
                                 States &states) {
  int64_t group = plan.lanes * plan.unroll;
  SmallVector<Value> inits;
  flatten(states, inits);
  Value end = emit.index(groups * group);
  auto outer = b.create<scf::ForOp>(emit.loc, emit.index(0), end,
                                    emit.index(plan.sumBlock * group), inits);
  levels[level].anchor = outer;
  int64_t savedCopies = copies;
  copies = plan.unroll;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(outer.getBody());
    States total = states;
    unflatten(outer.getRegionIterArgs(), total);
    States block;
    for (copy = 0; copy < copies; ++copy)
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
      enter(level, inner.getInductionVar(), plan.unroll);
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
  copies = savedCopies;
  unflatten(outer.getResults(), states);
}

void NestEmitter::finishReduction(States &states) {
  bool isVector = vectorLevel >= int(keptLevels);
  if (isVector) {
    while (states.size() > 1) {
      States merged;
      for (size_t i = 0; i + 1 < states.size(); i += 2)
        merged.push_back(mergeStates(states[i], states[i + 1]));
      if (states.size() % 2 == 1)
        merged.push_back(states.back());
      states = std::move(merged);
    }
    bool isSequential = llvm::any_of(
        accumulators, [](const auto &a) { return a && a->isSequential(); });
    for (int64_t half = isSequential ? 0 : lanes / 2; half >= 1; half /= 2) {
      SmallVector<int32_t> order(lanes);
      for (int64_t lane = 0; lane < lanes; ++lane)
        order[lane] = lane < half ? lane + half : lane;
      State upper;
      for (Value part : states[0])
        upper.push_back(emit.shuffle(part, order));
      states[0] = mergeStates(states[0], upper);
    }
    for (Value &part : states[0])
      part = emit.extract(part, 0);
    lanes = 1;
    int64_t extent = *r.constantExtent(vectorDim);
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
        std::optional<int64_t> size = r.constantExtent(levels[level].dim);
        loop(level, 0, size.value_or(-1), 1, 1, &states, inner);
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
        else
          r.setScalar(result, emitted);
      }
    }
  copy = 0;
}

void NestEmitter::emitBody(States *states) {
  for (copy = 0; copy < copies; ++copy) {
    State next;
    for (auto [number, root] : llvm::enumerate(phase->roots)) {
      switch (root.kind) {
      case Root::Kind::Store:
        storeElement(*getAccess(root.op),
                     cast<tile::StoreOp>(root.op).getValue());
        break;
      case Root::Kind::Scatter:
        scatterElement(cast<tile::ScatterOp>(root.op));
        break;
      case Root::Kind::Materialize:
        if (const TileBuffer *buffer = r.findBuffer(root.value))
          writeBuffer(*buffer, value(root.value));
        break;
      default:
        if (accumulators[number])
          llvm::append_range(next, accumulators[number]->step(
                                       *this, slice((*states)[copy], number)));
        break;
      }
    }
    if (states)
      (*states)[copy] = next;
  }
  copy = 0;
}

void NestEmitter::run() {
  for (const Root &root : phase->roots) {
    if (root.kind == Root::Kind::Materialize) {
      if (!r.findBuffer(root.value))
        r.setBuffer(root.value,
                    r.allocate(root.value.getType(), "kept", root.op));
      // A value computed by an earlier phase is read from its own buffer.
      if (root.op && isDeferred(root.op))
        evaluatedHere.insert(root.value);
    } else if (root.op) {
      for (Value result : root.op->getResults())
        if (isa<RankedTensorType>(result.getType()))
          r.setBuffer(result, r.allocate(result.getType(), "result", root.op));
    }
    accumulators.push_back(makeAccumulator(root));
  }
  if (phase->roots.size() == 1 && phase->roots[0].kind == Root::Kind::Sort)
    return emitSort(r, cast<tile::SortOp>(phase->roots[0].op));
  if (phase->roots.size() == 1)
    if (auto scan = dyn_cast_or_null<tile::ScanOp>(phase->roots[0].op);
        scan && isWindowScan(scan))
      return emitWindowScan(r, scan);
  emitLevel(0);
}

} // namespace tessera
