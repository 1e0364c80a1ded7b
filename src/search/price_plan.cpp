//===- price_plan.cpp - The predicted time of one plan --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/search.h"

#include "codegen/cpu/expand_math.h"
#include "realize/cpu/realize.h"
#include "search/short_code.h"

using namespace mlir;

namespace tessera {

static Result<RealizedKernel> realizeToPrice(const SearchInput &input,
                                             PlanChoices choices) {
  KernelAnalysis analysis(input.kernel, input.alias, input.extents,
                          input.strides, choices.keeping, choices.passes);
  const int64_t evaluated = evaluatedBy(analysis);
  if (Result<void> fits = checkEvaluated(input.kernel, evaluated); !fits)
    return fits.error();
  if (evaluated > mostLookedAt)
    makeShort(analysis, 1, choices);
  Result<RealizedKernel> realized = realizeForCpu(
      {analysis, input.target, input.machine, input.pins, choices});
  if (!realized)
    return realized;
  tile::KernelOp kernel = input.kernel;
  formMultiplyAdds(realized->module.get(), input.target, kernel.getTier());
  expandMath(realized->module.get(), input.target, kernel.getTier());
  return realized;
}

/// The stages' times on one thread.
static std::vector<StagePrediction> predicted(const RealizedKernel &realized,
                                              const SearchInput &input,
                                              const Machine &machine) {
  std::vector<int64_t> programs;
  for (const RealizedStage &stage : realized.stages)
    programs.push_back(stage.programs);
  const std::vector<StagePrice> prices =
      priceStages(realized.module.get(), input.target, machine);
  std::vector<TimeTerms> times =
      predictStages(prices, programs, input.traffic, input.target, machine);
  std::vector<StagePrediction> stages;
  for (size_t i = 0; i < times.size(); ++i)
    stages.push_back(predictionOf(realized.plan.stages[i], prices[i],
                                  programs[i], times[i].total));
  return stages;
}

Result<std::vector<double>> pricePlan(const SearchInput &input,
                                      const PlanChoices &choices,
                                      ArrayRef<Machine> machines) {
  Result<RealizedKernel> realized = realizeToPrice(input, choices);
  if (!realized)
    return realized.error();
  std::vector<double> times;
  for (const Machine &machine : machines) {
    double sum = 0;
    for (const StagePrediction &stage : predicted(*realized, input, machine))
      sum += stage.nanoseconds;
    times.push_back(sum);
  }
  return times;
}

Result<std::vector<StagePrediction>>
pricePlanStages(const SearchInput &input, const PlanChoices &choices) {
  Result<RealizedKernel> realized = realizeToPrice(input, choices);
  if (!realized)
    return realized.error();
  return predicted(*realized, input, input.machine);
}

} // namespace tessera
