#===- cuda_graphs.py - Device intervals of PyTorch functions -------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The boundary `device`: how long a function keeps the GPU, from its own clock.

The calls are captured in a graph, which is replayed between two events: the
host's launches have no part in the interval. The graph goes round over copies
of the arrays that together pass twice the second-level cache, so that a call
finds its inputs in memory.
"""

import torch

from python import torch_operators
from python.problem import Problem

# Buffers are copies of the row's arrays; more than these are not made.
MOST_COPIES = 256
MEMORY_SHARE = 0.25


class GraphProblem(Problem):
    """`function(inputs, settings)` on copies of the arrays on the GPU."""

    def __init__(self, function, settings, inputs, outputs, operator):
        super().__init__()
        self.host_inputs = inputs
        device = torch.device("cuda")
        properties = torch.cuda.get_device_properties(device)
        size = sum(t.numel() * t.element_size()
                   for t in [*inputs.values(), *outputs.values()])
        cache = properties.L2_cache_size
        room = int(properties.total_memory * MEMORY_SHARE)
        copies = min(2 * cache // max(size, 1) + 1, MOST_COPIES,
                     max(room // max(size, 1), 1))
        self.inputs = [{name: t.to(device) for name, t in inputs.items()}
                       for _ in range(copies)]
        self.results = [None] * copies

        def calls():
            for index, values in enumerate(self.inputs):
                self.results[index] = function(values, settings)

        # Compilation, libraries and workspaces come before the capture.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                calls()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            calls()
        self.outputs = torch_operators.matched(operator, self.results[0],
                                               outputs)
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.detail = {
            "clock": "CUDA events around replays of a graph",
            "copies": copies,
            "memory": "rotates over more than twice the L2 cache"
                      if copies * size > 2 * cache else "cache-resident",
            "outputs": "allocated in the graph, copied after the timed calls",
            "device": properties.name}

    def begin(self):
        for copy in self.inputs:
            for name, tensor in copy.items():
                tensor.copy_(self.host_inputs[name])
        # Nothing of an earlier turn may pass for a result.
        for results in self.results:
            for result in results:
                if result.is_floating_point():
                    result.fill_(float("nan"))
                else:
                    result.zero_()
        torch.cuda.synchronize()

    def interval(self, warm, samples, inner):
        """Nanoseconds of each of `samples` times `inner` calls."""
        copies = len(self.inputs)
        replays = max(round(inner / copies), 1)
        for _ in range(max(round(warm / copies), 1)):
            self.graph.replay()
        torch.cuda.synchronize()
        totals = []
        start, stop = self.events
        for _ in range(samples):
            start.record()
            for _ in range(replays):
                self.graph.replay()
            stop.record()
            stop.synchronize()
            milliseconds = start.elapsed_time(stop)
            totals.append(max(round(
                milliseconds * 1e6 * inner / (replays * copies)), 1))
        return totals

    def finish(self):
        for result, output in zip(self.results[-1], self.outputs):
            torch_operators.store(result.cpu(), output)

    def release(self):
        self.graph = self.results = self.inputs = None
        torch.cuda.empty_cache()


def prepare(request, arrays, wrap):
    """A GraphProblem; `wrap(function)` compiles the function or leaves it."""
    torch_operators.check(request)
    torch.set_grad_enabled(False)
    operator = request["operator"]
    inputs, outputs = torch_operators.tensors(request, arrays)
    function = torch_operators.widened(
        torch_operators.OPERATORS[operator], operator, request["dtype"])
    problem = GraphProblem(wrap(function), request["settings"], inputs,
                           outputs, operator)
    if operator in torch_operators.NOTES:
        problem.detail["note"] = torch_operators.NOTES[operator]
    return problem


def describe(name):
    if not torch.cuda.is_available():
        raise RuntimeError("found no GPU that this PyTorch can use")
    return {"name": name, "version": torch.__version__,
            "mathMode": torch_operators.MATH_MODE, "boundaries": ["device"],
            "details": {"device": torch.cuda.get_device_name(),
                        "cuda": str(torch.version.cuda)}}
