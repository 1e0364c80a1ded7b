//===- bench/core/statistics.h - Medians, ratios, intervals -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Definitions that bench/analysis/statistics.py repeats: the audit recomputes
// every figure of a result file and expects the same doubles.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_STATISTICS_H
#define TESSERA_BENCH_CORE_STATISTICS_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::bench {

/// The middle value, or the mean of the two middle ones. 0 for no values.
double median(std::vector<double> values);

/// sorted[min(n - 1, floor(q * n))]; 0 for no values.
double quantile(std::vector<double> values, double q);

struct Interval {
  double low = 0;
  double high = 0;
};

/// The 95 % bootstrap interval of the median: 1000 resamples, drawn by
/// SplitMix64 from the FNV-1a hash of `name`.
Interval bootstrapMedian(const std::vector<double> &values,
                         std::string_view name);

/// |value - 1| at the 90th percentile: the noise of ratios of equal things.
double noiseOf(const std::vector<double> &ratios);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_STATISTICS_H
