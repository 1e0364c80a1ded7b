//===- kernels/in_parallel.h - A loop on a pool -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_IN_PARALLEL_H
#define TESSERA_KERNELS_IN_PARALLEL_H

#include "tessera/pool.h"

#include <algorithm>
#include <cstdint>

namespace tessera::kernels {

/// Calls run(i) for each i in [0, count), on at most `limit` threads of the
/// pool (0: all of them), or on the caller alone when there is no pool.
template <typename Run>
void inParallel(TaskPool *pool, int limit, int64_t count, const Run &run) {
  int threads = pool && count > 1 ? pool->threads() : 1;
  if (limit > 0)
    threads = std::min(threads, limit);
  if (threads <= 1) {
    for (int64_t i = 0; i < count; ++i)
      run(i);
    return;
  }
  pool->run(
      count, threads,
      [](void *context, int64_t index, int) {
        (*static_cast<const Run *>(context))(index);
      },
      const_cast<Run *>(&run));
}

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_IN_PARALLEL_H
