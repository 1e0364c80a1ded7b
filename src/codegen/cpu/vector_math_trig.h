//===- codegen/cpu/vector_math_trig.h - sin and cos -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sin and cos for every finite argument. Up to trigFast the remainder of x by
// pi/2 comes from a three-word pi/2; beyond it, and only if an element of the
// vector is there, from the bits of 2/pi in integer arithmetic. See
// vector_math.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_TRIG_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_TRIG_H

#include "codegen/cpu/vector_math_support.h"

namespace tessera::vmath {
namespace detail {

/// |x| = quadrant pi/2 + hi + lo; only the low two bits of quadrant count.
template <class B> struct TrigArgument {
  typename B::Int quadrant;
  typename B::Value hi, lo;
};

/// For 0 <= x <= trigFast.
template <class T, class B>
TrigArgument<B> reduceTrig(B &b, typename B::Value x) {
  Rounded<B> r = roundScaled<T>(b, x, T::twoOverPi);
  // The first difference is exact: it is below 1 and a multiple of the last
  // bit of pi/2 or of x.
  auto first = remainder<T>(b, x, r.n, b.constF(T::halfPi1));
  DoubleWord<B> second = twoProd<T>(b, r.n, b.constF(T::halfPi2));
  DoubleWord<B> sum = twoSum(b, first, b.neg(second.hi));
  auto lo = b.sub(sum.lo, second.lo);
  lo = b.fma(r.n, b.constF(-T::halfPi3), lo);
  DoubleWord<B> rest = fastTwoSum(b, sum.hi, lo);
  return {b.toBits(r.shifted), rest.hi, rest.lo};
}

/// For finite x >= trigFast (anything for other x). In units of the limb's
/// width L: x = M 2^(L (p - 1)) with an integer M of three limbs, so the part
/// of x * 2/pi that matters, modulo 4, is M times eight limbs of 2/pi from
/// place p on. Four limbs of the fraction are kept; the nearest that a finite x
/// comes to a multiple of pi/2 (2^-30, 2^-62) leaves enough of them.
template <class T, class B>
TrigArgument<B> reduceTrigLarge(B &b, typename B::Value x) {
  using Int = typename B::Int;
  using Value = typename B::Value;
  constexpr unsigned limb = T::limb, stages = T::limbStages;
  constexpr int64_t limbMask = (int64_t(1) << limb) - 1;
  auto low = [&](Int i) { return b.iand(i, b.constI(limbMask)); };
  auto high = [&](Int i) { return b.lshr(i, limb); };

  // Mantissa and exponent; M in limbs m[0..2].
  Int bits = b.toBits(x);
  Int mantissa = b.ior(b.iand(bits, b.constI((int64_t(1) << T::mantissa) - 1)),
                       b.constI(int64_t(1) << T::mantissa));
  Int exponent = b.iadd(b.lshr(bits, T::mantissa),
                        b.constI(int64_t(limb) - T::mantissa - T::bias));
  Int shift = b.iand(exponent, b.constI(limb - 1));
  Int place = b.lshr(exponent, limb == 16 ? 4 : 5);
  Int lower = b.shlv(low(mantissa), shift);
  Int upper = b.iadd(b.shlv(high(mantissa), shift), high(lower));
  Int m[3] = {low(lower), low(upper), high(upper)};

  // Eight limbs of 2/pi from `place`, by a shifter of one stage per bit.
  constexpr unsigned total = (1u << stages) + 7;
  Int a[total];
  for (unsigned i = 0; i < total; ++i)
    a[i] = b.constI(T::twoOverPiLimbs[i]);
  for (unsigned stage = stages; stage-- > 0;) {
    unsigned step = 1u << stage;
    auto bit = b.ieq(b.iand(place, b.constI(step)), b.constI(0));
    for (unsigned i = 0; i < 7 + step; ++i)
      a[i] = b.iselect(bit, a[i], a[i + step]);
  }

  // Column d collects what weighs 2^(-L d); carries run from the right.
  // The low halves of column 5 are beyond what is kept.
  Int columns[5];
  Int carry = high(b.imul(m[0], a[5]));
  for (unsigned k = 1; k < 3; ++k)
    carry = b.iadd(carry, high(b.imul(m[k], a[k + 5])));
  for (unsigned d = 5; d-- > 0;) {
    Int sum = carry;
    Int next = b.constI(0);
    for (unsigned k = 0; k < 3; ++k) {
      Int product = b.imul(m[k], a[k + d]);
      sum = b.iadd(sum, low(product));
      next = b.iadd(next, high(product));
    }
    columns[d] = low(sum);
    carry = b.iadd(next, high(sum));
  }

  // Round to the nearest quadrant; the fraction becomes signed.
  Int word = b.ior(b.shl(columns[1], limb), columns[2]);
  Int quadrant = b.iadd(columns[0], b.lshr(word, T::width - 1));
  Value magic = b.constF(T::magic);
  Int magicBits = b.toBits(magic);
  auto toValue = [&](Int i, double scale) {
    Value v = b.sub(b.fromBits(b.iadd(i, magicBits)), magic);
    return b.mul(v, b.constF(scale));
  };
  constexpr double unit = 1.0 / double(int64_t(1) << limb);
  Int half = b.constI(int64_t(1) << (limb - 1));
  Int top = b.isub(b.ixor(columns[1], half), half); // sign extended
  DoubleWord<B> s1 =
      fastTwoSum(b, toValue(top, unit), toValue(columns[2], unit * unit));
  DoubleWord<B> s2 = twoSum(b, s1.hi, toValue(columns[3], unit * unit * unit));
  Value last = toValue(columns[4], unit * unit * unit * unit);
  DoubleWord<B> turns = twoSum(b, s2.hi, b.add(b.add(s1.lo, s2.lo), last));

  // Times pi/2.
  DoubleWord<B> r = twoProd<T>(b, turns.hi, b.constF(T::halfPi1));
  Value lo = b.fma(turns.hi, b.constF(T::halfPi2), r.lo);
  lo = b.fma(turns.lo, b.constF(T::halfPi1), lo);
  r = fastTwoSum(b, r.hi, lo);
  return {quadrant, r.hi, r.lo};
}

/// sin x, or cos x as sin(|x| + pi/2).
template <class T, class B>
typename B::Value sinCos(B &b, typename B::Value x, bool cosine,
                         Accuracy accuracy) {
  using Value = typename B::Value;
  auto finish = [&](Value v, const TrigArgument<B> &r) {
    auto z = b.mul(r.hi, r.hi);
    auto one = b.constF(1);
    auto half = b.mul(z, b.constF(0.5));
    auto square = b.mul(z, z);
    Value sine, cosineValue;
    auto cubic = b.mul(r.hi, z);
    auto sineTail = b.fma(cubic, horner(b, z, T::sinP), r.lo);
    sine = b.add(r.hi, sineTail);
    // 1 - z/2 with what its rounding lost.
    auto base = b.sub(one, half);
    auto baseLo = b.sub(b.sub(one, base), half);
    auto rest = b.fma(b.neg(r.hi), r.lo, baseLo);
    if (accuracy == Accuracy::Strict) {
      DoubleWord<B> exact = twoProd<T>(b, r.hi, r.hi);
      rest = b.fma(exact.lo, b.constF(-0.5), rest);
    }
    cosineValue = b.add(base, b.fma(square, horner(b, z, T::cosP), rest));
    auto quadrant = cosine ? b.iadd(r.quadrant, b.constI(1)) : r.quadrant;
    auto even = b.ieq(b.iand(quadrant, b.constI(1)), b.constI(0));
    auto y = b.select(even, sine, cosineValue);
    auto sign = b.shl(b.lshr(quadrant, 1), T::width - 1);
    if (!cosine)
      sign = b.ixor(sign, signOf<T>(b, v));
    return b.fromBits(b.ixor(b.toBits(y), sign));
  };
  Value magnitude = b.abs(x);
  TrigArgument<B> fast = reduceTrig<T>(b, magnitude);
  auto limit = b.constF(T::trigFast);
  auto isLarge = b.lt(limit, magnitude);
  Value result = b.ifAny(isLarge, finish(x, fast), [&] {
    TrigArgument<B> large = reduceTrigLarge<T>(b, magnitude);
    TrigArgument<B> chosen = {b.iselect(isLarge, large.quadrant, fast.quadrant),
                              b.select(isLarge, large.hi, fast.hi),
                              b.select(isLarge, large.lo, fast.lo)};
    return finish(x, chosen);
  });
  auto finite = b.lt(magnitude, b.constF(infinity));
  return b.select(finite, result, b.sub(x, x));
}

} // namespace detail

template <class T, class B>
typename B::Value sin(B &b, typename B::Value x, Accuracy accuracy) {
  return detail::sinCos<T>(b, x, false, accuracy);
}

template <class T, class B>
typename B::Value cos(B &b, typename B::Value x, Accuracy accuracy) {
  return detail::sinCos<T>(b, x, true, accuracy);
}

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_TRIG_H
