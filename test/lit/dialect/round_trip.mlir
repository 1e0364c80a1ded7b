// Every op with every optional clause: printing and parsing again changes
// nothing, in the custom and in the generic form.
//
// RUN: tessera-opt %s > %t.first
// RUN: tessera-opt %t.first > %t.second
// RUN: diff %t.first %t.second
// RUN: tessera-opt --mlir-print-op-generic %s > %t.generic
// RUN: tessera-opt %t.generic > %t.third
// RUN: diff %t.first %t.third
// RUN: FileCheck %s < %t.first

module attributes {tile.version = 1 : i64} {

// CHECK-LABEL: tile.kernel @parameters(
// CHECK-SAME: %x: !tile.view<f32, 2, read>
// CHECK-SAME: %y: !tile.view<bf16, 0, write>
// CHECK-SAME: %eps: f32 = 9.99999997E-7
// CHECK-SAME: %n: i32 = -3
// CHECK-SAME: %flag: i1 = true
// CHECK-SAME: %wide: f64
// CHECK-SAME: tier(strict) attributes {author.note = "kept"}
tile.kernel @parameters(%x: !tile.view<f32, 2, read>, %y: !tile.view<bf16, 0, write>,
    %eps: f32 = 1.0e-6, %n: i32 = -3, %flag: i1 = true, %wide: f64)
    tier(strict) attributes {author.note = "kept"} {
}

// CHECK-LABEL: tile.kernel @fast() tier(fast) {
tile.kernel @fast() tier(fast) {
}

// CHECK-LABEL: tile.kernel @types(
// CHECK-SAME: view<i1, 1, read>
// CHECK-SAME: view<i8, 2, read>
// CHECK-SAME: view<i16, 1, read>
// CHECK-SAME: view<i64, 1, read>
// CHECK-SAME: view<ui8, 1, read>
// CHECK-SAME: view<ui16, 1, read>
// CHECK-SAME: view<ui32, 1, read>
// CHECK-SAME: view<ui64, 1, read>
// CHECK-SAME: view<f16, 1, read>
// CHECK-SAME: view<f8E4M3FN, 1, read>
// CHECK-SAME: view<f8E5M2, 1, write>
// CHECK-SAME: view<f64, 16, write>
tile.kernel @types(%a: !tile.view<i1, 1, read>, %b: !tile.view<i8, 2, read>,
    %c: !tile.view<i16, 1, read>, %d: !tile.view<i64, 1, read>,
    %e: !tile.view<ui8, 1, read>, %f: !tile.view<ui16, 1, read>,
    %g: !tile.view<ui32, 1, read>, %h: !tile.view<ui64, 1, read>,
    %i: !tile.view<f16, 1, read>, %j: !tile.view<f8E4M3FN, 1, read>,
    %k: !tile.view<f8E5M2, 1, write>, %l: !tile.view<f64, 16, write>) {
}

// CHECK-LABEL: tile.kernel @structure(
tile.kernel @structure(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 2, write>, %c: i1) {
  // CHECK: tile.extent %x, 0 : {{.*}}<f32, 1, read>
  %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
  // CHECK: tile.dim "row" = %
  tile.dim "row" = %n
  // CHECK: tile.dim "odd name" = %
  tile.dim "odd name" = %n
  tile.dim "k" = %n
  // CHECK: tile.dim_size "row"
  %m = tile.dim_size "row"
  %zero = arith.constant 0.0 : f32
  // CHECK: tile.parallel (%{{.*}}, %{{.*}}) in ["row", "odd name"] attributes {tag} {
  tile.parallel (%i, %j) in ["row", "odd name"] attributes {tag} {
    %t = tile.load %x["k"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["k"]>
    // CHECK: tile.serial %[[I:.*]] in "k" carry(%[[A:.*]] = %{{.*}} : f32, %{{.*}} = %{{.*}} : tensor<?xf32, ["k"]>) attributes {tag} {
    %s:2 = tile.serial %p in "k" carry(%a = %zero : f32, %b = %t : tensor<?xf32, ["k"]>) attributes {tag} {
      // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, tensor<?xf32, ["k"]>
      tile.yield %a, %b : f32, tensor<?xf32, ["k"]>
    }
    // CHECK: tile.serial %{{.*}} in "k" {
    // CHECK-NOT: tile.yield
    // CHECK: }
    tile.serial %p in "k" {
      tile.store %s#0, %y[%i, %p] : f32, !tile.view<f32, 2, write>
    }
    // CHECK: tile.pipeline %{{.*}} in "k" carry(%{{.*}} = %{{.*}} : f32) attributes {window = 2 : i64} {
    // CHECK: tile.stage "loads"
    %q = tile.pipeline %p in "k" carry(%a = %zero : f32) attributes {window = 2 : i64} {
      tile.stage "loads"
      %l = tile.load %x[%p] : !tile.view<f32, 1, read> -> f32
      tile.stage "sums"
      %u = arith.addf %a, %l : f32
      tile.yield %u : f32
    }
    // CHECK: tile.parallel () in [] {
    tile.parallel () in [] {
    }
    // CHECK: tile.if %c -> (f32) {
    // CHECK: } else {
    %r = tile.if %c -> (f32) {
      tile.yield %q : f32
    } else {
      tile.yield %zero : f32
    }
    // CHECK: tile.if %c {
    tile.if %c {
      tile.store %r, %y[%i, %j] : f32, !tile.view<f32, 2, write>
    }
    // CHECK: tile.if %c {
    // CHECK: } else {
    tile.if %c {
    } else {
      tile.store %r, %y[%i, %j] : f32, !tile.view<f32, 2, write>
    }
    // CHECK: tile.fold %{{.*}} in "k" unordered init(%{{.*}} : f32) {
    // CHECK: } combine {
    // CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
    %f = tile.fold %p in "k" unordered init(%zero : f32) {
      %l = tile.load %x[%p] : !tile.view<f32, 1, read> -> f32
      tile.yield %l : f32
    } combine {
    ^bb0(%a: f32, %b: f32):
      %u = arith.addf %a, %b : f32
      tile.yield %u : f32
    }
    // CHECK: tile.fold %{{.*}} in "k" left init(%{{.*}}, %{{.*}} : f32, tensor<?xf32, ["k"]>) attributes {tag} {
    %g:2 = tile.fold %p in "k" left init(%zero, %t : f32, tensor<?xf32, ["k"]>) attributes {tag} {
      tile.yield %f, %t : f32, tensor<?xf32, ["k"]>
    } combine {
    ^bb0(%a: f32, %b: tensor<?xf32, ["k"]>, %d: f32, %e: tensor<?xf32, ["k"]>):
      tile.yield %d, %b : f32, tensor<?xf32, ["k"]>
    }
  }
}

// CHECK-LABEL: tile.kernel @memory(
tile.kernel @memory(%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 2, write>,
                    %e: !tile.view<f32, 0, write>, %ids: !tile.view<i64, 1, read>) {
  %n = tile.extent %x, 0 : !tile.view<f32, 2, read>
  tile.dim "r" = %n
  tile.dim "c" = %n
  tile.parallel (%i) in ["r"] {
    %o = arith.constant 3 : index
    %f = arith.constant 1.0 : f32
    %id = tile.load %ids["c"] : !tile.view<i64, 1, read> -> tensor<?xi64, ["c"]>
    %b = arith.constant true
    %m = tile.broadcast %b : i1 -> tensor<?xi1, ["c"]>
    // CHECK: tile.load %x[%{{.*}}, "c"] : !tile.view<f32, 2, read> -> tensor<?xf32, ["c"]>
    %v0 = tile.load %x[%i, "c"] : !tile.view<f32, 2, read> -> tensor<?xf32, ["c"]>
    // CHECK: tile.load %x["r", "c" * 2] promised : {{.*}} -> tensor<?x?xf32, ["r", "c"]>
    %v1 = tile.load %x["r", "c" * 2] promised : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["r", "c"]>
    // CHECK: tile.load %x[%{{.*}}, "c" * -1 + %{{.*}}] fill(%{{.*}} : f32) mask(%{{.*}} : tensor<?xi1, ["c"]>) {tag} :
    %v2 = tile.load %x[%i, "c" * -1 + %o] fill(%f : f32) mask(%m : tensor<?xi1, ["c"]>) {tag} : !tile.view<f32, 2, read> -> tensor<?xf32, ["c"]>
    // CHECK: tile.load %x[%{{.*}}, "r" + %{{.*}}] at(tensor<?xi64, ["c"]>, index) fill(%{{.*}} : f32) : {{.*}} -> tensor<?x?xf32, ["c", "r"]>
    %v3 = tile.load %x[%id, "r" + %o] at(tensor<?xi64, ["c"]>, index) fill(%f : f32) : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["c", "r"]>
    // CHECK: tile.store %{{.*}}, %y[%{{.*}}, "c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
    tile.store %v0, %y[%i, "c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
    // CHECK: tile.store %{{.*}}, %y[%{{.*}}, "c" * 2 + %{{.*}}] promised mask(%{{.*}} : tensor<?xi1, ["c"]>) {tag} :
    tile.store %v2, %y[%i, "c" * 2 + %o] promised mask(%m : tensor<?xi1, ["c"]>) {tag} : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
    // CHECK: tile.store %{{.*}}, %e[] : f32, !tile.view<f32, 0, write>
    tile.store %f, %e[] : f32, !tile.view<f32, 0, write>
    // CHECK: tile.scatter add %{{.*}}, %y[%{{.*}}, %{{.*}}] at(index, tensor<?xi64, ["c"]>) promised mask(%{{.*}} : tensor<?xi1, ["c"]>) {tag} :
    tile.scatter add %v0, %y[%i, %id] at(index, tensor<?xi64, ["c"]>) promised mask(%m : tensor<?xi1, ["c"]>) {tag} : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
    // CHECK: tile.scatter max_num
    tile.scatter max_num %v0, %y[%i, "c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
  }
}

// CHECK-LABEL: tile.kernel @shapes(
tile.kernel @shapes(%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 2, write>) {
  %n = tile.extent %x, 0 : !tile.view<f32, 2, read>
  tile.dim "r" = %n
  tile.dim "c" = %n
  %nn = arith.muli %n, %n : index
  tile.dim "rc" = %nn
  %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["r", "c"]>
  // CHECK: tile.transpose %{{.*}} : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["c", "r"]>
  %t = tile.transpose %v : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["c", "r"]>
  // CHECK: tile.reshape %{{.*}} : tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["rc"]>
  %u = tile.reshape %v : tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["rc"]>
  // CHECK: tile.iota "c" : tensor<?xi64, ["c"]>
  %i = tile.iota "c" : tensor<?xi64, ["c"]>
  // CHECK: tile.iota "c" : tensor<?xindex, ["c"]>
  %j = tile.iota "c" : tensor<?xindex, ["c"]>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] along "rc" : tensor<?xf32, ["rc"]>, tensor<?xi64, ["c"]> -> tensor<?xf32, ["c"]>
  %g = tile.gather %u[%i] along "rc" : tensor<?xf32, ["rc"]>, tensor<?xi64, ["c"]> -> tensor<?xf32, ["c"]>
  %f = arith.constant 1.0 : f32
  // CHECK: tile.gather %{{.*}}[%{{.*}}] along "rc" fill(%{{.*}} : f32) {tag} :
  %h = tile.gather %u[%i] along "rc" fill(%f : f32) {tag} : tensor<?xf32, ["rc"]>, tensor<?xi64, ["c"]> -> tensor<?xf32, ["c"]>
  // CHECK: tile.cast %{{.*}} : tensor<?xf32, ["c"]> -> tensor<?xi8, ["c"]>
  %a = tile.cast %g : tensor<?xf32, ["c"]> -> tensor<?xi8, ["c"]>
  // CHECK: tile.cast %{{.*}} unsigned_from unsigned_to : tensor<?xi8, ["c"]> -> tensor<?xi16, ["c"]>
  %b = tile.cast %a unsigned_from unsigned_to : tensor<?xi8, ["c"]> -> tensor<?xi16, ["c"]>
  // CHECK: tile.div %{{.*}}, %{{.*}} : tensor<?xi16, ["c"]>
  %d0 = tile.div %b, %b : tensor<?xi16, ["c"]>
  // CHECK: tile.rem %{{.*}}, %{{.*}} unsigned : tensor<?xi16, ["c"]>
  %d1 = tile.rem %b, %b unsigned : tensor<?xi16, ["c"]>
  // CHECK: tile.shl %{{.*}}, %{{.*}} : tensor<?xi16, ["c"]>
  %d2 = tile.shl %b, %b : tensor<?xi16, ["c"]>
  // CHECK: tile.shr %{{.*}}, %{{.*}} unsigned {tag} : tensor<?xi16, ["c"]>
  %d3 = tile.shr %b, %b unsigned {tag} : tensor<?xi16, ["c"]>
  // CHECK: tile.max_num %{{.*}}, %{{.*}} : tensor<?xf32, ["c"]>
  %m0 = tile.max_num %g, %h : tensor<?xf32, ["c"]>
  // CHECK: tile.min_num %{{.*}}, %{{.*}} : tensor<?xf32, ["c"]>
  %m1 = tile.min_num %g, %h : tensor<?xf32, ["c"]>
  // CHECK: tile.sigmoid %{{.*}} : tensor<?xf32, ["c"]>
  %s = tile.sigmoid %m0 : tensor<?xf32, ["c"]>
  // CHECK: tile.round_to %{{.*}} to bf16 : tensor<?xf32, ["c"]>
  %r = tile.round_to %s to bf16 : tensor<?xf32, ["c"]>
}

// CHECK-LABEL: tile.kernel @reductions(
tile.kernel @reductions(%x: !tile.view<f32, 2, read>) {
  %n = tile.extent %x, 0 : !tile.view<f32, 2, read>
  tile.dim "r" = %n
  tile.dim "c" = %n
  %z = arith.constant 0.0 : f32
  %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["r", "c"]>
  // CHECK: tile.reduce add unordered %{{.*}} over ["c"] : tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
  %a = tile.reduce add unordered %v over ["c"] : tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
  // CHECK: tile.reduce mul tree %{{.*}} over ["c", "r"] {tag} : tensor<?x?xf32, ["r", "c"]> -> f32
  %b = tile.reduce mul tree %v over ["c", "r"] {tag} : tensor<?x?xf32, ["r", "c"]> -> f32
  // CHECK: tile.reduce custom left %{{.*}}, %{{.*}} identity(%{{.*}}, %{{.*}} : f32, f32) over ["c"] : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>, tensor<?xf32, ["r"]> combine {
  %c:2 = tile.reduce custom left %v, %v identity(%z, %z : f32, f32) over ["c"] : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>, tensor<?xf32, ["r"]> combine {
  ^bb0(%p: f32, %q: f32, %s: f32, %t: f32):
    tile.yield %p, %t : f32, f32
  }
  // CHECK: tile.scan max right %{{.*}} along "c" exclusive reverse : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]>
  %d = tile.scan max right %v along "c" exclusive reverse : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]>
  // CHECK: tile.scan custom left %{{.*}} identity(%{{.*}} : f32) along "r" {tag} : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]> combine {
  %e = tile.scan custom left %v identity(%z : f32) along "r" {tag} : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]> combine {
  ^bb0(%p: f32, %q: f32):
    tile.yield %q : f32
  }
  // CHECK: tile.arg_reduce min %{{.*}} along "r" : tensor<?x?xf32, ["r", "c"]> -> tensor<?xi64, ["c"]>
  %f = tile.arg_reduce min %v along "r" : tensor<?x?xf32, ["r", "c"]> -> tensor<?xi64, ["c"]>
  // CHECK: tile.sort %{{.*}} along "c" : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]>
  %g = tile.sort %v along "c" : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]>
  // CHECK: tile.sort %{{.*}}, %{{.*}} along "c" descending unsigned {tag} :
  %h:2 = tile.sort %v, %g along "c" descending unsigned {tag} : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]>
  // CHECK: tile.contract %{{.*}}, %{{.*}} over ["c"] : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
  %i = tile.contract %v, %v over ["c"] : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
  // CHECK: tile.contract %{{.*}}, %{{.*}} acc(%{{.*}} : tensor<?xf32, ["r"]>) over ["c"] {order = #tile<order tree>} :
  %j = tile.contract %v, %v acc(%i : tensor<?xf32, ["r"]>) over ["c"] {order = #tile<order tree>} : tensor<?x?xf32, ["r", "c"]>, tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
}
}
