//===- elementwise.h - Elementwise Tile ops on lanes ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_ELEMENTWISE_H
#define TESSERA_REALIZE_CPU_ELEMENTWISE_H

#include "dialect/tile_dialect.h"
#include "realize/cpu/vector_emitter.h"

namespace tessera {

/// Whether `op` computes each element from the operands' elements at the same
/// position.
bool isElementwise(mlir::Operation *op);

/// Emits an elementwise op on operands that are scalars or vectors; null for an
/// op that is not elementwise.
mlir::Value emitElementwise(VectorEmitter &emit, mlir::Operation *op,
                            mlir::ValueRange operands);

/// combine(a, b) for a named combiner, with the exact meaning of the
/// elementwise op (NaN propagates through max and min, -0 is below +0).
mlir::Value emitCombine(VectorEmitter &emit, tile::Combiner combiner,
                        mlir::Value a, mlir::Value b);

/// The same, marked so that no multiply-add is formed from it: the result of an
/// ordered reduction is exact to the last bit in every tier.
mlir::Value emitOrderedCombine(VectorEmitter &emit, tile::Combiner combiner,
                               mlir::Value a, mlir::Value b);

/// The value that a reduction without elements has.
mlir::Value emitEmpty(VectorEmitter &emit, tile::Combiner combiner,
                      mlir::Type element, int64_t lanes);

/// A value that leaves every element unchanged when combined with it, up to the
/// sign of zero.
mlir::Value emitIdentity(VectorEmitter &emit, tile::Combiner combiner,
                         mlir::Type element, int64_t lanes);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_ELEMENTWISE_H
