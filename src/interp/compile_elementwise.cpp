//===- compile_elementwise.cpp - Translation of elementwise ops -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/compiler.h"
#include "interp/elementwise.h"

using namespace mlir;

namespace tessera::interp {

bool Compiler::emitUnary(Operation *op, FloatUnary unary) {
  Slot x = slotOf(op->getOperand(0)), result = slotOf(op->getResult(0));
  emit([&m = machine, unary, x, result] {
    return mapUnary(m.context, unary, m.slots[x], m.slots[result]);
  });
  return true;
}

bool Compiler::emitBinary(Operation *op, FloatBinary binary) {
  Slot a = slotOf(op->getOperand(0)), b = slotOf(op->getOperand(1));
  Slot result = slotOf(op->getResult(0));
  emit([&m = machine, binary, a, b, result] {
    return mapBinary(m.context, binary, m.slots[a], m.slots[b],
                     m.slots[result]);
  });
  return true;
}

bool Compiler::emitBinary(Operation *op, IntBinary binary) {
  Slot a = slotOf(op->getOperand(0)), b = slotOf(op->getOperand(1));
  Slot result = slotOf(op->getResult(0));
  emit([&m = machine, binary, a, b, result] {
    return mapBinary(m.context, binary, m.slots[a], m.slots[b],
                     m.slots[result]);
  });
  return true;
}

#define TESSERA_MAP(Op, Entry)                                                 \
  bool Compiler::visit(Op op) { return Entry; }

#define TESSERA_FLOAT_UNARY(Op, Name)                                          \
  TESSERA_MAP(Op, emitUnary(op, FloatUnary::Name))
TESSERA_FLOAT_UNARY(arith::NegFOp, Neg)
TESSERA_FLOAT_UNARY(math::AbsFOp, Abs)
TESSERA_FLOAT_UNARY(math::CeilOp, Ceil)
TESSERA_FLOAT_UNARY(math::CosOp, Cos)
TESSERA_FLOAT_UNARY(math::ErfOp, Erf)
TESSERA_FLOAT_UNARY(math::ExpOp, Exp)
TESSERA_FLOAT_UNARY(math::Exp2Op, Exp2)
TESSERA_FLOAT_UNARY(math::ExpM1Op, Expm1)
TESSERA_FLOAT_UNARY(math::FloorOp, Floor)
TESSERA_FLOAT_UNARY(math::LogOp, Log)
TESSERA_FLOAT_UNARY(math::Log1pOp, Log1p)
TESSERA_FLOAT_UNARY(math::Log2Op, Log2)
TESSERA_FLOAT_UNARY(math::RoundEvenOp, RoundEven)
TESSERA_FLOAT_UNARY(math::RsqrtOp, Rsqrt)
TESSERA_FLOAT_UNARY(math::SinOp, Sin)
TESSERA_FLOAT_UNARY(math::SqrtOp, Sqrt)
TESSERA_FLOAT_UNARY(math::TanhOp, Tanh)
TESSERA_FLOAT_UNARY(math::TruncOp, Trunc)
TESSERA_FLOAT_UNARY(tile::SigmoidOp, Sigmoid)
#undef TESSERA_FLOAT_UNARY

#define TESSERA_FLOAT_BINARY(Op, Name)                                         \
  TESSERA_MAP(Op, emitBinary(op, FloatBinary::Name))
TESSERA_FLOAT_BINARY(arith::AddFOp, Add)
TESSERA_FLOAT_BINARY(arith::SubFOp, Sub)
TESSERA_FLOAT_BINARY(arith::MulFOp, Mul)
TESSERA_FLOAT_BINARY(arith::DivFOp, Div)
TESSERA_FLOAT_BINARY(arith::MaximumFOp, Max)
TESSERA_FLOAT_BINARY(arith::MinimumFOp, Min)
TESSERA_FLOAT_BINARY(tile::MaxNumOp, MaxNum)
TESSERA_FLOAT_BINARY(tile::MinNumOp, MinNum)
#undef TESSERA_FLOAT_BINARY

#define TESSERA_INT_BINARY(Op, Name)                                           \
  TESSERA_MAP(Op, emitBinary(op, IntBinary::Name))
TESSERA_INT_BINARY(arith::AddIOp, Add)
TESSERA_INT_BINARY(arith::SubIOp, Sub)
TESSERA_INT_BINARY(arith::MulIOp, Mul)
TESSERA_INT_BINARY(arith::AndIOp, And)
TESSERA_INT_BINARY(arith::OrIOp, Or)
TESSERA_INT_BINARY(arith::XOrIOp, Xor)
TESSERA_INT_BINARY(arith::MaxSIOp, MaxS)
TESSERA_INT_BINARY(arith::MinSIOp, MinS)
TESSERA_INT_BINARY(arith::MaxUIOp, MaxU)
TESSERA_INT_BINARY(arith::MinUIOp, MinU)
TESSERA_INT_BINARY(tile::ShlOp, Shl)
#undef TESSERA_INT_BINARY

#define TESSERA_SIGNED_BINARY(Op, Signed, Unsigned)                            \
  TESSERA_MAP(Op, emitBinary(op, op.getIsUnsigned() ? IntBinary::Unsigned      \
                                                    : IntBinary::Signed))
TESSERA_SIGNED_BINARY(tile::DivOp, DivS, DivU)
TESSERA_SIGNED_BINARY(tile::RemOp, RemS, RemU)
TESSERA_SIGNED_BINARY(tile::ShrOp, ShrS, ShrU)
#undef TESSERA_SIGNED_BINARY
#undef TESSERA_MAP

bool Compiler::visit(math::FmaOp op) {
  Slot a = slotOf(op.getA()), b = slotOf(op.getB()), c = slotOf(op.getC());
  Slot result = slotOf(op.getResult());
  emit([&m = machine, a, b, c, result] {
    return mapFusedMultiplyAdd(m.context, m.slots[a], m.slots[b], m.slots[c],
                               m.slots[result]);
  });
  return true;
}

bool Compiler::visit(math::AbsIOp op) {
  Slot x = slotOf(op.getOperand()), result = slotOf(op.getResult());
  emit([&m = machine, x, result] {
    return mapAbsInt(m.context, m.slots[x], m.slots[result]);
  });
  return true;
}

static uint8_t comparisonOf(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return 0;
  case P::OEQ:
    return Equal;
  case P::OGT:
    return Greater;
  case P::OGE:
    return Greater | Equal;
  case P::OLT:
    return Less;
  case P::OLE:
    return Less | Equal;
  case P::ONE:
    return Less | Greater;
  case P::ORD:
    return Less | Equal | Greater;
  case P::UEQ:
    return Unordered | Equal;
  case P::UGT:
    return Unordered | Greater;
  case P::UGE:
    return Unordered | Greater | Equal;
  case P::ULT:
    return Unordered | Less;
  case P::ULE:
    return Unordered | Less | Equal;
  case P::UNE:
    return Unordered | Less | Greater;
  case P::UNO:
    return Unordered;
  case P::AlwaysTrue:
    return Unordered | Less | Equal | Greater;
  }
  return 0;
}

bool Compiler::visit(arith::CmpFOp op) {
  Slot a = slotOf(op.getLhs()), b = slotOf(op.getRhs());
  Slot result = slotOf(op.getResult());
  uint8_t comparison = comparisonOf(op.getPredicate());
  emit([&m = machine, comparison, a, b, result] {
    return compareFloats(m.context, comparison, m.slots[a], m.slots[b],
                         m.slots[result]);
  });
  return true;
}

static std::pair<uint8_t, bool> comparisonOf(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return {Equal, false};
  case P::ne:
    return {Less | Greater, false};
  case P::slt:
    return {Less, false};
  case P::sle:
    return {Less | Equal, false};
  case P::sgt:
    return {Greater, false};
  case P::sge:
    return {Greater | Equal, false};
  case P::ult:
    return {Less, true};
  case P::ule:
    return {Less | Equal, true};
  case P::ugt:
    return {Greater, true};
  case P::uge:
    return {Greater | Equal, true};
  }
  return {0, false};
}

bool Compiler::visit(arith::CmpIOp op) {
  Slot a = slotOf(op.getLhs()), b = slotOf(op.getRhs());
  Slot result = slotOf(op.getResult());
  auto [comparison, isUnsigned] = comparisonOf(op.getPredicate());
  emit([&m = machine, comparison = comparison, isUnsigned = isUnsigned, a, b,
        result] {
    return compareInts(m.context, comparison, isUnsigned, m.slots[a],
                       m.slots[b], m.slots[result]);
  });
  return true;
}

bool Compiler::visit(arith::SelectOp op) {
  Slot condition = slotOf(op.getCondition()), a = slotOf(op.getTrueValue());
  Slot b = slotOf(op.getFalseValue()), result = slotOf(op.getResult());
  emit([&m = machine, condition, a, b, result] {
    return selectTiles(m.context, m.slots[condition], m.slots[a], m.slots[b],
                       m.slots[result]);
  });
  return true;
}

bool Compiler::visit(arith::ConstantOp op) {
  if (!isa<FloatAttr, IntegerAttr>(op.getValue()))
    return machine.context.fail(
        ErrorFamily::Unsupported, "interpreter.constant",
        "found a constant that is not a scalar; expected a scalar and "
        "tile.broadcast");
  Kind kind = kindOf(op.getType());
  Slot result = slotOf(op.getResult());
  emit([&m = machine, kind, result,
        value = constantScalar(op.getValue(), kind)] {
    if (!m.slots[result].reset(m.context, kind, {}))
      return false;
    m.slots[result].set(0, value);
    return true;
  });
  return true;
}

bool Compiler::visit(arith::IndexCastOp op) {
  Slot x = slotOf(op.getIn()), result = slotOf(op.getOut());
  emit([&m = machine, kind = kindOf(op.getType()), x, result] {
    return indexCast(m.context, m.slots[x], kind, m.slots[result]);
  });
  return true;
}

bool Compiler::visit(tile::CastOp op) {
  Slot x = slotOf(op.getInput()), result = slotOf(op.getResult());
  bool from = op.getUnsignedFrom(), to = op.getUnsignedTo();
  emit([&m = machine, kind = kindOf(op.getResult().getType()), from, to, x,
        result] {
    return castTile(m.context, m.slots[x], kind, from, to, m.slots[result]);
  });
  return true;
}

bool Compiler::visit(tile::RoundToOp op) {
  Slot x = slotOf(op.getInput()), result = slotOf(op.getResult());
  emit([&m = machine, type = storageType(op.getType()), x, result] {
    return roundTile(m.context, m.slots[x], type, m.slots[result]);
  });
  return true;
}

} // namespace tessera::interp
