//===- kernels/activations.cpp - Elementwise operators and RoPE -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/gelu.h"
#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel geluResidual() {
  return kernel(
      "gelu_residual", "x, r, y",
      [](View<const Float, 2> x, View<const Float, 2> r, View<Float, 2> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          store(y(row, cols), gelu(v) + load(r(row, cols)));
        }
      });
}

Kernel geluPair() {
  return kernel(
      "gelu_pair", "x, y, dy",
      [](View<const Float, 2> x, View<Float, 2> y, View<Float, 2> dy) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          Tile square = v * v;
          Tile s = sigmoid(v * (geluSlope + geluCube * square));
          // s (1 - s) vanishes long before |v| reaches 32; from there on the
          // polynomial beside it is kept from overflowing.
          Tile near = max(min(v, 32), -32);
          Tile steepness = geluSlope + (3 * geluCube) * (near * near);
          store(y(row, cols), v * s);
          store(dy(row, cols), s + s * (1 - s) * v * steepness);
        }
      });
}

Kernel sigmoidPair() {
  return kernel(
      "sigmoid_pair", "x, y, dy",
      [](View<const Float, 2> x, View<Float, 2> y, View<Float, 2> dy) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          // With e = exp(-|x|) at most 1 neither result cancels or overflows.
          Tile v = load(x(row, cols));
          Tile e = exp(-abs(v));
          Tile upper = 1 / (1 + e), lower = e * upper;
          store(y(row, cols), select(v >= 0, upper, lower));
          store(dy(row, cols), lower * upper);
        }
      });
}

Kernel affineLeaky() {
  return kernel(
      "affine_leaky", "x, y, scale = 0.375, shift = -0.25, slope = 0.1",
      [](View<const Float, 2> x, View<Float, 2> y, Scalar<Float> scale,
         Scalar<Float> shift, Scalar<Float> slope) {
        Dim rows = dim("rows", x.extent(0));
        Dim cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile z = load(x(row, cols)) * scale + shift;
          store(y(row, cols), max(z, slope * z));
        }
      });
}

Kernel swiglu() {
  return kernel(
      "swiglu", "gate, up, y",
      [](View<const Float, 2> gate, View<const Float, 2> up, View<Float, 2> y) {
        Dim rows = dim("rows", gate.extent(0));
        Dim cols = dim("cols", gate.extent(1));
        for (auto row : parallel(rows)) {
          Tile g = load(gate(row, cols));
          store(y(row, cols), g * sigmoid(g) * load(up(row, cols)));
        }
      });
}

Kernel rope() {
  return kernel(
      "rope", "x, cos, sin, y, interleaved = false",
      [](View<const Float, 2> x, View<const Float, 2> cos,
         View<const Float, 2> sin, View<Float, 2> y, Const<bool> interleaved) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        Dim pairs = dim("pairs", cols.size() / 2);
        // Where the members of a pair stand.
        DimExpr first = interleaved ? 2 * pairs + 0 : pairs + 0;
        DimExpr second = interleaved ? 2 * pairs + 1 : pairs + pairs.size();
        for (auto row : parallel(rows)) {
          Tile a = load(x(row, first)), b = load(x(row, second));
          Tile c = load(cos(row, pairs)), s = load(sin(row, pairs));
          store(y(row, first), a * c - b * s);
          store(y(row, second), b * c + a * s);
        }
      });
}

} // namespace tessera::kernels
