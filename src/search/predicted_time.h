//===- predicted_time.h - Times of stages with their memory -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: adds to the price of code (price.h) what memory takes, by bytes.
// What the kernel has to move comes from the level that holds all arrays, what
// it reads again from the level that holds what the programs that advance
// together touch, or, in a program that goes through its data in blocks, a
// block of it. Most of the shorter of computation and memory is hidden behind
// the longer.
//
// Blind spots: stores to scratch memory beyond the first-level cache, addresses
// that conflict in a cache, what ran before, other users of the machine.
// docs/planner.md has the error of predictions.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_PREDICTED_TIME_H
#define TESSERA_SEARCH_PREDICTED_TIME_H

#include "search/price.h"

#include <vector>

namespace tessera {

/// The bytes that a call has to move.
struct Traffic {
  double read = 0;
  double written = 0;
  /// What the programs read together, each of them every element once.
  double readByPrograms = 0;
  /// What each of them reads of arrays of which all read the same.
  double readByEach = 0;
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

/// The times of a module's stages, one after another; `programs` of each.
std::vector<TimeTerms> predictStages(const std::vector<StagePrice> &prices,
                                     const std::vector<int64_t> &programs,
                                     const Traffic &traffic,
                                     const Target &target,
                                     const Machine &machine);

} // namespace tessera

#endif // TESSERA_SEARCH_PREDICTED_TIME_H
