//===- kernels/oracle/images.cpp - Windows of fixed sizes on images ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::oracle {
namespace {

/// The element at a place of one image and channel, or `beside` out of it.
long double elementAt(const Floats &x, int64_t plane, int64_t row, int64_t col,
                      long double beside) {
  int64_t h = x.extents[2], w = x.extents[3];
  if (row < 0 || row >= h || col < 0 || col >= w)
    return beside;
  return x.at((plane * h + row) * w + col);
}

/// An output of x's extents; compute(plane, row, col) gives an element.
template <typename Compute>
Result<OracleResult> perPlace(const OracleArgs &args, const Floats &x,
                              int64_t rows, int64_t cols,
                              const Compute &compute) {
  FloatOutput y(args, {x.extents[0], x.extents[1], rows, cols});
  inParallel(args, x.extents[0] * x.extents[1] * rows, [&](int64_t line) {
    for (int64_t col = 0; col < cols; ++col)
      y.place(line * cols + col, compute(line / rows, line % rows, col));
  });
  return resultOf("y", y.take());
}

} // namespace

Result<OracleResult> maxPool2d(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 4);
  if (inputs.error())
    return *inputs.error();
  auto window = static_cast<int64_t>(inputs.scalar("window", 2));
  auto stride = static_cast<int64_t>(inputs.scalar("stride", 2));
  auto pad = static_cast<int64_t>(inputs.scalar("pad", 0));
  auto places = [&](int64_t extent) {
    int64_t room = extent + 2 * pad - window;
    return room < 0 ? 0 : room / stride + 1;
  };
  constexpr long double none = -std::numeric_limits<long double>::infinity();
  return perPlace(args, x, places(x.extents[2]), places(x.extents[3]),
                  [&](int64_t plane, int64_t row, int64_t col) {
                    long double highest = none;
                    for (int64_t p = 0; p < window; ++p)
                      for (int64_t q = 0; q < window; ++q) {
                        long double v =
                            elementAt(x, plane, row * stride + p - pad,
                                      col * stride + q - pad, none);
                        if (std::isnan(v))
                          return Bounded::nan();
                        highest = std::max(highest, v);
                      }
                    return Bounded::exact(highest);
                  });
}

Result<OracleResult> sobel(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 4);
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  return perPlace(
      args, x, x.extents[2], x.extents[3],
      [&](int64_t plane, int64_t row, int64_t col) {
        constexpr int64_t weights[] = {1, 2, 1};
        bounded::Summation across(rules), down(rules);
        for (int64_t side : {-1, 1})
          for (int64_t i = 0; i < 3; ++i) {
            Bounded weight =
                Bounded::exact(static_cast<long double>(side * weights[i]));
            auto term = [&](int64_t p, int64_t q) {
              return mul(
                  weight,
                  Bounded::exact(elementAt(x, plane, row + p, col + q, 0)),
                  rules);
            };
            across.add(term(i - 1, side));
            down.add(term(side, i - 1));
          }
        Bounded right = across.finish(), below = down.finish();
        return sqrt(fma(right, right, mul(below, below, rules), rules), rules);
      });
}

Result<OracleResult> median3(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 4);
  if (inputs.error())
    return *inputs.error();
  return perPlace(args, x, x.extents[2], x.extents[3],
                  [&](int64_t plane, int64_t row, int64_t col) {
                    std::vector<long double> around;
                    for (int64_t p = -1; p <= 1; ++p)
                      for (int64_t q = -1; q <= 1; ++q) {
                        around.push_back(
                            elementAt(x, plane, row + p, col + q, 0));
                        if (std::isnan(around.back()))
                          return Bounded::nan();
                      }
                    std::sort(around.begin(), around.end());
                    return Bounded::exact(around[4]);
                  });
}

} // namespace tessera::oracle
