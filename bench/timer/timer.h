//===- bench/timer/timer.h - The one timing loop of native arms -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small library of its own, with a C interface, so that every native arm is
// timed by the same machine code: Tessera's kernels and peer plug-ins in the
// benchmark worker, and compiled entries of Python peers through ctypes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_TIMER_TIMER_H
#define TESSERA_BENCH_TIMER_TIMER_H

#include <stdint.h>

extern "C" {

/// Calls `run(problem)` `warm` times untimed, then takes `samples` samples of
/// `inner` calls each and writes the whole time of each sample to
/// `nanoseconds`. Returns 0, or the first value other than 0 that a call
/// returned (the rest is not run). The counts are at least 0, 1 and 1.
int tessera_bench_time(int (*run)(void *), void *problem, int64_t warm,
                       int64_t samples, int64_t inner, int64_t *nanoseconds);

/// An entry that takes only pointers, and its arguments, as a problem for
/// tessera_bench_run_bound. At most 32 arguments; null for more.
void *tessera_bench_bind(void (*entry)(), void *const *arguments,
                         int64_t count);
int tessera_bench_run_bound(void *bound);
/// Runs several bound entries in their order: `list` is an array of results of
/// tessera_bench_bind that ends with null.
int tessera_bench_run_all(void *list);
void tessera_bench_unbind(void *bound);
}

#endif // TESSERA_BENCH_TIMER_TIMER_H
