//===- steered_thread.h - A thread kept off a core for a while --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A system may queue a thread that it wakes behind the thread that woke it, on
// one core, and leave it there for milliseconds while another core is idle: for
// longer than most launches take. Telling it that the woken thread may run
// anywhere but there moves the thread at once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_CPU_STEERED_THREAD_H
#define TESSERA_RUNTIME_CPU_STEERED_THREAD_H

#include <atomic>
#include <pthread.h>
#include <sched.h>

namespace tessera::runtime {

class SteeredThread {
public:
  /// Set before anything else, once the thread exists.
  pthread_t handle{};

  /// Moves the thread off a core, for another thread to call; it may run on
  /// the one that it was kept off before. Nothing happens where there is no
  /// other core for it.
  void keepOff(int core);

  /// The thread itself calls this: it may run wherever it might before.
  void restore();

private:
  std::atomic<bool> locked{false};
  std::atomic<bool> isSteered{false};
  /// Where it may run otherwise, and where while it is steered.
  cpu_set_t usual{}, narrowed{};
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_CPU_STEERED_THREAD_H
