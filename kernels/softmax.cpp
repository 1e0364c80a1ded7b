//===- kernels/softmax.cpp - Softmax and cross entropy --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

#include <limits>

namespace tessera::kernels {

static constexpr double infinity = std::numeric_limits<double>::infinity();

Kernel softmax() {
  return kernel(
      "softmax", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          Tile e = exp(v - max(v, cols));
          store(y(row, cols), e * (1 / sum(e, cols)));
        }
      });
}

Kernel maskedSoftmax() {
  return kernel(
      "masked_softmax", "x, mask, y",
      [](View<const Float, 2> x, View<const bool, 2> mask, View<Float, 2> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          Tile visible = load(mask(row, cols));
          Tile highest = max(select(visible, v, -infinity), cols);
          Tile e = select(visible, exp(v - highest), 0);
          // Where nothing is visible the sum is 0 and its inverse never used.
          Tile inverse = 1 / sum(e, cols);
          store(y(row, cols), select(visible, e * inverse, 0));
        }
      });
}

Kernel crossEntropy() {
  return kernel(
      "cross_entropy", "logits, target, loss, ignore_index = -100",
      [](View<const Float, 2> logits, View<const int64_t, 1> target,
         View<Float, 1> loss, Scalar<int64_t> ignoreIndex) {
        Dim rows = dim("rows", logits.extent(0));
        Dim cols = dim("cols", logits.extent(1));
        for (auto row : parallel(rows)) {
          Tile wanted = load(target(row));
          Tile counts = wanted != ignoreIndex;
          Tile v = load(logits(row, cols));
          Tile highest = max(v, cols);
          Tile logSum = log(sum(exp(v - highest), cols));
          // A target out of range finds no logit: the loss is NaN.
          Tile logit = load(logits(row, wanted),
                            {.fill = std::numeric_limits<double>::quiet_NaN(),
                             .mask = counts});
          store(loss(row), select(counts, logSum + (highest - logit), 0));
        }
      });
}

} // namespace tessera::kernels
