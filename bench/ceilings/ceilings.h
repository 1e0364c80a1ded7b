//===- bench/ceilings/ceilings.h - What this machine can do -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bandwidth by working set and mix of reads and writes, the rate of
// multiply-adds, the cost of a fork and join: the floors that times are
// compared with.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CEILINGS_CEILINGS_H
#define TESSERA_BENCH_CEILINGS_CEILINGS_H

#include "target/target.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::bench {

struct Ceiling {
  /// "read", "copy", "triad", "write", the last three also with "-nt" for
  /// non-temporal stores; "fma-f32"; "fork-join".
  std::string name;
  int threads = 1;
  /// Bytes of all arrays together; 0 where there are none.
  int64_t workingSetBytes = 0;
  /// Per call.
  int64_t readBytes = 0;
  int64_t writtenBytes = 0;
  double flops = 0;
  /// Whole times of samples of `inner` calls each.
  int64_t inner = 1;
  std::vector<int64_t> nanoseconds;

  /// Median time of one call.
  double callNanoseconds() const;
  double bytesPerSecond() const;
  double flopsPerSecond() const;
};

/// Measures everything for each number of threads; arrays hold random data.
/// `progress` is told what comes next.
std::vector<Ceiling>
measureCeilings(Isa isa, const std::vector<int> &threads,
                const std::function<void(const std::string &)> &progress);

/// The shortest time for this much work, and by what.
struct Floor {
  double nanoseconds = 0;
  /// "bandwidth", "flops" or "none".
  std::string by = "none";
  /// "copy/16384/1": name, working set and threads of the ceiling that decides.
  std::string ceiling;
};

/// The larger of bytes over bandwidth and operations over their rate. The
/// bandwidth is that of the mix nearest in its share of reads, plain or
/// non-temporal, whichever is faster, at the working set nearest in ratio.
Floor floorOf(const std::vector<Ceiling> &ceilings, int threads,
              int64_t bytesRead, int64_t bytesWritten, double flops);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CEILINGS_CEILINGS_H
