#===- numpy.py - numpy, as the baseline everyone has --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import math

import numpy

from python.problem import (ACTIVATIONS, Direct, Unsupported, choice,
                            input_names, only_dtypes, operator_of, output_names,
                            settings_of)


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


def gelu(x, y, t):
    """y = gelu(x), t = tanh of its inner polynomial."""
    numpy.multiply(x, x, out=t)
    numpy.multiply(t, SLOPE * 0.044715, out=t)
    numpy.add(t, SLOPE, out=t)
    numpy.multiply(t, x, out=t)
    numpy.tanh(t, out=t)
    numpy.add(t, 1, out=y)
    numpy.multiply(y, x, out=y)
    numpy.multiply(y, 0.5, out=y)


def gelu_residual(i, s, o):
    x, r, y = i["x"], i["r"], o["y"]
    t = scratch(i)

    def run():
        gelu(x, y, t)
        numpy.add(y, r, out=y)

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
    a = i["a"].swapaxes(-1, -2) if s.get("trans_a", 0) else i["a"]
    b = i["b"].swapaxes(-1, -2) if s.get("trans_b", 0) else i["b"]
    beta = a.dtype.type(s.get("beta", 1))

    def run():
        numpy.matmul(a, b, out=o["c"])
        if "c0" in i:
            o["c"][...] += beta * i["c0"]

    return run


def affine_leaky(i, s, o, x="x", y="y"):
    value, z, t = i.get(x), o[y], numpy.empty_like(o[y])
    kind = z.dtype.type
    scale, shift = kind(s.get("scale", 0.375)), kind(s.get("shift", -0.25))
    slope = kind(s.get("slope", 0.1))

    def run(value=value):
        numpy.multiply(value, scale, out=z)
        numpy.add(z, shift, out=z)
        numpy.multiply(z, slope, out=t)
        numpy.maximum(z, t, out=z)

    return run


def gemm_affine_leaky(i, s, o):
    c = o["c"]
    rest = affine_leaky(i, s, o, y="c")

    def run():
        numpy.matmul(i["a"], i["b"], out=c)
        rest(c)

    return run


def gelu_pair(i, s, o):
    x, y, dy = i["x"], o["y"], o["dy"]
    t, u = scratch(i), scratch(i)

    def run():
        gelu(x, y, t)
        numpy.multiply(x, x, out=u)
        numpy.multiply(u, 3 * SLOPE * 0.044715, out=u)
        numpy.add(u, SLOPE, out=u)
        numpy.multiply(u, x, out=u)
        numpy.multiply(t, t, out=dy)
        numpy.subtract(1, dy, out=dy)
        numpy.multiply(dy, u, out=dy)
        numpy.add(dy, t, out=dy)
        numpy.add(dy, 1, out=dy)
        numpy.multiply(dy, 0.5, out=dy)

    return run


def gemm_epilogue(i, s, o):
    c, t = o["c"], numpy.empty_like(o["c"])
    activation = choice(s, "activation", ACTIVATIONS)
    scale = c.dtype.type(s.get("scale", 1))

    def run():
        numpy.matmul(i["a"], i["b"], out=c)
        if scale != 1:
            numpy.multiply(c, scale, out=c)
        if "bias" in i:
            numpy.add(c, i["bias"], out=c)
        if activation == "relu":
            numpy.maximum(c, 0, out=c)
        elif activation == "gelu":
            gelu(c.copy(), c, t)
        elif activation == "silu":
            sigmoid(c, t)
            numpy.multiply(c, t, out=c)
        if "residual" in i:
            numpy.add(c, i["residual"], out=c)

    return run


def attention(i, s, o):
    if "lengths" in i or "lse" in o:
        raise Unsupported("attention: neither lengths nor the log-sum")
    b, heads, queries, depth = i["q"].shape
    key_heads, keys = i["k"].shape[1:3]
    group = heads // key_heads
    q = i["q"].reshape(b, key_heads, group * queries, depth)
    scale = q.dtype.type(s.get("scale", depth ** -0.5))
    result = o["o"].reshape(b, key_heads, group * queries, -1)
    visible = None
    if s.get("causal", 0):
        visible = numpy.tri(queries, keys, keys - queries, dtype=bool)
    if "mask" in i:
        visible = i["mask"] if visible is None else i["mask"] & visible
    if visible is not None:
        visible = numpy.broadcast_to(
            visible, (b, heads, queries, keys)).reshape(
                b, key_heads, group * queries, keys)

    def run():
        score = numpy.matmul(q, i["k"].swapaxes(2, 3))
        numpy.multiply(score, scale, out=score)
        if visible is not None:
            score[~visible] = -math.inf
        numpy.subtract(score, score.max(-1, keepdims=True), out=score)
        numpy.exp(score, out=score)
        numpy.divide(score, score.sum(-1, keepdims=True), out=score)
        numpy.matmul(score, i["v"], out=result)

    return run


def sort(i, s, o):
    x, values, indices = i["x"], o["values"], o["indices"]
    sign = -1 if s.get("descending", 0) else 1

    def run():
        indices[...] = numpy.argsort(x if sign == 1 else -x, 1, kind="stable")
        values[...] = numpy.take_along_axis(x, indices, 1)

    return run


def top_k(i, s, o):
    x, values, indices = i["x"], o["values"], o["indices"]
    k, sign = int(s["k"]), -1 if s.get("largest", 1) else 1

    def run():
        key = x if sign == 1 else -x
        order = numpy.argpartition(key, k - 1, 1)[:, :k]
        order.sort(1)
        picked = numpy.take_along_axis(key, order, 1)
        within = numpy.argsort(picked, 1, kind="stable")
        indices[...] = numpy.take_along_axis(order, within, 1)
        values[...] = numpy.take_along_axis(x, indices, 1)

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
    "bmm": gemm,
    "affine_leaky": affine_leaky,
    "gemm_affine_leaky": gemm_affine_leaky,
    "gemm_epilogue": gemm_epilogue,
    "gelu_pair": gelu_pair,
    "attention": attention,
    "sort": sort,
    "top_k": top_k,
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
        problem = Direct(operator(inputs, settings_of(request), outputs))
        problem.detail["parallel"] = "products only, by the BLAS'"
        if request["operator"] in NOTES:
            problem.detail["note"] = NOTES[request["operator"]]
        return problem
