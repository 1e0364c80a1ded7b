//===- facts.h - What can be counted in a compiled kernel -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: numbers for the execution report and for error bounds, read off the
// specialized kernel, the plan that was applied and the realized module. They
// describe what was emitted; nothing is decided here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_FACTS_H
#define TESSERA_DRIVER_FACTS_H

#include "driver/program.h"
#include "plan/plan.h"
#include "search/predicted_time.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// One loop of the realized module.
struct LoopFact {
  std::string function;
  /// Loops around it in its function.
  int64_t depth = 0;
  int64_t step = 0;
  /// Unknown where a bound is no constant.
  std::optional<int64_t> trips;
  /// Values carried from one iteration to the next.
  int64_t carried = 0;
  /// The longest vector accessed directly in its body, 1 for scalar accesses, 0
  /// for none.
  int64_t lanes = 0;
  /// Memory accesses directly in its body.
  int64_t accesses = 0;
};

/// Accesses to elements of arrays and scratch memory in the realized module, as
/// they stand in the code (not how often they run).
struct AccessCounts {
  int64_t vectorLoads = 0;
  int64_t vectorStores = 0;
  int64_t maskedLoads = 0;
  int64_t maskedStores = 0;
  int64_t gathers = 0;
  int64_t scatters = 0;
  int64_t scalarLoads = 0;
  int64_t scalarStores = 0;
};

/// A vector-math function that was emitted.
struct FunctionUse {
  std::string name;
  /// Whether its elements are f64 instead of f32.
  bool isF64 = false;
  /// Its stated error: at most constant + perX |x| units in the last place.
  double constant = 0;
  double perX = 0;
  int64_t uses = 0;
};

/// How the axes of the kernel's accesses were proved to stay in bounds.
struct BoundsFact {
  int64_t axes = 0;
  int64_t checked = 0;
};

struct Facts {
  /// The kernel's dimensions with constant extents, in order.
  std::vector<std::pair<std::string, int64_t>> dims;
  BoundsFact bounds;
  std::vector<FunctionUse> functions;
  /// Combining operations with the type they accumulate in: "reduce add",
  /// "f32".
  std::vector<std::pair<std::string, std::string>> accumulations;
  std::vector<LoopFact> loops;
  AccessCounts accesses;
  WorkEstimate work;
  SummationPlan summation;
};

/// What the kernel has to do, whatever the plan: of the specialized kernel.
WorkEstimate estimateWork(tile::KernelOp kernel, const KernelAnalysis &analysis,
                          const std::vector<std::vector<int64_t>> &extents);

/// The bytes that a call and its programs move, of the specialized kernel.
Traffic trafficOf(tile::KernelOp kernel, const KernelAnalysis &analysis,
                  const std::vector<std::vector<int64_t>> &extents);

/// How the sums of the plan are formed.
SummationPlan summationOf(const Plan &plan);

/// Notes dimensions, bounds and accumulation types of the specialized kernel.
void describeKernel(tile::KernelOp kernel, const KernelAnalysis &analysis,
                    Facts &facts);

/// Counts loops, accesses and functions of the realized module, before it is
/// lowered.
void countRealized(mlir::ModuleOp module, const Target &target, tile::Tier tier,
                   Facts &facts);

} // namespace tessera

#endif // TESSERA_DRIVER_FACTS_H
