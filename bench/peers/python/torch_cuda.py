#===- torch_cuda.py - PyTorch on a GPU, one operator after another -------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

from python import cuda_graphs


class Peer:
    def describe(self):
        return cuda_graphs.describe("torch_cuda")

    def prepare(self, request, arrays):
        return cuda_graphs.prepare(request, arrays, lambda function: function)
