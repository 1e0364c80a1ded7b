#!/usr/bin/env python3
#===- check_layers.py - Who may include whom --------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Checks every #include of the tree against the table of layers below.

Prints one line per violation, "file:line: what was found, what is allowed",
and a last line with the count. Exit status 0 when clean, 1 otherwise.
--self-test proves on made-up files that each rule fires.
"""

import argparse
import pathlib
import re
import sys

# Folder -> the folders it may include, besides itself and include/tessera.
LAYERS = {
    "include/tessera": [],
    "support": [],
    "runtime": ["support"],
    "target": ["support"],
    "dialect": ["support"],
    "dsl": ["support", "target", "dialect"],
    "interp": ["support", "target", "dialect"],
    "analysis": ["support", "target", "dialect"],
    "plan": ["support", "target", "dialect", "analysis"],
    "realize": ["support", "target", "dialect", "analysis", "plan"],
    "codegen": ["support", "target", "dialect", "analysis", "plan", "realize"],
    "search": ["support", "target", "dialect", "analysis", "plan", "realize",
               "codegen"],
    "driver": ["support", "runtime", "target", "dialect", "dsl", "interp",
               "analysis", "plan", "realize", "codegen", "search"],
    "kernels": ["support", "runtime", "target", "dialect", "dsl", "interp",
                "driver"],
    "session": ["support", "runtime", "target", "dialect", "dsl", "interp",
                "plan", "driver", "kernels"],
}
# These see every folder above.
TOP = ["tools", "bench", "test", "python"]

# Folders whose files must not see MLIR or LLVM.
WITHOUT_MLIR = ["include/tessera", "support", "runtime", "target"]

# Public headers include the standard library and each other, nothing else.
THIRD_PARTY = re.compile(
    r"^(mlir|llvm|llvm-c|mlir-c|clang|fmt|nlohmann|CLI|gtest|gmock|benchmark)/")

# What `realize` may see of `plan`: the record, not how it is found.
PLAN_RECORD = re.compile(r"^plan/(plan|plan_.*|reason|reasons)\.h$")

# Back ends: folders under these that never see each other. What stands in
# SHARED is common to them and sees none of them.
BACK_ENDS = ["realize", "codegen", "runtime"]
SHARED = ["llvm", "host"]
# The CPU is always there, so the runtime's common part may call its device.
SEEN_BY_SHARED = {("runtime", "host", "cpu")}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SUFFIXES = {".h", ".cpp", ".inc", ".def"}


def folder_of(path):
    """The layer of a file given by its path from the repository root."""
    parts = pathlib.PurePosixPath(path).parts
    if parts[:2] == ("include", "tessera"):
        return "include/tessera"
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return parts[0]


def back_end_of(folder, parts):
    """The sub-folder under a folder that has back ends, or None."""
    return parts[0] if folder in BACK_ENDS and len(parts) > 1 else None


def check_file(path, text):
    """Yields (line number, message) for every forbidden include of a file."""
    folder = folder_of(path)
    known = list(LAYERS)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        if name.startswith("src/"):
            yield number, (f'found "{name}", expected the path from src: '
                           f'"{name[len("src/"):]}"')
            continue
        if ".." in name.split("/"):
            yield number, f'found "{name}", expected a path without ".."'
            continue
        if re.match(r"^(mlir|llvm|mlir-c|llvm-c)/", name) and \
                folder in WITHOUT_MLIR:
            yield number, (f'found "{name}", but {folder} must not see MLIR or '
                           "LLVM")
            continue
        if folder == "include/tessera":
            if THIRD_PARTY.match(name) or (quote == '"' and
                                           not name.startswith("tessera/")):
                yield number, (f'found "{name}", expected only tessera/ and '
                               "the standard library in a public header")
            continue
        if name.startswith("CLI/") and folder not in TOP:
            yield number, f'found "{name}", expected CLI11 only in tools'
            continue
        if name.startswith(("gtest/", "gmock/")) and folder != "test":
            yield number, f'found "{name}", expected GoogleTest only in test'
            continue
        parts = name.split("/")
        target = parts[0]
        if quote == "<" or len(parts) < 2:
            if quote == '"' and len(parts) == 1 and folder != "test" and \
                    not name.endswith(".inc"):
                yield number, (f'found "{name}", expected its path from src, '
                               f'for example "{folder}/{name}"')
            continue
        if folder in TOP or target == "tessera":
            continue
        if target in TOP:
            yield number, f'found "{name}", but {folder} is below {target}'
            continue
        if target not in known:
            continue
        if target != folder and target not in LAYERS.get(folder, []):
            allowed = ", ".join(LAYERS.get(folder, [])) or "nothing"
            yield number, (f'found "{name}", but {folder} may include only: '
                           f"{allowed}")
            continue
        if folder == "realize" and target == "plan" and \
                not PLAN_RECORD.match(name):
            yield number, (f'found "{name}", but realize sees only the plan '
                           "record (plan/plan.h, plan/reason.h)")
            continue
        if target in BACK_ENDS:
            theirs = back_end_of(target, parts[1:])
            ours = back_end_of(folder, pathlib.PurePosixPath(path).parts[2:])
            if ours and theirs and ours != theirs and \
                    theirs not in SHARED and \
                    (folder, ours, theirs) not in SEEN_BY_SHARED:
                yield number, (f'found "{name}", but the back ends {ours} and '
                               f"{theirs} must not see each other")


def self_test():
    """Each rule fires on a made-up file and stays silent on a right one."""
    bad = [
        ("src/support/a.cpp", '#include "plan/plan.h"'),
        ("src/support/a.cpp", '#include "mlir/IR/Builders.h"'),
        ("src/runtime/cpu/a.cpp", '#include <llvm/Support/Error.h>'),
        ("src/runtime/a.cpp", '#include "dialect/tile_ops.h"'),
        ("src/target/a.h", '#include "mlir/IR/Builders.h"'),
        ("src/plan/a.cpp", '#include "realize/cpu/phases.h"'),
        ("src/realize/cpu/a.cpp", '#include "plan/cost_model.h"'),
        ("src/realize/cpu/a.cpp", '#include "realize/gpu/layout.h"'),
        ("src/codegen/cpu/a.cpp", '#include "codegen/nvptx/a.h"'),
        ("src/codegen/llvm/a.cpp", '#include "codegen/cpu/a.h"'),
        ("src/runtime/cpu/a.cpp", '#include "runtime/cuda/a.h"'),
        ("src/runtime/host/a.cpp", '#include "runtime/cuda/a.h"'),
        ("src/dsl/a.cpp", '#include "interp/interpreter.h"'),
        ("src/driver/a.cpp", '#include "kernels/table.h"'),
        ("src/driver/a.cpp", '#include "tools/tessera/options.h"'),
        ("src/dsl/a.cpp", '#include "src/dialect/tile_ops.h"'),
        ("src/dsl/a.cpp", '#include "../dialect/tile_ops.h"'),
        ("src/dsl/a.cpp", '#include "tile.h"'),
        ("src/dsl/a.cpp", "#include <CLI/CLI.hpp>"),
        ("src/dsl/a.cpp", "#include <gtest/gtest.h>"),
        ("include/tessera/a.h", '#include "mlir/IR/Builders.h"'),
        ("include/tessera/a.h", '#include "support/hash.h"'),
        ("include/tessera/a.h", "#include <fmt/format.h>"),
    ]
    good = [
        ("src/support/a.cpp", '#include "tessera/error.h"'),
        ("src/dsl/a.cpp", '#include "dialect/tile_ops.h"'),
        ("src/dsl/a.cpp", '#include "mlir/IR/Builders.h"'),
        ("src/realize/cpu/a.cpp", '#include "plan/plan.h"'),
        ("src/codegen/cpu/a.cpp", '#include "codegen/llvm/jit.h"'),
        ("src/codegen/cpu/a.cpp", '#include "realize/cpu/phases.h"'),
        ("src/runtime/host/a.cpp", '#include "runtime/cpu/dispatch.h"'),
        ("src/dialect/a.cpp", '#include "dialect/TileOps.cpp.inc"'),
        ("include/tessera/a.h", "#include <vector>"),
        ("tools/tessera/main.cpp", '#include "driver/pipeline.h"'),
        ("test/unit/plan/a.cpp", '#include "realize/cpu/phases.h"'),
    ]
    wrong = [f"did not fire: {path}: {line}" for path, line in bad
             if not list(check_file(path, line))]
    wrong += [f"fired wrongly: {path}: {line}" for path, line in good
              if list(check_file(path, line))]
    for message in wrong:
        print(message)
    print(f"{len(bad) + len(good)} rules tried, {len(wrong)} wrong")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()

    files = violations = 0
    for top in ["include", "src", "kernels", "tools", "bench", "test"]:
        for path in sorted((arguments.root / top).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            files += 1
            relative = path.relative_to(arguments.root).as_posix()
            text = path.read_text(encoding="utf-8", errors="replace")
            folder = folder_of(relative)
            if folder not in LAYERS and folder not in TOP:
                print(f"{relative}:1: found folder {folder}, expected a row "
                      "for it in LAYERS of scripts/check_layers.py")
                violations += 1
            for number, message in check_file(relative, text):
                print(f"{relative}:{number}: {message}")
                violations += 1
    print(f"{files} files, {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
