// The rows of x that ids name. Axis 0 of x is no dimension.
!m = !tile.view<f32, 2, read>
!o = !tile.view<f32, 2, write>
!i = !tile.view<i64, 1, read>
!t = tensor<?xi64, ["token"]>
!v = tensor<?x?xf32, ["token", "col"]>
module attributes {tile.version = 1 : i64} {
  tile.kernel @take(%x: !m, %ids: !i, %y: !o) {
    %cols = tile.extent %x, 1 : !m
    %n = tile.extent %ids, 0 : !i
    tile.dim "token" = %n
    tile.dim "col" = %cols
    %id = tile.load %ids["token"] : !i -> !t
    %r = tile.load %x[%id, "col"] at(!t) : !m -> !v
    tile.store %r, %y["token", "col"] : !v, !o
  }
}
