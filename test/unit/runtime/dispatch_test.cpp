//===- dispatch_test.cpp - Tests of cutting a grid into tasks -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Grain, chunks, and when parked workers are woken.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/dispatch.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace tessera;

namespace {

/// Counts the calls of the entry: one when a stage stays on the caller.
int32_t countCalls(void *const *data, const int64_t *, const void *, int64_t,
                   int64_t, void *) {
  ++*static_cast<std::atomic<int> *>(data[0]);
  return 0;
}

} // namespace

TEST(Dispatch, ShortWorkDoesNotWakeParkedWorkers) {
  const auto pool = makeTaskPool(2); // Not started counts as parked.
  std::atomic<int> calls{0};
  void *data[] = {&calls};
  runtime::StageArguments arguments;
  arguments.data = data;
  const auto callsOf = [&](double nanoseconds) {
    const Stage stage{countCalls, "s", 10, 0, nanoseconds / 10};
    calls = 0;
    runtime::runStage(stage, arguments, runtime::chooseGrain(stage, 2),
                      pool.get());
    return calls.load();
  };
  EXPECT_EQ(callsOf(10'000), 1);
  EXPECT_GT(callsOf(100'000), 1);
  // A burst of short stages wakes them, if it is not interrupted for long.
  const auto fresh = makeTaskPool(2);
  bool parallel = false;
  for (int i = 0; i < 100000 && !parallel; ++i) {
    const Stage stage{countCalls, "s", 10, 0, 2000};
    calls = 0;
    runtime::runStage(stage, arguments, runtime::chooseGrain(stage, 2),
                      fresh.get());
    parallel = calls > 1;
  }
  EXPECT_TRUE(parallel);
}

TEST(Dispatch, WorkThatTakesLongerThanEstimatedWakesWorkers) {
  const auto slow = [](void *const *data, const int64_t *, const void *,
                       int64_t, int64_t, void *) -> int32_t {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(150);
    while (std::chrono::steady_clock::now() < end) {
    }
    ++*static_cast<std::atomic<int> *>(data[0]);
    return 0;
  };
  const auto pool = makeTaskPool(2);
  std::atomic<int> calls{0};
  void *data[] = {&calls};
  runtime::StageArguments arguments;
  arguments.data = data;
  const Stage stage{slow, "s", 10, 0, 500};
  bool parallel = false;
  for (int i = 0; i < 100 && !parallel; ++i) {
    calls = 0;
    runtime::runStage(stage, arguments, runtime::chooseGrain(stage, 2),
                      pool.get());
    parallel = calls > 1;
  }
  EXPECT_TRUE(parallel);
}

TEST(Dispatch, ChunksCoverTheGridEvenly) {
  for (int64_t programs : {1, 2, 7, 100, 1001})
    for (int64_t tasks = 1; tasks <= programs && tasks < 40; ++tasks) {
      EXPECT_EQ(runtime::firstProgram(programs, tasks, 0), 0);
      EXPECT_EQ(runtime::firstProgram(programs, tasks, tasks), programs);
      for (int64_t i = 0; i < tasks; ++i) {
        const int64_t size = runtime::firstProgram(programs, tasks, i + 1) -
                             runtime::firstProgram(programs, tasks, i);
        EXPECT_GE(size, programs / tasks);
        EXPECT_LE(size, programs / tasks + 1);
      }
    }
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(runtime::firstProgram(huge, 1000, 1000), huge);
}

TEST(Dispatch, GrainFollowsTheWork) {
  const auto grain = [](int64_t programs, double nanoseconds, int threads) {
    const runtime::Grain g =
        runtime::chooseGrain({nullptr, "", programs, 0, nanoseconds}, threads);
    EXPECT_GE(g.threads, 1);
    EXPECT_LE(g.threads, threads);
    EXPECT_GE(g.tasks, g.threads);
    return g;
  };
  EXPECT_EQ(grain(100, 10, 8).tasks, 1);
  EXPECT_EQ(grain(1, 1e9, 8).tasks, 1);
  EXPECT_EQ(grain(0, 1e9, 8).tasks, 1);
  EXPECT_EQ(grain(100, NAN, 8).tasks, 1);
  EXPECT_EQ(grain(100, -1, 8).tasks, 1);
  EXPECT_EQ(grain(1000, 3, 8).tasks, 1); // 3 us: not worth a dispatch.
  EXPECT_EQ(grain(1000, 5, 8).threads, 5);
  EXPECT_EQ(grain(1000, 1000, 8).threads, 8);
  EXPECT_EQ(grain(1000, 1000, 8).tasks, 32);
  EXPECT_EQ(grain(3, 1e6, 8).threads, 3);
  EXPECT_EQ(grain(1000, 1000, 1).tasks, 1);
  EXPECT_EQ(grain(1000, 1e300, 4).tasks, 16);
}
