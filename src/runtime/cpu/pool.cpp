//===- pool.cpp - The task pool -------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pool that hands out one job at a time. A job is published in one atomic
// word that workers watch: first spinning, then parked on a futex.
//
// The word `state` holds, from the top: the job's number (32 bits), the worker
// slots still to be taken (16) and the workers inside the job (16). A worker
// joins by one compare-and-swap that takes a slot and counts it in; only then
// may it read the job's plain fields. The caller closes the job by clearing the
// free slots and leaves when nobody is inside, so the fields are never written
// while a late worker could read them.
//
// Parking pairs a flag and a check in the order of Dekker's algorithm, with
// sequentially consistent operations: a parker announces itself and then looks
// at `state`; a publisher changes `state` and then looks for parkers. One of
// them sees the other.
//
//===----------------------------------------------------------------------===//

#include "tessera/pool.h"

#include "runtime/cpu/available_cores.h"
#include "runtime/cpu/parked_workers.h"
#include "runtime/cpu/steered_thread.h"
#include "support/env.h"
#include "support/timing.h"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <climits>
#include <csignal>
#include <linux/futex.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace tessera {

namespace {

constexpr int maxThreads = 4096;

/// Idle workers spin this long before they park.
constexpr int64_t spinNanoseconds = 100'000;
/// The same when the pool has more threads than there are cores: a spinning
/// worker then keeps a working one from running.
constexpr int64_t crowdedSpinNanoseconds = 2'000;
/// A worker that has not joined by then, although a parked one wakes in less,
/// is likely to be queued behind the caller on its core.
constexpr int64_t strandedNanoseconds = 50'000;

// The fields of the state word.
constexpr uint64_t activeOne = 1;
constexpr uint64_t activeMask = 0xffff;
constexpr uint64_t slotOne = uint64_t{1} << 16;
constexpr uint64_t slotMask = uint64_t{0xffff} << 16;
constexpr int jobShift = 32;

uint32_t jobOf(uint64_t state) {
  return static_cast<uint32_t>(state >> jobShift);
}

void pauseCore() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE,
            expected, nullptr, nullptr, 0);
}

void futexWake(std::atomic<uint32_t> &word, int waiters) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE,
            waiters, nullptr, nullptr, 0);
}

/// Spins until `done` holds or the time is over; true when `done` holds.
template <typename Condition>
bool spinUntil(int64_t nanoseconds, Condition done) {
  // Looking at the clock costs as much as a few pauses.
  for (int i = 0; i < 64; ++i) {
    if (done())
      return true;
    pauseCore();
  }
  const int64_t deadline = support::nowNanoseconds() + nanoseconds;
  while (support::nowNanoseconds() < deadline) {
    for (int i = 0; i < 32; ++i) {
      if (done())
        return true;
      pauseCore();
    }
  }
  return done();
}

class SpinThenParkPool;

/// The pools alive in this process, for the fork handlers.
struct Registry {
  std::mutex mutex;
  std::vector<SpinThenParkPool *> pools;
};

Registry &registry() {
  // Never destroyed: the default pool outlives static destruction.
  static Registry *instance = new Registry;
  return *instance;
}

/// Its address names the thread, before and after fork alike.
thread_local char threadToken = 0;

class SpinThenParkPool final : public TaskPool {
public:
  explicit SpinThenParkPool(int threads);
  ~SpinThenParkPool() override;

  int threads() const override { return threadCount; }
  void run(int64_t count, int threads, Task task, void *context) override;

  bool allParked() const {
    return sleepers.load(std::memory_order_relaxed) >=
           startedWorkers.load(std::memory_order_relaxed);
  }

  /// In the child after fork: forgets the workers, which do not exist there.
  void restartInChild();

private:
  struct alignas(64) Worker {
    runtime::SteeredThread thread;
    /// The number of the last job that it joined.
    std::atomic<uint32_t> joined;
  };

  struct WorkerStart {
    SpinThenParkPool *pool;
    Worker *worker;
    uint32_t lastJob;
  };

  static void *workerMain(void *start);
  void workerLoop(Worker &self, uint32_t lastJob);
  void startWorkers();
  void participate(int slot);
  void participateAsCaller(bool wantsAll);
  void steerMissingWorkers();
  void awaitWorkers();

  const int threadCount;
  /// More threads than cores.
  const bool isCrowded;
  const int64_t spin;

  /// Held by the thread whose job is published.
  alignas(64) std::atomic<bool> busy{false};
  // Used only by the holder of `busy` and by the fork handler.
  bool started = false;
  const void *publisher = nullptr;
  std::vector<std::unique_ptr<Worker>> workers;
  /// The number of `workers`, for everybody to read.
  std::atomic<uint32_t> startedWorkers{0};

  alignas(64) std::atomic<uint64_t> state{0};
  // The job; written while nobody is inside.
  Task task = nullptr;
  void *context = nullptr;
  int64_t count = 0;

  alignas(64) std::atomic<int64_t> next{0};

  /// Workers parked or about to park, and the word they park on.
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<uint32_t> wakeWord{0};
  std::atomic<bool> stop{false};

  /// 1 while the caller is parked until the last worker leaves.
  alignas(64) std::atomic<uint32_t> callerParked{0};
};

int64_t chooseSpin(bool isCrowded) {
  if (const auto wanted = support::envInteger(
          support::EnvVariable::SpinMicroseconds, 0, 1'000'000))
    return *wanted * 1000;
  return isCrowded ? crowdedSpinNanoseconds : spinNanoseconds;
}

void beforeFork() { registry().mutex.lock(); }
void afterForkInParent() { registry().mutex.unlock(); }
void afterForkInChild() {
  for (SpinThenParkPool *pool : registry().pools)
    pool->restartInChild();
  registry().mutex.unlock();
}

SpinThenParkPool::SpinThenParkPool(int threads)
    : threadCount(threads), isCrowded(threads > runtime::availableCores()),
      spin(chooseSpin(isCrowded)) {
  static const int handlers =
      ::pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  (void)handlers;
  workers.reserve(static_cast<size_t>(threadCount));
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().pools.push_back(this);
}

SpinThenParkPool::~SpinThenParkPool() {
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    std::erase(registry().pools, this);
  }
  stop.store(true);
  wakeWord.fetch_add(1);
  futexWake(wakeWord, INT_MAX);
  for (const std::unique_ptr<Worker> &worker : workers)
    ::pthread_join(worker->thread.handle, nullptr);
}

void SpinThenParkPool::restartInChild() {
  // A task of a worker may have forked: the child's only thread then is that
  // worker, and leaves its job by what is kept for it.
  for (std::unique_ptr<Worker> &worker : workers)
    static_cast<void>(worker.release());
  workers.clear();
  startedWorkers.store(0);
  started = false;
  sleepers.store(0);
  callerParked.store(0);
  state.store(uint64_t{jobOf(state.load())} << jobShift);
  // A fork from within a task leaves this thread in its job.
  busy.store(busy.load() && publisher == &threadToken);
}

void SpinThenParkPool::startWorkers() {
  started = true;
  // The host's signal handlers run on the host's threads.
  sigset_t all, previous;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &previous);
  const uint32_t lastJob = jobOf(state.load(std::memory_order_relaxed));
  for (int i = 1; i < threadCount; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->joined.store(lastJob, std::memory_order_relaxed);
    auto *start = new WorkerStart{this, worker.get(), lastJob};
    if (::pthread_create(&worker->thread.handle, nullptr, workerMain, start) !=
        0) {
      delete start;
      break; // The system has no more threads; those that exist do the work.
    }
    workers.push_back(std::move(worker));
  }
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  startedWorkers.store(static_cast<uint32_t>(workers.size()));
}

void *SpinThenParkPool::workerMain(void *argument) {
  auto *start = static_cast<WorkerStart *>(argument);
  const WorkerStart copy = *start;
  delete start;
  // A new thread inherits the creator's rounding and exception modes.
  std::fesetenv(FE_DFL_ENV);
  ::pthread_setname_np(::pthread_self(), "tessera-worker");
  copy.pool->workerLoop(*copy.worker, copy.lastJob);
  return nullptr;
}

void SpinThenParkPool::workerLoop(Worker &self, uint32_t lastJob) {
  const auto newJob = [&] {
    return jobOf(state.load(std::memory_order_acquire)) != lastJob ||
           stop.load(std::memory_order_relaxed);
  };
  while (!stop.load(std::memory_order_relaxed)) {
    if (!spinUntil(spin, newJob)) {
      // Not between jobs: it takes longer than many of them.
      self.thread.restore();
      sleepers.fetch_add(1);
      const uint32_t word = wakeWord.load();
      if (jobOf(state.load()) == lastJob && !stop.load())
        futexWait(wakeWord, word);
      sleepers.fetch_sub(1);
      continue;
    }

    uint64_t seen = state.load(std::memory_order_acquire);
    while ((seen & slotMask) != 0 && jobOf(seen) != lastJob) {
      if (!state.compare_exchange_weak(seen, seen - slotOne + activeOne))
        continue;
      self.joined.store(jobOf(seen), std::memory_order_relaxed);
      participate(static_cast<int>((seen & slotMask) / slotOne));
      const uint64_t before = state.fetch_sub(activeOne);
      if ((before & activeMask) == activeOne && callerParked.load() != 0 &&
          callerParked.exchange(0) != 0)
        futexWake(callerParked, 1);
      break;
    }
    lastJob = jobOf(seen);
  }
}

void SpinThenParkPool::participate(int slot) {
  const int64_t total = count;
  for (;;) {
    const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= total)
      return;
    task(context, index, slot);
  }
}

/// `wantsAll`: whether the job has a slot for each worker, so that one that is
/// not there is late.
void SpinThenParkPool::participateAsCaller(bool wantsAll) {
  const int64_t total = count;
  bool looks = wantsAll;
  const int64_t begin = looks ? support::nowNanoseconds() : 0;
  for (;;) {
    const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
    if (index >= total)
      return;
    task(context, index, 0);
    if (!looks)
      continue;
    if ((state.load(std::memory_order_relaxed) & slotMask) == 0) {
      looks = false;
    } else if (support::nowNanoseconds() - begin > strandedNanoseconds) {
      steerMissingWorkers();
      looks = false;
    }
  }
}

void SpinThenParkPool::steerMissingWorkers() {
  const uint32_t job = jobOf(state.load(std::memory_order_relaxed));
  const int core = ::sched_getcpu();
  for (const std::unique_ptr<Worker> &worker : workers)
    if (worker->joined.load(std::memory_order_relaxed) != job)
      worker->thread.keepOff(core);
}

void SpinThenParkPool::awaitWorkers() {
  const auto nobodyInside = [&] {
    return (state.load(std::memory_order_acquire) & activeMask) == 0;
  };
  while (!spinUntil(spin, nobodyInside)) {
    callerParked.store(1);
    if ((state.load() & activeMask) != 0)
      futexWait(callerParked, 1);
    callerParked.store(0);
  }
}

void SpinThenParkPool::run(int64_t jobCount, int jobThreads, Task jobTask,
                           void *jobContext) {
  if (jobCount <= 0)
    return;
  int64_t wanted = jobThreads <= 0 ? threadCount : jobThreads;
  wanted = std::min({wanted, int64_t{threadCount}, jobCount});
  // A pool that is busy with another job (or with the one whose task makes this
  // call) is not waited for.
  if (wanted == 1 || busy.load(std::memory_order_relaxed) ||
      busy.exchange(true, std::memory_order_acquire)) {
    for (int64_t index = 0; index < jobCount; ++index)
      jobTask(jobContext, index, 0);
    return;
  }
  if (!started)
    startWorkers();

  publisher = &threadToken;
  task = jobTask;
  context = jobContext;
  count = jobCount;
  next.store(0, std::memory_order_relaxed);
  const auto helpers = static_cast<uint64_t>(wanted - 1);
  const uint32_t job = jobOf(state.load(std::memory_order_relaxed)) + 1;
  state.store(uint64_t{job} << jobShift | helpers * slotOne);
  if (const uint32_t parked = sleepers.load(); parked != 0) {
    wakeWord.fetch_add(1);
    futexWake(wakeWord, static_cast<int>(std::min<uint64_t>(parked, helpers)));
  }

  participateAsCaller(helpers == workers.size() && !isCrowded);
  state.fetch_and(~slotMask);
  awaitWorkers();
  publisher = nullptr;
  busy.store(false, std::memory_order_release);
}

} // namespace

bool runtime::workersAreParked(const TaskPool &pool) {
  const auto *own = dynamic_cast<const SpinThenParkPool *>(&pool);
  return own && own->allParked();
}

std::unique_ptr<TaskPool> makeTaskPool(int threads) {
  if (threads <= 0)
    threads = runtime::availableCores();
  return std::make_unique<SpinThenParkPool>(std::min(threads, maxThreads));
}

TaskPool &defaultTaskPool() {
  // Never destroyed: kernels may run in static destructors, and its workers
  // end with the process.
  static TaskPool *pool = [] {
    const auto wanted =
        support::envInteger(support::EnvVariable::Threads, 1, maxThreads);
    return makeTaskPool(wanted ? static_cast<int>(*wanted) : 0).release();
  }();
  return *pool;
}

} // namespace tessera
