#===- torch_operators.py - The operators in PyTorch ---------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""What a PyTorch user writes for each operator.

OPERATORS maps names to functions (inputs by name, settings) -> outputs in the
order of the operator's output arrays. DIRECT has those that PyTorch can write
into arrays that are there already: (inputs, settings, outputs) -> a call.
"""

import math

import torch
import torch.nn.functional as F

from python.problem import (ACTIVATIONS, Unsupported, choice, dtypes,
                            input_names, output_names)

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
         "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
         "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}


def rms_norm(i, s):
    x = i["x"]
    return F.rms_norm(x, x.shape[1:], i["w"], s.get("eps", 1e-6)),


def add_rms_norm(i, s):
    total = i["x"] + i["r"]
    y = F.rms_norm(total, total.shape[1:], i["w"], s.get("eps", 1e-6))
    return y, total


def layer_norm(i, s):
    x = i["x"]
    return F.layer_norm(x, x.shape[1:], i["w"], i["b"], s.get("eps", 1e-5)),


def residual_layer_norm(i, s):
    x = i["x"] + i["r"]
    return F.layer_norm(x, x.shape[1:], i["w"], i["b"], s.get("eps", 1e-5)),


def gelu_pair(i, s):
    x = i["x"]
    y = F.gelu(x, approximate="tanh")
    return y, torch.ops.aten.gelu_backward(torch.ones_like(x), x,
                                           approximate="tanh")


def sigmoid_pair(i, s):
    y = torch.sigmoid(i["x"])
    return y, y * (1 - y)


def rope(i, s):
    x, c, sine = i["x"], i["cos"], i["sin"]
    if s.get("interleaved", 0):
        a, b = x[:, 0::2], x[:, 1::2]
        return torch.stack((a * c - b * sine, b * c + a * sine),
                           -1).flatten(1),
    a, b = x.chunk(2, -1)
    return torch.cat((a * c - b * sine, b * c + a * sine), -1),


def masked_softmax(i, s):
    return torch.softmax(torch.where(i["mask"], i["x"], -math.inf), -1),


def cross_entropy(i, s):
    return F.cross_entropy(i["logits"], i["target"], reduction="none",
                           ignore_index=int(s.get("ignore_index", -100))),


def gemm_operands(i, s):
    a = i["a"].mT if s.get("trans_a", 0) else i["a"]
    b = i["b"].mT if s.get("trans_b", 0) else i["b"]
    return a, b


def gemm(i, s):
    a, b = gemm_operands(i, s)
    if "c0" in i:
        return torch.addmm(i["c0"], a, b, beta=s.get("beta", 1)),
    return a @ b,


def attention(i, s):
    q, k, v = i["q"], i["k"], i["v"]
    queries, keys = q.shape[2], k.shape[2]
    mask, causal = i.get("mask"), bool(s.get("causal", 0))
    if "lengths" in i:
        lengths = i["lengths"].view(-1, 1, 1, 1)
        position = torch.arange(keys, device=q.device).view(1, 1, 1, -1)
        visible = position < lengths
        if causal:
            query = torch.arange(queries, device=q.device).view(1, 1, -1, 1)
            visible = visible & (position <= query + lengths - queries)
        mask = visible if mask is None else mask & visible
        causal = False
    elif causal and (queries != keys or mask is not None):
        # PyTorch's own flag aligns the first query with the first key.
        visible = torch.ones(queries, keys, dtype=torch.bool,
                             device=q.device)
        visible = visible.tril(keys - queries)
        mask = visible if mask is None else mask & visible
        causal = False
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, scale=s.get("scale"),
        enable_gqa=q.shape[1] != k.shape[1]),


def gemm_epilogue(i, s):
    z = i["a"] @ i["b"]
    if s.get("scale", 1) != 1:
        z = z * s["scale"]
    if "bias" in i:
        z = z + i["bias"]
    z = {"none": lambda: z, "relu": lambda: F.relu(z),
         "gelu": lambda: F.gelu(z, approximate="tanh"),
         "silu": lambda: F.silu(z)}[choice(s, "activation", ACTIVATIONS)]()
    return z + i["residual"] if "residual" in i else z,


def gemm_q8(i, s):
    total = torch._int_mm(i["a"], i["b"]).to(i["scale_a"].dtype)
    return total * i["scale_a"][:, None] * i["scale_b"],


def gemm_q4(i, s):
    """Weights in memory between two operators: PyTorch's own kernels for 4
    bits take weights in packed layouts."""
    bits = torch.stack((i["b"] & 15, i["b"] >> 4), 1).flatten(0, 1)
    groups = i["scales"].shape[0]
    weights = bits.to(i["a"].dtype).view(groups, -1, bits.shape[1])
    weights = (weights - i["zeros"][:, None]) * i["scales"][:, None]
    return i["a"] @ weights.flatten(0, 1),


def conv2d(i, s):
    return F.conv2d(i["x"], i["w"], i.get("bias"), int(s.get("stride", 1)),
                    int(s.get("pad", 0)), int(s.get("dilation", 1))),


def depthwise_conv2d(i, s):
    channels = i["x"].shape[1]
    return F.conv2d(i["x"], i["w"][:, None], i.get("bias"),
                    int(s.get("stride", 1)), int(s.get("pad", 0)),
                    groups=channels),


def max_pool2d(i, s):
    return F.max_pool2d(i["x"], int(s.get("window", 2)),
                        int(s.get("stride", 2)), int(s.get("pad", 0))),


def sobel(i, s):
    x = i["x"].flatten(0, 1)[:, None]
    side = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype)
    across = side[:, None] * torch.tensor([-1.0, 0.0, 1.0], dtype=x.dtype)
    gradient = F.conv2d(x, torch.stack((across, across.T))[:, None], padding=1)
    return torch.hypot(gradient[:, 0], gradient[:, 1]),


def median3(i, s):
    x = i["x"].flatten(0, 1)[:, None]
    around = F.unfold(x, 3, padding=1)
    return around.median(1).values,


def affine_leaky(x, s):
    return F.leaky_relu(x * s.get("scale", 0.375) + s.get("shift", -0.25),
                        s.get("slope", 0.1))


OPERATORS = {
    "copy": lambda i, s: (i["x"].clone(),),
    "add": lambda i, s: (i["a"] + i["b"],),
    "transpose": lambda i, s: (i["x"].t().contiguous(),),
    "row_sum": lambda i, s: (i["x"].sum(1),),
    "row_max": lambda i, s: (i["x"].amax(1),),
    "row_mean": lambda i, s: (i["x"].mean(1),),
    "col_sum": lambda i, s: (i["x"].sum(0),),
    "arg_max": lambda i, s: (i["x"].argmax(1),),
    "softmax": lambda i, s: (torch.softmax(i["x"], -1),),
    "masked_softmax": masked_softmax,
    "rms_norm": rms_norm,
    "add_rms_norm": add_rms_norm,
    "layer_norm": layer_norm,
    "residual_layer_norm": residual_layer_norm,
    "gelu_residual": lambda i, s: (
        F.gelu(i["x"], approximate="tanh") + i["r"],),
    "swiglu": lambda i, s: (F.silu(i["gate"]) * i["up"],),
    "affine_leaky": lambda i, s: (affine_leaky(i["x"], s),),
    "rope": rope,
    "sigmoid_pair": sigmoid_pair,
    "gelu_pair": gelu_pair,
    "cross_entropy": cross_entropy,
    "cumsum": lambda i, s: (i["x"].cumsum(1),),
    "embedding": lambda i, s: (F.embedding(i["ids"], i["table"]),),
    "gemm": gemm,
    "gemm_epilogue": gemm_epilogue,
    "gemm_q8": gemm_q8,
    "gemm_q4": gemm_q4,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "max_pool2d": max_pool2d,
    "sobel": sobel,
    "median3": median3,
    "gemm_affine_leaky": lambda i, s: (
        affine_leaky(torch.mm(i["a"], i["b"]), s),),
    "bmm": lambda i, s: (torch.bmm(*gemm_operands(i, s)),),
    "attention": attention,
    "sort": lambda i, s: tuple(torch.sort(
        i["x"], dim=1, stable=True,
        descending=bool(s.get("descending", 0)))),
    "top_k": lambda i, s: tuple(torch.topk(
        i["x"], int(s["k"]), 1, largest=bool(s.get("largest", 1)))),
}


def direct_gemm(i, s, o):
    a, b = gemm_operands(i, s)
    if "c0" in i:
        beta = s.get("beta", 1)
        return lambda: torch.addmm(i["c0"], a, b, beta=beta, out=o["c"])
    return lambda: torch.mm(a, b, out=o["c"])


def direct_bmm(i, s, o):
    a, b = gemm_operands(i, s)
    return lambda: torch.bmm(a, b, out=o["c"])


def direct_sort(i, s, o):
    out = o["values"], o["indices"]
    descending = bool(s.get("descending", 0))
    return lambda: torch.sort(i["x"], dim=1, stable=True,
                              descending=descending, out=out)


def direct_top_k(i, s, o):
    k, largest = int(s["k"]), bool(s.get("largest", 1))
    out = o["values"], o["indices"]
    return lambda: torch.topk(i["x"], k, 1, largest=largest, out=out)


DIRECT = {
    "copy": lambda i, s, o: lambda: o["y"].copy_(i["x"]),
    "add": lambda i, s, o: lambda: torch.add(i["a"], i["b"], out=o["y"]),
    "transpose": lambda i, s, o: lambda: o["y"].copy_(i["x"].t()),
    "row_sum": lambda i, s, o: lambda: torch.sum(i["x"], 1, out=o["y"]),
    "row_max": lambda i, s, o: lambda: torch.amax(i["x"], 1, out=o["y"]),
    "row_mean": lambda i, s, o: lambda: torch.mean(i["x"], 1, out=o["y"]),
    "col_sum": lambda i, s, o: lambda: torch.sum(i["x"], 0, out=o["y"]),
    "arg_max": lambda i, s, o: lambda: torch.argmax(i["x"], 1,
                                                    out=o["index"]),
    "softmax": lambda i, s, o: lambda: torch.softmax(i["x"], -1, out=o["y"]),
    "cumsum": lambda i, s, o: lambda: torch.cumsum(i["x"], 1, out=o["y"]),
    "embedding": lambda i, s, o: lambda: torch.index_select(
        i["table"], 0, i["ids"], out=o["y"]),
    "gemm": direct_gemm,
    "bmm": direct_bmm,
    "sort": direct_sort,
    "top_k": direct_top_k,
}

# Single functions of PyTorch, which keep their intermediate values in f32 where
# arrays are narrower. A chain of operators would round after each.
WHOLE = {"copy", "add", "transpose", "row_sum", "row_max", "row_mean", "col_sum",
         "arg_max", "softmax", "layer_norm", "rms_norm", "cumsum", "embedding",
         "bmm", "attention", "sort", "top_k", "conv2d", "depthwise_conv2d",
         "max_pool2d", "median3"}


def widened(function, operator, dtype):
    """The function with narrow arrays converted to f32 first, as one writes it
    for full accuracy, where it is a chain."""
    if operator in WHOLE or dtype not in ("bf16", "f16"):
        return function

    def call(i, s):
        wide = {name: value.float() if value.is_floating_point() else value
                for name, value in i.items()}
        narrow = TYPES[dtype]
        return tuple(result.to(narrow) if result.is_floating_point()
                     else result for result in function(wide, s))

    return call


NOTES = {
    "masked_softmax": "a row where nothing is visible gives NaN",
    "gemm_q4": "weights are dequantized into memory first",
}


def check(request):
    """Refuses what the functions above do not compute."""
    if request["operator"] not in OPERATORS:
        raise Unsupported(f"has no form of {request['operator']} here")
    if request["operator"] == "attention" and "lse" in output_names(request):
        raise Unsupported("attention does not return its log-sum")


def tensors(request, arrays):
    """(inputs, outputs) by name, without copies."""
    result = {}
    for name, dtype in dtypes(request).items():
        array = arrays[name]
        if dtype == "bf16":
            tensor = torch.from_numpy(array.view("<i2")).view(torch.bfloat16)
        elif dtype in TYPES:
            tensor = torch.from_numpy(array)
        else:
            raise Unsupported(f"has no arrays of {dtype} here")
        result[name] = tensor
    return ({name: result[name] for name in input_names(request)},
            {name: result[name] for name in output_names(request)})


def matched(operator, results, outputs):
    """The outputs in the order of the results: values and positions are told
    apart by their type, in case the operator lists them otherwise."""
    rest = list(outputs.values())
    ordered = []
    for result in results:
        same = [o for o in rest
                if o.is_floating_point() == result.is_floating_point()]
        if not same:
            ordered.append(None)
            continue
        ordered.append(same[0])
        rest = [o for o in rest if o is not same[0]]
    if rest:
        raise Unsupported(f"{operator}: found no result for an output")
    return ordered


def store(result, output):
    if output is not None:
        output.copy_(result.view(output.shape))


def details():
    return {"cpuCapability": torch.backends.cpu.get_cpu_capability(),
            "parallel": torch.__config__.parallel_info().split("\n")[0],
            "mkl": torch.backends.mkl.is_available(),
            "onednn": torch.backends.mkldnn.is_available()}


MATH_MODE = ("IEEE, no flush of subnormals; f32 products at full precision "
             "(float32_matmul_precision highest)")
