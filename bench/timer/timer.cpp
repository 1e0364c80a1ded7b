//===- bench/timer/timer.cpp - The one timing loop of native arms ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/timer/timer.h"

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <utility>

namespace {

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

constexpr size_t maxArguments = 32;

struct Bound {
  void (*entry)();
  size_t count;
  void *arguments[maxArguments];
};

template <typename> using Pointer = void *;

template <size_t... I>
void callWith(const Bound &bound, std::index_sequence<I...>) {
  using Entry = void (*)(Pointer<std::integral_constant<size_t, I>>...);
  reinterpret_cast<Entry>(bound.entry)(bound.arguments[I]...);
}

template <size_t N> void callCount(const Bound &bound) {
  callWith(bound, std::make_index_sequence<N>());
}

using Caller = void (*)(const Bound &);

template <size_t... N>
Caller callerFor(size_t count, std::index_sequence<N...>) {
  static constexpr Caller callers[] = {callCount<N>...};
  return callers[count];
}

} // namespace

int tessera_bench_time(int (*run)(void *), void *problem, int64_t warm,
                       int64_t samples, int64_t inner, int64_t *nanoseconds) {
  for (int64_t call = 0; call < warm; ++call)
    if (int status = run(problem))
      return status;
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t start = now();
    for (int64_t call = 0; call < inner; ++call)
      if (int status = run(problem))
        return status;
    nanoseconds[sample] = now() - start;
  }
  return 0;
}

void *tessera_bench_bind(void (*entry)(), void *const *arguments,
                         int64_t count) {
  if (count < 0 || static_cast<size_t>(count) > maxArguments)
    return nullptr;
  auto *bound = new Bound{entry, static_cast<size_t>(count), {}};
  std::copy(arguments, arguments + count, bound->arguments);
  return bound;
}

int tessera_bench_run_bound(void *bound) {
  const Bound &problem = *static_cast<Bound *>(bound);
  callerFor(problem.count,
            std::make_index_sequence<maxArguments + 1>())(problem);
  return 0;
}

int tessera_bench_run_all(void *list) {
  for (void **bound = static_cast<void **>(list); *bound; ++bound)
    if (int status = tessera_bench_run_bound(*bound))
      return status;
  return 0;
}

void tessera_bench_unbind(void *bound) { delete static_cast<Bound *>(bound); }
