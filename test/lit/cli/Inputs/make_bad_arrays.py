"""Writes .npy and .mlir files that are wrong in one way each, and a few right
ones to compare with."""

import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def npy(name, descr, shape, data, fortran=False):
    text = (f"{{'descr': {descr!r}, 'fortran_order': {fortran}, "
            f"'shape': {shape}, }}")
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    (folder / name).write_bytes(
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() +
        data)


values = [1, 2, 3, 4, 5, 6]
little = struct.pack("<6f", *values)
npy("good.npy", "<f4", "(2, 3)", little)
npy("fortran.npy", "<f4", "(2, 3)", struct.pack("<6f", 1, 4, 2, 5, 3, 6), True)
npy("big.npy", ">f4", "(2, 3)", struct.pack(">6f", *values))
npy("truncated.npy", "<f4", "(2, 3)", little[:-4])
npy("huge.npy", "<f4", "(1000000000, 1000000000)", little)
npy("negative.npy", "<f4", "(-2, 3)", little)
npy("object.npy", "|O", "(2, 3)", little)
npy("double.npy", "<f8", "(2, 3)", struct.pack("<6d", *values))
npy("rank1.npy", "<f4", "(6,)", little)
npy("rows.npy", "<i8", "(2,)", struct.pack("<2q", 1, 0))
npy("endless.npy", "<f4", "(0, 9223372036854775807)", b"")
npy("ids.npy", "<i8", "(2,)", struct.pack("<2q", 1, 5))
(folder / "empty.npy").write_bytes(b"")
(folder / "noise.npy").write_bytes(bytes(range(256)) * 2)

(folder / "malformed.mlir").write_text(
    "module attributes {tile.version = 1 : i64} {\n  tile.kernel @k(%x {\n}\n")
(folder / "deep.mlir").write_text("(" * 100000)
(folder / "version.mlir").write_text(
    "// a later one\nmodule  attributes { tile.version = 99 : i64} {\n}\n")
(folder / "types.mlir").write_text("""module attributes {tile.version = 1 : i64} {
  tile.kernel @k(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, write>) {
    %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %n
    %v = tile.load %x["n"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["n"]>
    %w = arith.addi %v, %v : tensor<?xf32, ["n"]>
    tile.store %w, %y["n"] : tensor<?xf32, ["n"]>, !tile.view<f32, 1, write>
  }
}
""")
# A dimension whose name is no UTF-8.
(folder / "bytes.mlir").write_bytes(b"""!x = !tile.view<f32, 2, read>
module attributes {tile.version = 1 : i64} {
  tile.kernel @k(%x: !x, %y: !tile.view<f32, 1, write>) {
    %rows = tile.extent %x, 0 : !x
    %first = arith.constant 0 : index
    tile.dim "ro\xff" = %rows
    %v = tile.load %x["ro\xff", %first] : !x -> tensor<?xf32, ["ro\xff"]>
    tile.store %v, %y["ro\xff"]
        : tensor<?xf32, ["ro\xff"]>, !tile.view<f32, 1, write>
  }
}
""")
