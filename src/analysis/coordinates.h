//===- coordinates.h - What of a program a tile depends on ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_COORDINATES_H
#define TESSERA_ANALYSIS_COORDINATES_H

#include "analysis/phases.h"

#include <optional>

namespace tessera {

/// The coordinates of a grid's program, by their numbers, that the value of a
/// tile depends on. std::nullopt if something else may change it from program
/// to program, or before the program that it is computed in has ended.
std::optional<llvm::SmallVector<unsigned>>
coordinatesOf(mlir::Value tile, tile::ParallelOp grid,
              const PhaseAnalysis &phases, const AccessAnalysis &accesses);

} // namespace tessera

#endif // TESSERA_ANALYSIS_COORDINATES_H
