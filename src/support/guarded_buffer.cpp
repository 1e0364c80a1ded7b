//===- guarded_buffer.cpp - Memory that ends at a guard page --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An anonymous mapping whose first and last page stay inaccessible.
//
//===----------------------------------------------------------------------===//

#include "support/guarded_buffer.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace tessera::support {

namespace {

size_t pageBytes() {
  static const size_t size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

bool allPoison(const unsigned char *begin, const unsigned char *end) {
  for (; begin != end; ++begin)
    if (*begin != 0xff)
      return false;
  return true;
}

} // namespace

Result<GuardedBuffer> GuardedBuffer::create(int64_t bytes, Edge edge) {
  const size_t page = pageBytes();
  if (bytes < 0 || bytes > (int64_t{1} << 46))
    return Error{ErrorFamily::Unsupported,
                 "memory.size",
                 fmt::format("a guarded buffer of {} bytes was asked for, "
                             "expected 0 to 2^46",
                             bytes),
                 {}};
  // At least one accessible page, so that an empty buffer has an address.
  size_t accessible = (static_cast<size_t>(bytes) + page - 1) / page * page;
  if (accessible == 0)
    accessible = page;
  const size_t mapped = accessible + 2 * page;
  void *memory = ::mmap(nullptr, mapped, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Error{
        ErrorFamily::Unsupported,
        "memory.exhausted",
        fmt::format("cannot map {} bytes: {}", mapped, std::strerror(errno)),
        {}};
  auto *first = static_cast<unsigned char *>(memory);
  if (::mprotect(first + page, accessible, PROT_READ | PROT_WRITE) != 0) {
    const int reason = errno;
    ::munmap(memory, mapped);
    return Error{ErrorFamily::Unsupported,
                 "memory.exhausted",
                 fmt::format("cannot make {} bytes accessible: {}", accessible,
                             std::strerror(reason)),
                 {}};
  }

  GuardedBuffer buffer;
  buffer.mapping = first;
  buffer.mappedBytes = mapped;
  buffer.bytes = bytes;
  buffer.start =
      edge == Edge::Begin ? first + page : first + page + accessible - bytes;
  buffer.poison();
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)),
      mappedBytes(std::exchange(other.mappedBytes, 0)),
      start(std::exchange(other.start, nullptr)),
      bytes(std::exchange(other.bytes, 0)) {}

GuardedBuffer &GuardedBuffer::operator=(GuardedBuffer &&other) noexcept {
  if (this != &other) {
    release();
    mapping = std::exchange(other.mapping, nullptr);
    mappedBytes = std::exchange(other.mappedBytes, 0);
    start = std::exchange(other.start, nullptr);
    bytes = std::exchange(other.bytes, 0);
  }
  return *this;
}

GuardedBuffer::~GuardedBuffer() { release(); }

void GuardedBuffer::release() {
  if (mapping)
    ::munmap(mapping, mappedBytes);
  mapping = nullptr;
}

void GuardedBuffer::poison() {
  if (mapping)
    std::memset(mapping + pageBytes(), 0xff, mappedBytes - 2 * pageBytes());
}

bool GuardedBuffer::slackIntact() const {
  if (!mapping)
    return true;
  return allPoison(mapping + pageBytes(), start) &&
         allPoison(start + bytes, mapping + mappedBytes - pageBytes());
}

} // namespace tessera::support
