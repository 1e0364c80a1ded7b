#===- torch_cuda_inductor.py - torch.compile on a GPU --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import torch

from python import cuda_graphs


class Peer:
    def describe(self):
        return cuda_graphs.describe("torch_cuda_inductor")

    def prepare(self, request, arrays):
        torch._dynamo.reset()
        # Graphs are captured around it, as for the other peers.
        return cuda_graphs.prepare(
            request, arrays, lambda function: torch.compile(
                function, dynamic=False,
                mode="max-autotune-no-cudagraphs"))
