#===- mlx.py - MLX's CPU device -----------------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import importlib.metadata
import math

import mlx.core as mx
import numpy

from python.problem import (ACTIVATIONS, CopiedOutputs, Unsupported, choice,
                            input_names, operator_of, only_dtypes,
                            output_names, settings_of)


def rope(i, s):
    x, c, sine = i["x"], i["cos"], i["sin"]
    if s.get("interleaved", 0):
        a, b = x[:, 0::2], x[:, 1::2]
        return mx.stack([a * c - b * sine, b * c + a * sine],
                        -1).reshape(x.shape),
    a, b = mx.split(x, 2, -1)
    return mx.concatenate([a * c - b * sine, b * c + a * sine], -1),


def gelu(x):
    k = math.sqrt(2 / math.pi)
    return 0.5 * x * (1 + mx.tanh(k * (x + 0.044715 * x * x * x)))


def sigmoid_pair(i, s):
    y = mx.sigmoid(i["x"])
    return y, y * (1 - y)


def add_rms_norm(i, s):
    total = i["x"] + i["r"]
    return mx.fast.rms_norm(total, i["w"], s.get("eps", 1e-6)), total


def cross_entropy(i, s):
    x, target = i["logits"], i["target"]
    picked = mx.take_along_axis(x, target[:, None], -1)[:, 0]
    loss = mx.logsumexp(x, -1) - picked
    return mx.where(target == int(s.get("ignore_index", -100)), 0.0, loss),


def gemm(i, s):
    a = i["a"].T if s.get("trans_a", 0) else i["a"]
    b = i["b"].T if s.get("trans_b", 0) else i["b"]
    if "c0" in i:
        return mx.addmm(i["c0"], a, b, beta=float(s.get("beta", 1))),
    return a @ b,


def attention(i, s):
    q, k = i["q"], i["k"]
    if "lengths" in i:
        raise Unsupported("attention: not with lengths")
    if s.get("causal", 0) and "mask" in i:
        raise Unsupported("attention: not both causal and masked")
    mask = "causal" if s.get("causal", 0) else i.get("mask")
    return mx.fast.scaled_dot_product_attention(
        q, k, i["v"], scale=s.get("scale", q.shape[3] ** -0.5), mask=mask),


def affine_leaky(x, s):
    z = x * s.get("scale", 0.375) + s.get("shift", -0.25)
    return mx.maximum(z, s.get("slope", 0.1) * z)


def gelu_pair(i, s):
    x, k = i["x"], math.sqrt(2 / math.pi)
    t = mx.tanh(k * (x + 0.044715 * x * x * x))
    slope = k * (1 + 3 * 0.044715 * x * x)
    return (0.5 * x * (1 + t),
            0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


def gemm_epilogue(i, s):
    z = i["a"] @ i["b"]
    if s.get("scale", 1) != 1:
        z = z * s["scale"]
    if "bias" in i:
        z = z + i["bias"]
    z = {"none": lambda: z, "relu": lambda: mx.maximum(z, 0),
         "gelu": lambda: gelu(z), "silu": lambda: z * mx.sigmoid(z)}[
             choice(s, "activation", ACTIVATIONS)]()
    return z + i["residual"] if "residual" in i else z,


def sort(i, s):
    order = mx.argsort(-i["x"] if s.get("descending", 0) else i["x"], 1)
    return mx.take_along_axis(i["x"], order, 1), order


def top_k(i, s):
    x, k = i["x"], int(s["k"])
    # mx.topk gives no positions.
    key = -x if s.get("largest", 1) else x
    some = mx.argpartition(key, k - 1, 1)[:, :k]
    within = mx.argsort(mx.take_along_axis(key, some, 1), 1)
    order = mx.take_along_axis(some, within, 1)
    return mx.take_along_axis(x, order, 1), order


OPERATORS = {
    "add": lambda i, s: (i["a"] + i["b"],),
    "transpose": lambda i, s: (mx.contiguous(i["x"].T),),
    "row_sum": lambda i, s: (mx.sum(i["x"], 1),),
    "row_max": lambda i, s: (mx.max(i["x"], 1),),
    "row_mean": lambda i, s: (mx.mean(i["x"], 1),),
    "col_sum": lambda i, s: (mx.sum(i["x"], 0),),
    "arg_max": lambda i, s: (mx.argmax(i["x"], 1),),
    "softmax": lambda i, s: (mx.softmax(i["x"], -1),),
    "masked_softmax": lambda i, s: (
        mx.softmax(mx.where(i["mask"], i["x"], -math.inf), -1),),
    "rms_norm": lambda i, s: (
        mx.fast.rms_norm(i["x"], i["w"], s.get("eps", 1e-6)),),
    "add_rms_norm": add_rms_norm,
    "layer_norm": lambda i, s: (
        mx.fast.layer_norm(i["x"], i["w"], i["b"], s.get("eps", 1e-5)),),
    "residual_layer_norm": lambda i, s: (
        mx.fast.layer_norm(i["x"] + i["r"], i["w"], i["b"],
                           s.get("eps", 1e-5)),),
    "gelu_residual": lambda i, s: (gelu(i["x"]) + i["r"],),
    "swiglu": lambda i, s: (
        i["gate"] * mx.sigmoid(i["gate"]) * i["up"],),
    "rope": rope,
    "sigmoid_pair": sigmoid_pair,
    "cross_entropy": cross_entropy,
    "cumsum": lambda i, s: (mx.cumsum(i["x"], 1),),
    "embedding": lambda i, s: (mx.take(i["table"], i["ids"], 0),),
    "gemm": gemm,
    "bmm": gemm,
    "attention": attention,
    "affine_leaky": lambda i, s: (affine_leaky(i["x"], s),),
    "gemm_affine_leaky": lambda i, s: (affine_leaky(i["a"] @ i["b"], s),),
    "gemm_epilogue": gemm_epilogue,
    "gelu_pair": gelu_pair,
    "sort": sort,
    "top_k": top_k,
}

NOTES = {"masked_softmax": "a row where nothing is visible gives NaN"}


def store(result, output):
    numpy.copyto(output, numpy.array(result).reshape(output.shape))


class Compiled(CopiedOutputs):
    def __init__(self, function, inputs, outputs):
        super().__init__(None, outputs, store)
        self.function, self.inputs = function, inputs
        self.detail["inputs"] = "copied to MLX before the timed calls"

    def begin(self):
        self.values = [mx.array(array) for array in self.inputs]
        mx.eval(self.values)

    def run(self):
        self.results = self.function(*self.values)
        mx.eval(self.results)


class Peer:
    def __init__(self):
        mx.set_default_device(mx.cpu)

    def describe(self):
        return {"name": "mlx", "version": importlib.metadata.version("mlx"),
                "mathMode": "IEEE f32 (CPU device)",
                "boundaries": ["call", "batch"],
                "details": {"compiled": "mx.compile"}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        body, settings = operator_of(OPERATORS, request), settings_of(request)
        if "lse" in output_names(request):
            raise Unsupported("attention does not return its log-sum")
        if request["operator"] == "bmm" and request["settings"]:
            raise Unsupported("bmm: not with transposed operands")
        names = input_names(request)
        function = mx.compile(
            lambda *values: body(dict(zip(names, values)), settings))
        problem = Compiled(function, [arrays[name] for name in names],
                           [arrays[name] for name in output_names(request)])
        problem.detail["parallel"] = "threads of MLX's own"
        if request["operator"] in NOTES:
            problem.detail["note"] = NOTES[request["operator"]]
        return problem
