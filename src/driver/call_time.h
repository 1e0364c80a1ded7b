//===- call_time.h - Predicted time of a call on its threads ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a stage takes with the threads that the dispatcher gives it, from its
// predicted time on one: its programs, in tasks, are spread over threads, and
// several of them may share the reduction of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_CALL_TIME_H
#define TESSERA_DRIVER_CALL_TIME_H

#include "search/search.h"

namespace tessera {

/// Nanoseconds of a stage whose reductions are cut into `splits` parts.
double callTime(const StagePrediction &stage, int64_t splits, int threads,
                const Machine &machine);

/// Of all stages, each with the parts that the search would give it.
double callTime(const std::vector<StagePrediction> &stages, int threads,
                const Machine &machine);

} // namespace tessera

#endif // TESSERA_DRIVER_CALL_TIME_H
