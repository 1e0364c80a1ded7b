//===- plan_store.h - Tuned plans -------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user's tuned plans: a folder with one saved plan (plan_file.h) per key.
// The key is a hash of everything that a measurement depends on: the kernel,
// extents, unit strides and overlap, the instruction-set level, this processor
// and this version of Tessera. `tessera tune` writes entries, every compilation
// without a given plan looks for one.
//
// The folder is TESSERA_PLAN_DIR, else tessera/plans in $XDG_CACHE_HOME or
// ~/.cache; TESSERA_PLAN_DIR=off turns it off.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PLAN_STORE_H
#define TESSERA_DRIVER_PLAN_STORE_H

#include "driver/plan_file.h"

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// None when it is off, or when there is no home to have it in.
std::optional<std::string> planStoreFolder();

/// The key of a subject whose other fields are known; per parameter, its
/// extents and which strides are one.
std::string planKey(const PlanSubject &subject,
                    const std::vector<std::vector<int64_t>> &extents,
                    const std::vector<std::vector<bool>> &unitStride);

/// This processor and this compiler, as they are part of the key.
std::string tuningCpu();
std::string tuningCompiler();

/// The entry of a subject, if there is one that is for it. One that is damaged
/// or for something else is ignored; the first of a process is warned about.
std::optional<SavedPlan> findTunedPlan(const PlanSubject &subject);

/// The hash of an entry's bytes, whatever they are; empty if there is no entry
/// of this key.
std::string tunedPlanHash(const std::string &key);

/// Why an entry is not used on this machine by this compiler; empty if it is,
/// for the compilation that it is for.
std::string whyNotUsedHere(const SavedPlan &saved, const std::string &path);

/// Warns, once in a process, that an entry is ignored.
void warnAboutTunedPlan(const std::string &why);

/// Writes a subject's entry whole or not at all. Returns its path.
Result<std::string> storeTunedPlan(const Plan &plan, const PlanSubject &subject,
                                   const TuneRecord &record);

/// An entry: its file, and what it says or why it cannot be read.
struct StoredPlan {
  std::string path;
  Result<SavedPlan> plan;
};

/// All entries by path.
std::vector<StoredPlan> listTunedPlans();

/// Removes all entries and nothing else. Returns how many there were.
Result<int64_t> clearTunedPlans();

} // namespace tessera

#endif // TESSERA_DRIVER_PLAN_STORE_H
