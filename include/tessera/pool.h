//===- tessera/pool.h - The task pool ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_POOL_H
#define TESSERA_POOL_H

#include <cstdint>
#include <memory>

namespace tessera {

/// What a launch needs of a thread pool. A host application that has its own
/// pool implements this and passes it in LaunchOptions.
class TaskPool {
public:
  /// A task: runs item `index` of a job, on worker slot `worker`, which lies in
  /// [0, threads) and is used by one thread at a time.
  using Task = void (*)(void *context, int64_t index, int worker);

  virtual ~TaskPool() = default;

  /// Threads that can run tasks, the calling thread included; at least 1.
  virtual int threads() const = 0;

  /// Runs `task` for every index in [0, count), on at most `threads` threads
  /// including the caller, and returns when all have finished. May be called
  /// from several threads at once and from within a task.
  virtual void run(int64_t count, int threads, Task task, void *context) = 0;
};

/// Tessera's own pool: workers spin for a short while, then park. `threads`
/// counts the caller; 0 means one per available core.
std::unique_ptr<TaskPool> makeTaskPool(int threads = 0);

/// The process-wide pool, made at its first use. It restarts in a child
/// process after fork.
TaskPool &defaultTaskPool();

} // namespace tessera

#endif // TESSERA_POOL_H
