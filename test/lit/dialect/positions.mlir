// Errors name the line and the column of the op.
//
// RUN: not tessera-opt --split-input-file %s 2>&1 | FileCheck %s

// CHECK: offset :6:67: error: 'tile.store' op writes to a read-only view
tile.kernel @one_line(%x: !tile.view<f32, 0, read>, %s: f32) {    tile.store %s, %x[] : f32, !tile.view<f32, 0, read>
}

// -----

// CHECK: offset :8:10: error: 'tile.yield' op yields ('index'), expected ('f32')
tile.kernel @nested(%s: f32) {
  %n = arith.constant 4 : index
  tile.dim "k" = %n
  %r = tile.serial %i in "k" carry(%a = %s : f32) {
         tile.yield %i : index
  }
}

// -----

// CHECK: offset :7:23: error: custom op 'tile.scatter' unknown combiner 'sum'
tile.kernel @keyword(%s: f32,
                     %y: !tile.view<f32, 0, write>) {

         tile.scatter sum %s, %y[] : f32, !tile.view<f32, 0, write>
}
