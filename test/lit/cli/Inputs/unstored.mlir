!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>

module attributes {tile.version = 1 : i64} {
  // One of two outputs is written.
  tile.kernel @unstored(%x: !in, %y: !out, %z: !out) {
    %n = tile.extent %x, 0 : !in
    tile.dim "n" = %n
    tile.parallel (%i) in ["n"] {
      %v = tile.load %x[%i] : !in -> f32
      %w = tile.load %y[%i] : !out -> f32
      tile.store %v, %z[%i] : f32, !out
    }
  }
}
