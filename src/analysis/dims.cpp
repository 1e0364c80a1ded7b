//===- dims.cpp - Extents of a kernel's dimensions ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

std::optional<int64_t> constantIndex(Value value) {
  APInt constant;
  if (value && matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 64)
    return constant.getSExtValue();
  return std::nullopt;
}

DimTable::DimTable(tile::KernelOp kernel) {
  kernel.walk([&](tile::DimOp dim) { dims[dim.getName()] = dim; });
}

tile::DimOp DimTable::declaration(StringAttr dim) const {
  auto it = dims.find(dim.getValue());
  return it == dims.end() ? tile::DimOp() : it->second;
}

std::optional<int64_t> DimTable::extent(StringAttr dim) const {
  tile::DimOp op = declaration(dim);
  return op ? constantIndex(op.getExtent()) : std::nullopt;
}

/// The operands that a range or bound of `index` is computed from.
static OperandRange sources(Value index) {
  Operation *op = index.getDefiningOp();
  if (op && isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinSIOp,
                arith::MaxSIOp, arith::IndexCastOp, tile::CastOp,
                tile::BroadcastOp, tile::TransposeOp>(op))
    return op->getOperands();
  return OperandRange(nullptr, 0);
}

/// What `compute` makes of `index`, after everything that it depends on:
/// expressions may be longer than a stack is deep.
template <typename Known, typename Compute>
static Known computeInOrder(Value index, llvm::DenseMap<Value, Known> &known,
                            Compute compute) {
  SmallVector<Value> stack{index};
  while (!stack.empty()) {
    Value value = stack.back();
    size_t before = stack.size();
    if (!known.contains(value))
      for (Value source : sources(value))
        if (!known.contains(source))
          stack.push_back(source);
    if (stack.size() > before)
      continue;
    if (!known.contains(value)) {
      Known computed = compute(value);
      known[value] = computed;
    }
    stack.pop_back();
  }
  return known.lookup(index);
}

int64_t DimTable::upperBound(Value index) const {
  return computeInOrder(index, bounds,
                        [&](Value value) { return computeUpperBound(value); });
}

int64_t DimTable::computeUpperBound(Value index) const {
  IndexRange values = range(index);
  if (values.known)
    return values.high;
  Operation *op = index.getDefiningOp();
  if (op && isa<arith::MinSIOp>(op))
    return std::min(upperBound(op->getOperand(0)),
                    upperBound(op->getOperand(1)));
  if (op && isa<arith::MaxSIOp>(op))
    return std::max(upperBound(op->getOperand(0)),
                    upperBound(op->getOperand(1)));
  if (op && isa<tile::CastOp, arith::IndexCastOp>(op)) {
    Type from = op->getOperand(0).getType();
    if ((from.isIndex() || from.isInteger(64)) &&
        (index.getType().isIndex() || index.getType().isInteger(64)))
      return upperBound(op->getOperand(0));
  }
  return INT64_MAX;
}

std::optional<int64_t> DimTable::extentBound(StringAttr dim) const {
  tile::DimOp op = declaration(dim);
  if (!op)
    return std::nullopt;
  int64_t bound = upperBound(op.getExtent());
  if (bound == INT64_MAX)
    return std::nullopt;
  return std::max<int64_t>(bound, 0);
}

std::optional<int64_t> DimTable::elements(ArrayRef<StringAttr> list) const {
  int64_t product = 1;
  for (StringAttr dim : list) {
    std::optional<int64_t> size = extent(dim);
    if (!size || __builtin_mul_overflow(product, *size, &product))
      return std::nullopt;
  }
  return product;
}

/// The range of `op(a, b)` from its corner values; unknown on overflow.
template <typename Op>
static IndexRange corners(IndexRange a, IndexRange b, Op op) {
  if (!a.known || !b.known)
    return {};
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t x : {a.low, a.high})
    for (int64_t y : {b.low, b.high}) {
      int64_t value;
      if (op(x, y, &value))
        return {};
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return IndexRange::of(low, high);
}

IndexRange DimTable::range(Value index) const {
  return computeInOrder(index, ranges,
                        [&](Value value) { return computeRange(value); });
}

IndexRange DimTable::computeRange(Value index) const {
  if (std::optional<int64_t> constant = constantIndex(index))
    return IndexRange::of(*constant, *constant);
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    Operation *parent = argument.getOwner()->getParentOp();
    StringAttr dim;
    if (auto parallel = dyn_cast<tile::ParallelOp>(parent))
      dim = cast<StringAttr>(parallel.getDims()[argument.getArgNumber()]);
    else if (argument.getArgNumber() == 0) {
      if (auto serial = dyn_cast<tile::SerialOp>(parent))
        dim = serial.getDimAttr();
      else if (auto pipeline = dyn_cast<tile::PipelineOp>(parent))
        dim = pipeline.getDimAttr();
      else if (auto fold = dyn_cast<tile::FoldOp>(parent))
        dim = fold.getDimAttr();
    }
    if (!dim)
      return {};
    std::optional<int64_t> size = extent(dim);
    return size && *size > 0 ? IndexRange::of(0, *size - 1) : IndexRange();
  }
  Operation *op = index.getDefiningOp();
  // Of all elements of a tile; narrower ones may wrap.
  if (auto type = dyn_cast<RankedTensorType>(index.getType());
      type && !type.getElementType().isInteger(64) &&
      !type.getElementType().isIndex())
    return {};
  if (auto iota = dyn_cast<tile::IotaOp>(op)) {
    std::optional<int64_t> size = extent(iota.getDimAttr());
    return size && *size > 0 ? IndexRange::of(0, *size - 1) : IndexRange();
  }
  if (isa<tile::BroadcastOp, tile::TransposeOp>(op))
    return range(op->getOperand(0));
  auto binary = [&](auto apply) {
    return corners(range(op->getOperand(0)), range(op->getOperand(1)), apply);
  };
  if (isa<arith::AddIOp>(op))
    return binary([](int64_t x, int64_t y, int64_t *r) {
      return __builtin_add_overflow(x, y, r);
    });
  if (isa<arith::SubIOp>(op))
    return binary([](int64_t x, int64_t y, int64_t *r) {
      return __builtin_sub_overflow(x, y, r);
    });
  if (isa<arith::MulIOp>(op))
    return binary([](int64_t x, int64_t y, int64_t *r) {
      return __builtin_mul_overflow(x, y, r);
    });
  if (isa<arith::MinSIOp>(op) || isa<arith::MaxSIOp>(op)) {
    bool isMin = isa<arith::MinSIOp>(op);
    return binary([&](int64_t x, int64_t y, int64_t *r) {
      *r = isMin ? std::min(x, y) : std::max(x, y);
      return false;
    });
  }
  if (isa<arith::IndexCastOp>(op) &&
      (op->getOperand(0).getType().isIndex() ||
       op->getOperand(0).getType().isInteger(64)))
    return range(op->getOperand(0));
  if (auto conversion = dyn_cast<tile::CastOp>(op);
      conversion &&
      (conversion.getInput().getType().isIndex() ||
       conversion.getInput().getType().isInteger(64)) &&
      (index.getType().isIndex() || index.getType().isInteger(64)))
    return range(conversion.getInput());
  return {};
}

} // namespace tessera
