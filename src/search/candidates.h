//===- candidates.h - Plans that a search has looked at ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: realizes and prices the candidates of a search, holds them to the
// limits of code, keeps the best one so far, and records each different one
// with its price or the reason why it has none.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_CANDIDATES_H
#define TESSERA_SEARCH_CANDIDATES_H

#include "search/search.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Code of more instructions is not admitted beside the default plan: it takes
/// long to compile and leaves the caches of instructions.
inline constexpr int64_t mostInstructions = 700;
/// Predictions that differ by less are not told apart.
inline constexpr double margin = 0.98;

/// A candidate that was realized.
struct PricedPlan {
  PlanChoices choices;
  Plan plan;
  std::vector<StagePrice> prices;
  double nanoseconds = 0;
  /// By stage.
  std::vector<StagePrediction> stages;
  int64_t instructions = 0;
  /// Those that are not rarely reached: what counts for admission.
  int64_t usualInstructions = 0;
  /// Its place in the list of candidates.
  size_t index = 0;

  /// The nests of all stages.
  std::vector<NestPlan> nests() const;
  /// Of a nest's innermost loops, in a program; none if it has no loops.
  double nestCycles(int64_t id) const;
  /// Cycles that the operations of all programs take.
  double busyCycles() const;
};

class Candidates {
public:
  explicit Candidates(const SearchInput &input) : input(input) {}

  /// The best one so far.
  const PricedPlan &best() const { return chosen; }

  /// The first one.
  void begin(PricedPlan plan);

  /// Takes another one as the best, for a reason other than its price; the
  /// list says of the one before it that it is `code`.
  void take(PricedPlan plan, const std::string &code);

  /// Looks at a candidate beyond all limits. It stands in the list.
  Result<PricedPlan> price(const PlanChoices &choices, std::string what);

  /// Looks at a candidate and takes it if it is better, as a whole, by `share`,
  /// and in its nest `within`, if given. Returns it, or the equal one that was
  /// looked at before, if it was admitted.
  std::optional<PricedPlan> consider(const PlanChoices &choices,
                                     const std::string &what,
                                     std::optional<int64_t> within = {},
                                     double share = margin);

  /// Records what is not realized.
  void refuse(const std::string &what, const std::string &code,
              const PlanChoices &choices);

  /// The last one in the list, and its removal from it.
  PlanCandidate &last() { return list.back(); }
  void dropLast() { list.pop_back(); }

  /// The whole list, with the best one marked; the last call.
  std::vector<PlanCandidate> finish();

  /// What is known of the kernel's loops where so much is kept, and the
  /// operations that they evaluate.
  const KernelAnalysis &analysis(Keeping keeping, Passes passes) {
    return analyzed(keeping, passes).facts;
  }
  int64_t evaluated(Keeping keeping, Passes passes) {
    return analyzed(keeping, passes).evaluated;
  }

private:
  struct Analyzed {
    Analyzed(const SearchInput &input, Keeping keeping, Passes passes);

    KernelAnalysis facts;
    int64_t evaluated;
  };

  const Analyzed &analyzed(Keeping keeping, Passes passes);

  const SearchInput &input;
  /// By what is kept, and by passes.
  std::unique_ptr<Analyzed> analyses[3][2];
  std::vector<PlanCandidate> list;
  PricedPlan chosen;
  /// Those that were admitted or not, by what makes them equal.
  std::map<std::string, PricedPlan> seen;
  /// Instructions of the candidates so far, and whether that was too many.
  int64_t spent = 0;
  bool isOver = false;
};

} // namespace tessera

#endif // TESSERA_SEARCH_CANDIDATES_H
