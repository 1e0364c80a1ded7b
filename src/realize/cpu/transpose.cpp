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

/// As many vectors as they have lanes, of one register each.
void transposeSquare(VectorEmitter &emit, MutableArrayRef<Value> square) {
  const int64_t size = square.size();
  const int64_t bits = elementOf(square[0]).getIntOrFloatBitWidth();
  const int64_t chunk =
      std::clamp<int64_t>(chunkBits / bits, 1, size); // in lanes
  auto pairUp = [&](int64_t distance, auto makeOrder) {
    for (int64_t i = 0; i < size; ++i) {
      if (i & distance)
        continue;
      Value &a = square[i], &b = square[i + distance];
      Value first = emit.shuffle(a, b, makeOrder(0));
      b = emit.shuffle(a, b, makeOrder(1));
      a = first;
    }
  };
  for (int64_t unit = 1; unit < chunk; unit *= 2)
    pairUp(unit, [&](int64_t half) {
      Order order;
      for (int64_t at = 0; at < size; at += chunk)
        for (int64_t i = 0; i < chunk / 2; i += unit)
          for (int64_t from : {int64_t(0), size})
            order.unit(from + at + half * (chunk / 2) + i, unit);
      return order.lanes;
    });
  for (int64_t distance = chunk; distance < size; distance *= 2)
    pairUp(distance, [&](int64_t odd) {
      Order order;
      for (int64_t from : {int64_t(0), size})
        for (int64_t at = odd * chunk; at < size; at += 2 * chunk)
          order.unit(from + at, chunk);
      return order.lanes;
    });
  // The columns of a chunk came out in the order of their reversed bits.
  SmallVector<Value> columns(square.begin(), square.end());
  for (int64_t i = 0; i < size; ++i)
    square[i - i % chunk + reversedBits(i % chunk, chunk)] = columns[i];
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

SmallVector<Value> transposeVectors(VectorEmitter &emit, ArrayRef<Value> rows) {
  const Type element = elementOf(rows[0]);
  const int64_t lanes = lanesOf(rows[0]), count = rows.size();
  // What has no lanes of its own in a register is transposed as what has.
  auto through = [&](auto there, auto back) {
    SmallVector<Value> moved;
    for (Value row : rows)
      moved.push_back(there(row));
    moved = transposeVectors(emit, moved);
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
  // By column, its parts of `size` rows each.
  SmallVector<SmallVector<Value>> parts(lanes);
  for (int64_t row = 0; row < count; row += size)
    for (int64_t first = 0; first < lanes; first += size) {
      SmallVector<Value> square;
      Order order;
      order.unit(first, size);
      for (Value vector : rows.slice(row, size))
        square.push_back(size == lanes ? vector
                                       : emit.shuffle(vector, order.lanes));
      transposeSquare(emit, square);
      for (int64_t column = 0; column < size; ++column)
        parts[first + column].push_back(square[column]);
    }
  SmallVector<Value> columns;
  for (ArrayRef<Value> column : parts)
    columns.push_back(concatenate(emit, column));
  return columns;
}

} // namespace tessera
