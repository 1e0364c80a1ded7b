//===- machine.h - Descriptions of micro-architectures ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a machine takes for what code does, as data. A Target says which code
// can be generated; a Machine says what it costs there. The planner reads both
// and knows nothing else of a CPU. Costs change the choice among plans, never
// what a plan computes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_MACHINE_H
#define TESSERA_TARGET_MACHINE_H

#include "target/processor.h"
#include "target/target.h"

#include <algorithm>
#include <array>

namespace tessera {

/// The share of a cache that arrays can take and still be found there: other
/// lines push them out before it is full.
inline constexpr double cacheShare = 0.9;

/// Memory of one level as a single core sees it. The last level is main memory,
/// whose size is 0: it holds everything.
struct MemoryLevel {
  int64_t bytes = 0;
  /// Bytes per nanosecond of a loop that only reads, that only writes, and that
  /// writes past the caches.
  double read = 0;
  double write = 0;
  double writeAround = 0;
  /// Of the time of such reads, or of computation if that is less, the share
  /// that is saved where programs prefetch what the next one reads; 0 where
  /// that was not measured.
  double savedAhead = 0;
  /// What is read in the time that a jump takes: the begin of a piece of a row
  /// that no prefetcher has asked for.
  double jumpBytes = 420;
  /// Cycles that a vector takes more which is the first to read from here and
  /// crosses into another line; 0 where that was not measured.
  double crossingCycles = 0;
  /// The places for lines of one set (target/cache_sets.h); 0 where a line's
  /// address does not tell its set, or nothing is known.
  double ways = 0;
};

/// What one core takes for the operations of vectors of one width. Cycles of a
/// vector are throughput: what it adds to a loop of independent vectors.
struct CoreCosts {
  /// Cycles per nanosecond while such code runs.
  double gigahertz = 0;
  double loadsPerCycle = 2;
  double storesPerCycle = 1;
  /// Arithmetic of vectors: of any kinds together; multiplications and
  /// multiply-adds; additions, comparisons, maxima, roundings and conversions
  /// of floating numbers. Of the kinds 0 says that they are not limited by
  /// themselves.
  double operationsPerCycle = 2;
  double multipliesPerCycle = 0;
  double additionsPerCycle = 0;
  /// Instructions of any kind, and how many of them a core looks ahead while
  /// the first one waits: less than its reorder buffer holds, as those that
  /// wait, too, fill its schedulers.
  double instructionsPerCycle = 4;
  double reorderWindow = 192;
  /// What a wrongly predicted branch takes.
  double mispredictCycles = 16;
  double divideCycles = 0;
  double squareRootCycles = 0;
  /// Dot products of pairs of bf16 (target/contraction_atoms.h).
  double dotCycles = 1;
  /// From the operands of an addition or multiply-add to its result.
  double addLatency = 4;
  double divideLatency = 12;
  double squareRootLatency = 16;
  /// From an address in a register to the scalar there, in the first level.
  double loadLatency = 5;
  /// One lane of a gather or scatter.
  double gatherLaneCycles = 1;
  /// What a mask adds to a load, and to a store.
  double maskedLoadCycles = 0;
  double maskedStoreCycles = 0;
  /// What an access across two cache lines adds.
  double splitLineCycles = 1;

  /// Multiply-adds that are started in a cycle.
  double multiplyRate() const {
    return multipliesPerCycle > 0
               ? std::min(multipliesPerCycle, operationsPerCycle)
               : operationsPerCycle;
  }
};

/// A micro-architecture: a row of the table in machine.cpp, or what `tessera
/// calibrate` measured.
struct Machine {
  /// "zen4", "sapphire-rapids", "generic-avx2", ...
  std::string name;
  /// Where the figures are from, for reports.
  std::string provenance;
  /// The processors that the row describes; none for a generic one.
  std::vector<ProcessorRange> processors = {};
  /// The instruction-set level that the row is the generic description of;
  /// empty for others.
  std::string level = "";
  /// First, second and third level, and main memory.
  std::array<MemoryLevel, 4> memory;
  /// By the width of a target's vectors: 128, 256 and 512 bits.
  std::array<CoreCosts, 3> core;
  /// Handing a task to threads that spin, and to threads that sleep.
  double forkJoinNanoseconds = 300;
  double wakeNanoseconds = 40000;
  /// The share of the shorter of computation and memory that is not hidden
  /// behind the longer.
  double notOverlapped = 0.25;
  /// Rows of an array that are best read side by side where they come from far
  /// away: prefetchers follow them as streams, and the nearest cache has room
  /// for all of them where equal elements of rows share a set.
  double streams = 16;

  /// The costs of a target's full vectors.
  const CoreCosts &costs(const Target &target) const {
    return core[target.vectorBits >= 512   ? 2
                : target.vectorBits >= 256 ? 1
                                           : 0];
  }
  /// The smallest level that holds so many bytes.
  const MemoryLevel &levelOf(double bytes) const {
    for (const MemoryLevel &level : memory)
      if (level.bytes == 0 || bytes <= static_cast<double>(level.bytes))
        return level;
    return memory.back();
  }
};

/// The checked-in descriptions: the table of machine.cpp.
const std::vector<Machine> &knownMachines();

/// The row of a processor, or null.
const Machine *findMachine(const Processor &processor);

/// The description for code that is to run elsewhere: the generic one of the
/// level.
const Machine &genericMachine(Isa isa);

/// The description that code is planned with when it is to run here: what was
/// calibrated, else the row of this processor, else the generic one of its
/// level (target/host_machine.h says which and why).
const Machine &hostMachine();

} // namespace tessera

#endif // TESSERA_TARGET_MACHINE_H
