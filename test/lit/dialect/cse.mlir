// Loads are merged when nothing can have written between them, and never across
// a store or a scatter.
//
// RUN: tessera-opt --cse %s | FileCheck %s

module attributes {tile.version = 1 : i64} {
// CHECK-LABEL: tile.kernel @loads(
tile.kernel @loads(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, write>, %z: !tile.view<f32, 1, write>) {
  %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
  tile.dim "c" = %n
  // CHECK: %[[A:.*]] = tile.load %x["c"]
  // CHECK-NOT: tile.load
  %a = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  %b = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  // CHECK: %[[S:.*]] = arith.addf %[[A]], %[[A]]
  %s = arith.addf %a, %b : tensor<?xf32, ["c"]>
  // CHECK: tile.store %[[S]], %y
  tile.store %s, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
  // A read-only view may share memory with %y.
  // CHECK: %[[C:.*]] = tile.load %x["c"]
  %c = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  // CHECK: tile.scatter add %[[C]], %y
  tile.scatter add %c, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
  // CHECK: %[[D:.*]] = tile.load %y["c"]
  %d = tile.load %y["c"] : !tile.view<f32, 1, write> -> tensor<?xf32, ["c"]>
  // CHECK: tile.store %[[D]], %z
  tile.store %d, %z["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
}

// Stores stay, however often they are repeated.
// CHECK-LABEL: tile.kernel @stores(
tile.kernel @stores(%y: !tile.view<f32, 1, write>, %s: f32) {
  %z = arith.constant 0 : index
  // CHECK-COUNT-2: tile.store
  tile.store %s, %y[%z] : f32, !tile.view<f32, 1, write>
  tile.store %s, %y[%z] : f32, !tile.view<f32, 1, write>
  // CHECK-COUNT-2: tile.scatter
  tile.scatter add %s, %y[%z] : f32, !tile.view<f32, 1, write>
  tile.scatter add %s, %y[%z] : f32, !tile.view<f32, 1, write>
}

// Ops that differ only in a flag are different.
// CHECK-LABEL: tile.kernel @flags(
tile.kernel @flags(%y: !tile.view<i32, 1, write>, %a: i32, %b: i32) {
  %z = arith.constant 0 : index
  // CHECK: tile.div %a, %b : i32
  %p = tile.div %a, %b : i32
  // CHECK: tile.div %a, %b unsigned : i32
  %q = tile.div %a, %b unsigned : i32
  // CHECK-NOT: tile.div
  %r = tile.div %a, %b : i32
  %s = arith.addi %p, %q : i32
  %t = arith.addi %s, %r : i32
  tile.store %t, %y[%z] : i32, !tile.view<i32, 1, write>
}

// A load in a loop that stores is not the load before the loop.
// CHECK-LABEL: tile.kernel @loop(
tile.kernel @loop(%y: !tile.view<f32, 1, write>) {
  %n = tile.extent %y, 0 : !tile.view<f32, 1, write>
  tile.dim "k" = %n
  %z = arith.constant 0 : index
  // CHECK: tile.load
  %a = tile.load %y[%z] : !tile.view<f32, 1, write> -> f32
  // CHECK: tile.serial
  tile.serial %i in "k" {
    // CHECK: tile.load
    %b = tile.load %y[%z] : !tile.view<f32, 1, write> -> f32
    %s = arith.addf %a, %b : f32
    tile.store %s, %y[%z] : f32, !tile.view<f32, 1, write>
  }
}

// An unused load goes, an unused loop with a store stays.
// CHECK-LABEL: tile.kernel @unused(
tile.kernel @unused(%y: !tile.view<f32, 1, write>, %s: f32) {
  %n = tile.extent %y, 0 : !tile.view<f32, 1, write>
  tile.dim "k" = %n
  // CHECK-NOT: tile.load
  // CHECK: tile.serial
  // CHECK: tile.store
  %a = tile.load %y["k"] : !tile.view<f32, 1, write> -> tensor<?xf32, ["k"]>
  tile.serial %i in "k" {
    tile.store %s, %y[%i] : f32, !tile.view<f32, 1, write>
  }
}
}
