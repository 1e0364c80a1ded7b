module attributes {tile.version = 1 : i64} {
  tile.kernel @fill(%y: !tile.view<f32, 1, write>, %value: f32 = 0xFF800000) {
    %e = tile.extent %y, 0 : !tile.view<f32, 1, write>
    tile.dim "n" = %e
    %t = tile.broadcast %value : f32 -> tensor<?xf32, ["n"]>
    tile.store %t, %y["n"] : tensor<?xf32, ["n"]>, !tile.view<f32, 1, write>
  }
}
