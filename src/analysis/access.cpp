//===- access.cpp - What accesses of views may touch ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/access.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tessera {

template <typename Op> static Access describe(Op op) {
  Access access;
  access.op = op;
  access.view = cast<BlockArgument>(op.getView());
  access.mask = op.getMask();
  access.promised = op.getBounds() == tile::Bounds::Promised;
  for (unsigned axis = 0, end = op.getAxisDims().size(); axis < end; ++axis) {
    Access::Axis &described = access.axes.emplace_back();
    if (!op.getAxisDim(axis).empty())
      described.dim = cast<StringAttr>(op.getAxisDims()[axis]);
    described.step = op.getAxisStep(axis);
    described.offset = op.getAxisOffset(axis);
    described.bound = op.getBoundDim(axis);
  }
  return access;
}

std::optional<Access> getAccess(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    Access access = describe(load);
    access.fill = load.getFill();
    return access;
  }
  if (auto store = dyn_cast<tile::StoreOp>(op)) {
    Access access = describe(store);
    access.writes = true;
    return access;
  }
  if (auto scatter = dyn_cast<tile::ScatterOp>(op)) {
    Access access = describe(scatter);
    access.writes = true;
    return access;
  }
  return std::nullopt;
}

IndexRange AccessAnalysis::range(const Access::Axis &axis) const {
  IndexRange total = IndexRange::of(0, 0);
  if (axis.dim) {
    std::optional<int64_t> extent = dims.extent(axis.dim);
    int64_t last;
    if (!extent || *extent == 0 ||
        __builtin_mul_overflow(*extent - 1, axis.step, &last))
      return {};
    total =
        IndexRange::of(std::min<int64_t>(0, last), std::max<int64_t>(0, last));
  }
  if (axis.offset) {
    IndexRange offset = dims.range(axis.offset);
    if (!offset.known ||
        __builtin_add_overflow(total.low, offset.low, &total.low) ||
        __builtin_add_overflow(total.high, offset.high, &total.high))
      return {};
  }
  return total;
}

bool AccessAnalysis::stepMayOverflow(const Access::Axis &axis) const {
  if (!axis.dim)
    return false;
  // No loop is longer than this.
  int64_t extent = dims.extent(axis.dim).value_or(int64_t(1) << 48);
  int64_t last, twice;
  return __builtin_mul_overflow(extent, axis.step, &last) ||
         __builtin_mul_overflow(last, 2, &twice);
}

bool AccessAnalysis::needsCheck(const Access &access, unsigned axis) const {
  if (access.promised || access.axes[axis].bound)
    return false;
  IndexRange indices = range(access.axes[axis]);
  return !indices.known || indices.low < 0 ||
         indices.high >= extent(access, axis);
}

bool dependsOnData(Value root) {
  SmallVector<Value> worklist{root};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!op) {
      // A carried value may hold anything the loop has read.
      auto argument = cast<BlockArgument>(value);
      Operation *parent = argument.getOwner()->getParentOp();
      if (isa<tile::SerialOp, tile::PipelineOp>(parent) &&
          argument.getArgNumber() > 0) {
        worklist.push_back(parent->getOperand(argument.getArgNumber() - 1));
        worklist.push_back(argument.getOwner()->getTerminator()->getOperand(
            argument.getArgNumber() - 1));
      }
      continue;
    }
    if (isa<tile::LoadOp>(op))
      return true;
    worklist.append(op->operand_begin(), op->operand_end());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!block.empty())
          worklist.append(block.back().operand_begin(),
                          block.back().operand_end());
  }
  return false;
}

bool AccessAnalysis::isDataDependent(const Access::Axis &axis) {
  return axis.offset && dependsOnData(axis.offset);
}

/// Whether the indices of one axis of `a` and `b` cannot be equal.
static bool areDisjoint(IndexRange a, IndexRange b) {
  return a.known && b.known && (a.high < b.low || b.high < a.low);
}

bool AccessAnalysis::mayConflict(const Access &a, const Access &b) const {
  if (!a.writes && !b.writes)
    return false;
  if (a.view != b.view) {
    if (alias == AliasMode::Disjoint ||
        (!a.viewType().isWritable() && !b.viewType().isWritable()))
      return false;
    // The same memory seen through other strides: indices say nothing.
    if (alias == AliasMode::Overlap || a.axes.size() != b.axes.size())
      return true;
  }
  for (auto [x, y] : llvm::zip(a.axes, b.axes))
    if (areDisjoint(range(x), range(y)))
      return false;
  return true;
}

bool AccessAnalysis::isPointwise(const Access &a, const Access &b) const {
  if (a.view != b.view && alias == AliasMode::Overlap)
    return false;
  if (a.axes.size() != b.axes.size())
    return false;
  for (auto [x, y] : llvm::zip(a.axes, b.axes))
    if (x.dim != y.dim || x.step != y.step || x.offset != y.offset ||
        (x.offset && isa<RankedTensorType>(x.offset.getType())))
      return false;
  return true;
}

} // namespace tessera
