//===- session/race.cpp - Plans timed against each other ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/placement.h"
#include "session/state.h"
#include "support/timing.h"

#include <algorithm>
#include <cstring>

namespace tessera::session {

namespace {

/// A turn lasts about this long, so that the clock is read seldom.
constexpr double turnNanoseconds = 100e3;

double medianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One plan's launches.
struct Runner {
  PreparedLaunch launch;
  int64_t repeats = 1;
  std::vector<double> seconds;

  /// The nanoseconds of all launches. `restore`, where there is one, is called
  /// before each and not timed; the clock is then read for each.
  Result<double> turn(const std::function<void()> &restore) {
    if (!restore)
      return launches(repeats);
    double spent = 0;
    for (int64_t i = 0; i < repeats; ++i) {
      restore();
      Result<double> time = launches(1);
      if (!time)
        return time;
      spent += *time;
    }
    return spent;
  }

private:
  Result<double> launches(int64_t count) {
    int64_t start = support::nowNanoseconds();
    for (int64_t i = 0; i < count; ++i)
      if (Result<void> status = launch.run(); !status)
        return status.error();
    return static_cast<double>(support::nowNanoseconds() - start);
  }
};

} // namespace

Result<std::vector<double>>
CompiledOperator::State::race(const Kernels &kernels, double seconds,
                              const std::function<void(double)> &tick) {
  Placement placed(arguments);
  LaunchOptions options;
  options.threads = 1;
  // Every launch does the same work, whatever it adds to its arrays.
  std::function<void()> restore;
  if (changesItsInputs)
    restore = [&] { restoreWritten(placed.arguments()); };
  std::vector<Runner> runners;
  auto add = [&](const CompiledKernel &compiled) -> Result<void> {
    Result<std::vector<Argument>> given =
        packedArguments(compiled.executable, placed.arguments(), options);
    if (!given)
      return given.error();
    Result<PreparedLaunch> prepared =
        compiled.executable.prepare(*given, options);
    if (!prepared)
      return prepared.error();
    runners.push_back({std::move(*prepared), 1, {}});
    // The first turn warms up and shows how many launches a turn takes.
    for (int i = 0; i < 2; ++i) {
      Result<double> time = runners.back().turn(restore);
      if (!time)
        return time.error();
      runners.back().repeats = std::clamp<int64_t>(
          static_cast<int64_t>(turnNanoseconds / std::max(*time, 1.0) *
                               static_cast<double>(runners.back().repeats)),
          1, 100000);
    }
    return {};
  };
  for (const CompiledKernel *one : kernels)
    if (Result<void> status = add(*one); !status)
      return status.error();

  support::Stopwatch watch;
  constexpr size_t fewest = 3;
  for (size_t round = 0; round < fewest || watch.seconds() < seconds; ++round) {
    if (tick)
      tick(seconds - watch.seconds());
    // Each begins a round in turn, forwards and backwards.
    for (size_t i = 0; i < runners.size(); ++i) {
      size_t step = round % 2 == 0 ? i : runners.size() - 1 - i;
      Runner &runner = runners[(step + round / 2) % runners.size()];
      Result<double> time = runner.turn(restore);
      if (!time)
        return time.error();
      runner.seconds.push_back(*time * 1e-9 /
                               static_cast<double>(runner.repeats));
    }
  }
  std::vector<double> medians;
  for (Runner &runner : runners)
    medians.push_back(medianOf(std::move(runner.seconds)));
  return medians;
}

} // namespace tessera::session
