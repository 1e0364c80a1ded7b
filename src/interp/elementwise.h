//===- interp/elementwise.h - Elementwise operations on tiles ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function fills `result`, which no operand shares storage with, and
// returns false after recording an error in the context. Operands of one
// operation have the same extents.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_ELEMENTWISE_H
#define TESSERA_INTERP_ELEMENTWISE_H

#include "interp/scalar_ops.h"
#include "interp/tile_value.h"

namespace tessera::interp {

bool mapUnary(Context &context, FloatUnary op, const Tile &x, Tile &result);
bool mapBinary(Context &context, FloatBinary op, const Tile &a, const Tile &b,
               Tile &result);
bool mapBinary(Context &context, IntBinary op, const Tile &a, const Tile &b,
               Tile &result);
bool mapFusedMultiplyAdd(Context &context, const Tile &a, const Tile &b,
                         const Tile &c, Tile &result);
bool mapAbsInt(Context &context, const Tile &x, Tile &result);

/// `comparison` is a set of Relation bits.
bool compareFloats(Context &context, uint8_t comparison, const Tile &a,
                   const Tile &b, Tile &result);
bool compareInts(Context &context, uint8_t comparison, bool isUnsigned,
                 const Tile &a, const Tile &b, Tile &result);

/// `condition` has the operands' extents or is a scalar.
bool selectTiles(Context &context, const Tile &condition, const Tile &ifTrue,
                 const Tile &ifFalse, Tile &result);

/// tile.cast.
bool castTile(Context &context, const Tile &x, Kind kind, bool unsignedFrom,
              bool unsignedTo, Tile &result);
/// arith.index_cast: sign-extends or truncates.
bool indexCast(Context &context, const Tile &x, Kind kind, Tile &result);
bool roundTile(Context &context, const Tile &x, DType type, Tile &result);

} // namespace tessera::interp

#endif // TESSERA_INTERP_ELEMENTWISE_H
