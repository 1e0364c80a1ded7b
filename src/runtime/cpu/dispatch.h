//===- dispatch.h - Cutting a grid into tasks -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How many threads and tasks a stage is worth, and running it on them. Programs
// are independent, so none of this changes a result.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CPU_DISPATCH_H
#define TESSERA_RUNTIME_CPU_DISPATCH_H

#include "tessera/executable.h"

#include <cstdint>

namespace tessera::runtime {

/// Work below this is done by the calling thread.
inline constexpr double smallWorkNanoseconds = 4000;
/// A task, and a thread's share, is worth at least this much.
inline constexpr double taskNanoseconds = 1000;
/// What it takes to wake a parked worker, and thus the work that justifies it.
inline constexpr double wakeNanoseconds = 50'000;
/// Short stages with a longer pause between them are not one burst of work; a
/// spinning worker would have parked in it.
inline constexpr int64_t burstGapNanoseconds = 100'000;
/// Tasks per thread where there is enough work: what evens out threads that
/// start late or run slowly.
inline constexpr int64_t tasksPerThread = 4;

/// One task on one thread means: on the calling thread, without the pool.
struct Grain {
  int threads = 1;
  int64_t tasks = 1;
};

/// True when the stage is too small for more than one thread, whatever the
/// pool offers.
bool isSmall(const Stage &stage);

/// The grain for a stage when `threads` threads may take part.
Grain chooseGrain(const Stage &stage, int threads);

/// The first program of task `index` when `programs` are spread evenly over
/// `tasks` tasks; index may equal `tasks`.
inline int64_t firstProgram(int64_t programs, int64_t tasks, int64_t index) {
  const int64_t rest = programs % tasks;
  return programs / tasks * index + (index < rest ? index : rest);
}

/// The memory a stage's entry is called with.
struct StageArguments {
  void *const *data = nullptr;
  const int64_t *strides = nullptr;
  const void *scalars = nullptr;
  /// One block of `scratchStride` bytes per thread.
  unsigned char *scratch = nullptr;
  int64_t scratchStride = 0;
};

/// Runs every program of the stage. Returns 0, or what the entry returned for
/// the first program (in grid order) that failed a check: the same one whatever
/// the grain. `pool` may be null when the grain has one thread.
int32_t runStage(const Stage &stage, const StageArguments &arguments,
                 Grain grain, TaskPool *pool);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_CPU_DISPATCH_H
