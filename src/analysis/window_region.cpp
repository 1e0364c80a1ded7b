//===- window_region.cpp - What the windows of a load cover ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/window_region.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// What an index grows by from one coordinate to the next, along each dimension
/// that it depends on.
using Steps = llvm::SmallMapVector<StringAttr, int64_t, 4>;

/// Longer expressions are not read.
constexpr unsigned deepest = 16;

std::optional<int64_t> constantOf(Value index, const DimTable &dims) {
  IndexRange range = dims.range(index);
  return range.known && range.low == range.high ? std::optional(range.low)
                                                : std::nullopt;
}

std::optional<Steps> stepsOf(Value index, const DimTable &dims,
                             unsigned depth = 0) {
  auto isIndex = [](Type type) { return type.isIndex() || type.isInteger(64); };
  if (!isa<RankedTensorType>(index.getType()) || constantOf(index, dims))
    return Steps();
  Operation *op = index.getDefiningOp();
  if (!op || depth == deepest)
    return std::nullopt;
  if (auto iota = dyn_cast<tile::IotaOp>(op)) {
    Steps steps;
    steps[iota.getDimAttr()] = 1;
    return steps;
  }
  if (isa<tile::BroadcastOp, tile::TransposeOp>(op))
    return stepsOf(op->getOperand(0), dims, depth + 1);
  if (isa<tile::CastOp>(op))
    return isIndex(tile::getElement(op->getOperand(0).getType())) &&
                   isIndex(tile::getElement(index.getType()))
               ? stepsOf(op->getOperand(0), dims, depth + 1)
               : std::nullopt;
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) ||
      !isIndex(tile::getElement(index.getType())))
    return std::nullopt;
  // a times the one, b times the other.
  int64_t a = 1, b = isa<arith::SubIOp>(op) ? -1 : 1;
  if (isa<arith::MulIOp>(op)) {
    std::optional<int64_t> x = constantOf(op->getOperand(0), dims);
    std::optional<int64_t> y = constantOf(op->getOperand(1), dims);
    if (!x && !y)
      return std::nullopt;
    a = y.value_or(0);
    b = y ? 0 : *x;
  }
  Steps sum;
  for (auto [operand, factor] :
       {std::pair(op->getOperand(0), a), std::pair(op->getOperand(1), b)}) {
    if (factor == 0)
      continue;
    std::optional<Steps> steps = stepsOf(operand, dims, depth + 1);
    if (!steps)
      return std::nullopt;
    for (auto [dim, step] : *steps) {
      int64_t scaled;
      if (__builtin_mul_overflow(step, factor, &scaled) ||
          __builtin_add_overflow(sum[dim], scaled, &sum[dim]))
        return std::nullopt;
    }
  }
  return sum;
}

/// Of one axis of the array.
struct AxisRegion {
  Steps steps;
  int64_t span = 1;
  /// The dimension that runs over it, if several are added.
  StringAttr runner;
};

std::optional<AxisRegion> regionOf(const Access::Axis &axis,
                                   const DimTable &dims) {
  AxisRegion region;
  if (axis.offset) {
    std::optional<Steps> steps = stepsOf(axis.offset, dims);
    if (!steps)
      return std::nullopt;
    region.steps = *steps;
  }
  if (axis.dim) {
    if (region.steps.contains(axis.dim))
      return std::nullopt;
    region.steps[axis.dim] = axis.step;
    // Whose elements are adjacent, if any are.
    if (axis.step == 1)
      region.runner = axis.dim;
  }
  for (auto &[dim, step] : region.steps) {
    std::optional<int64_t> extent = dims.extent(dim);
    if (!extent || *extent < 1)
      return std::nullopt;
    if (region.steps.size() == 1) {
      region.span = *extent;
      step = 1;
      continue;
    }
    int64_t reach;
    if (step < 1 || __builtin_mul_overflow(*extent - 1, step, &reach) ||
        __builtin_add_overflow(region.span, reach, &region.span))
      return std::nullopt;
  }
  if (region.steps.size() == 1)
    region.runner = region.steps.front().first;
  if (!region.steps.empty() && !region.runner)
    return std::nullopt;
  return region;
}

/// The elements that a row takes: of long ones each begins with a line, so that
/// vectors are written to whole lines.
int64_t placeOf(int64_t span, int64_t bytes) {
  constexpr int64_t line = 64;
  const int64_t perLine = std::max<int64_t>(line / bytes, 1);
  return span > 2 * perLine ? llvm::alignTo(span, perLine) : span;
}

} // namespace

std::optional<WindowRegion> windowRegion(Value tile, const DimTable &dims,
                                         const PhaseAnalysis &phases) {
  while (auto moved = tile.getDefiningOp<tile::TransposeOp>()) {
    if (phases.isMaterialized(tile))
      return std::nullopt;
    tile = moved.getInput();
  }
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load || phases.isMaterialized(tile) || load.getMask() ||
      (load.getFill() && isa<RankedTensorType>(load.getFill().getType())))
    return std::nullopt;
  const Access access = *getAccess(load);
  WindowRegion region;
  SmallVector<AxisRegion> axes;
  for (const Access::Axis &axis : access.axes) {
    std::optional<AxisRegion> found = regionOf(axis, dims);
    if (!found)
      return std::nullopt;
    axes.push_back(std::move(*found));
  }
  const int64_t bytes = std::max<int64_t>(
      tile::getElement(tile.getType()).getIntOrFloatBitWidth() / 8, 1);
  bool isInnermost = true;
  for (const AxisRegion &axis : llvm::reverse(axes)) {
    // The runner is the innermost.
    SmallVector<StringAttr> inner;
    for (auto [dim, step] : axis.steps)
      inner.insert(dim == axis.runner ? inner.begin() : inner.end(), dim);
    for (StringAttr dim : inner) {
      int64_t stride;
      if (llvm::is_contained(region.dims, dim) ||
          __builtin_mul_overflow(axis.steps.lookup(dim), region.elements,
                                 &stride))
        return std::nullopt;
      region.dims.push_back(dim);
      region.strides.push_back(stride);
      if (axis.steps.size() > 1)
        region.spans.push_back({dim, dim == axis.runner ? axis.span : 1});
    }
    const int64_t place = isInnermost ? placeOf(axis.span, bytes) : axis.span;
    if (__builtin_mul_overflow(region.elements, place, &region.elements))
      return std::nullopt;
    isInnermost &= axis.steps.empty();
  }
  if (region.spans.empty())
    return std::nullopt;
  // Along others, as those of one coordinate, all elements are the same.
  for (StringAttr dim : tile::getDims(tile.getType()))
    if (!llvm::is_contained(region.dims, dim)) {
      region.dims.push_back(dim);
      region.strides.push_back(0);
      region.spans.push_back({dim, 1});
    }
  std::reverse(region.dims.begin(), region.dims.end());
  std::reverse(region.strides.begin(), region.strides.end());
  return region;
}

} // namespace tessera
