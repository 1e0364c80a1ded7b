//===- kernels/oracle/softmax.cpp - Softmax and cross-entropy -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/exponentials.h"
#include "kernels/oracle/families.h"
#include "support/special.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::oracle {

namespace {

Bounded between(long double low, long double high) {
  return {(low + high) / 2, (high - low) / 2, false};
}

/// exp(x - maximum). The maximum that an execution subtracts is one of its own
/// x: whatever they are, the difference is at most 0, where the bounds of the
/// two apart would let it pass 0 by the errors of both.
Bounded shiftedExp(const Bounded &difference, const Arithmetic &arithmetic) {
  Bounded term = exp(difference, arithmetic);
  long double low = difference.value - difference.radius;
  if (difference.leftRange || !(difference.radius > 0) || !(low <= 0) ||
      !(difference.value + difference.radius > 0) || !std::isfinite(low))
    return term;
  Bounded least = exp(Bounded::exact(low), arithmetic);
  Bounded most = exp(Bounded::exact(0), arithmetic);
  return between(std::max(least.value - least.radius, 0.0L),
                 most.value + most.radius);
}

/// The sum of exponentials, of which the one of the maximum is exp(0).
Bounded withMaximum(const Bounded &sum, const Arithmetic &arithmetic) {
  Bounded one = exp(Bounded::exact(0), arithmetic);
  long double least =
      (one.value - one.radius) * (1 - 4 * arithmetic.format().unitRoundoff());
  long double high = sum.value + sum.radius;
  if (sum.leftRange || !std::isfinite(high) || high < least ||
      sum.value - sum.radius >= least)
    return sum;
  return between(least, high);
}

} // namespace

Exponentials exponentials(const std::vector<Bounded> &x,
                          const Arithmetic &arithmetic) {
  Exponentials result;
  result.maximum =
      Bounded::exact(-std::numeric_limits<long double>::infinity());
  for (const Bounded &value : x)
    result.maximum = max(result.maximum, value);

  // On the way to the final maximum a partial sum is multiplied by at most one
  // exponential per addition. The arguments of those add up to x - maximum, so
  // the part of the error that grows with them is already in exp(x - maximum);
  // left are the constant parts and the roundings of the products.
  const FloatFormat &format = arithmetic.format();
  int64_t rescales = arithmetic.onlineExponentials
                         ? arithmetic.depth(static_cast<int64_t>(x.size()))
                         : 0;
  long double perRescale =
      (2 * arithmetic.ulps(bounded::Function::Exp).constant + 1) *
      format.unitRoundoff();
  long double growth = rescales * perRescale;
  long double relative = growth < 0.5L ? growth / (1 - growth) : growth * 2;

  bounded::Summation sum(arithmetic);
  result.terms.reserve(x.size());
  result.summands.reserve(x.size());
  for (const Bounded &value : x) {
    Bounded term =
        shiftedExp(sub(value, result.maximum, arithmetic), arithmetic);
    Bounded summand = term;
    if (rescales > 0 && isFinite(term.value) &&
        (term.value != 0 || term.radius != 0))
      summand.radius += relative * (term.value + term.radius) +
                        rescales * format.minSubnormal();
    sum.add(summand);
    result.terms.push_back(term);
    result.summands.push_back(summand);
  }
  result.sum = x.empty() ? sum.finish() : withMaximum(sum.finish(), arithmetic);
  return result;
}

namespace {

/// term / sum, which executions may write as term * (1 / sum).
Bounded quotient(const Bounded &term, const Bounded &sum,
                 const Arithmetic &arithmetic) {
  Bounded inverse = div(Bounded::exact(1), sum, arithmetic);
  return either(div(term, sum, arithmetic), mul(term, inverse, arithmetic));
}

/// Softmax of one row's visible elements; the others are zeros.
template <typename IsVisible>
void placeSoftmaxRow(const Floats &x, int64_t row, IsVisible isVisible,
                     const Arithmetic &arithmetic, FloatOutput &y) {
  std::vector<Bounded> visible;
  for (int64_t col = 0; col < x.extents[1]; ++col)
    if (isVisible(col))
      visible.push_back(x.bounded(row, col));
  Exponentials e = exponentials(visible, arithmetic);
  size_t next = 0;
  for (int64_t col = 0; col < x.extents[1]; ++col)
    y.place(row * x.extents[1] + col,
            isVisible(col) ? quotient(e.terms[next++], e.sum, arithmetic)
                           : Bounded::exact(0));
}

} // namespace

Result<OracleResult> softmax(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, x.extents);
  inParallel(args, x.extents[0], [&](int64_t row) {
    placeSoftmaxRow(x, row, [](int64_t) { return true; }, args.arithmetic, y);
  });
  return resultOf("y", y.take());
}

Result<OracleResult> maskedSoftmax(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  Integers mask = inputs.integersOf("mask", x.extents);
  if (inputs.error())
    return *inputs.error();
  int64_t cols = x.extents[1];
  FloatOutput y(args, x.extents);
  inParallel(args, x.extents[0], [&](int64_t row) {
    placeSoftmaxRow(
        x, row, [&](int64_t col) { return mask.at(row * cols + col) != 0; },
        args.arithmetic, y);
  });
  return resultOf("y", y.take());
}

Result<OracleResult> crossEntropy(const OracleArgs &args) {
  Inputs inputs(args);
  Floats logits = inputs.floats("logits", 2);
  Integers target = inputs.integersOf("target", {logits.extents[0]});
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  auto ignored = static_cast<int64_t>(inputs.scalar("ignore_index", -100));
  int64_t cols = logits.extents[1];
  FloatOutput loss(args, {logits.extents[0]});
  inParallel(args, logits.extents[0], [&](int64_t row) {
    int64_t wanted = target.at(row);
    if (wanted == ignored)
      return loss.place(row, Bounded::exact(0));
    if (wanted < 0 || wanted >= cols)
      return loss.place(row, Bounded::nan());
    std::vector<Bounded> x;
    for (int64_t col = 0; col < cols; ++col)
      x.push_back(logits.bounded(row, col));
    Exponentials e = exponentials(x, rules);
    Bounded logSum = log(e.sum, rules);
    Bounded picked = logits.bounded(row, wanted);
    // (max + log(sum)) - x and log(sum) - (x - max) are both in use.
    loss.place(row, either(sub(add(e.maximum, logSum, rules), picked, rules),
                           sub(logSum, sub(picked, e.maximum, rules), rules)));
  });
  return resultOf("loss", loss.take());
}

} // namespace tessera::oracle
