//===- kernels/ordering.cpp - Sorting and selection along rows -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel sort() {
  return kernel("sort", "x, values, indices, descending = false",
                [](View<const Float, 2> x, View<Float, 2> values,
                   View<int64_t, 2> indices, Const<bool> descending) {
                  Dim rows = dim("rows", x.extent(0));
                  Dim cols = dim("cols", x.extent(1));
                  for (auto row : parallel(rows)) {
                    Sorted sorted =
                        tessera::sort(load(x(row, cols)), cols, descending);
                    store(values(row, cols), sorted.values);
                    store(indices(row, cols), sorted.indices);
                  }
                });
}

Kernel topK() {
  return kernel("top_k", "x, values, indices, largest = true",
                [](View<const Float, 2> x, View<Float, 2> values,
                   View<int64_t, 2> indices, Const<bool> largest) {
                  Dim rows = dim("rows", x.extent(0));
                  Dim cols = dim("cols", x.extent(1));
                  Dim k = dim("k", values.extent(1));
                  for (auto row : parallel(rows)) {
                    Sorted best =
                        tessera::topK(load(x(row, cols)), cols, k, largest);
                    store(values(row, k), best.values);
                    store(indices(row, k), best.indices);
                  }
                });
}

} // namespace tessera::kernels
