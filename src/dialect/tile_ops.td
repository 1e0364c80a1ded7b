//===- tile_ops.td - Operations of the Tile dialect --------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op's description says what it means inside its domain; what happens at
// the edges is in docs/semantics.md, which the reference interpreter follows.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TILE_OPS_TD
#define TESSERA_TILE_OPS_TD

include "tile_dialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Kernel and structure
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel",
    [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one kernel: parameters and a body";
  let description = [{
    Parameters are views and scalars; their names are the SSA names of the text
    and part of the interface. A scalar may have a default.

        tile.kernel @scale(%x: !tile.view<f32, 1, read>,
                           %y: !tile.view<f32, 1, write>, %s: f32 = 2.0 : f32) {
          ...
        }
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arg_names,
                       ArrayAttr:$arg_defaults,
                       DefaultValuedAttr<Tile_TierAttr, "Tier::Default">:$tier);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getArgName(unsigned index) {
      return ::mlir::cast<::mlir::StringAttr>(getArgNames()[index]).getValue();
    }
  }];
}

def Tile_DimOp : Tile_Op<"dim"> {
  let summary = "declares a dimension and its extent";
  let description = [{
    `tile.dim "col" = %n` makes "col" a dimension of extent %n (at least 0) for
    the rest of the enclosing region. A name is declared once per kernel.
  }];
  let arguments = (ins StrAttr:$name, Index:$extent);
  let assemblyFormat = "$name `=` $extent attr-dict";
}

def Tile_ExtentOp : Tile_Op<"extent", [Pure]> {
  let summary = "extent of one axis of a view";
  let arguments = (ins Tile_ViewType:$view, I64Attr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `,` $axis attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_DimSizeOp : Tile_Op<"dim_size", [Pure]> {
  let summary = "extent of a declared dimension";
  let arguments = (ins StrAttr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$dim attr-dict";
}

def Tile_ParallelOp : Tile_Op<"parallel",
    [SingleBlock, NoTerminator, RecursiveMemoryEffects,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "independent instances over the product of dimensions";
  let description = [{
    The body runs once per index tuple, in any order and concurrently. The block
    arguments are the coordinates. Independence is the author's contract.
  }];
  let arguments = (ins StrArrayAttr:$dims);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

class Tile_LoopOp<string mnemonic> : Tile_Op<mnemonic,
    [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<Tile_Value>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Tile_SerialOp : Tile_LoopOp<"serial"> {
  let summary = "counted loop with carried values";
  let description = [{
    Runs the body for each index of `dim` in order. The carried values update
    simultaneously; with no trips the results are the initial values.
  }];
  let arguments = (ins StrAttr:$dim, Variadic<Tile_Value>:$inits);
}

def Tile_PipelineOp : Tile_LoopOp<"pipeline"> {
  let summary = "a serial loop whose stages may overlap";
  let description = [{
    Means what `tile.serial` means. `tile.stage` ops cut the body into stages;
    `window` bounds how many iterations may be in flight (0: the planner
    chooses).
  }];
  let arguments = (ins StrAttr:$dim, Variadic<Tile_Value>:$inits,
                       DefaultValuedAttr<I64Attr, "0">:$window);
}

def Tile_StageOp : Tile_Op<"stage", [HasParent<"PipelineOp">]> {
  let summary = "begins a named stage of the enclosing pipeline";
  let arguments = (ins StrAttr:$name);
  let assemblyFormat = "$name attr-dict";
}

def Tile_FoldOp : Tile_Op<"fold",
    [SingleBlock, RecursiveMemoryEffects,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "reduction over a contribution region";
  let description = [{
    Combines, for each index of `dim`, the values that `body` yields, starting
    from the initial values, in the given order. `combine` takes the left values
    and then the right values and yields as many. For the unordered order the
    combination must be associative and commutative and the initial values its
    identity.

        %s = tile.fold %k in "k" unordered init(%zero : f32) {
          %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
          tile.yield %v : f32
        } combine {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          tile.yield %c : f32
        }
  }];
  let arguments = (ins StrAttr:$dim, Tile_OrderAttr:$order,
                       Variadic<Tile_Value>:$inits);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$combine);
  let results = (outs Variadic<Tile_Value>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Tile_IfOp : Tile_Op<"if",
    [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects]> {
  let summary = "branch that is uniform within a program instance";
  let arguments = (ins I1:$condition);
  let regions = (region SizedRegion<1>:$thenRegion, AnyRegion:$elseRegion);
  let results = (outs Variadic<Tile_Value>:$results);
  let assemblyFormat = [{
    $condition (`->` `(` type($results)^ `)`)? $thenRegion
    (`else` $elseRegion^)? attr-dict
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield",
    [Pure, Terminator, ReturnLike,
     ParentOneOf<["SerialOp", "PipelineOp", "FoldOp", "IfOp", "ReduceOp",
                  "ScanOp"]>]> {
  let summary = "the values a region produces";
  let arguments = (ins Variadic<Tile_Value>:$values);
  let builders = [OpBuilder<(ins), [{ }]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

// Subscripts. Axis i of the view is indexed by
//     step[i] * dim[i] + offset
// where dim[i] is a dimension of the tile ("" for none) and the offset, present
// where hasOffset[i], is an index scalar or an index tile (a gather). An axis
// indexed by a bare dimension, or by a region's bare coordinate, binds: the
// view's extent must equal the dimension's.
class Tile_AccessOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [AttrSizedOperandSegments])> {
  code accessDeclaration = [{
    ::llvm::StringRef getAxisDim(unsigned axis) {
      return ::mlir::cast<::mlir::StringAttr>(getAxisDims()[axis]).getValue();
    }
    int64_t getAxisStep(unsigned axis) { return getAxisSteps()[axis]; }
    /// The offset of an axis, null where it has none.
    ::mlir::Value getAxisOffset(unsigned axis);
    ViewType getViewType() {
      return ::mlir::cast<ViewType>(getView().getType());
    }
    /// The dimensions the access spans, in the order of the tile's axes.
    ::llvm::SmallVector<::mlir::StringAttr> getAccessDims();
    /// The dimension whose extent the axis must have, null when the axis binds
    /// none.
    ::mlir::StringAttr getBoundDim(unsigned axis);
  }];
  let extraClassDeclaration = accessDeclaration;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

defvar Tile_SubscriptArgs = (ins StrArrayAttr:$axis_dims,
    DenseI64ArrayAttr:$axis_steps, DenseBoolArrayAttr:$axis_has_offset,
    DefaultValuedAttr<Tile_BoundsAttr, "Bounds::Checked">:$bounds);

def Tile_LoadOp : Tile_AccessOp<"load", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "snapshot of elements of a view";
  let description = [{
    Yields the elements at this program point, widened to the compute type. An
    element outside the view, or where `mask` is false, is `fill` (zero when
    absent).

        %v = tile.load %x[%i, "col"] : !tile.view<f32, 2, read>
               -> tensor<?xf32, ["col"]>
        %w = tile.load %x[%i, "h" * 2 + %o] fill(%f) mask(%m) : ...
  }];
  let arguments = !con((ins Tile_ViewType:$view,
                            Variadic<Tile_Value>:$offsets,
                            Optional<Tile_Scalar>:$fill,
                            Optional<Tile_Value>:$mask), Tile_SubscriptArgs);
  let results = (outs Tile_Value:$result);
}

def Tile_StoreOp : Tile_AccessOp<"store", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "writes a tile to a view";
  let description = [{
    Narrows each element once, to nearest even, and writes it. An element outside
    the view, or where `mask` is false, is dropped.

        tile.store %v, %y[%i, "col"] : tensor<?xf32, ["col"]>,
                                       !tile.view<bf16, 2, write>
  }];
  let arguments = !con((ins Tile_Value:$value, Tile_ViewType:$view,
                            Variadic<Tile_Value>:$offsets,
                            Optional<Tile_Value>:$mask), Tile_SubscriptArgs);
}

def Tile_ScatterOp : Tile_AccessOp<"scatter", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "combines a tile into a view, element by element in order";
  let description = [{
    view[...] = combine(view[...], value) for each element of the tile in
    row-major order of its dimensions; later elements see earlier ones. Elements
    outside the view, or where `mask` is false, are dropped.
  }];
  let arguments = !con((ins Tile_CombinerAttr:$combiner, Tile_Value:$value,
                            Tile_ViewType:$view, Variadic<Tile_Value>:$offsets,
                            Optional<Tile_Value>:$mask), Tile_SubscriptArgs);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

class Tile_ShapeOp<string mnemonic> : Tile_Op<mnemonic, [Pure]> {
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_ShapeOp<"broadcast"> {
  let summary = "repeats a tile along further dimensions";
  let description = [{
    The result's dimensions contain the input's, in the same relative order.
  }];
}
def Tile_TransposeOp : Tile_ShapeOp<"transpose"> {
  let summary = "reorders the axes of a tile";
}
def Tile_ReshapeOp : Tile_ShapeOp<"reshape"> {
  let summary = "the same elements in row-major order under other dimensions";
  let description = [{
    Both sides have the same number of elements; checked when extents are known.
  }];
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "the index along a dimension";
  let arguments = (ins StrAttr:$dim);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [Pure]> {
  let summary = "elements of a tile at computed positions along one dimension";
  let description = [{
    result[I, S] = source[S, along = indices[I]], or `fill` where the index lies
    outside the dimension. The result's dimensions are those of `indices`
    followed by those of `source` without `along`.
  }];
  let arguments = (ins Tile_Tensor:$source, Tile_Value:$indices, StrAttr:$along,
                       Optional<Tile_Scalar>:$fill);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` `along` $along (`fill` `(` $fill^ `:` type($fill) `)`)?
    attr-dict `:` type($source) `,` type($indices) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise ops that upstream leaves undefined or looser
//===----------------------------------------------------------------------===//

class Tile_BinaryOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits,
        [Pure, Elementwise, SameOperandsAndResultType])> {
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
}
class Tile_IntegerOp<string mnemonic> : Tile_BinaryOp<mnemonic> {
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs,
                       UnitAttr:$is_unsigned);
  let assemblyFormat =
      "$lhs `,` $rhs (`unsigned` $is_unsigned^)? attr-dict `:` type($result)";
}
def Tile_DivOp : Tile_IntegerOp<"div"> {
  let summary = "integer division, truncating; x / 0 = 0, MIN / -1 = MIN";
}
def Tile_RemOp : Tile_IntegerOp<"rem"> {
  let summary = "remainder of tile.div; x % 0 = 0, MIN % -1 = 0";
}
def Tile_ShlOp : Tile_IntegerOp<"shl"> {
  let summary = "left shift; a shift by the width or more gives 0";
}
def Tile_ShrOp : Tile_IntegerOp<"shr"> {
  let summary = "right shift; by the width or more gives 0, or the sign";
}
def Tile_MaxNumOp : Tile_BinaryOp<"max_num"> {
  let summary = "the larger of two floats, ignoring a NaN; -0 below +0";
}
def Tile_MinNumOp : Tile_BinaryOp<"min_num"> {
  let summary = "the smaller of two floats, ignoring a NaN; -0 below +0";
}

def Tile_SigmoidOp : Tile_Op<"sigmoid",
    [Pure, Elementwise, SameOperandsAndResultType]> {
  let summary = "1 / (1 + exp(-x))";
  let arguments = (ins Tile_Value:$input);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_RoundToOp : Tile_Op<"round_to",
    [Pure, Elementwise, SameOperandsAndResultType]> {
  let summary = "rounds to the nearest value of a narrower float type";
  let description = [{
    The value stays in its compute type; a fusion never removes the rounding.
  }];
  let arguments = (ins Tile_Value:$input, TypeAttr:$type);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$input `to` $type attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_CastOp : Tile_Op<"cast", [Pure, Elementwise]> {
  let summary = "conversion between compute types";
  let description = [{
    Integers wrap to narrower integers and extend by their sign (by zero when
    `unsigned_from`); floats round to nearest even; float to integer truncates
    and saturates (to the unsigned range when `unsigned_to`), NaN gives 0; to
    `i1` is "not equal to zero". `index` converts as a 64-bit signed integer.
  }];
  let arguments = (ins Tile_Value:$input, UnitAttr:$unsigned_from,
                       UnitAttr:$unsigned_to);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $input (`unsigned_from` $unsigned_from^)? (`unsigned_to` $unsigned_to^)?
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions, scans, contraction, order
//===----------------------------------------------------------------------===//

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, AttrSizedOperandSegments]> {
  let summary = "reduces tiles over dimensions";
  let description = [{
    Combines all elements along `over`. A named combiner takes one input. A
    custom combiner takes n inputs of one shape, n scalar identities and a region
    of 2n scalars (left, then right) that yields n.

        %s = tile.reduce add unordered %v over ["col"]
               : tensor<?xf32, ["col"]> -> f32
  }];
  let arguments = (ins Tile_CombinerAttr:$combiner, Tile_OrderAttr:$order,
                       Variadic<Tile_Tensor>:$inputs,
                       Variadic<Tile_Scalar>:$identities, StrArrayAttr:$over);
  let results = (outs Variadic<Tile_Value>:$results);
  let regions = (region AnyRegion:$region);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, AttrSizedOperandSegments]> {
  let summary = "prefix reduction along a dimension";
  let description = [{
    Inclusive unless `exclusive`; from the end when `reverse`. Custom combiners
    are as in `tile.reduce`.
  }];
  let arguments = (ins Tile_CombinerAttr:$combiner, Tile_OrderAttr:$order,
                       Variadic<Tile_Tensor>:$inputs,
                       Variadic<Tile_Scalar>:$identities, StrAttr:$along,
                       UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region AnyRegion:$region);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let hasVerifier = 1;
}

def Tile_ArgReduceOp : Tile_Op<"arg_reduce", [Pure]> {
  let summary = "position of the largest or smallest element";
  let description = [{
    Total order of docs/semantics.md: NaN is largest, -0 and +0 tie, ties keep
    the lowest index; -1 along an empty dimension.
  }];
  let arguments = (ins Tile_CombinerAttr:$combiner, Tile_Tensor:$input,
                       StrAttr:$along);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $combiner $input `along` $along attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_SortOp : Tile_Op<"sort", [Pure]> {
  let summary = "stable sort along a dimension";
  let description = [{
    Sorts by the first input in the total order of docs/semantics.md and applies
    the same permutation to the others.
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$inputs, StrAttr:$along,
                       UnitAttr:$descending, UnitAttr:$is_unsigned);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let assemblyFormat = [{
    $inputs `along` $along (`descending` $descending^)?
    (`unsigned` $is_unsigned^)? attr-dict `:` type($inputs) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Tile_ContractOp : Tile_Op<"contract", [Pure]> {
  let summary = "sum of products over shared dimensions";
  let description = [{
    result = acc + sum over `over` of lhs * rhs; dimensions that both operands
    and the result share are batch dimensions. All operands have one compute
    type.
  }];
  let arguments = (ins Tile_Value:$lhs, Tile_Value:$rhs,
                       Optional<Tile_Value>:$acc, StrArrayAttr:$over,
                       DefaultValuedAttr<Tile_OrderAttr, "Order::Unordered">:$order);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`acc` `(` $acc^ `:` type($acc) `)`)? `over` $over attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // TESSERA_TILE_OPS_TD
