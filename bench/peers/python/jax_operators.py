#===- jax_operators.py - The operators in JAX ---------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""What a JAX user writes for each operator: (inputs by name, settings) ->
outputs in the order of the operator's output arrays. XLA and IREE compile
them."""

import jax
import jax.numpy as jnp

from python.problem import (ACTIVATIONS, Unsupported, choice, output_names,
                            settings_of)


def rms(x, w, eps):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * w


def norm(x, w, b, eps):
    mean = jnp.mean(x, -1, keepdims=True)
    deviation = x - mean
    variance = jnp.mean(deviation * deviation, -1, keepdims=True)
    return deviation * jax.lax.rsqrt(variance + eps) * w + b


def add_rms_norm(i, s):
    total = i["x"] + i["r"]
    return rms(total, i["w"], s.get("eps", 1e-6)), total


def rope(i, s):
    x, c, sine = i["x"], i["cos"], i["sin"]
    if s.get("interleaved", 0):
        a, b = x[:, 0::2], x[:, 1::2]
        return jnp.stack((a * c - b * sine, b * c + a * sine),
                         -1).reshape(x.shape),
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate((a * c - b * sine, b * c + a * sine), -1),


def sigmoid_pair(i, s):
    y = jax.nn.sigmoid(i["x"])
    return y, y * (1 - y)


def gelu(x):
    return jax.nn.gelu(x, approximate=True)


def gelu_pair(i, s):
    x = i["x"]
    return jax.jvp(gelu, (x,), (jnp.ones_like(x),))


def cross_entropy(i, s):
    x, target = i["logits"], i["target"]
    picked = jnp.take_along_axis(x, target[:, None], -1,
                                 mode="promise_in_bounds")[:, 0]
    loss = jax.nn.logsumexp(x, -1) - picked
    return jnp.where(target != int(s.get("ignore_index", -100)), loss, 0),


def operands(i, s):
    a = i["a"].mT if s.get("trans_a", 0) else i["a"]
    b = i["b"].mT if s.get("trans_b", 0) else i["b"]
    return a, b


def gemm(i, s):
    a, b = operands(i, s)
    c = a @ b
    return (c + s.get("beta", 1) * i["c0"] if "c0" in i else c),


def attention(i, s):
    q, k, v = i["q"], i["k"], i["v"]
    batches, heads, queries, depth = q.shape
    key_heads, keys = k.shape[1], k.shape[2]
    scale = s.get("scale", depth ** -0.5)
    grouped = q.reshape(batches, key_heads, heads // key_heads, queries, depth)
    score = jnp.einsum("bhgqd,bhkd->bhgqk", grouped, k) * scale
    length = keys
    if "lengths" in i:
        length = i["lengths"].reshape(-1, 1, 1, 1, 1)
    position = jnp.arange(keys)
    visible = None
    if "lengths" in i:
        visible = position < length
    if s.get("causal", 0):
        ahead = position <= jnp.arange(queries)[:, None] + length - queries
        visible = ahead if visible is None else visible & ahead
    if "mask" in i:
        mask = jnp.broadcast_to(i["mask"], (batches, heads, queries, keys))
        mask = mask.reshape(batches, key_heads, -1, queries, keys)
        visible = mask if visible is None else visible & mask
    if visible is not None:
        score = jnp.where(visible, score, -jnp.inf)
    p = jax.nn.softmax(score, -1)
    if visible is not None:
        p = jnp.where(visible, p, 0)
    o = jnp.einsum("bhgqk,bhkv->bhgqv", p, v)
    return o.reshape(batches, heads, queries, v.shape[3]),


def gemm_epilogue(i, s):
    z = jnp.matmul(i["a"], i["b"])
    if s.get("scale", 1) != 1:
        z = z * s["scale"]
    if "bias" in i:
        z = z + i["bias"]
    activation = choice(s, "activation", ACTIVATIONS)
    z = {"none": lambda: z, "relu": lambda: jnp.maximum(z, 0),
         "gelu": lambda: gelu(z), "silu": lambda: jax.nn.silu(z)}[activation]()
    return z + i["residual"] if "residual" in i else z,


def gemm_q8(i, s):
    total = jnp.matmul(i["a"], i["b"], preferred_element_type=jnp.int32)
    return total.astype(i["scale_a"].dtype) * i["scale_a"][:, None] \
        * i["scale_b"],


def gemm_q4(i, s):
    bits = jnp.stack((i["b"] & 15, i["b"] >> 4), 1)
    bits = bits.reshape(i["scales"].shape[0], -1, i["b"].shape[1])
    weights = ((bits.astype(i["a"].dtype) - i["zeros"][:, None])
               * i["scales"][:, None])
    return i["a"] @ weights.reshape(-1, i["b"].shape[1]),


def conv2d(i, s, groups=1):
    w = i["w"][:, None] if groups > 1 or i["w"].ndim == 3 else i["w"]
    pad = int(s.get("pad", 0))
    y = jax.lax.conv_general_dilated(
        i["x"], w, (int(s.get("stride", 1)),) * 2, ((pad, pad),) * 2,
        rhs_dilation=(int(s.get("dilation", 1)),) * 2,
        feature_group_count=groups)
    return (y + i["bias"][:, None, None] if "bias" in i else y),


def sort(i, s):
    order = jnp.argsort(i["x"], 1, stable=True,
                        descending=bool(s.get("descending", 0)))
    return jnp.take_along_axis(i["x"], order, 1), order


def sort_by_position(i, s):
    """For compilers whose sort does not keep the order of equal elements."""
    sign = -1 if s.get("descending", 0) else 1
    position = jax.lax.broadcasted_iota(jnp.int64, i["x"].shape, 1)
    keys, order = jax.lax.sort((sign * i["x"], position), dimension=1,
                               num_keys=2)
    return sign * keys, order


def top_k(i, s):
    sign = 1 if s.get("largest", 1) else -1
    values, order = jax.lax.top_k(sign * i["x"], int(s["k"]))
    return sign * values, order.astype(jnp.int64)


def affine_leaky(x, s):
    z = x * s.get("scale", 0.375) + s.get("shift", -0.25)
    return jnp.maximum(z, s.get("slope", 0.1) * z)


OPERATORS = {
    "copy": lambda i, s: (jnp.copy(i["x"]),),
    "add": lambda i, s: (i["a"] + i["b"],),
    "transpose": lambda i, s: (i["x"].T,),
    "row_sum": lambda i, s: (jnp.sum(i["x"], 1),),
    "row_max": lambda i, s: (jnp.max(i["x"], 1),),
    "row_mean": lambda i, s: (jnp.mean(i["x"], 1),),
    "col_sum": lambda i, s: (jnp.sum(i["x"], 0),),
    "arg_max": lambda i, s: (jnp.argmax(i["x"], 1),),
    "softmax": lambda i, s: (jax.nn.softmax(i["x"], -1),),
    "masked_softmax": lambda i, s: (
        jax.nn.softmax(jnp.where(i["mask"], i["x"], -jnp.inf), -1),),
    "rms_norm": lambda i, s: (rms(i["x"], i["w"], s.get("eps", 1e-6)),),
    "add_rms_norm": add_rms_norm,
    "layer_norm": lambda i, s: (
        norm(i["x"], i["w"], i["b"], s.get("eps", 1e-5)),),
    "residual_layer_norm": lambda i, s: (
        norm(i["x"] + i["r"], i["w"], i["b"], s.get("eps", 1e-5)),),
    "gelu_residual": lambda i, s: (gelu(i["x"]) + i["r"],),
    "swiglu": lambda i, s: (jax.nn.silu(i["gate"]) * i["up"],),
    "rope": rope,
    "sigmoid_pair": sigmoid_pair,
    "gelu_pair": gelu_pair,
    "cross_entropy": cross_entropy,
    "cumsum": lambda i, s: (jnp.cumsum(i["x"], 1),),
    "embedding": lambda i, s: (
        jnp.take(i["table"], i["ids"], 0, mode="clip"),),
    "gemm": gemm,
    "affine_leaky": lambda i, s: (affine_leaky(i["x"], s),),
    "gemm_epilogue": gemm_epilogue,
    "gemm_affine_leaky": lambda i, s: (
        affine_leaky(jnp.matmul(i["a"], i["b"]), s),),
    "bmm": lambda i, s: (jnp.matmul(*operands(i, s)),),
    "gemm_q8": gemm_q8,
    "gemm_q4": gemm_q4,
    "conv2d": conv2d,
    "depthwise_conv2d": lambda i, s: conv2d(i, s, i["x"].shape[1]),
    "attention": attention,
    "sort": sort,
    "top_k": top_k,
}

NOTES = {
    "masked_softmax": "a row where nothing is visible gives NaN",
}


def function(request, names, others=None):
    """The operator as a function of its inputs in the order of `names`;
    `others` has forms that a compiler needs instead of those here."""
    operator, settings = request["operator"], settings_of(request)
    if operator not in OPERATORS:
        raise Unsupported(f"has no form of {operator} here")
    if operator == "attention" and "lse" in output_names(request):
        raise Unsupported("attention does not return its log-sum")
    body = {**OPERATORS, **(others or {})}[operator]

    narrow = {"bf16": jnp.bfloat16, "f16": jnp.float16}.get(request["dtype"])

    def is_float(value):
        return jnp.issubdtype(value.dtype, jnp.floating)

    def call(*values):
        # Every operation would round to a narrow type.
        if narrow:
            values = [value.astype(jnp.float32) if is_float(value) else value
                      for value in values]
        results = body(dict(zip(names, values)), settings)
        if narrow:
            results = [result.astype(narrow) if is_float(result) else result
                       for result in results]
        return tuple(results)

    call.__name__ = operator
    return call
