//===- search.h - Choosing a plan by predicted time -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: realizes the candidates that a kernel has, prices each by its code
// (price.h), and chooses. The candidates are enumerated in a fixed order and
// every different one is recorded with its price or the reason why it has none;
// nothing depends on the clock, so equal kernels get equal plans.
//
// The decisions are searched one after another, each with the best of those
// before it: which values are kept; the vector dimension of each nest; vectors
// per iteration; the form of the tail; how many programs advance together; what
// they prefetch; whether reductions that depend on others join their loops; how
// many programs share a reduction, which alone goes by the time on all threads.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_SEARCH_H
#define TESSERA_SEARCH_SEARCH_H

#include "plan/plan.h"
#include "search/predicted_time.h"

#include <functional>

namespace tessera {

/// The predicted time of one stage on one thread, and what several programs
/// could share of it.
struct StagePrediction {
  int64_t programs = 1;
  double nanoseconds = 0;
  /// The share of the time that the reduction takes which could be cut into at
  /// most `mostSplits` parts of whole units, and the bytes that a part leaves.
  int64_t mostSplits = 1;
  double splitShare = 0;
  int64_t splitUnits = 1;
  double partBytes = 0;
};

/// The numbers of parts that are worth a look for a stage on so many threads,
/// more than one.
std::vector<int64_t> splitCandidates(const StagePrediction &stage, int threads);

/// Of one stage of a plan that takes so long on one thread.
StagePrediction predictionOf(const StagePlan &stage, const StagePrice &price,
                             int64_t programs, double nanoseconds);

/// What the time of a stage on several threads has to be with parts, of the
/// time without.
inline constexpr double splitMargin = 0.85;

/// What a kernel is compiled for.
struct SearchInput {
  /// Specialized.
  tile::KernelOp kernel;
  const Target &target;
  const Machine &machine;
  const Pins &pins;
  AliasMode alias;
  std::vector<std::vector<int64_t>> extents;
  StrideFacts strides;
  /// Of one call.
  Traffic traffic;
  /// What every candidate has.
  PlanChoices start = {};
  /// Threads that calls will have, and the time in nanoseconds of a stage on
  /// them whose reductions are cut into so many parts; no reduction is cut
  /// where it is not given.
  int threads = 1;
  std::function<double(const StagePrediction &, int64_t splits)> stageTime = {};
};

struct SearchResult {
  PlanChoices choices;
  /// In the order they were looked at; one is "chosen".
  std::vector<PlanCandidate> candidates;
  /// Whether the default plan's code would have taken long to compile, so that
  /// plans with fewer vectors per iteration were looked at (short_code.h).
  bool isShort = false;
};

/// Looks at the candidates. A kernel that cannot be realized with any plan is
/// an error, that of its default plan.
Result<SearchResult> searchPlan(const SearchInput &input);

/// The predicted times of a plan's stages on the input's machine.
Result<std::vector<StagePrediction>>
pricePlanStages(const SearchInput &input, const PlanChoices &choices);

/// The predicted time of a plan in nanoseconds on each of several machines.
Result<std::vector<double>> pricePlan(const SearchInput &input,
                                      const PlanChoices &choices,
                                      llvm::ArrayRef<Machine> machines);

} // namespace tessera

#endif // TESSERA_SEARCH_SEARCH_H
