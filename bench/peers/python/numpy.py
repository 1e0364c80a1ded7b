#===- numpy.py - numpy, as the baseline everyone has --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import math

import numpy

from python.problem import (Direct, input_names, only_dtypes,
                            operator_of, output_names)


def scratch(i, name="x"):
    return numpy.empty_like(i[name])


def softmax(i, s, o):
    x, y = i["x"], o["y"]

    def run():
        numpy.subtract(x, x.max(1, keepdims=True), out=y)
        numpy.exp(y, out=y)
        numpy.divide(y, y.sum(1, keepdims=True), out=y)

    return run


def masked_softmax(i, s, o):
    x, mask, y = i["x"], i["mask"], o["y"]
    low = x.dtype.type(-math.inf)

    def run():
        visible = numpy.where(mask, x, low)
        numpy.subtract(visible, visible.max(1, keepdims=True), out=y)
        numpy.exp(y, out=y)
        numpy.divide(y, y.sum(1, keepdims=True), out=y)

    return run


def rms(x, w, eps, y):
    mean = numpy.einsum("ij,ij->i", x, x)[:, None] / x.shape[1]
    numpy.multiply(x, 1 / numpy.sqrt(mean + eps), out=y)
    numpy.multiply(y, w, out=y)


def rms_norm(i, s, o):
    eps = i["x"].dtype.type(s.get("eps", 1e-6))
    return lambda: rms(i["x"], i["w"], eps, o["y"])


def add_rms_norm(i, s, o):
    eps = i["x"].dtype.type(s.get("eps", 1e-6))

    def run():
        numpy.add(i["x"], i["r"], out=o["s"])
        rms(o["s"], i["w"], eps, o["y"])

    return run


def norm(x, i, eps, y):
    numpy.subtract(x, x.mean(1, keepdims=True), out=y)
    variance = numpy.einsum("ij,ij->i", y, y)[:, None] / x.shape[1]
    numpy.multiply(y, 1 / numpy.sqrt(variance + eps), out=y)
    numpy.multiply(y, i["w"], out=y)
    numpy.add(y, i["b"], out=y)


def layer_norm(i, s, o):
    eps = i["x"].dtype.type(s.get("eps", 1e-5))
    return lambda: norm(i["x"], i, eps, o["y"])


def residual_layer_norm(i, s, o):
    eps, total = i["x"].dtype.type(s.get("eps", 1e-5)), scratch(i)

    def run():
        numpy.add(i["x"], i["r"], out=total)
        norm(total, i, eps, o["y"])

    return run


SLOPE = math.sqrt(2 / math.pi)


def gelu_residual(i, s, o):
    x, r, y = i["x"], i["r"], o["y"]
    t = scratch(i)

    def run():
        numpy.multiply(x, x, out=t)
        numpy.multiply(t, SLOPE * 0.044715, out=t)
        numpy.add(t, SLOPE, out=t)
        numpy.multiply(t, x, out=t)
        numpy.tanh(t, out=t)
        numpy.add(t, 1, out=t)
        numpy.multiply(t, x, out=t)
        numpy.multiply(t, 0.5, out=t)
        numpy.add(t, r, out=y)

    return run


def sigmoid(x, y):
    numpy.negative(x, out=y)
    numpy.exp(y, out=y)
    numpy.add(y, 1, out=y)
    numpy.reciprocal(y, out=y)


def swiglu(i, s, o):
    def run():
        sigmoid(i["gate"], o["y"])
        numpy.multiply(o["y"], i["gate"], out=o["y"])
        numpy.multiply(o["y"], i["up"], out=o["y"])

    return run


def sigmoid_pair(i, s, o):
    def run():
        sigmoid(i["x"], o["y"])
        numpy.subtract(1, o["y"], out=o["dy"])
        numpy.multiply(o["dy"], o["y"], out=o["dy"])

    return run


def rope(i, s, o):
    x, c, sine, y = i["x"], i["cos"], i["sin"], o["y"]
    half = x.shape[1] // 2
    first = slice(0, None, 2) if s.get("interleaved", 0) else slice(0, half)
    second = slice(1, None, 2) if s.get("interleaved", 0) else slice(half, None)
    a, b = x[:, first], x[:, second]
    t = numpy.empty_like(c)

    def run():
        numpy.multiply(b, sine, out=t)
        numpy.multiply(a, c, out=y[:, first])
        numpy.subtract(y[:, first], t, out=y[:, first])
        numpy.multiply(a, sine, out=t)
        numpy.multiply(b, c, out=y[:, second])
        numpy.add(y[:, second], t, out=y[:, second])

    return run


def cross_entropy(i, s, o):
    x, target, loss = i["logits"], i["target"], o["loss"]
    rows, e = numpy.arange(x.shape[0]), numpy.empty_like(i["logits"])
    ignored = int(s.get("ignore_index", -100))

    def run():
        highest = x.max(1)
        numpy.subtract(x, highest[:, None], out=e)
        numpy.exp(e, out=e)
        numpy.log(e.sum(1), out=loss)
        loss[...] += highest - x[rows, target]
        loss[target == ignored] = 0

    return run


def gemm(i, s, o):
    a = i["a"].T if s.get("trans_a", 0) else i["a"]
    b = i["b"].T if s.get("trans_b", 0) else i["b"]
    beta = a.dtype.type(s.get("beta", 1))

    def run():
        numpy.matmul(a, b, out=o["c"])
        if "c0" in i:
            o["c"][...] += beta * i["c0"]

    return run


OPERATORS = {
    "copy": lambda i, s, o: lambda: numpy.copyto(o["y"], i["x"]),
    "add": lambda i, s, o: lambda: numpy.add(i["a"], i["b"], out=o["y"]),
    "transpose": lambda i, s, o: lambda: numpy.copyto(o["y"], i["x"].T),
    "row_sum": lambda i, s, o: lambda: numpy.sum(i["x"], 1, out=o["y"]),
    "row_max": lambda i, s, o: lambda: numpy.max(i["x"], 1, out=o["y"]),
    "row_mean": lambda i, s, o: lambda: numpy.mean(i["x"], 1, out=o["y"]),
    "col_sum": lambda i, s, o: lambda: numpy.sum(i["x"], 0, out=o["y"]),
    "arg_max": lambda i, s, o: lambda: numpy.argmax(i["x"], 1,
                                                    out=o["index"]),
    "softmax": softmax,
    "masked_softmax": masked_softmax,
    "rms_norm": rms_norm,
    "add_rms_norm": add_rms_norm,
    "layer_norm": layer_norm,
    "residual_layer_norm": residual_layer_norm,
    "gelu_residual": gelu_residual,
    "swiglu": swiglu,
    "sigmoid_pair": sigmoid_pair,
    "rope": rope,
    "cross_entropy": cross_entropy,
    "cumsum": lambda i, s, o: lambda: numpy.cumsum(i["x"], 1, out=o["y"]),
    "embedding": lambda i, s, o: lambda: numpy.take(
        i["table"], i["ids"], 0, out=o["y"], mode="clip"),
    "gemm": gemm,
}

NOTES = {"masked_softmax": "a row where nothing is visible gives NaN"}


class Peer:
    def describe(self):
        return {"name": "numpy", "version": numpy.__version__,
                "mathMode": "IEEE; pairwise sums; products by the BLAS that "
                            "the wheel has",
                "boundaries": ["call", "batch"], "details": {}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32", "f64")
        operator = operator_of(OPERATORS, request)
        inputs = {name: arrays[name] for name in input_names(request)}
        outputs = {name: arrays[name] for name in output_names(request)}
        problem = Direct(operator(inputs, request["settings"], outputs))
        problem.detail["threads"] = "1 (products: the BLAS' own)"
        if request["operator"] in NOTES:
            problem.detail["note"] = NOTES[request["operator"]]
        return problem
