//===- support/launch_errors.h - What can be wrong with a call --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The errors of a launch, of family Launch: one code and one text for each
// cause, whether compiled code, the compiler or the interpreter finds it.
// docs/semantics.md lists the codes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_LAUNCH_ERRORS_H
#define TESSERA_SUPPORT_LAUNCH_ERRORS_H

#include "tessera/dtype.h"
#include "tessera/error.h"
#include "tessera/executable.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace tessera::launcherror {

using Text = std::string_view;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// launch.count; `names` are the parameters', separated by commas.
Error count(Text kernel, size_t expected, Text names, size_t found);
/// launch.kind: a scalar where a view is expected.
Error scalarForView(Text argument, int64_t rank, DType dtype);
/// launch.kind: a view where a scalar is expected.
Error viewForScalar(Text argument, DType dtype);
/// launch.rank
Error rank(Text argument, int64_t found, int64_t expected);
/// launch.stride: the number of strides.
Error strideCount(Text argument, size_t found, int64_t expected);
/// launch.stride: a stride that the code was not compiled for.
Error unitStride(Text argument, size_t axis, int64_t found);
/// launch.dtype
Error dtype(Text argument, DType found, DType expected);
/// launch.extent
Error extent(Text argument, size_t axis, int64_t found, int64_t expected);
/// launch.extent: an extent below zero.
Error negativeExtent(Text argument, size_t axis, int64_t found);
/// launch.extent: two views, or a view and a computed dimension, disagree.
Error boundExtent(Text argument, size_t axis, int64_t found, Text dim,
                  int64_t expected);
/// launch.extent: a computed dimension below zero, its value if it is known.
Error negativeDimension(Text dim, std::optional<int64_t> found);
/// launch.null, launch.range or launch.alignment where the view's memory cannot
/// be what it says; empty views have none.
std::optional<Error> memory(Text argument, const TensorRef &tensor);
/// launch.overlap where elements of a view that is written coincide.
std::optional<Error> selfOverlap(Text argument, const TensorRef &tensor);
/// launch.overlap: two arguments.
Error overlap(Text written, Text other, bool sameViewAllowed);

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// A scalar argument as the caller gave it.
struct Number {
  bool isInteger = false;
  double real = 0;
  int64_t integer = 0;

  explicit Number(const Argument &argument);
  explicit Number(const std::variant<double, int64_t> &value);
  std::string str() const;
};

/// The number as a value of `dtype` in the first bytes of `slot`, the others
/// zero; launch.scalar if it does not fit.
Result<void> storeScalar(Text argument, DType dtype, const Number &number,
                         uint64_t &slot);

//===----------------------------------------------------------------------===//
// What only the data tell
//===----------------------------------------------------------------------===//

/// launch.index: an index read from data, its value if it is known.
Error index(Text view, int64_t axis, int64_t extent,
            std::optional<int64_t> found);
/// launch.index: the same of a gather along a dimension of a tile.
Error gatherIndex(Text dim, int64_t extent, std::optional<int64_t> found);
/// launch.reshape: to another number of elements, both if they are known.
Error reshape(std::optional<int64_t> from, std::optional<int64_t> to);
/// launch.reshape: to extents whose product does not fit 63 bits.
Error reshapeOverflow(int64_t from, std::span<const int64_t> to);

} // namespace tessera::launcherror

#endif // TESSERA_SUPPORT_LAUNCH_ERRORS_H
