//===- kernels/reductions.cpp - Reductions and scans ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel rowSum() {
  return kernel(
      "row_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row), sum(load(x(row, cols)), cols));
      });
}

Kernel rowMax() {
  return kernel(
      "row_max", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row), max(load(x(row, cols)), cols));
      });
}

Kernel rowMean() {
  return kernel(
      "row_mean", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row), mean(load(x(row, cols)), cols));
      });
}

Kernel colSum() {
  return kernel(
      "col_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        Blocks across = blocks(cols, tunable("block_cols", {128, 64, 256}));
        for (auto c : parallel(across))
          store(y(c), sum(load(x(rows, c)), rows));
      });
}

Kernel argMax() {
  return kernel("arg_max", "x, index",
                [](View<const Float, 2> x, View<int64_t, 1> index) {
                  Dim rows = dim("rows", x.extent(0)),
                      cols = dim("cols", x.extent(1));
                  for (auto row : parallel(rows))
                    store(index(row), argMax(load(x(row, cols)), cols));
                });
}

Kernel cumsum() {
  return kernel("cumsum", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
    Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
    for (auto row : parallel(rows))
      store(y(row, cols), cumsum(load(x(row, cols)), cols));
  });
}

} // namespace tessera::kernels
