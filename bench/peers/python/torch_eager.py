#===- torch_eager.py - PyTorch, one operator after another --------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import torch

from python import torch_operators
from python.problem import CopiedOutputs, Direct, settings_of


class Peer:
    def describe(self):
        return {"name": "torch_eager", "version": torch.__version__,
                "mathMode": torch_operators.MATH_MODE,
                "boundaries": ["call", "batch"],
                "details": torch_operators.details()}

    def prepare(self, request, arrays):
        torch_operators.check(request)
        torch.set_num_threads(request["threads"])
        torch.set_grad_enabled(False)
        operator, settings = request["operator"], settings_of(request)
        inputs, outputs = torch_operators.tensors(request, arrays)
        direct = torch_operators.DIRECT.get(operator)
        if direct:
            problem = Direct(direct(inputs, settings, outputs))
        else:
            function = torch_operators.widened(
                torch_operators.OPERATORS[operator], operator,
                request["dtype"])
            ordered = torch_operators.matched(
                operator, function(inputs, settings), outputs)
            problem = CopiedOutputs(lambda: function(inputs, settings),
                                    ordered, torch_operators.store)
        if operator in torch_operators.NOTES:
            problem.detail["note"] = torch_operators.NOTES[operator]
        problem.detail["threads"] = torch.get_num_threads()
        return problem
