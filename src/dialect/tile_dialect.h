//===- tile_dialect.h - The Tile dialect ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The Tile dialect's types and ops, and the few questions every consumer asks
// of a tile type: which dimensions, which element type.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_TILE_DIALECT_H
#define TESSERA_DIALECT_TILE_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tile_dialect.h.inc"
#include "tile_enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "tile_attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "tile_types.h.inc"

#define GET_OP_CLASSES
#include "tile_ops.h.inc"

namespace tessera::tile {

/// The version of the textual form, stored as `tile.version` on the module.
constexpr int64_t textVersion = 1;

/// The dimensions of a tile type in axis order; empty for a scalar.
llvm::SmallVector<mlir::StringAttr> getDims(mlir::Type tile);

/// The element type of a tile type; the type itself for a scalar.
mlir::Type getElement(mlir::Type tile);

/// The tile type with these dimensions: the scalar `element` when there are
/// none.
mlir::Type getTileType(mlir::Type element,
                       llvm::ArrayRef<mlir::StringAttr> dims);

/// `tile` with another element type.
mlir::Type withElement(mlir::Type tile, mlir::Type element);

/// Position of `dim` in `dims`, or -1.
int64_t indexOf(llvm::ArrayRef<mlir::StringAttr> dims, mlir::StringAttr dim);

/// The tile.dim that declares `name` in the kernel around `op`; null if none.
DimOp findDim(mlir::Operation *op, llvm::StringRef name);

/// Registers the dialects a Tile program may use: tile, arith, math, builtin.
void loadTileDialects(mlir::MLIRContext &context);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_DIALECT_H
