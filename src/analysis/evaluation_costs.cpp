//===- evaluation_costs.cpp - Evaluating a value again --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/evaluation_costs.h"

using namespace mlir;

namespace tessera {

bool EvaluationCosts::isEvaluated(Value value) const {
  Operation *op = value.getDefiningOp();
  return op && isDeferred(op) && !phases.isMaterialized(value);
}

bool EvaluationCosts::isExpensive(Value value) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value part = stack.back();
    Operation *op = part.getDefiningOp();
    bool isOwn = isEvaluated(part);
    bool expensive = isOwn && tessera::isExpensive(op), isReady = true;
    if (isOwn && !expensive && !known.contains(part))
      for (Value operand : op->getOperands()) {
        auto found = known.find(operand);
        if (found == known.end()) {
          stack.push_back(operand);
          isReady = false;
        } else {
          expensive |= found->second;
        }
      }
    if (!isReady)
      continue;
    known.try_emplace(part, expensive);
    stack.pop_back();
  }
  return known.lookup(value);
}

bool EvaluationCosts::isWorthKeeping(Value value, int64_t places) const {
  constexpr double operation = 0.5, store = 1.5;
  constexpr size_t most = 64;
  size_t rank = tile::getDims(value.getType()).size();
  double cost = 0;
  SmallVector<Value> worklist{value};
  llvm::SmallPtrSet<Value, 16> seen;
  while (!worklist.empty() && seen.size() < most) {
    Value part = worklist.pop_back_val();
    if (!isa<RankedTensorType>(part.getType()) ||
        tile::getDims(part.getType()).size() < rank ||
        !seen.insert(part).second)
      continue;
    Operation *op = part.getDefiningOp();
    if (!isEvaluated(part) || isa<tile::LoadOp>(op))
      cost += 1;
    else if (!isa<tile::BroadcastOp, tile::TransposeOp>(op) &&
             !op->hasTrait<OpTrait::ConstantLike>())
      cost += operation;
    if (isEvaluated(part))
      llvm::append_range(worklist, op->getOperands());
  }
  return double(places - 1) * (cost - 1) > store;
}

} // namespace tessera
