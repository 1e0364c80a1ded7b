#===- bench/analysis/operators.py - What an operator's arrays measure ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Sizes of arrays from an operator's dimensions. operators.json is a part of
`tessera list --json`; a test compares them and says REWRITE when they differ."""

import json
import pathlib
import subprocess
import sys

WIDTHS = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2,
          "i8": 1, "u8": 1, "bool": 1}
REWRITE = "to write bench/analysis/operators.json anew: " \
    "python3 bench/analysis/operators.py build/release/bin/tessera"
TABLE = pathlib.Path(__file__).with_name("operators.json")


def load_table(path=TABLE):
    """Operators by name."""
    with open(path, encoding="utf-8") as file:
        return {entry["name"]: entry for entry in json.load(file)["operators"]}


def extent(axis, dims):
    """An axis is a dimension's name, "NAME/NUMBER" or "NAME/NAME". KeyError for
    a name without extent."""
    name, slash, divisor = axis.partition("/")
    if not slash:
        return dims[name]
    divisor = int(divisor) if divisor.isdecimal() else dims[divisor]
    return dims[name] // divisor if divisor else 0


class Array:
    """One array of a row."""

    def __init__(self, name, optional, dtype, extents):
        self.name, self.optional, self.dtype = name, optional, dtype
        self.elements = 1
        for size in extents:
            self.elements *= size
        self.bytes = self.elements * WIDTHS.get(dtype, 0)


def arrays_of(row, table):
    """(inputs, outputs) of a row by name, or None where neither the table nor
    the row itself describes its operator. Inputs are then only known from the
    table. KeyError when a dimension is missing."""
    entry = table.get(row["operator"])
    extents = {**(row.get("settings") or {}), **row["dims"]}
    if entry:
        # Extents that follow from others, as those of the results of windows,
        # are those that the compiled kernel asked for.
        reported = {parameter["name"]: parameter["extents"]
                    for arm in row.get("arms", [])
                    for kernel in arm.get("report") or []
                    for parameter in kernel.get("parameters") or []
                    if parameter.get("kind") == "view"}

        def extents_of(item):
            try:
                return [extent(axis, extents) for axis in item["axes"]]
            except KeyError:
                if item["name"] not in reported:
                    raise
                return reported[item["name"]]

        def side(name):
            return {item["name"]: Array(
                item["name"], item["optional"], item["dtype"] or row["dtype"],
                extents_of(item)) for item in entry[name]}
        return side("inputs"), side("outputs")
    if row.get("outputs"):
        return {}, {item["name"]: Array(item["name"], False, item["dtype"],
                                        item["extents"])
                    for item in row["outputs"]}
    return None


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: operators.py PATH-OF-TESSERA\n" + REWRITE,
              file=sys.stderr)
        return 2
    try:
        listed = json.loads(subprocess.run(
            [sys.argv[1], "list", "--json", "-"], check=True, text=True,
            stdout=subprocess.PIPE).stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        print(f"operators.py: {sys.argv[1]}: {error}", file=sys.stderr)
        return 2
    lines = [json.dumps({name: entry[name] for name in
                         ("name", "dims", "inputs", "outputs")})
             for entry in listed["operators"]]
    TABLE.write_text('{"schema": %d, "operators": [\n%s\n]}\n' %
                     (listed["schema"], ",\n".join(lines)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
