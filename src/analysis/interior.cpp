//===- interior.cpp - Programs that touch no edge -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/interior.h"

#include "analysis/affine.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// What step * coordinate of the axis's dimension adds to its offset.
IndexRange dimRange(const Access::Axis &axis, const DimTable &dims) {
  if (!axis.dim)
    return IndexRange::of(0, 0);
  std::optional<int64_t> extent = dims.extent(axis.dim);
  if (!extent || *extent == 0)
    return {};
  return scaled(IndexRange::of(0, *extent - 1), axis.step);
}

bool isScalarOffset(const Access::Axis &axis) {
  return axis.offset && !isa<RankedTensorType>(axis.offset.getType());
}

/// The coordinates p at which factor * p + rest is in [0, extent).
IndexRange solve(int64_t factor, IndexRange rest, int64_t extent) {
  // 0 <= factor * p + rest.low, factor * p + rest.high <= extent - 1.
  int64_t least, most;
  if (factor == INT64_MIN || __builtin_sub_overflow(0, rest.low, &least) ||
      __builtin_sub_overflow(extent - 1, rest.high, &most))
    return {};
  if (factor > 0)
    return IndexRange::of(llvm::divideCeilSigned(least, factor),
                          llvm::divideFloorSigned(most, factor));
  if (least == INT64_MIN || most == INT64_MIN)
    return {};
  return IndexRange::of(llvm::divideCeilSigned(-most, -factor),
                        llvm::divideFloorSigned(-least, -factor));
}

IndexRange rangeOf(const AffineIndex &index, const ProgramBox &box) {
  IndexRange range = index.rest;
  for (auto [factor, coordinates] : llvm::zip(index.factors, box.coordinates))
    range = sum(range, scaled(coordinates, factor));
  return range;
}

} // namespace

IndexRange ProgramBox::range(Value index, const DimTable &dims) const {
  return rangeOf(AffineReader(grid, dims).read(index), *this);
}

double ProgramBox::share(Value index, const DimTable &dims) const {
  AffineIndex affine = AffineReader(grid, dims).read(index);
  double share = affine.isConstant() ? 0 : 1;
  tile::ParallelOp op = grid;
  for (auto [number, range] : llvm::enumerate(coordinates))
    if (affine.factors[number] != 0)
      share *= double(range.high - range.low + 1) /
               double(*dims.extent(cast<StringAttr>(op.getDims()[number])));
  return share;
}

bool ProgramBox::keepsInside(const Access &access, unsigned axis,
                             const AccessAnalysis &accesses) const {
  const Access::Axis &described = access.axes[axis];
  if (!isScalarOffset(described))
    return false;
  IndexRange indices = sum(range(described.offset, accesses.dimTable()),
                           dimRange(described, accesses.dimTable()));
  return indices.known && indices.low >= 0 &&
         indices.high < accesses.extent(access, axis);
}

std::optional<ProgramBox> interiorPrograms(tile::ParallelOp grid,
                                           const AccessAnalysis &accesses) {
  const DimTable &dims = accesses.dimTable();
  ProgramBox box;
  box.grid = grid;
  box.total = 1;
  for (auto dim : grid.getDims().getAsRange<StringAttr>()) {
    std::optional<int64_t> extent = dims.extent(dim);
    if (!extent || *extent <= 0 ||
        __builtin_mul_overflow(box.total, *extent, &box.total))
      return std::nullopt;
    box.coordinates.push_back(IndexRange::of(0, *extent - 1));
  }
  AffineReader reader(grid, dims);
  grid.getBody().walk([&](Operation *op) {
    std::optional<Access> access = getAccess(op);
    if (!access)
      return;
    for (unsigned axis = 0; axis < access->axes.size(); ++axis) {
      const Access::Axis &described = access->axes[axis];
      if (!accesses.needsCheck(*access, axis) || !isScalarOffset(described))
        continue;
      AffineIndex offset = reader.read(described.offset);
      IndexRange rest = sum(offset.rest, dimRange(described, dims));
      auto isUsed = [](int64_t factor) { return factor != 0; };
      if (!rest.known || llvm::count_if(offset.factors, isUsed) != 1)
        continue;
      size_t number =
          llvm::find_if(offset.factors, isUsed) - offset.factors.begin();
      IndexRange inside =
          solve(offset.factors[number], rest, accesses.extent(*access, axis));
      IndexRange &range = box.coordinates[number];
      inside.low = std::max(inside.low, range.low);
      inside.high = std::min(inside.high, range.high);
      // Of programs that all leave it nothing can be set apart.
      if (inside.known && inside.low <= inside.high)
        range = inside;
    }
  });
  box.count = 1;
  for (const IndexRange &range : box.coordinates)
    box.count *= range.high - range.low + 1;
  if (box.count == box.total)
    return std::nullopt;
  return box;
}

} // namespace tessera
