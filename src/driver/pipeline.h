//===- pipeline.h - The compiler on one page --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PIPELINE_H
#define TESSERA_DRIVER_PIPELINE_H

#include "codegen/cpu/expand_math.h"
#include "dialect/tile_dialect.h"
#include "driver/facts.h"
#include "driver/plan_file.h"
#include "driver/program.h"
#include "plan/plan.h"
#include "search/search.h"

namespace tessera {

/// Values of a kernel's tunables that were looked at (driver/tunables.h).
struct TunableCandidate {
  std::vector<std::pair<std::string, int64_t>> values;
  /// "chosen", or a code that says why not.
  std::string code;
  /// Predicted time of a call with the request's threads.
  std::optional<double> nanoseconds;
};

/// What a compilation leaves behind for the execution report.
struct PipelineResult {
  std::string object;
  std::vector<StageTime> times;
  Plan plan;
  /// Empty where there was nothing to choose.
  std::vector<TunableCandidate> tunables;
  PlanSubject subject;
  /// CompiledKernel::planSource.
  std::string planSource;
  /// Of a tuned plan that was there, whether or not it could be applied
  /// (tunedPlanHash).
  std::string tunedPlan;
  std::vector<Stage> stages;
  /// The functions that pack arrays, without code.
  std::vector<PackedParameter> packs;
  std::vector<Error> checks;
  int64_t multiplyAdds = 0;
  MathForm math;
  /// Whether the plan has fewer vectors per iteration for its length; what is
  /// compiled of it (StagePrice::emitted); whether the code generator left out
  /// what takes most of its time.
  bool isShort = false;
  int64_t emitted = 0;
  bool isLong = false;
  /// By stage: its price and its predicted time.
  std::vector<StagePrice> prices;
  std::vector<TimeTerms> predicted;
  /// By which it was priced.
  const Machine *machine = nullptr;
  Facts facts;
};

/// Compiles a kernel for a CPU. The kernel is consumed: it is specialized in
/// place. The stages of the result have no code yet, only symbols.
Result<PipelineResult> compileForCpu(tile::KernelOp kernel,
                                     const CompileRequest &request);

/// The predicted time in nanoseconds of a plan on each of several machines,
/// without generating code. The kernel is consumed.
Result<std::vector<double>> predictForCpu(tile::KernelOp kernel,
                                          const CompileRequest &request,
                                          const PlanChoices &choices,
                                          llvm::ArrayRef<Machine> machines);

/// The predicted time of each stage of a plan on the request's machine, on one
/// thread. The kernel is consumed.
Result<std::vector<StagePrediction>>
predictStagesForCpu(tile::KernelOp kernel, const CompileRequest &request,
                    const PlanChoices &choices);

/// By which a request's code is priced.
const Machine &machineOf(const CompileRequest &request);

} // namespace tessera

#endif // TESSERA_DRIVER_PIPELINE_H
