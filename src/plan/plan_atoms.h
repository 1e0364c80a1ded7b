//===- plan_atoms.h - Operands that contraction atoms take ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_ATOMS_H
#define TESSERA_PLAN_PLAN_ATOMS_H

#include "plan/plan.h"
#include "target/contraction_atoms.h"

namespace tessera {

/// An operand of a contraction whose elements are the widened ones of a tile of
/// narrow elements.
struct NarrowOperand {
  /// At the same coordinates: bf16 elements as they are loaded (f32), or
  /// integers of 8 bits.
  mlir::Value source;
  AtomElements elements = AtomElements::BF16;
  bool isUnsigned = false;
};

std::optional<NarrowOperand> narrowOperand(mlir::Value operand);

/// The load that a tile's elements are, in any order of its dimensions; null
/// for other tiles and for what is kept in memory.
tile::LoadOp loadOf(mlir::Value tile, const PhaseAnalysis &phases);

/// Whether the elements of a group along `dim`, which lie in the view as far as
/// those of the first one do, are adjacent in memory.
bool liesInGroups(tile::LoadOp load, mlir::StringAttr dim,
                  const KernelAnalysis &analysis);

/// How the operands of a contraction in groups are taken.
struct AtomOperands {
  const ContractionAtom *atom = nullptr;
  NarrowOperand rows, vectors;
  /// The atom wants elements without sign and elements with sign, both operands
  /// have the same: the vectors' are 128 away from what they are.
  bool isShifted() const {
    return !atom->isTile() && atom->isFirstUnsigned &&
           rows.isUnsigned == vectors.isUnsigned;
  }
  /// What shifts each element of a word of bytes by 128.
  static constexpr int64_t shiftedWord = 0x80808080;
};

} // namespace tessera

#endif // TESSERA_PLAN_PLAN_ATOMS_H
