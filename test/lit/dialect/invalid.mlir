// Each invariant of the verifier (tile_verify.cpp numbers them) fires, at the
// op that breaks it.
//
// RUN: tessera-opt --verify-diagnostics --split-input-file %s -o /dev/null

//===-- I1: tile types ----------------------------------------------------===//

tile.kernel @i1_no_names(%s: f32) {
  // expected-error @+1 {{'tile.broadcast' op has type 'tensor<?xf32>'; expected one dimension name per axis}}
  %v = tile.broadcast %s : f32 -> tensor<?xf32>
}

// -----

tile.kernel @i1_too_few_names(%s: f32) {
  // expected-error @+1 {{expected one dimension name per axis}}
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a"]>
}

// -----

tile.kernel @i1_rank_zero(%s: f32) {
  // expected-error @+1 {{expected one dimension name per axis}}
  %v = tile.broadcast %s : f32 -> tensor<f32>
}

// -----

tile.kernel @i1_repeated(%s: f32) {
  // expected-error @+1 {{expected distinct, non-empty dimension names}}
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "a"]>
}

// -----

tile.kernel @i1_empty(%s: f32) {
  // expected-error @+1 {{expected distinct, non-empty dimension names}}
  %v = tile.broadcast %s : f32 -> tensor<?xf32, [""]>
}

// -----

tile.kernel @i1_static(%s: f32) {
  // expected-error @+1 {{extents are given by tile.dim, expected '?' for every axis}}
  %v = tile.broadcast %s : f32 -> tensor<4xf32, ["a"]>
}

// -----

tile.kernel @i1_element(%s: f32) {
  // expected-error @+1 {{'tile.cast' op result #0 must be tile}}
  %v = tile.cast %s : f32 -> bf16
}

// -----

tile.kernel @i1_upstream_element() {
  // expected-error @+1 {{'arith.constant' op has type 'bf16', which is not a tile}}
  %v = arith.constant 1.0 : bf16
}

// -----

tile.kernel @i1_vector() {
  // expected-error @+1 {{'arith.constant' op has type 'vector<4xf32>', which is not a tile}}
  %v = arith.constant dense<1.0> : vector<4xf32>
}

// -----

tile.kernel @i1_odd_width() {
  // expected-error @+1 {{'arith.constant' op has type 'i7', which is not a tile}}
  %v = arith.constant 1 : i7
}

// -----

//===-- I2: dimensions are declared ---------------------------------------===//

tile.kernel @i2_undeclared(%x: !tile.view<f32, 1, read>) {
  // expected-error @+1 {{'tile.load' op names dimension 'a', which no tile.dim declares before}}
  %v = tile.load %x["a"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i2_later(%n: i64) {
  // expected-error @+1 {{'tile.dim_size' op names dimension 'a', which no tile.dim declares before}}
  %s = tile.dim_size "a"
  tile.dim "a" = %s
}

// -----

tile.kernel @i2_other_region(%c: i1) {
  %n = arith.constant 4 : index
  tile.if %c {
    tile.dim "a" = %n
  }
  // expected-error @+1 {{'tile.iota' op names dimension 'a', which no tile.dim declares before}}
  %i = tile.iota "a" : tensor<?xi64, ["a"]>
}

// -----

tile.kernel @i2_twice() {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.dim' op declares dimension 'a' again or without a name}}
  tile.dim "a" = %n
}

// -----

tile.kernel @i2_twice_in_branches(%c: i1) {
  %n = arith.constant 4 : index
  tile.if %c {
    tile.dim "a" = %n
  } else {
    // expected-error @+1 {{'tile.dim' op declares dimension 'a' again or without a name}}
    tile.dim "a" = %n
  }
}

// -----

tile.kernel @i2_nameless() {
  %n = arith.constant 4 : index
  // expected-error @+1 {{'tile.dim' op declares dimension '' again or without a name}}
  tile.dim "" = %n
}

// -----

tile.kernel @i2_parallel() {
  // expected-error @+1 {{'tile.parallel' op names dimension 'p', which no tile.dim declares before}}
  tile.parallel (%i) in ["p"] {
  }
}

// -----

tile.kernel @i2_serial() {
  // expected-error @+1 {{'tile.serial' op names dimension 'k', which no tile.dim declares before}}
  tile.serial %i in "k" {
  }
}

// -----

//===-- I3: parameters ----------------------------------------------------===//

// expected-error @+1 {{'tile.kernel' op parameter 'n' has type 'index'; expected a view or a scalar}}
tile.kernel @i3_index(%n: index) {
}

// -----

// expected-error @+1 {{'tile.kernel' op parameter 't' has type 'tensor<?xf32, ["a"]>'; expected a view or a scalar}}
tile.kernel @i3_tensor(%t: tensor<?xf32, ["a"]>) {
}

// -----

// expected-error @+1 {{'tile.kernel' op gives view 'x' a default}}
"tile.kernel"() <{sym_name = "i3_view_default", arg_names = ["x"], arg_defaults = [1.0 : f32], tier = #tile<tier default>}> ({
^bb0(%x: !tile.view<f32, 1, read>):
}) : () -> ()

// -----

// expected-error @+1 {{'tile.kernel' op default of 's' is 1 : i32, expected a value of type 'f32'}}
"tile.kernel"() <{sym_name = "i3_default_type", arg_names = ["s"], arg_defaults = [1 : i32], tier = #tile<tier default>}> ({
^bb0(%s: f32):
}) : () -> ()

// -----

// expected-error @+1 {{'tile.kernel' op has two parameters named 's' or one without a name}}
"tile.kernel"() <{sym_name = "i3_same_name", arg_names = ["s", "s"], arg_defaults = [unit, unit], tier = #tile<tier default>}> ({
^bb0(%s: f32, %t: f32):
}) : () -> ()

// -----

// expected-error @+1 {{'tile.kernel' op has two parameters named '' or one without a name}}
"tile.kernel"() <{sym_name = "i3_no_name", arg_names = [""], arg_defaults = [unit], tier = #tile<tier default>}> ({
^bb0(%s: f32):
}) : () -> ()

// -----

// expected-error @+1 {{'tile.kernel' op names 1 parameters, the body takes 2}}
"tile.kernel"() <{sym_name = "i3_count", arg_names = ["s"], arg_defaults = [unit], tier = #tile<tier default>}> ({
^bb0(%s: f32, %t: f32):
}) : () -> ()

// -----

// expected-error @+1 {{element type}}
tile.kernel @view_element(%x: !tile.view<i7, 1, read>) {
}

// -----

// expected-error @+1 {{rank}}
tile.kernel @view_rank(%x: !tile.view<f32, 17, read>) {
}

// -----

//===-- I4: allowed ops ---------------------------------------------------===//

tile.kernel @i4_op(%a: f32) {
  // expected-error @+1 {{'arith.bitcast' op is not allowed in a kernel}}
  %b = arith.bitcast %a : f32 to i32
}

// -----

tile.kernel @i4_upstream_division(%a: i32) {
  // expected-error @+1 {{'arith.divsi' op is not allowed in a kernel}}
  %b = arith.divsi %a, %a : i32
}

// -----

tile.kernel @i4_kernel() {
  // expected-error @+1 {{'tile.kernel' op symbol's parent must have the SymbolTable trait}}
  tile.kernel @inner() {
  }
}

// -----

tile.kernel @i4_nested(%c: i1) {
  tile.if %c {
    %a = arith.constant 1 : i32
    // expected-error @+1 {{'arith.shli' op is not allowed in a kernel}}
    %b = arith.shli %a, %a : i32
  }
}

// -----

//===-- I5: parallel ------------------------------------------------------===//

tile.kernel @i5_twice() {
  %n = arith.constant 4 : index
  tile.dim "p" = %n
  // expected-error @+1 {{'tile.parallel' op names dimension "p" twice}}
  tile.parallel (%i, %j) in ["p", "p"] {
  }
}

// -----

tile.kernel @i5_count() {
  %n = arith.constant 4 : index
  tile.dim "p" = %n
  // expected-error @+1 {{'tile.parallel' op needs one index argument per dimension}}
  tile.parallel (%i, %j) in ["p"] {
  }
}

// -----

tile.kernel @i5_type() {
  %n = arith.constant 4 : index
  tile.dim "p" = %n
  // expected-error @+1 {{'tile.parallel' op needs one index argument per dimension}}
  "tile.parallel"() <{dims = ["p"]}> ({
  ^bb0(%i: i64):
  }) : () -> ()
}

// -----

//===-- I6: loops ---------------------------------------------------------===//

tile.kernel @i6_yield(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.serial %i in "k" carry(%a = %s : f32) {
    // expected-error @+1 {{'tile.yield' op yields ('index'), expected ('f32')}}
    tile.yield %i : index
  }
}

// -----

tile.kernel @i6_yield_count(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.pipeline %i in "k" carry(%a = %s : f32) {
    // expected-error @+1 {{'tile.yield' op yields (), expected ('f32')}}
    tile.yield
  }
}

// -----

tile.kernel @i6_coordinate(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.serial' op needs the index coordinate and one block argument per carried value, of its type}}
  "tile.serial"() <{dim = "k"}> ({
  ^bb0(%i: i64):
    tile.yield
  }) : () -> ()
}

// -----

tile.kernel @i6_argument(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.serial' op needs the index coordinate and one block argument per carried value, of its type}}
  %r = "tile.serial"(%s) <{dim = "k"}> ({
  ^bb0(%i: index, %a: f64):
    tile.yield %s : f32
  }) : (f32) -> f32
}

// -----

tile.kernel @i6_result(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.serial' op needs one result per carried value, of its type}}
  %r = "tile.serial"(%s) <{dim = "k"}> ({
  ^bb0(%i: index, %a: f32):
    tile.yield %a : f32
  }) : (f32) -> f64
}

// -----

tile.kernel @stage_outside() {
  // expected-error @+1 {{'tile.stage' op expects parent op 'tile.pipeline'}}
  tile.stage "s"
}

// -----

tile.kernel @yield_outside() {
  // expected-error @+1 {{'tile.yield' op expects parent op to be one of}}
  tile.yield
}

// -----

//===-- I7: fold ----------------------------------------------------------===//

tile.kernel @i7_yield(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.fold %i in "k" left init(%s : f32) {
    // expected-error @+1 {{'tile.yield' op yields ('index'), expected ('f32')}}
    tile.yield %i : index
  } combine {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
}

// -----

tile.kernel @i7_combine_arguments(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.fold' op combining region takes ('f32'), expected ('f32', 'f32')}}
  %r = tile.fold %i in "k" left init(%s : f32) {
    tile.yield %s : f32
  } combine {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
}

// -----

tile.kernel @i7_combine_yield(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.fold %i in "k" left init(%s : f32) {
    tile.yield %s : f32
  } combine {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{'tile.yield' op yields ('f32', 'f32'), expected ('f32')}}
    tile.yield %a, %b : f32, f32
  }
}

// -----

tile.kernel @i7_combine_memory(%s: f32, %y: !tile.view<f32, 0, write>) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.fold %i in "k" left init(%s : f32) {
    tile.yield %s : f32
  } combine {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{'tile.store' op is not allowed in a combining region; expected ops without regions or memory effects}}
    tile.store %a, %y[] : f32, !tile.view<f32, 0, write>
    tile.yield %a : f32
  }
}

// -----

tile.kernel @i7_coordinate(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.fold' op needs the index coordinate as its block argument}}
  %r = "tile.fold"(%s) <{dim = "k", order = #tile<order left>}> ({
  ^bb0(%i: i64):
    tile.yield %s : f32
  }, {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }) : (f32) -> f32
}

// -----

tile.kernel @i7_result(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  // expected-error @+1 {{'tile.fold' op needs one result per initial value, of its type}}
  %r = "tile.fold"(%s) <{dim = "k", order = #tile<order left>}> ({
  ^bb0(%i: index):
    tile.yield %s : f32
  }, {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }) : (f32) -> f64
}

// -----

//===-- I8: if ------------------------------------------------------------===//

tile.kernel @i8_no_else(%c: i1, %s: f32) {
  // expected-error @+1 {{'tile.if' op has results and no else branch}}
  %r = tile.if %c -> (f32) {
    tile.yield %s : f32
  }
}

// -----

tile.kernel @i8_then(%c: i1, %s: f32, %t: f64) {
  %r = tile.if %c -> (f32) {
    // expected-error @+1 {{'tile.yield' op yields ('f64'), expected ('f32')}}
    tile.yield %t : f64
  } else {
    tile.yield %s : f32
  }
}

// -----

tile.kernel @i8_else(%c: i1, %s: f32) {
  %r = tile.if %c -> (f32) {
    tile.yield %s : f32
  } else {
    // expected-error @+1 {{'tile.yield' op yields (), expected ('f32')}}
    tile.yield
  }
}

// -----

//===-- I9: subscripts ----------------------------------------------------===//

tile.kernel @i9_count(%x: !tile.view<f32, 2, read>) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.load' op has 1 subscripts for a view of rank 2}}
  %v = tile.load %x["a"] : !tile.view<f32, 2, read> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i9_twice(%x: !tile.view<f32, 2, read>) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.load' op indexes two axes by dimension 'a'}}
  %v = tile.load %x["a", "a" + %n] : !tile.view<f32, 2, read> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i9_zero_step(%x: !tile.view<f32, 1, read>) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.load' op subscript 0 needs a dimension with a nonzero step, or an offset}}
  %v = tile.load %x["a" * 0] : !tile.view<f32, 1, read> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i9_nothing(%x: !tile.view<f32, 1, read>) {
  // expected-error @+1 {{'tile.load' op subscript 0 needs a dimension with a nonzero step, or an offset}}
  %v = tile.load %x[""] : !tile.view<f32, 1, read> -> f32
}

// -----

tile.kernel @i9_offsets(%x: !tile.view<f32, 1, read>) {
  // expected-error @+1 {{'tile.load' op has another number of offsets than its subscripts use}}
  %v = "tile.load"(%x) <{axis_dims = [""], axis_steps = array<i64: 0>, axis_has_offset = array<i1: true>, operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tile.view<f32, 1, read>) -> f32
}

// -----

tile.kernel @i9_offset_type(%x: !tile.view<f32, 1, read>, %o: i64) {
  // expected-error @+1 {{'tile.load' op has an offset of type 'i64'; expected index or a tile of i64 or index}}
  %v = tile.load %x[%o] at(i64) : !tile.view<f32, 1, read> -> f32
}

// -----

tile.kernel @i9_store(%y: !tile.view<f32, 2, write>, %s: f32) {
  // expected-error @+1 {{'tile.store' op has 0 subscripts for a view of rank 2}}
  tile.store %s, %y[] : f32, !tile.view<f32, 2, write>
}

// -----

tile.kernel @i9_scatter(%y: !tile.view<f32, 2, write>, %s: f32) {
  // expected-error @+1 {{'tile.scatter' op has 0 subscripts for a view of rank 2}}
  tile.scatter add %s, %y[] : f32, !tile.view<f32, 2, write>
}

// -----

//===-- I10: the tile of an access ----------------------------------------===//

tile.kernel @i10_order(%x: !tile.view<f32, 2, read>) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  // expected-error @+1 {{'tile.load' op spans [a, b], the tile has [b, a]}}
  %v = tile.load %x["a", "b"] : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["b", "a"]>
}

// -----

tile.kernel @i10_compute_type(%x: !tile.view<bf16, 1, read>) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.load' op has element type 'f64'; the view computes in 'f32'}}
  %v = tile.load %x["a"] : !tile.view<bf16, 1, read> -> tensor<?xf64, ["a"]>
}

// -----

tile.kernel @i10_store(%y: !tile.view<ui8, 1, write>, %s: i16) {
  %z = arith.constant 0 : index
  // expected-error @+1 {{'tile.store' op has element type 'i16'; the view computes in 'i8'}}
  tile.store %s, %y[%z] : i16, !tile.view<ui8, 1, write>
}

// -----

//===-- I11: writable views -----------------------------------------------===//

tile.kernel @i11_store(%x: !tile.view<f32, 0, read>, %s: f32) {
  // expected-error @+1 {{'tile.store' op writes to a read-only view}}
  tile.store %s, %x[] : f32, !tile.view<f32, 0, read>
}

// -----

tile.kernel @i11_scatter(%x: !tile.view<f32, 0, read>, %s: f32) {
  // expected-error @+1 {{'tile.scatter' op writes to a read-only view}}
  tile.scatter max %s, %x[] : f32, !tile.view<f32, 0, read>
}

// -----

//===-- I12: masks and fills ----------------------------------------------===//

tile.kernel @i12_mask_type(%x: !tile.view<f32, 0, read>, %m: i8) {
  // expected-error @+1 {{'tile.load' op has a mask of type 'i8'; expected i1 over []}}
  %v = tile.load %x[] mask(%m : i8) : !tile.view<f32, 0, read> -> f32
}

// -----

tile.kernel @i12_mask_dims(%y: !tile.view<f32, 1, write>, %m: i1) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %s = arith.constant 1.0 : f32
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.store' op has a mask of type 'i1'; expected i1 over [a]}}
  tile.store %v, %y["a"] mask(%m : i1) : tensor<?xf32, ["a"]>, !tile.view<f32, 1, write>
}

// -----

tile.kernel @i12_fill(%x: !tile.view<f16, 0, read>, %f: f64) {
  // expected-error @+1 {{'tile.load' op has a fill of type 'f64'; the view computes in 'f32'}}
  %v = tile.load %x[] fill(%f : f64) : !tile.view<f16, 0, read> -> f32
}

// -----

//===-- I13: shape --------------------------------------------------------===//

tile.kernel @i13_broadcast(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "b"]>
  // expected-error @+1 {{'tile.broadcast' op from [a, b] to [b, a] does not keep the input's dimensions in order}}
  %w = tile.broadcast %v : tensor<?x?xf32, ["a", "b"]> -> tensor<?x?xf32, ["b", "a"]>
}

// -----

tile.kernel @i13_broadcast_drops(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.broadcast' op from [a] to [b] does not keep the input's dimensions in order}}
  %w = tile.broadcast %v : tensor<?xf32, ["a"]> -> tensor<?xf32, ["b"]>
}

// -----

tile.kernel @i13_element(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.broadcast' op changes the element type from 'f32' to 'f64'}}
  %v = tile.broadcast %s : f32 -> tensor<?xf64, ["a"]>
}

// -----

tile.kernel @i13_transpose(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.transpose' op from [a] to [b] is not a permutation}}
  %w = tile.transpose %v : tensor<?xf32, ["a"]> -> tensor<?xf32, ["b"]>
}

// -----

tile.kernel @i13_reshape(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reshape' op changes the element type from 'f32' to 'i32'}}
  %w = tile.reshape %v : tensor<?xf32, ["a"]> -> tensor<?xi32, ["a"]>
}

// -----

tile.kernel @i13_iota_type() {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.iota' op has type 'tensor<?xi32, ["a"]>'; expected i64 or index along 'a'}}
  %v = tile.iota "a" : tensor<?xi32, ["a"]>
}

// -----

tile.kernel @i13_iota_dim() {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  // expected-error @+1 {{'tile.iota' op has type 'tensor<?xi64, ["b"]>'; expected i64 or index along 'a'}}
  %v = tile.iota "a" : tensor<?xi64, ["b"]>
}

// -----

tile.kernel @i13_gather_along(%s: f32, %i: i64) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.gather' op gathers along 'b', which is not a dimension of the source}}
  %w = tile.gather %v[%i] along "b" : tensor<?xf32, ["a"]>, i64 -> f32
}

// -----

tile.kernel @i13_gather_indices(%s: f32, %i: i32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.gather' op has indices of type 'i32'; expected i64 or index}}
  %w = tile.gather %v[%i] along "a" : tensor<?xf32, ["a"]>, i32 -> f32
}

// -----

tile.kernel @i13_gather_result(%s: f32, %i: i64) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "b"]>
  // expected-error @+1 {{'tile.gather' op has result dimensions [a], expected [b]}}
  %w = tile.gather %v[%i] along "a" : tensor<?x?xf32, ["a", "b"]>, i64 -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i13_gather_both(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "b"]>
  %i = tile.iota "b" : tensor<?xi64, ["b"]>
  // expected-error @+1 {{'tile.gather' op has dimension 'b' in both source and indices}}
  %w = tile.gather %v[%i] along "a" : tensor<?x?xf32, ["a", "b"]>, tensor<?xi64, ["b"]> -> tensor<?xf32, ["b"]>
}

// -----

tile.kernel @i13_gather_fill(%s: f32, %i: i64, %f: f64) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.gather' op has a fill of type 'f64'}}
  %w = tile.gather %v[%i] along "a" fill(%f : f64) : tensor<?xf32, ["a"]>, i64 -> f32
}

// -----

//===-- I14: own elementwise ops ------------------------------------------===//

tile.kernel @i14_div(%a: f32) {
  // expected-error @+1 {{'tile.div' op is defined on integers, found 'f32'}}
  %b = tile.div %a, %a : f32
}

// -----

tile.kernel @i14_rem(%a: i1) {
  // expected-error @+1 {{'tile.rem' op is defined on integers, found 'i1'}}
  %b = tile.rem %a, %a : i1
}

// -----

tile.kernel @i14_shl(%a: f64) {
  // expected-error @+1 {{'tile.shl' op is defined on integers, found 'f64'}}
  %b = tile.shl %a, %a : f64
}

// -----

tile.kernel @i14_shr(%a: i1) {
  // expected-error @+1 {{'tile.shr' op is defined on integers, found 'i1'}}
  %b = tile.shr %a, %a unsigned : i1
}

// -----

tile.kernel @i14_max_num(%a: i32) {
  // expected-error @+1 {{'tile.max_num' op is defined on floats, found 'i32'}}
  %b = tile.max_num %a, %a : i32
}

// -----

tile.kernel @i14_min_num(%a: i64) {
  // expected-error @+1 {{'tile.min_num' op is defined on floats, found 'i64'}}
  %b = tile.min_num %a, %a : i64
}

// -----

tile.kernel @i14_sigmoid(%a: i8) {
  // expected-error @+1 {{'tile.sigmoid' op is defined on floats, found 'i8'}}
  %b = tile.sigmoid %a : i8
}

// -----

tile.kernel @i14_round_to(%a: f32) {
  // expected-error @+1 {{'tile.round_to' op rounds to 'f64'; expected f16, bf16, f8E4M3FN, f8E5M2 or f32}}
  %b = tile.round_to %a to f64 : f32
}

// -----

tile.kernel @i14_round_to_integer(%a: i32) {
  // expected-error @+1 {{'tile.round_to' op is defined on floats, found 'i32'}}
  %b = tile.round_to %a to bf16 : i32
}

// -----

tile.kernel @i14_cast(%a: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %a : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.cast' op changes dimensions from [a] to [b]}}
  %b = tile.cast %v : tensor<?xf32, ["a"]> -> tensor<?xf64, ["b"]>
}

// -----

//===-- I15: reduce and scan ----------------------------------------------===//

tile.kernel @i15_over(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op combines along 'b', which is not a dimension of [a] or is named twice}}
  %r = tile.reduce add unordered %v over ["b"] : tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i15_over_twice(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op combines along 'a', which is not a dimension of [a] or is named twice}}
  %r = tile.reduce add unordered %v over ["a", "a"] : tensor<?xf32, ["a"]> -> f32
}

// -----

tile.kernel @i15_over_nothing(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op reduces over no dimension}}
  %r = tile.reduce add unordered %v over [] : tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i15_result(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "b"]>
  // expected-error @+1 {{'tile.reduce' op has result type 'tensor<?xf32, ["b"]>', expected 'tensor<?xf32, ["a"]>'}}
  %r = tile.reduce add unordered %v over ["b"] : tensor<?x?xf32, ["a", "b"]> -> tensor<?xf32, ["b"]>
}

// -----

tile.kernel @i15_combiner(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op combiner umax does not fit 'f32'}}
  %r = tile.reduce umax unordered %v over ["a"] : tensor<?xf32, ["a"]> -> f32
}

// -----

tile.kernel @i15_bool(%s: i1) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : i1 -> tensor<?xi1, ["a"]>
  // expected-error @+1 {{'tile.scan' op combiner add does not fit 'i1'}}
  %r = tile.scan add unordered %v along "a" : tensor<?xi1, ["a"]> -> tensor<?xi1, ["a"]>
}

// -----

tile.kernel @i15_custom_without_region(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op needs identities and a region exactly for the custom combiner}}
  %r = tile.reduce custom left %v over ["a"] : tensor<?xf32, ["a"]> -> f32
}

// -----

tile.kernel @i15_named_with_region(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op needs identities and a region exactly for the custom combiner}}
  %r = tile.reduce add left %v over ["a"] : tensor<?xf32, ["a"]> -> f32 combine {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
}

// -----

tile.kernel @i15_named_twice(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op takes one input with a named combiner}}
  %r:2 = tile.reduce add left %v, %v over ["a"] : tensor<?xf32, ["a"]>, tensor<?xf32, ["a"]> -> f32, f32
}

// -----

tile.kernel @i15_input_dims(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  %w = tile.broadcast %s : f32 -> tensor<?x?xf32, ["a", "b"]>
  // expected-error @+1 {{'tile.reduce' op needs inputs of the same dimensions}}
  %r:2 = tile.reduce custom left %v, %w identity(%s, %s : f32, f32) over ["a"] : tensor<?xf32, ["a"]>, tensor<?x?xf32, ["a", "b"]> -> f32, f32 combine {
  ^bb0(%p: f32, %q: f32, %t: f32, %u: f32):
    tile.yield %p, %q : f32, f32
  }
}

// -----

tile.kernel @i15_identity(%s: f32, %d: f64) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.reduce' op has an identity of type 'f64' for elements of type 'f32'}}
  %r = tile.reduce custom left %v identity(%d : f64) over ["a"] : tensor<?xf32, ["a"]> -> f32 combine {
  ^bb0(%p: f32, %q: f32):
    tile.yield %p : f32
  }
}

// -----

tile.kernel @i15_region(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.scan' op combining region takes ('f64', 'f64'), expected ('f32', 'f32')}}
  %r = tile.scan custom left %v identity(%s : f32) along "a" : tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]> combine {
  ^bb0(%p: f64, %q: f64):
    tile.yield %p : f64
  }
}

// -----

tile.kernel @i15_region_yield(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  %r = tile.reduce custom left %v identity(%s : f32) over ["a"] : tensor<?xf32, ["a"]> -> f32 combine {
  ^bb0(%p: f32, %q: f32):
    // expected-error @+1 {{'tile.yield' op yields (), expected ('f32')}}
    tile.yield
  }
}

// -----

tile.kernel @i15_scan_along(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.scan' op combines along 'b', which is not a dimension of [a] or is named twice}}
  %r = tile.scan add left %v along "b" : tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i15_scatter(%y: !tile.view<f32, 0, write>, %s: f32) {
  // expected-error @+1 {{'tile.scatter' op combiner and does not fit 'f32'}}
  tile.scatter and %s, %y[] : f32, !tile.view<f32, 0, write>
}

// -----

//===-- I16: arg_reduce ---------------------------------------------------===//

tile.kernel @i16_combiner(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.arg_reduce' op combiner add is not an order on 'f32'}}
  %r = tile.arg_reduce add %v along "a" : tensor<?xf32, ["a"]> -> i64
}

// -----

tile.kernel @i16_unsigned(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.arg_reduce' op combiner umin is not an order on 'f32'}}
  %r = tile.arg_reduce umin %v along "a" : tensor<?xf32, ["a"]> -> i64
}

// -----

tile.kernel @i16_along(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.arg_reduce' op searches along 'b', which is not a dimension of [a]}}
  %r = tile.arg_reduce max %v along "b" : tensor<?xf32, ["a"]> -> i64
}

// -----

tile.kernel @i16_result(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.arg_reduce' op has result type 'i32', expected 'i64'}}
  %r = tile.arg_reduce max %v along "a" : tensor<?xf32, ["a"]> -> i32
}

// -----

//===-- I17: sort ---------------------------------------------------------===//

tile.kernel @i17_types(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.sort' op needs inputs, and results of their types}}
  %r = tile.sort %v along "a" : tensor<?xf32, ["a"]> -> tensor<?xf64, ["a"]>
}

// -----

tile.kernel @i17_along(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.sort' op sorts along 'b', which is not a dimension of [a]}}
  %r = tile.sort %v along "b" : tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i17_dims(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  tile.dim "b" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  %w = tile.broadcast %s : f32 -> tensor<?xf32, ["b"]>
  // expected-error @+1 {{'tile.sort' op needs inputs of the same dimensions}}
  %r:2 = tile.sort %v, %w along "a" : tensor<?xf32, ["a"]>, tensor<?xf32, ["b"]> -> tensor<?xf32, ["a"]>, tensor<?xf32, ["b"]>
}

// -----

//===-- I18: contract -----------------------------------------------------===//

tile.kernel @i18_elements(%s: f32, %d: f64) {
  // expected-error @+1 {{'tile.contract' op multiplies 'f32' by 'f64' into 'f32'; expected one numeric element type}}
  %r = tile.contract %s, %d over [] : f32, f64 -> f32
}

// -----

tile.kernel @i18_bool(%s: i1) {
  // expected-error @+1 {{'tile.contract' op multiplies 'i1' by 'i1' into 'i1'; expected one numeric element type}}
  %r = tile.contract %s, %s over [] : i1, i1 -> i1
}

// -----

tile.kernel @i18_acc(%s: f32, %d: f64) {
  // expected-error @+1 {{'tile.contract' op has an accumulator of type 'f64', expected 'f32'}}
  %r = tile.contract %s, %s acc(%d : f64) over [] : f32, f32 -> f32
}

// -----

tile.kernel @i18_over(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.contract' op sums over 'a', which both operands must have once}}
  %r = tile.contract %v, %s over ["a"] : tensor<?xf32, ["a"]>, f32 -> f32
}

// -----

tile.kernel @i18_keeps(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.contract' op keeps 'a', over which it sums}}
  %r = tile.contract %v, %v over ["a"] : tensor<?xf32, ["a"]>, tensor<?xf32, ["a"]> -> tensor<?xf32, ["a"]>
}

// -----

tile.kernel @i18_drops(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{'tile.contract' op drops dimension 'a'}}
  %r = tile.contract %v, %s over [] : tensor<?xf32, ["a"]>, f32 -> f32
}

// -----

tile.kernel @i18_invents(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  // expected-error @+1 {{'tile.contract' op has dimension 'a', which neither operand has}}
  %r = tile.contract %s, %s over [] : f32, f32 -> tensor<?xf32, ["a"]>
}

// -----

//===-- I19: extent -------------------------------------------------------===//

tile.kernel @i19_high(%x: !tile.view<f32, 2, read>) {
  // expected-error @+1 {{'tile.extent' op axis 2 of a view of rank 2}}
  %n = tile.extent %x, 2 : !tile.view<f32, 2, read>
}

// -----

tile.kernel @i19_negative(%x: !tile.view<f32, 2, read>) {
  // expected-error @+1 {{'tile.extent' op axis -1 of a view of rank 2}}
  %n = tile.extent %x, -1 : !tile.view<f32, 2, read>
}

// -----

//===-- The text form -----------------------------------------------------===//

tile.kernel @bad_order(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{unknown order 'sideways', expected one of unordered, tree, left, right}}
  %r = tile.reduce add sideways %v over ["a"] : tensor<?xf32, ["a"]> -> f32
}

// -----

tile.kernel @no_order(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "a" = %n
  %v = tile.broadcast %s : f32 -> tensor<?xf32, ["a"]>
  // expected-error @+1 {{the order is missing, expected one of unordered, tree, left, right}}
  %r = tile.reduce add %v over ["a"] : tensor<?xf32, ["a"]> -> f32
}

// -----

tile.kernel @bad_combiner(%s: f32, %y: !tile.view<f32, 0, write>) {
  // expected-error @+1 {{unknown combiner 'sum'}}
  tile.scatter sum %s, %y[] : f32, !tile.view<f32, 0, write>
}

// -----

// expected-error @+1 {{unknown tier 'sloppy'}}
tile.kernel @bad_tier() tier(sloppy) {
}

// -----

tile.kernel @bad_offset_types(%x: !tile.view<f32, 1, read>) {
  %n = arith.constant 4 : index
  // expected-error @+1 {{custom op 'tile.load' 1 operands present, but expected 2}}
  %v = tile.load %x[%n] at(index, index) : !tile.view<f32, 1, read> -> f32
}
