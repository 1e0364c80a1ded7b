//===- fold.cpp - Folds over computed contributions -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/combination.h"
#include "realize/cpu/realize.h"

#include <limits>

using namespace mlir;

namespace tessera {

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

/// Emits a combining region; tiles are given, and returned, by their addresses.
/// `destinations` are where the tiles of the result go.
SmallVector<Value> Realizer::combineOnce(Block &combine, ValueRange a,
                                         ValueRange c,
                                         ArrayRef<TileBuffer> destinations) {
  size_t tileNumber = 0;
  for (auto [number, argument] : llvm::enumerate(combine.getArguments())) {
    Value value = number < a.size() ? a[number] : c[number - a.size()];
    if (!isTile(argument)) {
      setScalar(argument, value);
      continue;
    }
    TileBuffer buffer = destinations[tileNumber++ % destinations.size()];
    buffer.pointer = value;
    setBuffer(argument, buffer);
  }
  runBlock(combine);
  SmallVector<Value> scalarResults, results;
  evaluateYield(combine.getTerminator(), destinations, scalarResults);
  size_t scalarNumber = 0;
  tileNumber = 0;
  for (Value yielded : combine.getTerminator()->getOperands())
    results.push_back(isTile(yielded) ? destinations[tileNumber++].pointer
                                      : scalarResults[scalarNumber++]);
  // The region may be emitted again, where these addresses are not known.
  combine.walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      buffers.erase(result);
  });
  return results;
}

/// combine(inits, tree over the contributions).
void Realizer::runTreeFold(tile::FoldOp op) {
  Block &body = op.getBody().front(), &combine = op.getCombine().front();
  SmallVector<Value> inits;
  SmallVector<TileBuffer> contribution;
  // Where combinations go, in turns: one is the right operand of the next.
  SmallVector<TileBuffer> turns[2];
  for (Value init : op.getInits()) {
    if (!isTile(init)) {
      inits.push_back(scalar(init));
      continue;
    }
    TileBuffer initial = allocate(init.getType(), "fold", op);
    materializeInto(init, initial);
    inits.push_back(initial.pointer);
    contribution.push_back(allocate(init.getType(), "fold", op));
    for (auto &turn : turns)
      turn.push_back(allocate(init.getType(), "fold", op));
  }
  auto join = [&](ValueRange a, ValueRange c) {
    SmallVector<TileBuffer> destinations(turns[0]);
    size_t tileNumber = 0;
    for (auto [init, operand] : llvm::zip(op.getInits(), c)) {
      if (!isTile(init))
        continue;
      Value first = turns[0][tileNumber].pointer;
      Value isFirst = b.create<LLVM::ICmpOp>(emit.loc, LLVM::ICmpPredicate::eq,
                                             operand, first);
      destinations[tileNumber].pointer =
          emit.select(isFirst, turns[1][tileNumber].pointer, first);
      ++tileNumber;
    }
    return combineOnce(combine, a, c, destinations);
  };
  TreeStack stack(*this, op.getInits().getTypes(),
                  analysis.dims.extentBound(op.getDimAttr())
                      .value_or(std::numeric_limits<int64_t>::max()),
                  op);
  Value zero = emit.integer(b.getI64Type(), 0);
  auto loop =
      b.create<scf::ForOp>(emit.loc, emit.index(0), extent(op.getDimAttr()),
                           emit.index(1), ValueRange{zero});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    setScalar(body.getArgument(0), loop.getInductionVar());
    runBlock(body);
    SmallVector<Value> scalarParts, contributed;
    evaluateYield(body.getTerminator(), contribution, scalarParts);
    size_t scalarNumber = 0, tileNumber = 0;
    for (Value init : op.getInits())
      contributed.push_back(isTile(init) ? contribution[tileNumber++].pointer
                                         : scalarParts[scalarNumber++]);
    b.create<scf::YieldOp>(
        emit.loc, stack.push(loop.getRegionIterArgs()[0], contributed, join));
  }
  Value count = loop.getResult(0);
  SmallVector<Value> total = stack.total(count, inits, join);
  Value isEmpty = emit.compare(arith::CmpIPredicate::eq, count, zero);
  auto ifOp = b.create<scf::IfOp>(emit.loc, TypeRange(ValueRange(inits)),
                                  isEmpty, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(ifOp.thenBlock());
    b.create<scf::YieldOp>(emit.loc, inits);
    b.setInsertionPointToEnd(ifOp.elseBlock());
    b.create<scf::YieldOp>(emit.loc, join(inits, total));
  }
  size_t tileNumber = 0;
  for (auto [result, value] : llvm::zip(op.getResults(), ifOp.getResults())) {
    if (!isTile(result)) {
      setScalar(result, value);
      continue;
    }
    TileBuffer buffer = turns[0][tileNumber++];
    buffer.pointer = value;
    setBuffer(result, buffer);
  }
}

void Realizer::runFold(tile::FoldOp op, Value first, Value last) {
  if (op.getOrder() == tile::Order::Tree)
    return runTreeFold(op);
  if (constantExtent(op.getDimAttr()) == 0) {
    for (auto [init, result] : llvm::zip(op.getInits(), op.getResults())) {
      if (!isTile(init)) {
        setScalar(result, scalar(init));
        continue;
      }
      TileBuffer initial = allocate(init.getType(), "fold", op);
      materializeInto(init, initial);
      setBuffer(result, initial);
    }
    return;
  }
  bool isRight = op.getOrder() == tile::Order::Right;
  Block &body = op.getBody().front(), &combine = op.getCombine().front();
  unsigned count = op.getInits().size();
  SmallVector<Value> inits;
  SmallVector<TileBuffer> current, next, contribution;
  for (Value init : op.getInits()) {
    if (!isTile(init)) {
      inits.push_back(scalar(init));
      continue;
    }
    current.push_back(allocate(init.getType(), "fold", op));
    next.push_back(allocate(init.getType(), "fold", op));
    contribution.push_back(allocate(init.getType(), "fold", op));
    materializeInto(init, current.back());
  }
  size_t scalarCount = inits.size();
  for (auto [a, c] : llvm::zip(current, next))
    inits.append({a.pointer, c.pointer});
  Value size = extent(op.getDimAttr());
  auto loop = b.create<scf::ForOp>(emit.loc, first ? first : emit.index(0),
                                   last ? last : size, emit.index(1), inits);
  loop->setAttr(blocksAttribute, b.getUnitAttr());
  if (std::optional<int64_t> whole = constantExtent(op.getDimAttr());
      whole && last) {
    double trips = double(*whole) / double(plan.order.splits);
    loop->setAttr(tripsAttribute, b.getDenseF64ArrayAttr({trips, trips}));
  }
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value position = loop.getInductionVar();
    if (isRight)
      position = b.create<arith::SubIOp>(
          emit.loc, emit.add(size, emit.index(-1)), position);
    setScalar(body.getArgument(0), position);
    SmallVector<Value> contributed;
    runYielding(body, contribution, contributed);
    ValueRange carried = loop.getRegionIterArgs();
    unsigned accSide = isRight ? count : 0, newSide = isRight ? 0 : count;
    size_t scalarNumber = 0, tileNumber = 0;
    for (unsigned i = 0; i < count; ++i) {
      Value acc = combine.getArgument(accSide + i);
      Value fresh = combine.getArgument(newSide + i);
      if (isTile(acc)) {
        TileBuffer buffer = current[tileNumber];
        buffer.pointer = carried[scalarCount + 2 * tileNumber];
        setBuffer(acc, buffer);
        setBuffer(fresh, contribution[tileNumber++]);
      } else {
        setScalar(acc, carried[scalarNumber]);
        setScalar(fresh, contributed[scalarNumber++]);
      }
    }
    SmallVector<TileBuffer> destinations;
    SmallVector<Value> yielded, swapped;
    for (size_t i = 0; i < current.size(); ++i) {
      TileBuffer buffer = next[i];
      buffer.pointer = carried[scalarCount + 2 * i + 1];
      destinations.push_back(buffer);
      swapped.append(
          {carried[scalarCount + 2 * i + 1], carried[scalarCount + 2 * i]});
    }
    runYielding(combine, destinations, yielded);
    llvm::append_range(yielded, swapped);
    b.create<scf::YieldOp>(emit.loc, yielded);
  }
  size_t scalarNumber = 0, tileNumber = 0;
  for (Value result : op.getResults()) {
    if (isTile(result)) {
      TileBuffer buffer = current[tileNumber];
      buffer.pointer = loop.getResult(scalarCount + 2 * tileNumber++);
      setBuffer(result, buffer);
    } else {
      setScalar(result, loop.getResult(scalarNumber++));
    }
  }
}

} // namespace tessera
