// @racy: every instance writes one element. @liar: a promise that does not
// hold.
!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>
module attributes {tile.version = 1 : i64} {
  tile.kernel @racy(%x: !in, %y: !out) {
    %e = tile.extent %x, 0 : !in
    tile.dim "n" = %e
    %zero = arith.constant 0 : index
    tile.parallel (%i) in ["n"] {
      %v = tile.load %x[%i] : !in -> f32
      tile.store %v, %y[%i] : f32, !out
      tile.store %v, %y[%zero] : f32, !out
    }
  }
  tile.kernel @liar(%x: !in, %y: !out) {
    %e = tile.extent %x, 0 : !in
    tile.dim "n" = %e
    %far = arith.constant 1000000000 : index
    tile.parallel (%i) in ["n"] {
      %o = arith.addi %i, %far : index
      %v = tile.load %x[%o] promised : !in -> f32
      tile.store %v, %y[%i] : f32, !out
    }
  }
}
