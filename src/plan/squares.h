//===- squares.h - Where elements are transposed in registers ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the planner of a nest asks where arrays lie along different dimensions:
// whether an elementwise nest can transpose squares of elements in registers,
// so that all of its accesses are vectors, and whether an operand of a
// contraction can be copied by such a nest.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_SQUARES_H
#define TESSERA_PLAN_SQUARES_H

#include "plan/plan.h"

namespace tessera {

class Squares {
public:
  /// `accesses` are those of the phase, `layouts` those of the tiles in memory.
  Squares(const Phase &phase, const KernelAnalysis &analysis,
          llvm::ArrayRef<Access> accesses, const Layouts &layouts);

  /// The nest shall not transpose, though it could: `turned` is 0.
  void forgo() { isForgone = true; }

  /// Buffers that vary along the dimension and are, or are not, adjacent along
  /// it. Of nests that can transpose nothing none is counted.
  int64_t buffers(mlir::StringAttr dim, bool adjacent) const;

  /// The dimension that squares with lanes along `dim` have rows along; null
  /// where there are none.
  mlir::StringAttr partner(mlir::StringAttr dim) const;

  /// What lies apart along `dim` but side by side along its partner.
  int64_t turned(mlir::StringAttr dim) const;

  /// The rows of a square with so many lanes along `dim`: a power of two; 1 for
  /// none.
  int64_t mostRows(mlir::StringAttr dim, int64_t lanes,
                   const Target &target) const;

private:
  /// An array or a buffer at the coordinates of the nest.
  struct Place {
    llvm::SmallVector<mlir::StringAttr, 4> dims;
    /// Null for none.
    mlir::StringAttr adjacent;
    bool isBuffer = false;
  };

  int64_t turnedWith(mlir::StringAttr dim, mlir::StringAttr other) const;
  void addBuffer(llvm::ArrayRef<mlir::StringAttr> dims,
                 mlir::StringAttr innermost = {});
  void note(mlir::Type element);

  const Phase &phase;
  const KernelAnalysis &analysis;
  /// Empty where nothing can be transposed.
  llvm::SmallVector<Place> places;
  int64_t widestBits = 8;
  bool isForgone = false;
};

/// What the arrays hold that are accessed.
double bytesOfArrays(llvm::ArrayRef<Access> accesses,
                     const KernelAnalysis &analysis);

/// What vectors along a dimension of the result of a contraction have to offer.
struct RowsOfVectors {
  /// Whether enough rows of the result share each vector that is loaded.
  bool isShared = false;
  /// Whether rows of the result as it is kept lie along the dimension.
  bool areOfResult = false;
  /// Accesses of the operand with the vectors whose elements lie apart along
  /// the dimension, but side by side along another one of the operand's, which
  /// can be copied first.
  int64_t copied = 0;
  /// Whether vectors along another dimension need no copy, but the operand of
  /// the rows is read in windows: which vectors are better is a question of
  /// extents.
  bool isSecond = false;
};

/// If the phase is a contraction. Nothing is copied where vectors along another
/// dimension need no copy, unless it is this one that the result's rows lie
/// along, and the elements of the other operand, which lie apart then, are
/// near; or, as a second choice, the other operand is read in windows.
RowsOfVectors rowsOfVectors(const Phase &phase, mlir::StringAttr dim,
                            const Planning &planning);

} // namespace tessera

#endif // TESSERA_PLAN_SQUARES_H
