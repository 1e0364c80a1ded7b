//===- price.h - Predicted time of realized code ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: predicts what a realized module takes on a machine, from the loops,
// loads, masks and arithmetic that stand in it, functions expanded: candidates
// are priced by the code they really have.
//
// The model. A loop takes, per iteration, the longest of
//  - throughput: its operations over what the core starts per cycle, by kind;
//  - recurrence: the chain from a carried value to its successor;
//  - window: its longest chain, as far as the core cannot begin the next
//    iteration meanwhile because its reorder window is full.
// The programs of a grid are the outermost loop. Memory is added by bytes: what
// the kernel has to move comes from the level that holds all arrays, what it
// reads again from the level that holds what the programs that advance together
// touch, or, in a program that goes through its data in blocks, a block of it.
// Most of the shorter of computation and memory is hidden behind the longer.
//
// Blind spots: register pressure and spills, stores to scratch memory beyond
// the first-level cache, addresses that conflict in a cache, what ran before,
// other users of the machine, and how LLVM orders instructions. docs/planner.md
// has its error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_PRICE_H
#define TESSERA_SEARCH_PRICE_H

#include "target/machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

/// What one program of a stage executes. Vectors count by full registers.
struct Counts {
  double loads = 0;
  double stores = 0;
  double loadedBytes = 0;
  double storedBytes = 0;
  /// Of what is stored past the caches.
  double aroundBytes = 0;
  /// Of the lines that are prefetched to be loaded.
  double prefetchedBytes = 0;
  double maskedLoads = 0;
  double maskedStores = 0;
  /// Lanes of gathers and scatters.
  double gatheredLanes = 0;
  /// Arithmetic, comparisons, selections, shuffles and conversions of vectors.
  double operations = 0;
  /// Those of them that multiply floating numbers or integers in groups, that
  /// add, compare or convert floating numbers, and that bring lanes of two
  /// vectors together.
  double multiplies = 0;
  double additions = 0;
  double shuffles = 0;
  double divisions = 0;
  double squareRoots = 0;
  /// Instructions of any kind.
  double instructions = 0;
  /// Loops whose end a core cannot foresee, and all loops.
  double mispredictions = 0;
  double bubbles = 0;

  void add(const Counts &other, double times = 1);
};

/// The price of one stage function.
struct StagePrice {
  std::string symbol;
  /// Programs that advance together.
  double together = 1;
  /// Iterations of the program's longest loop over blocks: what it reads again
  /// it reads again in the same block.
  double blocks = 1;
  /// Of one program, in cycles: what operations take, and with waiting.
  double throughputCycles = 0;
  double cycles = 0;
  Counts counts;
  /// NestPlan::jumps of its nests; of all programs.
  double jumps = 0;
  /// The largest NestPlan::blockBytes and NestPlan::busyShare of its nests.
  double blockBytes = 0;
  double busyShare = 0;
  /// Cycles of the innermost loops of each nest (NestPlan::id), per program.
  std::map<int64_t, double> nestCycles;
  /// Instructions of its code, and of the part that is rarely reached.
  int64_t instructions = 0;
  int64_t rareInstructions = 0;
};

/// Prices the functions of a module whose names end in "_body", in order.
std::vector<StagePrice> priceStages(mlir::ModuleOp module, const Target &target,
                                    const Machine &machine);

/// The bytes that a call has to move.
struct Traffic {
  double read = 0;
  double written = 0;
  /// What the programs read together, each of them every element once.
  double readByPrograms = 0;
};

/// One way to look at a predicted time, in nanoseconds of all programs.
struct TimeTerms {
  double throughput = 0;
  double waiting = 0;
  double memory = 0;
  double repeatedReads = 0;
  /// What prefetching takes off their sum.
  double savedAhead = 0;
  double total = 0;
};

/// The time of `programs` programs on one thread.
TimeTerms predictTime(const StagePrice &price, double programs,
                      const Traffic &traffic, const Target &target,
                      const Machine &machine);

} // namespace tessera

#endif // TESSERA_SEARCH_PRICE_H
