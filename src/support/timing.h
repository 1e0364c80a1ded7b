//===- support/timing.h - Time measurement ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A monotonic clock in nanoseconds and a stopwatch on top of it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_TIMING_H
#define TESSERA_SUPPORT_TIMING_H

#include <chrono>
#include <cstdint>

namespace tessera::support {

/// Nanoseconds of a clock that never goes back; only differences mean
/// anything.
inline int64_t nowNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Starts running when it is made.
class Stopwatch {
public:
  Stopwatch() : start(nowNanoseconds()) {}

  int64_t nanoseconds() const { return nowNanoseconds() - start; }
  double microseconds() const {
    return static_cast<double>(nanoseconds()) * 1e-3;
  }
  double milliseconds() const {
    return static_cast<double>(nanoseconds()) * 1e-6;
  }
  double seconds() const { return static_cast<double>(nanoseconds()) * 1e-9; }
  void restart() { start = nowNanoseconds(); }

private:
  int64_t start;
};

} // namespace tessera::support

#endif // TESSERA_SUPPORT_TIMING_H
