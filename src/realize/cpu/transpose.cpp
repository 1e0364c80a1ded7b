//===- transpose.cpp - Transposing vectors in registers -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A square of S vectors of S lanes takes log2(S) stages of S shuffles, each of
// which takes its lanes from two vectors. Registers are made of chunks of 128
// bits, across which lanes are moved by other instructions than within them, so
// the stages come in two groups:
//
//  - within chunks: rows that differ in one bit of their number are interleaved
//    (unpack, zip), units of one element first, then pairs, and so on. Then
//    chunk c of a vector holds one column, of which the rows are those of one
//    group;
//  - of whole chunks: the even ones of two vectors in one, the odd ones in the
//    other. Then the chunks of a vector are the groups of one column.
//
// The unit that moves lanes bounds all this. Where the rows are loaded for the
// purpose, it need not move chunks: they are loaded one by one to where they
// belong.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/transpose.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

constexpr int64_t chunkBits = 128;

/// The lanes that a shuffle takes, those of a second vector counted on.
struct Order {
  SmallVector<int32_t> lanes;

  void unit(int64_t first, int64_t size) {
    for (int64_t lane = 0; lane < size; ++lane)
      lanes.push_back(int32_t(first + lane));
  }
};

int64_t reversedBits(int64_t number, int64_t count) {
  int64_t reversed = 0;
  for (int64_t bit = 1; bit < count; bit *= 2, number /= 2)
    reversed = 2 * reversed + number % 2;
  return reversed;
}

int64_t chunkLanes(Type element, int64_t size) {
  return std::clamp<int64_t>(chunkBits / element.getIntOrFloatBitWidth(), 1,
                             size);
}

/// Replaces vectors whose numbers differ by `distance` by what two shuffles
/// make of them.
void pairUp(VectorEmitter &emit, MutableArrayRef<Value> square,
            int64_t distance, function_ref<Order(bool)> orderOf) {
  for (size_t i = 0; i < square.size(); ++i) {
    if (i & size_t(distance))
      continue;
    Value &a = square[i], &b = square[i + size_t(distance)];
    Value first = emit.shuffle(a, b, orderOf(false).lanes);
    b = emit.shuffle(a, b, orderOf(true).lanes);
    a = first;
  }
}

/// The stages of whole chunks.
void transposeChunks(VectorEmitter &emit, MutableArrayRef<Value> square) {
  const int64_t size = square.size();
  const int64_t chunk = chunkLanes(elementOf(square[0]), size);
  for (int64_t distance = chunk; distance < size; distance *= 2)
    pairUp(emit, square, distance, [&](bool isOdd) {
      Order order;
      for (int64_t from : {int64_t(0), size})
        for (int64_t at = isOdd * chunk; at < size; at += 2 * chunk)
          order.unit(from + at, chunk);
      return order;
    });
}

/// The stages within chunks.
void transposeInChunks(VectorEmitter &emit, MutableArrayRef<Value> square) {
  const int64_t size = square.size();
  const int64_t chunk = chunkLanes(elementOf(square[0]), size);
  for (int64_t unit = 1; unit < chunk; unit *= 2)
    pairUp(emit, square, unit, [&](bool isUpper) {
      Order order;
      for (int64_t at = isUpper * (chunk / 2); at < size; at += chunk)
        for (int64_t i = 0; i < chunk / 2; i += unit)
          for (int64_t from : {int64_t(0), size})
            order.unit(from + at + i, unit);
      return order;
    });
  // The columns of a chunk came out in the order of their reversed bits.
  SmallVector<Value> columns(square.begin(), square.end());
  for (int64_t i = 0; i < size; ++i)
    square[i - i % chunk + reversedBits(i % chunk, chunk)] = columns[i];
}

/// The square of the rows from lane `first` on, chunks transposed, from memory.
SmallVector<Value> loadChunks(VectorEmitter &emit, ArrayRef<Value> rows,
                              int64_t first) {
  OpBuilder &b = emit.b;
  const int64_t size = rows.size();
  const Type element = elementOf(rows[0]);
  const int64_t chunk = chunkLanes(element, size);
  SmallVector<Value> square(size);
  // Row by row: lines that displace each other in the nearest cache are used up
  // one after another.
  for (int64_t row = 0; row < chunk; ++row)
    for (int64_t at = 0; at < size; at += chunk) {
      Value vector;
      for (int64_t group = 0; group < size; group += chunk) {
        auto load = rows[group + row].getDefiningOp<LLVM::LoadOp>();
        Value pointer =
            emit.offsetPointer(load.getAddr(), element, emit.index(first + at));
        Value part = b.create<LLVM::LoadOp>(
            emit.loc, laneType(element, chunk), pointer,
            static_cast<unsigned>(load.getAlignment().value_or(1)));
        // The chunk as the first of a vector, then in its place.
        Order wide, order;
        wide.unit(0, chunk);
        wide.lanes.append(size - chunk, -1);
        part = b.create<LLVM::ShuffleVectorOp>(
            emit.loc, part, b.create<LLVM::PoisonOp>(emit.loc, part.getType()),
            wide.lanes);
        order.unit(0, group);
        order.unit(size, chunk);
        order.lanes.append(size - chunk - group, -1);
        vector = vector ? emit.shuffle(vector, part, order.lanes) : part;
      }
      square[at + row] = vector;
    }
  return square;
}

/// Vectors one behind the other.
Value concatenate(VectorEmitter &emit, ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts[0];
  const size_t half = parts.size() / 2;
  Value low = concatenate(emit, parts.take_front(half));
  Value high = concatenate(emit, parts.drop_front(half));
  Order order;
  order.unit(0, 2 * lanesOf(low));
  return emit.shuffle(low, high, order.lanes);
}

} // namespace

SmallVector<Value> transposeVectors(VectorEmitter &emit, ArrayRef<Value> rows,
                                    bool areLoadedAnew) {
  const Type element = elementOf(rows[0]);
  const int64_t lanes = lanesOf(rows[0]), count = rows.size();
  // What has no lanes of its own in a register is transposed as what has.
  auto through = [&](auto there, auto back) {
    SmallVector<Value> moved;
    for (Value row : rows)
      moved.push_back(there(row));
    moved = transposeVectors(emit, moved, /*areLoadedAnew=*/false);
    for (Value &column : moved)
      column = back(column);
    return moved;
  };
  OpBuilder &b = emit.b;
  if (element.isInteger(1))
    return through(
        [&](Value row) -> Value {
          return b.create<arith::ExtUIOp>(emit.loc,
                                          laneType(b.getI8Type(), lanes), row);
        },
        [&](Value column) {
          return emit.compare(arith::CmpIPredicate::ne, column,
                              emit.zero(column.getType()));
        });
  if (element.isIndex())
    return through([&](Value row) { return emit.toI64(row); },
                   [&](Value column) -> Value {
                     return b.create<arith::IndexCastOp>(
                         emit.loc, laneType(b.getIndexType(), count), column);
                   });

  const int64_t perRegister = std::max<int64_t>(
      2, emit.target.vectorBits / element.getIntOrFloatBitWidth());
  const int64_t size = std::min({lanes, count, perRegister});
  const bool loadsChunks =
      areLoadedAnew && size > chunkLanes(element, size) &&
      llvm::all_of(rows, [](Value row) {
        return row.getDefiningOp<LLVM::LoadOp>() != nullptr;
      });
  // By column, its parts of `size` rows each.
  SmallVector<SmallVector<Value>> parts(lanes);
  for (int64_t row = 0; row < count; row += size)
    for (int64_t first = 0; first < lanes; first += size) {
      SmallVector<Value> square;
      if (loadsChunks) {
        square = loadChunks(emit, rows.slice(row, size), first);
      } else {
        Order order;
        order.unit(first, size);
        for (Value vector : rows.slice(row, size))
          square.push_back(size == lanes ? vector
                                         : emit.shuffle(vector, order.lanes));
        transposeChunks(emit, square);
      }
      transposeInChunks(emit, square);
      for (int64_t column = 0; column < size; ++column)
        parts[first + column].push_back(square[column]);
    }
  SmallVector<Value> columns;
  for (ArrayRef<Value> column : parts)
    columns.push_back(concatenate(emit, column));
  return columns;
}

} // namespace tessera
