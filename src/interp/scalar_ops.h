//===- interp/scalar_ops.h - Elementwise arithmetic -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each elementwise operation gives for one element: in Strict mode on
// doubles and int64_t, in Oracle mode on Bounded and on integers that may be
// unknown. Integers come and go sign-extended, i1 as 0 or 1.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_SCALAR_OPS_H
#define TESSERA_INTERP_SCALAR_OPS_H

#include "interp/tile_value.h"

namespace tessera::interp {

enum class FloatUnary : uint8_t {
  Neg,
  Abs,
  Ceil,
  Floor,
  RoundEven,
  Trunc,
  Sqrt,
  Rsqrt,
  Cos,
  Erf,
  Exp,
  Exp2,
  Expm1,
  Log,
  Log1p,
  Log2,
  Sin,
  Tanh,
  Sigmoid,
};

enum class FloatBinary : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  MaxNum,
  MinNum
};

enum class IntBinary : uint8_t {
  Add,
  Sub,
  Mul,
  And,
  Or,
  Xor,
  MaxS,
  MinS,
  MaxU,
  MinU,
  DivS,
  DivU,
  RemS,
  RemU,
  Shl,
  ShrS,
  ShrU,
};

/// The relations two elements can have, as bits; a comparison is the set for
/// which it holds.
enum Relation : uint8_t {
  Less = 1,
  Equal = 2,
  Greater = 4,
  Unordered = 8,
};

/// The low `width` bits as an element of that width.
int64_t canonical(int width, int64_t value);
/// The value as a signed number; i1 counts -1 and 0.
int64_t signedValue(int width, int64_t value);
/// The value as an unsigned number.
uint64_t unsignedValue(int width, int64_t value);

double apply(FloatUnary op, Kind kind, double x);
double apply(FloatBinary op, Kind kind, double a, double b);
double fusedMultiplyAdd(Kind kind, double a, double b, double c);
int64_t apply(IntBinary op, int width, int64_t a, int64_t b);

Relation relation(double a, double b);
Relation relation(int width, bool isUnsigned, int64_t a, int64_t b);
/// The total order of arg_reduce and sort: NaN above +inf, zeros tie.
Relation totalOrder(double a, double b);

/// To nearest even in the format of `type`, as a double.
double roundTo(DType type, double value);

/// Truncates and saturates to the integer range of `width`; NaN gives 0.
int64_t saturate(int width, bool isUnsigned, long double value);

//===----------------------------------------------------------------------===//
// Oracle mode
//===----------------------------------------------------------------------===//

Bounded apply(FloatUnary op, const Arithmetic &arithmetic, const Bounded &x);
Bounded apply(FloatBinary op, const Arithmetic &arithmetic, const Bounded &a,
              const Bounded &b);

/// Rounded to nearest even in the format of `type`, like roundTo().
Bounded roundBounded(const Bounded &x, DType type,
                     const Arithmetic &arithmetic);

/// The relations that legal executions can find, as a set of bits.
uint8_t relations(const Bounded &a, const Bounded &b);

/// Whether a comparison holds, given the relations that are possible.
bounded::Tri holds(uint8_t comparison, uint8_t possible);

/// An integer that may be unknown.
struct OracleInt {
  int64_t value = 0;
  bool unknown = false;
};
OracleInt apply(IntBinary op, int width, OracleInt a, OracleInt b);

} // namespace tessera::interp

#endif // TESSERA_INTERP_SCALAR_OPS_H
