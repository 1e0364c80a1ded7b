//===- dsl/elementwise.cpp - Elementwise operations -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function finds the trace, brings its operands to one type and one set of
// dimensions, and creates one op. The line is that of the first operand.
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera {

namespace {

/// Which element types an operation is defined for.
enum Class : unsigned { Floats = 1, Integers = 2, Bools = 4 };

unsigned classOf(DType type) {
  if (type == DType::Bool)
    return Bools;
  return isFloat(type) ? Floats : Integers;
}

std::string spellClass(unsigned classes) {
  std::string text;
  for (auto [bit, word] :
       {std::pair(Floats, "a floating type"),
        std::pair(Integers, "an integer type"), std::pair(Bools, "bool")})
    if (classes & bit)
      text += (text.empty() ? "" : " or ") + std::string(word);
  return text;
}

/// Elementwise operands, ready for an op.
struct Operands {
  TraceContext &context;
  Site where;
  SmallVector<Value> values;
  DType dtype = DType::F32;

  Location loc() { return context.loc(where); }
  bool isFloatType() const { return isFloat(dtype); }
  bool isUnsignedType() const { return isUnsigned(dtype); }

  template <typename Op> Value create() {
    return context.builder.create<Op>(loc(), values);
  }
};

template <typename Create>
Tile elementwise(const char *what, unsigned classes,
                 std::initializer_list<const Arg *> args, Create create) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Operands operands{*context, (*args.begin())->where, {}, DType::F32};
  if (!context->unifyTypes(args, what, operands.values, operands.dtype))
    return context->poison(operands.where);
  if (!(classOf(operands.dtype) & classes))
    return context->fail(operands.where, "dsl.type",
                         concat(what, " is applied to ", name(operands.dtype),
                                ", expected ", spellClass(classes)));
  context->unifyDims(operands.values, operands.where);
  Value result = create(operands);
  bool isBool = tile::getElement(result.getType()).isInteger(1);
  return context->make(result, isBool ? DType::Bool : operands.dtype,
                       operands.where);
}

template <typename FloatOp, typename IntOp>
Tile arithmetic(const char *what, const Arg &a, const Arg &b) {
  return elementwise(what, Floats | Integers, {&a, &b}, [](Operands &operands) {
    return operands.isFloatType() ? operands.create<FloatOp>()
                                  : operands.create<IntOp>();
  });
}

/// An op of the dialect on integers, signed or not.
template <typename Op> Value integerOp(Operands &operands) {
  return operands.context.builder.create<Op>(operands.loc(), operands.values[0],
                                             operands.values[1],
                                             operands.isUnsignedType());
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
Tile extremum(const char *what, const Arg &a, const Arg &b) {
  return elementwise(what, Floats | Integers, {&a, &b}, [](Operands &operands) {
    if (operands.isFloatType())
      return operands.create<FloatOp>();
    return operands.isUnsignedType() ? operands.create<UnsignedOp>()
                                     : operands.create<SignedOp>();
  });
}

template <typename Op> Tile floatUnary(const char *what, const Arg &a) {
  return elementwise(what, Floats, {&a},
                     [](Operands &operands) { return operands.create<Op>(); });
}

Tile compare(const char *what, unsigned classes, const Arg &a, const Arg &b,
             arith::CmpFPredicate floats, arith::CmpIPredicate signedInts,
             arith::CmpIPredicate unsignedInts) {
  return elementwise(what, classes, {&a, &b}, [&](Operands &operands) -> Value {
    OpBuilder &builder = operands.context.builder;
    ArrayRef<Value> values = operands.values;
    if (operands.isFloatType())
      return builder.create<arith::CmpFOp>(operands.loc(), floats, values[0],
                                           values[1]);
    return builder.create<arith::CmpIOp>(
        operands.loc(), operands.isUnsignedType() ? unsignedInts : signedInts,
        values[0], values[1]);
  });
}

} // namespace

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Tile operator+(Arg a, Arg b) {
  return arithmetic<arith::AddFOp, arith::AddIOp>("'+'", a, b);
}
Tile operator-(Arg a, Arg b) {
  return arithmetic<arith::SubFOp, arith::SubIOp>("'-'", a, b);
}
Tile operator*(Arg a, Arg b) {
  return arithmetic<arith::MulFOp, arith::MulIOp>("'*'", a, b);
}
Tile operator/(Arg a, Arg b) {
  return elementwise(
      "'/'", Floats | Integers, {&a, &b}, [](Operands &operands) {
        return operands.isFloatType() ? operands.create<arith::DivFOp>()
                                      : integerOp<tile::DivOp>(operands);
      });
}
Tile operator%(Arg a, Arg b) {
  return elementwise("'%'", Integers, {&a, &b}, integerOp<tile::RemOp>);
}
Tile operator<<(Arg a, Arg b) {
  return elementwise("'<<'", Integers, {&a, &b}, integerOp<tile::ShlOp>);
}
Tile operator>>(Arg a, Arg b) {
  return elementwise("'>>'", Integers, {&a, &b}, integerOp<tile::ShrOp>);
}
Tile operator&(Arg a, Arg b) {
  return elementwise("'&'", Bools | Integers, {&a, &b}, [](Operands &operands) {
    return operands.create<arith::AndIOp>();
  });
}
Tile operator|(Arg a, Arg b) {
  return elementwise("'|'", Bools | Integers, {&a, &b}, [](Operands &operands) {
    return operands.create<arith::OrIOp>();
  });
}
Tile operator^(Arg a, Arg b) {
  return elementwise("'^'", Bools | Integers, {&a, &b}, [](Operands &operands) {
    return operands.create<arith::XOrIOp>();
  });
}

/// A constant in the type and dimensions of the first operand.
static Value constantLike(Operands &operands, double value) {
  Type element = tile::getElement(operands.values[0].getType());
  TraceContext &context = operands.context;
  Value scalar = operands.isFloatType()
                     ? context.constant(value, operands.dtype, operands.where)
                     : context.integer(int64_t(value), element, operands.where);
  return context.expand(scalar, tile::getDims(operands.values[0].getType()),
                        operands.where);
}

Tile operator~(Arg a) {
  return elementwise("'~'", Bools | Integers, {&a}, [](Operands &operands) {
    // All bits; of an i1 that is true.
    operands.values.push_back(constantLike(operands, -1));
    return operands.create<arith::XOrIOp>();
  });
}
Tile operator!(Arg a) {
  return elementwise("'!'", Bools, {&a}, [](Operands &operands) {
    operands.values.push_back(constantLike(operands, -1));
    return operands.create<arith::XOrIOp>();
  });
}
Tile operator-(Arg a) {
  return elementwise("unary '-'", Floats | Integers, {&a},
                     [](Operands &operands) {
                       if (operands.isFloatType())
                         return operands.create<arith::NegFOp>();
                       operands.values.insert(operands.values.begin(),
                                              constantLike(operands, 0));
                       return operands.create<arith::SubIOp>();
                     });
}

//===----------------------------------------------------------------------===//
// Comparison and selection
//===----------------------------------------------------------------------===//

using arith::CmpFPredicate;
using arith::CmpIPredicate;

Tile operator==(Arg a, Arg b) {
  return compare("'=='", Floats | Integers | Bools, a, b, CmpFPredicate::OEQ,
                 CmpIPredicate::eq, CmpIPredicate::eq);
}
Tile operator!=(Arg a, Arg b) {
  return compare("'!='", Floats | Integers | Bools, a, b, CmpFPredicate::UNE,
                 CmpIPredicate::ne, CmpIPredicate::ne);
}
Tile operator<(Arg a, Arg b) {
  return compare("'<'", Floats | Integers, a, b, CmpFPredicate::OLT,
                 CmpIPredicate::slt, CmpIPredicate::ult);
}
Tile operator<=(Arg a, Arg b) {
  return compare("'<='", Floats | Integers, a, b, CmpFPredicate::OLE,
                 CmpIPredicate::sle, CmpIPredicate::ule);
}
Tile operator>(Arg a, Arg b) {
  return compare("'>'", Floats | Integers, a, b, CmpFPredicate::OGT,
                 CmpIPredicate::sgt, CmpIPredicate::ugt);
}
Tile operator>=(Arg a, Arg b) {
  return compare("'>='", Floats | Integers, a, b, CmpFPredicate::OGE,
                 CmpIPredicate::sge, CmpIPredicate::uge);
}

Tile select(Arg condition, Arg a, Arg b) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Value test = context->operand(condition, DType::Bool, false,
                                "the condition of select()");
  SmallVector<Value> values;
  DType dtype;
  if (!context->unifyTypes({&a, &b}, "select()", values, dtype) || !test)
    return context->poison(condition.where);
  values.insert(values.begin(), test);
  context->unifyDims(values, condition.where);
  return context->make(
      context->builder.create<arith::SelectOp>(context->loc(condition.where),
                                               values[0], values[1], values[2]),
      dtype, condition.where);
}

Tile max(Arg a, Arg b) {
  return extremum<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>("max()", a,
                                                                     b);
}
Tile min(Arg a, Arg b) {
  return extremum<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>("min()", a,
                                                                     b);
}
Tile maxNum(Arg a, Arg b) {
  return elementwise("maxNum()", Floats, {&a, &b}, [](Operands &operands) {
    return operands.create<tile::MaxNumOp>();
  });
}
Tile minNum(Arg a, Arg b) {
  return elementwise("minNum()", Floats, {&a, &b}, [](Operands &operands) {
    return operands.create<tile::MinNumOp>();
  });
}
Tile fma(Arg a, Arg b, Arg c) {
  return elementwise("fma()", Floats, {&a, &b, &c}, [](Operands &operands) {
    return operands.create<math::FmaOp>();
  });
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Tile exp(Arg a) { return floatUnary<math::ExpOp>("exp()", a); }
Tile exp2(Arg a) { return floatUnary<math::Exp2Op>("exp2()", a); }
Tile expm1(Arg a) { return floatUnary<math::ExpM1Op>("expm1()", a); }
Tile log(Arg a) { return floatUnary<math::LogOp>("log()", a); }
Tile log2(Arg a) { return floatUnary<math::Log2Op>("log2()", a); }
Tile log1p(Arg a) { return floatUnary<math::Log1pOp>("log1p()", a); }
Tile tanh(Arg a) { return floatUnary<math::TanhOp>("tanh()", a); }
Tile erf(Arg a) { return floatUnary<math::ErfOp>("erf()", a); }
Tile sin(Arg a) { return floatUnary<math::SinOp>("sin()", a); }
Tile cos(Arg a) { return floatUnary<math::CosOp>("cos()", a); }
Tile sqrt(Arg a) { return floatUnary<math::SqrtOp>("sqrt()", a); }
Tile rsqrt(Arg a) { return floatUnary<math::RsqrtOp>("rsqrt()", a); }
Tile sigmoid(Arg a) { return floatUnary<tile::SigmoidOp>("sigmoid()", a); }
Tile floor(Arg a) { return floatUnary<math::FloorOp>("floor()", a); }
Tile ceil(Arg a) { return floatUnary<math::CeilOp>("ceil()", a); }
Tile round(Arg a) { return floatUnary<math::RoundEvenOp>("round()", a); }
Tile trunc(Arg a) { return floatUnary<math::TruncOp>("trunc()", a); }

Tile abs(Arg a) {
  return elementwise("abs()", Floats | Integers, {&a},
                     [](Operands &operands) -> Value {
                       if (operands.isFloatType())
                         return operands.create<math::AbsFOp>();
                       if (operands.isUnsignedType())
                         return operands.values[0];
                       return operands.create<math::AbsIOp>();
                     });
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

Tile cast(Arg a, DType type) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (computeType(type) != type)
    return context->fail(a.where, "dsl.type",
                         concat("cast() to ", name(type),
                                ", a storage type; expected a type that tiles "
                                "compute in, or roundTo()"));
  std::optional<Operand> from = context->single(a);
  if (!from)
    return context->poison(a.where);
  if (from->dtype == type)
    return context->make(from->value, type, a.where);
  Type target =
      tile::withElement(from->value.getType(), context->computeIRType(type));
  Value result = from->value;
  // Signed and unsigned integers of one width are the same bits.
  if (result.getType() != target)
    result = context->builder.create<tile::CastOp>(
        context->loc(a.where), target, result, isUnsigned(from->dtype),
        isUnsigned(type));
  return context->make(result, type, a.where);
}

Tile roundTo(Arg a, DType type) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Operand> from = context->single(a);
  if (!from)
    return context->poison(a.where);
  if (!isFloat(type) || !isFloat(from->dtype) || type == DType::F64)
    return context->fail(a.where, "dsl.type",
                         concat("roundTo() from ", name(from->dtype), " to ",
                                name(type),
                                ", expected a narrower floating type"));
  return context->make(
      context->builder.create<tile::RoundToOp>(
          context->loc(a.where), from->value, context->storageIRType(type)),
      from->dtype, a.where);
}

Tile ceilDiv(Arg a, Arg b) {
  // Not (a + b - 1) / b, which wraps and is not the ceiling below zero.
  Tile rest = a % b;
  if (!rest.valid())
    return rest;
  Tile quotient = a / b;
  Tile isAbove = Arg::at(rest, a.where) > 0;
  return Arg::at(quotient, a.where) +
         Arg::at(cast(Arg::at(isAbove, a.where), quotient.dtype()), a.where);
}

} // namespace tessera
