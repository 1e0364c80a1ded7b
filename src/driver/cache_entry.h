//===- cache_entry.h - Executables as files ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled kernel as bytes: its key, what a launch needs to know of it, its
// report and its object. The bytes begin with a mark, the version of the form,
// the number of the bytes that follow and a hash of these; those that are
// truncated or altered are no entry. Integers are little-endian.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_CACHE_ENTRY_H
#define TESSERA_DRIVER_CACHE_ENTRY_H

#include "driver/cache_key.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

/// Raised when the form of an entry or the meaning of a part of keys changes.
inline constexpr int cacheEntryVersion = 1;

/// A compiled kernel without code in the process.
struct CachedExecutable {
  CacheKey key;
  /// The dimensions with constant extents, in the kernel's order.
  std::vector<std::pair<std::string, int64_t>> extents;
  /// The name of a tuned plan for it (driver/plan_store.h), and the hash of the
  /// plan that was there; empty if there was none.
  std::string tunedKey;
  std::string tunedPlan;
  /// The values of tunables that were chosen, and the hash of the IR that was
  /// traced with them; empty where there was nothing to choose.
  std::vector<std::pair<std::string, int64_t>> chosen;
  std::string chosenIr;
  std::string planSource;
  std::string planSummary;
  SummationPlan summation;
  WorkEstimate work;
  /// Without entries.
  std::vector<Stage> stages;
  std::vector<PackedParameter> packs;
  std::vector<Error> checks;
  std::string report;
  std::string object;
};

std::string encodeEntry(const CachedExecutable &entry);

/// Fails with an Internal error that says what is wrong with the bytes.
Result<CachedExecutable> decodeEntry(std::string_view bytes);

} // namespace tessera

#endif // TESSERA_DRIVER_CACHE_ENTRY_H
