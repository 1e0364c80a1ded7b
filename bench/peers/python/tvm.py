#===- tvm.py - TVM: Relax's default pipeline ----------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The operators as ONNX graphs, through Relax's default pipeline for the CPU.
Nothing is tuned: a search over schedules for each shape would be another
measurement."""

import numpy
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from python import onnx_models
from python.problem import (CopiedOutputs, Unsupported, hash_text,
                            input_names, only_dtypes, output_names)


def store(result, output):
    numpy.copyto(output, result.numpy().reshape(output.shape))


def host_target():
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    return tvm.target.Target({"kind": "llvm", "mcpu": str(cpu)})


class Invoked(CopiedOutputs):
    def __init__(self, function, values, outputs):
        super().__init__(None, outputs, store)
        self.function, self.values = function, values

    def run(self):
        results = self.function(*self.values)
        self.results = ((results,) if isinstance(results, tvm.runtime.Tensor)
                        else results)


class Peer:
    def describe(self):
        return {"name": "tvm", "version": tvm.__version__,
                "mathMode": "IEEE f32, LLVM defaults",
                "boundaries": ["call", "batch"],
                "details": {"target": str(host_target()),
                            "tuning": "none"}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        text = onnx_models.model(request)
        try:
            module = from_onnx(onnx.load_from_string(text))
        except Exception as error:
            raise Unsupported("does not import the graph: "
                              f"{str(error).splitlines()[-1][:200]}") from error
        executable = tvm.compile(module, target=host_target())
        machine = relax.VirtualMachine(executable, tvm.cpu())
        values = [tvm.runtime.from_dlpack(arrays[name])
                  for name in input_names(request)]
        problem = Invoked(machine["main"], values,
                          [arrays[name] for name in output_names(request)])
        problem.keep = machine
        problem.identity["model"] = hash_text(text)
        if request["operator"] in onnx_models.NOTES:
            problem.detail["note"] = onnx_models.NOTES[request["operator"]]
        return problem
