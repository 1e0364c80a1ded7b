//===- bench/machine/schedule.h - Samples that a busy machine spoils little *-
// C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a machine that is shared, other programs make a sample longer, and for
// seconds at a time. So a time is what the shortest samples agree on, a ratio
// of times what most samples agree on, and all probes take turns, so that a
// busy spell meets a few samples of each and not all of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_MACHINE_SCHEDULE_H
#define TESSERA_BENCH_MACHINE_SCHEDULE_H

#include <deque>
#include <functional>
#include <vector>

namespace tessera::bench {

/// What is made of samples.
enum class Estimate {
  /// Of times: the middle of the shortest.
  Shortest,
  /// Of ratios of times, which are disturbed in both directions, more often
  /// upwards: the middle of the lowest cluster, which is an eighth of the
  /// samples that agree; of the densest eighth where none do.
  Cluster,
  /// Of what differs by its nature.
  Middle
};

/// One thing to measure.
struct Probe {
  /// Takes one sample: nanoseconds for whatever the probe counts, or nothing
  /// positive where it failed.
  std::function<double()> sample;
  Estimate estimate = Estimate::Shortest;
  /// How many samples a turn takes.
  int perTurn = 2;
  /// How well samples have to agree, as a fraction.
  double tolerance = 0.01;
  std::vector<double> samples = {};

  /// What the samples say; 0 when there are none.
  double value() const;
  /// Whether more samples would change it little.
  bool isSettled() const;
};

/// Where a schedule stands.
struct Progress {
  int turn = 0;
  size_t settled = 0;
  size_t probes = 0;
  double secondsLeft = 0;
};

/// Gives every probe at least one turn, then turns until all are settled and a
/// quarter of the time is over, or all of it. Returns the number of turns.
int takeTurns(std::deque<Probe> &probes, double seconds,
              const std::function<void(const Progress &)> &progress);

} // namespace tessera::bench

#endif // TESSERA_BENCH_MACHINE_SCHEDULE_H
