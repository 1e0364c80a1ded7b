//===- pipeline.h - The compiler on one page --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PIPELINE_H
#define TESSERA_DRIVER_PIPELINE_H

#include "dialect/tile_dialect.h"
#include "driver/facts.h"
#include "driver/plan_file.h"
#include "driver/program.h"
#include "plan/plan.h"
#include "search/price.h"

namespace tessera {

/// What a compilation leaves behind for the execution report.
struct PipelineResult {
  std::string object;
  std::vector<StageTime> times;
  Plan plan;
  PlanSubject subject;
  /// CompiledKernel::planSource.
  std::string planSource;
  std::vector<Stage> stages;
  std::vector<Error> checks;
  int64_t multiplyAdds = 0;
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

} // namespace tessera

#endif // TESSERA_DRIVER_PIPELINE_H
