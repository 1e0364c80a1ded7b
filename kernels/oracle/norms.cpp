//===- kernels/oracle/norms.cpp - RMS and layer normalization -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The variance's radius is that of the reference form of docs/semantics.md:
//
//   m = mean(x), c = x - m, d = mean(c), var = mean(c^2) - d^2, y from c - d
//
// all rounded. With an exact mean mu, deviations t = x - mu and a computed m
// off by s = mu - m, |s| <= delta (the error of a sum of x), c is t + s plus a
// rounding, d recovers s up to the error of a sum of values of size |t| +
// delta, and d^2 removes the s^2 that mean(c^2) has too much. So the radius
// depends on delta only through terms that carry another factor of the unit
// roundoff: an offset costs little, while E[x^2] - E[x]^2 and a mean that is
// merely rounded are far outside.
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace tessera::oracle {
namespace {

using Row = std::vector<Bounded>;

Bounded meanOf(const bounded::Summation &sum, const Arithmetic &arithmetic) {
  Bounded total = sum.finish();
  Bounded count = Bounded::exact(sum.terms());
  Bounded inverse = div(Bounded::exact(1), count, arithmetic);
  return either(div(total, count, arithmetic), mul(total, inverse, arithmetic));
}

/// x / sqrt(variance) or x * rsqrt(variance).
Bounded scaled(const Bounded &x, const Bounded &inverse, const Bounded &root,
               const Arithmetic &arithmetic) {
  return either(mul(x, inverse, arithmetic), div(x, root, arithmetic));
}

struct Centered {
  /// x - mean(x), each as the executions have it after the correction by d.
  Row deviations;
  Bounded variance;
};

/// The relative error of a sum of n terms and its division by n.
long double meanError(int64_t n, const Arithmetic &arithmetic) {
  long double unit = arithmetic.format().unitRoundoff();
  long double growth = static_cast<long double>(arithmetic.depth(n) + 3) * unit;
  return growth < 0.5L ? growth / (1 - growth) : 2 * growth;
}

/// The error of a mean of n terms, from the mean and the largest of their
/// magnitudes: where all are of one size, as with an offset, the average number
/// of additions counts and not the largest. For sums about a reference also
/// from the mean of their squares; 0 for what is a square itself.
long double meanError(int64_t n, long double mean, long double largest,
                      long double meanSquare, const Arithmetic &arithmetic) {
  const long double gamma = meanError(n, arithmetic);
  const long double count = n;
  const auto depth = static_cast<long double>(arithmetic.depth(n) + 3);
  const long double average = arithmetic.meanDepth(n) + 3;
  if (!arithmetic.aboutReference)
    return gamma * std::min(mean, largest * (average / depth));
  // The reference lies among the elements, so that none is further from it than
  // twice the furthest from any centre: docs/numerics.md has the factors.
  const long double spread = meanSquare > 0 ? 2 : 8;
  return std::min(
      gamma / count *
          arithmetic.effectiveMagnitude(mean * count, meanSquare * count, n),
      gamma * spread * largest * ((average + 2) / depth));
}

Centered center(const Row &x, const Arithmetic &arithmetic) {
  const auto n = static_cast<int64_t>(x.size());
  const long double count = n;
  const FloatFormat &format = arithmetic.format();
  const long double unit = format.unitRoundoff();
  const long double gamma = meanError(n, arithmetic);
  // Divisions and squares of tiny values round to multiples of this.
  const long double tiny = format.minSubnormal();

  bounded::Summation sum(arithmetic);
  long double magnitude = 0, inputRadius = 0, largest = 0, meanSquare = 0;
  for (const Bounded &value : x) {
    sum.add(value);
    magnitude += std::fabs(value.value) / count;
    meanSquare += value.value * value.value / count;
    inputRadius += value.radius / count;
    largest = std::max(largest, std::fabs(value.value) + value.radius);
  }
  Bounded total = sum.finish();
  Centered result;
  if (!std::isfinite(total.value)) {
    // An infinity leaves a NaN in x - mean and so in every statistic.
    result.variance = Bounded::nan();
    if (total.isUnknown())
      result.variance.forget();
    result.deviations.assign(x.size(), result.variance);
    return result;
  }

  const long double mu = total.value / count;
  const long double delta =
      meanError(n, magnitude + inputRadius, largest, meanSquare, arithmetic) +
      inputRadius + tiny + std::fabs(mu) * LDBL_EPSILON;

  bounded::Summation squares(arithmetic);
  long double plainSquares = 0, above = 0, below = 0;
  long double meanAbs = 0, meanRounding = 0, meanSquareError = 0, furthest = 0;
  long double meanSquareReach = 0;
  std::vector<long double> roundings;
  roundings.reserve(x.size());
  for (const Bounded &value : x) {
    long double t = value.value - mu;
    long double reach = std::fabs(t) + delta;
    long double rounding = value.radius + unit * (reach + value.radius) +
                           std::fabs(mu) * LDBL_EPSILON;
    squares.addProduct(t, t);
    plainSquares += t * t;
    (t > 0 ? above : below) += std::fabs(t);
    roundings.push_back(rounding);
    meanAbs += reach / count;
    meanSquareReach += reach * reach / count;
    furthest = std::max(furthest, reach + rounding);
    meanRounding += rounding / count;
    meanSquareError += (2 * reach * rounding + rounding * rounding) / count;
  }
  // The sum's value is the more accurate, unless it is past the range.
  const long double squareSum = squares.finish().value;
  const long double variance =
      (std::isfinite(squareSum) ? squareSum : plainSquares) / count;
  // d against s.
  const long double correction = meanRounding +
                                 meanError(n, meanAbs + meanRounding, furthest,
                                           meanSquareReach, arithmetic) +
                                 tiny;
  // mean(c^2) against variance + s^2, then d^2 against s^2.
  const long double square = variance + delta * delta + meanSquareError;
  const long double dReach = delta + correction;
  const long double varianceRadius =
      meanSquareError +
      meanError(n, square, furthest * furthest, 0, arithmetic) +
      2 * delta * correction + correction * correction +
      2 * unit * dReach * dReach + unit * (variance + square) + 3 * tiny;

  // Where the sum of x or a deviation may be infinite, all may be NaN.
  unsigned outcomes = 0;
  if (total.leftRange || !(furthest <= format.maxFinite) ||
      !((std::max(above, below) + count * (delta + meanRounding)) *
            (1 + gamma) <=
        format.maxFinite))
    outcomes |= bounded::NotANumber;
  auto finished = [&](long double value, long double radius, unsigned also) {
    Bounded bounded{value, radius, false};
    bounded.outcomes = static_cast<uint8_t>(outcomes | also);
    bounded.leftRange = bounded.outcomes != 0;
    if (total.isUnknown() || !std::isfinite(radius))
      bounded.forget();
    return bounded;
  };
  // If the square of the correction overflows too, their difference is NaN.
  const unsigned lost = dReach * dReach * (1 + 2 * unit) <= format.maxFinite
                            ? 0
                            : static_cast<unsigned>(bounded::NotANumber);
  // The squares may overflow in some partial sum, or must in their whole.
  long double least = (variance - meanSquareError) * count * (1 - gamma);
  if (least >= format.overflowThreshold)
    result.variance =
        finished(std::numeric_limits<long double>::infinity(), 0, lost);
  else {
    // Executions replace a negative difference by 0.
    const long double low = std::max(variance - varianceRadius, 0.0L);
    const long double high = variance + varianceRadius;
    const long double middle = low > 0 ? variance : high / 2;
    result.variance =
        finished(middle, std::max(high - middle, middle - low),
                 lost | (square * count * (1 + gamma) <= format.maxFinite
                             ? 0u
                             : static_cast<unsigned>(bounded::PlusInfinity)));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    long double t = x[i].value - mu;
    long double radius = roundings[i] + correction;
    radius += unit * (std::fabs(t) + radius);
    result.deviations.push_back(finished(t, radius, 0));
  }
  return result;
}

/// The columns' weights and, for layer_norm, biases.
struct Affine {
  const Floats &weight;
  const Floats *bias;
};

void placeLayerNormRow(const Row &x, int64_t row, const Affine &affine,
                       const Bounded &eps, const Arithmetic &rules,
                       FloatOutput &y) {
  Centered centered = center(x, rules);
  Bounded padded = add(centered.variance, eps, rules);
  Bounded inverse = rsqrt(padded, rules);
  Bounded root = sqrt(padded, rules);
  for (size_t col = 0; col < x.size(); ++col) {
    auto index = static_cast<int64_t>(col);
    Bounded normal = scaled(centered.deviations[col], inverse, root, rules);
    y.place(row * static_cast<int64_t>(x.size()) + index,
            fma(normal, affine.weight.bounded(index),
                affine.bias->bounded(index), rules));
  }
}

void placeRmsNormRow(const Row &x, int64_t row, const Affine &affine,
                     const Bounded &eps, const Arithmetic &rules,
                     FloatOutput &y) {
  bounded::Summation squares(rules);
  for (const Bounded &value : x)
    squares.add(mul(value, value, rules));
  Bounded padded = add(meanOf(squares, rules), eps, rules);
  Bounded inverse = rsqrt(padded, rules);
  Bounded root = sqrt(padded, rules);
  for (size_t col = 0; col < x.size(); ++col) {
    auto index = static_cast<int64_t>(col);
    y.place(row * static_cast<int64_t>(x.size()) + index,
            mul(scaled(x[col], inverse, root, rules),
                affine.weight.bounded(index), rules));
  }
}

Row rowOf(const Floats &x, const Floats *residual, int64_t row,
          const Arithmetic &rules) {
  Row values;
  for (int64_t col = 0; col < x.extents[1]; ++col)
    values.push_back(
        residual ? add(x.bounded(row, col), residual->bounded(row, col), rules)
                 : x.bounded(row, col));
  return values;
}

/// What the four operators share; `layer` tells the kind, `withResidual` adds
/// r to x, `withSum` also gives the sum.
Result<OracleResult> normalize(const OracleArgs &args, bool layer,
                               bool withResidual, bool withSum) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  Floats residual;
  if (withResidual)
    residual = inputs.floatsOf("r", x.extents);
  Floats weight = inputs.floatsOf("w", {x.extents[1]});
  Floats bias;
  if (layer)
    bias = inputs.floatsOf("b", {x.extents[1]});
  if (inputs.error())
    return *inputs.error();

  const Arithmetic &rules = args.arithmetic;
  Bounded eps =
      bounded::parameter(inputs.scalar("eps", layer ? 1e-5 : 1e-6), rules);
  Affine affine{weight, layer ? &bias : nullptr};
  FloatOutput y(args, x.extents);
  FloatOutput s(args, withSum ? x.extents : std::vector<int64_t>{0});
  inParallel(args, x.extents[0], [&](int64_t row) {
    Row values = rowOf(x, withResidual ? &residual : nullptr, row, rules);
    if (layer)
      placeLayerNormRow(values, row, affine, eps, rules, y);
    else
      placeRmsNormRow(values, row, affine, eps, rules, y);
    if (withSum)
      for (int64_t col = 0; col < x.extents[1]; ++col)
        s.place(row * x.extents[1] + col, values[static_cast<size_t>(col)]);
  });
  OracleResult result = resultOf("y", y.take());
  if (withSum)
    result.emplace("s", s.take());
  return result;
}

} // namespace

Result<OracleResult> rmsNorm(const OracleArgs &args) {
  return normalize(args, /*layer=*/false, /*withResidual=*/false,
                   /*withSum=*/false);
}

Result<OracleResult> addRmsNorm(const OracleArgs &args) {
  return normalize(args, /*layer=*/false, /*withResidual=*/true,
                   /*withSum=*/true);
}

Result<OracleResult> layerNorm(const OracleArgs &args) {
  return normalize(args, /*layer=*/true, /*withResidual=*/false,
                   /*withSum=*/false);
}

Result<OracleResult> residualLayerNorm(const OracleArgs &args) {
  return normalize(args, /*layer=*/true, /*withResidual=*/true,
                   /*withSum=*/false);
}

} // namespace tessera::oracle
