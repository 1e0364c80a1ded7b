//===- tessera/tensor.h - A strided view of the caller's memory -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TENSOR_H
#define TESSERA_TENSOR_H

#include "tessera/dtype.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

/// A strided view of memory that the caller owns. `data` points at the element
/// whose indices are all zero; `strides` are in elements and may be zero or
/// negative.
struct TensorRef {
  void *data = nullptr;
  DType dtype = DType::F32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;

  /// A dense row-major view; extents in elements, at least 0.
  static TensorRef dense(void *data, DType dtype, std::vector<int64_t> extents);

  /// The number of axes.
  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  /// The product of the extents (1 for rank 0).
  int64_t elements() const;
};

/// The bytes a view can touch, [begin, end) relative to `data`; both zero for
/// an empty view. std::nullopt when an offset does not fit 63 bits.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};
std::optional<ByteRange> reachableBytes(const TensorRef &tensor);

/// True when two distinct index tuples of the view address the same element
/// (a zero stride on an axis longer than one, or interleaved strides).
bool overlapsItself(const TensorRef &tensor);

/// True when the two views may share a byte. False only if proved.
bool mayOverlap(const TensorRef &a, const TensorRef &b);

} // namespace tessera

#endif // TESSERA_TENSOR_H
