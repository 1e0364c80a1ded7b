//===- nest_facts.cpp - What a nest reads, writes and carries ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/nest_planner.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace tessera {

void NestPlanner::describe() {
  for (StringAttr dim : phase.kept)
    plan.space += (plan.space.empty() ? "" : ", ") + dim.getValue().str();
  for (StringAttr dim : phase.reduced)
    plan.space +=
        (plan.space.empty() ? "" : ", ") + ("+" + dim.getValue()).str();
  for (const Root &root : phase.roots)
    plan.roots += (plan.roots.empty() ? "" : ", ") + rootName(root);
  if (phase.join) {
    const LawRow &row = rowOf(phase.join->law);
    plan.law = row.name;
    plan.roots += " in one pass";
    reason("passes.joined", Twine(row.name) + ": " + row.statement);
  }
}

std::string NestPlanner::rootName(const Root &root) const {
  auto viewName = [&](Value view) {
    tile::KernelOp kernel = analysis.kernel;
    return kernel.getArgName(cast<BlockArgument>(view).getArgNumber()).str();
  };
  switch (root.kind) {
  case Root::Kind::Store:
    return "store " + viewName(cast<tile::StoreOp>(root.op).getView());
  case Root::Kind::Scatter:
    return "scatter " + viewName(cast<tile::ScatterOp>(root.op).getView());
  case Root::Kind::Reduce:
    return "reduce " +
           tile::stringifyCombiner(cast<tile::ReduceOp>(root.op).getCombiner())
               .str();
  case Root::Kind::ArgReduce:
    return "arg_reduce";
  case Root::Kind::Contract:
    return "contract";
  case Root::Kind::Scan:
    return "scan";
  case Root::Kind::Sort:
    return "sort";
  case Root::Kind::Materialize:
    return "keep";
  }
  return "";
}

void NestPlanner::collect() {
  llvm::SmallSet<Operation *, 16> seen;
  for (const Root &root : phase.roots) {
    if (!root.op)
      continue;
    if (std::optional<Access> access = getAccess(root.op))
      accesses.push_back(*access);
    for (Value value : analysis.phases.cone(root)) {
      Operation *op = value.getDefiningOp();
      if (!op || !seen.insert(op).second)
        continue;
      expensive += isDeferred(op) && isExpensive(op);
      if (std::optional<Access> access = getAccess(op))
        accesses.push_back(*access);
      note(tile::getElement(value.getType()));
    }
  }
  collectBuffers();
  for (const Access &access : accesses)
    note(access.viewType().getElementType());
  for (const Root &root : phase.epilogue) {
    if (std::optional<Access> access = getAccess(root.op))
      note(access->viewType().getElementType());
    for (Value value : analysis.phases.cone(root)) {
      note(tile::getElement(value.getType()));
      if (Operation *op = value.getDefiningOp())
        if (std::optional<Access> access = getAccess(op))
          note(access->viewType().getElementType());
    }
  }
}

void NestPlanner::collectBuffers() {
  llvm::SetVector<Value> inMemory;
  for (const Root &root : phase.roots) {
    if (root.kind == Root::Kind::Materialize)
      inMemory.insert(root.value);
    for (Value value : analysis.phases.cone(root)) {
      Operation *op = value.getDefiningOp();
      if (isa<RankedTensorType>(value.getType()) &&
          (!op || !isDeferred(op) || analysis.phases.isMaterialized(value)))
        inMemory.insert(value);
    }
  }
  for (Value value : inMemory) {
    StringAttr innermost = layouts.lookup(value);
    if (!innermost)
      innermost = layoutFor(value, analysis.phases, layouts);
    buffers.push_back({tile::getDims(value.getType()), innermost});
  }
}

bool NestPlanner::isAdjacent(const Buffer &buffer, StringAttr dim) const {
  if (buffer.innermost)
    return buffer.innermost == dim;
  for (StringAttr other : llvm::reverse(buffer.dims)) {
    if (other == dim)
      return true;
    if (analysis.dims.extent(other) != 1)
      return false;
  }
  return false;
}

std::optional<int64_t> steppedAlong(const Access &access, StringAttr dim,
                                    const KernelAnalysis &analysis,
                                    const Target &target) {
  // As many vectors are loaded as the step is long.
  constexpr int64_t longest = 4;
  Type element = access.viewType().getElementType();
  const bool masks = element.getIntOrFloatBitWidth() < 32
                         ? target.hasMaskedByteAccess
                         : target.hasMaskedAccess;
  if (access.writes || !masks)
    return std::nullopt;
  std::optional<int64_t> step;
  for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
    const Access::Axis &described = access.axes[axis];
    if (described.offset &&
        llvm::is_contained(tile::getDims(described.offset.getType()), dim))
      return std::nullopt;
    if (described.dim != dim)
      continue;
    if (step || described.step == 1 || described.step < -longest ||
        described.step > longest || !analysis.strides.isUnit(access, axis) ||
        analysis.accesses.stepMayOverflow(described))
      return std::nullopt;
    step = described.step;
  }
  return step;
}

bool NestPlanner::maySteppedPay(StringAttr dim) const {
  auto contract = phase.roots.size() == 1
                      ? dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op)
                      : tile::ContractOp();
  return !contract || rowsOfVectors(dim).isShared ||
         llvm::none_of(phase.kept, [&](StringAttr other) {
           const RowsOfVectors rows = rowsOfVectors(other);
           return other != dim && rows.isShared && !rows.isSecond;
         });
}

AxisUse NestPlanner::useAlong(StringAttr dim) const {
  AxisUse use{squares->buffers(dim, /*adjacent=*/true),
              squares->buffers(dim, /*adjacent=*/false)};
  for (const Access &access : accesses) {
    bool varies = false, adjacent = true;
    for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
      const Access::Axis &described = access.axes[axis];
      bool inOffset =
          described.offset &&
          llvm::is_contained(tile::getDims(described.offset.getType()), dim);
      if (described.dim != dim && !inOffset)
        continue;
      adjacent &= !varies && !inOffset && described.step == 1 &&
                  analysis.strides.isUnit(access, axis);
      varies = true;
    }
    if (varies && isPrepacked(access)) {
      // Along the result, and along nothing else.
      const bool isKept = llvm::is_contained(phase.kept, dim);
      ++(isKept ? use.adjacent : use.apart);
      use.apart += !isKept;
    } else if (varies && steppedAlong(access, dim, analysis, target) &&
               maySteppedPay(dim))
      ++use.stepped;
    else if (varies)
      ++(adjacent ? use.adjacent : use.apart);
  }
  for (const Buffer &buffer : buffers)
    if (llvm::is_contained(buffer.dims, dim))
      ++(isAdjacent(buffer, dim) ? use.adjacent : use.apart);
  return use;
}

RowsOfVectors NestPlanner::rowsOfVectors(StringAttr dim) const {
  RowsOfVectors rows = tessera::rowsOfVectors(phase, dim, planning);
  return choice.packs == false && rows.copied > 0 ? RowsOfVectors() : rows;
}

bool NestPlanner::isOrdered() const {
  for (const Root &root : phase.roots) {
    if (!root.op)
      continue;
    if (auto reduce = dyn_cast<tile::ReduceOp>(root.op))
      if (reduce.getOrder() != tile::Order::Unordered)
        return true;
    if (auto contract = dyn_cast<tile::ContractOp>(root.op))
      if (contract.getOrder() != tile::Order::Unordered)
        return true;
    if (auto scan = dyn_cast<tile::ScanOp>(root.op))
      if (!isFreeScan(scan))
        return true;
  }
  return false;
}

int64_t NestPlanner::mostResults() const {
  int64_t results = std::max<int64_t>(runningResults(), 1);
  if (tiled)
    results = registersPerVector(tiled);
  return std::max<int64_t>(1, (target.vectorRegisters - 4) / results);
}

int64_t NestPlanner::runningResults() const {
  int64_t count = 0;
  for (const Root &root : phase.roots) {
    auto reduce = dyn_cast_or_null<tile::ReduceOp>(root.op);
    // Sums of deviations are computed from another's.
    if (root.kind == Root::Kind::Reduce &&
        root.dependence.form != Dependence::Form::Deviation)
      count += int64_t(reduce.getInputs().size()) *
               (reduce.getCombiner() == tile::Combiner::Add ? 1 : 2);
  }
  return count;
}

} // namespace tessera
