//===- codegen/cpu/vector_math_exp.h - exp and its kin ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp, exp2, expm1, sigmoid, silu, gelu_tanh, tanh and erf. See vector_math.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_EXP_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_EXP_H

#include "codegen/cpu/vector_math_support.h"

namespace tessera::vmath {
namespace detail {

/// x = n ln 2 + hi + lo with |hi| <= ln(2)/2.
template <class B> struct ExpArgument {
  Rounded<B> exponent;
  typename B::Value hi, lo;
};

template <class T, class B>
ExpArgument<B> reduceExp(B &b, typename B::Value x, int64_t offset) {
  Rounded<B> r = roundScaled<T>(b, x, T::log2eWord, offset);
  auto minusLo = b.constF(-T::ln2Lo);
  // n ln2Hi is exact, and so is the difference.
  auto upper = b.fma(r.n, b.constF(-T::ln2Hi), x);
  auto hi = b.fma(r.n, minusLo, upper);
  auto lo = b.fma(r.n, minusLo, b.sub(upper, hi));
  return {r, hi, lo};
}

/// e^(hi + lo) - 1 - hi.
template <class T, class B>
typename B::Value expTail(B &b, typename B::Value hi, typename B::Value lo) {
  return b.fma(b.mul(hi, hi), horner(b, hi, T::expQ), lo);
}

/// 2^r for |r| <= 1/2, times a power of two; positive and finite for |r| < 2.
template <class T, class B>
typename B::Value exp2Polynomial(B &b, typename B::Value r, double scale = 1) {
  return b.fma(horner(b, r, T::exp2, 0, scale), r, b.constF(scale));
}

/// e^r for |r| <= ln(2)/2, times a power of two; positive and finite for
/// |r| < 2.
template <class T, class B>
typename B::Value expPolynomial(B &b, typename B::Value r, double scale = 1) {
  auto tail = b.mul(b.mul(r, r), horner(b, r, T::expQ));
  auto p = b.add(b.add(tail, r), b.constF(1));
  return scale == 1 ? p : b.mul(p, b.constF(scale));
}

} // namespace detail

template <class T, class B>
typename B::Value exp(B &b, typename B::Value x, Accuracy accuracy) {
  // scalef needs no clamps: for a huge |x| only the remainder goes wrong, and
  // any positive finite polynomial value gives 0 or inf there.
  bool clamped = !b.hasScalef();
  if (clamped)
    x = clamp(b, x, T::expLow, T::expHigh);
  Rounded<B> r = roundScaled<T>(b, x, T::log2eWord, exponentOffset<T>);
  // Without FMA x * log2(e) has an error that the tier does not allow.
  bool binary = accuracy != Accuracy::Strict && b.hasFMA();
  typename B::Value rest;
  if (binary) {
    rest = b.fma(x, b.constF(T::log2eWord), b.neg(r.n));
  } else {
    rest = b.fma(r.n, b.constF(-T::ln2Hi), x);
    rest = b.fma(r.n, b.constF(-T::ln2Lo), rest);
  }
  if (!clamped)
    rest = clearHighExponent<T>(b, rest);
  typename B::Value p;
  if (binary) {
    p = detail::exp2Polynomial<T>(b, rest);
  } else {
    auto y = b.fma(b.mul(rest, rest), horner(b, rest, T::expQ), rest);
    p = b.add(y, b.constF(1));
  }
  return scaleByPowerOfTwo<T>(b, p, r);
}

template <class T, class B>
typename B::Value exp2(B &b, typename B::Value x, Accuracy accuracy) {
  bool clamped = !b.hasScalef();
  if (clamped)
    x = clamp(b, x, T::exp2Low, T::exp2High);
  Rounded<B> r = roundScaled<T>(b, x, 1, exponentOffset<T>);
  auto rest = b.sub(x, r.n);
  if (!clamped)
    rest = clearHighExponent<T>(b, rest);
  typename B::Value p;
  if (accuracy != Accuracy::Strict) {
    p = detail::exp2Polynomial<T>(b, rest);
  } else {
    DoubleWord<B> v = twoProd<T>(b, rest, b.constF(T::ln2Word));
    v.lo = b.fma(rest, b.constF(T::ln2Rest), v.lo);
    auto tail = detail::expTail<T>(b, v.hi, v.lo);
    p = b.add(b.add(v.hi, tail), b.constF(1));
  }
  return scaleByPowerOfTwo<T>(b, p, r);
}

namespace detail {

/// (e^x - 1) / 2 for x in [expm1Low, expHigh]. No overflow for any finite
/// result of expm1.
template <class T, class B> DoubleWord<B> halfExpm1(B &b, typename B::Value x) {
  ExpArgument<B> r = reduceExp<T>(b, x, T::bias - 1);
  auto s = powerOfTwo<T>(b, r.exponent.shifted);
  auto half = b.constF(0.5);
  // e^r - 1 = hi + hi^2/2 + tail, the square exact: next to cancellation (x
  // just above ln(2)/2) its rounding would be felt.
  DoubleWord<B> square = twoProd<T>(b, r.hi, r.hi);
  auto q = b.fma(horner(b, r.hi, T::expQ, 1), r.hi, b.constF(T::expQ[0] - 0.5));
  auto tail = b.fma(square.hi, q, b.fma(square.lo, half, r.lo));
  // (2^n - 1) / 2 + 2^n (...) / 2.
  auto base = b.sub(s, half);
  auto baseLo = b.sub(b.sub(s, base), half);
  DoubleWord<B> sum = twoSum(b, base, b.mul(s, r.hi));
  DoubleWord<B> more = fastTwoSum(b, sum.hi, b.mul(b.mul(s, half), square.hi));
  auto rest = b.add(b.add(sum.lo, more.lo), b.fma(s, tail, baseLo));
  return {more.hi, rest};
}

} // namespace detail

/// The same form in every tier: at most 1 ULP.
template <class T, class B>
typename B::Value expm1(B &b, typename B::Value x, Accuracy) {
  auto c = clamp(b, x, T::expm1Low, T::expHigh);
  DoubleWord<B> h = detail::halfExpm1<T>(b, c);
  auto y = b.add(h.hi, h.lo);
  y = b.add(y, y);
  return b.select(b.lt(b.abs(x), b.constF(T::tiny)), x, y);
}

namespace detail {

/// What roundScaled is to add to the exponent that `logistic` takes.
template <class T>
inline constexpr int64_t logisticOffset = T::bias + T::logisticShift;

/// What the other term of `logistic` is to be multiplied by.
template <class T, class B> double logisticScale(B &b) {
  return b.hasScalef() ? 1 : T::logisticScale;
}

/// s / (s + p) with s = 2^n: sigmoid(v) where n ln 2 - v = r and p = e^r, p
/// being given times logisticScale. Without scalef both terms are scaled: n +
/// logisticShift is then the exponent of a normal number, down to where the
/// quotient is 0. A subnormal quotient is rounded once.
template <class T, class B>
typename B::Value logistic(B &b, const Rounded<B> &exponent,
                           typename B::Value p) {
  auto s = b.hasScalef() ? b.scalef(b.constF(1), exponent.n)
                         : powerOfTwo<T>(b, exponent.shifted);
  return b.div(s, b.add(s, p));
}

template <class T, class B>
typename B::Value sigmoidDefault(B &b, typename B::Value x) {
  // The upper bound keeps s finite; scalef takes any negative n.
  if (b.hasScalef())
    x = b.min(b.constF(T::sigmoidHigh), x);
  else
    x = clamp(b, x, T::expLow, T::sigmoidHigh);
  Rounded<B> r = roundScaled<T>(b, x, T::log2eWord, logisticOffset<T>);
  double scale = logisticScale<T>(b);
  if (b.hasFMA()) {
    auto rest = b.fma(b.neg(x), b.constF(T::log2eWord), r.n);
    if (b.hasScalef())
      rest = clearHighExponent<T>(b, rest);
    return logistic<T>(b, r, exp2Polynomial<T>(b, rest, scale));
  }
  auto rest = b.sub(b.mul(r.n, b.constF(T::ln2Hi)), x);
  rest = b.add(b.mul(r.n, b.constF(T::ln2Lo)), rest);
  return logistic<T>(b, r, expPolynomial<T>(b, rest, scale));
}

/// Divides two double words, the quotient's error being about half a ULP.
template <class T, class B>
typename B::Value divide(B &b, DoubleWord<B> a, DoubleWord<B> d) {
  auto inverse = b.div(b.constF(1), d.hi);
  auto q = b.mul(a.hi, inverse);
  auto rest = remainder<T>(b, a.hi, q, d.hi);
  rest = b.add(rest, b.fma(b.neg(q), d.lo, a.lo));
  return b.fma(rest, inverse, q);
}

template <class T, class B>
typename B::Value sigmoidStrict(B &b, typename B::Value x) {
  // With e^-|x| = 2^n p: 1 / (1 + 2^n p), or 2^n (p / (1 + 2^n p)) for x < 0,
  // scaled at the end so that a subnormal result is rounded there only.
  auto magnitude = b.min(b.constF(-T::expLow), b.abs(x));
  ExpArgument<B> r = reduceExp<T>(b, b.neg(magnitude), exponentOffset<T>);
  auto one = b.constF(1), zero = b.constF(0);
  DoubleWord<B> p = fastTwoSum(b, one, r.hi);
  p = fastTwoSum(b, p.hi, b.add(p.lo, expTail<T>(b, r.hi, r.lo)));
  auto floored = b.max(b.constF(T::sigmoidFloor), r.exponent.n);
  auto s = powerOfTwo<T>(b, b.add(floored, b.constF(T::magic + T::bias)));
  DoubleWord<B> d = fastTwoSum(b, one, b.mul(s, p.hi));
  d.lo = b.fma(s, p.lo, d.lo);
  auto negative = b.lt(x, zero);
  DoubleWord<B> a = {b.select(negative, p.hi, one),
                     b.select(negative, p.lo, zero)};
  auto q = divide<T>(b, a, d);
  auto shifted = b.select(negative, r.exponent.shifted,
                          b.constF(T::magic + exponentOffset<T>));
  auto n = b.select(negative, r.exponent.n, zero);
  return scaleByPowerOfTwo<T>(b, q, Rounded<B>{shifted, n});
}

} // namespace detail

template <class T, class B>
typename B::Value sigmoid(B &b, typename B::Value x, Accuracy accuracy) {
  return accuracy == Accuracy::Strict ? detail::sigmoidStrict<T>(b, x)
                                      : detail::sigmoidDefault<T>(b, x);
}

/// x sigmoid(x); -inf gives NaN as the formula does. Strict rounds the product
/// of the strict sigmoid, as the author's two operations would.
template <class T, class B>
typename B::Value silu(B &b, typename B::Value x, Accuracy accuracy) {
  return b.mul(x, sigmoid<T>(b, x, accuracy));
}

/// x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), which is the tanh form of GELU;
/// -inf gives NaN as the formula does. The argument is carried in two words:
/// its relative error is multiplied by up to 17 for |x| <= 5. One form for
/// all tiers.
template <class T, class B>
typename B::Value geluTanh(B &b, typename B::Value x, Accuracy) {
  bool binary = b.hasFMA();
  auto c1 = b.constF(binary ? T::gelu1Log2 : T::gelu1);
  auto c3 = b.constF(binary ? T::gelu3Log2 : T::gelu3);
  auto y = clamp(b, x, T::geluLow, T::geluHigh);
  auto square = b.mul(y, y);
  double scale = detail::logisticScale<T>(b);
  if (binary) {
    auto w = b.fma(square, c3, c1);
    auto wLo = b.fma(square, c3, b.sub(c1, w));
    wLo = b.fma(b.fma(y, y, b.neg(square)), c3, wLo);
    Rounded<B> r = roundScaled<T>(b, b.mul(y, w), 1, detail::logisticOffset<T>);
    auto rest = b.fma(b.neg(y), w, r.n);
    rest = b.fma(b.neg(y), wLo, rest);
    auto p = detail::exp2Polynomial<T>(b, rest, scale);
    return b.mul(x, detail::logistic<T>(b, r, p));
  }
  auto squareLo = twoProd<T>(b, y, y).lo;
  DoubleWord<B> cubic = twoProd<T>(b, square, c3);
  cubic.lo = b.fma(squareLo, c3, cubic.lo);
  DoubleWord<B> w = twoSum(b, c1, cubic.hi);
  w.lo = b.add(b.add(w.lo, b.constF(T::gelu1Rest)), cubic.lo);
  DoubleWord<B> v = twoProd<T>(b, y, w.hi);
  v.lo = b.add(v.lo, b.mul(y, w.lo));
  Rounded<B> r =
      roundScaled<T>(b, v.hi, T::log2eWord, detail::logisticOffset<T>);
  auto rest = b.sub(b.mul(r.n, b.constF(T::ln2Hi)), v.hi);
  rest = b.add(b.mul(r.n, b.constF(T::ln2Lo)), rest);
  rest = b.sub(rest, v.lo);
  auto p = detail::expPolynomial<T>(b, rest, scale);
  return b.mul(x, detail::logistic<T>(b, r, p));
}

template <class T, class B>
typename B::Value tanh(B &b, typename B::Value x, Accuracy accuracy) {
  auto one = b.constF(1);
  auto magnitude = b.abs(x);
  typename B::Value y;
  if (T::width == 32 && accuracy != Accuracy::Strict && b.hasFMA()) {
    // a / (a + 2) with a = 2^n (1 + r q(r)) - 1, |x| 2 log2(e) = n + r; 1 from
    // where a + 2 rounds to a. n is at least 0, so 2^n - 1 is exact or large.
    auto bounded = b.min(b.constF(T::tanhLimit2 / 2), magnitude);
    auto scale = b.constF(2 * T::log2eWord);
    Rounded<B> r = roundScaled<T>(b, bounded, 2 * T::log2eWord, T::bias);
    auto rest = b.fma(bounded, scale, b.neg(r.n));
    auto s = powerOfTwo<T>(b, r.shifted);
    auto a = b.fma(b.mul(rest, horner(b, rest, T::exp2Long)), s, b.sub(s, one));
    y = b.div(a, b.add(a, b.constF(2)));
    return withSignOf<T>(b, y, x);
  }
  // a / (a + 1) with a = (e^(2|x|) - 1) / 2.
  auto twice = b.min(b.constF(T::tanhLimit2), b.add(magnitude, magnitude));
  DoubleWord<B> a = detail::halfExpm1<T>(b, twice);
  if (accuracy == Accuracy::Strict) {
    a = fastTwoSum(b, a.hi, a.lo);
    DoubleWord<B> d = twoSum(b, one, a.hi);
    d.lo = b.add(d.lo, a.lo);
    y = detail::divide<T>(b, a, d);
  } else {
    auto sum = b.add(a.hi, a.lo);
    y = b.div(sum, b.add(sum, one));
  }
  return withSignOf<T>(b, y, x);
}

/// The same form in every tier: at most 1 ULP.
template <class T, class B>
typename B::Value erf(B &b, typename B::Value x, Accuracy) {
  auto magnitude = b.abs(x), one = b.constF(1), edge = b.constF(0.9375);
  auto z = b.mul(magnitude, magnitude);
  typename B::Value small;
  if (b.hasFMA()) {
    small = b.fma(magnitude, horner(b, z, T::erfSmall), magnitude);
  } else {
    // The last two steps of the polynomial, with their roundings made good.
    DoubleWord<B> last = twoProd<T>(b, z, horner(b, z, T::erfSmall, 1));
    DoubleWord<B> q = twoSum(b, b.constF(T::erfSmall[0]), last.hi);
    q.lo = b.add(q.lo, last.lo);
    DoubleWord<B> product = twoProd<T>(b, magnitude, q.hi);
    product.lo = b.fma(magnitude, q.lo, product.lo);
    DoubleWord<B> sum = fastTwoSum(b, magnitude, product.hi);
    small = b.add(sum.hi, b.add(sum.lo, product.lo));
    // Where the exact product would need numbers below the subnormals.
    auto tiny = b.lt(magnitude, b.constF(T::minNormal * T::minNormalScale));
    small = b.select(tiny, b.add(magnitude, product.hi), small);
  }
  // 1 - erfc(15/16) e^-g; e^-g needs no special cases for u up to erfHigh.
  auto u = b.sub(b.min(b.constF(T::erfHigh), magnitude), edge);
  auto g = b.mul(u, horner(b, u, T::erfLarge));
  typename B::Value p, shifted;
  if (b.hasFMA() && T::width == 32) {
    Rounded<B> r = roundScaled<T>(b, g, -T::log2eWord, T::bias);
    shifted = r.shifted;
    p = detail::exp2Polynomial<T>(
        b, b.fma(g, b.constF(-T::log2eWord), b.neg(r.n)));
  } else {
    detail::ExpArgument<B> r = detail::reduceExp<T>(b, b.neg(g), T::bias);
    shifted = r.exponent.shifted;
    p = b.add(b.add(r.hi, detail::expTail<T>(b, r.hi, r.lo)), one);
  }
  auto scale = b.mul(b.constF(-T::erfcStart), powerOfTwo<T>(b, shifted));
  auto large = b.fma(scale, p, one);
  return withSignOf<T>(b, b.select(b.lt(magnitude, edge), small, large), x);
}

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_EXP_H
