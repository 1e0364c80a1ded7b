//===- support/bounded_outcomes.cpp - Results beside a number -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/bounded_outcomes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

namespace tessera::bounded {

Parts::Parts(const Bounded &value) {
  auto part = [&](long double exactly) {
    new (&parts[count++]) Bounded(Bounded::exact(exactly));
  };
  new (&parts[count++]) Bounded{value.value, value.radius, false};
  if (value.outcomes & PlusInfinity)
    part(infinity);
  if (value.outcomes & MinusInfinity)
    part(-infinity);
  if (value.outcomes & NotANumber)
    part(std::numeric_limits<long double>::quiet_NaN());
  // The sign of a zero is free.
  if (value.outcomes & Zero) {
    part(0.0L);
    part(-0.0L);
  }
}

uint8_t outcomeOf(long double value) {
  if (isNan(value))
    return NotANumber;
  if (isInfinite(value))
    return std::signbit(value) ? MinusInfinity : PlusInfinity;
  return 0;
}

Bounded withOutcomes(Bounded value, unsigned outcomes) {
  if (value.isUnknown())
    return value;
  outcomes |= value.outcomes;
  outcomes &= ~static_cast<unsigned>(outcomeOf(value.value));
  if (value.mayBeZero())
    outcomes &= ~static_cast<unsigned>(Zero);
  value.outcomes = static_cast<uint8_t>(outcomes);
  value.leftRange = outcomes != 0;
  return value;
}

Bounded withOverflow(const Bounded &value, const FloatFormat &format) {
  if (!isFinite(value.value))
    return value;
  unsigned outcomes = 0;
  if (!(value.value + value.radius <= format.maxFinite))
    outcomes |= PlusInfinity;
  if (!(value.value - value.radius >= -format.maxFinite))
    outcomes |= MinusInfinity;
  return outcomes == 0 ? value : withOutcomes(value, outcomes);
}

Bounded settled(const Bounded &value, const FloatFormat &format) {
  if (value.outcomes == 0 || !isFinite(value.value))
    return value;
  long double size = std::fabs(value.value);
  if (!(size * (1 - ownError) - value.radius >= format.overflowThreshold))
    return value;
  return withOutcomes(Bounded::exact(std::copysign(infinity, value.value)),
                      value.outcomes);
}

Bounded unite(const Bounded &a, const Bounded &b) {
  unsigned outcomes = a.outcomes | b.outcomes;
  Bounded result;
  bool aIsNumber = isFinite(a.value), bIsNumber = isFinite(b.value);
  auto isZero = [](const Bounded &x) { return x.value == 0 && x.radius == 0; };
  if (!aIsNumber || !bIsNumber) {
    // A number stands for the union if there is one.
    const Bounded &shown = aIsNumber || !bIsNumber ? a : b;
    const Bounded &other = &shown == &a ? b : a;
    result = {shown.value, shown.radius, false};
    outcomes |= outcomeOf(other.value);
  } else if (a.value == b.value) {
    result = {a.value, std::max(a.radius, b.radius), false};
  } else if (isZero(a) || isZero(b)) {
    // An exact zero beside a number (1 / infinity beside 1 / x) is no hull.
    const Bounded &other = isZero(a) ? b : a;
    result = {other.value, other.radius, false};
    outcomes |= Zero;
  } else {
    long double low = std::min(a.value - a.radius, b.value - b.radius);
    long double high = std::max(a.value + a.radius, b.value + b.radius);
    long double middle = low + (high - low) / 2;
    long double radius = std::max(high - middle, middle - low);
    long double slack =
        4 * ownError * std::max(std::fabs(low), std::fabs(high));
    result = {middle, radius * (1 + 64 * ownError) + slack, false};
  }
  result = withOutcomes(result, outcomes);
  if (a.isUnknown() || b.isUnknown())
    result.forget();
  return result;
}

} // namespace tessera::bounded
