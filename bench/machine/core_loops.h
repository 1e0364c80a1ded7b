//===- bench/machine/core_loops.h - Loops with a known number of operations *-
// C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tessera calibrate` times to learn what one core takes. Between barriers
// that the compiler cannot see through each loop holds a fixed number of equal
// operations per round, enough of them for the loop itself not to count.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_MACHINE_CORE_LOOPS_H
#define TESSERA_BENCH_MACHINE_CORE_LOOPS_H

#include <cstdint>

namespace tessera::bench {

/// `data` has coreLoopBytes bytes of memory, aligned to 64.
using CoreLoop = void (*)(float *data, int64_t rounds);
inline constexpr int64_t coreLoopBytes = 4096;
/// Fills the memory with what the loops expect there.
void prepareCoreLoops(float *data);

/// A loop, and how many operations a round of it has.
struct CountedLoop {
  CoreLoop run = nullptr;
  double count = 0;
};

/// The loops of one width; those without `run` do not exist at that width.
struct CoreLoops {
  /// Additions of one cycle each, one after another, while vectors are worked
  /// on beside: as many cycles as additions.
  CountedLoop clock;
  /// Independent operations of vectors.
  CountedLoop loads, stores, multiplies, additions;
  /// Multiplies, additions and operations on bits in turn.
  CountedLoop operations;
  CountedLoop divisions, squareRoots;
  /// Vectors, scalars and loads in a mix that keeps every stage busy.
  CountedLoop instructions;
  /// Each on the result of the one before.
  CountedLoop addChain, divideChain, squareRootChain, loadChain;
  /// By lanes.
  CountedLoop gather;
  /// As `loads` and `stores`, under a mask and across lines.
  CountedLoop maskedLoads, maskedStores, splitLoads;
};

/// For vectors of 128, 256 or 512 bits, which this processor must have. All
/// loops are missing on processors they are not written for.
const CoreLoops &coreLoops(int64_t vectorBits);

} // namespace tessera::bench

#endif // TESSERA_BENCH_MACHINE_CORE_LOOPS_H
