#===- iree.py - IREE's CPU backend --------------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""JAX writes the StableHLO that IREE compiles; nothing of XLA runs."""

import importlib.metadata

import iree.compiler
import iree.runtime
import jax
import numpy

from python import jax_operators
from python.problem import (CopiedOutputs, Unsupported, hash_text,
                            input_names, only_dtypes, output_names)

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

FLAGS = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3",
         # f64 and i64 stay what they are.
         "--iree-input-demote-f64-to-f32=false",
         "--iree-input-demote-i64-to-i32=false"]


def store(result, output):
    numpy.copyto(output, result.to_host().reshape(output.shape))


class Invoked(CopiedOutputs):
    def __init__(self, function, device, inputs, outputs):
        super().__init__(None, outputs, store)
        self.function, self.device, self.inputs = function, device, inputs
        self.detail["inputs"] = "copied to IREE's device before the timed calls"

    def begin(self):
        self.values = [iree.runtime.asdevicearray(self.device, array)
                       for array in self.inputs]

    def run(self):
        results = self.function(*self.values)
        self.results = (results if isinstance(results, (tuple, list))
                        else (results,))


class Peer:
    def describe(self):
        return {"name": "iree",
                "version": importlib.metadata.version("iree-base-compiler"),
                "mathMode": "IREE CPU defaults: reassociation within "
                            "reductions, polynomial functions",
                "boundaries": ["call", "batch"],
                "details": {"flags": " ".join(FLAGS)}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        names = input_names(request)
        inputs = [arrays[name] for name in names]
        lowered = jax.jit(jax_operators.function(
            request, names, {"sort": jax_operators.sort_by_position})).lower(
                *inputs)
        text = str(lowered.compiler_ir("stablehlo"))
        try:
            program = iree.compiler.compile_str(
                text, target_backends=["llvm-cpu"], input_type="stablehlo",
                extra_args=FLAGS)
        except iree.compiler.CompilerToolError as error:
            first = [line for line in str(error).splitlines()
                     if "error:" in line]
            raise Unsupported("does not compile it: "
                              + (first or ["no reason"])[0][-200:]) from error
        # One thread needs no pool, whose hand-over costs time.
        driver = "local-sync" if request["threads"] == 1 else "local-task"
        config = iree.runtime.Config(driver)
        context = iree.runtime.SystemContext(config=config)
        module = iree.runtime.VmModule.copy_buffer(context.instance, program)
        context.add_vm_module(module)
        function = getattr(context.modules, module.name)["main"]
        problem = Invoked(function, config.device, inputs,
                          [arrays[name] for name in output_names(request)])
        problem.keep = context
        problem.identity = {"ir": hash_text(text),
                            "object": hash_text(bytes(program))}
        problem.detail["driver"] = driver
        if request["operator"] in jax_operators.NOTES:
            problem.detail["note"] = jax_operators.NOTES[request["operator"]]
        return problem
