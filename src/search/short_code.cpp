//===- short_code.cpp - Plans for kernels with very much in them ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/short_code.h"

#include "fmt/format.h"
#include "mlir/IR/OpDefinition.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

KernelSize sizeOf(tile::KernelOp kernel) {
  KernelSize size;
  kernel->walk([&](Operation *op) {
    size.operations +=
        !op->hasTrait<OpTrait::ConstantLike>() && !isa<tile::BroadcastOp>(op);
    size.roots += rootOf(op).has_value();
  });
  return size;
}

/// Of a kernel that would take too long to compile.
static Error tooLong(tile::KernelOp kernel, const std::string &what) {
  return Error{ErrorFamily::Unsupported,
               "unsupported.size",
               fmt::format("kernel '{}' has {}; make several kernels of it, "
                           "with arrays between them",
                           kernel.getSymName().str(), what),
               {}};
}

Result<void> checkSize(tile::KernelOp kernel) {
  const KernelSize size = sizeOf(kernel);
  if (size.operations > mostEvaluated)
    return tooLong(kernel, fmt::format("{} operations, more than {}",
                                       size.operations, mostEvaluated));
  if (size.operations * size.roots > mostAnalyzed)
    return tooLong(kernel,
                   fmt::format("{} operations and {} reductions and stores, "
                               "whose product is more than {}",
                               size.operations, size.roots, mostAnalyzed));
  return {};
}

int64_t evaluatedBy(const KernelAnalysis &analysis) {
  const KernelSize size = sizeOf(analysis.kernel);
  // Each loop evaluates all of them at most.
  if (size.operations * std::max<int64_t>(size.roots, 1) <= mostLookedAt)
    return size.operations;
  int64_t evaluated = 0;
  tile::KernelOp kernel = analysis.kernel;
  kernel->walk([&](Block *block) {
    for (const Step &step : analysis.phases.schedule(*block)) {
      if (step.immediate) {
        ++evaluated;
        continue;
      }
      llvm::DenseSet<Value> values;
      for (const Root &root :
           llvm::concat<const Root>(step.phase.roots, step.phase.epilogue))
        for (Value value : analysis.phases.cone(root))
          if (Operation *op = value.getDefiningOp();
              op && isDeferred(op) && !isa<tile::BroadcastOp>(op) &&
              !op->hasTrait<OpTrait::ConstantLike>())
            values.insert(value);
      evaluated += int64_t(values.size() + step.phase.roots.size() +
                           step.phase.epilogue.size());
    }
  });
  return evaluated;
}

Result<void> checkEvaluated(tile::KernelOp kernel, int64_t evaluated) {
  if (evaluated <= mostEvaluated)
    return {};
  return tooLong(kernel,
                 fmt::format("loops that evaluate {} operations, more than {}",
                             evaluated, mostEvaluated));
}

Result<void> checkEmitted(tile::KernelOp kernel, int64_t emitted) {
  if (emitted <= longestCompiled)
    return {};
  return tooLong(kernel, fmt::format("code of {} instructions and addresses, "
                                     "more than {}",
                                     emitted, longestCompiled));
}

void makeShort(const KernelAnalysis &analysis, int64_t unroll,
               PlanChoices &choices) {
  for (auto [op, number] : analysis.numbers) {
    const bool begins =
        rootOf(op) ||
        (isDeferred(op) && analysis.phases.isMaterialized(op->getResult(0)));
    if (!begins)
      continue;
    NestChoice &choice = choices.nests[number];
    choice.storesAround = false;
    if (isa<tile::ContractOp>(op))
      choice.epilogue = false;
    else
      choice.unroll = unroll;
  }
}

} // namespace tessera
