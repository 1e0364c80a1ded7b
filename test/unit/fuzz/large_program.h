//===- fuzz/large_program.h - Programs with very much in them --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random programs whose code is long: chains of functions and of arithmetic,
// values with very many uses, many outputs, many reductions that depend on one
// another or do not. What they compute stays bounded, so that errors do not
// grow along a chain without end.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_FUZZ_LARGE_PROGRAM_H
#define TESSERA_TEST_UNIT_FUZZ_LARGE_PROGRAM_H

#include "random_program.h"

namespace tessera::fuzz {

enum class LargeKind : uint8_t {
  /// One function after another, all the same or any.
  Functions,
  /// x / 2 (1 + erf(x / sqrt 2)) of itself.
  Gelus,
  /// Arithmetic on what came shortly before.
  Arithmetic,
  /// Functions of one value, added up.
  FanOut,
  /// Each value is used until the end.
  LongLived,
  /// Reductions of what the one before gave.
  Reductions,
  /// Reductions of functions of one value.
  ManyReductions,
  Outputs,
  /// Any of these, one after another.
  Mixed,
};
inline constexpr int64_t largeKinds = 9;

const char *name(LargeKind kind);

/// Extents of the arrays, of programs and of their tiles.
struct LargeShape {
  int64_t rows = 1;
  /// Of tiles; one of two dimensions where `middle` is not 0.
  int64_t middle = 0;
  int64_t columns = 1;
};

/// A program of about `length` operations beside the memory's.
RandomProgram generateLarge(LargeKind kind, int64_t length, DType storage,
                            LargeShape shape, uint64_t seed);

} // namespace tessera::fuzz

#endif // TESSERA_TEST_UNIT_FUZZ_LARGE_PROGRAM_H
