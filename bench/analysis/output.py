#===- bench/analysis/output.py - Texts to files and standard output --------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Writes what the programs of bench/ say. What cannot be written is a
ResultError with its place: the error of a failing write does not name one."""

import contextlib
import os
import pathlib
import sys

from .results import ResultError


def check_apart(outputs, inputs):
    """Fails where a file would be written that is read, or written twice."""
    taken = [(path, "is a result that is read") for path in inputs]
    for out in outputs:
        for path, what in taken:
            if os.path.realpath(out) == os.path.realpath(path) or (
                    os.path.exists(out) and os.path.exists(path) and
                    os.path.samefile(out, path)):
                raise ResultError(f"'{out}' {what}, expected another file to "
                                  "write")
        taken.append((out, "is written already"))


def write(path, text):
    """Writes to a file, or to standard output for "-"."""
    if str(path) == "-":
        show(text)
        return
    try:
        pathlib.Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise ResultError(
            f"cannot write '{path}': {error.strerror}") from error


def show(text):
    try:
        print(text, end="", flush=True)
    except OSError as error:
        # Python would try again, and complain, at its end.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ResultError("cannot write to standard output: "
                          f"{error.strerror}") from error
