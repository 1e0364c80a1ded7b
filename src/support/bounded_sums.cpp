//===- support/bounded_sums.cpp - Sums known within a radius --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/bounded_outcomes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::bounded {

Summation::Summation(const Arithmetic &arithmetic) : arithmetic(&arithmetic) {}

void Summation::accumulate(long double term) {
  long double sum = high + term;
  long double fromTerm = sum - high;
  low += (high - (sum - fromTerm)) + (term - fromTerm);
  high = sum;
  (term > 0 ? positive : negative) += std::fabs(term);
}

void Summation::add(const Bounded &term) {
  ++count;
  unknown |= term.isUnknown();
  outcomes |= term.outcomes;
  if (isFinite(term.value)) {
    accumulate(term.value);
    radius += term.radius;
    squares += (std::fabs(term.value) + term.radius) *
               (std::fabs(term.value) + term.radius);
    positiveReach +=
        std::max(0.0L, std::min(term.radius, term.value + term.radius));
    negativeReach +=
        std::max(0.0L, std::min(term.radius, term.radius - term.value));
    largest = std::max(largest, std::fabs(term.value) + term.radius);
    // The term may be zero instead.
    if (term.outcomes & Zero)
      radius += std::fabs(term.value);
    return;
  }
  if (term.outcomes != 0) {
    // One of several, none of them a number within a radius.
    outcomes |= outcomeOf(term.value);
    noNumber |= (term.outcomes & Zero) == 0;
    return;
  }
  if (isNan(term.value))
    sawNan = true;
  else
    (std::signbit(term.value) ? sawNegativeInfinity : sawPositiveInfinity) =
        true;
}

void Summation::add(const Totals &totals) {
  count += totals.terms;
  long double sum = high + totals.high;
  long double fromTotals = sum - high;
  low += (high - (sum - fromTotals)) + (totals.high - fromTotals) + totals.low;
  high = sum;
  long double value = totals.high + totals.low;
  positive += std::max(0.0L, (totals.magnitude + value) / 2);
  negative += std::max(0.0L, (totals.magnitude - value) / 2);
  radius += totals.radius;
  squares += totals.largest * (totals.magnitude + totals.radius);
  positiveReach += totals.radius;
  negativeReach += totals.radius;
  largest = std::max(largest, totals.largest);
}

/// Whether a number may be taken for zero.
static bool isSmall(long double x) {
  return x != 0 && std::fabs(x) < 0x1p-126L;
}

static bool mayFlush(long double a, long double b, long double product) {
  return product != 0 && (isSmall(a) || isSmall(b) || isSmall(product));
}

void Summation::addProduct(long double a, long double b) {
  const FloatFormat &format = arithmetic->format();
  if (!isFinite(a) || !isFinite(b)) {
    Bounded term = mul(Bounded::exact(a), Bounded::exact(b), *arithmetic);
    // Zero times infinity is no number.
    if (arithmetic->flushesContractions && (isSmall(a) || isSmall(b)))
      term.outcomes |= NotANumber;
    add(term);
    return;
  }
  long double product = a * b;
  if (arithmetic->flushesContractions && mayFlush(a, b, product)) {
    // Zero, the product, or anything between that its own rounding gives.
    add(Bounded{product, std::fabs(product) + format.minSubnormal(), false});
    return;
  }
  ++count;
  accumulate(product);
  squares += product * product;
  if (product == 0)
    return;
  long double size = std::fabs(product);
  largest = std::max(largest, size * 1.001L);
  if (!(size <= format.maxFinite))
    outcomes |= product > 0 ? PlusInfinity : MinusInfinity;
  static const long double unitF32 =
      floatFormat(DType::F32).unitRoundoff() + ownError;
  static const long double unitF64 =
      floatFormat(DType::F64).unitRoundoff() + ownError;
  static const long double normalF32 = std::ldexp(1.0L, -126);
  static const long double normalF64 = std::ldexp(1.0L, -1022);
  bool wide = arithmetic->compute == DType::F64;
  long double rounding = size < (wide ? normalF64 : normalF32)
                             ? format.minSubnormal()
                             : size * (wide ? unitF64 : unitF32);
  radius += rounding;
  (product > 0 ? positiveReach : negativeReach) += rounding;
}

Bounded Summation::finish(std::optional<int64_t> depth) const {
  if (depth)
    return finish(*depth, static_cast<double>(*depth), 1);
  return finish(arithmetic->depth(count), arithmetic->meanDepth(count), 1);
}

Bounded Summation::finishContraction() const {
  Bounded sum = finish(arithmetic->depth(count), arithmetic->meanDepth(count),
                       arithmetic->contractionUnits);
  // Of each addition the result may be taken for zero.
  if (arithmetic->flushesContractions && isFinite(sum.value))
    sum.radius += static_cast<long double>(count) * 0x1p-126L;
  return sum;
}

Bounded Summation::finish(int64_t depth, double meanDepth,
                          long double units) const {
  const FloatFormat &format = arithmetic->format();
  Bounded result;
  if (sawNan || (sawPositiveInfinity && sawNegativeInfinity)) {
    result = Bounded::nan();
    if (unknown)
      result.forget();
    return result;
  }
  long double value = high + low;
  long double magnitude = positive + negative;
  long double size = magnitude + radius;
  // (1 + u)^d - 1 is at most d * u / (1 - depth * u) for each term's d: every
  // term at the most depth, or terms of the largest magnitude at theirs.
  long double unit = units * format.unitRoundoff();
  long double growth = depth * unit;
  long double inverse = growth < 1 ? 1 / (1 - growth) : infinity;
  long double rounding = 0;
  if (count > 1 && size > 0)
    rounding =
        growth < 1
            ? unit * inverse *
                  (arithmetic->aboutReference
                       ? depth * arithmetic->effectiveMagnitude(size, squares,
                                                                count)
                       : std::min(depth * size, meanDepth * largest * count))
            : infinity;
  if (count > 1)
    rounding += count * ownError * ownError * magnitude;
  // A partial sum may leave the range although the whole does not. Rounding is
  // monotonic, so none is above the computed sum of the positive terms alone or
  // below that of the negative ones.
  long double stretch =
      growth < 1 ? 1 + growth * inverse + count * ownError : infinity;
  auto mayPass = [&](long double sum) {
    return sum > 0 && !(sum * stretch <= format.maxFinite);
  };
  unsigned possible = outcomes & ~static_cast<unsigned>(Zero);
  if (mayPass(positive + positiveReach))
    possible |= PlusInfinity;
  if (mayPass(negative + negativeReach))
    possible |= MinusInfinity;
  bool mayBePlus = sawPositiveInfinity || (possible & PlusInfinity) != 0;
  bool mayBeMinus = sawNegativeInfinity || (possible & MinusInfinity) != 0;
  if (mayBePlus && mayBeMinus && count > 1)
    possible |= NotANumber;
  if (sawPositiveInfinity || sawNegativeInfinity) {
    // An infinite term is always added: the other infinity gives NaN.
    if (count > 1)
      possible &= NotANumber;
    result = withOutcomes(
        Bounded::exact(sawPositiveInfinity ? infinity : -infinity), possible);
  } else if (noNumber) {
    result = Bounded::nan();
    if (possible & (PlusInfinity | MinusInfinity))
      result.value = possible & PlusInfinity ? infinity : -infinity;
    result = withOutcomes(result, possible);
  } else if (count <= 1) {
    result = withOutcomes({value, radius, false}, possible);
  } else {
    result = tessera::bounded::finish(value, radius, rounding, format);
    // Whether the whole overflows is decided by its own ends.
    if (possible != 0)
      result = withOutcomes(result, possible);
    result = settled(result, format);
  }
  if (unknown)
    result.forget();
  return result;
}

} // namespace tessera::bounded
