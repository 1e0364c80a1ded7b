//===- kernels/oracle/ordering.cpp - Sorting and selection along rows ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::oracle {
namespace {

/// NaN is above all numbers, -0 and +0 are equal.
bool isBelow(long double a, long double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

/// The first `count` elements of each sorted row; 0 from position -1 where
/// there are no more.
Result<OracleResult> sortedRows(const OracleArgs &args, const Floats &x,
                                int64_t count, bool descending) {
  int64_t rows = x.extents[0], cols = x.extents[1];
  FloatOutput values(args, {rows, count});
  OracleOutput indices{DType::I64, {rows, count}, {}, {}};
  indices.integers.assign(static_cast<size_t>(rows * count), -1);
  inParallel(args, rows, [&](int64_t row) {
    std::vector<int64_t> order(static_cast<size_t>(cols));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      long double a = x.at(row, i), b = x.at(row, j);
      bool before = descending ? isBelow(b, a) : isBelow(a, b);
      bool after = descending ? isBelow(a, b) : isBelow(b, a);
      return before || (!after && i < j);
    });
    for (int64_t i = 0; i < std::min(count, cols); ++i) {
      int64_t from = order[static_cast<size_t>(i)];
      values.place(row * count + i, x.bounded(row, from));
      indices.integers[static_cast<size_t>(row * count + i)] = from;
    }
  });
  return resultOf("values", values.take(), "indices", std::move(indices));
}

} // namespace

Result<OracleResult> sort(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  return sortedRows(args, x, x.extents[1], inputs.flag("descending"));
}

Result<OracleResult> topK(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  int64_t k = inputs.dim("k");
  if (inputs.error())
    return *inputs.error();
  return sortedRows(args, x, k, inputs.scalar("largest", 1) != 0);
}

} // namespace tessera::oracle
