//===- bench/core/environment.h - Where a run took place --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_ENVIRONMENT_H
#define TESSERA_BENCH_CORE_ENVIRONMENT_H

#include "target/target.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tessera::bench {

/// The processors this process may use, in order.
std::vector<int> allowedProcessors();

/// Makes this process and those it starts, Tessera's and the peers' that can be
/// told, use instructions of a lower level than the processor has.
void limitIsa(Isa isa);

/// Processor, caches, clocks, memory, system, instruction level, and the
/// description of the machine that plans are made with. `machine` is a short
/// name; empty for one made of the processor's ("amd-epyc-9b14-2").
nlohmann::json describeEnvironment(const std::string &machine);

/// The git revision of the sources, and whether they differ from it. From the
/// BUNDLE file of a relocated tool; "unknown" where neither is there.
struct Revision {
  std::string name = "unknown";
  bool dirty = false;
};
Revision sourceRevision();

/// The time now as "2026-11-29T17:00:00Z".
std::string utcNow();

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_ENVIRONMENT_H
