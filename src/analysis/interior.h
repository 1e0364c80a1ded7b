//===- interior.h - Programs that touch no edge -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a block does not divide an array, the last programs of a grid hang over
// its end. Whether a program does follows from its coordinates: an index is
// inside the view if factor * coordinate + rest is, rest being a range. The
// programs that stay inside are a box of coordinates.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_INTERIOR_H
#define TESSERA_ANALYSIS_INTERIOR_H

#include "analysis/access.h"

namespace tessera {

/// Programs of a grid: a range of coordinates per dimension.
struct ProgramBox {
  tile::ParallelOp grid;
  llvm::SmallVector<IndexRange, 3> coordinates;
  /// Programs in the box, and in all.
  int64_t count = 0;
  int64_t total = 0;

  /// The values that an index scalar takes in these programs.
  IndexRange range(mlir::Value index, const DimTable &dims) const;

  /// The share of all programs whose coordinates are in the box, as far as the
  /// index depends on them; 0 where it depends on none.
  double share(mlir::Value index, const DimTable &dims) const;

  /// Whether the axis stays inside its view in all of these programs, at every
  /// coordinate of its dimension.
  bool keepsInside(const Access &access, unsigned axis,
                   const AccessAnalysis &accesses) const;
};

/// The programs in which all accesses stay inside that leave their views in
/// some programs only; std::nullopt where there are no such programs, or no
/// others. Accesses that leave their views in every program, or for other
/// reasons than the program's coordinates, do not count.
std::optional<ProgramBox> interiorPrograms(tile::ParallelOp grid,
                                           const AccessAnalysis &accesses);

} // namespace tessera

#endif // TESSERA_ANALYSIS_INTERIOR_H
