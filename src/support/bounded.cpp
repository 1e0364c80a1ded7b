//===- support/bounded.cpp - Real numbers known within a radius -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/bounded.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace tessera::bounded {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

/// Twice the unit roundoff of long double: bounds the relative error of one of
/// its operations with room to spare.
constexpr long double ownError = std::numeric_limits<long double>::epsilon();

/// Covers the roundings made while a radius is computed.
constexpr long double inflation = 1 + 64 * ownError;

/// The result of an operation on finite operands whose computed counterpart
/// differs from `value` by at most `propagated` before it is rounded, and by
/// `rounding` after.
Bounded finish(long double value, long double propagated, long double rounding,
               bool leftRange, const FloatFormat &format) {
  if (std::isnan(value))
    return {value, 0, leftRange};
  if (std::isinf(value))
    return Bounded::undecided(value);
  long double radius = (propagated + rounding) * inflation;
  if (radius > 0)
    radius += ownError * std::fabs(value);
  bool outside = !(std::fabs(value) + radius <= format.maxFinite);
  return {value, radius, leftRange || outside};
}

/// Half a unit in the last place of anything up to `magnitude`, or infinity
/// where that is not finite (finish() then sets leftRange).
long double halfUlp(long double magnitude, const FloatFormat &format) {
  return std::isfinite(magnitude) ? format.ulp(magnitude) / 2 : infinity;
}

/// finish() for one correctly rounded operation. `exact` says that `value` is
/// the exact result of exact operands, so that a representable one is kept.
Bounded finishRounded(long double value, long double propagated, bool exact,
                      bool leftRange, const FloatFormat &format) {
  if (exact && format.represents(value))
    return {value, 0, leftRange};
  return finish(value, propagated,
                halfUlp(std::fabs(value) + propagated, format), leftRange,
                format);
}

bool eitherLeft(const Bounded &a, const Bounded &b) {
  return a.leftRange || b.leftRange;
}

bool isExactZero(const Bounded &a) { return a.value == 0 && a.radius == 0; }

/// True if the long double sum `sum` of a and b lost nothing.
bool sumIsExact(long double a, long double b, long double sum) {
  long double fromB = sum - a;
  return (a - (sum - fromB)) + (b - fromB) == 0;
}

/// True if a * b is exactly `product`. Two numbers of F32 have an exact product
/// in long double; others need the slow fused form.
bool productIs(long double a, long double b, long double product) {
  const FloatFormat &narrow = floatFormat(DType::F32);
  if (LDBL_MANT_DIG >= 2 * FLT_MANT_DIG && narrow.represents(a) &&
      narrow.represents(b))
    return a * b == product;
  return std::fma(a, b, -product) == 0;
}

/// The propagated radius of a product of finite operands.
long double productRadius(const Bounded &a, const Bounded &b) {
  return std::fabs(a.value) * b.radius + std::fabs(b.value) * a.radius +
         a.radius * b.radius;
}

/// The product when an operand is an infinity and none is NaN.
Bounded infiniteProduct(const Bounded &a, const Bounded &b) {
  const Bounded &other = std::isinf(a.value) ? b : a;
  bool leftRange = eitherLeft(a, b);
  if (other.radius > 0 && other.mayBeZero())
    return Bounded::undecided(a.value * b.value);
  return {a.value * b.value, 0, leftRange};
}

/// The interval's ends, moved outward so that the roundings of value +- radius
/// lose nothing.
long double lowEnd(const Bounded &a) {
  if (a.radius == 0)
    return a.value;
  long double end = a.value - a.radius;
  return end - ownError * std::fabs(end);
}
long double highEnd(const Bounded &a) {
  if (a.radius == 0)
    return a.value;
  long double end = a.value + a.radius;
  return end + ownError * std::fabs(end);
}

/// The value and radius that cover [low, high].
Bounded hull(long double low, long double high, bool leftRange) {
  // A zero of unknown sign keeps a radius, so that a pole at it is undecided.
  if (low == 0 && high == 0 && std::signbit(low) != std::signbit(high))
    return {0, std::numeric_limits<long double>::denorm_min(), leftRange};
  if (low == high)
    return {low, 0, leftRange};
  long double middle = low + (high - low) / 2;
  long double radius = std::max(high - middle, middle - low) * inflation;
  return {middle, radius, leftRange};
}

/// A step function such as floor, exact on each execution's argument.
template <typename Step> Bounded applyStep(const Bounded &a, Step step) {
  if (!std::isfinite(a.value))
    return {step(a.value), 0, a.leftRange};
  return hull(step(lowEnd(a)), step(highEnd(a)), a.leftRange);
}

} // namespace

//===----------------------------------------------------------------------===//
// Rules and constants
//===----------------------------------------------------------------------===//

Arithmetic Arithmetic::forTier(DType storage, Tier tier) {
  Arithmetic result;
  result.compute = storage == DType::F64 ? DType::F64 : DType::F32;
  if (tier == Tier::Strict) {
    result.functions.fill({1, 0});
    return result;
  }
  result.functions.fill({4, 0});
  result.ulps(Function::Exp) = {2, 1};
  result.ulps(Function::Exp2) = {2, 1};
  result.ulps(Function::Sigmoid) = {4, 1};
  return result;
}

int64_t Arithmetic::depth(int64_t n) const {
  if (n <= 1)
    return 0;
  int64_t parts = std::max<int64_t>(partials, 1);
  int64_t chain = (n - 1) / parts;
  int64_t tree = 0;
  while (tree < 62 && (int64_t{1} << tree) < std::min(parts, n))
    ++tree;
  return std::min(chain + tree + std::max<int64_t>(extraDepth, 0), n - 1);
}

Bounded Bounded::nan() {
  return {std::numeric_limits<long double>::quiet_NaN(), 0, false};
}

Bounded Bounded::undecided(long double value) {
  return {value, 0, /*leftRange=*/true};
}

bool Bounded::mayBeZero() const { return std::fabs(value) <= radius; }

Bounded parameter(double value, const Arithmetic &arithmetic) {
  return Bounded::exact(arithmetic.format().round(value));
}

Bounded constant(long double value, const Arithmetic &arithmetic) {
  return {value, arithmetic.format().ulp(std::fabs(value)), false};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Bounded add(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  long double value = a.value + b.value;
  bool leftRange = eitherLeft(a, b);
  if (!std::isfinite(a.value) || !std::isfinite(b.value))
    return {value, 0, leftRange};
  long double propagated = a.radius + b.radius;
  bool exact = propagated == 0 && sumIsExact(a.value, b.value, value);
  // A sum below the smallest normal number is exact in the compute type, but
  // the half unit charged there is too small to matter.
  return finishRounded(value, propagated, exact, leftRange,
                       arithmetic.format());
}

Bounded sub(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  return add(a, neg(b), arithmetic);
}

Bounded mul(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  long double value = a.value * b.value;
  bool leftRange = eitherLeft(a, b);
  if (std::isnan(a.value) || std::isnan(b.value))
    return {value, 0, leftRange};
  if (std::isinf(a.value) || std::isinf(b.value))
    return infiniteProduct(a, b);
  if (isExactZero(a) || isExactZero(b))
    return {value, 0, leftRange};
  long double propagated = productRadius(a, b);
  const FloatFormat &format = arithmetic.format();
  bool exact = propagated == 0 && format.represents(value) &&
               productIs(a.value, b.value, value);
  return finishRounded(value, propagated, exact, leftRange, format);
}

Bounded div(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  long double value = a.value / b.value;
  bool leftRange = eitherLeft(a, b);
  if (std::isnan(a.value) || std::isnan(b.value))
    return {value, 0, leftRange};
  if (b.mayBeZero() && (b.radius > 0 || (a.radius > 0 && a.mayBeZero())))
    return Bounded::undecided(value);
  if (!std::isfinite(a.value) || !std::isfinite(b.value) || b.value == 0 ||
      isExactZero(a))
    return {value, 0, leftRange};
  long double magnitude = std::fabs(b.value);
  long double propagated =
      (a.radius + std::fabs(value) * b.radius) / (magnitude - b.radius);
  const FloatFormat &format = arithmetic.format();
  bool exact = propagated == 0 && format.represents(value) &&
               productIs(value, b.value, a.value);
  return finishRounded(value, propagated, exact, leftRange, format);
}

Bounded fma(const Bounded &a, const Bounded &b, const Bounded &c,
            const Arithmetic &arithmetic) {
  // The unfused form's radius holds the rounding of the product beside all that
  // the fused form can lose, so it covers both.
  return add(mul(a, b, arithmetic), c, arithmetic);
}

Bounded neg(const Bounded &a) { return {-a.value, a.radius, a.leftRange}; }

Bounded abs(const Bounded &a) {
  return {std::fabs(a.value), a.radius, a.leftRange};
}

Bounded max(const Bounded &a, const Bounded &b) {
  bool leftRange = eitherLeft(a, b);
  if (std::isnan(a.value) || std::isnan(b.value))
    return {a.value + b.value, 0, leftRange};
  const Bounded &larger = a.value >= b.value ? a : b;
  const Bounded &smaller = a.value >= b.value ? b : a;
  bool decided = smaller.value + smaller.radius <= larger.value - larger.radius;
  long double radius = decided ? larger.radius : std::max(a.radius, b.radius);
  return {larger.value, radius, leftRange};
}

Bounded min(const Bounded &a, const Bounded &b) {
  return neg(max(neg(a), neg(b)));
}

Bounded maxNum(const Bounded &a, const Bounded &b) {
  if (std::isnan(a.value))
    return {b.value, b.radius, eitherLeft(a, b)};
  if (std::isnan(b.value))
    return {a.value, a.radius, eitherLeft(a, b)};
  return max(a, b);
}

Bounded minNum(const Bounded &a, const Bounded &b) {
  return neg(maxNum(neg(a), neg(b)));
}

Bounded copysign(const Bounded &magnitude, const Bounded &sign) {
  Bounded positive = abs(magnitude);
  // The sign of a zero is free, so a zero leaves the sign of the result open.
  if (!std::isnan(sign.value) && sign.mayBeZero())
    return select(Tri::Unknown, positive, neg(positive));
  positive.value = std::copysign(positive.value, sign.value);
  positive.leftRange |= sign.leftRange;
  return positive;
}

Bounded floor(const Bounded &a) {
  return applyStep(a, [](long double x) { return std::floor(x); });
}
Bounded ceil(const Bounded &a) {
  return applyStep(a, [](long double x) { return std::ceil(x); });
}
Bounded trunc(const Bounded &a) {
  return applyStep(a, [](long double x) { return std::trunc(x); });
}
Bounded roundEven(const Bounded &a) {
  return applyStep(a, [](long double x) { return std::rint(x); });
}

std::optional<long double> truncated(const Bounded &a) {
  if (a.leftRange)
    return std::nullopt;
  if (!std::isfinite(a.value))
    return a.value;
  long double low = std::trunc(lowEnd(a));
  if (low != std::trunc(highEnd(a)))
    return std::nullopt;
  return low;
}

Bounded roundTo(const Bounded &a, DType type, const Arithmetic &arithmetic) {
  const FloatFormat &format = floatFormat(type);
  if (std::isnan(a.value) || a.leftRange ||
      (format.precision >= arithmetic.format().precision &&
       format.maxExponent >= arithmetic.format().maxExponent))
    return a;
  long double value = format.round(a.value);
  if (a.radius == 0)
    return {value, 0, false};
  long double low = format.round(lowEnd(a));
  long double high = format.round(highEnd(a));
  if (std::isnan(low) && std::isnan(high))
    return {low, 0, false};
  if (low == high)
    return hull(low, high, false);
  if (!std::isfinite(low) || !std::isfinite(high))
    return Bounded::undecided(value);
  return {value, std::max(high - value, value - low), false};
}

//===----------------------------------------------------------------------===//
// Comparison and selection
//===----------------------------------------------------------------------===//

Tri logicalNot(Tri a) { return a == Tri::Unknown ? a : tri(a == Tri::False); }

Tri logicalAnd(Tri a, Tri b) {
  if (a == Tri::False || b == Tri::False)
    return Tri::False;
  return a == Tri::True && b == Tri::True ? Tri::True : Tri::Unknown;
}

Tri logicalOr(Tri a, Tri b) {
  return logicalNot(logicalAnd(logicalNot(a), logicalNot(b)));
}

Tri logicalXor(Tri a, Tri b) {
  if (a == Tri::Unknown || b == Tri::Unknown)
    return Tri::Unknown;
  return tri(a != b);
}

Tri less(const Bounded &a, const Bounded &b) {
  if (eitherLeft(a, b))
    return Tri::Unknown;
  if (std::isnan(a.value) || std::isnan(b.value))
    return Tri::False;
  if (highEnd(a) < lowEnd(b))
    return Tri::True;
  return lowEnd(a) >= highEnd(b) ? Tri::False : Tri::Unknown;
}

Tri lessEqual(const Bounded &a, const Bounded &b) {
  if (unordered(a, b) == Tri::True)
    return Tri::False;
  return logicalNot(less(b, a));
}

Tri equal(const Bounded &a, const Bounded &b) {
  return logicalAnd(lessEqual(a, b), lessEqual(b, a));
}

Tri unordered(const Bounded &a, const Bounded &b) {
  if (eitherLeft(a, b))
    return Tri::Unknown;
  return tri(std::isnan(a.value) || std::isnan(b.value));
}

Bounded select(Tri condition, const Bounded &ifTrue, const Bounded &ifFalse) {
  if (condition == Tri::True)
    return ifTrue;
  if (condition == Tri::False)
    return ifFalse;
  bool leftRange = eitherLeft(ifTrue, ifFalse);
  if (std::isfinite(ifTrue.value) && std::isfinite(ifFalse.value)) {
    if (ifTrue.value == ifFalse.value)
      return {ifTrue.value, std::max(ifTrue.radius, ifFalse.radius), leftRange};
    return hull(std::min(lowEnd(ifTrue), lowEnd(ifFalse)),
                std::max(highEnd(ifTrue), highEnd(ifFalse)), leftRange);
  }
  bool same = ifTrue.value == ifFalse.value ||
              (std::isnan(ifTrue.value) && std::isnan(ifFalse.value));
  return {ifTrue.value, 0, leftRange || !same};
}

Bounded either(const Bounded &a, const Bounded &b) {
  bool leftRange = eitherLeft(a, b);
  if (!std::isfinite(a.value) || !std::isfinite(b.value))
    return select(Tri::Unknown, a, b);
  long double distance = std::fabs(a.value - b.value);
  return {a.value, std::max(a.radius, b.radius + distance * inflation),
          leftRange};
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Summation::Summation(const Arithmetic &arithmetic) : arithmetic(&arithmetic) {}

void Summation::accumulate(long double term) {
  long double sum = high + term;
  long double fromTerm = sum - high;
  low += (high - (sum - fromTerm)) + (term - fromTerm);
  high = sum;
  magnitude += std::fabs(term);
}

void Summation::add(const Bounded &term) {
  ++count;
  leftRange |= term.leftRange;
  if (std::isfinite(term.value)) {
    accumulate(term.value);
    radius += term.radius;
    return;
  }
  sawNan |= std::isnan(term.value);
  sawPositiveInfinity |= term.value == infinity;
  sawNegativeInfinity |= term.value == -infinity;
}

void Summation::addProduct(long double a, long double b) {
  const FloatFormat &format = arithmetic->format();
  long double product = a * b;
  if (!std::isfinite(a) || !std::isfinite(b)) {
    add(Bounded::exact(product));
    return;
  }
  ++count;
  accumulate(product);
  if (product == 0)
    return;
  long double size = std::fabs(product);
  leftRange |= !(size <= format.maxFinite);
  static const long double unitF32 =
      floatFormat(DType::F32).unitRoundoff() + ownError;
  static const long double unitF64 =
      floatFormat(DType::F64).unitRoundoff() + ownError;
  static const long double normalF32 = std::ldexp(1.0L, -126);
  static const long double normalF64 = std::ldexp(1.0L, -1022);
  bool wide = arithmetic->compute == DType::F64;
  if (size < (wide ? normalF64 : normalF32))
    radius += format.minSubnormal();
  else
    radius += size * (wide ? unitF64 : unitF32);
}

Bounded Summation::finish(std::optional<int64_t> depth) const {
  return finish(depth ? *depth : arithmetic->depth(count), 1);
}

Bounded Summation::finishContraction() const {
  return finish(arithmetic->depth(count), arithmetic->contractionUnits);
}

Bounded Summation::finish(int64_t depth, long double units) const {
  const FloatFormat &format = arithmetic->format();
  if (sawNan || (sawPositiveInfinity && sawNegativeInfinity))
    return {std::numeric_limits<long double>::quiet_NaN(), 0, leftRange};
  long double value = high + low;
  long double size = magnitude + radius;
  // (1 + u)^depth - 1 is at most depth * u / (1 - depth * u).
  long double growth = depth * units * format.unitRoundoff();
  long double relative = growth < 1 ? growth / (1 - growth) : infinity;
  long double rounding = size > 0 ? relative * size : 0;
  if (count > 1)
    rounding += count * ownError * ownError * magnitude;
  // A partial sum may leave the range although the whole does not.
  bool outside = leftRange || !(size + rounding <= format.maxFinite);
  if (sawPositiveInfinity || sawNegativeInfinity)
    return {sawPositiveInfinity ? infinity : -infinity, 0, outside};
  if (count <= 1)
    return {value, radius, outside};
  return tessera::bounded::finish(value, radius, rounding, outside, format);
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

Verdict judge(const Bounded &expected, double actual, DType storage) {
  if (expected.leftRange)
    return Verdict::Undecided;
  bool accept = false;
  if (std::isnan(expected.value) || std::isnan(actual)) {
    accept = std::isnan(expected.value) && std::isnan(actual);
  } else if (std::isinf(expected.value)) {
    accept = expected.value == static_cast<long double>(actual);
  } else if (std::isinf(actual)) {
    long double threshold = floatFormat(storage).overflowThreshold;
    accept = actual > 0 ? expected.value + expected.radius >= threshold
                        : expected.value - expected.radius <= -threshold;
  } else {
    accept = std::fabs(actual - expected.value) <= expected.radius * inflation;
  }
  return accept ? Verdict::Accept : Verdict::Reject;
}

bool accepts(const Bounded &expected, double actual, DType storage) {
  return judge(expected, actual, storage) == Verdict::Accept;
}

} // namespace tessera::bounded
