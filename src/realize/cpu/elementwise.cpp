//===- elementwise.cpp - Elementwise Tile ops on lanes --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream ops whose meaning on vectors is the one wanted are repeated on the
// lanes. The others are expanded here: LLVM's forms scalarize, are undefined at
// the edges, or are looser than docs/semantics.md.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/elementwise.h"

#include "dialect/tile_op_lists.h"

#include <cmath>
#include <limits>

using namespace mlir;
using FloatPredicate = arith::CmpFPredicate;
using IntPredicate = arith::CmpIPredicate;

namespace tessera {

namespace {

/// max or min that propagates NaN and orders -0 below +0.
Value exactExtremum(VectorEmitter &emit, Value a, Value b, bool isMax) {
  if (emit.target.hasExactExtrema)
    return isMax ? emit.b.create<arith::MaximumFOp>(emit.loc, a, b).getResult()
                 : emit.b.create<arith::MinimumFOp>(emit.loc, a, b).getResult();
  FloatPredicate better = isMax ? FloatPredicate::OGT : FloatPredicate::OLT;
  Value first = emit.select(emit.compare(better, a, b), a, b);
  Value second = emit.select(emit.compare(better, b, a), b, a);
  // Equal operands differ at most in the sign of zero: `first` is then b and
  // `second` is a, and combining their bits picks the wanted zero.
  Type integer = emit.b.getIntegerType(elementOf(a).getIntOrFloatBitWidth());
  Value x = emit.bitcast(first, integer), y = emit.bitcast(second, integer);
  Value bits = isMax ? emit.b.create<arith::AndIOp>(emit.loc, x, y).getResult()
                     : emit.b.create<arith::OrIOp>(emit.loc, x, y).getResult();
  Value picked = emit.bitcast(bits, elementOf(a));
  Value nan = emit.b.create<arith::AddFOp>(emit.loc, a, b);
  return emit.select(emit.compare(FloatPredicate::UNO, a, b), nan, picked);
}

/// max or min that returns the other operand when one is NaN.
Value numberExtremum(VectorEmitter &emit, Value a, Value b, bool isMax) {
  Value picked = exactExtremum(emit, a, b, isMax);
  picked = emit.select(emit.isNaN(a), b, picked);
  return emit.select(emit.isNaN(b), a, picked);
}

class Elementwise {
public:
  Elementwise(VectorEmitter &emit, SmallVector<Value> operands)
      : emit(emit), v(std::move(operands)) {}

  // Ops that mean on lanes what they mean on tiles.
  template <typename Op> Value same(Op op) {
    OperationState state(emit.loc, op->getName());
    state.addOperands(v);
    state.addAttributes(op->getAttrs());
    int64_t lanes = v.empty() ? 1 : lanesOf(v[0]);
    Type element = tile::getElement(op->getResult(0).getType());
    // Vectors hold index elements as i64.
    if (element.isIndex() && lanes > 1)
      element = emit.b.getI64Type();
    state.addTypes(laneType(element, lanes));
    return emit.b.create(state)->getResult(0);
  }
#define TESSERA_SAME(Op)                                                       \
  Value visit(Op op) { return same(op); }
  TESSERA_SAME(arith::ConstantOp)
  TESSERA_SAME(arith::AddFOp)
  TESSERA_SAME(arith::SubFOp)
  TESSERA_SAME(arith::MulFOp)
  TESSERA_SAME(arith::DivFOp)
  TESSERA_SAME(arith::NegFOp)
  TESSERA_SAME(arith::CmpFOp)
  TESSERA_SAME(arith::AddIOp)
  TESSERA_SAME(arith::SubIOp)
  TESSERA_SAME(arith::MulIOp)
  TESSERA_SAME(arith::AndIOp)
  TESSERA_SAME(arith::OrIOp)
  TESSERA_SAME(arith::XOrIOp)
  TESSERA_SAME(arith::MaxSIOp)
  TESSERA_SAME(arith::MinSIOp)
  TESSERA_SAME(arith::MaxUIOp)
  TESSERA_SAME(arith::MinUIOp)
  TESSERA_SAME(arith::CmpIOp)
  TESSERA_SAME(math::AbsFOp)
  TESSERA_SAME(math::AbsIOp)
  TESSERA_SAME(math::CeilOp)
  TESSERA_SAME(math::CosOp)
  TESSERA_SAME(math::ErfOp)
  TESSERA_SAME(math::ExpOp)
  TESSERA_SAME(math::Exp2Op)
  TESSERA_SAME(math::ExpM1Op)
  TESSERA_SAME(math::FloorOp)
  TESSERA_SAME(math::FmaOp)
  TESSERA_SAME(math::LogOp)
  TESSERA_SAME(math::Log1pOp)
  TESSERA_SAME(math::Log2Op)
  TESSERA_SAME(math::RoundEvenOp)
  TESSERA_SAME(math::RsqrtOp)
  TESSERA_SAME(math::SinOp)
  TESSERA_SAME(math::SqrtOp)
  TESSERA_SAME(math::TanhOp)
  TESSERA_SAME(math::TruncOp)
  TESSERA_SAME(tile::SigmoidOp)
#undef TESSERA_SAME

  Value visit(arith::IndexCastOp op) {
    Type to = tile::getElement(op.getType());
    if (lanesOf(v[0]) == 1)
      return emit.b.createOrFold<arith::IndexCastOp>(emit.loc, to, v[0]);
    return convert(elementOf(v[0]), to.isIndex() ? emit.b.getI64Type() : to,
                   /*unsignedFrom=*/false, /*unsignedTo=*/false);
  }
  Value visit(arith::SelectOp) { return emit.select(v[0], v[1], v[2]); }
  Value visit(arith::MaximumFOp) {
    return exactExtremum(emit, v[0], v[1], /*isMax=*/true);
  }
  Value visit(arith::MinimumFOp) {
    return exactExtremum(emit, v[0], v[1], /*isMax=*/false);
  }
  Value visit(tile::MaxNumOp) { return numberExtremum(emit, v[0], v[1], true); }
  Value visit(tile::MinNumOp) {
    return numberExtremum(emit, v[0], v[1], false);
  }

  Value visit(tile::DivOp op) { return divide(op.getIsUnsigned(), true); }
  Value visit(tile::RemOp op) { return divide(op.getIsUnsigned(), false); }

  Value visit(tile::ShlOp) {
    Value safe = amountInRange();
    Value shifted = create<arith::ShLIOp>(v[0], safeAmount(safe));
    return emit.select(safe, shifted, emit.zero(shifted.getType()));
  }
  Value visit(tile::ShrOp op) {
    Value safe = amountInRange();
    if (op.getIsUnsigned()) {
      Value shifted = create<arith::ShRUIOp>(v[0], safeAmount(safe));
      return emit.select(safe, shifted, emit.zero(shifted.getType()));
    }
    Value last = emit.integer(v[1].getType(), width() - 1);
    return create<arith::ShRSIOp>(v[0], emit.select(safe, v[1], last));
  }

  Value visit(tile::RoundToOp op) {
    if (op.getType().isF32()) {
      if (!elementOf(v[0]).isF64())
        return v[0];
      Type f32 = laneType(emit.b.getF32Type(), lanesOf(v[0]));
      Value rounded = create<arith::TruncFOp>(f32, v[0]);
      return create<arith::ExtFOp>(v[0].getType(), rounded);
    }
    if (!elementOf(v[0]).isF64())
      return emit.widen(emit.narrow(v[0], op.getType()), op.getType());
    Value rounded =
        emit.widen(emit.narrow(roundToOdd(), op.getType()), op.getType());
    return create<arith::ExtFOp>(v[0].getType(), rounded);
  }

  Value visit(tile::CastOp op) {
    Type from = elementOf(v[0]);
    Type to = tile::getElement(op.getResult().getType());
    if (from.isIndex()) {
      v[0] = emit.toI64(v[0]);
      from = emit.b.getI64Type();
    }
    bool toIndex = to.isIndex();
    if (toIndex)
      to = emit.b.getI64Type();
    Value result = convert(from, to, op.getUnsignedFrom(), op.getUnsignedTo());
    if (!toIndex || lanesOf(result) > 1)
      return result;
    return emit.b.createOrFold<arith::IndexCastOp>(
        emit.loc, laneType(emit.b.getIndexType(), lanesOf(result)), result);
  }

  // Not elementwise.
#define TESSERA_OTHER(Op)                                                      \
  Value visit(tile::Op) { return {}; }
  TESSERA_OTHER(KernelOp)
  TESSERA_OTHER(DimOp)
  TESSERA_OTHER(ExtentOp)
  TESSERA_OTHER(DimSizeOp)
  TESSERA_OTHER(ParallelOp)
  TESSERA_OTHER(SerialOp)
  TESSERA_OTHER(PipelineOp)
  TESSERA_OTHER(StageOp)
  TESSERA_OTHER(FoldOp)
  TESSERA_OTHER(IfOp)
  TESSERA_OTHER(YieldOp)
  TESSERA_OTHER(LoadOp)
  TESSERA_OTHER(StoreOp)
  TESSERA_OTHER(ScatterOp)
  TESSERA_OTHER(BroadcastOp)
  TESSERA_OTHER(TransposeOp)
  TESSERA_OTHER(ReshapeOp)
  TESSERA_OTHER(IotaOp)
  TESSERA_OTHER(GatherOp)
  TESSERA_OTHER(ReduceOp)
  TESSERA_OTHER(ScanOp)
  TESSERA_OTHER(ArgReduceOp)
  TESSERA_OTHER(SortOp)
  TESSERA_OTHER(ContractOp)
#undef TESSERA_OTHER

private:
  template <typename Op, typename... Args> Value create(Args &&...args) {
    return emit.b.create<Op>(emit.loc, std::forward<Args>(args)...);
  }

  /// f64 to f32 so that a second rounding, to a type with at least two bits
  /// less, gives what one rounding would: an inexact result gets an odd last
  /// bit.
  Value roundToOdd() {
    Type f32 = laneType(emit.b.getF32Type(), lanesOf(v[0]));
    Type i32 = emit.b.getI32Type();
    Value nearest = create<arith::TruncFOp>(f32, v[0]);
    Value back = create<arith::ExtFOp>(v[0].getType(), nearest);
    Value inexact = emit.compare(FloatPredicate::ONE, back, v[0]);
    Value away = emit.compare(FloatPredicate::OGT, create<math::AbsFOp>(back),
                              create<math::AbsFOp>(v[0]));
    Value bits = emit.bitcast(nearest, i32);
    Type lanes32 = bits.getType();
    Value one = emit.integer(lanes32, 1);
    Value towardZero =
        emit.select(away, create<arith::SubIOp>(bits, one), bits);
    Value odd = create<arith::OrIOp>(towardZero, one);
    return emit.bitcast(emit.select(inexact, odd, bits), emit.b.getF32Type());
  }

  int64_t width() const {
    Type element = elementOf(v[0]);
    return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  }

  Value amountInRange() {
    return emit.compare(IntPredicate::ult, v[1],
                        emit.integer(v[1].getType(), width()));
  }
  Value safeAmount(Value inRange) {
    return emit.select(inRange, v[1], emit.zero(v[1].getType()));
  }

  /// Division or remainder; a divisor of 0, and -1 for signed operands, are
  /// replaced by 1 before dividing and their results selected afterwards.
  Value divide(bool isUnsigned, bool isQuotient) {
    Type type = v[0].getType();
    Value zero = emit.zero(type), one = emit.integer(type, 1);
    Value isZero = emit.compare(IntPredicate::eq, v[1], zero);
    Value special = isZero, isMinusOne;
    if (!isUnsigned) {
      isMinusOne = emit.compare(IntPredicate::eq, v[1], emit.integer(type, -1));
      special = emit.logicalOr(isZero, isMinusOne);
    }
    Value divisor = emit.select(special, one, v[1]);
    Value result;
    if (isQuotient)
      result = isUnsigned ? create<arith::DivUIOp>(v[0], divisor)
                          : create<arith::DivSIOp>(v[0], divisor);
    else
      result = isUnsigned ? create<arith::RemUIOp>(v[0], divisor)
                          : create<arith::RemSIOp>(v[0], divisor);
    if (isMinusOne && isQuotient)
      result =
          emit.select(isMinusOne, create<arith::SubIOp>(zero, v[0]), result);
    return emit.select(isZero, zero, result);
  }

  Value convert(Type from, Type to, bool unsignedFrom, bool unsignedTo) {
    int64_t lanes = lanesOf(v[0]);
    Type type = laneType(to, lanes);
    if (to.isInteger(1)) {
      if (from.isInteger(1))
        return v[0];
      Value zero = emit.zero(v[0].getType());
      return isa<FloatType>(from)
                 ? emit.compare(FloatPredicate::UNE, v[0], zero)
                 : emit.compare(IntPredicate::ne, v[0], zero);
    }
    bool isUnsigned = unsignedFrom || from.isInteger(1);
    if (isa<FloatType>(to)) {
      if (isa<FloatType>(from)) {
        if (from == to)
          return v[0];
        return from.isF32() ? create<arith::ExtFOp>(type, v[0])
                            : create<arith::TruncFOp>(type, v[0]);
      }
      if (from.isInteger(64) && to.isF32() && lanes > 1 &&
          !emit.target.roundsInt64ToF32Once)
        v[0] = stickyInt64(isUnsigned);
      return isUnsigned ? create<arith::UIToFPOp>(type, v[0])
                        : create<arith::SIToFPOp>(type, v[0]);
    }
    if (isa<FloatType>(from))
      return saturate(to, type, unsignedTo);
    unsigned fromWidth = from.getIntOrFloatBitWidth();
    unsigned toWidth = to.getIntOrFloatBitWidth();
    if (fromWidth == toWidth)
      return v[0];
    if (toWidth < fromWidth)
      return create<arith::TruncIOp>(type, v[0]);
    return isUnsigned ? create<arith::ExtUIOp>(type, v[0])
                      : create<arith::ExtSIOp>(type, v[0]);
  }

  /// Integers that f64 holds, and that f32 rounds like those given: beyond
  /// 2^53, what the lower eleven bits hold is one odd bit above them.
  Value stickyInt64(bool isUnsigned) {
    Type type = v[0].getType();
    constexpr int64_t exact = int64_t(1) << 53, dropped = 0x7ff;
    Value upper = create<arith::AndIOp>(v[0], emit.integer(type, ~dropped));
    Value isMultiple = emit.compare(IntPredicate::eq, upper, v[0]);
    Value odd = create<arith::OrIOp>(upper, emit.integer(type, dropped + 1));
    Value sticky = emit.select(isMultiple, v[0], odd);
    // A signed number lies within +-2^53 where its distance from -2^53 is no
    // larger than 2^54.
    Value distance =
        isUnsigned ? v[0] : emit.add(v[0], emit.integer(type, exact));
    Value isExact =
        emit.compare(IntPredicate::ule, distance,
                     emit.integer(type, isUnsigned ? exact : 2 * exact));
    return emit.select(isExact, v[0], sticky);
  }

  /// Float to integer, truncating and saturating, NaN to 0. Only values inside
  /// the range reach the conversion instruction.
  Value saturate(Type to, Type type, bool isUnsigned) {
    unsigned bits = to.getIntOrFloatBitWidth();
    double low = isUnsigned ? 0.0 : -std::ldexp(1.0, bits - 1);
    double limit = std::ldexp(1.0, isUnsigned ? bits : bits - 1);
    Type floatType = v[0].getType();
    Value tooLow =
        emit.compare(isUnsigned ? FloatPredicate::OLE : FloatPredicate::OLT,
                     v[0], emit.floating(floatType, low));
    Value tooHigh = emit.compare(FloatPredicate::OGE, v[0],
                                 emit.floating(floatType, limit));
    Value outside =
        emit.logicalOr(emit.logicalOr(tooLow, tooHigh), emit.isNaN(v[0]));
    Value inside = emit.select(outside, emit.zero(floatType), v[0]);
    Value result = isUnsigned ? create<arith::FPToUIOp>(type, inside)
                              : create<arith::FPToSIOp>(type, inside);
    int64_t smallest = 0, largest = -1;
    if (!isUnsigned) {
      smallest = bits == 64 ? std::numeric_limits<int64_t>::min()
                            : -(int64_t(1) << (bits - 1));
      largest = ~smallest;
    }
    result = emit.select(tooLow, emit.integer(type, smallest), result);
    return emit.select(tooHigh, emit.integer(type, largest), result);
  }

  VectorEmitter &emit;
  SmallVector<Value> v;
};

} // namespace

bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() || isa<arith::ConstantOp>(op);
}

Value emitElementwise(VectorEmitter &emit, Operation *op, ValueRange operands) {
  SmallVector<Value> values(operands.begin(), operands.end());
  emit.unify(values);
  // A comparison's lanes never hold `index`, which vectors do not allow.
  if (llvm::any_of(
          values, [](Value value) { return isa<VectorType>(value.getType()); }))
    for (Value &value : values)
      value = emit.toI64(value);
  return tile::dispatchOp(op, Elementwise(emit, std::move(values)), Value());
}

Value emitCombine(VectorEmitter &emit, tile::Combiner combiner, Value a,
                  Value b) {
  auto create = [&]<typename Op>() -> Value {
    return emit.b.create<Op>(emit.loc, a, b);
  };
  bool isFloat = isa<FloatType>(elementOf(a));
  switch (combiner) {
  case tile::Combiner::Add:
    return isFloat ? create.operator()<arith::AddFOp>()
                   : create.operator()<arith::AddIOp>();
  case tile::Combiner::Mul:
    return isFloat ? create.operator()<arith::MulFOp>()
                   : create.operator()<arith::MulIOp>();
  case tile::Combiner::Max:
    return isFloat ? exactExtremum(emit, a, b, true)
                   : create.operator()<arith::MaxSIOp>();
  case tile::Combiner::Min:
    return isFloat ? exactExtremum(emit, a, b, false)
                   : create.operator()<arith::MinSIOp>();
  case tile::Combiner::MaxNum:
    return numberExtremum(emit, a, b, true);
  case tile::Combiner::MinNum:
    return numberExtremum(emit, a, b, false);
  case tile::Combiner::UMax:
    return create.operator()<arith::MaxUIOp>();
  case tile::Combiner::UMin:
    return create.operator()<arith::MinUIOp>();
  case tile::Combiner::And:
    return create.operator()<arith::AndIOp>();
  case tile::Combiner::Or:
    return create.operator()<arith::OrIOp>();
  case tile::Combiner::Xor:
    return create.operator()<arith::XOrIOp>();
  case tile::Combiner::Custom:
    break;
  }
  return {};
}

Value emitOrderedCombine(VectorEmitter &emit, tile::Combiner combiner, Value a,
                         Value b) {
  Value result = emitCombine(emit, combiner, a, b);
  if (Operation *op = result.getDefiningOp())
    op->setAttr("tessera.ordered", emit.b.getUnitAttr());
  return result;
}

Value emitEmpty(VectorEmitter &emit, tile::Combiner combiner, Type element,
                int64_t lanes) {
  double infinity = std::numeric_limits<double>::infinity();
  Type type = laneType(element, lanes);
  if (combiner == tile::Combiner::MaxNum)
    return emit.floating(type, -infinity);
  if (combiner == tile::Combiner::MinNum)
    return emit.floating(type, infinity);
  return emitIdentity(emit, combiner, element, lanes);
}

Value emitIdentity(VectorEmitter &emit, tile::Combiner combiner, Type element,
                   int64_t lanes) {
  Type type = laneType(element, lanes);
  double infinity = std::numeric_limits<double>::infinity();
  if (isa<FloatType>(element)) {
    switch (combiner) {
    case tile::Combiner::Mul:
      return emit.floating(type, 1.0);
    case tile::Combiner::Max:
      return emit.floating(type, -infinity);
    case tile::Combiner::Min:
      return emit.floating(type, infinity);
    case tile::Combiner::MaxNum:
    case tile::Combiner::MinNum:
      return emit.floating(type, std::numeric_limits<double>::quiet_NaN());
    default:
      return emit.zero(type);
    }
  }
  unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  int64_t smallest = bits == 64 ? std::numeric_limits<int64_t>::min()
                                : -(int64_t(1) << (bits - 1));
  switch (combiner) {
  case tile::Combiner::Mul:
    return emit.integer(type, 1);
  case tile::Combiner::Max:
    return emit.integer(type, smallest);
  case tile::Combiner::Min:
    return emit.integer(type, ~smallest);
  case tile::Combiner::UMin:
  case tile::Combiner::And:
    return emit.integer(type, -1);
  default:
    return emit.zero(type);
  }
}

} // namespace tessera
