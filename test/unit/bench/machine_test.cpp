//===- bench/machine_test.cpp - Measuring a machine description -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/environment.h"
#include "bench/machine/core_loops.h"
#include "bench/machine/measure.h"
#include "target/host_machine.h"
#include "target/machine_figures.h"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

/// A probe that takes these samples in turn.
Probe probeOf(std::vector<double> samples, Estimate estimate) {
  return {.sample =
              [samples, next = size_t{0}]() mutable {
                return samples[next++ % samples.size()];
              },
          .estimate = estimate};
}

TEST(BenchSchedule, TimesAreWhatTheShortestAgreeOn) {
  // Most of the time something else runs.
  std::deque<Probe> probes = {probeOf(
      {200, 100, 190, 100.5, 300, 180, 100.2, 250, 100.1}, Estimate::Shortest)};
  takeTurns(probes, 0.05, [](const Progress &) {});
  EXPECT_TRUE(probes[0].isSettled());
  EXPECT_NEAR(probes[0].value(), 100, 0.5);
}

TEST(BenchSchedule, RatiosAreTheLowestThatManyAgreeOn) {
  // A few are too small, and for half of the time something else runs.
  std::deque<Probe> probes = {probeOf(
      {6, 4.001, 6, 6, 2.9, 6, 4.002, 7, 3.1, 3.999, 6, 4, 6, 6, 4.5, 4.003},
      Estimate::Cluster)};
  takeTurns(probes, 0.05, [](const Progress &) {});
  EXPECT_TRUE(probes[0].isSettled());
  EXPECT_NEAR(probes[0].value(), 4, 0.01);
}

TEST(BenchSchedule, WhatDoesNotAgreeIsNotSettled) {
  std::deque<Probe> probes(1);
  probes[0].sample = [next = 1.0]() mutable { return next *= 1.1; };
  size_t settled = 1;
  int turns = takeTurns(probes, 0.01, [&](const Progress &progress) {
    settled = progress.settled;
    EXPECT_EQ(progress.probes, 1u);
  });
  EXPECT_GT(turns, 1);
  EXPECT_EQ(settled, 0u);
  EXPECT_FALSE(probes[0].isSettled());
}

// What did not settle may be about other programs; what settled stays, and so
// does all that contradicts nothing.
TEST(BenchMachine, ContradictedFiguresAreNotKept) {
  const Machine base = uncalibratedHostMachine().machine;
  MeasuredMachine measured;
  measured.machine = base;
  measured.machine.memory[0].write = 1.25 * base.memory[0].write;
  measured.machine.memory[1].read = 1.5 * base.memory[1].read;
  const std::string read = figureName("read", levelNames[0]),
                    write = figureName("write", levelNames[0]);
  measured.unsettled = {read, write};
  keepContradicted(measured, base);
  EXPECT_EQ(measured.unsettled.size(), 2u);
  EXPECT_TRUE(measured.kept.empty());
  // Slower than the level after it.
  measured.machine.memory[0].read = base.memory[1].read / 10;
  ASSERT_NE(implausibleFigure(measured.machine), "");
  keepContradicted(measured, base);
  EXPECT_EQ(implausibleFigure(measured.machine), "");
  EXPECT_EQ(measured.machine.memory[0].read, base.memory[0].read);
  EXPECT_EQ(measured.machine.memory[0].write, base.memory[0].write);
  EXPECT_EQ(measured.machine.memory[1].read, 1.5 * base.memory[1].read);
  EXPECT_EQ(measured.kept, (std::set<std::string>{read, write}));
  EXPECT_TRUE(measured.unsettled.empty());
}

TEST(BenchSchedule, FailedSamplesDoNotCountAndEveryProbeHasATurn) {
  std::deque<Probe> probes = {probeOf({0, -1}, Estimate::Shortest),
                              probeOf({7}, Estimate::Shortest)};
  EXPECT_EQ(takeTurns(probes, 0, [](const Progress &) {}), 2);
  EXPECT_TRUE(probes[0].samples.empty());
  EXPECT_FALSE(probes[0].isSettled());
  EXPECT_EQ(probes[0].value(), 0);
  EXPECT_EQ(probes[1].value(), 7);
}

/// However busy this machine is, what comes out can be stored, and what could
/// not be measured is the base's.
TEST(BenchMachine, FiguresArePlausible) {
  Machine base = uncalibratedHostMachine().machine;
  base.memory[2].bytes = int64_t{1} << 30;
  MeasuredMachine measured = measureMachine(base, 0.5, [](const Progress &) {});
  EXPECT_EQ(implausibleFigure(measured.machine), "");
  EXPECT_EQ(measured.machine.name, base.name);
  for (size_t i = 0; i < base.memory.size(); ++i)
    EXPECT_EQ(measured.machine.memory[i].bytes, base.memory[i].bytes);
  // Half a second is no time for an array beyond all caches.
  EXPECT_TRUE(measured.kept.contains("read of memory"));
  EXPECT_EQ(measured.machine.memory[3].read, base.memory[3].read);
  EXPECT_FALSE(measured.kept.contains("read of L1"));
  for (size_t i = 0; i < base.core.size(); ++i)
    if (128 << i > getTarget(hostIsa()).vectorBits) {
      EXPECT_EQ(measured.machine.core[i].gigahertz, base.core[i].gigahertz);
      EXPECT_TRUE(
          measured.kept.contains(figureName("gigahertz", widthNames[i])));
    }
}

/// A result says which description its plans were made with.
TEST(BenchMachine, ResultsNameTheDescription) {
  nlohmann::json description = describeEnvironment("here").at("description");
  EXPECT_EQ(description.at("name"), hostMachine().name);
  EXPECT_EQ(description.at("provenance"), hostMachine().provenance);
  EXPECT_EQ(description.at("hash"), contentHash(hostMachine()));
}

/// A dependent addition takes whole cycles, on whatever processor.
TEST(BenchMachine, LoopsHaveTheOperationsThatTheySay) {
  if (!coreLoops(128).clock.run)
    GTEST_SKIP() << "no loops for this processor";
  const Machine base = uncalibratedHostMachine().machine;
  for (int attempt = 0; attempt < 5; ++attempt) {
    MeasuredMachine measured = measureMachine(base, 1, [](const Progress &) {});
    double latency = measured.machine.core[0].addLatency;
    if (std::abs(latency - std::round(latency)) < 0.1 && latency >= 1 &&
        latency <= 6)
      return;
  }
  FAIL() << "the latency of an addition came out as no whole number of cycles";
}

} // namespace
} // namespace tessera::bench
