//===- session/arrays.h - Guarded arguments of a run ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_ARRAYS_H
#define TESSERA_SESSION_ARRAYS_H

#include "session/session.h"
#include "support/hash.h"
#include "tessera/npy.h"

namespace tessera::session {

/// An array in memory of its own that ends (or begins) at a guard page.
class GuardedArray {
public:
  /// `strides` is empty for a dense array. Fails with Usage where strides do
  /// not fit the rank or the extents pass what can be addressed, and with
  /// Unsupported where the memory cannot be had.
  static Result<GuardedArray> create(std::string name, DType dtype,
                                     std::vector<int64_t> extents,
                                     const std::vector<int64_t> &strides,
                                     Edge edge);

  const TensorRef &view() const { return tensor; }
  /// Fills elements and surroundings with 0xff.
  void poison() { buffer.poison(); }
  /// Copies the elements of a view of the same dtype and extents.
  void assign(const TensorRef &source);
  /// The elements in dense memory of their own.
  Result<Array> copy() const;
  /// A hash of all its bytes, gaps between elements included.
  support::Hash128 hash() const;
  /// Whether no byte outside the elements has been written since poison().
  bool surroundingsIntact() const;

private:
  GuardedArray(support::GuardedBuffer buffer, TensorRef tensor)
      : buffer(std::move(buffer)), tensor(std::move(tensor)) {}

  support::GuardedBuffer buffer;
  TensorRef tensor;
};

/// Copies elements between views of equal dtype and extents.
void copyElements(const TensorRef &source, const TensorRef &target);

} // namespace tessera::session

#endif // TESSERA_SESSION_ARRAYS_H
