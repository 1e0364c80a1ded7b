#!/usr/bin/env python3
#===- make_example_data.py - The arrays in examples/data --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Writes examples/data/OP/NAME.npy: normal values from a fixed seed.

The files are committed; this script says how they came to be. It needs nothing
but Python. Standard normal values are rounded to multiples of 1/4096, so that
the bytes do not depend on the platform's mathematical library.
"""

import argparse
import math
import pathlib
import random
import struct

# Operator -> array -> extents. Widths that are no multiple of a vector.
ARRAYS = {
    "rms_norm": {"x": (32, 1000), "w": (1000,)},
    "softmax": {"x": (32, 1000)},
    "layer_norm": {"x": (32, 1000), "w": (1000,), "b": (1000,)},
    "swiglu": {"gate": (16, 1000), "up": (16, 1000)},
    "rope": {"x": (16, 128), "cos": (16, 64), "sin": (16, 64)},
    "gelu_residual": {"x": (8, 1000), "r": (8, 1000)},
    "cross_entropy": {"logits": (8, 1000), "target": (8,)},
    "my_kernel": {"x": (16, 300)},
}


def header(descr, shape):
    """A version 1.0 header; the data begins at a multiple of 64 bytes."""
    extents = ", ".join(str(extent) for extent in shape)
    comma = "," if len(shape) == 1 else ""
    text = (f"{{'descr': '{descr}', 'fortran_order': False, "
            f"'shape': ({extents}{comma}), }}")
    padding = -(10 + len(text) + 1) % 64
    text += " " * padding + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + \
        text.encode("latin1")


def write(path, shape, seed):
    rng = random.Random(seed)
    count = math.prod(shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.stem == "target":
        data = struct.pack(f"<{count}q",
                           *[rng.randrange(1000) for _ in range(count)])
        path.write_bytes(header("<i8", shape) + data)
        return
    if path.stem in ("cos", "sin"):
        function = math.cos if path.stem == "cos" else math.sin
        half = shape[1]
        values = [function(row * 10000.0 ** (-i / half))
                  for row in range(shape[0]) for i in range(half)]
    else:
        values = [rng.gauss(0, 1) for _ in range(count)]
    rounded = [round(value * 4096) / 4096 for value in values]
    path.write_bytes(header("<f4", shape) + struct.pack(f"<{count}f", *rounded))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path,
                        default=root / "examples" / "data")
    folder = parser.parse_args().out
    for operator, arrays in ARRAYS.items():
        for name, shape in arrays.items():
            write(folder / operator / f"{name}.npy", shape,
                  f"{operator}/{name}")
    total = sum(path.stat().st_size for path in folder.rglob("*.npy"))
    print(f"{total} bytes in {folder}")


if __name__ == "__main__":
    main()
