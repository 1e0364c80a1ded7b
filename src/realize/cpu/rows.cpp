//===- rows.cpp - Several sums along the lanes at once --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction whose operands are adjacent along the reduced dimension has
// partial sums in its lanes. Added up one after another these would take as
// long as the products. Here some rows of the result are computed at once, and
// the lanes of all of them are added up together: half of the lanes of two rows
// go into one vector, and so on, until one vector has a sum per lane.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace tessera {

/// The sums of the lanes of each row, one per lane from the first on. Two
/// vectors that hold some rows each, a part of their lanes added up already,
/// become one that holds all of these rows.
NestEmitter::State NestEmitter::addUpRows(States states) {
  while (!llvm::isPowerOf2_64(states.size()))
    states.push_back(states.back());
  int64_t held = 1, width = lanes;
  auto halves = [&](int64_t part, int64_t sources) {
    SmallVector<int32_t> order(lanes, 0);
    for (int64_t row = 0; row < sources * held; ++row)
      for (int64_t lane = 0; lane < width / 2; ++lane)
        order[row * (width / 2) + lane] =
            int32_t(row / held * lanes + row % held * width +
                    part * (width / 2) + lane);
    return order;
  };
  auto shuffled = [&](ValueRange a, ValueRange b, ArrayRef<int32_t> order) {
    State state;
    for (auto [x, y] : llvm::zip(a, b))
      state.push_back(emit.shuffle(x, y, order));
    return state;
  };
  while (states.size() > 1) {
    States joined;
    for (size_t i = 0; i < states.size(); i += 2)
      joined.push_back(
          mergeStates(shuffled(states[i], states[i + 1], halves(0, 2)),
                      shuffled(states[i], states[i + 1], halves(1, 2))));
    states = std::move(joined);
    held *= 2;
    width /= 2;
  }
  for (; width > 1; width /= 2)
    states[0] = mergeStates(shuffled(states[0], states[0], halves(0, 1)),
                            shuffled(states[0], states[0], halves(1, 1)));
  return states[0];
}

/// The end of rows of sums: their results are stored side by side where they
/// are adjacent, else, and with a scalar tail, become one state per row.
void NestEmitter::finishRows(States &states) {
  State sums = addUpRows(states);
  const bool hasTail =
      plan.tail == TailForm::Scalar && *extentOf(vectorLevel) % plan.lanes != 0;
  bool isAdjacent = !hasTail;
  for (const Root &root : phase->roots) {
    const TileBuffer *buffer = r.findBuffer(root.op->getResult(0));
    isAdjacent &=
        buffer &&
        buffer->strides[tile::indexOf(buffer->dims, levels[tileLevel].dim)] ==
            1;
  }
  if (!isAdjacent) {
    lanes = 1;
    for (auto [row, state] : llvm::enumerate(states))
      for (auto [value, sum] : llvm::zip(state, sums))
        value = emit.extract(sum, row);
    return;
  }
  SmallVector<int32_t> first(rows);
  std::iota(first.begin(), first.end(), 0);
  for (Value &sum : sums)
    if (rows < lanes)
      sum = emit.shuffle(sum, first);
  lanes = 1;
  for (auto [number, accumulator] : llvm::enumerate(accumulators)) {
    SmallVector<Value> results =
        accumulator->finish(*this, slice(sums, number));
    writeBuffer(*r.findBuffer(accumulator->op->getResult(0)), results[0]);
  }
  states.clear();
}

/// Prefetches rows of operands that come after these. The iterations of the
/// loops inside, which read the same rows, prefetch a share each.
void NestEmitter::prefetchRows() {
  for (Value operand : phase->roots[0].op->getOperands()) {
    auto load = operand.getDefiningOp<tile::LoadOp>();
    SmallVector<StringAttr> dims = tile::getDims(operand.getType());
    if (!load || r.findBuffer(operand) ||
        !llvm::is_contained(dims, levels[tileLevel].dim))
      continue;
    int64_t repeats = 1;
    Value number = emit.index(0);
    for (unsigned level = tileLevel + 1; level < keptLevels; ++level) {
      const Level &inner = levels[level];
      if (!inner.extent || llvm::is_contained(dims, inner.dim))
        continue;
      number = emit.add(emit.mul(number, emit.index(*inner.extent)),
                        inner.coordinate);
      repeats *= *inner.extent;
    }
    if (repeats < 2)
      continue;
    const int64_t share = (rows + repeats - 1) / repeats;
    Value first = emit.add(levels[tileLevel].coordinate, emit.index(rows));
    first = emit.add(first, emit.mul(number, emit.index(share)));
    for (int64_t row = 0; row < share; ++row)
      prefetchRow(*getAccess(load), emit.add(first, emit.index(row)));
  }
}

/// Prefetches what an access reads along the lanes' dimension at a row.
void NestEmitter::prefetchRow(const Access &access, Value row) {
  // Loops over further reduced dimensions have not begun.
  for (unsigned level = keptLevels; level < levels.size(); ++level)
    if (levels[level].dim != vectorDim &&
        llvm::any_of(access.axes, [&](const Access::Axis &axis) {
          return axis.dim == levels[level].dim;
        }))
      return;
  Type storage = access.viewType().getElementType();
  Value offset = emit.index(0), step;
  for (auto [axis, described] : llvm::enumerate(access.axes)) {
    Value position = emit.index(0), stride = r.stride(access, axis);
    if (described.dim == vectorDim)
      step = emit.mul(stride, emit.index(described.step));
    else if (described.dim)
      position = emit.mul(described.dim == levels[tileLevel].dim
                              ? row
                              : coordinate(described.dim),
                          emit.index(described.step));
    if (described.offset) {
      if (isa<RankedTensorType>(described.offset.getType()))
        return;
      Value extra = r.scalar(described.offset);
      if (!extra.getType().isIndex())
        extra = b.createOrFold<arith::IndexCastOp>(emit.loc, b.getIndexType(),
                                                   extra);
      position = emit.add(position, extra);
    }
    offset = emit.add(offset, emit.mul(position, stride));
  }
  const int64_t perLine = cacheLine / storageBytes(storage);
  for (int64_t at = 0; step && at < *extentOf(vectorLevel); at += perLine)
    emit.prefetch(
            emit.offsetPointer(
                r.viewPointer(access.view), storage,
                emit.add(offset, emit.mul(fromBase(vectorLevel, emit.index(at)),
                                          step))),
            /*isStored=*/false)
        ->setAttr(soonAttribute, b.getUnitAttr());
}

} // namespace tessera
