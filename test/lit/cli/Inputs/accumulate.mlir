// @zeros fills an array, @count adds to what it finds there.
!y = !tile.view<i64, 1, write>
!t = tensor<?xi64, ["n"]>
module attributes {tile.version = 1 : i64} {
  tile.kernel @zeros(%y: !y, %value: i64 = 0) {
    %e = tile.extent %y, 0 : !y
    tile.dim "n" = %e
    %t = tile.broadcast %value : i64 -> !t
    tile.store %t, %y["n"] : !t, !y
  }
  tile.kernel @count(%y: !y, %by: i64 = 9007199254740993, %on: i1 = true) {
    %e = tile.extent %y, 0 : !y
    tile.dim "n" = %e
    %v = tile.load %y["n"] : !y -> !t
    %zero = arith.constant 0 : i64
    %step = arith.select %on, %by, %zero : i1, i64
    %steps = tile.broadcast %step : i64 -> !t
    %w = arith.addi %v, %steps : !t
    tile.store %w, %y["n"] : !t, !y
  }
}
