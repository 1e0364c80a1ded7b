#===- onnx_models.py - The operators as ONNX graphs ---------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Graphs in ONNX's text form for the peers that read ONNX.

model(request, fused) gives the serialized model; inputs and outputs have the
names of the operator's arrays. `fused` names what the peer has beyond the plain
operators: "attention", and "skip_rms_norm" of domain com.microsoft.
"""

import math

from python.problem import (ACTIVATIONS, Unsupported, choice, input_names,
                            output_names, settings_of)

TYPES = {"f32": "float", "f64": "double", "f16": "float16",
         "bf16": "bfloat16", "i64": "int64", "i32": "int32", "bool": "bool"}

GELU = "Gelu<approximate = \"tanh\">"


def constant(name, value, kind="float"):
    return f"{name} = Constant<value = {kind} {{{value}}}>()"


def layer_norm(x, s):
    return (f"y = LayerNormalization<axis = -1, epsilon = "
            f"{float(s.get('eps', 1e-5))}>({x}, w, b)")


def rms_norm(x, s):
    return (f"y = RMSNormalization<axis = -1, epsilon = "
            f"{float(s.get('eps', 1e-6))}>({x}, w)")


def rope(s, dims):
    if s.get("interleaved", 0):
        raise Unsupported("rope: only halves as pairs")
    return """a, b = Split<axis = 1, num_outputs = 2>(x)
        ac = Mul(a, cos)
        bs = Mul(b, sin)
        first = Sub(ac, bs)
        bc = Mul(b, cos)
        as = Mul(a, sin)
        second = Add(bc, as)
        y = Concat<axis = 1>(first, second)"""


def cross_entropy():
    return """p = LogSoftmax<axis = 1>(logits)
        one = Constant<value = int64[1] {1}>()
        column = Unsqueeze(target, one)
        picked = GatherElements<axis = 1>(p, column)
        row = Squeeze(picked, one)
        loss = Neg(row)"""


def gelu_pair():
    k = math.sqrt(2 / math.pi)
    return f"""{constant("k", k)}
        {constant("kc", k * 0.044715)}
        {constant("kc3", 3 * k * 0.044715)}
        {constant("half", 0.5)}
        {constant("one", 1.0)}
        xx = Mul(x, x)
        kcxx = Mul(kc, xx)
        inner = Add(k, kcxx)
        z = Mul(x, inner)
        t = Tanh(z)
        onet = Add(one, t)
        halfonet = Mul(half, onet)
        y = Mul(x, halfonet)
        tt = Mul(t, t)
        onett = Sub(one, tt)
        kc3xx = Mul(kc3, xx)
        slope = Add(k, kc3xx)
        halfx = Mul(half, x)
        p = Mul(halfx, onett)
        q = Mul(p, slope)
        dy = Add(halfonet, q)"""


def gemm(s, inputs):
    flags = (f"transA = {int(s.get('trans_a', 0))}, "
             f"transB = {int(s.get('trans_b', 0))}")
    if "c0" in inputs:
        return (f"c = Gemm<beta = {float(s.get('beta', 1))}, {flags}>"
                "(a, b, c0)")
    if s.get("trans_a", 0) or s.get("trans_b", 0):
        return f"c = Gemm<{flags}>(a, b)"
    return "c = MatMul(a, b)"


def attention(s, inputs, dims, fused):
    causal = int(s.get("causal", 0))
    if "lengths" in inputs:
        raise Unsupported("attention: not with lengths")
    before, mask = "", ", mask" if "mask" in inputs else ""
    # The graph's own flag aligns the first query with the first key.
    if causal and dims["q"] == 1:
        causal = 0
    elif causal and dims["q"] != dims["k"]:
        if mask:
            raise Unsupported("attention: causal with a mask only where "
                              "queries are as many as keys")
        before = (f"shape = Constant<value = int64[2] "
                  f"{{{dims['q']}, {dims['k']}}}>()\n"
                  "ones = ConstantOfShape<value = float[1] {1.0}>(shape)\n"
                  + constant("shift", dims["k"] - dims["q"], "int64") + "\n"
                  "lower = Trilu<upper = 0>(ones, shift)\n"
                  "seen = Cast<to = 9>(lower)\n")
        causal, mask = 0, ", seen"
    if "attention" not in fused:
        if causal or mask:
            raise Unsupported("attention: not masked")
        return plain_attention(s, dims)
    scale = f", scale = {float(s['scale'])}" if "scale" in s else ""
    return (f"{before}o = Attention<is_causal = {causal}{scale}>"
            f"(q, k, v{mask})")


def plain_attention(s, dims):
    """For importers without the operator."""
    rows = dims["hq"] // dims["hkv"] * dims["q"]
    scale = float(s.get("scale", dims["d"] ** -0.5))
    return f"""grouped = Constant<value = int64[4] {{{dims["b"]}, {dims["hkv"]},
            {rows}, {dims["d"]}}}>()
        apart = Constant<value = int64[4] {{{dims["b"]}, {dims["hq"]},
            {dims["q"]}, {dims["dv"]}}}>()
        {constant("scale", scale)}
        rows = Reshape(q, grouped)
        scaled = Mul(rows, scale)
        keys = Transpose<perm = [0, 1, 3, 2]>(k)
        score = MatMul(scaled, keys)
        p = Softmax<axis = -1>(score)
        mixed = MatMul(p, v)
        o = Reshape(mixed, apart)"""


def affine_leaky(x, y, s):
    # The larger of z and slope z, for slopes from 0 to 1.
    slope = float(s.get("slope", 0.1))
    if not 0 <= slope <= 1:
        raise Unsupported("a leaky clamp with slopes from 0 to 1 only")
    return (constant("scale", float(s.get("scale", 0.375))) + "\n"
            + constant("shift", float(s.get("shift", -0.25))) + "\n"
            f"scaled = Mul({x}, scale)\nshifted = Add(scaled, shift)\n"
            f"{y} = LeakyRelu<alpha = {slope}>(shifted)")


def gemm_epilogue(s, inputs):
    lines, last = ["z0 = MatMul(a, b)"], "z0"

    def step(text):
        nonlocal last
        name = f"z{len(lines)}"
        lines.append(f"{name} = {text}")
        last = name

    if s.get("scale", 1) != 1:
        lines.insert(0, constant("scale", float(s["scale"])))
        step("Mul(z0, scale)")
    if "bias" in inputs:
        step(f"Add({last}, bias)")
    activation = choice(s, "activation", ACTIVATIONS)
    if activation == "relu":
        step(f"Relu({last})")
    elif activation == "gelu":
        step(f"{GELU}({last})")
    elif activation == "silu":
        z = last
        step(f"Sigmoid({z})")
        step(f"Mul({z}, {last})")
    if "residual" in inputs:
        step(f"Add({last}, residual)")
    lines[-1] = "c = " + lines[-1].split(" = ", 1)[1]
    return "\n".join(lines)


def conv2d(s, inputs, dims, groups):
    pad, stride = int(s.get("pad", 0)), int(s.get("stride", 1))
    dilation = int(s.get("dilation", 1))
    bias = ", bias" if "bias" in inputs else ""
    form = (f"Conv<pads = [{pad}, {pad}, {pad}, {pad}], "
            f"strides = [{stride}, {stride}], group = {groups}, "
            f"dilations = [{dilation}, {dilation}]>")
    if groups == 1:
        return f"y = {form}(x, w{bias})"
    return (f"shape = Constant<value = int64[4] {{{dims['c']}, 1, "
            f"{dims['kh']}, {dims['kw']}}}>()\n"
            f"filters = Reshape(w, shape)\ny = {form}(x, filters{bias})")


def max_pool2d(s):
    window, stride = int(s.get("window", 2)), int(s.get("stride", 2))
    pad = int(s.get("pad", 0))
    return (f"y = MaxPool<kernel_shape = [{window}, {window}], "
            f"strides = [{stride}, {stride}], "
            f"pads = [{pad}, {pad}, {pad}, {pad}]>(x)")


def top_k(k, largest):
    """Of equal values the first comes first, so this sorts too."""
    return (f"count = Constant<value = int64[1] {{{k}}}>()\n"
            f"values, indices = TopK<axis = 1, largest = {int(largest)}, "
            "sorted = 1>(x, count)")


def body(request, fused):
    """The statements of the graph."""
    operator, s = request["operator"], settings_of(request)
    inputs, dims = input_names(request), request["dims"]
    if operator == "add_rms_norm" and "skip_rms_norm" in fused:
        return ("y, m, v, s = com.microsoft.SkipSimplifiedLayerNormalization"
                f"<epsilon = {float(s.get('eps', 1e-6))}>(x, r, w)")
    forms = {
        "copy": lambda: "y = Identity(x)",
        "add": lambda: "y = Add(a, b)",
        "transpose": lambda: "y = Transpose<perm = [1, 0]>(x)",
        "row_sum": lambda: "axes = Constant<value = int64[1] {1}>()\n"
                           "y = ReduceSum<keepdims = 0>(x, axes)",
        "row_max": lambda: "axes = Constant<value = int64[1] {1}>()\n"
                           "y = ReduceMax<keepdims = 0>(x, axes)",
        "row_mean": lambda: "axes = Constant<value = int64[1] {1}>()\n"
                            "y = ReduceMean<keepdims = 0>(x, axes)",
        "col_sum": lambda: "axes = Constant<value = int64[1] {0}>()\n"
                           "y = ReduceSum<keepdims = 0>(x, axes)",
        "arg_max": lambda: "index = ArgMax<axis = 1, keepdims = 0>(x)",
        "softmax": lambda: "y = Softmax<axis = -1>(x)",
        "masked_softmax": lambda: (
            "one = Constant<value = float {1}>()\n"
            "high = Constant<value = float {1e38}>()\n"
            "seen = Cast<to = 1>(mask)\nhidden = Sub(seen, one)\n"
            "low = Mul(hidden, high)\nvisible = Add(x, low)\n"
            "y = Softmax<axis = -1>(visible)"),
        "rms_norm": lambda: rms_norm("x", s),
        "add_rms_norm": lambda: "s = Add(x, r)\n" + rms_norm("s", s),
        "layer_norm": lambda: layer_norm("x", s),
        "residual_layer_norm": lambda: "t = Add(x, r)\n" + layer_norm("t", s),
        "gelu_residual": lambda: f"t = {GELU}(x)\ny = Add(t, r)",
        "swiglu": lambda: "t = Sigmoid(gate)\nsilu = Mul(gate, t)\n"
                          "y = Mul(silu, up)",
        "rope": lambda: rope(s, dims),
        "sigmoid_pair": lambda: "one = Constant<value = float {1.0}>()\n"
                                "y = Sigmoid(x)\nt = Sub(one, y)\n"
                                "dy = Mul(y, t)",
        "gelu_pair": gelu_pair,
        "cross_entropy": cross_entropy,
        "cumsum": lambda: "axis = Constant<value = int64 {1}>()\n"
                          "y = CumSum(x, axis)",
        "embedding": lambda: "y = Gather<axis = 0>(table, ids)",
        "gemm": lambda: gemm(s, inputs),
        "bmm": lambda: "c = MatMul(a, b)",
        "affine_leaky": lambda: affine_leaky("x", "y", s),
        "gemm_affine_leaky": lambda: (
            "p = MatMul(a, b)\n" + affine_leaky("p", "c", s)),
        "gemm_epilogue": lambda: gemm_epilogue(s, inputs),
        "max_pool2d": lambda: max_pool2d(s),
        "conv2d": lambda: conv2d(s, inputs, dims, 1),
        "depthwise_conv2d": lambda: conv2d(s, inputs, dims, dims["c"]),
        "attention": lambda: attention(s, inputs, dims, fused),
        "sort": lambda: top_k(dims["cols"], s.get("descending", 0)),
        "top_k": lambda: top_k(int(s["k"]), s.get("largest", 1)),
    }
    if operator == "bmm" and (s.get("trans_a", 0) or s.get("trans_b", 0)):
        raise Unsupported("bmm: not with transposed operands")
    if operator == "attention" and "lse" in output_names(request):
        raise Unsupported("attention does not return its log-sum")
    if operator not in forms:
        raise Unsupported(f"has no form of {operator} here")
    return forms[operator]()


NOTES = {
    "masked_softmax": "hidden elements get -1e38 added before the softmax, so a row "
                      "where nothing is visible is uniform",
    "cross_entropy": "no target is ignored",
}


def model(request, fused=()):
    import onnx
    import onnx.parser

    statements = body(request, fused)
    if request["dtype"] != "f32" and "Constant<value = float {" in statements:
        raise Unsupported(f"{request['operator']}: only with f32 arrays")

    def declaration(array):
        extents = ", ".join(str(extent) for extent in array["extents"])
        return f"{TYPES[array['dtype']]}[{extents}] {array['name']}"

    inputs = ", ".join(declaration(a) for a in request["arrays"]
                       if not a["output"])
    outputs = ", ".join(declaration(a) for a in request["arrays"]
                        if a["output"])
    text = f"""<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>
        {request["operator"]} ({inputs}) => ({outputs}) {{
        {statements}
        }}"""
    return onnx.parser.parse_model(text).SerializeToString()
