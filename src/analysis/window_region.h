//===- window_region.h - What the windows of a load cover -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A load whose index is a sum of several coordinates, x[2 i + k], has the same
// element at many coordinates: windows overlap. A dense copy of what all of
// them cover, their region, has each element once. Element (i, k) is at
// i * 2 + k there: the strides of the copy are the steps of the sum.
//
// One of the dimensions that are added, with step 1, runs over the whole region
// when it is copied, beyond its own extent, while the others stay at 0.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_WINDOW_REGION_H
#define TESSERA_ANALYSIS_WINDOW_REGION_H

#include "analysis/phases.h"

namespace tessera {

struct WindowRegion {
  /// The dimensions of the tile, the innermost of the region last.
  llvm::SmallVector<mlir::StringAttr> dims;
  /// By dimension, the elements of the region between neighbours along it.
  llvm::SmallVector<int64_t> strides;
  /// The coordinates of dimensions that are added which reach all of the
  /// region.
  CopiedSpans spans;
  int64_t elements = 1;
};

/// The region of a tile that is a load, or one with its dimensions moved;
/// std::nullopt where no dimensions are added, a mask or a fill varies, or an
/// extent or a step is not constant.
std::optional<WindowRegion> windowRegion(mlir::Value tile, const DimTable &dims,
                                         const PhaseAnalysis &phases);

} // namespace tessera

#endif // TESSERA_ANALYSIS_WINDOW_REGION_H
