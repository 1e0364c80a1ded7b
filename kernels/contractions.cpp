//===- kernels/contractions.cpp - Matrix products -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/gelu.h"
#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel gemm() {
  return kernel(
      "gemm", "a, b, c0, c, trans_a = false, trans_b = false, beta = 1",
      [](View<const Float, 2> a, View<const Float, 2> b,
         OptionalView<const Float, 2> c0, View<Float, 2> c, Const<bool> transA,
         Const<bool> transB, Scalar<Float> beta) {
        Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
        Dim k = dim("k", a.extent(transA ? 0 : 1));
        Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
        Blocks across = blocks(n, tunable("block_n", {64, 32, 128, 512, 4096}));
        for (auto [i, j] : parallel(down, across)) {
          Tile left = load(transA ? a(k, i) : a(i, k));
          Tile right = load(transB ? b(j, k) : b(k, j));
          Tile product = contract(left, right, k);
          if (c0.present())
            product = product + beta * load(c0(i, j));
          store(c(i, j), product);
        }
      });
}

Kernel gemmAffineLeaky() {
  return kernel(
      "gemm_affine_leaky", "a, b, c, scale = 0.375, shift = -0.25, slope = 0.1",
      [](View<const Float, 2> a, View<const Float, 2> b, View<Float, 2> c,
         Scalar<Float> scale, Scalar<Float> shift, Scalar<Float> slope) {
        Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
        Dim k = dim("k", a.extent(1));
        Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
        Blocks across = blocks(n, tunable("block_n", {64, 32, 128, 512, 4096}));
        for (auto [i, j] : parallel(down, across)) {
          Tile product = contract(load(a(i, k)), load(b(k, j)), k);
          Tile z = product * scale + shift;
          store(c(i, j), max(z, slope * z));
        }
      });
}

/// Of the setting `activation`, whose values table.cpp names.
static Tile activated(const Tile &z, int64_t activation) {
  switch (activation) {
  case 1:
    return max(z, 0);
  case 2:
    return gelu(z);
  case 3:
    return z * sigmoid(z);
  default:
    return z;
  }
}

Kernel gemmEpilogue() {
  return kernel(
      "gemm_epilogue", "a, b, bias, residual, c, scale = 1, activation = 0",
      [](View<const Float, 2> a, View<const Float, 2> b,
         OptionalView<const Float, 1> bias,
         OptionalView<const Float, 2> residual, View<Float, 2> c,
         Scalar<Float> scale, Const<int64_t> activation) {
        Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
        Dim k = dim("k", a.extent(1));
        Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
        Blocks across = blocks(n, tunable("block_n", {64, 32, 128, 512, 4096}));
        for (auto [i, j] : parallel(down, across)) {
          Tile z = contract(load(a(i, k)), load(b(k, j)), k) * scale;
          if (bias.present())
            z = z + load(bias(j));
          Tile y = activated(z, activation);
          if (residual.present())
            y = y + load(residual(i, j));
          store(c(i, j), y);
        }
      });
}

Kernel bmm() {
  return kernel("bmm", "a, b, c, trans_a = false, trans_b = false",
                [](View<const Float, 3> a, View<const Float, 3> b,
                   View<Float, 3> c, Const<bool> transA, Const<bool> transB) {
                  Dim batch = dim("batch", c.extent(0));
                  Dim m = dim("m", c.extent(1)), n = dim("n", c.extent(2));
                  Dim k = dim("k", a.extent(transA ? 1 : 2));
                  Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
                  Blocks across =
                      blocks(n, tunable("block_n", {64, 32, 128, 512, 4096}));
                  for (auto [p, i, j] : parallel(batch, down, across)) {
                    Tile left = load(transA ? a(p, k, i) : a(p, i, k));
                    Tile right = load(transB ? b(p, j, k) : b(p, k, j));
                    store(c(p, i, j), contract(left, right, k));
                  }
                });
}

} // namespace tessera::kernels
