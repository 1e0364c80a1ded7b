//===- codegen/cpu/vector_math_support.h - Vector math kit ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the functions of vector_math.h share: the builder they are written
// against, the element types, and error-free sums and products.
//
// The builder. Every function is a template over a builder B that is bound to
// one element type (T = F32 or F64) and one shape (a scalar or a vector).
// Instantiated on NativeBuilder (native_math.h) the function computes; on an
// emitting builder it emits IR. B has three types, which may be the same type:
//
//   Value  floating-point elements      Int  signed integers of the same width
//   Mask   one truth value per element
//
// and these operations, all elementwise, IEEE, round to nearest even, without
// fast-math, subnormals kept:
//
//   Value constF(double c)         c is exact in the element type
//   Value add sub mul div (a, b)
//   Value fma(a, b, c)             one rounding if hasFMA(), else mul then add
//   Value neg abs sqrt (a)         neg and abs touch the sign bit only
//   Value min(a, b) max(a, b)      x86: a < b ? a : b, a > b ? a : b (so a NaN
//                                  in b reaches the result)
//   Mask  lt eq (a, b)             ordered: false if either is NaN
//   Value select(m, a, b)          m ? a : b, no arithmetic on either
//   Int   toBits(a), Value fromBits(i)
//   Int   constI(int64_t c)        c is taken modulo 2^width
//   Int   iadd isub imul (i, j)    modulo 2^width
//   Int   iand ior ixor (i, j)
//   Int   shl lshr (i, unsigned n) n < width
//   Int   shlv(i, j)               0 <= j < width per element
//   Mask  ieq(i, j)
//   Int   iselect(m, i, j)
//   bool  hasFMA()                 false only where the target lacks it
//   bool  hasScalef()
//   Value scalef(a, n)             only if hasScalef(): a * 2^floor(n), rounded
//                                  once; NaN if either is NaN; a > 0 finite:
//                                  n = -inf gives 0, n = +inf gives inf
//   Value ifAny(m, Value otherwise, then)
//                                  then() if any element of m is set, else
//                                  `otherwise`. `then` selects by m itself, so
//                                  a builder without control flow may always
//                                  take it.
//
// No integer conversion is needed: integers of up to 22 (51) bits pass through
// the mantissa of 1.5 * 2^23 (2^52).
//
// Results are the same for every shape: an element's bits do not depend on the
// others. They do depend on hasFMA() and hasScalef().
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_SUPPORT_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_SUPPORT_H

#include "codegen/cpu/vector_math_coefficients.h"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tessera::vmath {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// The tier of a function; docs: semantics, "Numbers". Fast is Default today.
enum class Accuracy { Strict, Default, Fast };

/// Element types: format and limits, beside the coefficients.
struct F32 : F32Coefficients {
  static constexpr unsigned width = 32, mantissa = 23, limb = 16;
  static constexpr int64_t bias = 127;
  static constexpr int64_t signBit = 0x80000000;
  /// Clears the exponent's top bit: leaves |r| < 1 as it is and brings any
  /// other value, NaN included, below 2 in magnitude.
  static constexpr int64_t belowTwo = 0xbfffffff;
  /// Clears the lower half of the mantissa (an error-free product's split).
  static constexpr int64_t upperHalf = 0xfffff000;
  static constexpr double magic = 0x1.8p23;
  static constexpr double minNormal = 0x1p-126, minNormalScale = 0x1p24;
  static constexpr int64_t minNormalShift = 24;
  /// exp is 0 below and inf above; the same for exp2.
  static constexpr double expLow = -104, expHigh = 89;
  static constexpr double exp2Low = -151, exp2High = 129;
  /// expm1 is -1 below; below tiny, expm1 x and log1p x are x.
  static constexpr double expm1Low = -20, tiny = 0x1p-25;
  /// 2 |x| from where tanh is 1.
  static constexpr double tanhLimit2 = 20;
  /// sigmoid is 1 above; where a term of the strict form may stop shrinking.
  static constexpr double sigmoidHigh = 40, sigmoidFloor = -100;
  /// A power of two by which 2^n is normal wherever sigmoid is not 0. Its
  /// exponent is odd, as `bias` is, so that their sum leaves halves even.
  static constexpr int64_t logisticShift = 31;
  static constexpr double logisticScale = 0x1p31;
  /// The last factor of gelu_tanh is 0 below and 1 above.
  static constexpr double geluLow = -10.75, geluHigh = 8;
  static constexpr double erfHigh = 4;
  /// |x| up to which the three-part pi/2 serves.
  static constexpr double trigFast = 0x1p17;
  static constexpr unsigned limbStages = 3;
};

struct F64 : F64Coefficients {
  static constexpr unsigned width = 64, mantissa = 52, limb = 32;
  static constexpr int64_t bias = 1023;
  static constexpr int64_t signBit = INT64_MIN;
  static constexpr int64_t belowTwo = int64_t(0xbfffffffffffffff);
  static constexpr int64_t upperHalf = int64_t(0xfffffffff8000000);
  static constexpr double magic = 0x1.8p52;
  static constexpr double minNormal = 0x1p-1022, minNormalScale = 0x1p54;
  static constexpr int64_t minNormalShift = 54;
  static constexpr double expLow = -746, expHigh = 710;
  static constexpr double exp2Low = -1076, exp2High = 1025;
  static constexpr double expm1Low = -40, tiny = 0x1p-54;
  static constexpr double tanhLimit2 = 44;
  static constexpr double sigmoidHigh = 40, sigmoidFloor = -900;
  static constexpr int64_t logisticShift = 63;
  static constexpr double logisticScale = 0x1p63;
  static constexpr double geluLow = -21.5625, geluHigh = 8;
  static constexpr double erfHigh = 6;
  static constexpr double trigFast = 0x1p30;
  static constexpr unsigned limbStages = 5;
};

/// c[first] + c[first+1] x + ... + c[N-1] x^(N-1-first), times a power of two.
template <class B, size_t N>
typename B::Value horner(B &b, typename B::Value x, const double (&c)[N],
                         size_t first = 0, double scale = 1) {
  typename B::Value r = b.constF(c[N - 1] * scale);
  for (size_t i = N - 1; i-- > first;)
    r = b.fma(r, x, b.constF(c[i] * scale));
  return r;
}

/// The unevaluated sum hi + lo.
template <class B> struct DoubleWord {
  typename B::Value hi, lo;
};

/// a + c exactly, if |a| >= |c| or a is 0.
template <class B>
DoubleWord<B> fastTwoSum(B &b, typename B::Value a, typename B::Value c) {
  auto s = b.add(a, c);
  return {s, b.sub(c, b.sub(s, a))};
}

/// a + c exactly.
template <class B>
DoubleWord<B> twoSum(B &b, typename B::Value a, typename B::Value c) {
  auto s = b.add(a, c);
  auto cRound = b.sub(s, a);
  auto aRound = b.sub(s, cRound);
  return {s, b.add(b.sub(a, aRound), b.sub(c, cRound))};
}

/// a * c exactly (f64 without FMA: to 2^-105), away from the range's ends.
template <class T, class B>
DoubleWord<B> twoProd(B &b, typename B::Value a, typename B::Value c) {
  auto p = b.mul(a, c);
  if (b.hasFMA())
    return {p, b.fma(a, c, b.neg(p))};
  auto upper = [&](typename B::Value v) {
    return b.fromBits(b.iand(b.toBits(v), b.constI(T::upperHalf)));
  };
  auto aHi = upper(a), cHi = upper(c);
  auto aLo = b.sub(a, aHi), cLo = b.sub(c, cHi);
  auto e = b.sub(b.mul(aHi, cHi), p);
  e = b.add(e, b.mul(aHi, cLo));
  e = b.add(e, b.mul(aLo, cHi));
  return {p, b.add(e, b.mul(aLo, cLo))};
}

/// a - q d, nearly exact where q is about a / d.
template <class T, class B>
typename B::Value remainder(B &b, typename B::Value a, typename B::Value q,
                            typename B::Value d) {
  if (b.hasFMA())
    return b.fma(b.neg(q), d, a);
  DoubleWord<B> p = twoProd<T>(b, q, d);
  return b.sub(b.sub(a, p.hi), p.lo);
}

/// `value` with its exponent's top bit cleared; see belowTwo.
template <class T, class B>
typename B::Value clearHighExponent(B &b, typename B::Value value) {
  return b.fromBits(b.iand(b.toBits(value), b.constI(T::belowTwo)));
}

/// The sign bit of x alone.
template <class T, class B> typename B::Int signOf(B &b, typename B::Value x) {
  return b.iand(b.toBits(x), b.constI(T::signBit));
}

/// magnitude (not negative) with the sign of x.
template <class T, class B>
typename B::Value withSignOf(B &b, typename B::Value magnitude,
                             typename B::Value x) {
  return b.fromBits(b.ior(b.toBits(magnitude), signOf<T>(b, x)));
}

/// min(high, max(low, x)); a NaN stays.
template <class B>
typename B::Value clamp(B &b, typename B::Value x, double low, double high) {
  return b.min(b.constF(high), b.max(b.constF(low), x));
}

/// An integer n as a number and, with an offset that its user asks for, in the
/// low bits of one; |n + offset| < 2^(mantissa-1).
template <class B> struct Rounded {
  /// n + offset + magic: its low bits are n + offset, and stay that through shl
  /// by the mantissa's width.
  typename B::Value shifted;
  typename B::Value n;
};

/// x * scale rounded to an integer.
template <class T, class B>
Rounded<B> roundScaled(B &b, typename B::Value x, double scale,
                       int64_t offset = 0) {
  auto shifter = b.constF(T::magic + double(offset));
  auto shifted = b.fma(x, b.constF(scale), shifter);
  return {shifted, b.sub(shifted, shifter)};
}

/// 2^n in the range of normal numbers, given n + bias + magic.
template <class T, class B>
typename B::Value powerOfTwo(B &b, typename B::Value shifted) {
  return b.fromBits(b.shl(b.toBits(shifted), T::mantissa));
}

/// The offset of numbers that scaleByPowerOfTwo takes: the biases of both its
/// factors.
template <class T> inline constexpr int64_t exponentOffset = 2 * T::bias;

/// v * 2^n for 1/4 < v < 4 and a number n of that offset, rounded once:
/// subnormal results and overflow are right. Without scalef, |n| < 3/2 bias;
/// with it, n may be anything and a NaN in n comes through.
template <class T, class B>
typename B::Value scaleByPowerOfTwo(B &b, typename B::Value v,
                                    const Rounded<B> &exponent) {
  if (b.hasScalef())
    return b.scalef(v, exponent.n);
  // Two normal powers of two, of about half of n each: the first product is
  // normal, hence exact. The bits of `magic` that halving brings into an
  // exponent are zeros.
  auto bits = b.toBits(exponent.shifted);
  auto half = b.lshr(bits, 1);
  auto rest = b.isub(bits, half);
  v = b.mul(v, b.fromBits(b.shl(half, T::mantissa)));
  return b.mul(v, b.fromBits(b.shl(rest, T::mantissa)));
}

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_SUPPORT_H
