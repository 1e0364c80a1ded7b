#===- jax.py - XLA on the CPU, through JAX ------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import os

# Before jax starts XLA.
THREADS = int(os.environ.get("OMP_NUM_THREADS", "0"))
if THREADS == 1:
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "")
                               + " --xla_cpu_multi_thread_eigen=false")

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy  # noqa: E402

from python import jax_operators  # noqa: E402
from python.problem import (CopiedOutputs, dtypes, hash_text,  # noqa: E402
                            input_names, output_names)

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)


def typed(array, dtype):
    return array.view(ml_dtypes.bfloat16) if dtype == "bf16" else array


def store(result, output):
    numpy.copyto(output, numpy.asarray(result).view(output.dtype)
                 .reshape(output.shape))


class Compiled(CopiedOutputs):
    def __init__(self, jitted, inputs, outputs):
        super().__init__(None, outputs, store)
        # The jitted function's call is shorter than that of what
        # lower().compile() returns.
        self.jitted, self.inputs = jitted, inputs
        self.detail["inputs"] = "put on XLA's device before the timed calls"

    def begin(self):
        self.values = [jax.device_put(array) for array in self.inputs]
        jax.block_until_ready(self.values)

    def run(self):
        self.results = self.jitted(*self.values)
        for result in self.results:
            result.block_until_ready()


class Peer:
    def describe(self):
        return {"name": "jax", "version": jax.__version__,
                "mathMode": "XLA CPU defaults: no fast math, products at "
                            "highest precision",
                "boundaries": ["call", "batch"],
                "details": {"devices": len(jax.devices("cpu")),
                            "flags": os.environ.get("XLA_FLAGS", "").strip()}}

    def prepare(self, request, arrays):
        names, kinds = input_names(request), dtypes(request)
        inputs = [typed(arrays[name], kinds[name]) for name in names]
        function = jax_operators.function(request, names)
        with jax.default_matmul_precision("highest"):
            jitted = jax.jit(function)
            lowered = jitted.lower(*inputs)
            compiled = lowered.compile()
            jax.block_until_ready(jitted(*inputs))
        problem = Compiled(jitted, inputs,
                           [arrays[name] for name in output_names(request)])
        problem.identity["stablehlo"] = hash_text(lowered.as_text())
        problem.identity["hlo"] = hash_text(compiled.as_text())
        if request["operator"] in jax_operators.NOTES:
            problem.detail["note"] = jax_operators.NOTES[request["operator"]]
        return problem
