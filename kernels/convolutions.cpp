//===- kernels/convolutions.cpp - Convolutions of images -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program makes one row of the output. What a window reads beside the image
// is the fill of a load, so no image is padded and no window is copied.
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

namespace tessera::kernels {

Kernel conv2d() {
  return kernel(
      "conv2d", "x, w, bias, y, stride = 1, pad = 0, dilation = 1",
      [](View<const Float, 4> x, View<const Float, 4> w,
         OptionalView<const Float, 1> bias, View<Float, 4> y,
         Const<int64_t> stride, Const<int64_t> pad, Const<int64_t> dilation) {
        Dim n = dim("n", x.extent(0)), c = dim("c", x.extent(1));
        Dim h = dim("h", x.extent(2)), across = dim("w", x.extent(3));
        Dim f = dim("f", w.extent(0));
        Dim kh = dim("kh", w.extent(2)), kw = dim("kw", w.extent(3));
        Dim oh = dim("oh", y.extent(2)), ow = dim("ow", y.extent(3));
        (void)h, (void)across; // Name extents for callers.
        Blocks filters = blocks(f, tunable("block_f", {64, 32, 16}));
        for (auto [image, b, row] : parallel(n, filters, oh)) {
          Tile down = index(row) * stride.value() - pad.value() +
                      iota(kh) * dilation.value();
          Tile right = iota(kw) * dilation.value() - pad.value();
          // A row's elements last, which are lanes.
          Tile around =
              transpose(load(x(image, c, down, stride.value() * ow + right)),
                        {c, kh, kw, ow});
          Tile sum = contract(load(w(b, c, kh, kw)), around, {c, kh, kw});
          if (bias.present())
            sum = sum + load(bias(b));
          store(y(image, b, row, ow), sum);
        }
      });
}

Kernel depthwiseConv2d() {
  return kernel("depthwise_conv2d", "x, w, bias, y, stride = 1, pad = 0",
                [](View<const Float, 4> x, View<const Float, 3> w,
                   OptionalView<const Float, 1> bias, View<Float, 4> y,
                   Const<int64_t> stride, Const<int64_t> pad) {
                  Dim n = dim("n", x.extent(0)), c = dim("c", x.extent(1));
                  Dim h = dim("h", x.extent(2)), across = dim("w", x.extent(3));
                  Dim kh = dim("kh", w.extent(1)), kw = dim("kw", w.extent(2));
                  Dim oh = dim("oh", y.extent(2)), ow = dim("ow", y.extent(3));
                  (void)h, (void)across; // Name extents for callers.
                  for (auto [image, channel, row] : parallel(n, c, oh)) {
                    Tile down =
                        index(row) * stride.value() - pad.value() + iota(kh);
                    Tile right = iota(kw) - pad.value();
                    Tile sum = contract(load(w(channel, kh, kw)),
                                        load(x(image, channel, down,
                                               stride.value() * ow + right)),
                                        {kh, kw});
                    if (bias.present())
                      sum = sum + load(bias(channel));
                    store(y(image, channel, row, ow), sum);
                  }
                });
}

} // namespace tessera::kernels
