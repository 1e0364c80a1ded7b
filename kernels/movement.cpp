//===- kernels/movement.cpp - Copies and lookups --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel copy() {
  return kernel("copy", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
    Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
    for (auto row : parallel(rows))
      store(y(row, cols), load(x(row, cols)));
  });
}

Kernel add() {
  return kernel(
      "add", "a, b, y",
      [](View<const Float, 2> a, View<const Float, 2> b, View<Float, 2> y) {
        Dim rows = dim("rows", a.extent(0)), cols = dim("cols", a.extent(1));
        for (auto row : parallel(rows))
          store(y(row, cols), load(a(row, cols)) + load(b(row, cols)));
      });
}

Kernel transpose() {
  return kernel(
      "transpose", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        Blocks down = blocks(rows, tunable("block_rows", {32, 64, 16}));
        Blocks across = blocks(cols, tunable("block_cols", {32, 64, 16}));
        for (auto [r, c] : parallel(down, across))
          store(y(c, r), load(x(r, c)));
      });
}

Kernel embedding() {
  return kernel(
      "embedding", "ids, table, y",
      [](View<const int64_t, 1> ids, View<const Float, 2> table,
         View<Float, 2> y) {
        Dim tokens = dim("tokens", ids.extent(0));
        Dim vocab = dim("vocab", table.extent(0));
        Dim cols = dim("cols", table.extent(1));
        (void)vocab; // Names the extent for callers that give dimensions.
        for (auto token : parallel(tokens)) {
          Tile id = load(ids(token));
          store(y(token, cols), load(table(id, cols)));
        }
      });
}

} // namespace tessera::kernels
