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


def write(path, text):
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
