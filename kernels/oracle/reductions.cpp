//===- kernels/oracle/reductions.cpp - Reductions along an axis and cumsum ===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

#include <cmath>
#include <limits>

namespace tessera::oracle {
namespace {

Bounded sumOfRow(const Floats &x, int64_t row, const Arithmetic &arithmetic) {
  bounded::Summation sum(arithmetic);
  for (int64_t col = 0; col < x.extents[1]; ++col)
    sum.add(x.bounded(row, col));
  return sum.finish();
}

/// NaN above +inf; -0 and +0 tie.
bool isAbove(long double a, long double b) {
  if (std::isnan(a))
    return !std::isnan(b);
  return a > b;
}

/// An output that has one number per row.
template <typename Reduce>
Result<OracleResult> perRow(const OracleArgs &args, Reduce reduce) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, {x.extents[0]});
  inParallel(args, x.extents[0],
             [&](int64_t row) { y.place(row, reduce(x, row)); });
  return resultOf("y", y.take());
}

} // namespace

Result<OracleResult> rowSum(const OracleArgs &args) {
  return perRow(args, [&](const Floats &x, int64_t row) {
    return sumOfRow(x, row, args.arithmetic);
  });
}

Result<OracleResult> rowMean(const OracleArgs &args) {
  return perRow(args, [&](const Floats &x, int64_t row) {
    const Arithmetic &rules = args.arithmetic;
    int64_t n = x.extents[1];
    if (n == 0)
      return Bounded::nan();
    Bounded sum = sumOfRow(x, row, rules);
    Bounded count = Bounded::exact(n);
    Bounded inverse = div(Bounded::exact(1), count, rules);
    return either(div(sum, count, rules), mul(sum, inverse, rules));
  });
}

Result<OracleResult> rowMax(const OracleArgs &args) {
  return perRow(args, [&](const Floats &x, int64_t row) {
    long double best = -std::numeric_limits<long double>::infinity();
    for (int64_t col = 0; col < x.extents[1]; ++col)
      if (isAbove(x.at(row, col), best))
        best = x.at(row, col);
    return Bounded::exact(best);
  });
}

Result<OracleResult> colSum(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, {x.extents[1]});
  inParallel(args, x.extents[1], [&](int64_t col) {
    bounded::Summation sum(args.arithmetic);
    for (int64_t row = 0; row < x.extents[0]; ++row)
      sum.add(x.bounded(row, col));
    y.place(col, sum.finish());
  });
  return resultOf("y", y.take());
}

Result<OracleResult> argMax(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  OracleOutput index{DType::I64, {x.extents[0]}, {}, {}};
  for (int64_t row = 0; row < x.extents[0]; ++row) {
    int64_t best = x.extents[1] == 0 ? -1 : 0;
    for (int64_t col = 1; col < x.extents[1]; ++col)
      if (isAbove(x.at(row, col), x.at(row, best)))
        best = col;
    index.integers.push_back(best);
  }
  return resultOf("index", std::move(index));
}

Result<OracleResult> cumsum(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  FloatOutput y(args, x.extents);
  inParallel(args, x.extents[0], [&](int64_t row) {
    bounded::Summation sum(args.arithmetic);
    for (int64_t col = 0; col < x.extents[1]; ++col) {
      sum.add(x.bounded(row, col));
      // Prefixes share partial sums in ways that the plan's partials do not
      // describe, but any grouping passes at most this many additions.
      y.place(row * x.extents[1] + col, sum.finish(/*depth=*/col));
    }
  });
  return resultOf("y", y.take());
}

} // namespace tessera::oracle
