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

/// The short stages that this thread has lately run by itself, one soon after
/// another: their time, and when the last one ended.
struct Burst {
  int64_t end = 0;
  double nanoseconds = 0;
};
thread_local Burst burst;

/// Whether parked workers should be woken for a stage of an estimated length:
/// when it is long enough by itself, or when together with the burst before it
/// it is, so that more such stages are likely to follow.
bool worthWaking(double nanoseconds) {
  if (nanoseconds >= wakeNanoseconds)
    return true;
  if (support::nowNanoseconds() - burst.end > burstGapNanoseconds)
    burst.nanoseconds = 0;
  if (burst.nanoseconds + nanoseconds < wakeNanoseconds)
    return false;
  burst.nanoseconds = 0;
  return true;
}

int32_t runOnCaller(const Stage &stage, const StageArguments &arguments) {
  return stage.entry(arguments.data, arguments.strides, arguments.scalars, 0,
                     stage.programs, arguments.scratch);
}

/// Runs a stage that workers were not woken for, and notes what it took: the
/// estimate may be far too low, as for memory that is not in the cache.
int32_t runInBurst(const Stage &stage, const StageArguments &arguments) {
  const int64_t start = support::nowNanoseconds();
  const int32_t status = runOnCaller(stage, arguments);
  burst.end = support::nowNanoseconds();
  burst.nanoseconds += static_cast<double>(burst.end - start);
  return status;
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
  if (grain.tasks <= 1 || grain.threads <= 1)
    return runOnCaller(stage, arguments);
  if (workersAreParked(*pool) && !worthWaking(workOf(stage)))
    return runInBurst(stage, arguments);
  StageRun run{stage, arguments, grain.tasks};
  pool->run(grain.tasks, grain.threads, runTask, &run);
  const uint64_t failure = run.failure.load(std::memory_order_relaxed);
  return failure == noFailure
             ? 0
             : static_cast<int32_t>(static_cast<uint32_t>(failure));
}

} // namespace tessera::runtime
