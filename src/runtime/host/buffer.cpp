//===- buffer.cpp - Owned host memory -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Aligned allocation that reports failure as a value.
//
//===----------------------------------------------------------------------===//

#include "tessera/buffer.h"

#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace tessera {

Result<Buffer> Buffer::allocate(int64_t bytes) {
  Buffer buffer;
  if (bytes == 0)
    return buffer;
  if (bytes > 0 && bytes <= std::numeric_limits<int64_t>::max() - alignment) {
    const int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    buffer.memory = std::aligned_alloc(alignment, static_cast<size_t>(rounded));
    buffer.bytes = bytes;
  }
  if (!buffer.memory) {
    buffer.bytes = 0;
    return Error{ErrorFamily::Unsupported,
                 "memory.exhausted",
                 fmt::format("cannot allocate {} bytes of host memory", bytes),
                 {}};
  }
  return buffer;
}

Buffer::Buffer(Buffer &&other) noexcept
    : memory(std::exchange(other.memory, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

Buffer &Buffer::operator=(Buffer &&other) noexcept {
  if (this != &other) {
    std::free(memory);
    memory = std::exchange(other.memory, nullptr);
    bytes = std::exchange(other.bytes, 0);
  }
  return *this;
}

Buffer::~Buffer() { std::free(memory); }

} // namespace tessera
