//===- bench/machine/measure.h - Measuring a machine description *- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_MACHINE_MEASURE_H
#define TESSERA_BENCH_MACHINE_MEASURE_H

#include "bench/machine/schedule.h"
#include "target/machine.h"

#include <set>

namespace tessera::bench {

struct MeasuredMachine {
  /// The figures that were measured, and those of the base for all others.
  Machine machine;
  /// Figures, as figureName() writes them, that were not measured: this
  /// processor has no such vectors or no second core, or others kept it busy.
  std::set<std::string> kept;
  /// Figures whose samples did not agree.
  std::set<std::string> unsettled;
  int turns = 0;
};

/// "read of L2", "divideCycles of 512", "wakeNanoseconds".
std::string figureName(std::string_view name, std::string_view owner = "");

/// Where figures contradict one another, puts those of `base` in the place of
/// the levels' figures that did not settle: other programs were measured with
/// them.
void keepContradicted(MeasuredMachine &measured, const Machine &base);

/// Measures this machine for about so many seconds. `base` gives the sizes of
/// the levels, and what is not measured.
MeasuredMachine
measureMachine(const Machine &base, double seconds,
               const std::function<void(const Progress &)> &progress);

} // namespace tessera::bench

#endif // TESSERA_BENCH_MACHINE_MEASURE_H
