//===- programs.cpp - The programs of a grid ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over the programs of a grid: one at a time, or several that advance
// together, phase by phase.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include <algorithm>
#include <cassert>
#include <utility>

using namespace mlir;

namespace tessera {

void Realizer::bindProgram(tile::ParallelOp op, Value number) {
  // From the one that changes first.
  SmallVector<int64_t> order;
  for (int64_t axis = int64_t(op.getDims().size()) - 1; axis >= 0; --axis) {
    bool isInnermost =
        op == stageGrid &&
        cast<StringAttr>(op.getDims()[axis]) == plan.order.innermost;
    order.insert(isInnermost ? order.begin() : order.end(), axis);
  }
  for (int64_t axis : order) {
    Value coordinate = number;
    if (axis != order.back()) {
      Value size = extent(cast<StringAttr>(op.getDims()[axis]));
      coordinate = b.create<arith::RemUIOp>(emit.loc, number, size);
      number = b.create<arith::DivUIOp>(emit.loc, number, size);
    }
    setScalar(op.getBody().getArgument(axis), coordinate);
  }
}

void Realizer::runParallel(tile::ParallelOp op, Value first, Value last) {
  Value total = emit.index(1);
  for (Attribute dim : op.getDims())
    total = emit.mul(total, extent(cast<StringAttr>(dim)));
  std::vector<Step> steps = analysis.phases.schedule(op.getBody().front());
  GridPlan order;
  // Only the grids that are stages of their own: the others' programs do not
  // stand in the plan one by one.
  if (!checksOnly && last) {
    order = planGrid(op, stage, steps, planning);
    if (order.splits == 1)
      planEdges(op, stage, planning, order);
    else if (planning.choices.edges.count(stage) > 0)
      order.reasons.push_back(
          {"edges.splits", "programs that share a reduction have one body"});
    box = interiorPrograms(op, analysis.accesses);
  }
  if (last) {
    plan.order = order;
    stageGrid = op;
  }
  if (order.prefetch != Prefetch::None) {
    prefetches = findPrefetches(op, steps, planning);
    if (order.prefetch == Prefetch::Inputs)
      for (auto &[id, nest] : prefetches)
        nest.stores.clear();
  }
  if (!first)
    first = emit.index(0);
  if (!last)
    last = total;
  if (order.together == 1)
    return runPrograms(op, first, last, 1, steps, {});
  std::vector<NestPlan> nests;
  for (const Step &step : steps)
    if (!step.immediate) {
      nests.push_back(plannedNest(step.phase));
      record(nests.back());
    }
  const size_t listed = bufferSizes.size();
  runPrograms(op, first, last, order.together, steps, nests);
  for (size_t i = listed; i < bufferSizes.size(); ++i)
    bufferSizes[i].second *= order.together;
}

/// Emits what one of several programs does where the condition holds. Scalars
/// that it computes are there afterwards, and 0 otherwise.
void Realizer::runGuarded(Value condition, llvm::function_ref<void()> body) {
  const llvm::DenseMap<Value, Value> before = scalars;
  auto guard = b.create<scf::IfOp>(emit.loc, condition,
                                   /*withElseRegion=*/false);
  guard->setAttr(usualAttr, b.getUnitAttr());
  {
    OpBuilder::InsertionGuard insertion(b);
    b.setInsertionPoint(guard.thenBlock()->getTerminator());
    body();
  }
  SmallVector<Value> computed, results;
  for (auto [key, value] : scalars)
    if (before.lookup(key) != value &&
        guard.getThenRegion().isAncestor(value.getParentRegion()))
      computed.push_back(key);
  if (computed.empty())
    return;
  // In the kernel's order: the map has none.
  llvm::sort(computed, [&](Value x, Value y) {
    auto place = [&](Value value) {
      auto result = cast<OpResult>(value);
      return std::pair(analysis.numbers.lookup(result.getOwner()),
                       result.getResultNumber());
    };
    return place(x) < place(y);
  });
  for (Value key : computed)
    results.push_back(scalars[key]);
  auto yielding = b.create<scf::IfOp>(emit.loc, TypeRange(ValueRange(results)),
                                      condition, /*withElseRegion=*/true);
  yielding->setAttr(usualAttr, b.getUnitAttr());
  guard.thenBlock()->getTerminator()->erase();
  Block *then = yielding.thenBlock();
  then->getOperations().splice(then->end(), guard.thenBlock()->getOperations());
  guard.erase();
  OpBuilder::InsertionGuard insertion(b);
  b.setInsertionPointToEnd(then);
  b.create<scf::YieldOp>(emit.loc, results);
  b.setInsertionPointToEnd(yielding.elseBlock());
  SmallVector<Value> nothing;
  for (Value result : results)
    nothing.push_back(emit.zero(result.getType()));
  b.create<scf::YieldOp>(emit.loc, nothing);
  for (auto [key, result] : llvm::zip(computed, yielding.getResults()))
    scalars[key] = result;
}

void Realizer::runPrograms(tile::ParallelOp op, Value first, Value last,
                           int64_t together, const std::vector<Step> &steps,
                           const std::vector<NestPlan> &nests) {
  auto loop = b.create<scf::ForOp>(emit.loc, first, last, emit.index(together));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  advancing = together;
  if (op == stageGrid && plan.order.splits > 1) {
    assert(nests.empty() && "programs that share a reduction advance together");
    return runSharedProgram(op, loop.getInductionVar(), steps);
  }
  if (nests.empty()) {
    bindProgram(op, loop.getInductionVar());
    runProgram(op);
    return;
  }
  // What each program has computed so far.
  struct Program {
    llvm::DenseMap<Value, Value> scalars;
    llvm::DenseMap<Value, TileBuffer> buffers;
  };
  std::vector<Program> programs(together, {scalars, buffers});
  auto inProgram = [&](int64_t number, llvm::function_ref<void()> body) {
    const size_t listed = bufferSizes.size();
    std::swap(scalars, programs[number].scalars);
    std::swap(buffers, programs[number].buffers);
    body();
    std::swap(scalars, programs[number].scalars);
    std::swap(buffers, programs[number].buffers);
    // What is kept is listed once, for all of them.
    if (number > 0)
      bufferSizes.resize(listed);
  };
  // The last group may have fewer programs; its first is always there.
  SmallVector<Value> isThere;
  for (int64_t program = 0; program < together; ++program) {
    Value number = emit.add(loop.getInductionVar(), emit.index(program));
    isThere.push_back(emit.compare(arith::CmpIPredicate::slt, number, last));
    inProgram(program, [&] { bindProgram(op, number); });
  }
  // A nest with the scalars before it is one part: a part has one test.
  auto nest = nests.begin();
  for (auto part = steps.begin(); part != steps.end();) {
    auto end = std::find_if(part, steps.end(),
                            [](const Step &step) { return !step.immediate; });
    const bool hasNest = end != steps.end();
    auto emitPart = [&] {
      for (auto step = part; step != end; ++step)
        runImmediate(*step->immediate);
      if (hasNest)
        emitNest(end->phase, *nest);
    };
    for (int64_t program = 0; program < together; ++program)
      inProgram(program, [&] {
        if (program == 0)
          emitPart();
        else
          runGuarded(isThere[program], emitPart);
      });
    part = hasNest ? std::next(end) : end;
    nest += hasNest;
  }
}

} // namespace tessera
