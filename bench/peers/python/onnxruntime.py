#===- onnxruntime.py - ONNX Runtime on the CPU --------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import onnxruntime

from python import onnx_models
from python.problem import Problem, dtypes, hash_text, only_dtypes


class Bound(Problem):
    """A session whose inputs and outputs are bound to the shared memory."""

    def __init__(self, session, binding, arrays):
        super().__init__()
        self.session, self.binding, self.arrays = session, binding, arrays
        run, options = session.run_with_iobinding, None
        self.run = lambda: run(binding, options)
        self.detail["outputs"] = "bound to the shared memory (IOBinding)"


class Peer:
    def describe(self):
        return {"name": "onnxruntime", "version": onnxruntime.__version__,
                "mathMode": "IEEE f32 (session default), MLAS kernels",
                "boundaries": ["call", "batch"],
                "details": {"provider": "CPUExecutionProvider",
                            "optimization": "ORT_ENABLE_ALL"}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        model = onnx_models.model(request, {"attention", "skip_rms_norm"})
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = request["threads"]
        options.inter_op_num_threads = 1
        options.graph_optimization_level = \
            onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for array in request["arrays"]:
            data = arrays[array["name"]]
            bind = (binding.bind_output if array["output"]
                    else binding.bind_input)
            bind(array["name"], "cpu", 0, data.dtype, list(data.shape),
                 data.ctypes.data)
        problem = Bound(session, binding, arrays)
        problem.identity["model"] = hash_text(model)
        if request["operator"] in onnx_models.NOTES:
            problem.detail["note"] = onnx_models.NOTES[request["operator"]]
        return problem
