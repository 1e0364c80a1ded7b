//===- values.cpp - Tile values at the coordinates of a nest --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/elementwise.h"
#include "realize/cpu/nest.h"
#include "support/launch_errors.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

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
    int64_t ahead = 0;
    if (int(number) == vectorLevel)
      ahead = vectorOf(copy) * lanes;
    else if (int(number) == tileLevel)
      ahead = rowOf(copy);
    else if (int(number) == groupLevel)
      ahead = element;
    return ahead == 0 ? level.coordinate
                      : emit.add(level.coordinate, emit.index(ahead));
  }
  r.fail(nullptr, "internal.coordinate",
         "dimension '" + dim.getValue() + "' has no loop here");
  return emit.index(0);
}

/// Copies that differ in what the tile does not depend on share its value.
int64_t NestEmitter::slotOf(Value tile) const {
  // The two sides of a square have slots of their own.
  const int64_t perRow = isTurned ? 1 : plan.unroll;
  const int64_t first = isTurned ? plan.unroll * plan.tileRows : 0;
  int64_t slot = 0;
  for (StringAttr dim : tile::getDims(tile.getType())) {
    if (vectorLevel >= 0 && dim == levels[vectorLevel].dim)
      slot = std::max(slot, first) + vectorOf(copy);
    else if (tileLevel >= 0 && dim == levels[tileLevel].dim)
      slot = std::max(slot, first) + rowOf(copy) * perRow;
  }
  // So have the elements of a group.
  return slot + (variesWithGroup(tile) ? element * slotsOfElement() : 0);
}

Value *NestEmitter::cached(Value tile, int level) {
  auto &cache = levels[level].cache[slotOf(tile)];
  auto it = cache.find(tile);
  return it == cache.end() ? nullptr : &it->second;
}

/// The tiles whose values at the same coordinates `tile` is evaluated from, in
/// the order in which they are used.
SmallVector<Value> NestEmitter::sources(Value tile) {
  SmallVector<Value> list;
  Operation *op = tile.getDefiningOp();
  if (!op || !isDeferred(op) ||
      (r.findBuffer(tile) && !evaluatedHere.contains(tile)))
    return list;
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    llvm::append_range(list, load.getOffsets());
    if (load.getMask())
      list.push_back(load.getMask());
    if (load.getFill())
      list.push_back(load.getFill());
  } else if (auto gather = dyn_cast<tile::GatherOp>(op)) {
    list.push_back(gather.getIndices());
    if (gather.getFill())
      list.push_back(gather.getFill());
  } else if (!isa<tile::ReshapeOp>(op)) {
    llvm::append_range(list, op->getOperands());
  }
  llvm::erase_if(list, [&](Value source) {
    return !isa<RankedTensorType>(source.getType()) || levelOf(source) < 0;
  });
  return list;
}

Value NestEmitter::value(Value tile) {
  if (!isa<RankedTensorType>(tile.getType()))
    return r.scalar(tile);
  int level = levelOf(tile);
  if (level < 0)
    return evaluate(tile);
  // Sources first, not by recursion: a chain of operations may be longer than
  // the stack is deep.
  SmallVector<Value> stack{tile};
  while (!stack.empty()) {
    Value next = stack.back();
    int nextLevel = levelOf(next);
    size_t before = stack.size();
    if (isOnOtherSide(next)) {
      if (!cached(next, nextLevel))
        transposeFromOtherSide(next);
      stack.pop_back();
      continue;
    }
    if (!cached(next, nextLevel)) {
      SmallVector<Value> needed = sources(next);
      for (Value source : llvm::reverse(needed))
        if (!cached(source, levelOf(source)))
          stack.push_back(source);
    }
    if (stack.size() > before)
      continue;
    if (!cached(next, nextLevel))
      evaluateAtLevel(next, nextLevel);
    stack.pop_back();
  }
  return *cached(tile, level);
}

/// Emits the value of `tile` before the loops that it does not depend on.
void NestEmitter::evaluateAtLevel(Value tile, int level) {
  OpBuilder::InsertionGuard guard(b);
  for (unsigned inner = level + 1; inner < levels.size(); ++inner)
    if (Operation *anchor = levels[inner].anchor) {
      b.setInsertionPoint(anchor);
      break;
    }
  const TileBuffer *buffer = r.findBuffer(tile);
  Value result = buffer && !evaluatedHere.contains(tile)
                     ? readKept(tile, *buffer)
                     : evaluate(tile);
  levels[level].cache[slotOf(tile)][tile] = result;
}

Value NestEmitter::evaluate(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op || !isDeferred(op)) {
    if (const TileBuffer *buffer = r.findBuffer(tile))
      return readKept(tile, *buffer);
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
  for (auto [axis, dim] : llvm::enumerate(buffer.dims)) {
    if (dim == except)
      continue;
    Value stride = buffer.stride(emit, axis);
    offset = emit.add(offset, emit.mul(coordinate(dim), stride));
    if (!isVectorDim(dim))
      continue;
    if (buffer.strides[axis] == 1)
      isContiguous = true;
    else
      laneOffsets = emit.mul(emit.laneNumbers(lanes),
                             emit.splat(emit.toI64(stride), lanes));
  }
  return offset;
}

Value NestEmitter::bufferAt(const TileBuffer &buffer, Value offset,
                            Value laneOffsets, bool isContiguous) {
  Value pointer = emit.offsetPointer(buffer.pointer, buffer.element, offset);
  if (laneOffsets)
    return emit.gather(pointer, buffer.element, laneOffsets, mask);
  // Under the mask that it was stored with: what else lies there may be numbers
  // that arithmetic is slow for.
  return emit.load(pointer, buffer.element, isContiguous ? lanes : 1,
                   isContiguous ? mask : Value());
}

Value NestEmitter::readBuffer(const TileBuffer &buffer) {
  Value laneOffsets;
  bool isContiguous = false;
  Value offset = coordinateOffset(buffer, {}, laneOffsets, isContiguous);
  return bufferAt(buffer, offset, laneOffsets, isContiguous);
}

Value NestEmitter::readKept(Value tile, const TileBuffer &buffer) {
  Value kept = readBuffer(buffer);
  if (!r.hasScalar(tile))
    return kept;
  Value scale = emit.splat(r.scalar(tile), lanesOf(kept));
  return b.create<arith::MulFOp>(emit.loc, kept, scale);
}

Value NestEmitter::sample(Value tile, int64_t number, int64_t count) {
  // What the phase keeps is not there yet.
  for (const Root &root : phase->roots)
    if (root.kind == Root::Kind::Materialize && root.op && isDeferred(root.op))
      evaluatedHere.insert(root.value);
  for (auto [level, described] : llvm::enumerate(levels)) {
    int64_t extent = *r.constantExtent(described.dim);
    enter(unsigned(level), emit.index((2 * number + 1) * extent / (2 * count)));
  }
  return value(tile);
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
  Value step =
      buffer->stride(emit, tile::indexOf(buffer->dims, op.getAlongAttr()));
  Value position = emit.mul(safe, emit.splat(emit.toI64(step), lanesOf(safe)));
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
  ArrayRef<StringAttr> from = buffer->dims;
  SmallVector<StringAttr> to = tile::getDims(op.getResult().getType());
  if (!r.analysis.dims.elements(from) || !r.analysis.dims.elements(to))
    return reshapeBetweenExtents(*buffer, to);
  // The same memory, row-major, under the result's dimensions.
  TileBuffer view = *buffer;
  view.dims = to;
  view.strides.assign(view.dims.size(), 1);
  for (int64_t axis = int64_t(view.dims.size()) - 2; axis >= 0; --axis)
    view.strides[axis] = view.strides[axis + 1] *
                         r.constantExtent(view.dims[axis + 1]).value_or(0);
  return readBuffer(view);
}

/// A reshape whose extents are known at run time only: the position of the
/// element in the result's row-major order, taken apart by the extents of the
/// buffer's tile. A position that tile does not have (the numbers of elements
/// disagree, which only a validating executable reports) reads zero.
Value NestEmitter::reshapeBetweenExtents(const TileBuffer &buffer,
                                         ArrayRef<StringAttr> dims) {
  Type i64 = b.getI64Type();
  auto extentOf = [&](StringAttr dim, int64_t least) {
    Value extent = emit.toI64(r.extent(dim));
    return r.constantExtent(dim) && *r.constantExtent(dim) >= least
               ? extent
               : b.create<arith::MaxSIOp>(emit.loc, extent,
                                          emit.integer(i64, least))
                     .getResult();
  };
  Value position = emit.integer(i64, 0), lane;
  for (StringAttr dim : dims) {
    Value extent = extentOf(dim, 0);
    position =
        emit.add(emit.mul(position, extent), emit.toI64(coordinate(dim)));
    if (lane)
      lane = emit.mul(lane, emit.splat(extent, lanes));
    if (isVectorDim(dim))
      lane = emit.laneNumbers(lanes);
  }
  if (lane)
    position = emit.add(emit.splat(position, lanes), lane);
  Value count = emit.integer(i64, 1);
  for (StringAttr dim : buffer.dims)
    count = emit.mul(count, extentOf(dim, 0));
  auto spread = [&](Value value) {
    return emit.splat(value, lanesOf(position));
  };
  Value inside =
      emit.compare(arith::CmpIPredicate::ult, position, spread(count));
  Value rest = emit.select(inside, position, emit.zero(position.getType()));
  Value offset = emit.zero(position.getType());
  for (int64_t axis = int64_t(buffer.dims.size()) - 1; axis >= 0; --axis) {
    Value at = rest;
    if (axis > 0) {
      Value extent = spread(extentOf(buffer.dims[axis], 1));
      at = b.create<arith::RemUIOp>(emit.loc, rest, extent);
      rest = b.create<arith::DivUIOp>(emit.loc, rest, extent);
    }
    offset = emit.add(
        offset, emit.mul(at, spread(emit.toI64(buffer.stride(emit, axis)))));
  }
  Value loaded = lane
                     ? emit.gather(buffer.pointer, buffer.element, offset, mask)
                     : emit.load(emit.offsetPointer(buffer.pointer,
                                                    buffer.element, offset),
                                 buffer.element, 1, Value());
  return emit.select(inside, loaded, emit.zero(loaded.getType()));
}

} // namespace tessera
