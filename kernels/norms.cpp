//===- kernels/norms.cpp - Normalization of rows --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel rmsNorm() {
  return kernel("rms_norm", "x, w, y, eps = 1e-6",
                [](View<const Float, 2> x, View<const Float, 1> w,
                   View<Float, 2> y, Scalar<Float> eps) {
                  Dim rows = dim("rows", x.extent(0)),
                      cols = dim("cols", x.extent(1));
                  for (auto row : parallel(rows)) {
                    Tile v = load(x(row, cols));
                    Tile inverse = rsqrt(mean(v * v, cols) + eps);
                    store(y(row, cols), v * inverse * load(w(cols)));
                  }
                });
}

Kernel addRmsNorm() {
  return kernel(
      "add_rms_norm", "x, r, w, y, s, eps = 1e-6",
      [](View<const Float, 2> x, View<const Float, 2> r, View<const Float, 1> w,
         View<Float, 2> y, View<Float, 2> s, Scalar<Float> eps) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols)) + load(r(row, cols));
          Tile inverse = rsqrt(mean(v * v, cols) + eps);
          Tile result = v * inverse * load(w(cols));
          store(s(row, cols), v);
          store(y(row, cols), result);
        }
      });
}

/// (v - mean) / sqrt(variance + eps) * w + b along `cols`.
static Tile normalize(const Tile &v, const Dim &cols,
                      const View<const Float, 1> &w,
                      const View<const Float, 1> &b, const Tile &eps) {
  Statistics s = statistics(v, cols);
  return s.deviation * rsqrt(s.variance + eps) * load(w(cols)) + load(b(cols));
}

Kernel layerNorm() {
  return kernel(
      "layer_norm", "x, w, b, y, eps = 1e-5",
      [](View<const Float, 2> x, View<const Float, 1> w, View<const Float, 1> b,
         View<Float, 2> y, Scalar<Float> eps) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          store(y(row, cols), normalize(v, cols, w, b, eps));
        }
      });
}

Kernel residualLayerNorm() {
  return kernel(
      "residual_layer_norm", "x, r, w, b, y, eps = 1e-5",
      [](View<const Float, 2> x, View<const Float, 2> r, View<const Float, 1> w,
         View<const Float, 1> b, View<Float, 2> y, Scalar<Float> eps) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols)) + load(r(row, cols));
          store(y(row, cols), normalize(v, cols, w, b, eps));
        }
      });
}

} // namespace tessera::kernels
