//===- tile_verify.h - What the parts of the verifier share -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_TILE_VERIFY_H
#define TESSERA_DIALECT_TILE_VERIFY_H

#include "dialect/tile_dialect.h"

#include <string>

namespace tessera::tile {

/// "[row, col]".
std::string joined(llvm::ArrayRef<mlir::StringAttr> dims);

/// I15: whether a named combiner is defined for an element type.
bool combines(Combiner combiner, mlir::Type element);

/// Whether the block ends in a tile.yield of these types.
mlir::LogicalResult verifyYield(mlir::Operation *op, mlir::Block &block,
                                mlir::TypeRange expected);

/// Whether some op writes to elements of a kernel's view.
bool isStored(mlir::Value view);

/// A combining region: 2n arguments, n yielded values, nothing but pure ops.
mlir::LogicalResult verifyCombine(mlir::Operation *op, mlir::Region &region,
                                  mlir::TypeRange types);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_VERIFY_H
