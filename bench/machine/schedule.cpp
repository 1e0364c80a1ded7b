//===- bench/machine/schedule.cpp - Samples that a busy machine spoils little
//===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/machine/schedule.h"

#include "bench/core/statistics.h"
#include "support/timing.h"

#include <algorithm>

namespace tessera::bench {

namespace {

/// So many samples have to agree.
constexpr size_t agreeing = 4;
/// So many are needed where they are expected to differ.
constexpr size_t manySamples = 24;

/// The samples that count, sorted.
std::vector<double> chosen(const Probe &probe) {
  std::vector<double> sorted = probe.samples;
  std::sort(sorted.begin(), sorted.end());
  if (probe.estimate == Estimate::Middle || sorted.size() <= agreeing)
    return sorted;
  if (probe.estimate == Estimate::Shortest)
    return {sorted.begin(), sorted.begin() + agreeing};
  const size_t count = std::max(agreeing, sorted.size() / 8);
  auto spread = [&](size_t i) { return sorted[i + count - 1] / sorted[i]; };
  size_t best = 0;
  for (size_t i = 0; i + count <= sorted.size(); ++i) {
    if (spread(i) < spread(best))
      best = i;
    if (spread(best) <= 1 + probe.tolerance)
      break;
  }
  auto first = sorted.begin() + static_cast<std::ptrdiff_t>(best);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

} // namespace

double Probe::value() const { return median(chosen(*this)); }

bool Probe::isSettled() const {
  if (estimate == Estimate::Middle)
    return samples.size() >= manySamples;
  // More than one turn has to have seen it.
  if (samples.size() < agreeing + static_cast<size_t>(perTurn))
    return false;
  std::vector<double> agreed = chosen(*this);
  return agreed.back() <= agreed.front() * (1 + tolerance);
}

int takeTurns(std::deque<Probe> &probes, double seconds,
              const std::function<void(const Progress &)> &progress) {
  support::Stopwatch watch;
  auto elapsed = [&] { return watch.milliseconds() * 1e-3; };
  for (int turn = 1;; ++turn) {
    for (Probe &probe : probes) {
      if (turn > 1 && elapsed() >= seconds)
        return turn;
      for (int i = 0; i < probe.perTurn; ++i)
        if (double sample = probe.sample(); sample > 0)
          probe.samples.push_back(sample);
      progress({turn,
                static_cast<size_t>(std::count_if(
                    probes.begin(), probes.end(),
                    [](const Probe &one) { return one.isSettled(); })),
                probes.size(), std::max(seconds - elapsed(), 0.0)});
    }
    if (elapsed() >= seconds / 4 &&
        std::all_of(probes.begin(), probes.end(),
                    [](const Probe &probe) { return probe.isSettled(); }))
      return turn;
  }
}

} // namespace tessera::bench
