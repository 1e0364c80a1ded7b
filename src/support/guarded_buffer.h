//===- support/guarded_buffer.h - Memory that ends at a guard page --*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer for tests and for the command line: an access past one chosen end
// faults at once, and the memory holds NaN patterns (bytes 0xff) until it is
// written. The other end has a guard page too, but up to one page of slack
// before it; slackIntact() tells whether somebody wrote there.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_GUARDED_BUFFER_H
#define TESSERA_SUPPORT_GUARDED_BUFFER_H

#include "tessera/error.h"

#include <cstddef>
#include <cstdint>

namespace tessera::support {

class GuardedBuffer {
public:
  /// The end of the buffer that touches its guard page.
  enum class Edge { End, Begin };

  /// A buffer of `bytes` bytes. With Edge::End its start is aligned to the
  /// largest power of two that divides `bytes`, up to a page: enough for the
  /// elements of an array. Fails with Unsupported when the memory cannot be
  /// had.
  static Result<GuardedBuffer> create(int64_t bytes, Edge edge = Edge::End);

  GuardedBuffer(GuardedBuffer &&other) noexcept;
  GuardedBuffer &operator=(GuardedBuffer &&other) noexcept;
  ~GuardedBuffer();

  void *data() const { return start; }
  int64_t size() const { return bytes; }

  template <typename T> T *as() const { return static_cast<T *>(data()); }

  /// Fills the buffer and its slack with 0xff again.
  void poison();

  /// True while no byte of the slack has been overwritten.
  bool slackIntact() const;

private:
  GuardedBuffer() = default;
  void release();

  /// The whole mapping: a guard page, the accessible pages, a guard page.
  unsigned char *mapping = nullptr;
  size_t mappedBytes = 0;
  unsigned char *start = nullptr;
  int64_t bytes = 0;
};

} // namespace tessera::support

#endif // TESSERA_SUPPORT_GUARDED_BUFFER_H
