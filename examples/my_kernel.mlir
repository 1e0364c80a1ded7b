// A kernel that is not in the library: soft-capped RMS normalization,
//
//   y[row, col] = cap * tanh(x[row, col] / sqrt(mean(x[row, :]^2) + eps) / cap)
//
// Run it on arrays of your own, and compare every element with what the
// reference interpreter allows:
//
//   tessera run examples/my_kernel.mlir \
//       --input x=examples/data/my_kernel/x.npy --output y=y.npy --verify
//
// or on generated ones: --dims row=128,col=1000 --set cap=30.
// docs/textual-ir.md describes the form.

!in = !tile.view<f32, 2, read>
!out = !tile.view<f32, 2, write>
!vec = tensor<?xf32, ["col"]>

module attributes {tile.version = 1 : i64} {
  // Parameters are views, whose extents come from the arrays, and scalars.
  tile.kernel @softcap_norm(%x: !in, %y: !out, %cap: f32 = 5.0,
                            %eps: f32 = 1.0e-6) {
    // Dimensions have names; tiles that share a name align.
    %rows = tile.extent %x, 0 : !in
    %cols = tile.extent %x, 1 : !in
    tile.dim "row" = %rows
    tile.dim "col" = %cols
    %count = tile.cast %cols : index -> f32

    // Rows are independent of each other.
    tile.parallel (%row) in ["row"] {
      %v = tile.load %x[%row, "col"] : !in -> !vec
      %squares = arith.mulf %v, %v : !vec
      %sum = tile.reduce add unordered %squares over ["col"] : !vec -> f32
      %mean = arith.divf %sum, %count : f32
      %shifted = arith.addf %mean, %eps : f32
      %inverse = math.rsqrt %shifted : f32

      // A scalar becomes a tile where one is needed.
      %inverses = tile.broadcast %inverse : f32 -> !vec
      %caps = tile.broadcast %cap : f32 -> !vec
      %normed = arith.mulf %v, %inverses : !vec
      %scaled = arith.divf %normed, %caps : !vec
      %bent = math.tanh %scaled : !vec
      %result = arith.mulf %bent, %caps : !vec
      tile.store %result, %y[%row, "col"] : !vec, !out
    }
  }
}
