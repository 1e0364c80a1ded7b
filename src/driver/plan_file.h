//===- plan_file.h - Saved plans --------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan as JSON text that a person can read, edit and give back
// (docs/howto/tune.md has the fields). A saved plan is for one specialized
// kernel, target and alias mode. Decisions that a file leaves out are the
// planner's; those that it makes are applied, or the compilation fails and says
// which one could not be and why.
//
//   Result<SavedPlan> saved = readPlan(text);
//   checkSubject(*saved, subject)        it is for this kernel
//   ... plan and realize with saved->choices ...
//   checkHonoured(*saved, plan, pins)    everything in it was applied
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PLAN_FILE_H
#define TESSERA_DRIVER_PLAN_FILE_H

#include "driver/program.h"
#include "plan/plan_record.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

struct Pins;

/// "disjoint", "in-place", "overlap".
std::string_view name(AliasMode alias);

/// "'a', 'b' or 'c'", for messages.
std::string oneOf(const std::vector<std::string_view> &names);

/// What a plan is for.
struct PlanSubject {
  std::string kernel;
  /// The hash of the specialized kernel's text, without locations.
  std::string hash;
  /// The instruction-set level.
  std::string target;
  AliasMode alias = AliasMode::Disjoint;
  /// The dimensions with constant extents, in the kernel's order.
  std::vector<std::pair<std::string, int64_t>> extents;
  /// Its name among tuned plans (plan_store.h); not part of the text.
  std::string key = {};
  /// The values of the kernel's tunables, by name.
  std::vector<std::pair<std::string, int64_t>> tunables = {};
};

/// What tuning measured, in plans that it stores.
struct TuneRecord {
  /// PlanSubject::key.
  std::string key;
  std::string cpu;
  std::string compiler;
  double chosenSeconds = 0;
  double seconds = 0;
  /// The relative difference of two compilations of the plan that the search
  /// chose.
  double noise = 0;
};

/// The decisions of a plan as text. `tuned` may be null.
std::string writePlan(const Plan &plan, const PlanSubject &subject,
                      const TuneRecord *tuned = nullptr);

/// What a file says of one nest.
struct SavedNest {
  int64_t id = 0;
  /// Its place in the file: "stages[0].nests[1]".
  std::string where;
  /// For the reader; checked where they are given.
  std::optional<std::string> computes;
  std::optional<std::string> space;
  NestChoice choice;
};

struct SavedStage {
  std::optional<std::string> grid;
  std::optional<int64_t> together;
  std::optional<Prefetch> prefetch;
  std::optional<Edges> edges;
  std::optional<int64_t> splits;
  std::vector<SavedNest> nests;
};

struct SavedPlan {
  /// The file, for messages.
  std::string name;
  PlanSubject subject;
  std::optional<TuneRecord> tuned;
  std::vector<SavedStage> stages;
  /// All of its decisions, for planning.
  PlanChoices choices;
};

/// A file's contents. Fails with a Usage error where it cannot be read.
Result<PlanText> readPlanText(const std::string &path);

/// Reads a plan. Fails with a Usage error that says what was found, what was
/// expected and where: text that is no JSON or of another form or version,
/// unknown or repeated fields and nests, missing fields of the subject.
Result<SavedPlan> readPlan(const PlanText &text);

/// Fails with a Usage error if the plan is for something else.
Result<void> checkSubject(const SavedPlan &saved, const PlanSubject &subject);

/// Fails if a decision of the file was not applied: Unsupported if the nest
/// cannot have it or the author's schedule fixes another one, Usage if the plan
/// has no such nest.
Result<void> checkHonoured(const SavedPlan &saved, const Plan &plan,
                           const Pins &pins);

} // namespace tessera

#endif // TESSERA_DRIVER_PLAN_FILE_H
