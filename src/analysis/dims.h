//===- dims.h - Extents of a kernel's dimensions ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is known about the extents of dimensions and the ranges of index values
// once the extents of the views are known (dialect/specialize.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_DIMS_H
#define TESSERA_ANALYSIS_DIMS_H

#include "dialect/tile_dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace tessera {

/// An inclusive range of index values; unbounded when `known` is false.
struct IndexRange {
  bool known = false;
  int64_t low = 0;
  int64_t high = 0;

  static IndexRange of(int64_t low, int64_t high) { return {true, low, high}; }
};

class DimTable {
public:
  explicit DimTable(tile::KernelOp kernel);

  /// The extent, if it is a constant.
  std::optional<int64_t> extent(mlir::StringAttr dim) const;

  /// An upper bound of the extent: the extent itself if it is constant, or what
  /// a minimum with a constant implies where data decides.
  std::optional<int64_t> extentBound(mlir::StringAttr dim) const;

  /// The tile.dim that declares `dim`.
  tile::DimOp declaration(mlir::StringAttr dim) const;

  /// The product of the extents, if all are constant and it fits.
  std::optional<int64_t> elements(llvm::ArrayRef<mlir::StringAttr> dims) const;

  /// The values an index or integer scalar can take.
  IndexRange range(mlir::Value index) const;

private:
  IndexRange computeRange(mlir::Value index) const;
  int64_t upperBound(mlir::Value index) const;
  int64_t computeUpperBound(mlir::Value index) const;

  // Values are shared, so an expression has far more paths than operations.
  mutable llvm::DenseMap<mlir::Value, IndexRange> ranges;
  mutable llvm::DenseMap<mlir::Value, int64_t> bounds;

  llvm::StringMap<tile::DimOp> dims;
};

/// The value of a constant index or integer scalar.
std::optional<int64_t> constantIndex(mlir::Value value);

} // namespace tessera

#endif // TESSERA_ANALYSIS_DIMS_H
