//===- affine.h - Indices as factors of a grid's coordinates ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An index of a program: factor * coordinate for each dimension of the grid,
// and the range of what is left.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_AFFINE_H
#define TESSERA_ANALYSIS_AFFINE_H

#include "analysis/dims.h"

namespace tessera {

/// The sums of two ranges, and a range times a factor; unknown on overflow.
IndexRange sum(IndexRange a, IndexRange b);
IndexRange scaled(IndexRange a, int64_t factor);

/// An index as factors of a grid's coordinates and the range of the rest.
struct AffineIndex {
  llvm::SmallVector<int64_t, 3> factors;
  IndexRange rest;

  bool isConstant() const {
    return rest.known && rest.low == rest.high &&
           llvm::all_of(factors, [](int64_t factor) { return factor == 0; });
  }
};

class AffineReader {
public:
  /// `grid` may be null: there are no coordinates then.
  AffineReader(tile::ParallelOp grid, const DimTable &dims)
      : grid(grid), dims(dims) {}

  AffineIndex read(mlir::Value index, unsigned depth = 0);

private:
  AffineIndex constant(IndexRange range);
  AffineIndex compute(mlir::Value index, unsigned depth);
  AffineIndex combine(const AffineIndex &x, int64_t a, const AffineIndex &y,
                      int64_t b);

  tile::ParallelOp grid;
  const DimTable &dims;
  // Values are shared, so an expression has far more paths than operations.
  llvm::DenseMap<mlir::Value, AffineIndex> known;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_AFFINE_H
