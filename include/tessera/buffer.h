//===- tessera/buffer.h - Owned host memory ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory for arrays, aligned so that every vector access of a kernel may be
// aligned too.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BUFFER_H
#define TESSERA_BUFFER_H

#include "tessera/error.h"

#include <cstdint>

namespace tessera {

/// Owns a block of host memory aligned to 64 bytes. Its contents are undefined
/// until they are written.
class Buffer {
public:
  /// Of data(), in bytes.
  static constexpr int64_t alignment = 64;

  /// An empty buffer.
  Buffer() = default;

  /// `bytes` bytes, at least 0. Fails with Unsupported (memory.exhausted) when
  /// the system has not enough.
  static Result<Buffer> allocate(int64_t bytes);

  /// Takes the memory; `other` is empty afterwards.
  Buffer(Buffer &&other) noexcept;
  Buffer &operator=(Buffer &&other) noexcept;
  ~Buffer();

  /// Null only for a buffer of 0 bytes.
  void *data() const { return memory; }
  /// Its size in bytes.
  int64_t size() const { return bytes; }

  /// The memory as elements of type T.
  template <typename T> T *as() const { return static_cast<T *>(memory); }

private:
  void *memory = nullptr;
  int64_t bytes = 0;
};

} // namespace tessera

#endif // TESSERA_BUFFER_H
