//===- tile_dialect.td - Tile dialect, enums and types -----*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TILE_DIALECT_TD
#define TESSERA_TILE_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tessera::tile";
  let summary = "What one tile computes, with dimensions as identities";
  let description = [{
    A tile is a scalar (`f32`, `i64`, ...) or a ranked tensor whose encoding
    names its dimensions: `tensor<?x?xf32, ["row", "col"]>`. The name is the
    identity of the dimension; its extent is given once, by `tile.dim`, so tile
    types never carry extents. Views are strided memory of the caller; only
    `tile.store` and `tile.scatter` write.

    Elementwise computation uses upstream `arith` and `math` ops on tiles of one
    type (the allow-list is `tile_op_lists.h`); ops of this dialect exist where
    upstream leaves a case undefined.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tessera::tile";
  let genSpecializedAttr = 0;
}

class Tile_EnumAttr<I32EnumAttr enum, string mnemonic>
    : EnumAttr<Tile_Dialect, enum, mnemonic> {
  let assemblyFormat = "$value";
}

def Tile_Order : Tile_Enum<"Order", "grouping a reduction may use", [
  I32EnumAttrCase<"Unordered", 0, "unordered">,
  I32EnumAttrCase<"Tree", 1, "tree">,
  I32EnumAttrCase<"Left", 2, "left">,
  I32EnumAttrCase<"Right", 3, "right">]>;
def Tile_OrderAttr : Tile_EnumAttr<Tile_Order, "order">;

def Tile_Combiner : Tile_Enum<"Combiner", "how two values are combined", [
  I32EnumAttrCase<"Add", 0, "add">,
  I32EnumAttrCase<"Mul", 1, "mul">,
  I32EnumAttrCase<"Max", 2, "max">,
  I32EnumAttrCase<"Min", 3, "min">,
  I32EnumAttrCase<"MaxNum", 4, "max_num">,
  I32EnumAttrCase<"MinNum", 5, "min_num">,
  I32EnumAttrCase<"UMax", 6, "umax">,
  I32EnumAttrCase<"UMin", 7, "umin">,
  I32EnumAttrCase<"And", 8, "and">,
  I32EnumAttrCase<"Or", 9, "or">,
  I32EnumAttrCase<"Xor", 10, "xor">,
  I32EnumAttrCase<"Custom", 11, "custom">]>;
def Tile_CombinerAttr : Tile_EnumAttr<Tile_Combiner, "combiner">;

def Tile_Bounds : Tile_Enum<"Bounds", "what an access may assume", [
  I32EnumAttrCase<"Checked", 0, "checked">,
  I32EnumAttrCase<"Promised", 1, "promised">]>;
def Tile_BoundsAttr : Tile_EnumAttr<Tile_Bounds, "bounds">;

def Tile_Access : Tile_Enum<"Access", "direction of a view", [
  I32EnumAttrCase<"Read", 0, "read">,
  I32EnumAttrCase<"Write", 1, "write">]>;

def Tile_Tier : Tile_Enum<"Tier", "numeric tier of a kernel", [
  I32EnumAttrCase<"Strict", 0, "strict">,
  I32EnumAttrCase<"Default", 1, "default">,
  I32EnumAttrCase<"Fast", 2, "fast">]>;
def Tile_TierAttr : Tile_EnumAttr<Tile_Tier, "tier">;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "strided memory of the caller: element type, rank, direction";
  let description = [{
    The element type is a storage type: `i1` (one byte per element), `i8`-`i64`,
    `ui8`-`ui64`, `f16`, `bf16`, `f8E4M3FN`, `f8E5M2`, `f32` or `f64`. Extents
    and strides come with the call. Example: `!tile.view<f32, 2, read>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, "int64_t":$rank,
                        EnumParameter<Tile_Access>:$access);
  let assemblyFormat = "`<` $elementType `,` $rank `,` $access `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isWritable() const { return getAccess() == Access::Write; }
    /// The type in which loaded elements are computed.
    ::mlir::Type getComputeType() const;
    static constexpr int64_t maxRank = 16;
  }];
}

def Tile_Scalar : AnyTypeOf<[I1, I8, I16, I32, I64, Index, F32, F64],
                            "scalar tile">;
def Tile_Tensor : RankedTensorOf<[I1, I8, I16, I32, I64, Index, F32, F64]>;
def Tile_Value : AnyTypeOf<[Tile_Scalar, Tile_Tensor], "tile">;

#endif // TESSERA_TILE_DIALECT_TD
