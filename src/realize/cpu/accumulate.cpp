//===- accumulate.cpp - Reductions, scans and contractions in a nest ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Unordered reductions with a cheap combiner start every lane from the
// identity; all others carry, with the value, whether there was an element yet,
// so that the first element enters unchanged and an ordered result is exact to
// the last bit.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/combination.h"
#include "realize/cpu/elementwise.h"
#include "realize/cpu/nest.h"
#include "realize/cpu/sort.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using tessera::tile::Combiner;
using tessera::tile::Order;

namespace tessera {

namespace {

/// `masked ? updated : old` for each value of a state under the nest's mask.
SmallVector<Value> keepInactive(NestEmitter &nest, ValueRange updated,
                                ValueRange old) {
  SmallVector<Value> result(updated.begin(), updated.end());
  if (nest.mask && nest.lanes > 1)
    for (auto [value, before] : llvm::zip(result, old))
      value = nest.emit.select(nest.mask, value, before);
  return result;
}

/// Sum, product, max, min and bit combiners in any order.
class FreeReduction : public Accumulator {
public:
  /// `input` is what is combined: the op's own input or another tile.
  FreeReduction(tile::ReduceOp reduce, Value input, const Target &target)
      : input(input), combiner(reduce.getCombiner()),
        element(tile::getElement(input.getType())),
        hasExactExtrema(target.hasExactExtrema) {
    op = reduce;
  }

  // max and min of floats are computed by the machine's instruction; where that
  // drops a NaN, one that was seen is kept beside.
  bool tracksNaN() const {
    return isa<FloatType>(element) && !hasExactExtrema &&
           (combiner == Combiner::Max || combiner == Combiner::Min);
  }

  SmallVector<Type> types(int64_t lanes) override {
    return SmallVector<Type>(tracksNaN() ? 2 : 1, laneType(element, lanes));
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    SmallVector<Value> state{emitIdentity(nest.emit, combiner, element, lanes)};
    if (tracksNaN())
      state.push_back(nest.emit.zero(laneType(element, lanes)));
    return state;
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    Value x = nest.emit.splat(nest.value(input), nest.lanes);
    SmallVector<Value> next{combine(nest, state[0], x)};
    if (tracksNaN())
      next.push_back(nest.emit.select(nest.emit.isNaN(x), x, state[1]));
    return keepInactive(nest, next, state);
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange b) override {
    SmallVector<Value> merged{combine(nest, a[0], b[0])};
    if (tracksNaN())
      merged.push_back(nest.emit.select(nest.emit.isNaN(b[1]), b[1], a[1]));
    return merged;
  }

  SmallVector<Value> finish(NestEmitter &nest, ValueRange state) override {
    if (!tracksNaN())
      return {state[0]};
    return {nest.emit.select(nest.emit.isNaN(state[1]), state[1], state[0])};
  }

private:
  Value combine(NestEmitter &nest, Value a, Value b) {
    if (!tracksNaN())
      return emitCombine(nest.emit, combiner, a, b);
    auto better = combiner == Combiner::Max ? arith::CmpFPredicate::OGT
                                            : arith::CmpFPredicate::OLT;
    return nest.emit.select(nest.emit.compare(better, b, a), b, a);
  }

  Value input;
  Combiner combiner;
  Type element;
  bool hasExactExtrema;
};

/// Any combiner, exactly: the state is the value and whether there is one.
class ExactReduction : public Accumulator {
public:
  explicit ExactReduction(tile::ReduceOp reduce)
      : combination(reduce), order(reduce.getOrder()) {
    op = reduce;
  }

  SmallVector<Type> types(int64_t lanes) override {
    SmallVector<Type> list = combination.types(lanes);
    list.push_back(laneType(IntegerType::get(op->getContext(), 1), lanes));
    return list;
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    SmallVector<Value> state = combination.empty(nest, lanes);
    state.push_back(nest.emit.boolean(lanes, false));
    return state;
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    SmallVector<Value> x = combination.inputs(nest);
    x.push_back(nest.emit.boolean(nest.lanes, true));
    SmallVector<Value> next =
        order == Order::Right ? join(nest, x, state) : join(nest, state, x);
    return keepInactive(nest, next, state);
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange b) override {
    return join(nest, a, b);
  }

  SmallVector<Value> finish(NestEmitter &, ValueRange state) override {
    return SmallVector<Value>(state.drop_back());
  }

  bool isReversed() const override { return order == Order::Right; }

private:
  /// combine(a, b) where both exist, else the one that does.
  SmallVector<Value> join(NestEmitter &nest, ValueRange a, ValueRange b) {
    VectorEmitter &emit = nest.emit;
    SmallVector<Value> both =
        combination.combine(nest, a.drop_back(), b.drop_back());
    SmallVector<Value> result;
    for (size_t i = 0; i < both.size(); ++i)
      result.push_back(
          emit.select(a.back(), emit.select(b.back(), both[i], a[i]), b[i]));
    result.push_back(emit.logicalOr(a.back(), b.back()));
    return result;
  }

  Combination<tile::ReduceOp> combination;
  Order order;
};

/// An ordered tree: the state is the number of elements so far.
class TreeReduction : public Accumulator {
public:
  explicit TreeReduction(tile::ReduceOp reduce) : combination(reduce) {
    op = reduce;
  }

  SmallVector<Type> types(int64_t) override {
    return {IntegerType::get(op->getContext(), 64)};
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    stacks[nest.copy] =
        std::make_unique<TreeStack>(nest.r, combination.types(lanes));
    return {nest.emit.integer(nest.b.getI64Type(), 0)};
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    return {stacks[nest.copy]->push(state[0], combination.inputs(nest),
                                    combiner(nest))};
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange) override {
    nest.r.fail(op, "internal.tree", "an ordered tree was split");
    return SmallVector<Value>(a);
  }

  SmallVector<Value> finish(NestEmitter &nest, ValueRange state) override {
    return stacks[nest.copy]->total(
        state[0], combination.empty(nest, nest.lanes), combiner(nest));
  }

private:
  TreeStack::Combine combiner(NestEmitter &nest) {
    return [this, &nest](ValueRange a, ValueRange b) {
      return combination.combine(nest, a, b);
    };
  }

  Combination<tile::ReduceOp> combination;
  llvm::DenseMap<int64_t, std::unique_ptr<TreeStack>> stacks;
};

/// A scan in a fixed direction: each step also writes its element of the
/// result.
class Scan : public Accumulator {
public:
  explicit Scan(tile::ScanOp scan)
      : scan(scan), combination(scan), reversed(scan.getReverse()) {
    op = scan;
  }

  SmallVector<Type> types(int64_t lanes) override {
    SmallVector<Type> list = combination.types(lanes);
    list.push_back(laneType(IntegerType::get(op->getContext(), 1), lanes));
    return list;
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    SmallVector<Value> state = combination.empty(nest, lanes);
    state.push_back(nest.emit.boolean(lanes, false));
    return state;
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    VectorEmitter &emit = nest.emit;
    SmallVector<Value> x = combination.inputs(nest);
    SmallVector<Value> joined =
        scan.getReverse() ? combination.combine(nest, x, state.drop_back())
                          : combination.combine(nest, state.drop_back(), x);
    for (size_t i = 0; i < joined.size(); ++i)
      joined[i] = emit.select(state.back(), joined[i], x[i]);
    for (size_t i = 0; i < joined.size(); ++i)
      nest.writeBuffer(*nest.r.findBuffer(scan.getResults()[i]),
                       scan.getExclusive() ? state[i] : joined[i]);
    joined.push_back(emit.boolean(nest.lanes, true));
    return joined;
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange) override {
    nest.r.fail(op, "internal.scan", "a scan was split");
    return SmallVector<Value>(a);
  }

  SmallVector<Value> finish(NestEmitter &, ValueRange) override { return {}; }

  bool isReversed() const override { return reversed; }

private:
  tile::ScanOp scan;
  Combination<tile::ScanOp> combination;
  bool reversed;
};

/// A scan a vector at a time: prefixes inside the vector by doubling distances,
/// then the result of all earlier elements, which every lane holds.
class FreeScan : public Accumulator {
public:
  explicit FreeScan(tile::ScanOp scan)
      : scan(scan), combiner(scan.getCombiner()),
        element(tile::getElement(scan.getInputs()[0].getType())) {
    op = scan;
  }

  SmallVector<Type> types(int64_t lanes) override {
    return {laneType(element, lanes)};
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    return {emitIdentity(nest.emit, combiner, element, lanes)};
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    VectorEmitter &emit = nest.emit;
    Value x = emit.splat(nest.value(scan.getInputs()[0]), nest.lanes);
    Value carry = state[0];
    // With lanes over another dimension each lane is a scan of its own.
    int64_t lanes = nest.isVectorDim(scan.getAlongAttr()) ? nest.lanes : 1;
    Value identity = emitIdentity(emit, combiner, element, nest.lanes);
    if (lanes > 1 && nest.mask)
      x = emit.select(nest.mask, x, identity);
    for (int64_t distance = 1; distance < lanes; distance *= 2) {
      SmallVector<int32_t> order(lanes);
      for (int64_t lane = 0; lane < lanes; ++lane)
        order[lane] = lane < distance ? lanes : lane - distance;
      x = emitCombine(emit, combiner, emit.shuffle(x, identity, order), x);
    }
    Value result = emitCombine(emit, combiner, carry, x);
    nest.writeBuffer(*nest.r.findBuffer(scan.getResults()[0]), result);
    if (lanes == 1)
      return {result};
    Value total = emit.shuffle(x, SmallVector<int32_t>(lanes, lanes - 1));
    return {emitCombine(emit, combiner, carry, total)};
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange) override {
    nest.r.fail(op, "internal.scan", "a scan was split");
    return SmallVector<Value>(a);
  }

  SmallVector<Value> finish(NestEmitter &, ValueRange) override { return {}; }

  bool isSequential() const override { return true; }

private:
  tile::ScanOp scan;
  Combiner combiner;
  Type element;
};

/// The best element so far and its position; -1 while there is none.
class ArgReduction : public Accumulator {
public:
  explicit ArgReduction(tile::ArgReduceOp reduce) : reduce(reduce) {
    op = reduce;
    Combiner combiner = reduce.getCombiner();
    isMax = combiner == Combiner::Max || combiner == Combiner::UMax;
    isUnsigned = combiner == Combiner::UMax || combiner == Combiner::UMin;
  }

  SmallVector<Type> types(int64_t lanes) override {
    return {laneType(tile::getElement(reduce.getInput().getType()), lanes),
            laneType(IntegerType::get(op->getContext(), 64), lanes)};
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    SmallVector<Type> list = types(lanes);
    return {nest.emit.zero(list[0]), nest.emit.integer(list[1], -1)};
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    VectorEmitter &emit = nest.emit;
    Value x = emit.splat(nest.value(reduce.getInput()), nest.lanes);
    StringAttr along = reduce.getAlongAttr();
    Value position = emit.toI64(nest.coordinate(along));
    if (nest.isVectorDim(along))
      position = emit.add(emit.splat(position, nest.lanes),
                          emit.laneNumbers(nest.lanes));
    // Positions rise, so only a strictly better element replaces.
    Value better = emitBefore(emit, x, state[0], isMax, isUnsigned);
    Value replace = emit.logicalOr(isNone(nest, state[1]), better);
    return keepInactive(nest,
                        {emit.select(replace, x, state[0]),
                         emit.select(replace, position, state[1])},
                        state);
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange b) override {
    VectorEmitter &emit = nest.emit;
    Value bBefore = emitBefore(emit, b[0], a[0], isMax, isUnsigned);
    Value aBefore = emitBefore(emit, a[0], b[0], isMax, isUnsigned);
    Value lower = emit.compare(arith::CmpIPredicate::slt, b[1], a[1]);
    Value tieLower = emit.logicalAnd(emit.logicalNot(aBefore), lower);
    Value better = emit.logicalOr(bBefore, tieLower);
    Value exists = emit.logicalNot(isNone(nest, b[1]));
    Value replace =
        emit.logicalOr(isNone(nest, a[1]), emit.logicalAnd(exists, better));
    return {emit.select(replace, b[0], a[0]), emit.select(replace, b[1], a[1])};
  }

  SmallVector<Value> finish(NestEmitter &, ValueRange state) override {
    return {state[1]};
  }

private:
  Value isNone(NestEmitter &nest, Value position) {
    return nest.emit.compare(arith::CmpIPredicate::slt, position,
                             nest.emit.zero(position.getType()));
  }

  tile::ArgReduceOp reduce;
  bool isMax = false, isUnsigned = false;
};

/// acc = fma(a, b, acc).
class Contraction : public Accumulator {
public:
  explicit Contraction(tile::ContractOp contract)
      : contract(contract),
        element(tile::getElement(contract.getResult().getType())),
        reversed(contract.getOrder() == Order::Right) {
    op = contract;
  }

  SmallVector<Type> types(int64_t lanes) override {
    return {laneType(element, lanes)};
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes,
                             bool isFirst) override {
    Value zero = nest.emit.zero(laneType(element, lanes));
    if (nest.atomOperands() && nest.atomOperands()->isShifted()) {
      Value begin = nest.emit.splat(nest.shiftCorrection(contract), lanes);
      if (!contract.getAcc() || nest.isPart())
        return {begin};
      return {nest.emit.add(
          begin, nest.emit.splat(nest.value(contract.getAcc()), lanes))};
    }
    // The accumulator belongs to one lane of one of the partial sums.
    if (!contract.getAcc() || nest.isPart() || (isPartial(nest) && !isFirst))
      return {zero};
    Value acc = nest.value(contract.getAcc());
    if (isPartial(nest))
      return {nest.emit.select(nest.emit.prefixMask(nest.emit.index(1), lanes),
                               nest.emit.splat(acc, lanes), zero)};
    return {nest.emit.splat(acc, lanes)};
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    VectorEmitter &emit = nest.emit;
    if (nest.atomOperands())
      return {nest.atomStep(contract, state[0])};
    Value x = emit.splat(nest.value(contract.getLhs()), nest.lanes);
    Value y = emit.splat(nest.value(contract.getRhs()), nest.lanes);
    Value next;
    if (isa<FloatType>(element) &&
        (emit.target.hasFma || contract.getOrder() != Order::Unordered))
      next = nest.b.create<math::FmaOp>(emit.loc, x, y, state[0]);
    else if (isa<FloatType>(element))
      next = emitCombine(emit, Combiner::Add,
                         emitCombine(emit, Combiner::Mul, x, y), state[0]);
    else
      next = emit.add(emit.mul(x, y), state[0]);
    // Lanes of results of their own are not looked at where they are inactive.
    return isPartial(nest) ? keepInactive(nest, next, state)
                           : SmallVector<Value>{next};
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange b) override {
    return {emitCombine(nest.emit, Combiner::Add, a[0], b[0])};
  }

  SmallVector<Value> finish(NestEmitter &, ValueRange state) override {
    return {state[0]};
  }

  bool isReversed() const override { return reversed; }

private:
  /// Whether the lanes lie along a reduced dimension, and hold partial sums.
  bool isPartial(const NestEmitter &nest) const {
    tile::ContractOp op = contract;
    return llvm::any_of(op.getOver(), [&](Attribute dim) {
      return nest.isVectorDim(cast<StringAttr>(dim));
    });
  }

  tile::ContractOp contract;
  Type element;
  bool reversed;
};

/// A contraction in tree order: the accumulator plus the tree of the products.
class TreeContraction : public Accumulator {
public:
  explicit TreeContraction(tile::ContractOp contract)
      : contract(contract),
        element(tile::getElement(contract.getResult().getType())) {
    op = contract;
  }

  SmallVector<Type> types(int64_t) override {
    return {IntegerType::get(op->getContext(), 64)};
  }

  SmallVector<Value> initial(NestEmitter &nest, int64_t lanes, bool) override {
    stacks[nest.copy] = std::make_unique<TreeStack>(
        nest.r, SmallVector<Type>{laneType(element, lanes)});
    return {nest.emit.integer(nest.b.getI64Type(), 0)};
  }

  SmallVector<Value> step(NestEmitter &nest, ValueRange state) override {
    Value x = nest.emit.splat(nest.value(contract.getLhs()), nest.lanes);
    Value y = nest.emit.splat(nest.value(contract.getRhs()), nest.lanes);
    Value product = emitCombine(nest.emit, Combiner::Mul, x, y);
    return {stacks[nest.copy]->push(state[0], {product}, adder(nest))};
  }

  SmallVector<Value> merge(NestEmitter &nest, ValueRange a,
                           ValueRange) override {
    nest.r.fail(op, "internal.tree", "an ordered tree was split");
    return SmallVector<Value>(a);
  }

  SmallVector<Value> finish(NestEmitter &nest, ValueRange state) override {
    VectorEmitter &emit = nest.emit;
    Value zero = emit.zero(laneType(element, nest.lanes));
    SmallVector<Value> total =
        stacks[nest.copy]->total(state[0], {zero}, adder(nest));
    Value acc = contract.getAcc()
                    ? emit.splat(nest.value(contract.getAcc()), nest.lanes)
                    : zero;
    Value isEmpty = emit.compare(arith::CmpIPredicate::eq, state[0],
                                 emit.integer(nest.b.getI64Type(), 0));
    Value sum = emitOrderedCombine(emit, Combiner::Add, acc, total[0]);
    return {emit.select(isEmpty, acc, sum)};
  }

private:
  TreeStack::Combine adder(NestEmitter &nest) {
    return [&nest](ValueRange a, ValueRange b) {
      return SmallVector<Value>{
          emitOrderedCombine(nest.emit, Combiner::Add, a[0], b[0])};
    };
  }

  tile::ContractOp contract;
  Type element;
  llvm::DenseMap<int64_t, std::unique_ptr<TreeStack>> stacks;
};

} // namespace

std::unique_ptr<Accumulator>
makeAccumulator(const Root &root, const Phase &phase, const Target &target) {
  switch (root.kind) {
  case Root::Kind::Reduce: {
    auto reduce = cast<tile::ReduceOp>(root.op);
    // Of sums about a reference, the one of deviations stands for all that are
    // computed from it (join.cpp).
    if (root.dependence.form == Dependence::Form::Deviation)
      return nullptr;
    Value input = reduce.getInputs()[0];
    if (phase.join && phase.join->law == Law::Powers &&
        phase.join->first == reduce)
      input = phase.join->deviation;
    Combiner combiner = reduce.getCombiner();
    if (reduce.getOrder() == Order::Tree)
      return std::make_unique<TreeReduction>(reduce);
    if (reduce.getOrder() != Order::Unordered || combiner == Combiner::Custom ||
        combiner == Combiner::MaxNum || combiner == Combiner::MinNum)
      return std::make_unique<ExactReduction>(reduce);
    return std::make_unique<FreeReduction>(reduce, input, target);
  }
  case Root::Kind::ArgReduce:
    return std::make_unique<ArgReduction>(cast<tile::ArgReduceOp>(root.op));
  case Root::Kind::Contract: {
    auto contract = cast<tile::ContractOp>(root.op);
    if (contract.getOrder() == Order::Tree)
      return std::make_unique<TreeContraction>(contract);
    return std::make_unique<Contraction>(contract);
  }
  case Root::Kind::Scan: {
    auto scan = cast<tile::ScanOp>(root.op);
    if (isFreeScan(scan))
      return std::make_unique<FreeScan>(scan);
    return std::make_unique<Scan>(scan);
  }
  case Root::Kind::Store:
  case Root::Kind::Scatter:
  case Root::Kind::Sort:
  case Root::Kind::Materialize:
    break;
  }
  return nullptr;
}

} // namespace tessera
