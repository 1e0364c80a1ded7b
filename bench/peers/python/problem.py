#===- problem.py - What a Python peer provides ------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The interface between worker.py and the modules of peers.

A module NAME.py of this folder defines a class Peer:

    class Peer:
        def describe(self):                  name, version, mathMode, boundaries
        def prepare(self, request, arrays):  a Problem

`request` is the "prepare" request (docs/benchmarking.md); `arrays` maps names
to numpy views of the shared memory, bf16 as uint16 (see dtypes()).
"""

import hashlib


class Unsupported(Exception):
    """The peer has no such operation, or not in this form."""


class Problem:
    """A problem that is ready to run.

    A turn is begin(), any number of run(), finish(). Only run() is timed. A
    library that keeps arrays of its own copies them in begin() and finish();
    one that works on the shared memory needs neither.
    """

    # (int (*)(void *), void *) as addresses where a compiled entry is called
    # without Python, as `native` rows must be; run() is not used then.
    native = None

    # (warm, samples, inner) -> nanoseconds of each sample, from the clock of a
    # device, as `device` rows must be; run() is not used then.
    interval = None

    def __init__(self):
        # Hashes and settings that tell what ran; both stand in the result.
        self.identity = {}
        self.detail = {}

    def begin(self):
        pass

    def run(self):
        raise NotImplementedError

    def finish(self):
        pass

    def release(self):
        pass


class Direct(Problem):
    """A function that writes the outputs where they belong."""

    def __init__(self, call):
        super().__init__()
        self.run = call
        self.detail["outputs"] = "written in place (out=)"


class CopiedOutputs(Problem):
    """A function that returns arrays of its own; `store(result, array)` brings
    one into the shared memory after the timed calls."""

    def __init__(self, call, outputs, store):
        super().__init__()
        self.call, self.outputs, self.store = call, outputs, store
        self.results = ()
        self.detail["outputs"] = ("allocated by the peer in each call, copied "
                                  "to the shared memory after the timed calls")

    def run(self):
        self.results = self.call()

    def finish(self):
        # A result that is missing would leave its output as it was.
        for result, output in zip(self.results, self.outputs, strict=True):
            self.store(result, output)


def dtypes(request):
    """Type names ("f32", "bf16") by array."""
    return {array["name"]: array["dtype"] for array in request["arrays"]}


def settings_of(request):
    """Scalars and extents by name: which of the two something is, as k of a
    top_k, is the operator's matter."""
    return {**request["dims"], **request["settings"]}


def choice(settings, name, names):
    """A setting that is one of `names`, or its number; the first without."""
    value = settings.get(name, 0)
    if isinstance(value, str):
        if value not in names:
            raise Unsupported(f"has no {name} {value}")
        return value
    return names[int(value)]


ACTIVATIONS = ("none", "relu", "gelu", "silu")


def input_names(request):
    return [array["name"] for array in request["arrays"] if not array["output"]]


def output_names(request):
    return [array["name"] for array in request["arrays"] if array["output"]]


def only_dtypes(request, *allowed):
    """Refuses rows of other floating types."""
    if request["dtype"] not in allowed:
        raise Unsupported(f"is not measured with {request['dtype']} arrays")


def operator_of(table, request):
    operator = request["operator"]
    if operator not in table:
        raise Unsupported(f"has no form of {operator} here")
    return table[operator]


def hash_text(text):
    if isinstance(text, str):
        text = text.encode()
    return hashlib.sha256(text).hexdigest()[:32]
