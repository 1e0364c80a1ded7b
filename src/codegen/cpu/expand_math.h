//===- expand_math.h - Math functions as arithmetic -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_EXPAND_MATH_H
#define TESSERA_CODEGEN_CPU_EXPAND_MATH_H

#include "dialect/tile_dialect.h"
#include "target/target.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Purpose: forms fused multiply-adds between the author's operations, the same
/// in a vector body and its tail. Precondition: before expandMath, whose
/// expansions must keep their own roundings. Does nothing for the strict tier
/// or a target without the instruction. Returns the number formed.
int64_t formMultiplyAdds(mlir::ModuleOp module, const Target &target,
                         tile::Tier tier);

/// Functions whose evaluations would take more instructions than this, together
/// in a module, are called instead: kernels with very many of them would take
/// seconds and gigabytes to compile.
inline constexpr int64_t mostInlinedMath = 8000;

/// How elementary functions stand in the code.
struct MathForm {
  /// Instructions of all of them, evaluated where they are used.
  int64_t inlined = 0;
  /// Functions of the module that are called instead, and how often.
  int64_t called = 0, calls = 0;
};

/// Purpose: replaces elementary functions by arithmetic on the same lanes
/// (vector_math.h), in their place or, beyond mostInlinedMath, in functions of
/// the module that are called; the arithmetic, and so every bit, is the same.
/// Postcondition: no math op is left but those that are one instruction or one
/// exact LLVM intrinsic.
MathForm expandMath(mlir::ModuleOp module, const Target &target,
                    tile::Tier tier);

} // namespace tessera

#endif // TESSERA_CODEGEN_CPU_EXPAND_MATH_H
