//===- bench/machine/measure.cpp - Measuring a machine description --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/machine/measure.h"

#include "bench/ceilings/loop_table.h"
#include "bench/ceilings/pages.h"
#include "bench/core/statistics.h"
#include "bench/machine/core_loops.h"
#include "support/timing.h"
#include "target/machine_figures.h"
#include "tessera/device.h"
#include "tessera/pool.h"

#include "fmt/format.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace tessera::bench {

namespace {

constexpr int64_t KiB = 1 << 10;
constexpr int64_t MiB = 1 << 20;
/// How long a sample takes: long for the clock, short for an interruption.
constexpr double sampleNanoseconds = 200e3;
/// The largest array for what lies beyond all caches, and how much of it a
/// second of the whole time allows for.
constexpr int64_t largestArray = 512 * MiB;
constexpr int64_t arrayPerSecond = 64 * MiB;
/// Idle workers have parked by then.
constexpr auto longIdle = std::chrono::milliseconds(2);
/// Later than this comes a worker that had to wait for a core: one that spun,
/// and one that slept.
constexpr double longestHandover = 1e5;
constexpr double longestWake = 1e6;
/// A worker that has not come by then was not let run.
constexpr int64_t longestWait = 20'000'000;

/// Four digits: more say nothing, and fewer characters are read more easily.
double rounded(double value) {
  return value > 0 ? std::stod(fmt::format("{:.4g}", value)) : value;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Nanoseconds of one call of `call(repeats)` per repeat; learns how many
/// repeats make a sample.
template <typename Call> class Timed {
public:
  explicit Timed(Call call, double nanoseconds = sampleNanoseconds)
      : call(std::move(call)), enough(nanoseconds / 2) {}
  double operator()() {
    if (repeats == 0)
      learn();
    support::Stopwatch watch;
    call(repeats);
    return static_cast<double>(watch.nanoseconds()) /
           static_cast<double>(repeats);
  }

private:
  void learn() {
    for (repeats = 1; repeats < int64_t{1} << 40; repeats *= 2) {
      support::Stopwatch watch;
      call(repeats);
      if (static_cast<double>(watch.nanoseconds()) >= enough)
        return;
    }
  }

  Call call;
  double enough;
  int64_t repeats = 0;
};

/// Cycles of a round of a loop, by the clock just before it: a processor
/// changes its clock when it likes. The clock is that of code full of vectors,
/// also for loops that could have a higher one, so that cycles over the clock
/// are time.
class InCycles {
public:
  InCycles(const CountedLoop &loop, const CoreLoops &loops, float *data)
      : loop(Round{loop.run, data}, loopNanoseconds),
        clock(Round{loops.clock.run, data}, clockNanoseconds),
        operations(loops.multiplies.run), clockCycles(loops.clock.count),
        data(data) {}

  double operator()() {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      findClock();
      double once = clock(), again = clock(), time = loop(), after = clock();
      if (std::abs(once / again - 1) >= sameClock)
        continue;
      // A disturbed clock would make the loop look better. One that is much
      // higher afterwards is what a light loop may have.
      double least = std::min(once, again);
      if (after < least && after > least * lighterClock)
        least = after;
      return time * clockCycles / least;
    }
    return 0;
  }
  /// Nanoseconds of a cycle.
  double cycle() {
    findClock();
    return clock() / clockCycles;
  }

private:
  struct Round {
    CoreLoop run;
    float *data;
    void operator()(int64_t rounds) const { run(data, rounds); }
  };
  static constexpr int attempts = 3;
  static constexpr double sameClock = 0.005;
  static constexpr double lighterClock = 0.97;
  // Short, so that the clock stays what it was.
  static constexpr double loopNanoseconds = 50e3;
  static constexpr double clockNanoseconds = 25e3;
  /// How long a processor is given to find the clock that vectors of one width
  /// get.
  static constexpr int64_t warmNanoseconds = 1'000'000;

  void findClock() {
    support::Stopwatch watch;
    while (watch.nanoseconds() < warmNanoseconds)
      operations(data, 1000);
  }

  Timed<Round> loop, clock;
  CoreLoop operations;
  double clockCycles;
  float *data;
};

/// A task that every thread of the pool takes one item of, and leaves when all
/// others have begun.
struct Meeting {
  int threads;
  std::atomic<int> arrived{0};
  std::atomic<bool> gaveUp{false};

  void item() {
    arrived.fetch_add(1);
    support::Stopwatch watch;
    while (arrived.load() < threads && !gaveUp.load()) {
      pause();
      if (watch.nanoseconds() > longestWait)
        gaveUp.store(true);
    }
  }
  /// Nanoseconds, or -1 when somebody did not come.
  double hold(TaskPool &pool) {
    arrived.store(0);
    gaveUp.store(false);
    support::Stopwatch watch;
    pool.run(
        threads, threads,
        [](void *context, int64_t, int) {
          static_cast<Meeting *>(context)->item();
        },
        this);
    return gaveUp.load() ? -1 : static_cast<double>(watch.nanoseconds());
  }
};

class Measurement {
public:
  Measurement(const Machine &base, double seconds)
      : seconds(seconds), pages(arrayBytes(seconds)) {
    result.machine = base;
  }

  MeasuredMachine run(const std::function<void(const Progress &)> &progress) {
    addBandwidth();
    for (size_t width = 0; width < widthNames.size(); ++width)
      addCore(width);
    addPool();
    result.turns = takeTurns(
        probes, std::max(seconds - watch.milliseconds() * 1e-3, 0.0), progress);
    for (const std::function<void()> &conclusion : conclusions)
      conclusion();
    return std::move(result);
  }

private:
  /// Adds a probe; the reference stays valid.
  const Probe &add(Probe probe) {
    probes.push_back(std::move(probe));
    return probes.back();
  }

  /// Keeps a figure of `owner` that `from` were needed for, if it is one.
  template <typename Owner>
  void keep(Owner &owner, double Owner::*value,
            std::span<const Figure<Owner>> figures, std::string_view where,
            double measured, const std::vector<const Probe *> &from) {
    for (const Figure<Owner> &figure : figures) {
      if (figure.value != value)
        continue;
      std::string name = figureName(figure.name, where);
      measured = rounded(measured);
      bool isMissing =
          std::any_of(from.begin(), from.end(), [](const Probe *probe) {
            return probe->samples.empty();
          });
      if (isMissing || !figure.isPlausible(measured)) {
        result.kept.insert(name);
        return;
      }
      owner.*value = measured;
      if (!std::all_of(from.begin(), from.end(),
                       [](const Probe *probe) { return probe->isSettled(); }))
        result.unsettled.insert(name);
    }
  }

  static int64_t arrayBytes(double seconds) {
    int64_t memory = cpuDevice().memoryBytes;
    int64_t bytes =
        std::min(largestArray, static_cast<int64_t>(seconds * arrayPerSecond));
    if (memory > 0)
      bytes = std::min(bytes, memory / 8);
    return std::max(bytes, 16 * MiB) / (64 * KiB) * (64 * KiB);
  }

  /// An array that lies in a level and not in the one before.
  int64_t workingSet(size_t level) const {
    const auto &memory = result.machine.memory;
    const int64_t whole = arrayBytes(seconds);
    if (level + 1 == memory.size())
      return whole;
    int64_t bytes = memory[level].bytes / 2;
    if (level > 0 && bytes < 2 * memory[level - 1].bytes)
      bytes = (memory[level - 1].bytes + memory[level].bytes) / 2;
    return std::clamp(bytes / (4 * KiB) * (4 * KiB), 4 * KiB, whole);
  }

  /// Whether the array of a level is too large for the one before to matter.
  bool isAlone(size_t level) const {
    return level == 0 ||
           workingSet(level) > result.machine.memory[level - 1].bytes * 5 / 4;
  }

  void addBandwidth() {
    const LoopTable &loops = loopTable(getTarget(hostIsa()).vectorBits);
    struct Mix {
      Loop loop;
      double MemoryLevel::*value;
    };
    const Mix mixes[] = {{loops.load, &MemoryLevel::read},
                         {loops.write, &MemoryLevel::write},
                         {loops.writeNt, &MemoryLevel::writeAround}};
    for (size_t level = 0; level < levelNames.size(); ++level)
      for (const Mix &mix : mixes) {
        if (!pages.data() || !isAlone(level)) {
          for (const Figure<MemoryLevel> &figure : levelFigures())
            result.kept.insert(figureName(figure.name, levelNames[level]));
          continue;
        }
        int64_t bytes = workingSet(level);
        float *data = pages.data();
        auto call = [=, loop = mix.loop](int64_t repeats) {
          for (int64_t i = 0; i < repeats; ++i)
            loop(data, data, data, bytes / 4);
        };
        const Probe &probe =
            add({.sample = Timed(call),
                 .perTurn = level + 1 == levelNames.size() ? 1 : 2,
                 .tolerance = 0.03});
        conclusions.push_back([this, &probe, level, bytes, value = mix.value] {
          keep(result.machine.memory[level], value, levelFigures(),
               levelNames[level], static_cast<double>(bytes) / probe.value(),
               {&probe});
        });
      }
  }

  const Probe &count(const CountedLoop &loop, const CoreLoops &loops) {
    return add({.sample = InCycles(loop, loops, coreData),
                .estimate = Estimate::Cluster});
  }

  void addCore(size_t width) {
    const int64_t bits = int64_t{128} << width;
    const CoreLoops &loops = coreLoops(bits);
    if (bits > getTarget(hostIsa()).vectorBits || !loops.clock.run) {
      for (const Figure<CoreCosts> &figure : coreFigures())
        result.kept.insert(figureName(figure.name, widthNames[width]));
      return;
    }
    prepareCoreLoops(coreData);
    const Probe &clock =
        add({.sample =
                 [cycles = InCycles(loops.clock, loops, coreData)]() mutable {
                   return cycles.cycle();
                 },
             .estimate = Estimate::Cluster});
    conclude(width, &CoreCosts::gigahertz, {&clock},
             [&clock] { return 1 / clock.value(); });

    // Cycles of one, or how many in a cycle.
    enum class As { Cycles, Rate };
    struct Direct {
      const CountedLoop &loop;
      double CoreCosts::*value;
      As as;
    };
    const Direct directs[] = {
        {loops.loads, &CoreCosts::loadsPerCycle, As::Rate},
        {loops.stores, &CoreCosts::storesPerCycle, As::Rate},
        {loops.operations, &CoreCosts::operationsPerCycle, As::Rate},
        {loops.multiplies, &CoreCosts::multipliesPerCycle, As::Rate},
        {loops.additions, &CoreCosts::additionsPerCycle, As::Rate},
        {loops.instructions, &CoreCosts::instructionsPerCycle, As::Rate},
        {loops.divisions, &CoreCosts::divideCycles, As::Cycles},
        {loops.squareRoots, &CoreCosts::squareRootCycles, As::Cycles},
        {loops.addChain, &CoreCosts::addLatency, As::Cycles},
        {loops.divideChain, &CoreCosts::divideLatency, As::Cycles},
        {loops.squareRootChain, &CoreCosts::squareRootLatency, As::Cycles},
        {loops.loadChain, &CoreCosts::loadLatency, As::Cycles},
        {loops.gather, &CoreCosts::gatherLaneCycles, As::Cycles},
    };
    for (const Direct &direct : directs) {
      const Probe &probe = count(direct.loop, loops);
      conclude(width, direct.value, {&probe},
               [&probe, as = direct.as, count = direct.loop.count] {
                 return as == As::Rate ? count / probe.value()
                                       : probe.value() / count;
               });
    }

    struct Extra {
      const CountedLoop &loop;
      const CountedLoop &plain;
      double CoreCosts::*value;
    };
    const Extra extras[] = {
        {loops.maskedLoads, loops.loads, &CoreCosts::maskedLoadCycles},
        {loops.maskedStores, loops.stores, &CoreCosts::maskedStoreCycles},
        {loops.splitLoads, loops.loads, &CoreCosts::splitLineCycles},
    };
    for (const Extra &extra : extras) {
      if (!extra.loop.run) {
        conclude(width, extra.value, {}, [] { return -1; });
        continue;
      }
      const Probe &probe = count(extra.loop, loops);
      const Probe &plain = count(extra.plain, loops);
      // Both loops have as many accesses. What the samples cannot tell from
      // nothing is nothing.
      conclude(width, extra.value, {&probe, &plain},
               [&probe, &plain, count = extra.loop.count] {
                 double more = (probe.value() - plain.value()) / count;
                 return more < 0.02 ? 0 : more;
               });
    }
  }

  /// Keeps a figure of a width in the end: what `value` then says.
  template <typename Value>
  void conclude(size_t width, double CoreCosts::*figure,
                std::vector<const Probe *> from, Value value) {
    conclusions.push_back([this, width, figure, from = std::move(from), value] {
      keep(result.machine.core[width], figure, coreFigures(), widthNames[width],
           value(), from);
    });
  }

  void addPool() {
    pool = makeTaskPool();
    if (pool->threads() < 2) {
      for (const Figure<Machine> &figure : machineFigures())
        result.kept.insert(figureName(figure.name));
      return;
    }
    meeting.threads = pool->threads();
    const Probe &spinning = add({.sample =
                                     [this] {
                                       // The first wakes whoever sleeps.
                                       double first = meeting.hold(*pool);
                                       std::vector<double> times(64);
                                       for (double &one : times)
                                         if (first > 0)
                                           one = first = meeting.hold(*pool);
                                       return first > 0 ? median(times) : first;
                                     },
                                 .tolerance = 0.05});
    const Probe &sleeping = add({.sample =
                                     [this] {
                                       std::this_thread::sleep_for(longIdle);
                                       return meeting.hold(*pool);
                                     },
                                 .estimate = Estimate::Middle});
    conclusions.push_back([this, &spinning, &sleeping] {
      // Without a free core for every thread both are about other programs.
      const bool areFree =
          spinning.isSettled() && spinning.value() < longestHandover;
      keep(result.machine, &Machine::forkJoinNanoseconds, machineFigures(), "",
           areFree ? spinning.value() : 0, {&spinning});
      keep(result.machine, &Machine::wakeNanoseconds, machineFigures(), "",
           areFree && sleeping.value() < longestWake ? sleeping.value() : 0,
           {&sleeping});
    });
  }

  /// Making the memory counts as well.
  const support::Stopwatch watch;
  const double seconds;
  MeasuredMachine result;
  Pages pages;
  alignas(64) float coreData[coreLoopBytes / 4] = {};
  std::unique_ptr<TaskPool> pool;
  Meeting meeting{.threads = 1};
  /// Conclusions refer to the elements.
  std::deque<Probe> probes;
  std::vector<std::function<void()>> conclusions;
};

} // namespace

std::string figureName(std::string_view name, std::string_view owner) {
  return owner.empty() ? std::string(name)
                       : fmt::format("{} of {}", name, owner);
}

void keepContradicted(MeasuredMachine &measured, const Machine &base) {
  if (implausibleFigure(measured.machine).empty())
    return;
  for (size_t i = 0; i < levelNames.size(); ++i)
    for (const Figure<MemoryLevel> &figure : levelFigures()) {
      const std::string name = figureName(figure.name, levelNames[i]);
      if (measured.unsettled.erase(name) == 0)
        continue;
      measured.machine.memory[i].*figure.value = base.memory[i].*figure.value;
      measured.kept.insert(name);
    }
}

MeasuredMachine
measureMachine(const Machine &base, double seconds,
               const std::function<void(const Progress &)> &progress) {
  MeasuredMachine measured = Measurement(base, seconds).run(progress);
  keepContradicted(measured, base);
  return measured;
}

} // namespace tessera::bench
