//===- short_code.h - Plans for kernels with very much in them --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: bounds the time and the memory that any kernel takes to compile,
// which grow with the code. Beyond the first limit there are fewer vectors per
// iteration, beyond the second the code generator leaves out what takes most of
// its time, and beyond the last a kernel is refused. Functions have a limit of
// their own (codegen/cpu/expand_math.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_SHORT_CODE_H
#define TESSERA_SEARCH_SHORT_CODE_H

#include "plan/plan.h"
#include "tessera/error.h"

namespace tessera {

/// By StagePrice::emitted, all stages together.
inline constexpr int64_t longestDefault = 8000;
inline constexpr int64_t longestOptimized = 12000;
inline constexpr int64_t longestCompiled = 45000;
/// Longer chains of dependent operations are compiled like more than
/// longestOptimized: passes of LLVM take time in the square of their length.
inline constexpr int64_t longChain = 2000;

/// Kernels whose loops evaluate more operations are planned short without a
/// look at the default; more than the second number are refused before anything
/// is realized.
inline constexpr int64_t mostLookedAt = 2000;
inline constexpr int64_t mostEvaluated = 30000;
/// The most operations times roots of a kernel: analyses go through what each
/// loop evaluates, and each stage through the kernel.
inline constexpr int64_t mostAnalyzed = 1000000;

/// What of a kernel becomes code.
struct KernelSize {
  int64_t operations = 0;
  /// Reductions, stores and others that have loops of their own or share one.
  int64_t roots = 0;
};
KernelSize sizeOf(tile::KernelOp kernel);

/// Fails if the kernel is too large to be analyzed and compiled.
Result<void> checkSize(tile::KernelOp kernel);

/// The operations that all loops of a kernel evaluate: an operation counts for
/// each loop that evaluates it again.
int64_t evaluatedBy(const KernelAnalysis &analysis);

/// Fails if these are too many.
Result<void> checkEvaluated(tile::KernelOp kernel, int64_t evaluated);

/// Fails if the code is too long; of all stages together.
Result<void> checkEmitted(tile::KernelOp kernel, int64_t emitted);

/// Adds to `choices` what makes code short: so many vectors per iteration in
/// every nest but tiles, what follows a contraction in a loop of its own, and
/// results that go through the caches.
void makeShort(const KernelAnalysis &analysis, int64_t unroll,
               PlanChoices &choices);

} // namespace tessera

#endif // TESSERA_SEARCH_SHORT_CODE_H
