//===- dispatch.cpp - Cutting a grid into tasks ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Grain from the estimated time of a program, and the task that runs one chunk.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/dispatch.h"

#include "runtime/cpu/parked_workers.h"
#include "support/timing.h"

#include <algorithm>
#include <atomic>

namespace tessera::runtime {

namespace {

constexpr uint64_t noFailure = ~uint64_t{0};

struct StageRun {
  const Stage &stage;
  const StageArguments &arguments;
  int64_t tasks;
  /// The failed task with the lowest index (upper half) and what its entry
  /// returned (lower half).
  std::atomic<uint64_t> failure{noFailure};
};

void runTask(void *context, int64_t index, int worker) {
  auto &run = *static_cast<StageRun *>(context);
  // A task after a failed one cannot be the first to fail.
  if (static_cast<uint64_t>(index) >
      run.failure.load(std::memory_order_relaxed) >> 32)
    return;
  const StageArguments &arguments = run.arguments;
  const int32_t status =
      run.stage.entry(arguments.data, arguments.strides, arguments.scalars,
                      firstProgram(run.stage.programs, run.tasks, index),
                      firstProgram(run.stage.programs, run.tasks, index + 1),
                      arguments.scratch + worker * arguments.scratchStride);
  if (status == 0)
    return;
  const uint64_t mine =
      static_cast<uint64_t>(index) << 32 | static_cast<uint32_t>(status);
  uint64_t first = run.failure.load(std::memory_order_relaxed);
  while (mine < first && !run.failure.compare_exchange_weak(
                             first, mine, std::memory_order_relaxed)) {
  }
}

double workOf(const Stage &stage) {
  return stage.nanosecondsPerProgram * static_cast<double>(stage.programs);
}

/// Whether parked workers should be woken for `nanoseconds` of work: when it is
/// long enough by itself, or when this thread has lately done that much in a
/// row of short stages, so that more of them are likely to follow.
bool worthWaking(double nanoseconds) {
  if (nanoseconds >= wakeNanoseconds)
    return true;
  struct Burst {
    int64_t last = 0;
    double work = 0;
  };
  thread_local Burst burst;
  const int64_t now = support::nowNanoseconds();
  if (now - burst.last > burstGapNanoseconds)
    burst.work = 0;
  burst.last = now;
  burst.work += nanoseconds;
  if (burst.work < wakeNanoseconds)
    return false;
  burst.work = 0;
  return true;
}

} // namespace

bool isSmall(const Stage &stage) {
  // Written so that an estimate that is not a number counts as small.
  return stage.programs <= 1 || !(workOf(stage) >= smallWorkNanoseconds);
}

Grain chooseGrain(const Stage &stage, int threads) {
  if (threads <= 1 || isSmall(stage))
    return {};
  const double total = workOf(stage);
  const int64_t limit = int64_t{threads} * tasksPerThread;
  const auto worthwhile = static_cast<int64_t>(
      std::min(total / taskNanoseconds, static_cast<double>(limit)));
  Grain grain;
  grain.tasks = std::min({stage.programs, limit, worthwhile});
  grain.threads = static_cast<int>(std::min<int64_t>(grain.tasks, threads));
  // Equal shares: as many tasks for each thread.
  grain.tasks = grain.tasks / grain.threads * grain.threads;
  return grain;
}

int32_t runStage(const Stage &stage, const StageArguments &arguments,
                 Grain grain, TaskPool *pool) {
  if (stage.programs <= 0)
    return 0;
  if (grain.tasks <= 1 || grain.threads <= 1 ||
      (workersAreParked(*pool) && !worthWaking(workOf(stage))))
    return stage.entry(arguments.data, arguments.strides, arguments.scalars, 0,
                       stage.programs, arguments.scratch);
  StageRun run{stage, arguments, grain.tasks};
  pool->run(grain.tasks, grain.threads, runTask, &run);
  const uint64_t failure = run.failure.load(std::memory_order_relaxed);
  return failure == noFailure
             ? 0
             : static_cast<int32_t>(static_cast<uint32_t>(failure));
}

} // namespace tessera::runtime
