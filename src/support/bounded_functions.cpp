//===- support/bounded_functions.cpp - Functions of bounded numbers -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How an argument's radius passes through a function, and the function's own
// error on top. A monotone function is bounded by its values at the ends of the
// interval; those that the oracles call for each element by the largest slope
// over the interval, which costs no further evaluation.
//
//===----------------------------------------------------------------------===//

#include "support/bounded.h"

#include "support/bounded_outcomes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::bounded {
namespace {

long double evaluate(Function function, long double x) {
  switch (function) {
  case Function::Exp:
    return std::exp(x);
  case Function::Exp2:
    return std::exp2(x);
  case Function::Expm1:
    return std::expm1(x);
  case Function::Log:
    return std::log(x);
  case Function::Log2:
    return std::log2(x);
  case Function::Log10:
    return std::log10(x);
  case Function::Log1p:
    return std::log1p(x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Erf:
    return std::erf(x);
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  case Function::Rsqrt:
    return 1 / std::sqrt(x);
  case Function::Sigmoid:
    // Both forms keep the relative accuracy of the small side.
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  }
  return std::numeric_limits<long double>::quiet_NaN();
}

/// The open lower end of the function's domain, where its value is an infinity.
long double domainBegin(Function function) {
  switch (function) {
  case Function::Log:
  case Function::Log2:
  case Function::Log10:
  case Function::Rsqrt:
    return 0;
  case Function::Log1p:
    return -1;
  default:
    return -infinity;
  }
}

/// How far a monotone function moves over the interval around x.
template <typename F>
long double monotoneRadius(const Bounded &a, long double value, F f) {
  if (a.radius == 0)
    return 0;
  long double atLow = f(std::nextafter(a.value - a.radius, -infinity));
  long double atHigh = f(std::nextafter(a.value + a.radius, infinity));
  long double moved =
      std::max(std::fabs(atHigh - value), std::fabs(value - atLow));
  return moved + 4 * ownError * std::max(std::fabs(atLow), std::fabs(atHigh));
}

long double propagate(Function function, const Bounded &a, long double value) {
  long double r = a.radius;
  if (r == 0)
    return 0;
  if (function == Function::Sin || function == Function::Cos)
    return std::min(r, 2.0L);
  if (function == Function::Exp || function == Function::Exp2) {
    if (function == Function::Exp2)
      r *= 0.6931471805599453095L;
    // e^r - 1 <= r + r^2 for r <= 1.
    return value * (r <= 1 ? r + r * r : std::expm1(r));
  }
  // Both factors of the slope s (1 - s) grow by at most e^r over the interval;
  // e^2r <= 1 + 2r + 4r^2 for r <= 1/2. The constant covers the cancellation.
  if (function == Function::Sigmoid && r <= 0.5L)
    return r * (value * (1 - value) + ownError) * (1 + 2 * r + 4 * r * r);
  // The slope is 1 - t^2, t moving towards zero by at most r.
  if (function == Function::Tanh) {
    long double t = std::max(std::fabs(value) - r, 0.0L);
    return r * (1 - t * t + 2 * ownError);
  }
  // The slope is 1 / x.
  if (function == Function::Log && r < a.value / 2)
    return r / (a.value - r);
  return monotoneRadius(a, value,
                        [&](long double x) { return evaluate(function, x); });
}

/// True where every legal implementation returns `value` itself.
bool valueIsExact(Function function, const Bounded &a, long double value) {
  if (a.radius != 0)
    return false;
  bool underflows = function == Function::Exp || function == Function::Exp2 ||
                    function == Function::Sigmoid;
  return value == 0 && !underflows;
}

} // namespace

Bounded apply(Function function, const Bounded &a,
              const Arithmetic &arithmetic) {
  const FloatFormat &format = arithmetic.format();
  if (a.leftRange)
    return overParts(settled(a, format), [&](const Bounded &x) {
      return apply(function, x, arithmetic);
    });
  if (isNan(a.value))
    return Bounded::exact(a.value);
  if (isInfinite(a.value) &&
      (function == Function::Exp || function == Function::Exp2))
    return Bounded::exact(std::signbit(a.value) ? 0.0L : a.value);
  long double begin = domainBegin(function);
  bool straddles = a.radius > 0 && a.value - a.radius <= begin &&
                   a.value + a.radius >= begin;
  if (straddles)
    return Bounded::undecided(evaluate(function, std::max(a.value, begin)));
  long double value = evaluate(function, a.value);
  bool pole = a.radius == 0 && a.value == begin;
  if (isNan(value) || isInfinite(a.value) || pole)
    return Bounded::exact(value);
  if (valueIsExact(function, a, value))
    return Bounded::exact(value);
  if (isInfinite(value)) {
    // An exponential that not even a long double holds.
    bool certain =
        value > 0 &&
        evaluate(function, std::nextafter(a.value - a.radius, -infinity)) >
            2 * format.maxFinite;
    return certain ? Bounded::exact(value) : Bounded::undecided(value);
  }

  FunctionUlps rule = arithmetic.ulps(function);
  long double propagated = propagate(function, a, value);
  // The oracle's own error may hide that the result is in the next binade.
  long double magnitude = std::fabs(value) * (1 + 4 * ownError) + propagated;
  if (!isFinite(magnitude))
    return Bounded::undecided(value);
  // At least half a unit: whatever the rule says, the result is rounded.
  long double units = std::max<long double>(
      rule.constant + rule.slope * (std::fabs(a.value) + a.radius), 0.5L);
  // Near a power of two the rule may be meant in units of either binade: the
  // larger one counts.
  long double unit = format.ulp(magnitude + units * format.ulp(magnitude));
  long double radius = propagated + units * unit;
  radius = radius * (1 + 64 * ownError) + 4 * ownError * std::fabs(value);
  return settled(withOverflow({value, radius, false}, format), format);
}

Bounded sqrt(const Bounded &a, const Arithmetic &arithmetic) {
  const FloatFormat &format = arithmetic.format();
  if (a.leftRange)
    return overParts(settled(a, format),
                     [&](const Bounded &x) { return sqrt(x, arithmetic); });
  if (a.radius > 0 && a.value - a.radius < 0 && a.value + a.radius >= 0)
    return Bounded::undecided(std::sqrt(std::max(a.value, 0.0L)));
  long double value = std::sqrt(a.value);
  if (!isFinite(value) || a.value == 0)
    return Bounded::exact(value);
  long double propagated = monotoneRadius(
      a, value, [](long double x) { return std::sqrt(std::max(x, 0.0L)); });
  if (a.radius == 0 && format.represents(value) && value * value == a.value &&
      std::fma(value, value, -a.value) == 0)
    return Bounded::exact(value);
  long double magnitude = std::fabs(value) + propagated;
  long double radius = propagated + format.ulp(magnitude) / 2;
  radius = radius * (1 + 64 * ownError) + ownError * std::fabs(value);
  return withOverflow({value, radius, false}, format);
}

} // namespace tessera::bounded
