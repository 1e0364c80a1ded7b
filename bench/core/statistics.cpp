//===- bench/core/statistics.cpp - Medians, ratios, intervals -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/statistics.h"

#include <algorithm>
#include <cmath>

namespace tessera::bench {

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle]
                           : (values[middle - 1] + values[middle]) / 2;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  auto position =
      static_cast<size_t>(std::floor(q * static_cast<double>(values.size())));
  return values[std::min(values.size() - 1, position)];
}

namespace {

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : text)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

/// Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014.
struct SplitMix64 {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
};

} // namespace

Interval bootstrapMedian(const std::vector<double> &values,
                         std::string_view name) {
  if (values.empty())
    return {};
  constexpr int resamples = 1000;
  SplitMix64 random{fnv1a(name)};
  std::vector<double> medians, drawn(values.size());
  for (int i = 0; i < resamples; ++i) {
    for (double &value : drawn)
      value = values[random.next() % values.size()];
    medians.push_back(median(drawn));
  }
  std::sort(medians.begin(), medians.end());
  return {medians[25], medians[974]};
}

double noiseOf(const std::vector<double> &ratios) {
  std::vector<double> distances;
  for (double ratio : ratios)
    distances.push_back(std::abs(ratio - 1));
  return quantile(std::move(distances), 0.9);
}

} // namespace tessera::bench
