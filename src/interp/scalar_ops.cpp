//===- scalar_ops.cpp - Elementwise arithmetic ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/scalar_ops.h"

#include "support/float_convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

#pragma STDC FP_CONTRACT OFF

namespace tessera::interp {

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

int64_t canonical(int width, int64_t value) {
  switch (width) {
  case 1:
    return value & 1;
  case 8:
    return static_cast<int8_t>(value);
  case 16:
    return static_cast<int16_t>(value);
  case 32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

int64_t signedValue(int width, int64_t value) {
  return width == 1 ? -value : value;
}

uint64_t unsignedValue(int width, int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

static int64_t divide(int width, bool isUnsigned, int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (isUnsigned)
    return static_cast<int64_t>(unsignedValue(width, a) /
                                unsignedValue(width, b));
  // MIN / -1 wraps to MIN; the hardware would trap.
  if (b == -1)
    return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b;
}

static int64_t remainder(int width, bool isUnsigned, int64_t a, int64_t b) {
  if (b == 0)
    return 0;
  if (isUnsigned)
    return static_cast<int64_t>(unsignedValue(width, a) %
                                unsignedValue(width, b));
  return b == -1 ? 0 : a % b;
}

int64_t apply(IntBinary op, int width, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  bool wideShift = unsignedValue(width, b) >= static_cast<uint64_t>(width);
  auto wrap = [width](uint64_t bits) {
    return canonical(width, static_cast<int64_t>(bits));
  };
  switch (op) {
  case IntBinary::Add:
    return wrap(x + y);
  case IntBinary::Sub:
    return wrap(x - y);
  case IntBinary::Mul:
    return wrap(x * y);
  case IntBinary::And:
    return a & b;
  case IntBinary::Or:
    return a | b;
  case IntBinary::Xor:
    return a ^ b;
  case IntBinary::MaxS:
    return signedValue(width, a) >= signedValue(width, b) ? a : b;
  case IntBinary::MinS:
    return signedValue(width, a) <= signedValue(width, b) ? a : b;
  case IntBinary::MaxU:
    return unsignedValue(width, a) >= unsignedValue(width, b) ? a : b;
  case IntBinary::MinU:
    return unsignedValue(width, a) <= unsignedValue(width, b) ? a : b;
  case IntBinary::DivS:
    return wrap(divide(width, false, a, b));
  case IntBinary::DivU:
    return wrap(divide(width, true, a, b));
  case IntBinary::RemS:
    return wrap(remainder(width, false, a, b));
  case IntBinary::RemU:
    return wrap(remainder(width, true, a, b));
  case IntBinary::Shl:
    return wideShift ? 0 : wrap(x << y);
  case IntBinary::ShrS:
    return wideShift ? (a < 0 ? -1 : 0) : a >> b;
  case IntBinary::ShrU:
    return wideShift ? 0 : wrap(unsignedValue(width, a) >> y);
  }
  return 0;
}

Relation relation(int width, bool isUnsigned, int64_t a, int64_t b) {
  if (a == b)
    return Equal;
  bool less = isUnsigned ? unsignedValue(width, a) < unsignedValue(width, b)
                         : signedValue(width, a) < signedValue(width, b);
  return less ? Less : Greater;
}

int64_t saturate(int width, bool isUnsigned, long double value) {
  if (std::isnan(value))
    return 0;
  value = std::trunc(value);
  long double span = std::ldexp(1.0L, isUnsigned ? width : width - 1);
  if (isUnsigned) {
    if (value <= 0)
      return 0;
    if (value >= span)
      return -1; // All bits set, sign-extended.
    return canonical(width, static_cast<int64_t>(static_cast<uint64_t>(value)));
  }
  if (value >= span)
    return static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1);
  if (value <= -span)
    return canonical(width, static_cast<int64_t>(uint64_t{1} << (width - 1)));
  return static_cast<int64_t>(value);
}

//===----------------------------------------------------------------------===//
// Floats, Strict mode
//===----------------------------------------------------------------------===//

/// Max and Min: NaN wins, -0 lies below +0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

static double maximumNumber(double a, double b) {
  if (std::isnan(a))
    return b;
  return std::isnan(b) ? a : maximum(a, b);
}

/// A function evaluated in a wider type T, to be rounded once.
template <typename T> static T function(FloatUnary op, T x) {
  switch (op) {
  case FloatUnary::Rsqrt:
    return T(1) / std::sqrt(x);
  case FloatUnary::Cos:
    return std::cos(x);
  case FloatUnary::Erf:
    return std::erf(x);
  case FloatUnary::Exp:
    return std::exp(x);
  case FloatUnary::Exp2:
    return std::exp2(x);
  case FloatUnary::Expm1:
    return std::expm1(x);
  case FloatUnary::Log:
    return std::log(x);
  case FloatUnary::Log1p:
    return std::log1p(x);
  case FloatUnary::Log2:
    return std::log2(x);
  case FloatUnary::Sin:
    return std::sin(x);
  case FloatUnary::Tanh:
    return std::tanh(x);
  case FloatUnary::Sigmoid:
    // Each form is accurate on its side; exp(-x) of the other would overflow.
    return x >= 0 ? T(1) / (T(1) + std::exp(-x))
                  : std::exp(x) / (T(1) + std::exp(x));
  default:
    return x;
  }
}

double apply(FloatUnary op, Kind kind, double x) {
  switch (op) {
  case FloatUnary::Neg:
    return -x;
  case FloatUnary::Abs:
    return std::fabs(x);
  case FloatUnary::Ceil:
    return std::ceil(x);
  case FloatUnary::Floor:
    return std::floor(x);
  case FloatUnary::RoundEven:
    return std::nearbyint(x);
  case FloatUnary::Trunc:
    return std::trunc(x);
  case FloatUnary::Sqrt:
    return kind == Kind::F32 ? std::sqrt(static_cast<float>(x)) : std::sqrt(x);
  default:
    break;
  }
  if (kind == Kind::F32)
    return static_cast<float>(function<double>(op, x));
  return static_cast<double>(function<long double>(op, x));
}

template <typename T> static T binary(FloatBinary op, T a, T b) {
  switch (op) {
  case FloatBinary::Add:
    return a + b;
  case FloatBinary::Sub:
    return a - b;
  case FloatBinary::Mul:
    return a * b;
  case FloatBinary::Div:
    return a / b;
  case FloatBinary::Max:
    return static_cast<T>(maximum(a, b));
  case FloatBinary::Min:
    return static_cast<T>(-maximum(-a, -b));
  case FloatBinary::MaxNum:
    return static_cast<T>(maximumNumber(a, b));
  case FloatBinary::MinNum:
    return static_cast<T>(-maximumNumber(-a, -b));
  }
  return a;
}

double apply(FloatBinary op, Kind kind, double a, double b) {
  if (kind == Kind::F32)
    return binary(op, static_cast<float>(a), static_cast<float>(b));
  return binary(op, a, b);
}

double fusedMultiplyAdd(Kind kind, double a, double b, double c) {
  if (kind == Kind::F32)
    return std::fma(static_cast<float>(a), static_cast<float>(b),
                    static_cast<float>(c));
  return std::fma(a, b, c);
}

Relation relation(double a, double b) {
  if (a < b)
    return Less;
  if (a > b)
    return Greater;
  return a == b ? Equal : Unordered;
}

Relation totalOrder(double a, double b) {
  Relation result = relation(a, b);
  if (result != Unordered)
    return result;
  if (std::isnan(a) && std::isnan(b))
    return Equal;
  return std::isnan(a) ? Greater : Less;
}

double roundTo(DType type, double value) {
  if (type == DType::F64)
    return value;
  if (type == DType::F32)
    return static_cast<float>(value);
  char bytes[8];
  support::storeFloat(type, bytes, value);
  return support::loadFloat(type, bytes);
}

//===----------------------------------------------------------------------===//
// Oracle mode
//===----------------------------------------------------------------------===//

/// A result whose sign is that of a zero operand: a Bounded leaves the sign of
/// a zero free, so nothing is known of the infinity made of it.
static Bounded poleOfZero(Bounded result, const Bounded &zero) {
  if (zero.value == 0 && std::isinf(result.value))
    result.forget();
  return result;
}

Bounded apply(FloatUnary op, const Arithmetic &arithmetic, const Bounded &x) {
  using bounded::Function;
  switch (op) {
  case FloatUnary::Neg:
    return bounded::neg(x);
  case FloatUnary::Abs:
    return bounded::abs(x);
  case FloatUnary::Ceil:
    return bounded::ceil(x);
  case FloatUnary::Floor:
    return bounded::floor(x);
  case FloatUnary::RoundEven:
    return bounded::roundEven(x);
  case FloatUnary::Trunc:
    return bounded::trunc(x);
  case FloatUnary::Sqrt:
    return bounded::sqrt(x, arithmetic);
  case FloatUnary::Rsqrt:
    return poleOfZero(bounded::apply(Function::Rsqrt, x, arithmetic), x);
  case FloatUnary::Cos:
    return bounded::apply(Function::Cos, x, arithmetic);
  case FloatUnary::Erf:
    return bounded::apply(Function::Erf, x, arithmetic);
  case FloatUnary::Exp:
    return bounded::apply(Function::Exp, x, arithmetic);
  case FloatUnary::Exp2:
    return bounded::apply(Function::Exp2, x, arithmetic);
  case FloatUnary::Expm1:
    return bounded::apply(Function::Expm1, x, arithmetic);
  case FloatUnary::Log:
    return bounded::apply(Function::Log, x, arithmetic);
  case FloatUnary::Log1p:
    return bounded::apply(Function::Log1p, x, arithmetic);
  case FloatUnary::Log2:
    return bounded::apply(Function::Log2, x, arithmetic);
  case FloatUnary::Sin:
    return bounded::apply(Function::Sin, x, arithmetic);
  case FloatUnary::Tanh:
    return bounded::apply(Function::Tanh, x, arithmetic);
  case FloatUnary::Sigmoid:
    return bounded::apply(Function::Sigmoid, x, arithmetic);
  }
  return x;
}

Bounded apply(FloatBinary op, const Arithmetic &arithmetic, const Bounded &a,
              const Bounded &b) {
  switch (op) {
  case FloatBinary::Add:
    return bounded::add(a, b, arithmetic);
  case FloatBinary::Sub:
    return bounded::sub(a, b, arithmetic);
  case FloatBinary::Mul:
    return bounded::mul(a, b, arithmetic);
  case FloatBinary::Div:
    return poleOfZero(bounded::div(a, b, arithmetic), b);
  case FloatBinary::Max:
    return bounded::max(a, b);
  case FloatBinary::Min:
    return bounded::min(a, b);
  case FloatBinary::MaxNum:
    return bounded::maxNum(a, b);
  case FloatBinary::MinNum:
    return bounded::minNum(a, b);
  }
  return a;
}

Bounded roundBounded(const Bounded &x, DType type,
                     const Arithmetic &arithmetic) {
  return bounded::roundTo(x, type, arithmetic);
}

uint8_t relations(const Bounded &a, const Bounded &b) {
  if (a.leftRange || b.leftRange)
    return Less | Equal | Greater | Unordered;
  if (std::isnan(a.value) || std::isnan(b.value))
    return Unordered;
  uint8_t possible = 0;
  bounded::Tri less = bounded::less(a, b), greater = bounded::less(b, a);
  if (less != bounded::Tri::False)
    possible |= Less;
  if (greater != bounded::Tri::False)
    possible |= Greater;
  if (less != bounded::Tri::True && greater != bounded::Tri::True)
    possible |= Equal;
  return possible;
}

bounded::Tri holds(uint8_t comparison, uint8_t possible) {
  if ((possible & ~comparison) == 0)
    return bounded::Tri::True;
  return (possible & comparison) == 0 ? bounded::Tri::False
                                      : bounded::Tri::Unknown;
}

OracleInt apply(IntBinary op, int width, OracleInt a, OracleInt b) {
  OracleInt result{apply(op, width, a.value, b.value), a.unknown || b.unknown};
  // A known absorbing operand decides.
  auto absorbs = [&](const OracleInt &x, int64_t value) {
    return !x.unknown && x.value == value;
  };
  int64_t ones = canonical(width, -1);
  if ((op == IntBinary::And || op == IntBinary::Mul) &&
      (absorbs(a, 0) || absorbs(b, 0)))
    return {0, false};
  if (op == IntBinary::Or && (absorbs(a, ones) || absorbs(b, ones)))
    return {ones, false};
  return result;
}

} // namespace tessera::interp
