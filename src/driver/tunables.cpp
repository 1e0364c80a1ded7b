//===- tunables.cpp - Choosing the values of tunables ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/tunables.h"

#include "driver/call_time.h"
#include "dsl/trace.h"
#include "target/machine.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace tessera {

namespace {

/// Combinations that are looked at.
constexpr size_t mostCombinations = 16;
/// What a combination has to be predicted to take of the first one's time: the
/// price of a default plan knows little of the caches between the cores.
constexpr double margin = 0.9;

using Values = std::vector<std::pair<std::string, int64_t>>;

/// Every combination of the candidates, the first of all first.
std::vector<Values> combinationsOf(const std::vector<TunableInfo> &open) {
  std::vector<Values> all{{}};
  for (const TunableInfo &tunable : open) {
    std::vector<Values> longer;
    for (const Values &values : all)
      for (int64_t candidate : tunable.candidates) {
        longer.push_back(values);
        longer.back().emplace_back(tunable.name, candidate);
      }
    all = std::move(longer);
    if (all.size() > mostCombinations)
      all.resize(mostCombinations + 1);
  }
  return all;
}

} // namespace

std::optional<TunableChoice>
chooseTunables(const Kernel &source, const TraceOptions &options,
               const std::vector<TunableInfo> &tunables, MLIRContext &context,
               const CompileRequest &request) {
  std::vector<TunableInfo> open;
  for (const TunableInfo &tunable : tunables)
    if (options.tunables.count(tunable.name) == 0 &&
        tunable.candidates.size() > 1)
      open.push_back(tunable);
  if (open.empty())
    return std::nullopt;
  const Machine &machine = machineOf(request);
  TunableChoice choice;
  size_t chosen = 0;
  double least = 0;
  for (const Values &values : combinationsOf(open)) {
    TunableCandidate &candidate = choice.candidates.emplace_back();
    candidate.values = values;
    if (choice.candidates.size() > mostCombinations) {
      candidate.code = "search.budget";
      break;
    }
    TraceOptions with = options;
    for (const auto &[name, value] : values)
      with.tunables[name] = value;
    auto fails = [&](const Error &error) {
      candidate.code = error.code;
      return !choice.module;
    };
    Result<OwningOpRef<ModuleOp>> traced = trace(source, context, with);
    if (!traced) {
      if (fails(traced.error()))
        return std::nullopt;
      continue;
    }
    OwningOpRef<ModuleOp> work = (*traced)->clone();
    Result<std::vector<StagePrediction>> stages = predictStagesForCpu(
        *work->getOps<tile::KernelOp>().begin(), request, PlanChoices());
    if (!stages) {
      if (fails(stages.error()))
        return std::nullopt;
      continue;
    }
    candidate.nanoseconds = callTime(*stages, request.threads, machine);
    candidate.code = "cost.higher";
    if (choice.module && *candidate.nanoseconds >= margin * least) {
      if (*candidate.nanoseconds <= least)
        candidate.code = "cost.equal";
      continue;
    }
    chosen = choice.candidates.size() - 1;
    least = *candidate.nanoseconds;
    choice.module = std::move(*traced);
  }
  choice.candidates[chosen].code = "chosen";
  return choice;
}

} // namespace tessera
