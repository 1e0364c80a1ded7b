//===- sort_network.cpp - Sorting records in memory -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/sort_network.h"

#include "realize/cpu/realize.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

using namespace mlir;

namespace tessera {

/// What is sorted before anything is exchanged with what lies further away:
/// half of a nearest cache.
static constexpr int64_t chunkBytes = 16 << 10;

/// What a loop says of itself to those who price it.
static void noteTrips(VectorEmitter &emit, Operation *loop, double trips) {
  loop->setAttr(tripsAttribute, emit.b.getDenseF64ArrayAttr({trips, trips}));
}

void emitLoop(VectorEmitter &emit, Value low, Value high, Value step,
              double trips, function_ref<void(Value)> body) {
  OpBuilder::InsertionGuard guard(emit.b);
  auto loop = emit.b.create<scf::ForOp>(emit.loc, low, high, step);
  noteTrips(emit, loop, trips);
  emit.b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

SmallVector<Value>
emitWhile(VectorEmitter &emit, ValueRange initial, double trips,
          function_ref<Value(ValueRange)> test,
          function_ref<SmallVector<Value>(ValueRange)> body) {
  auto loop = emit.b.create<scf::WhileOp>(
      emit.loc, initial.getTypes(), initial,
      [&](OpBuilder &, Location, ValueRange state) {
        emit.b.create<scf::ConditionOp>(emit.loc, test(state), state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        emit.b.create<scf::YieldOp>(emit.loc, body(state));
      });
  noteTrips(emit, loop, trips);
  return SmallVector<Value>(loop.getResults());
}

int64_t sortBlockVectors(const Target &target, int64_t components,
                         std::optional<int64_t> length) {
  int64_t lanes = target.vectorBits / 64;
  // Half of the registers, since an exchange needs some more.
  int64_t most =
      std::clamp<int64_t>(target.vectorRegisters / 2 / components, 1, 8);
  // Memory of an unbounded extent can be read a little past its end.
  constexpr int64_t readable = 128 / 8;
  int64_t needed = length ? (*length + lanes - 1) / lanes : readable / lanes;
  int64_t vectors = 1;
  while (vectors < most && vectors < needed)
    vectors *= 2;
  return vectors;
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

Records SortNetwork::load(Value at, int64_t count) {
  Records records;
  Type i64 = b.getI64Type();
  for (Value array : arrays)
    records.push_back(
        emit.load(emit.offsetPointer(array, i64, at), i64, count, Value()));
  return records;
}

void SortNetwork::store(const Records &records, Value at) {
  Type i64 = b.getI64Type();
  for (auto [array, value] : llvm::zip(arrays, records))
    emit.store(value, emit.offsetPointer(array, i64, at), i64, Value());
}

Value SortNetwork::append(const Records &records, Value at, Value mask) {
  Type i64 = b.getI64Type();
  for (auto [array, value] : llvm::zip(arrays, records))
    b.create<LLVM::masked_compressstore>(
        emit.loc, value, emit.offsetPointer(array, i64, at), mask);
  Value bits = b.create<LLVM::BitcastOp>(emit.loc,
                                         b.getIntegerType(lanesOf(mask)), mask);
  Value count = b.create<LLVM::CtPopOp>(emit.loc, bits);
  return emit.add(
      at, b.create<arith::IndexCastUIOp>(emit.loc, b.getIndexType(), count));
}

Value SortNetwork::before(const Records &x, const Records &y) {
  Value less = emit.compare(arith::CmpIPredicate::slt, x[0], y[0]);
  if (x.size() == 1)
    return less;
  Value same = emit.compare(arith::CmpIPredicate::eq, x[0], y[0]);
  Value earlier = emit.compare(arith::CmpIPredicate::slt, x[1], y[1]);
  return emit.logicalOr(less, emit.logicalAnd(same, earlier));
}

/// The smaller records and the larger ones.
std::pair<Records, Records> SortNetwork::exchange(const Records &x,
                                                  const Records &y) {
  if (x.size() == 1)
    return {{b.create<arith::MinSIOp>(emit.loc, x[0], y[0])},
            {b.create<arith::MaxSIOp>(emit.loc, x[0], y[0])}};
  Value isSorted = before(x, y);
  Records smaller, larger;
  for (auto [own, other] : llvm::zip(x, y)) {
    smaller.push_back(emit.select(isSorted, own, other));
    larger.push_back(emit.select(isSorted, other, own));
  }
  return {smaller, larger};
}

Records SortNetwork::reversed(const Records &records) {
  SmallVector<int32_t> order(lanes);
  for (int64_t lane = 0; lane < lanes; ++lane)
    order[lane] = lanes - 1 - lane;
  Records result;
  for (Value value : records)
    result.push_back(emit.shuffle(value, order));
  return result;
}

//===----------------------------------------------------------------------===//
// In registers
//===----------------------------------------------------------------------===//

/// Exchanges each lane with lane ^ mask of the same vector.
void SortNetwork::exchangeLanes(Block &block, int64_t mask) {
  SmallVector<int32_t> partners(lanes), order(lanes);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    partners[lane] = lane ^ mask;
    order[lane] = lane < (lane ^ mask) ? lane : lanes + lane;
  }
  for (Records &records : block) {
    Records others;
    for (Value value : records)
      others.push_back(emit.shuffle(value, partners));
    auto [smaller, larger] = exchange(records, others);
    for (size_t i = 0; i < records.size(); ++i)
      records[i] = emit.shuffle(smaller[i], larger[i], order);
  }
}

/// Exchanges each vector with vector ^ mask: lanes of the same number, or the
/// first with the last.
void SortNetwork::exchangeVectors(Block &block, int64_t mask, bool isMirrored) {
  for (int64_t vector = 0; vector < int64_t(block.size()); ++vector) {
    int64_t other = vector ^ mask;
    if (other < vector)
      continue;
    Records partner = isMirrored ? reversed(block[other]) : block[other];
    auto [smaller, larger] = exchange(block[vector], partner);
    block[vector] = smaller;
    block[other] = isMirrored ? reversed(larger) : larger;
  }
}

/// Sorts runs of 2 `distance` records whose halves are such that no record of
/// the lower one comes after one of the upper one, and so on within.
void SortNetwork::mergeBlock(Block &block, int64_t distance) {
  for (; distance >= 1; distance /= 2)
    if (distance >= lanes)
      exchangeVectors(block, distance / lanes, /*isMirrored=*/false);
    else
      exchangeLanes(block, distance);
}

void SortNetwork::sortBlock(Block &block) {
  for (int64_t run = 2; run <= this->block(); run *= 2) {
    if (run <= lanes)
      exchangeLanes(block, run - 1);
    else
      exchangeVectors(block, run / lanes - 1, /*isMirrored=*/true);
    mergeBlock(block, run / 4);
  }
}

//===----------------------------------------------------------------------===//
// In memory
//===----------------------------------------------------------------------===//

void SortNetwork::forEachBlock(Value begin, Value end,
                               function_ref<void(Block &)> body) {
  emitLoop(emit, begin, end, emit.index(block()), expectedBlocks(),
           [&](Value at) {
             Block block;
             SmallVector<Value> places;
             for (int64_t vector = 0; vector < vectors; ++vector) {
               places.push_back(emit.add(at, emit.index(vector * lanes)));
               block.push_back(load(places.back(), lanes));
             }
             body(block);
             for (auto [records, place] : llvm::zip(block, places))
               store(records, place);
           });
}

/// Exchanges the vectors at [low, high), a multiple of block() records, with
/// those at their partners.
void SortNetwork::exchangePlaces(Value low, Value high,
                                 function_ref<Value(Value)> partner,
                                 bool isMirrored) {
  // Half of the blocks in all runs, which are counted as one.
  emitLoop(
      emit, low, high, emit.index(block()), expectedBlocks() / 2,
      [&](Value first) {
        // All loads first, so that no store stands in their way.
        SmallVector<std::array<Value, 2>> places;
        SmallVector<std::pair<Records, Records>> pairs;
        for (int64_t vector = 0; vector < vectors; ++vector) {
          Value at = emit.add(first, emit.index(vector * lanes));
          places.push_back({at, partner(at)});
          pairs.push_back({load(at, lanes), load(places.back()[1], lanes)});
        }
        for (auto [place, pair] : llvm::zip(places, pairs)) {
          auto [smaller, larger] = exchange(
              pair.first, isMirrored ? reversed(pair.second) : pair.second);
          store(smaller, place[0]);
          store(isMirrored ? reversed(larger) : larger, place[1]);
        }
      });
}

Value SortNetwork::sub(Value x, Value y) {
  return b.create<arith::SubIOp>(emit.loc, x, y);
}
Value SortNetwork::smaller(Value x, Value y) {
  return b.create<arith::MinSIOp>(emit.loc, x, y);
}
double SortNetwork::expectedBlocks() const {
  return std::max(1.0, std::ceil(expected / double(block())));
}
Value SortNetwork::halved(Value x) {
  return b.create<arith::ShRUIOp>(emit.loc, x, emit.index(1));
}

/// In runs of two sorted halves: the first with the last and so on inwards.
void SortNetwork::exchangeMirrored(Value half, Value begin, Value end) {
  Value run = emit.add(half, half);
  emitLoop(emit, begin, end, run, 1, [&](Value start) {
    // The vector at `at` has the one at 2 start + run - lanes - at, which must
    // lie before the end, as its partner.
    Value ends = emit.add(emit.add(start, start), run);
    Value low = b.create<arith::MaxSIOp>(emit.loc, start, sub(ends, end));
    Value last = sub(ends, emit.index(lanes));
    exchangePlaces(
        low, emit.add(start, half), [&](Value at) { return sub(last, at); },
        /*isMirrored=*/true);
  });
}

/// Exchanges at `distance`, at half of it and so on, `least` being the last.
void SortNetwork::exchangeApart(Value distance, int64_t least, Value begin,
                                Value end) {
  emitWhile(
      emit, distance, std::max(0.0, std::log2(expected / double(least)) / 2),
      [&](ValueRange now) {
        return emit.compare(arith::CmpIPredicate::sge, now[0],
                            emit.index(least));
      },
      [&](ValueRange now) -> SmallVector<Value> {
        Value apart = now[0];
        emitLoop(emit, begin, end, emit.add(apart, apart), 1, [&](Value start) {
          exchangePlaces(
              start, smaller(emit.add(start, apart), sub(end, apart)),
              [&](Value at) { return emit.add(at, apart); },
              /*isMirrored=*/false);
        });
        return {halved(apart)};
      });
}

/// What remains of a merge from exchanges at `distance` on.
void SortNetwork::mergeFrom(Value distance, Value begin, Value end) {
  exchangeApart(distance, block(), begin, end);
  forEachBlock(begin, end,
               [&](Block &block) { mergeBlock(block, this->block() / 2); });
}

void SortNetwork::sortRange(Value begin, Value end) {
  forEachBlock(begin, end, [&](Block &block) { sortBlock(block); });
  Value count = sub(end, begin);
  emitWhile(
      emit, emit.index(block()), std::max(0.0, std::log2(expectedBlocks())),
      [&](ValueRange half) {
        return emit.compare(arith::CmpIPredicate::slt, half[0], count);
      },
      [&](ValueRange half) -> SmallVector<Value> {
        exchangeMirrored(half[0], begin, end);
        mergeFrom(halved(half[0]), begin, end);
        return {emit.add(half[0], half[0])};
      });
}

void SortNetwork::sort(Value count) {
  Value zero = emit.index(0);
  int64_t chunk = chunkBytes / 8 / int64_t(arrays.size());
  APInt known;
  if (matchPattern(count, m_ConstantInt(&known)) &&
      known.getSExtValue() <= chunk)
    return sortRange(zero, count);
  auto forEachChunk = [&](function_ref<void(Value, Value)> body) {
    const double all =
        std::exchange(expected, std::min(expected, double(chunk)));
    emitLoop(emit, zero, count, emit.index(chunk),
             std::ceil(all / double(chunk)), [&](Value start) {
               body(start, smaller(emit.add(start, emit.index(chunk)), count));
             });
    expected = all;
  };
  forEachChunk([&](Value begin, Value end) { sortRange(begin, end); });
  emitWhile(
      emit, emit.index(chunk),
      std::max(0.0, std::ceil(std::log2(expected / double(chunk)))),
      [&](ValueRange half) {
        return emit.compare(arith::CmpIPredicate::slt, half[0], count);
      },
      [&](ValueRange half) -> SmallVector<Value> {
        exchangeMirrored(half[0], zero, count);
        exchangeApart(halved(half[0]), chunk, zero, count);
        forEachChunk([&](Value begin, Value end) {
          mergeFrom(emit.index(chunk / 2), begin, end);
        });
        return {emit.add(half[0], half[0])};
      });
}

} // namespace tessera
