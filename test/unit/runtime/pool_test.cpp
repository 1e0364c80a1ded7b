//===- pool_test.cpp - Tests of the task pool -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every index runs exactly once, on a slot nobody else uses: alone, nested,
// from many threads, oversubscribed, parked and after fork.
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/parked_workers.h"
#include "runtime/cpu/steered_thread.h"
#include "tessera/pool.h"

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TESSERA_UNDER_TSAN 1
#endif
#endif

using namespace tessera;

namespace {

/// Counts runs per index and checks that slots are exclusive and in range.
struct Job {
  explicit Job(int64_t count, int threads)
      : runs(static_cast<size_t>(count)), inSlot(static_cast<size_t>(threads)),
        perSlot(static_cast<size_t>(threads)) {}

  static void task(void *context, int64_t index, int worker) {
    auto &job = *static_cast<Job *>(context);
    if (worker < 0 || static_cast<size_t>(worker) >= job.inSlot.size()) {
      job.bad = true;
      return;
    }
    const auto slot = static_cast<size_t>(worker);
    if (job.inSlot[slot].exchange(true))
      job.bad = true;
    ++job.perSlot[slot]; // Plain: the slot is ours.
    job.runs[static_cast<size_t>(index)].fetch_add(1,
                                                   std::memory_order_relaxed);
    job.inSlot[slot].store(false);
  }

  bool good() const {
    int64_t total = 0;
    for (int64_t n : perSlot)
      total += n;
    for (const auto &n : runs)
      if (n.load() != 1)
        return false;
    return !bad && total == static_cast<int64_t>(runs.size());
  }

  std::vector<std::atomic<int>> runs;
  std::vector<std::atomic<bool>> inSlot;
  std::vector<int64_t> perSlot;
  std::atomic<bool> bad{false};
};

void runJob(TaskPool &pool, int64_t count, int threads) {
  Job job(count, std::max(threads, 1));
  pool.run(count, threads, Job::task, &job);
  EXPECT_TRUE(job.good());
}

void sleepMicroseconds(int n) {
  std::this_thread::sleep_for(std::chrono::microseconds(n));
}

} // namespace

TEST(Pool, RunsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    const auto pool = makeTaskPool(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (int round = 0; round < 300; ++round)
      for (int64_t count : {0, 1, 2, 7, 64})
        runJob(*pool, count, threads);
    runJob(*pool, 100000, threads);
  }
}

TEST(Pool, RespectsTheThreadLimit) {
  const auto pool = makeTaskPool(8);
  for (int limit : {1, 2, 3, 5, 8})
    for (int round = 0; round < 100; ++round)
      runJob(*pool, 50, limit);
  // More than there are: the slots stay below the pool's own number.
  Job job(100, 8);
  pool->run(100, 1000, Job::task, &job);
  EXPECT_TRUE(job.good());
}

TEST(Pool, StopsWithoutAJobAndWhileParked) {
  {
    makeTaskPool(4);
  }
  const auto pool = makeTaskPool(4);
  runJob(*pool, 16, 4);
  sleepMicroseconds(3000);
}

TEST(Pool, WakesParkedWorkers) {
  const auto pool = makeTaskPool(3);
  for (int pause : {0, 50, 300, 2000, 5000}) {
    for (int round = 0; round < 10; ++round) {
      sleepMicroseconds(pause);
      runJob(*pool, 12, 3);
    }
  }
}

TEST(Pool, WorkersTakePart) {
  const auto pool = makeTaskPool(2);
  // Each of the two tasks waits for the other: one thread alone cannot finish.
  std::atomic<int> arrived{0};
  for (int round = 0; round < 20; ++round) {
    arrived = 0;
    pool->run(
        2, 2,
        [](void *context, int64_t, int) {
          auto &count = *static_cast<std::atomic<int> *>(context);
          ++count;
          while (count.load() < 2)
            std::this_thread::yield();
        },
        &arrived);
    EXPECT_EQ(arrived.load(), 2);
    if (round % 4 == 0)
      sleepMicroseconds(1000);
  }
}

TEST(Pool, NestedRuns) {
  const auto pool = makeTaskPool(4);
  for (int round = 0; round < 50; ++round) {
    pool->run(
        16, 4,
        [](void *context, int64_t, int) {
          runJob(*static_cast<TaskPool *>(context), 20, 4);
        },
        pool.get());
  }
}

TEST(Pool, NestedRunsOfTwoPools) {
  struct Two {
    std::unique_ptr<TaskPool> outer = makeTaskPool(3);
    std::unique_ptr<TaskPool> inner = makeTaskPool(3);
  } two;
  for (int round = 0; round < 30; ++round)
    two.outer->run(
        9, 3,
        [](void *context, int64_t, int) {
          runJob(*static_cast<Two *>(context)->inner, 15, 3);
        },
        &two);
}

TEST(Pool, ConcurrentRuns) {
  const auto pool = makeTaskPool(4);
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&, i] {
      for (int round = 0; round < 300; ++round)
        runJob(*pool, 1 + (round * 7 + i) % 40, 4);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST(Pool, Oversubscribed) {
  std::vector<std::unique_ptr<TaskPool>> pools;
  for (int i = 0; i < 4; ++i)
    pools.push_back(makeTaskPool(16));
  for (int round = 0; round < 50; ++round)
    for (const auto &pool : pools)
      runJob(*pool, 64, 16);
}

TEST(Pool, LongTasksParkTheCaller) {
  const auto pool = makeTaskPool(2);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> done{0};
    pool->run(
        2, 2,
        [](void *context, int64_t index, int worker) {
          if (worker != 0 || index != 0)
            sleepMicroseconds(2000);
          ++*static_cast<std::atomic<int> *>(context);
        },
        &done);
    EXPECT_EQ(done.load(), 2);
  }
}

TEST(Pool, ResultsOfTasksAreVisibleToTheCaller) {
  const auto pool = makeTaskPool(4);
  std::vector<int64_t> values(1000);
  for (int round = 1; round <= 100; ++round) {
    struct Fill {
      std::vector<int64_t> *values;
      int round;
    } fill{&values, round};
    pool->run(
        1000, 4,
        [](void *context, int64_t index, int) {
          auto &fill = *static_cast<Fill *>(context);
          (*fill.values)[static_cast<size_t>(index)] = index * fill.round;
        },
        &fill);
    for (int64_t i = 0; i < 1000; ++i)
      ASSERT_EQ(values[static_cast<size_t>(i)], i * round);
  }
}

TEST(Pool, WorkersHaveDefaultFloatingPointState) {
  // Workers are started by a thread that rounds upward.
  const auto pool = makeTaskPool(2);
  std::fesetround(FE_UPWARD);
  struct Seen {
    std::atomic<int> arrived{0};
    std::atomic<int> worker{-1};
    std::atomic<int> caller{-1};
  } seen;
  pool->run(
      2, 2,
      [](void *context, int64_t, int worker) {
        auto &seen = *static_cast<Seen *>(context);
        (worker == 0 ? seen.caller : seen.worker) = std::fegetround();
        ++seen.arrived;
        while (seen.arrived.load() < 2)
          std::this_thread::yield();
      },
      &seen);
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(seen.worker.load(), FE_TONEAREST);
  EXPECT_EQ(seen.caller.load(), FE_UPWARD);
  EXPECT_EQ(after, FE_UPWARD);
}

TEST(Pool, WorkersBlockSignals) {
  const auto pool = makeTaskPool(2);
  std::atomic<int> state[2] = {-1, 0};
  pool->run(
      2, 2,
      [](void *context, int64_t, int worker) {
        auto *state = static_cast<std::atomic<int> *>(context);
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        if (worker == 1)
          state[0] = sigismember(&mask, SIGINT);
        ++state[1];
        while (state[1].load() < 2)
          std::this_thread::yield();
      },
      state);
  EXPECT_EQ(state[0].load(), 1);
}

TEST(Pool, RestartsAfterFork) {
#ifdef TESSERA_UNDER_TSAN
  GTEST_SKIP() << "the sanitizer allows no threads after fork";
#endif
  const auto pool = makeTaskPool(3);
  runJob(*pool, 30, 3);
  std::atomic<bool> stop{false};
  // A second thread keeps the pool busy at the moment of the fork.
  std::thread other([&] {
    while (!stop.load())
      runJob(*pool, 30, 3);
  });
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(20);
      bool good = true;
      for (int i = 0; i < 20; ++i) {
        Job job(30, 3);
        pool->run(30, 3, Job::task, &job);
        good &= job.good();
      }
      // Two tasks that meet: the child's pool has a worker of its own.
      std::atomic<int> arrived{0};
      pool->run(
          2, 2,
          [](void *context, int64_t, int) {
            auto &count = *static_cast<std::atomic<int> *>(context);
            ++count;
            while (count.load() < 2)
              std::this_thread::yield();
          },
          &arrived);
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  other.join();
  runJob(*pool, 30, 3);
}

TEST(Pool, ForkInsideATask) {
#ifdef TESSERA_UNDER_TSAN
  GTEST_SKIP() << "the sanitizer allows no threads after fork";
#endif
  const auto pool = makeTaskPool(2);
  int status = -1;
  struct Context {
    TaskPool *pool;
    int *status;
  } context{pool.get(), &status};
  pool->run(
      2, 2,
      [](void *data, int64_t, int worker) {
        if (worker != 0)
          return sleepMicroseconds(500);
        auto &context = *static_cast<Context *>(data);
        const pid_t child = ::fork();
        if (child == 0) {
          ::alarm(20);
          Job job(10, 2);
          context.pool->run(10, 2, Job::task, &job);
          ::_exit(job.good() ? 0 : 1);
        }
        ::waitpid(child, context.status, 0);
      },
      &context);
  // The caller may have found no index left.
  EXPECT_TRUE(status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST(Pool, TellsWhenAllWorkersAreParked) {
  const auto pool = makeTaskPool(3);
  EXPECT_TRUE(runtime::workersAreParked(*pool)) << "none has been started";
  runJob(*pool, 12, 3);
  for (int i = 0; i < 5000 && !runtime::workersAreParked(*pool); ++i)
    sleepMicroseconds(1000);
  EXPECT_TRUE(runtime::workersAreParked(*pool));
  struct HostPool : TaskPool {
    int threads() const override { return 2; }
    void run(int64_t, int, Task, void *) override {}
  } host;
  EXPECT_FALSE(runtime::workersAreParked(host));
}

/// A thread that spins, and where it is.
struct Spinner {
  runtime::SteeredThread steered;
  std::atomic<int> core{-1};
  std::atomic<bool> restores{false}, stop{false};

  static void *main(void *argument) {
    auto &self = *static_cast<Spinner *>(argument);
    while (!self.stop) {
      if (self.restores.exchange(false))
        self.steered.restore();
      self.core = ::sched_getcpu();
    }
    return nullptr;
  }
  Spinner() { ::pthread_create(&steered.handle, nullptr, main, this); }
  ~Spinner() {
    stop = true;
    ::pthread_join(steered.handle, nullptr);
  }
  cpu_set_t mask() const {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::pthread_getaffinity_np(steered.handle, sizeof set, &set);
    return set;
  }
  /// Whether it is seen on a core, or on another, within a second.
  bool isSeen(int where, bool there) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (std::chrono::steady_clock::now() < end)
      if (core >= 0 && (core == where) == there)
        return true;
    return false;
  }
};

TEST(SteeredThread, LeavesACoreAndMayComeBack) {
  Spinner spinner;
  const cpu_set_t usual = spinner.mask();
  if (CPU_COUNT(&usual) < 2)
    GTEST_SKIP() << "one core";
  ASSERT_TRUE(spinner.isSeen(-1, false));
  const int first = spinner.core;
  spinner.steered.keepOff(first);
  EXPECT_TRUE(spinner.isSeen(first, false));
  cpu_set_t mask = spinner.mask();
  EXPECT_FALSE(CPU_ISSET(first, &mask));
  EXPECT_EQ(CPU_COUNT(&mask), CPU_COUNT(&usual) - 1);

  // Off another one it may be on the first again.
  const int second = spinner.core;
  spinner.steered.keepOff(second);
  mask = spinner.mask();
  EXPECT_TRUE(CPU_ISSET(first, &mask));
  EXPECT_FALSE(CPU_ISSET(second, &mask));

  spinner.restores = true;
  while (spinner.restores) {
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  do
    mask = spinner.mask();
  while (!CPU_EQUAL(&mask, &usual) && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(CPU_EQUAL(&mask, &usual));
}

TEST(SteeredThread, WhatOthersSetMeanwhileHolds) {
  Spinner spinner;
  const cpu_set_t usual = spinner.mask();
  if (CPU_COUNT(&usual) < 2)
    GTEST_SKIP() << "one core";
  ASSERT_TRUE(spinner.isSeen(-1, false));
  const int core = spinner.core;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  for (bool again : {false, true}) {
    ASSERT_EQ(
        ::pthread_setaffinity_np(spinner.steered.handle, sizeof usual, &usual),
        0);
    spinner.steered.keepOff(core);
    ASSERT_EQ(
        ::pthread_setaffinity_np(spinner.steered.handle, sizeof only, &only),
        0);
    if (again)
      spinner.steered.keepOff(core);
    spinner.restores = true;
    while (spinner.restores) {
    }
    sleepMicroseconds(2000);
    const cpu_set_t mask = spinner.mask();
    EXPECT_TRUE(CPU_EQUAL(&mask, &only)) << again;
  }
}

TEST(SteeredThread, StaysOnItsOnlyCore) {
  Spinner spinner;
  ASSERT_TRUE(spinner.isSeen(-1, false));
  cpu_set_t only;
  CPU_ZERO(&only);
  const int core = spinner.core;
  CPU_SET(core, &only);
  ASSERT_EQ(
      ::pthread_setaffinity_np(spinner.steered.handle, sizeof only, &only), 0);
  spinner.steered.keepOff(core);
  spinner.steered.keepOff(-1);
  spinner.steered.keepOff(1 << 30);
  cpu_set_t mask = spinner.mask();
  EXPECT_TRUE(CPU_EQUAL(&mask, &only));
}

TEST(Pool, WorkersThatAreLateComeInWhateverTheirCore) {
  // A worker that may run on the caller's core only is late whenever the caller
  // works, and there is no other core for it; jobs are whole all the same.
  auto pool = makeTaskPool(2);
  cpu_set_t usual, only;
  ASSERT_EQ(::sched_getaffinity(0, sizeof usual, &usual), 0);
  CPU_ZERO(&only);
  CPU_SET(::sched_getcpu(), &only);
  ASSERT_EQ(::sched_setaffinity(0, sizeof only, &only), 0);
  auto work = [](void *context, int64_t index, int worker) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::microseconds(40);
    while (std::chrono::steady_clock::now() < end) {
    }
    Job::task(context, index, worker);
  };
  for (int i = 0; i < 20; ++i) {
    Job job(16, 2);
    pool->run(16, 2, work, &job);
    EXPECT_TRUE(job.good());
  }
  ::sched_setaffinity(0, sizeof usual, &usual);
}

TEST(Pool, DefaultPool) {
  TaskPool &pool = defaultTaskPool();
  EXPECT_GE(pool.threads(), 1);
  EXPECT_EQ(&pool, &defaultTaskPool());
  runJob(pool, 100, pool.threads());
}
