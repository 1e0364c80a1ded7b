//===- sort.cpp - Stable sorting along a dimension ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One line along the sorted dimension at a time becomes records: a key, which
// is an integer in the order of the elements, and the element's position. They
// are all different, so that what sorts them need not be stable, and tell where
// each element of the results comes from.
//
// Where only few of the first elements are used, a buffer of records holds the
// candidates. An element that does not come before the last of the best that
// are known is passed over, several vectors at a time; when the buffer is full
// it is sorted and cut.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/sort.h"

#include "realize/cpu/lines.h"
#include "realize/cpu/sort_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tessera {

Value emitBefore(VectorEmitter &emit, Value a, Value b, bool descending,
                 bool isUnsigned) {
  if (descending)
    std::swap(a, b);
  if (!isa<FloatType>(elementOf(a))) {
    if (elementOf(a).isInteger(1))
      isUnsigned = true;
    return emit.compare(isUnsigned ? arith::CmpIPredicate::ult
                                   : arith::CmpIPredicate::slt,
                        a, b);
  }
  // a < b, or only b is NaN.
  Value less = emit.compare(arith::CmpFPredicate::OLT, a, b);
  Value onlyB = emit.logicalAnd(emit.isNaN(b), emit.logicalNot(emit.isNaN(a)));
  return emit.logicalOr(less, onlyB);
}

namespace {

/// Whether a tile is the position along a dimension, whatever else it is over.
bool isPosition(Value tile, StringAttr along) {
  while (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
    tile = broadcast.getInput();
  auto iota = tile.getDefiningOp<tile::IotaOp>();
  return iota && iota.getDimAttr() == along;
}

/// The dimension whose extent is the number of the first positions that a
/// gather takes; null where it takes others.
StringAttr firstPositions(tile::GatherOp gather) {
  auto iota = gather.getIndices().getDefiningOp<tile::IotaOp>();
  return iota ? iota.getDimAttr() : StringAttr();
}

class SortEmitter {
public:
  SortEmitter(Realizer &r, tile::SortOp op)
      : r(r), emit(r.emit), b(r.b), op(op), along(op.getAlongAttr()),
        i64(b.getI64Type()), lanes(emit.target.vectorBits / 64) {}

  void run() {
    SmallVector<StringAttr> dims = tile::getDims(op.getInputs()[0].getType());
    auto axis = tile::indexOf(dims, along);
    for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
      Column &column = columns.emplace_back();
      column.result = *r.findBuffer(result);
      column.isPosition = columns.size() > 1 && isPosition(input, along);
      if (column.isPosition)
        continue;
      if (const TileBuffer *own = r.findBuffer(input)) {
        column.source = *own;
        continue;
      }
      column.source = r.allocate(input.getType(), "sort", op);
      r.materializeInto(input, column.source);
    }
    const TileBuffer &keys = columns[0].source;
    stride = keys.stride(emit, axis);
    isContiguous = keys.strides[axis] == 1;
    // A negative one is reported by a check that does not end the stage.
    length = b.createOrFold<arith::MaxSIOp>(emit.loc, r.extent(along),
                                            emit.index(0));
    bound = r.analysis.dims.extentBound(along);
    bool isOne = keyWidth() <= 32 && bound &&
                 *bound < std::numeric_limits<uint32_t>::max();
    components = isOne ? 1 : 2;
    wanted = wantedPrefix();
    if (wanted == 0)
      return;
    std::optional<int64_t> candidates = candidateRecords();
    makeNetwork(candidates ? candidates : bound);
    forEachLine(r, columns[0].result, along, [&](Value base) {
      if (candidates)
        select(base, *candidates);
      else
        sortAll(base);
      writeResults(base);
    });
  }

private:
  /// An input, which is sorted by the first one's order, and its result.
  struct Column {
    TileBuffer source, result;
    /// The input is the position along the dimension, and has no source.
    bool isPosition = false;
  };

  //===--------------------------------------------------------------------===//
  // What is made
  //===--------------------------------------------------------------------===//

  unsigned keyWidth() const {
    return columns[0].source.element.getIntOrFloatBitWidth();
  }

  /// How many of the first elements are used, if that is known to be fewer than
  /// all.
  std::optional<int64_t> wantedPrefix() {
    std::optional<int64_t> extent = r.constantExtent(along);
    int64_t most = 0;
    for (Value result : op.getResults())
      for (Operation *user : result.getUsers()) {
        auto gather = dyn_cast<tile::GatherOp>(user);
        if (!gather || gather.getSource() != result ||
            gather.getAlongAttr() != along || !firstPositions(gather))
          return std::nullopt;
        std::optional<int64_t> count = r.constantExtent(firstPositions(gather));
        if (!count)
          return std::nullopt;
        most = std::max(most, *count);
      }
    if (!extent || most >= *extent)
      return std::nullopt;
    return most;
  }

  /// The elements of a line, or a guess.
  int64_t typical() {
    return std::max<int64_t>(
        1, r.constantExtent(along).value_or(bound.value_or(1000)));
  }

  /// Elements that are passed over at once.
  int64_t groupElements() const { return 2 * keyLanes(); }
  int64_t keyLanes() const {
    return std::max<int64_t>(emit.target.vectorBits / keyWidth(), lanes);
  }

  /// The records that hold candidates, if the line is much longer.
  std::optional<int64_t> candidateRecords() {
    if (!wanted || !isContiguous || keyWidth() < 8)
      return std::nullopt;
    // A short buffer is sorted often, a long one for much that is cut.
    int64_t block = 8 * lanes, least = *wanted + groupElements();
    int64_t count = std::max(4 * *wanted, least);
    count = (count + block - 1) / block * block;
    if (*r.constantExtent(along) < 2 * count)
      return std::nullopt;
    return count;
  }

  void makeNetwork(std::optional<int64_t> count) {
    int64_t vectors = sortBlockVectors(emit.target, components, count);
    int64_t block = vectors * lanes;
    SmallVector<Value, 2> arrays;
    for (int64_t i = 0; i < components; ++i)
      if (count)
        arrays.push_back(r.allocateBytes(
            (*count + block - 1) / block * block * 8, "sort records"));
      else
        arrays.push_back(
            r.allocate(tile::getTileType(i64, {along}), "sort records", op)
                .pointer);
    network.emplace(emit, arrays, vectors, count.value_or(typical()));
  }

  //===--------------------------------------------------------------------===//
  // Records
  //===--------------------------------------------------------------------===//

  /// Integers in the order of the elements, in the lower half of i64 where a
  /// record is one of these.
  Value keysOf(Value values) {
    int64_t count = lanesOf(values);
    Type element = elementOf(values);
    unsigned width = element.getIntOrFloatBitWidth();
    Type integers = laneType(b.getIntegerType(width), count);
    Value keys = values;
    if (isa<FloatType>(element)) {
      // Negative numbers have their magnitudes reversed; -0 is 0, and all NaN
      // are one number above the rest.
      Value isZero = emit.compare(arith::CmpFPredicate::OEQ, values,
                                  emit.zero(values.getType()));
      Value bits = emit.bitcast(values, b.getIntegerType(width));
      Value sign = b.create<arith::ShRSIOp>(emit.loc, bits,
                                            emit.integer(integers, width - 1));
      int64_t largest = width == 32 ? INT32_MAX : INT64_MAX;
      Value flipped = b.create<arith::AndIOp>(emit.loc, sign,
                                              emit.integer(integers, largest));
      keys = b.create<arith::XOrIOp>(emit.loc, bits, flipped);
      keys = emit.select(isZero, emit.zero(integers), keys);
      keys = emit.select(emit.isNaN(values), emit.integer(integers, largest),
                         keys);
    } else if (op.getIsUnsigned() || width == 1) {
      keys = b.create<arith::XOrIOp>(
          emit.loc, keys,
          emit.integer(integers,
                       width == 64 ? INT64_MIN : int64_t(1) << (width - 1)));
    }
    if (op.getDescending())
      keys =
          b.create<arith::XOrIOp>(emit.loc, keys, emit.integer(integers, -1));
    return width == 64
               ? keys
               : b.create<arith::ExtSIOp>(emit.loc, laneType(i64, count), keys);
  }

  /// The records of elements that begin at a position.
  Records recordsOf(Value values, Value position) {
    int64_t count = lanesOf(values);
    Type type = laneType(i64, count);
    Value positions = emit.add(emit.splat(emit.toI64(position), count),
                               emit.laneNumbers(count));
    Value keys = keysOf(values);
    if (components == 2)
      return {keys, positions};
    Value upper =
        b.create<arith::ShLIOp>(emit.loc, keys, emit.integer(type, 32));
    return {b.create<arith::OrIOp>(emit.loc, upper, positions)};
  }

  /// Records that come after all others.
  Records padding(int64_t count) {
    return Records(components, emit.integer(laneType(i64, count), INT64_MAX));
  }

  Value positionsOf(const Records &records) {
    if (components == 2)
      return records[1];
    return b.create<arith::AndIOp>(
        emit.loc, records[0],
        emit.integer(records[0].getType(),
                     std::numeric_limits<uint32_t>::max()));
  }

  Value sub(Value x, Value y) {
    return b.create<arith::SubIOp>(emit.loc, x, y);
  }

  Value sourceAt(Value base, Value position) {
    const TileBuffer &keys = columns[0].source;
    return emit.offsetPointer(keys.pointer, keys.element,
                              emit.add(base, emit.mul(position, stride)));
  }

  /// Elements of the keys' tile; the mask may be null.
  Value loadKeys(Value base, Value position, int64_t count, Value mask) {
    const TileBuffer &keys = columns[0].source;
    Value pointer = sourceAt(base, position);
    if (isContiguous)
      return emit.load(pointer, keys.element, count, mask);
    return emit.gather(pointer, keys.element, laneOffsets(count), mask);
  }

  /// How far the elements of lanes are apart along the line.
  Value laneOffsets(int64_t count) {
    return emit.mul(emit.laneNumbers(count),
                    emit.splat(emit.toI64(stride), count));
  }

  /// Loops over vectors of [0, end), the last with a mask.
  void forEachVector(Value end, int64_t elements,
                     function_ref<void(Value, Value)> body) {
    Value step = emit.index(lanes);
    Value rest = b.createOrFold<arith::RemUIOp>(emit.loc, end, step);
    Value whole = b.createOrFold<arith::SubIOp>(emit.loc, end, rest);
    // About so many elements; the rest is one vector at most.
    emitLoop(emit, emit.index(0), whole, step, double(elements / lanes),
             [&](Value at) { body(at, Value()); });
    emitLoop(emit, whole, end, step, elements % lanes ? 1 : 0,
             [&](Value at) { body(at, emit.prefixMask(sub(end, at), lanes)); });
  }

  //===--------------------------------------------------------------------===//
  // Lines
  //===--------------------------------------------------------------------===//

  void sortAll(Value base) {
    Records none = padding(lanes);
    forEachVector(length, typical(), [&](Value at, Value mask) {
      Records records = recordsOf(loadKeys(base, at, lanes, mask), at);
      if (mask)
        for (auto [record, after] : llvm::zip(records, none))
          record = emit.select(mask, record, after);
      network->store(records, at);
    });
    auto rounded = [&](int64_t multiple) -> Value {
      Value more = emit.add(length, emit.index(multiple - 1));
      return sub(
          more, b.create<arith::RemUIOp>(emit.loc, more, emit.index(multiple)));
    };
    Value count = rounded(network->block());
    emitLoop(emit, rounded(lanes), count, emit.index(lanes), 1,
             [&](Value at) { network->store(none, at); });
    network->sort(count);
  }

  /// Leaves the first `wanted` records in order. The state of the loops is the
  /// position, the records in the buffer, whether there are as many as wanted,
  /// the element of the last of these, and its record.
  void select(Value base, int64_t capacity) {
    const TileBuffer &keys = columns[0].source;
    Value best = emit.index(*wanted), room = emit.index(capacity);
    Value full = emit.index(capacity - groupElements());
    SmallVector<Value> state{emit.index(0), emit.index(0),
                             emit.boolean(1, false),
                             emit.zero(emit.computeType(keys.element))};
    llvm::append_range(state, padding(1));
    // In random order the element at i is among the best with a chance of
    // wanted / i.
    auto size = double(typical()), keeps = double(*wanted);
    double fillings = 1 + keeps * std::log(size / double(capacity)) /
                              (double(capacity) - keeps);
    emitWhile(
        emit, state, fillings,
        [&](ValueRange now) {
          return emit.compare(arith::CmpIPredicate::slt, now[0], length);
        },
        [&](ValueRange now) -> SmallVector<Value> {
          SmallVector<Value> scanned =
              scan(base, full, size / double(groupElements()) / fillings,
                   now.take_front(2), now.drop_front(2));
          emitLoop(emit, scanned[1], room, emit.index(lanes), 1,
                   [&](Value at) { network->store(padding(lanes), at); });
          network->sort(room);
          Value kept = b.create<arith::MinSIOp>(emit.loc, scanned[1], best);
          Value isFull = emit.compare(arith::CmpIPredicate::eq, kept, best);
          Records last = network->load(emit.index(*wanted - 1), 1);
          // Padding stands for no element.
          Value position = b.create<arith::IndexCastOp>(
              emit.loc, b.getIndexType(),
              emit.select(isFull, positionsOf(last), emit.zero(i64)));
          SmallVector<Value> next{scanned[0], kept, isFull,
                                  loadKeys(base, position, 1, Value())};
          llvm::append_range(next, last);
          return next;
        });
  }

  /// Collects candidates until the buffer is full or the line ends. `state` is
  /// the position and the number of records; `limit` what select() says of the
  /// last of the best.
  SmallVector<Value> scan(Value base, Value full, double groups,
                          ValueRange state, ValueRange limit) {
    int64_t count = keyLanes();
    Value hasNoLimit = emit.logicalNot(limit[0]);
    Value element = emit.splat(limit[1], count);
    ValueRange record = limit.drop_front(2);
    Records last(record.begin(), record.end());
    return emitWhile(
        emit, state, groups,
        [&](ValueRange now) {
          return emit.logicalAnd(
              emit.compare(arith::CmpIPredicate::slt, now[0], length),
              emit.compare(arith::CmpIPredicate::sle, now[1], full));
        },
        [&](ValueRange now) -> SmallVector<Value> {
          // Memory can be read a little past the end; candidates are looked at
          // again.
          SmallVector<Value, 2> values, starts, hits;
          Value anyHit = hasNoLimit;
          for (int64_t i = 0; i < 2; ++i) {
            starts.push_back(emit.add(now[0], emit.index(i * count)));
            values.push_back(loadKeys(base, starts[i], count, Value()));
            hits.push_back(emit.logicalOr(
                isAny(mayComeBefore(values[i], element)), hasNoLimit));
            anyHit = emit.logicalOr(anyHit, hits[i]);
          }
          auto look = b.create<scf::IfOp>(emit.loc, TypeRange{b.getIndexType()},
                                          anyHit, true);
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(look.elseBlock());
          b.create<scf::YieldOp>(emit.loc, ValueRange{now[1]});
          b.setInsertionPointToStart(look.thenBlock());
          Value filled = now[1];
          for (int64_t i = 0; i < 2; ++i)
            filled = append(values[i], starts[i], hits[i], filled, last);
          b.create<scf::YieldOp>(emit.loc, ValueRange{filled});
          b.setInsertionPointAfter(look);
          return {emit.add(now[0], emit.index(2 * count)), look.getResult(0)};
        });
  }

  /// Where an element may come before another. A NaN may.
  Value mayComeBefore(Value values, Value other) {
    bool isAbove = op.getDescending();
    if (isa<FloatType>(elementOf(values)))
      return emit.compare(isAbove ? arith::CmpFPredicate::UGT
                                  : arith::CmpFPredicate::ULT,
                          values, other);
    bool isUnsigned = op.getIsUnsigned();
    return emit.compare(isAbove      ? isUnsigned ? arith::CmpIPredicate::ugt
                                                  : arith::CmpIPredicate::sgt
                        : isUnsigned ? arith::CmpIPredicate::ult
                                     : arith::CmpIPredicate::slt,
                        values, other);
  }

  Value bitsOf(Value mask) {
    return b.create<LLVM::BitcastOp>(emit.loc, b.getIntegerType(lanesOf(mask)),
                                     mask);
  }
  Value isAny(Value mask) {
    Value bits = bitsOf(mask);
    return emit.compare(arith::CmpIPredicate::ne, bits,
                        emit.zero(bits.getType()));
  }

  /// Appends the records of a vector that come before `last`, if there may be
  /// any; the new number of records.
  Value append(Value values, Value start, Value mayHave, Value filled,
               const Records &last) {
    auto branch = b.create<scf::IfOp>(emit.loc, TypeRange{b.getIndexType()},
                                      mayHave, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.elseBlock());
    b.create<scf::YieldOp>(emit.loc, ValueRange{filled});
    b.setInsertionPointToStart(branch.thenBlock());
    int64_t count = lanesOf(values);
    for (int64_t first = 0; first < count; first += lanes) {
      SmallVector<int32_t> part(lanes);
      for (int64_t lane = 0; lane < lanes; ++lane)
        part[lane] = first + lane;
      Value at = emit.add(start, emit.index(first));
      Records records =
          recordsOf(count == lanes ? values : emit.shuffle(values, part), at);
      Records limit;
      for (Value component : last)
        limit.push_back(emit.splat(component, lanes));
      Value mask = emit.logicalAnd(network->before(records, limit),
                                   emit.prefixMask(sub(length, at), lanes));
      filled = network->append(records, filled, mask);
    }
    b.create<scf::YieldOp>(emit.loc, ValueRange{filled});
    return branch.getResult(0);
  }

  /// Writes the results' elements as the sorted records tell.
  void writeResults(Value base) {
    Value end = wanted ? emit.index(*wanted) : length;
    forEachVector(end, wanted.value_or(typical()), [&](Value at, Value mask) {
      Value positions = positionsOf(network->load(at, lanes));
      Value offsets =
          isContiguous
              ? positions
              : emit.mul(positions, emit.splat(emit.toI64(stride), lanes));
      Value to = emit.add(base, emit.mul(at, stride));
      for (const Column &column : columns) {
        const TileBuffer &source = column.source, &result = column.result;
        Value value = positions;
        if (!column.isPosition)
          value = emit.gather(
              emit.offsetPointer(source.pointer, source.element, base),
              source.element, offsets, mask);
        Value pointer = emit.offsetPointer(result.pointer, result.element, to);
        if (isContiguous)
          emit.store(value, pointer, result.element, mask);
        else
          emit.scatter(value, pointer, result.element, laneOffsets(lanes),
                       mask);
      }
    });
  }

  Realizer &r;
  VectorEmitter &emit;
  OpBuilder &b;
  tile::SortOp op;
  StringAttr along;
  Type i64;
  int64_t lanes;
  std::vector<Column> columns;
  /// Of the keys along the line; all tiles have the same shape.
  Value stride, length;
  bool isContiguous = false;
  std::optional<int64_t> bound, wanted;
  int64_t components = 1;
  std::optional<SortNetwork> network;
};

} // namespace

void emitSort(Realizer &realizer, tile::SortOp op) {
  SortEmitter(realizer, op).run();
}

} // namespace tessera
