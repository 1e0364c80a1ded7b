//===- kernels/quantized.cpp - Products of quantized matrices ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel gemmQ8() {
  return kernel("gemm_q8", "a, b, scale_a, scale_b, c",
                [](View<const int8_t, 2> a, View<const int8_t, 2> b,
                   View<const Float, 1> scaleA, View<const Float, 1> scaleB,
                   View<Float, 2> c) {
                  Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(1));
                  Dim k = dim("k", a.extent(1));
                  Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
                  Blocks across = blocks(n, tunable("block_n", {64, 32, 128, 512}));
                  for (auto [i, j] : parallel(down, across)) {
                    Tile sum = contract(cast(load(a(i, k)), DType::I32),
                                        cast(load(b(k, j)), DType::I32), k);
                    Tile row = load(scaleA(i)), col = load(scaleB(j));
                    store(c(i, j), cast(sum, row.dtype()) * row * col);
                  }
                });
}

// The halves of a byte are the weights of two rows, so the sum over k is cut
// into even and odd ones.
Kernel gemmQ4() {
  return kernel(
      "gemm_q4", "a, b, scales, zeros, c",
      [](View<const Float, 2> a, View<const uint8_t, 2> b,
         View<const Float, 2> scales, View<const Float, 2> zeros,
         View<Float, 2> c) {
        Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(1));
        Dim k = dim("k", a.extent(1));
        Dim groups = dim("groups", scales.extent(0));
        Dim group = dim("group", k.size() / max(groups.size(), 1));
        Dim pairs = dim("pairs", group.size() / 2);
        Blocks down = blocks(m, tunable("block_m", {64, 128, 32}));
        Blocks across = blocks(n, tunable("block_n", {64, 32, 128, 512}));
        for (auto [i, j] : parallel(down, across)) {
          // Where the elements and the bytes of the groups begin.
          Tile first = iota(groups) * group.size();
          Tile bytes = load(b(pairs + iota(groups) * pairs.size(), j));
          Tile scale = load(scales(groups, j)), zero = load(zeros(groups, j));
          auto weight = [&](const Tile &bits) {
            return (cast(bits, scale.dtype()) - zero) * scale;
          };
          Tile even = contract(load(a(i, 2 * pairs + first)),
                               weight(bytes & 15), {groups, pairs});
          Tile sum =
              contract(load(a(i, 2 * pairs + (first + 1))), weight(bytes >> 4),
                       {groups, pairs}, {.acc = even});
          store(c(i, j), sum);
        }
      });
}

} // namespace tessera::kernels
