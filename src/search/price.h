//===- price.h - Predicted time of realized code ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: predicts what a realized module takes on a machine, from the loops,
// loads, masks and arithmetic that stand in it, functions expanded: candidates
// are priced by the code they really have.
//
// The model. A loop takes, per iteration, the longest of
//  - throughput: its operations over what the core starts per cycle, by kind;
//  - recurrence: the chain from a carried value to its successor;
//  - window: its longest chain, as far as the core cannot begin the next
//    iteration meanwhile because its reorder window is full.
// The programs of a grid are the outermost loop. What memory adds is in
// predicted_time.h.
//
// Blind spots: spills of what is no constant, and how LLVM orders instructions.
// docs/planner.md has the error of predictions.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_PRICE_H
#define TESSERA_SEARCH_PRICE_H

#include "plan/plan_record.h"
#include "search/operation_costs.h"
#include "target/machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace tessera {

/// The price of one stage function.
struct StagePrice {
  std::string symbol;
  /// Programs that advance together.
  double together = 1;
  /// Iterations of the program's longest loop over blocks: what it reads again
  /// it reads again in the same block.
  double blocks = 1;
  /// Of one program, in cycles: what operations take, and with waiting.
  double throughputCycles = 0;
  double cycles = 0;
  Counts counts;
  /// NestPlan::jumps of its nests; of all programs.
  double jumps = 0;
  /// The largest NestPlan::blockBytes and NestPlan::busyShare of its nests.
  double blockBytes = 0;
  double busyShare = 0;
  /// NestPlan::repeats of all its nests.
  std::vector<RepeatedRead> repeats;
  /// Cycles of the innermost loops of each nest (NestPlan::id), per program.
  std::map<int64_t, double> nestCycles;
  /// Instructions of its code, and of the part that is rarely reached.
  int64_t instructions = 0;
  int64_t rareInstructions = 0;
  /// Its instructions, the addresses that they use, and what divides integers
  /// lane by lane: what takes time to compile.
  int64_t emitted = 0;
};

/// Of all stages.
int64_t emittedOf(const std::vector<StagePrice> &prices);

/// Prices the functions of a module whose names end in "_body", in order.
std::vector<StagePrice> priceStages(mlir::ModuleOp module, const Target &target,
                                    const Machine &machine);

} // namespace tessera

#endif // TESSERA_SEARCH_PRICE_H
