//===- kernels/oracle/convolutions.cpp - Convolutions of images ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/families.h"

namespace tessera::oracle {
namespace {

/// How windows lie on an axis of an image.
struct Windows {
  int64_t extent, window, stride, pad, dilation;

  int64_t places() const {
    int64_t room = extent + 2 * pad - (window - 1) * dilation - 1;
    return window == 0 || room < 0 ? 0 : room / stride + 1;
  }
  /// Where element `at` of the window at `place` stands; outside of the image
  /// for padding.
  int64_t position(int64_t place, int64_t at) const {
    return place * stride + at * dilation - pad;
  }
  bool isInside(int64_t position) const {
    return position >= 0 && position < extent;
  }
};

/// The sum over the channels [first, last) of a filter that has so many, at one
/// place; padding is zeros that count.
Bounded sumAt(const Floats &x, int64_t image, int64_t firstChannel,
              int64_t channels, const Floats &w, int64_t filter,
              const Windows &down, int64_t row, const Windows &across,
              int64_t col, const std::optional<Bounded> &bias,
              const Arithmetic &rules) {
  bounded::Summation sum(rules);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < down.window; ++p)
      for (int64_t q = 0; q < across.window; ++q) {
        int64_t i = down.position(row, p), j = across.position(col, q);
        bool inside = down.isInside(i) && across.isInside(j);
        long double element =
            inside ? x.at(((image * x.extents[1] + firstChannel + c) *
                               down.extent +
                           i) *
                              across.extent +
                          j)
                   : 0;
        sum.addProduct(
            element,
            w.at(((filter * channels + c) * down.window + p) * across.window +
                 q));
      }
  if (!bias)
    return sum.finishContraction();
  // A sum may also start from it.
  Bounded after = add(sum.finishContraction(), *bias, rules);
  sum.add(*bias);
  return either(after, sum.finishContraction());
}

/// With a filter for each channel alone where `isDepthwise`.
Result<OracleResult> convolve(const OracleArgs &args, bool isDepthwise) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 4);
  Floats w = inputs.floats("w", isDepthwise ? 3 : 4);
  int64_t filters = w.extents[0], channels = isDepthwise ? 1 : w.extents[1];
  int64_t expected = isDepthwise ? filters : channels;
  if (!inputs.error() && x.extents[1] != expected)
    inputs.fail("w", "is for " + std::to_string(expected) +
                         " channels, expected " + std::to_string(x.extents[1]));
  bool hasBias = inputs.has("bias");
  Floats bias;
  if (hasBias)
    bias = inputs.floatsOf("bias", {filters});
  if (inputs.error())
    return *inputs.error();
  auto number = [&](const char *name, double otherwise) {
    return static_cast<int64_t>(inputs.scalar(name, otherwise));
  };
  int64_t stride = number("stride", 1), pad = number("pad", 0),
          dilation = number("dilation", 1);
  size_t last = w.extents.size() - 1;
  Windows down{x.extents[2], w.extents[last - 1], stride, pad, dilation};
  Windows across{x.extents[3], w.extents[last], stride, pad, dilation};
  int64_t rows = down.places(), cols = across.places();
  FloatOutput y(args, {x.extents[0], filters, rows, cols});
  inParallel(args, x.extents[0] * filters * rows, [&](int64_t line) {
    int64_t row = line % rows, filter = line / rows % filters,
            image = line / rows / filters;
    for (int64_t col = 0; col < cols; ++col)
      y.place(
          line * cols + col,
          sumAt(x, image, isDepthwise ? filter : 0, channels, w, filter, down,
                row, across, col,
                hasBias ? std::optional(bias.bounded(filter)) : std::nullopt,
                args.arithmetic));
  });
  return resultOf("y", y.take());
}

} // namespace

Result<OracleResult> conv2d(const OracleArgs &args) {
  return convolve(args, /*isDepthwise=*/false);
}

Result<OracleResult> depthwiseConv2d(const OracleArgs &args) {
  return convolve(args, /*isDepthwise=*/true);
}

} // namespace tessera::oracle
