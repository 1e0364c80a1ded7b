#===- halide.py - Halide, compiled ahead of time ------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Pipelines with schedules as one writes them by hand: rows in parallel, columns
in vectors, sums in four of them, intermediate rows kept beside their use. The
compiled function is called by its entry: without its argument checks at the
boundary `native`, with them at `call`."""

import ctypes
import importlib.metadata
import math
import pathlib
import shutil
import subprocess
import tempfile

import halide as hl

from python import entries
from python.problem import (Unsupported, hash_text, input_names, only_dtypes,
                            operator_of, output_names)

LANES = 16
# Columns that a reduction advances by: four vectors.
WIDTH = 4 * LANES

TYPES = {"f32": hl.Float(32), "i64": hl.Int(64), "bool": hl.Bool()}


class Dimension(ctypes.Structure):
    """halide_dimension_t."""
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32),
                ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Buffer(ctypes.Structure):
    """halide_buffer_t."""
    _fields_ = [("device", ctypes.c_uint64),
                ("interface", ctypes.c_void_p),
                ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("dimensions", ctypes.c_int32),
                ("dim", ctypes.POINTER(Dimension)),
                ("padding", ctypes.c_void_p)]


# Codes of halide_type_t: signed, unsigned, floating.
CODES = {"f32": (2, 32), "i64": (0, 64), "bool": (1, 1)}


def buffer_of(array, dtype):
    extents = list(reversed(array.shape))
    strides = [step // array.itemsize for step in reversed(array.strides)]
    dims = (Dimension * len(extents))(*[
        Dimension(0, extent, stride, 0)
        for extent, stride in zip(extents, strides)])
    buffer = Buffer(host=array.ctypes.data, code=CODES[dtype][0],
                    bits=CODES[dtype][1], lanes=1, dimensions=len(extents),
                    dim=dims)
    buffer.keep = dims
    return buffer


class Rows:
    """A pipeline over rows (y) and columns (x)."""

    def __init__(self, request, inputs):
        self.inputs, self.settings = inputs, request["settings"]
        self.rows, self.cols = request["dims"]["rows"], request["dims"]["cols"]
        self.threads = request["threads"]
        self.x, self.y = hl.Var("x"), hl.Var("y")
        # Scheduled by their row, when the output is known.
        self.kept = []

    def __getitem__(self, name):
        return self.inputs[name]

    def setting(self, name, otherwise):
        return hl.f32(float(self.settings.get(name, otherwise)))

    def reduce(self, value, combine, identity):
        """Of value(column, row) along the columns: a Func of the row."""
        u, y = hl.Var("u"), self.y
        whole = self.cols // WIDTH
        result = hl.Func("reduced")
        result[y] = identity
        if whole > 0:
            lanes = hl.Func("lanes")
            r = hl.RDom([(0, whole)])
            lanes[u, y] = identity
            lanes[u, y] = combine(lanes[u, y], value(u + WIDTH * r.x, y))
            across = hl.RDom([(0, WIDTH)])
            result[y] = combine(result[y], lanes[across.x, y])
            self.kept.append(("lanes", lanes, u, r))
            self.kept.append(("result", result, across, None))
        else:
            self.kept.append(("plain", result, None, None))
        if self.cols % WIDTH:
            rest = hl.RDom([(whole * WIDTH, self.cols % WIDTH)])
            result[y] = combine(result[y], value(rest.x, y))
        return result

    def sum(self, value):
        return self.reduce(value, lambda a, b: a + b, hl.f32(0))

    def max(self, value):
        return self.reduce(value, hl.max, hl.f32(-math.inf))

    def keep(self, value):
        """A row of values that is stored, not computed again."""
        row = hl.Func("kept")
        row[self.x, self.y] = value(self.x, self.y)
        self.kept.append(("row", row, None, None))
        return lambda x, y: row[x, y]

    def schedule(self, output):
        y = self.y
        if self.threads > 1:
            task = max(self.rows // (4 * self.threads), 1)
            outer, inner = hl.Var("yo"), hl.Var("yi")
            output.split(y, outer, inner, task, hl.TailStrategy.GuardWithIf)
            output.parallel(outer)
            y = inner
        for kind, func, a, b in self.kept:
            func.compute_at(output, y)
            if kind == "lanes":
                outer, lane = hl.Var("uo"), hl.Var("ul")
                func.vectorize(a, LANES)
                func.update(0).split(a, outer, lane, LANES).reorder(
                    lane, outer, b.x, self.y).vectorize(lane).unroll(outer)
            elif kind == "result":
                func.update(0).atomic().vectorize(a.x, LANES)
            elif kind == "row" and self.cols >= LANES:
                func.vectorize(self.x, LANES)

    def finish(self, output):
        """Schedules an output over columns and rows."""
        output.bound(self.x, 0, self.cols).bound(self.y, 0, self.rows)
        self.schedule(output)
        if self.cols >= LANES:
            output.vectorize(self.x, LANES)
        return output

    def map(self, *values):
        output = hl.Func("output")
        results = tuple(value(self.x, self.y) for value in values)
        output[self.x, self.y] = (results if len(results) > 1
                                  else results[0])
        return self.finish(output)

    def column(self, value):
        """One element per row."""
        output = hl.Func("output")
        output[self.y] = value(self.y)
        output.bound(self.y, 0, self.rows)
        self.schedule(output)
        return output


def sigmoid(v):
    return hl.f32(1) / (hl.f32(1) + hl.exp(-v))


SLOPE = 2 * math.sqrt(2 / math.pi)
CUBE = SLOPE * 0.044715


def gelu(v):
    return v * sigmoid(v * (hl.f32(SLOPE) + hl.f32(CUBE) * v * v))


def rms(p, total):
    square = p.sum(lambda x, y: total(x, y) * total(x, y))
    eps = p.setting("eps", 1e-6)
    inverse = lambda y: hl.f32(1) / hl.sqrt(square[y] / hl.f32(p.cols) + eps)
    return lambda x, y: total(x, y) * inverse(y) * p["w"][x]


def norm(p, value):
    total = p.sum(value)
    mean = lambda y: total[y] / hl.f32(p.cols)
    deviation = p.keep(lambda x, y: value(x, y) - mean(y))
    square = p.sum(lambda x, y: deviation(x, y) * deviation(x, y))
    eps = p.setting("eps", 1e-5)
    inverse = lambda y: hl.f32(1) / hl.sqrt(square[y] / hl.f32(p.cols) + eps)
    return lambda x, y: (deviation(x, y) * inverse(y) * p["w"][x]
                         + p["b"][x])


def input_row(p, name):
    return lambda x, y: p[name][x, y]


def sum_rows(p):
    return p.keep(lambda x, y: p["x"][x, y] + p["r"][x, y])


def add_rms_norm(p):
    total = sum_rows(p)
    return p.map(rms(p, total), total)


def exponentials(p, value):
    highest = p.max(value)
    e = p.keep(lambda x, y: hl.exp(value(x, y) - highest[y]))
    total = p.sum(e)
    return highest, e, total


def softmax(p, value):
    _, e, total = exponentials(p, value)
    return p.map(lambda x, y: e(x, y) * (hl.f32(1) / total[y]))


def masked(p):
    return p.keep(lambda x, y: hl.select(p["mask"][x, y], p["x"][x, y],
                                         hl.f32(-math.inf)))


def cross_entropy(p):
    logits = input_row(p, "logits")
    highest = p.max(logits)
    total = p.sum(lambda x, y: hl.exp(logits(x, y) - highest[y]))
    ignored = int(p.settings.get("ignore_index", -100))

    def loss(y):
        target = p["target"][y]
        column = hl.clamp(hl.i32(target), 0, p.cols - 1)
        value = hl.log(total[y]) + highest[y] - logits(column, y)
        return hl.select(target == hl.i64(ignored), hl.f32(0), value)

    return p.column(loss)


def rope(p):
    half = p.cols // 2
    if p.settings.get("interleaved", 0):
        raise Unsupported("rope: only halves as pairs")
    if half < LANES:
        raise Unsupported(f"rope: only with at least {2 * LANES} columns")
    x, y, i, part = p.x, p.y, hl.Var("i"), hl.Var("part")
    # Halves as an axis of their own, which is unrolled.
    output = hl.Func("output")
    a, b, c, s = (p["x"][i, 0, y], p["x"][i, 1, y], p["cos"][i, y],
                  p["sin"][i, y])
    output[i, part, y] = hl.select(part == 0, a * c - b * s, b * c + a * s)
    output.bound(i, 0, half).bound(part, 0, 2).bound(y, 0, p.rows)
    output.reorder(part, i, y).unroll(part)
    p.schedule(output)
    output.vectorize(i, LANES)
    return output


def gelu_pair(p):
    def y_(x, y):
        return gelu(p["x"][x, y])

    def dy(x, y):
        v = p["x"][x, y]
        s = sigmoid(v * (hl.f32(SLOPE) + hl.f32(CUBE) * v * v))
        steep = hl.f32(SLOPE) + hl.f32(3 * CUBE) * v * v
        return s + s * (hl.f32(1) - s) * v * steep

    return p.map(y_, dy)


def sigmoid_pair(p):
    def slope(x, y):
        s = sigmoid(p["x"][x, y])
        return s * (hl.f32(1) - s)

    return p.map(lambda x, y: sigmoid(p["x"][x, y]), slope)


def transpose(p):
    output, x, y = hl.Func("output"), p.x, p.y
    xi, yi, xo, yo = (hl.Var(n) for n in ("xi", "yi", "xo", "yo"))
    output[x, y] = p["x"][y, x]
    output.bound(x, 0, p.rows).bound(y, 0, p.cols)
    if min(p.rows, p.cols) >= LANES:
        output.tile(x, y, xo, yo, xi, yi, LANES, LANES).vectorize(xi).unroll(
            yi)
        if p.threads > 1:
            output.parallel(yo)
    return output


OPERATORS = {
    "copy": lambda p: p.map(input_row(p, "x")),
    "add": lambda p: p.map(lambda x, y: p["a"][x, y] + p["b"][x, y]),
    "transpose": transpose,
    "row_sum": lambda p: p.column(
        (lambda total: lambda y: total[y])(p.sum(input_row(p, "x")))),
    "row_max": lambda p: p.column(
        (lambda top: lambda y: top[y])(p.max(input_row(p, "x")))),
    "row_mean": lambda p: p.column(
        (lambda total: lambda y: total[y] / hl.f32(p.cols))(
            p.sum(input_row(p, "x")))),
    "softmax": lambda p: softmax(p, input_row(p, "x")),
    "masked_softmax": lambda p: softmax(p, masked(p)),
    "rms_norm": lambda p: p.map(rms(p, input_row(p, "x"))),
    "add_rms_norm": add_rms_norm,
    "layer_norm": lambda p: p.map(norm(p, input_row(p, "x"))),
    "residual_layer_norm": lambda p: p.map(norm(p, sum_rows(p))),
    "gelu_residual": lambda p: p.map(
        lambda x, y: gelu(p["x"][x, y]) + p["r"][x, y]),
    "swiglu": lambda p: p.map(
        lambda x, y: p["gate"][x, y] * sigmoid(p["gate"][x, y])
        * p["up"][x, y]),
    "rope": rope,
    "sigmoid_pair": sigmoid_pair,
    "gelu_pair": gelu_pair,
    "cross_entropy": cross_entropy,
}

NOTES = {"masked_softmax": "a row where nothing is visible gives NaN"}


def linked(pipeline, arguments, target):
    """(library, hash of the object) of a pipeline."""
    compiler = (shutil.which("clang++-19") or shutil.which("clang++")
                or shutil.which("g++"))
    if not compiler:
        raise RuntimeError("found no C++ compiler to link with")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera-halide-"))
    try:
        pipeline.compile_to_object(str(folder / "entry.o"), arguments,
                                   "tessera_entry", target)
        digest = hash_text((folder / "entry.o").read_bytes())
        subprocess.run([compiler, "-shared", "-o", folder / "entry.so",
                        folder / "entry.o", "-lpthread", "-ldl", "-lm"],
                       check=True)
        return ctypes.CDLL(str(folder / "entry.so")), digest
    finally:
        shutil.rmtree(folder)


class Peer:
    def describe(self):
        return {"name": "halide",
                "version": importlib.metadata.version("halide"),
                "mathMode": "reassociation and fused multiply-add allowed "
                            "(no strict_float), exp and log by Halide's "
                            "polynomials",
                "boundaries": ["native", "call", "batch"],
                "details": {"target": str(hl.get_target_from_environment()),
                            "schedules": "by hand"}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        build = operator_of(OPERATORS, request)
        kinds = {a["name"]: a["dtype"] for a in request["arrays"]}
        views = dict(arrays)
        if request["operator"] == "rope":
            for name in ("x", "y"):
                rows, cols = views[name].shape
                views[name] = views[name].reshape(rows, 2, cols // 2)
        inputs, parameters = {}, []
        for name in input_names(request):
            array = views[name]
            parameter = hl.ImageParam(TYPES[kinds[name]], array.ndim, name)
            for axis, extent in enumerate(reversed(array.shape)):
                parameter.dim(axis).set_bounds(0, extent)
                if axis > 0:
                    parameter.dim(axis).set_stride(
                        array.strides[-1 - axis] // array.itemsize)
            inputs[name] = parameter
            parameters.append(parameter)
        pipeline = hl.Pipeline(build(Rows(request, inputs)))
        target = hl.get_target_from_environment()
        if request["boundary"] == "native":
            target = target.with_feature(hl.TargetFeature.NoAsserts)
            target = target.with_feature(hl.TargetFeature.NoBoundsQuery)
        library, digest = linked(pipeline, parameters, target)
        buffers = [buffer_of(views[name], kinds[name])
                   for name in [*input_names(request), *output_names(request)]]
        problem = entries.Entries(
            request["timer"],
            [(entries.address(library.tessera_entry),
              [ctypes.addressof(buffer) for buffer in buffers])],
            (library, buffers, views))
        problem.identity["object"] = digest
        problem.detail["outputs"] = "buffers of the shared memory"
        if request["operator"] in NOTES:
            problem.detail["note"] = NOTES[request["operator"]]
        return problem
