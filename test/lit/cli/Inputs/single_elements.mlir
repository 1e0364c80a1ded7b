module attributes {tile.version = 1 : i64} {
  tile.kernel @twice(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, write>) {
    %extent = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %extent
    tile.parallel (%i) in ["n"] {
      %v = tile.load %x[%i] : !tile.view<f32, 1, read> -> f32
      %twice = arith.addf %v, %v : f32
      tile.store %twice, %y[%i] : f32, !tile.view<f32, 1, write>
    }
  }
}
