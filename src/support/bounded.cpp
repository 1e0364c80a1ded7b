//===- support/bounded.cpp - Real numbers known within a radius -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/bounded.h"

#include "support/reference.h"

#include "support/bounded_outcomes.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

namespace tessera::bounded {
namespace {

/// Half a unit in the last place of anything up to `magnitude`, or infinity
/// where that is not finite (finish() then knows nothing).
long double halfUlp(long double magnitude, const FloatFormat &format) {
  return isFinite(magnitude) ? format.ulp(magnitude) / 2 : infinity;
}

/// finish() for one correctly rounded operation. `exact` says that `value` is
/// the exact result of exact operands, so that a representable one is kept.
Bounded finishRounded(long double value, long double propagated, bool exact,
                      const FloatFormat &format) {
  if (exact && format.represents(value))
    return Bounded::exact(value);
  return finish(value, propagated,
                halfUlp(std::fabs(value) + propagated, format), format);
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
  const Bounded &other = isInfinite(a.value) ? b : a;
  if (isFinite(other.value) && other.radius > 0 && other.mayBeZero())
    return withOutcomes(Bounded::nan(), PlusInfinity | MinusInfinity);
  if (other.value == 0)
    return Bounded::nan();
  bool negative = std::signbit(a.value) != std::signbit(b.value);
  return Bounded::exact(negative ? -infinity : infinity);
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
Bounded hull(long double low, long double high) {
  // A zero of unknown sign keeps a radius, so that a pole at it is undecided.
  if (low == 0 && high == 0 && std::signbit(low) != std::signbit(high))
    return {0, std::numeric_limits<long double>::denorm_min(), false};
  if (low == high)
    return Bounded::exact(low);
  long double middle = low + (high - low) / 2;
  long double radius = std::max(high - middle, middle - low) * inflation;
  return {middle, radius, false};
}

/// A step function such as floor, exact on each execution's argument.
template <typename Step> Bounded applyStep(const Bounded &a, Step step) {
  if (a.leftRange)
    return overParts(a, [&](const Bounded &x) { return applyStep(x, step); });
  if (!isFinite(a.value))
    return Bounded::exact(step(a.value));
  return hull(step(lowEnd(a)), step(highEnd(a)));
}

} // namespace

Bounded finish(long double value, long double propagated, long double rounding,
               const FloatFormat &format) {
  if (isNan(value))
    return Bounded::exact(value);
  long double radius = (propagated + rounding) * inflation;
  if (isInfinite(value) || !isFinite(radius))
    return Bounded::undecided(value);
  if (radius > 0)
    radius += ownError * std::fabs(value);
  return withOverflow({value, radius, false}, format);
}

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

/// (n - 1) / parts; most sums are short or have one part, and division is slow.
static int64_t chainOf(int64_t n, int64_t parts) {
  if (parts == 1)
    return n - 1;
  return n <= parts ? 0 : (n - 1) / parts;
}

int64_t Arithmetic::depth(int64_t n) const {
  if (n <= 1)
    return 0;
  int64_t parts = std::max<int64_t>(partials, 1);
  int64_t chain = chainOf(n, parts);
  int64_t tree = std::bit_width(static_cast<uint64_t>(std::min(parts, n) - 1));
  return std::min(chain + tree + std::max<int64_t>(extraDepth, 0), n - 1);
}

void Arithmetic::allowShift() {
  // exp(x - r) and exp(r - c) with |r - c| at most `mostShift`, which adds to
  // the argument of either, and their product; a unit in the last place of one
  // of them is up to two of the result.
  for (Function function : {Function::Exp, Function::Exp2}) {
    FunctionUlps &own = ulps(function);
    own.constant += 2 * (own.constant + 2 * (own.slope + 1) * mostShift + 1);
  }
}

long double Arithmetic::effectiveMagnitude(long double magnitude,
                                           long double squares,
                                           int64_t n) const {
  if (!aboutReference)
    return magnitude;
  // docs/numerics.md derives the factors.
  constexpr long double spread = mostSpread;
  return std::max(
      5 * spread * magnitude,
      std::sqrt(3 * spread * static_cast<long double>(n) * squares));
}

double Arithmetic::meanDepth(int64_t n) const {
  if (n <= 1)
    return 0;
  auto most = static_cast<double>(depth(n));
  // The chain's part of depth() counts half, and one more for its ends.
  auto chain = static_cast<double>(chainOf(n, std::max<int64_t>(partials, 1)));
  return std::min(most, most - chain / 2 + 1);
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
  if (eitherLeft(a, b))
    return overParts(a, b, [&](const Bounded &x, const Bounded &y) {
      return add(x, y, arithmetic);
    });
  if (!isFinite(a.value))
    return isInfinite(a.value) && !isFinite(b.value)
               ? Bounded::exact(a.value + b.value)
               : Bounded::exact(a.value);
  if (!isFinite(b.value))
    return Bounded::exact(b.value);
  long double value = a.value + b.value;
  // A zero that overflow left behind adds nothing and rounds nothing.
  if (isExactZero(a) != isExactZero(b))
    return settled(withOverflow(isExactZero(a) ? b : a, arithmetic.format()),
                   arithmetic.format());
  long double propagated = a.radius + b.radius;
  bool exact = propagated == 0 && sumIsExact(a.value, b.value, value);
  // A sum below the smallest normal number is exact in the compute type, but
  // the half unit charged there is too small to matter.
  const FloatFormat &format = arithmetic.format();
  return settled(finishRounded(value, propagated, exact, format), format);
}

Bounded sub(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  return add(a, neg(b), arithmetic);
}

Bounded mul(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  const FloatFormat &format = arithmetic.format();
  if (eitherLeft(a, b))
    return overParts(settled(a, format), settled(b, format),
                     [&](const Bounded &x, const Bounded &y) {
                       return mul(x, y, arithmetic);
                     });
  if (isNan(a.value) || isNan(b.value))
    return Bounded::exact(isNan(a.value) ? a.value : b.value);
  if (isInfinite(a.value) || isInfinite(b.value))
    return infiniteProduct(a, b);
  long double value = a.value * b.value;
  if (isExactZero(a) || isExactZero(b))
    return Bounded::exact(value);
  long double propagated = productRadius(a, b);
  bool exact = propagated == 0 && format.represents(value) &&
               productIs(a.value, b.value, value);
  // Not settled: a fused multiply-add takes the product as it is.
  return finishRounded(value, propagated, exact, format);
}

Bounded div(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic) {
  const FloatFormat &format = arithmetic.format();
  if (eitherLeft(a, b))
    return overParts(settled(a, format), settled(b, format),
                     [&](const Bounded &x, const Bounded &y) {
                       return div(x, y, arithmetic);
                     });
  if (isNan(a.value) || isNan(b.value))
    return Bounded::exact(isNan(a.value) ? a.value : b.value);
  long double value = a.value / b.value;
  if (b.mayBeZero() && (b.radius > 0 || (a.radius > 0 && a.mayBeZero())))
    return Bounded::undecided(value);
  if (!isFinite(a.value) || !isFinite(b.value) || b.value == 0 ||
      isExactZero(a))
    return Bounded::exact(value);
  long double magnitude = std::fabs(b.value);
  long double propagated =
      (a.radius + std::fabs(value) * b.radius) / (magnitude - b.radius);
  bool exact = propagated == 0 && format.represents(value) &&
               productIs(value, b.value, a.value);
  return settled(finishRounded(value, propagated, exact, format), format);
}

Bounded fma(const Bounded &a, const Bounded &b, const Bounded &c,
            const Arithmetic &arithmetic) {
  // The unfused form's radius holds the rounding of the product beside all that
  // the fused form can lose, so it covers both.
  return add(mul(a, b, arithmetic), c, arithmetic);
}

Bounded neg(const Bounded &a) {
  unsigned outcomes = a.outcomes & (NotANumber | Zero);
  if (a.outcomes & PlusInfinity)
    outcomes |= MinusInfinity;
  if (a.outcomes & MinusInfinity)
    outcomes |= PlusInfinity;
  return {-a.value, a.radius, a.leftRange, static_cast<uint8_t>(outcomes)};
}

Bounded abs(const Bounded &a) {
  if (a.leftRange)
    return overParts(a, [](const Bounded &x) { return abs(x); });
  return {std::fabs(a.value), a.radius, false};
}

Bounded max(const Bounded &a, const Bounded &b) {
  if (eitherLeft(a, b))
    return overParts(
        a, b, [](const Bounded &x, const Bounded &y) { return max(x, y); });
  if (isNan(a.value) || isNan(b.value))
    return Bounded::exact(isNan(a.value) ? a.value : b.value);
  if (isInfinite(a.value) || isInfinite(b.value)) {
    // Nothing is larger than +inf, and everything is at least -inf.
    const Bounded &extreme = isInfinite(a.value) ? a : b;
    const Bounded &other = &extreme == &a ? b : a;
    return std::signbit(extreme.value) ? other : extreme;
  }
  const Bounded &larger = a.value >= b.value ? a : b;
  const Bounded &smaller = a.value >= b.value ? b : a;
  bool decided = smaller.value + smaller.radius <= larger.value - larger.radius;
  long double radius = decided ? larger.radius : std::max(a.radius, b.radius);
  return {larger.value, radius, false};
}

Bounded min(const Bounded &a, const Bounded &b) {
  return neg(max(neg(a), neg(b)));
}

Bounded maxNum(const Bounded &a, const Bounded &b) {
  if (eitherLeft(a, b))
    return overParts(
        a, b, [](const Bounded &x, const Bounded &y) { return maxNum(x, y); });
  if (isNan(a.value))
    return b;
  if (isNan(b.value))
    return a;
  return max(a, b);
}

Bounded minNum(const Bounded &a, const Bounded &b) {
  return neg(maxNum(neg(a), neg(b)));
}

Bounded copysign(const Bounded &magnitude, const Bounded &sign) {
  Bounded positive = abs(magnitude);
  // The sign of a zero is free, so a zero leaves the sign of the result open.
  if (sign.leftRange || (!isNan(sign.value) && sign.mayBeZero())) {
    Bounded result = select(Tri::Unknown, positive, neg(positive));
    if (sign.isUnknown())
      result.forget();
    return result;
  }
  return std::signbit(sign.value) ? neg(positive) : positive;
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
  if (!isFinite(a.value))
    return a.value;
  long double low = std::trunc(lowEnd(a));
  if (low != std::trunc(highEnd(a)))
    return std::nullopt;
  return low;
}

Bounded roundTo(const Bounded &given, DType type,
                const Arithmetic &arithmetic) {
  const FloatFormat &format = floatFormat(type);
  // What is rounded or stored is not fused any more.
  Bounded a = settled(given, arithmetic.format());
  if ((isNan(a.value) && !a.leftRange) || a.isUnknown() ||
      (format.precision >= arithmetic.format().precision &&
       format.maxExponent >= arithmetic.format().maxExponent))
    return a;
  if (a.leftRange)
    return overParts(
        a, [&](const Bounded &x) { return roundTo(x, type, arithmetic); });
  long double value = format.round(a.value);
  if (!format.hasInfinity && isInfinite(value))
    value = std::numeric_limits<long double>::quiet_NaN();
  if (a.radius == 0)
    return Bounded::exact(value);
  long double low = format.round(lowEnd(a));
  long double high = format.round(highEnd(a));
  if (isNan(low) && isNan(high))
    return Bounded::exact(low);
  if (low == high)
    return hull(low, high);
  // The numbers up to the largest, and what lies past it.
  unsigned outcomes = outcomeOf(low) | outcomeOf(high);
  if (!isFinite(low) && !isFinite(high)) {
    value = 0;
    low = -format.maxFinite, high = format.maxFinite;
  } else if (!isFinite(high)) {
    high = format.maxFinite;
  } else if (!isFinite(low)) {
    low = -format.maxFinite;
  }
  if (!isFinite(value))
    value = std::copysign(format.maxFinite, a.value);
  return withOutcomes({value, std::max(high - value, value - low), false},
                      outcomes);
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
  if (isNan(a.value) || isNan(b.value))
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
  return tri(isNan(a.value) || isNan(b.value));
}

Bounded select(Tri condition, const Bounded &ifTrue, const Bounded &ifFalse) {
  if (condition == Tri::True)
    return ifTrue;
  if (condition == Tri::False)
    return ifFalse;
  return unite(ifTrue, ifFalse);
}

Bounded either(const Bounded &a, const Bounded &b) {
  if (!isFinite(a.value) || !isFinite(b.value))
    return unite(a, b);
  long double distance = std::fabs(a.value - b.value);
  Bounded result = withOutcomes(
      {a.value, std::max(a.radius, b.radius + distance * inflation), false},
      a.outcomes | b.outcomes);
  if (a.isUnknown() || b.isUnknown())
    result.forget();
  return result;
}

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

namespace {

bool isWithin(const Bounded &expected, double actual, DType storage) {
  if (isNan(expected.value) || std::isnan(actual))
    return isNan(expected.value) && std::isnan(actual);
  if (isInfinite(expected.value))
    return expected.value == static_cast<long double>(actual);
  if (std::isinf(actual)) {
    long double threshold = floatFormat(storage).overflowThreshold;
    return actual > 0 ? expected.value + expected.radius >= threshold
                      : expected.value - expected.radius <= -threshold;
  }
  return std::fabs(actual - expected.value) <= expected.radius * inflation;
}

} // namespace

Verdict judge(const Bounded &expected, double actual, DType storage) {
  if (expected.isUnknown())
    return Verdict::Undecided;
  unsigned outcome = outcomeOf(actual);
  if (actual == 0)
    outcome = Zero;
  if (isWithin(expected, actual, storage) || (outcome & expected.outcomes))
    return Verdict::Accept;
  return expected.leftRange ? Verdict::Undecided : Verdict::Reject;
}

bool accepts(const Bounded &expected, double actual, DType storage) {
  return judge(expected, actual, storage) == Verdict::Accept;
}

} // namespace tessera::bounded
