//===- bench/ceilings/ceilings.cpp - What this machine can do -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/ceilings/ceilings.h"

#include "bench/ceilings/loop_table.h"
#include "bench/ceilings/pages.h"
#include "bench/core/statistics.h"
#include "bench/timer/timer.h"
#include "fmt/format.h"
#include "tessera/pool.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace tessera::bench {

namespace {

constexpr int64_t workingSets[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20,
                                   4 << 20,  16 << 20, 64 << 20,  256 << 20};
constexpr int samples = 9;
constexpr double sampleNanoseconds = 1e6;
/// Arrays begin this far apart modulo the page size.
constexpr int64_t placementStep = 1088;

/// A loop over arrays, split evenly over threads.
struct Work {
  Loop loop;
  const float *a, *b;
  float *y;
  int64_t count;
  int64_t step;
  int threads;
  TaskPool *pool;

  void part(int64_t index) const {
    int64_t steps = count / step;
    int64_t begin = steps * index / threads * step;
    int64_t end = steps * (index + 1) / threads * step;
    if (loop)
      loop(a + begin, b + begin, y + begin, end - begin);
  }
  int run() const {
    if (threads == 1) {
      part(0);
      return 0;
    }
    pool->run(
        threads, threads,
        [](void *context, int64_t index, int) {
          static_cast<Work *>(context)->part(index);
        },
        const_cast<Work *>(this));
    return 0;
  }
};

void measure(Ceiling &ceiling, Work work) {
  auto call = [](void *context) { return static_cast<Work *>(context)->run(); };
  int64_t probe[3] = {};
  tessera_bench_time(call, &work, 1, 3, 1, probe);
  double one = std::max<double>(*std::min_element(probe, probe + 3), 10);
  ceiling.inner = std::clamp<int64_t>(
      static_cast<int64_t>(sampleNanoseconds / one), 1, 1 << 20);
  ceiling.nanoseconds.resize(samples);
  tessera_bench_time(call, &work, ceiling.inner / 4 + 1, samples, ceiling.inner,
                     ceiling.nanoseconds.data());
}

/// One mix: how many arrays are read, and whether one is written.
struct Mix {
  const char *name;
  Loop LoopTable::*loop;
  int reads;
  int writes;
};

constexpr Mix mixes[] = {
    {"read", &LoopTable::read, 1, 0},        {"copy", &LoopTable::copy, 1, 1},
    {"copy-nt", &LoopTable::copyNt, 1, 1},   {"triad", &LoopTable::triad, 2, 1},
    {"triad-nt", &LoopTable::triadNt, 2, 1}, {"write", &LoopTable::write, 0, 1},
    {"write-nt", &LoopTable::writeNt, 0, 1},
};

} // namespace

double Ceiling::callNanoseconds() const {
  return median({nanoseconds.begin(), nanoseconds.end()}) /
         static_cast<double>(inner);
}

double Ceiling::bytesPerSecond() const {
  return static_cast<double>(readBytes + writtenBytes) / callNanoseconds() *
         1e9;
}

double Ceiling::flopsPerSecond() const {
  return flops / callNanoseconds() * 1e9;
}

std::vector<Ceiling>
measureCeilings(Isa isa, const std::vector<int> &threads,
                const std::function<void(const std::string &)> &progress) {
  const LoopTable &table = loopTable(getTarget(isa).vectorBits);
  // A multiple of every step, so that parts are whole.
  constexpr int64_t granule = 4096;
  int64_t largest =
      *std::max_element(std::begin(workingSets), std::end(workingSets));
  Pages pages(largest + 8 * granule);
  std::vector<Ceiling> result;
  if (!pages.data())
    return result;
  for (int count : threads) {
    std::unique_ptr<TaskPool> pool;
    if (count > 1)
      pool = makeTaskPool(count);
    for (int64_t workingSet : workingSets) {
      progress(fmt::format("bandwidth, {} KiB, {} threads", workingSet >> 10,
                           count));
      for (const Mix &mix : mixes) {
        int arrays = mix.reads + mix.writes;
        int64_t floats = workingSet / arrays / granule * granule / 4;
        if (floats == 0)
          continue;
        float *next = pages.data();
        auto place = [&, position = 0]() mutable {
          float *start = next + position++ * placementStep % granule / 64 * 16;
          next += floats + granule / 4;
          return start;
        };
        Work work = {table.*(mix.loop), next,  next,      next, floats,
                     4 * table.lanes,   count, pool.get()};
        if (mix.reads > 0)
          work.a = work.b = place();
        if (mix.reads > 1)
          work.b = place();
        if (mix.writes > 0)
          work.y = place();
        Ceiling &ceiling = result.emplace_back();
        ceiling.name = mix.name;
        ceiling.threads = count;
        ceiling.workingSetBytes = workingSet;
        ceiling.readBytes = mix.reads * floats * 4;
        ceiling.writtenBytes = mix.writes * floats * 4;
        measure(ceiling, work);
      }
    }
    progress(fmt::format("multiply-adds, {} threads", count));
    constexpr int64_t rounds = 1 << 12;
    Ceiling &peak = result.emplace_back();
    peak.name = "fma-f32";
    peak.threads = count;
    peak.flops = 2.0 * 16 * static_cast<double>(table.lanes * rounds);
    // Every part does `rounds` / threads.
    measure(peak, {table.multiplyAdd, pages.data(), pages.data(), pages.data(),
                   rounds, 1, count, pool.get()});
    if (count > 1) {
      Ceiling &fork = result.emplace_back();
      fork.name = "fork-join";
      fork.threads = count;
      measure(fork, {nullptr, pages.data(), pages.data(), pages.data(), 0, 1,
                     count, pool.get()});
    }
  }
  return result;
}

Floor floorOf(const std::vector<Ceiling> &ceilings, int threads,
              int64_t bytesRead, int64_t bytesWritten, double flops) {
  Floor floor;
  double bytes = static_cast<double>(bytesRead + bytesWritten);
  auto label = [](const Ceiling &ceiling) {
    return fmt::format("{}/{}/{}", ceiling.name, ceiling.workingSetBytes,
                       ceiling.threads);
  };
  if (bytes > 0) {
    double reads = static_cast<double>(bytesRead) / bytes;
    const Ceiling *best = nullptr;
    double bestMix = 0, bestSize = 0;
    for (const Ceiling &ceiling : ceilings) {
      double moved =
          static_cast<double>(ceiling.readBytes + ceiling.writtenBytes);
      if (ceiling.threads != threads || moved <= 0)
        continue;
      double mix =
          std::abs(static_cast<double>(ceiling.readBytes) / moved - reads);
      double size = std::abs(
          std::log(static_cast<double>(ceiling.workingSetBytes) / bytes));
      bool isNearer = !best || mix < bestMix - 1e-3 ||
                      (mix < bestMix + 1e-3 &&
                       (size < bestSize - 1e-9 ||
                        (size < bestSize + 1e-9 &&
                         ceiling.bytesPerSecond() > best->bytesPerSecond())));
      if (isNearer) {
        best = &ceiling;
        bestMix = mix;
        bestSize = size;
      }
    }
    if (best)
      floor = {bytes / best->bytesPerSecond() * 1e9, "bandwidth", label(*best)};
  }
  for (const Ceiling &ceiling : ceilings)
    if (ceiling.threads == threads && ceiling.flops > 0 && flops > 0) {
      double time = flops / ceiling.flopsPerSecond() * 1e9;
      if (time > floor.nanoseconds)
        floor = {time, "flops", label(ceiling)};
    }
  return floor;
}

} // namespace tessera::bench
