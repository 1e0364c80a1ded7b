#===- openvino.py - OpenVINO's CPU plug-in ------------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import openvino

from python import onnx_models
from python.problem import Problem, Unsupported, hash_text, only_dtypes


class Infer(Problem):
    """A request whose tensors are the shared memory."""

    def __init__(self, request):
        super().__init__()
        self.run = request.infer
        self.detail["outputs"] = "set to the shared memory (set_tensor)"


class Peer:
    def __init__(self):
        self.core = openvino.Core()

    def describe(self):
        return {"name": "openvino", "version": openvino.__version__,
                "mathMode": "IEEE f32 (inference_precision f32)",
                "boundaries": ["call", "batch"],
                "details": {"device": self.core.get_property(
                    "CPU", "FULL_DEVICE_NAME")}}

    def prepare(self, request, arrays):
        only_dtypes(request, "f32")
        if request["operator"] == "sort":
            raise Unsupported("sorts without keeping the order of equal "
                              "elements")
        text = onnx_models.model(request, {"attention"})
        model = self.core.read_model(text)
        compiled = self.core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(request["threads"]),
            "ENABLE_CPU_PINNING": False,
        })
        infer = compiled.create_infer_request()
        for array in request["arrays"]:
            name, data = array["name"], arrays[array["name"]]
            try:
                port = (compiled.output if array["output"]
                        else compiled.input)(name)
                kind = port.get_element_type().to_dtype()
            except RuntimeError as error:
                raise Unsupported(f"lost the array '{name}' of the model") \
                    from error
            if kind != data.dtype:
                raise Unsupported(f"computes '{name}' as {kind}, "
                                  f"expected {data.dtype}")
            infer.set_tensor(port, openvino.Tensor(data, shared_memory=True))
        problem = Infer(infer)
        problem.identity["model"] = hash_text(text)
        problem.detail["threads"] = str(compiled.get_property(
            "INFERENCE_NUM_THREADS"))
        if request["operator"] in onnx_models.NOTES:
            problem.detail["note"] = onnx_models.NOTES[request["operator"]]
        return problem
