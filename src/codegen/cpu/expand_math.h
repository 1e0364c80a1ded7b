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

/// Purpose: replaces elementary functions by arithmetic on the same lanes
/// (vector_math.h). Postcondition: no math op is left but those that are one
/// instruction or one exact LLVM intrinsic.
void expandMath(mlir::ModuleOp module, const Target &target, tile::Tier tier);

} // namespace tessera

#endif // TESSERA_CODEGEN_CPU_EXPAND_MATH_H
