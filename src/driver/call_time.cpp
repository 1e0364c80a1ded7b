//===- call_time.cpp - Predicted time of a call on its threads ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/call_time.h"

#include "runtime/cpu/dispatch.h"

#include <algorithm>

namespace tessera {

/// What a program takes to leave its part: a line that all of them write, what
/// they read anew, and lines that come from another core's cache. With less,
/// products of 64 by 64 elements were shared, and took longer (bench/results).
constexpr double partNanoseconds = 1000;

double callTime(const StagePrediction &predicted, int64_t splits, int threads,
                const Machine &machine) {
  auto shares = [](int64_t whole, int64_t parts) {
    return double((whole + parts - 1) / parts);
  };
  Stage stage;
  stage.programs = predicted.programs * splits;
  stage.nanosecondsPerProgram =
      predicted.nanoseconds / std::max(double(predicted.programs), 1.0);
  double combining = 0;
  if (splits > 1) {
    const double part = shares(predicted.splitUnits, splits) /
                        double(std::max<int64_t>(predicted.splitUnits, 1));
    // Parts come from the caches of other cores.
    const double bytesPerNanosecond = machine.memory[2].read / 2;
    combining = partNanoseconds +
                double(splits) * predicted.partBytes / bytesPerNanosecond;
    stage.nanosecondsPerProgram *= 1 - predicted.splitShare * (1 - part);
    stage.nanosecondsPerProgram +=
        partNanoseconds + predicted.partBytes / machine.memory[1].write;
  }
  runtime::Grain grain = runtime::chooseGrain(stage, threads);
  if (grain.tasks <= 1 || grain.threads <= 1)
    return (stage.nanosecondsPerProgram + combining / double(splits)) *
           double(stage.programs);
  return shares(grain.tasks, grain.threads) *
             shares(stage.programs, grain.tasks) * stage.nanosecondsPerProgram +
         combining * shares(predicted.programs, threads) +
         machine.forkJoinNanoseconds;
}

double callTime(const std::vector<StagePrediction> &stages, int threads,
                const Machine &machine) {
  double time = 0;
  for (const StagePrediction &stage : stages) {
    const double alone = callTime(stage, 1, threads, machine);
    double least = alone;
    for (int64_t splits : splitCandidates(stage, threads))
      if (double shared = callTime(stage, splits, threads, machine);
          shared < splitMargin * alone)
        least = std::min(least, shared);
    time += least;
  }
  return time;
}

} // namespace tessera
