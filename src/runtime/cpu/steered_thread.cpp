//===- steered_thread.cpp - A thread kept off a core for a while ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cpu/steered_thread.h"

namespace tessera::runtime {

void SteeredThread::keepOff(int core) {
  if (core < 0 || core >= CPU_SETSIZE || locked.exchange(true))
    return;
  cpu_set_t mask;
  if (::pthread_getaffinity_np(handle, sizeof mask, &mask) == 0) {
    // What somebody else has set meanwhile holds.
    if (isSteered.load() && CPU_EQUAL(&mask, &narrowed))
      mask = usual;
    if (CPU_ISSET(core, &mask) && CPU_COUNT(&mask) > 1) {
      usual = mask;
      CPU_CLR(core, &mask);
      narrowed = mask;
      if (::pthread_setaffinity_np(handle, sizeof mask, &mask) == 0)
        isSteered.store(true);
    }
  }
  locked.store(false);
}

void SteeredThread::restore() {
  if (!isSteered.load())
    return;
  // Held for the few system calls of keepOff.
  while (locked.exchange(true))
    ::sched_yield();
  cpu_set_t mask;
  if (::pthread_getaffinity_np(::pthread_self(), sizeof mask, &mask) == 0 &&
      CPU_EQUAL(&mask, &narrowed))
    ::pthread_setaffinity_np(::pthread_self(), sizeof usual, &usual);
  isSteered.store(false);
  locked.store(false);
}

} // namespace tessera::runtime
