//===- kernels/oracle/quantized.cpp - Products of quantized matrices -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"
#include "kernels/oracle/products.h"

namespace tessera::oracle {

Result<OracleResult> gemmQ8(const OracleArgs &args) {
  Inputs inputs(args);
  Integers a = inputs.integers("a", 2), b = inputs.integers("b", 2);
  int64_t m = a.extents[0], k = a.extents[1], n = b.extents[1];
  if (!inputs.error() && b.extents[0] != k)
    inputs.fail("b", "has contraction extent " + std::to_string(b.extents[0]) +
                         ", expected " + std::to_string(k) + " as 'a' has");
  Floats scaleA = inputs.floatsOf("scale_a", {m});
  Floats scaleB = inputs.floatsOf("scale_b", {n});
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  FloatOutput c(args, {m, n});
  inParallel(args, m, [&](int64_t row) {
    // Sums of i32 wrap.
    std::vector<uint32_t> sums(static_cast<size_t>(n));
    for (int64_t i = 0; i < k; ++i) {
      auto left = static_cast<uint32_t>(a.at(row * k + i));
      for (int64_t col = 0; col < n; ++col)
        sums[static_cast<size_t>(col)] +=
            left * static_cast<uint32_t>(b.at(i * n + col));
    }
    for (int64_t col = 0; col < n; ++col) {
      Bounded sum = bounded::parameter(
          static_cast<int32_t>(sums[static_cast<size_t>(col)]), rules);
      Bounded byRow =
          mul(mul(sum, scaleA.bounded(row), rules), scaleB.bounded(col), rules);
      Bounded byBoth =
          mul(sum, mul(scaleA.bounded(row), scaleB.bounded(col), rules), rules);
      c.place(row * n + col, either(byRow, byBoth));
    }
  });
  return resultOf("c", c.take());
}

Result<OracleResult> gemmQ4(const OracleArgs &args) {
  Inputs inputs(args);
  Floats a = inputs.floats("a", 2);
  Integers b = inputs.integers("b", 2);
  int64_t m = a.extents[0], k = a.extents[1], n = b.extents[1];
  if (!inputs.error() && b.extents[0] != k / 2)
    inputs.fail("b", "has " + std::to_string(b.extents[0]) +
                         " rows, expected half of " + std::to_string(k));
  Floats scales = inputs.floats("scales", 2);
  Floats zeros = inputs.floatsOf("zeros", scales.extents);
  if (!inputs.error() && scales.extents[1] != n)
    inputs.fail("scales", "has " + std::to_string(scales.extents[1]) +
                              " columns, expected " + std::to_string(n));
  int64_t groups = scales.extents[0];
  if (!inputs.error() && (groups == 0 ? k != 0 : k % groups != 0))
    inputs.fail("scales", "has " + std::to_string(groups) +
                              " groups, expected a divisor of " +
                              std::to_string(k));
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  int64_t group = groups == 0 ? 1 : k / groups;
  // The weights of a column are bounded, the rows of `a` exact: the sums are
  // those of the transposed product.
  Factors factors(a.data.data(), k, m, /*termStride=*/1, /*columnStride=*/k);
  Products products(rules, args.products);
  FloatOutput c(args, {m, n});
  inParallel(args, n, [&](int64_t col) {
    std::vector<Bounded> weights(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) {
      int64_t bits = b.at(i / 2 * n + col) >> (i % 2 * 4) & 15;
      Bounded zero = zeros.bounded(i / group, col);
      Bounded scale = scales.bounded(i / group, col);
      weights[static_cast<size_t>(i)] =
          mul(sub(Bounded::exact(bits), zero, rules), scale, rules);
    }
    Row row;
    row.setBounded(weights);
    products.sums(row, factors, [&](int64_t at, const bounded::Summation &sum) {
      c.place(at * n + col, sum.finishContraction());
    });
  });
  return resultOf("c", c.take());
}

} // namespace tessera::oracle
