//===- kernels/images.cpp - Windows of fixed sizes on images -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program makes one row of the output. Windows are so small that their
// elements are written out.
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

#include <array>
#include <limits>

namespace tessera::kernels {

Kernel maxPool2d() {
  return kernel(
      "max_pool2d", "x, y, window = 2, stride = 2, pad = 0",
      [](View<const Float, 4> x, View<Float, 4> y, Const<int64_t> window,
         Const<int64_t> stride, Const<int64_t> pad) {
        Dim n = dim("n", x.extent(0)), c = dim("c", x.extent(1));
        Dim h = dim("h", x.extent(2)), w = dim("w", x.extent(3));
        Dim oh = dim("oh", y.extent(2)), ow = dim("ow", y.extent(3));
        (void)h, (void)w; // Name extents for callers.
        double none = -std::numeric_limits<double>::infinity();
        for (auto [image, channel, row] : parallel(n, c, oh)) {
          Tile highest;
          for (int64_t p = 0; p < window; ++p)
            for (int64_t q = 0; q < window; ++q) {
              Tile down = index(row) * stride.value() + (p - pad.value());
              Tile v = load(x(image, channel, down,
                              stride.value() * ow + (q - pad.value())),
                            {.fill = none});
              highest = p + q == 0 ? v : max(highest, v);
            }
          store(y(image, channel, row, ow), highest);
        }
      });
}

/// The 3 x 3 elements around those of a row; 0 beside the image.
static std::array<Tile, 9> neighbours(const View<const Float, 4> &x,
                                      const Coord &image, const Coord &channel,
                                      const Coord &row, const Dim &w) {
  std::array<Tile, 9> result;
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t q = 0; q < 3; ++q)
      result[static_cast<size_t>(3 * p + q)] =
          load(x(image, channel, index(row) + (p - 1), w + (q - 1)));
  return result;
}

Kernel sobel() {
  return kernel("sobel", "x, y", [](View<const Float, 4> x, View<Float, 4> y) {
    Dim n = dim("n", x.extent(0)), c = dim("c", x.extent(1));
    Dim h = dim("h", x.extent(2)), w = dim("w", x.extent(3));
    for (auto [image, channel, row] : parallel(n, c, h)) {
      auto v = neighbours(x, image, channel, row, w);
      Tile across = (v[2] - v[0]) + 2 * (v[5] - v[3]) + (v[8] - v[6]);
      Tile down = (v[6] - v[0]) + 2 * (v[7] - v[1]) + (v[8] - v[2]);
      store(y(image, channel, row, w), sqrt(across * across + down * down));
    }
  });
}

Kernel median3() {
  return kernel(
      "median3", "x, y", [](View<const Float, 4> x, View<Float, 4> y) {
        Dim n = dim("n", x.extent(0)), c = dim("c", x.extent(1));
        Dim h = dim("h", x.extent(2)), w = dim("w", x.extent(3));
        for (auto [image, channel, row] : parallel(n, c, h)) {
          auto v = neighbours(x, image, channel, row, w);
          // Exchanges that bring the median to the middle.
          constexpr std::array<std::array<size_t, 2>, 19> exchanges = {
              {{1, 2},
               {4, 5},
               {7, 8},
               {0, 1},
               {3, 4},
               {6, 7},
               {1, 2},
               {4, 5},
               {7, 8},
               {0, 3},
               {5, 8},
               {4, 7},
               {3, 6},
               {1, 4},
               {2, 5},
               {4, 7},
               {4, 2},
               {6, 4},
               {4, 2}}};
          for (auto [low, high] : exchanges) {
            Tile smaller = min(v[low], v[high]);
            v[high] = max(v[low], v[high]);
            v[low] = smaller;
          }
          store(y(image, channel, row, w), v[4]);
        }
      });
}

} // namespace tessera::kernels
