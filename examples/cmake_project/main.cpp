//===- main.cpp - A program that uses an installed Tessera ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes a fused kernel, runs it on two arrays and checks the result.
//
//===----------------------------------------------------------------------===//

#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace tessera;

int main() {
  // y = x / (1 + sum of |x| along each row)
  Kernel normalize =
      kernel("normalize", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row)) {
          Tile v = load(x(i, col));
          store(y(i, col), v / (1 + sum(abs(v), col)));
        }
      });

  constexpr int64_t rows = 5, cols = 77;
  std::vector<float> x(rows * cols), y(rows * cols);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(int(i % 13) - 6);
  std::vector<Argument> arguments = {
      TensorRef::dense(x.data(), DType::F32, {rows, cols}),
      TensorRef::dense(y.data(), DType::F32, {rows, cols})};
  if (Result<void> done = launch(normalize, arguments); !done) {
    std::fprintf(stderr, "%s\n", done.error().str().c_str());
    return 1;
  }

  for (int64_t r = 0; r < rows; ++r) {
    double total = 1;
    for (int64_t c = 0; c < cols; ++c)
      total += std::abs(x[r * cols + c]);
    for (int64_t c = 0; c < cols; ++c)
      if (std::abs(y[r * cols + c] - x[r * cols + c] / total) > 1e-6) {
        std::fprintf(stderr, "wrong at %lld, %lld\n", (long long)r,
                     (long long)c);
        return 1;
      }
  }
  std::printf("tessera works: %lld x %lld elements normalized\n",
              (long long)rows, (long long)cols);
  return 0;
}
