//===- sort.cpp - Stable sorting along a dimension ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bottom-up merge sort between the result buffers and a second set of buffers,
// one line along the sorted dimension at a time:
//
//   for (width = 1; width < n; width *= 2)
//     for (start = 0; start < n; start += 2 * width)
//       merge from[start, mid) and from[mid, end) into to[start, end)
//     swap(from, to)
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/sort.h"

#include "realize/cpu/lines.h"

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

class SortEmitter {
public:
  SortEmitter(Realizer &r, tile::SortOp op)
      : r(r), emit(r.emit), b(r.b), op(op) {}

  void run() {
    SmallVector<StringAttr> dims = tile::getDims(op.getInputs()[0].getType());
    for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
      const TileBuffer *buffer = r.findBuffer(result);
      r.materializeInto(input, *buffer);
      first.push_back(*buffer);
      second.push_back(r.allocate(result.getType(), "sort", op));
    }
    stride = first[0].stride(emit, tile::indexOf(dims, op.getAlongAttr()));
    length = r.extent(op.getAlongAttr());
    forEachLine(r, first[0], op.getAlongAttr(),
                [&](Value base) { sortLine(base); });
  }

private:
  /// Pointers of one set of buffers at the line that starts at `base`.
  SmallVector<Value> linePointers(ArrayRef<TileBuffer> set, Value base) {
    SmallVector<Value> pointers;
    for (const TileBuffer &buffer : set)
      pointers.push_back(
          emit.offsetPointer(buffer.pointer, buffer.element, base));
    return pointers;
  }

  SmallVector<Value> read(ValueRange pointers, Value position) {
    SmallVector<Value> values;
    Value offset = emit.mul(position, stride);
    for (auto [pointer, buffer] : llvm::zip(pointers, first))
      values.push_back(
          emit.load(emit.offsetPointer(pointer, buffer.element, offset),
                    buffer.element, 1, Value()));
    return values;
  }

  void write(ValueRange pointers, Value position, ValueRange values) {
    Value offset = emit.mul(position, stride);
    for (auto [pointer, buffer, value] : llvm::zip(pointers, first, values))
      emit.store(value, emit.offsetPointer(pointer, buffer.element, offset),
                 buffer.element, Value());
  }

  Value smaller(Value x, Value y) {
    return b.create<arith::MinSIOp>(emit.loc, x, y);
  }

  void sortLine(Value base) {
    SmallVector<Value> sets = linePointers(first, base);
    SmallVector<Value> other = linePointers(second, base);
    size_t count = sets.size();
    SmallVector<Value> inits(sets);
    llvm::append_range(inits, other);
    inits.push_back(emit.index(1));
    auto whileOp = b.create<scf::WhileOp>(
        emit.loc, TypeRange(ValueRange(inits)), inits,
        [&](OpBuilder &, Location, ValueRange args) {
          b.create<scf::ConditionOp>(
              emit.loc,
              emit.compare(arith::CmpIPredicate::slt, args.back(), length),
              args);
        },
        [&](OpBuilder &, Location, ValueRange args) {
          ValueRange from = args.take_front(count);
          ValueRange to = args.slice(count, count);
          Value width = args.back();
          Value twice = emit.add(width, width);
          auto loop =
              b.create<scf::ForOp>(emit.loc, emit.index(0), length, twice);
          {
            OpBuilder::InsertionGuard guard(b);
            b.setInsertionPoint(loop.getBody()->getTerminator());
            mergeRuns(from, to, loop.getInductionVar(), width);
          }
          SmallVector<Value> next(to);
          llvm::append_range(next, from);
          next.push_back(twice);
          b.create<scf::YieldOp>(emit.loc, next);
        });
    // The sorted line is in the set that was written last.
    ValueRange sorted = whileOp.getResults().take_front(count);
    auto copy =
        b.create<scf::ForOp>(emit.loc, emit.index(0), length, emit.index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(copy.getBody()->getTerminator());
    Value position = copy.getInductionVar();
    write(sets, position, read(sorted, position));
  }

  void mergeRuns(ValueRange from, ValueRange to, Value start, Value width) {
    Value mid = smaller(emit.add(start, width), length);
    Value end = smaller(emit.add(mid, width), length);
    auto loop = b.create<scf::ForOp>(emit.loc, start, end, emit.index(1),
                                     ValueRange{start, mid});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value left = loop.getRegionIterArgs()[0];
    Value right = loop.getRegionIterArgs()[1];
    Value hasLeft = emit.compare(arith::CmpIPredicate::slt, left, mid);
    Value hasRight = emit.compare(arith::CmpIPredicate::slt, right, end);
    // A position past its run is replaced by one that can be read.
    Value leftSafe = emit.select(hasLeft, left, start);
    Value rightSafe = emit.select(hasRight, right, start);
    SmallVector<Value> x = read(from, leftSafe), y = read(from, rightSafe);
    // The right element goes first only if it is strictly before: stable.
    Value rightFirst =
        emitBefore(emit, y[0], x[0], op.getDescending(), op.getIsUnsigned());
    Value takeRight = emit.logicalAnd(
        hasRight, emit.logicalOr(emit.logicalNot(hasLeft), rightFirst));
    SmallVector<Value> taken;
    for (auto [a, c] : llvm::zip(x, y))
      taken.push_back(emit.select(takeRight, c, a));
    write(to, loop.getInductionVar(), taken);
    Value one = emit.index(1);
    b.create<scf::YieldOp>(
        emit.loc,
        ValueRange{emit.select(takeRight, left, emit.add(left, one)),
                   emit.select(takeRight, emit.add(right, one), right)});
  }

  Realizer &r;
  VectorEmitter &emit;
  OpBuilder &b;
  tile::SortOp op;
  SmallVector<TileBuffer> first, second;
  Value stride, length;
};

} // namespace

void emitSort(Realizer &realizer, tile::SortOp op) {
  SortEmitter(realizer, op).run();
}

} // namespace tessera
