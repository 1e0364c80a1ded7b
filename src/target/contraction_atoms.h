//===- contraction_atoms.h - Products of groups of elements -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction atom is an instruction, or a few, that multiply groups of
// narrow elements along a contraction's reduced dimension and add the products
// to a wide accumulator. A lane of its operands is one group: a word of 32
// bits. Which atoms a target has stands in its row (target.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_CONTRACTION_ATOMS_H
#define TESSERA_TARGET_CONTRACTION_ATOMS_H

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

/// What the elements of an atom's operands are where they are stored.
enum class AtomElements {
  /// bf16, accumulated in f32.
  BF16,
  /// Integers of 8 bits with or without sign, accumulated in i32: exact, modulo
  /// 2^32.
  Int8,
};

/// One atom: a row of the table in contraction_atoms.cpp.
struct ContractionAtom {
  std::string_view name;
  /// The instructions, for people.
  std::string_view instructions;
  AtomElements elements;
  /// Elements in a word; each takes 32 / group bits there.
  int64_t group;
  /// LLVM's intrinsics by the width of vectors: 128, 256 and 512 bits; null for
  /// none.
  std::array<const char *, 3> intrinsics;
  /// Whether the intrinsic adds to an accumulator; else its result is added.
  bool accumulates;
  /// Whether the elements of the first operand have no sign and those of the
  /// second one have; else those of both have.
  bool isFirstUnsigned;
  /// Whether subnormal elements, products and sums count as zero.
  bool flushesSubnormals;
  /// For an atom whose operands are tile registers of 16 rows of 16 words:
  /// LLVM's intrinsics, by whether the rows' elements have no sign (2) and
  /// whether the vectors' have none (1).
  std::array<const char *, 4> tileIntrinsics = {};

  bool isTile() const { return tileIntrinsics[0] != nullptr; }
  const char *tileIntrinsic(bool rowsUnsigned, bool vectorsUnsigned) const {
    return tileIntrinsics[2 * rowsUnsigned + vectorsUnsigned];
  }
  /// Elements along the reduced dimension that are multiplied at once; what is
  /// copied is filled up with zeros to a multiple of them.
  int64_t wholeElements() const { return isTile() ? 16 * group : group; }
  int64_t elementBits() const { return 32 / group; }
  const char *intrinsic(int64_t vectorBits) const {
    return intrinsics[vectorBits >= 512 ? 2 : vectorBits >= 256 ? 1 : 0];
  }
};

/// The atom of a name, or null.
const ContractionAtom *findAtom(std::string_view name);
/// The atom that an intrinsic of LLVM is the instruction of, or null.
const ContractionAtom *findAtomOf(std::string_view intrinsic);

} // namespace tessera

#endif // TESSERA_TARGET_CONTRACTION_ATOMS_H
