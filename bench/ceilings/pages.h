//===- bench/ceilings/pages.h - Memory to measure with ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CEILINGS_PAGES_H
#define TESSERA_BENCH_CEILINGS_PAGES_H

#include <cstdint>
#include <random>
#include <sys/mman.h>

namespace tessera::bench {

/// Pages of its own, written once so that they exist.
class Pages {
public:
  explicit Pages(int64_t bytes) : bytes(bytes) {
    void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    start = mapping == MAP_FAILED ? nullptr : static_cast<float *>(mapping);
    if (!start)
      return;
    // Equal pages may be merged and zeros compressed: random data.
    std::mt19937 random(1);
    for (int64_t i = 0; i < bytes / 4; ++i)
      start[i] = static_cast<float>(random()) * 0x1p-32f;
  }
  Pages(const Pages &) = delete;
  ~Pages() {
    if (start)
      munmap(start, bytes);
  }
  /// Null where there is not so much memory.
  float *data() const { return start; }

private:
  int64_t bytes;
  float *start;
};

} // namespace tessera::bench

#endif // TESSERA_BENCH_CEILINGS_PAGES_H
