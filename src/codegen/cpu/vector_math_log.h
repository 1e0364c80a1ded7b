//===- codegen/cpu/vector_math_log.h - Logarithms, rsqrt --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// log, log2, log1p and rsqrt. See vector_math.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_LOG_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_LOG_H

#include "codegen/cpu/vector_math_support.h"

namespace tessera::vmath {
namespace detail {

/// x = 2^k (1 + f), -1/3 <= f < 1/3, f exact; log(1 + f) = f + tail, and with
/// tailLo to a few bits more.
template <class B> struct LogParts {
  typename B::Value k, f, tail, tailLo;
};

template <class T, class B>
LogParts<B> splitLog(B &b, typename B::Value x, bool wantLo = false) {
  // The mantissa is taken from [2/3, 4/3), so that x near 1 has k = 0. The
  // constant is 2/3 with half of its mantissa bits.
  constexpr int64_t twoThirds =
      T::width == 32 ? int64_t(0x3f2aa000) : int64_t(0x3fe5555500000000);
  auto isSubnormal = b.lt(x, b.constF(T::minNormal));
  x = b.select(isSubnormal, b.mul(x, b.constF(T::minNormalScale)), x);
  auto bits = b.toBits(x);
  // The exponent field of bits - 2/3 + bias is k + bias: no arithmetic shift.
  constexpr int64_t oneBits = T::bias << T::mantissa;
  auto shifted = b.isub(bits, b.constI(twoThirds - oneBits));
  auto biased = b.lshr(shifted, T::mantissa);
  auto m = b.fromBits(
      b.isub(bits, b.isub(b.shl(biased, T::mantissa), b.constI(oneBits))));
  constexpr int64_t fieldOne = int64_t(1) << T::mantissa;
  // An integer below 2^mantissa in the mantissa of 2^mantissa.
  auto field = b.fromBits(
      b.ior(biased, b.constI((T::bias + int64_t(T::mantissa)) << T::mantissa)));
  auto offset = b.select(
      isSubnormal, b.constF(-double(fieldOne + T::bias + T::minNormalShift)),
      b.constF(-double(fieldOne + T::bias)));
  auto k = b.add(field, offset);
  auto f = b.sub(m, b.constF(1));
  auto square = b.mul(f, f);
  typename B::Value tail, tailLo = b.constF(0);
  if constexpr (T::width == 32) {
    auto cubic = b.mul(b.mul(f, square), horner(b, f, T::logP));
    auto minusHalf = b.constF(-0.5);
    tail = b.fma(square, minusHalf, cubic);
    if (wantLo) {
      auto squareLo = twoProd<T>(b, f, f).lo;
      tailLo = b.sub(cubic, b.sub(tail, b.mul(square, minusHalf)));
      tailLo = b.fma(squareLo, minusHalf, tailLo);
    }
  } else {
    auto half = b.mul(square, b.constF(0.5));
    auto s = b.div(f, b.add(f, b.constF(2)));
    auto z = b.mul(s, s);
    auto series = b.fma(z, horner(b, z, T::logP), half);
    auto minusHalf = b.neg(half);
    tail = b.fma(s, series, minusHalf);
    if (wantLo) {
      auto squareLo = twoProd<T>(b, f, f).lo;
      tailLo = b.fma(s, series, b.sub(minusHalf, tail));
      tailLo = b.fma(squareLo, b.constF(-0.5), tailLo);
    }
  }
  return {k, f, tail, tailLo};
}

/// y where x is positive and finite; log's values elsewhere.
template <class B>
typename B::Value logSpecials(B &b, typename B::Value x, typename B::Value y,
                              double minusInfinityAt) {
  auto edge = b.constF(minusInfinityAt);
  auto outside =
      b.select(b.eq(x, edge), b.constF(-infinity), b.constF(notANumber));
  y = b.select(b.lt(edge, x), y, outside);
  return b.select(b.eq(x, b.constF(infinity)), x, y);
}

} // namespace detail

template <class T, class B>
typename B::Value log(B &b, typename B::Value x, Accuracy accuracy) {
  detail::LogParts<B> v = detail::splitLog<T>(b, x);
  auto tail = b.fma(v.k, b.constF(T::ln2Lo), v.tail);
  typename B::Value y;
  if (accuracy == Accuracy::Strict) {
    auto upper = b.mul(v.k, b.constF(T::ln2Hi)); // exact
    DoubleWord<B> sum = fastTwoSum(b, upper, v.f);
    y = b.add(sum.hi, b.add(sum.lo, tail));
  } else {
    y = b.fma(v.k, b.constF(T::ln2Hi), b.add(v.f, tail));
  }
  return detail::logSpecials(b, x, y, 0);
}

/// The same form in every tier: at most 1 ULP.
template <class T, class B>
typename B::Value log2(B &b, typename B::Value x, Accuracy) {
  detail::LogParts<B> v = detail::splitLog<T>(b, x, /*wantLo=*/true);
  auto scale = b.constF(T::log2eWord);
  // log(1 + f) as hi + lo, so that what is left to round is far below a ULP.
  DoubleWord<B> natural = fastTwoSum(b, v.f, v.tail);
  auto lo = b.add(natural.lo, v.tailLo);
  DoubleWord<B> product = twoProd<T>(b, natural.hi, scale);
  DoubleWord<B> sum = fastTwoSum(b, v.k, product.hi);
  auto rest = b.fma(natural.hi, b.constF(T::log2eRest), product.lo);
  rest = b.fma(lo, scale, rest);
  auto y = b.add(sum.hi, b.add(sum.lo, rest));
  return detail::logSpecials(b, x, y, 0);
}

/// The same form in every tier: at most 1 ULP.
template <class T, class B>
typename B::Value log1p(B &b, typename B::Value x, Accuracy) {
  // log(u + c) = log(u) + c/u to far below a ULP.
  DoubleWord<B> u = twoSum(b, b.constF(1), x);
  detail::LogParts<B> v = detail::splitLog<T>(b, u.hi);
  auto tail = b.fma(v.k, b.constF(T::ln2Lo), v.tail);
  tail = b.add(tail, b.div(u.lo, u.hi));
  auto upper = b.mul(v.k, b.constF(T::ln2Hi)); // exact
  DoubleWord<B> sum = fastTwoSum(b, upper, v.f);
  auto y = b.add(sum.hi, b.add(sum.lo, tail));
  y = b.select(b.lt(b.abs(x), b.constF(T::tiny)), x, y);
  return detail::logSpecials(b, x, y, -1);
}

template <class T, class B>
typename B::Value rsqrt(B &b, typename B::Value x, Accuracy accuracy) {
  auto one = b.constF(1);
  if (accuracy != Accuracy::Strict)
    return b.div(one, b.sqrt(x));
  // One correction from the exact residuals of the root and of the quotient;
  // small x is scaled so that the residuals are not subnormal.
  constexpr double scale = T::width == 32 ? 0x1p64 : 0x1p512;
  constexpr double rootScale = T::width == 32 ? 0x1p32 : 0x1p256;
  auto small = b.lt(x, b.constF(1 / rootScale));
  auto v = b.select(small, b.mul(x, b.constF(scale)), x);
  auto s = b.sqrt(v);
  auto y = b.div(one, s);
  auto rootRest = remainder<T>(b, v, s, s);
  auto quotientRest = remainder<T>(b, one, y, s);
  // 1/sqrt(v) = y (1 + quotientRest - rootRest / (2 v)).
  auto halfSquare = b.mul(b.mul(y, b.constF(-0.5)), y);
  auto rest = b.fma(rootRest, halfSquare, quotientRest);
  auto better = b.fma(rest, y, y);
  better = b.mul(better, b.select(small, b.constF(rootScale), b.constF(1)));
  // 0, inf and the invalid operands take the plain form.
  auto regular = b.lt(b.abs(v), b.constF(infinity));
  better = b.select(regular, better, y);
  return b.select(b.eq(v, b.constF(0)), y, better);
}

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_LOG_H
