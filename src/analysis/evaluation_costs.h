//===- evaluation_costs.h - Evaluating a value again ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What it costs to evaluate a deferred value once more, against keeping it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_EVALUATION_COSTS_H
#define TESSERA_ANALYSIS_EVALUATION_COSTS_H

#include "analysis/phases.h"

namespace tessera {

class EvaluationCosts {
public:
  explicit EvaluationCosts(const PhaseAnalysis &phases) : phases(phases) {}

  /// Whether the evaluation includes an expensive op of its own.
  bool isExpensive(mlir::Value value);

  /// Whether evaluating the value at so many places takes more than to do it
  /// once, store it, and load it at the others. In loads from the first-level
  /// cache: a core does two of them in a cycle, beside two operations, and one
  /// store. What is the same for whole rows of the value is hoisted and free.
  bool isWorthKeeping(mlir::Value value, int64_t places) const;

private:
  bool isEvaluated(mlir::Value value) const;

  const PhaseAnalysis &phases;
  llvm::DenseMap<mlir::Value, bool> known;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_EVALUATION_COSTS_H
