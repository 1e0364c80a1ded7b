//===- candidates.cpp - Plans that a search has looked at -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/candidates.h"

#include "codegen/cpu/expand_math.h"
#include "realize/cpu/realize.h"
#include "search/short_code.h"

#include "fmt/format.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// What a candidate may have with what is rarely reached, which only takes time
/// to compile; mostInstructions is without that.
constexpr int64_t mostWithRare = 900;
/// Instructions of all candidates that are realized.
constexpr int64_t searchBudget = 40000;

} // namespace

std::vector<NestPlan> PricedPlan::nests() const {
  std::vector<NestPlan> all;
  for (const StagePlan &stage : plan.stages)
    all.insert(all.end(), stage.nests.begin(), stage.nests.end());
  return all;
}

double PricedPlan::nestCycles(int64_t id) const {
  double cycles = 0;
  for (const StagePrice &stage : prices)
    if (auto found = stage.nestCycles.find(id); found != stage.nestCycles.end())
      cycles += found->second;
  return cycles;
}

double PricedPlan::busyCycles() const {
  double cycles = 0;
  for (size_t i = 0; i < prices.size(); ++i)
    cycles += prices[i].throughputCycles * double(plan.stages[i].programs);
  return cycles;
}

Candidates::Analyzed::Analyzed(const SearchInput &input, Keeping keeping,
                               Passes passes)
    : facts(input.kernel, input.alias, input.extents, input.strides, keeping,
            passes),
      evaluated(evaluatedBy(facts)) {}

const Candidates::Analyzed &Candidates::analyzed(Keeping keeping,
                                                 Passes passes) {
  std::unique_ptr<Analyzed> &made = analyses[size_t(keeping)][size_t(passes)];
  if (!made)
    made = std::make_unique<Analyzed>(input, keeping, passes);
  return *made;
}

/// Equal for plans that lead to the same code.
static std::string keyOf(const PricedPlan &priced) {
  std::string tails;
  for (const StagePlan &stage : priced.plan.stages)
    for (const NestPlan &nest : stage.nests)
      if (nest.alternatives.hasTail)
        tails += std::string(name(nest.tail)) + " ";
  return fmt::format("{} {}{} {:a}", priced.plan.summary(), tails,
                     priced.instructions, priced.nanoseconds);
}

void Candidates::begin(PricedPlan plan) {
  chosen = std::move(plan);
  seen.emplace(keyOf(chosen), chosen);
}

void Candidates::take(PricedPlan plan, const std::string &code) {
  list[chosen.index].code = code;
  list[plan.index].code = "cost.higher";
  chosen = std::move(plan);
  seen.try_emplace(keyOf(chosen), chosen);
}

std::vector<PlanCandidate> Candidates::finish() {
  list[chosen.index].code = "chosen";
  return std::move(list);
}

Result<PricedPlan> Candidates::price(const PlanChoices &choices,
                                     std::string what) {
  const auto &[facts, evaluated] = analyzed(choices.keeping, choices.passes);
  if (Result<void> fits = checkEvaluated(input.kernel, evaluated); !fits)
    return fits.error();
  Planning planning{facts, input.target, input.machine, input.pins, choices};
  Result<RealizedKernel> realized = realizeForCpu(planning);
  if (!realized)
    return realized.error();
  tile::KernelOp kernel = input.kernel;
  tile::Tier tier = kernel.getTier();
  formMultiplyAdds(realized->module.get(), input.target, tier);
  expandMath(realized->module.get(), input.target, tier);
  PricedPlan priced;
  priced.choices = choices;
  priced.prices =
      priceStages(realized->module.get(), input.target, input.machine);
  std::vector<int64_t> programs;
  for (const RealizedStage &stage : realized->stages)
    programs.push_back(stage.programs);
  for (const StagePrice &stage : priced.prices) {
    priced.instructions += stage.instructions;
    priced.usualInstructions += stage.instructions - stage.rareInstructions;
  }
  const std::vector<TimeTerms> times = predictStages(
      priced.prices, programs, input.traffic, input.target, input.machine);
  for (size_t i = 0; i < times.size(); ++i) {
    priced.nanoseconds += times[i].total;
    priced.stages.push_back(predictionOf(realized->plan.stages[i],
                                         priced.prices[i], programs[i],
                                         times[i].total));
  }
  discard(std::move(realized->module));
  priced.plan = std::move(realized->plan);
  priced.index = list.size();
  list.push_back({std::move(what), "cost.higher", priced.nanoseconds,
                  priced.instructions, choices});
  return priced;
}

std::optional<PricedPlan> Candidates::consider(const PlanChoices &choices,
                                               const std::string &what,
                                               std::optional<int64_t> within,
                                               double share) {
  if (spent > searchBudget) {
    if (!isOver)
      refuse("further candidates", "search.budget", choices);
    isOver = true;
    return std::nullopt;
  }
  Result<PricedPlan> priced = price(choices, what);
  if (!priced) {
    refuse(what, priced.error().code, choices);
    return std::nullopt;
  }
  spent += priced->instructions;
  auto [known, isNew] = seen.try_emplace(keyOf(*priced), *priced);
  if (!isNew) {
    list.pop_back();
    return known->second;
  }
  PlanCandidate &entry = list.back();
  if (priced->usualInstructions >
          std::max(mostInstructions, chosen.usualInstructions) ||
      priced->instructions > std::max(mostWithRare, chosen.instructions)) {
    entry.code = "admission.instructions";
    return std::nullopt;
  }
  if (within &&
      priced->nestCycles(*within) >= margin * chosen.nestCycles(*within))
    entry.code = "cost.higher";
  else if (priced->nanoseconds >= share * chosen.nanoseconds)
    entry.code =
        priced->nanoseconds > chosen.nanoseconds ? "cost.higher" : "cost.equal";
  else
    chosen = *priced;
  return *priced;
}

void Candidates::refuse(const std::string &what, const std::string &code,
                        const PlanChoices &choices) {
  list.push_back({what, code, {}, 0, choices});
}

} // namespace tessera
