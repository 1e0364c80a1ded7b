#===- torch_inductor.py - TorchInductor's compiled C++ ------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""At the boundary `call` the compiled function is called as a user calls it,
with the outputs as arguments that it fills. At `native` the generated C++
kernels are called by their entries, in the order and with the memory that the
generated wrapper gives them (inductor_wrapper.py); inputs and results are the
shared memory, scratch is allocated once."""

import ctypes

import torch
import torch._dynamo
import torch._inductor.codecache as codecache
import torch._inductor.config as config
from torch._inductor.compile_fx import compile_fx
from torch._inductor.utils import run_and_get_code

from python import entries, inductor_wrapper, torch_operators
from python.problem import Problem, Unsupported, hash_text, settings_of

MATH_MODE = ("IEEE, no flush of subnormals, no contraction of multiply and "
             "add unless written, reductions reordered")


class Compiled(Problem):
    """The function that torch.compile returns."""

    def __init__(self, call):
        super().__init__()
        self.run = call
        self.detail["outputs"] = "arguments of the compiled function"


def version_key():
    return ".".join(torch.__version__.split("+")[0].split(".")[:2])


def object_of(kernel, modules):
    """The shared object of a kernel that a generated module has loaded."""
    for module in modules:
        function = getattr(module, kernel.name, None)
        owner = getattr(function, "__self__", None)
        file = getattr(owner, "__file__", None)
        if file:
            return file
    raise Unsupported(f"found no shared object of kernel {kernel.name}")


def function_of(kernel, modules):
    return next(getattr(module, kernel.name) for module in modules
                if hasattr(module, kernel.name))


def tensor_at(tensor, offset):
    """A tensor that begins `offset` bytes after another."""
    if offset == 0:
        return tensor
    return tensor.flatten().view(torch.uint8)[offset:]


def modules_of(source):
    """Loaded modules with this text."""
    found = []
    for module in codecache.PyCodeCache.modules:
        try:
            with open(module.__file__, encoding="utf-8") as stream:
                if stream.read() == source:
                    found.append(module)
        except OSError:
            continue
    return found


class Peer:
    def describe(self):
        return {"name": "torch_inductor", "version": torch.__version__,
                "mathMode": MATH_MODE,
                "boundaries": ["native", "call", "batch"],
                "details": {
                    **torch_operators.details(),
                    "nativeVersions": list(inductor_wrapper.VERSIONS),
                    "contraction": str(getattr(
                        config.cpp, "enable_floating_point_contract_flag",
                        "default")),
                    "compiler": str(config.cpp.cxx[-1])}}

    def prepare(self, request, arrays):
        torch_operators.check(request)
        torch.set_num_threads(request["threads"])
        torch.set_grad_enabled(False)
        torch._dynamo.reset()
        if request["boundary"] == "native":
            problem = self.native(request, arrays)
        else:
            problem = self.compiled(request, arrays)
        if request["operator"] in torch_operators.NOTES:
            problem.detail["note"] = torch_operators.NOTES[request["operator"]]
        problem.detail["threads"] = torch.get_num_threads()
        return problem

    def compiled(self, request, arrays):
        inputs, outputs = torch_operators.tensors(request, arrays)
        settings, operator = settings_of(request), request["operator"]
        names = list(inputs)
        function = torch_operators.widened(
            torch_operators.OPERATORS[operator], operator, request["dtype"])
        ordered = torch_operators.matched(
            operator, function(inputs, settings), outputs)

        def fill(values, results):
            computed = function(dict(zip(names, values)), settings)
            for result, output in zip(computed, results):
                if output is not None:
                    output.copy_(result)

        compiled = torch.compile(fill, dynamic=False)
        values = tuple(inputs.values())
        compiled(values, ordered)
        return Compiled(lambda: compiled(values, ordered))

    def native(self, request, arrays):
        if version_key() not in inductor_wrapper.VERSIONS:
            raise Unsupported(
                f"reads the generated code of PyTorch "
                f"{', '.join(inductor_wrapper.VERSIONS)}, found "
                f"{torch.__version__}")
        inputs, outputs = torch_operators.tensors(request, arrays)
        settings, operator = settings_of(request), request["operator"]
        names = list(inputs)
        function = torch_operators.widened(
            torch_operators.OPERATORS[operator], operator, request["dtype"])
        given = []

        def backend(graph, examples):
            inner = compile_fx(graph, examples)

            def call(*arguments):
                # Tracing orders the inputs by their use.
                given[:] = list(arguments)
                return inner(*arguments)

            return call

        compiled = torch.compile(
            lambda *values: function(dict(zip(names, values)), settings),
            dynamic=False, backend=backend)
        results, sources = run_and_get_code(compiled, *inputs.values())
        if len(sources) != 1:
            raise Unsupported(f"compiled to {len(sources)} modules, "
                              "expected 1")
        try:
            wrapper = inductor_wrapper.read(sources[0])
        except inductor_wrapper.NotUnderstood as error:
            raise Unsupported(str(error)) from error
        ordered = torch_operators.matched(operator, results, outputs)
        return self.bind(request["timer"], sources[0], wrapper, given,
                         ordered)

    def bind(self, timer, source, wrapper, given, outputs):
        if len(given) != len(wrapper.arguments):
            raise Unsupported(f"the wrapper has {len(wrapper.arguments)} "
                              f"arguments, expected {len(given)}")
        if len(outputs) != len(wrapper.results):
            raise Unsupported(f"the wrapper returns {len(wrapper.results)} "
                              f"results, expected {len(outputs)}")
        places, keep = {}, [given, outputs]
        for view, output in zip(wrapper.results, outputs):
            if output is None:
                continue
            if view.storage.bytes != output.numel() * output.element_size():
                raise Unsupported(f"result {view.storage.name} has "
                                  f"{view.storage.bytes} bytes, expected "
                                  f"{output.numel() * output.element_size()}")
            places[id(view.storage)] = output
        scratch_bytes = 0
        for call in wrapper.calls:
            for view in call.arguments:
                storage = view.storage
                if id(storage) in places:
                    continue
                if storage.argument >= 0:
                    places[id(storage)] = given[storage.argument]
                    continue
                # What PyTorch's allocator gives is aligned to 64 bytes.
                memory = torch.empty(max(storage.bytes, 1), dtype=torch.uint8)
                keep.append(memory)
                places[id(storage)] = memory
                scratch_bytes += storage.bytes
        modules = modules_of(source)
        calls, objects = [], []
        for call in wrapper.calls:
            file = object_of(call.kernel, modules)
            library = ctypes.CDLL(file)
            keep.append(library)
            objects.append(file)
            calls.append((entries.address(library.kernel),
                          [places[id(view.storage)].data_ptr() + view.offset
                           for view in call.arguments]))
        problem = entries.Entries(timer, calls, keep)
        # For analysis/inductor_check.py, which calls them as PyTorch does.
        problem.generated = [
            (function_of(call.kernel, modules),
             [tensor_at(places[id(view.storage)], view.offset)
              for view in call.arguments]) for call in wrapper.calls]
        problem.modules = modules
        hashes = []
        for file in objects:
            with open(file, "rb") as stream:
                hashes.append(hash_text(stream.read()))
        problem.identity = {"object": ",".join(hashes),
                            "ir": hash_text(source)}
        problem.detail = {
            "kernels": [call.kernel.name for call in wrapper.calls],
            "scratchBytes": scratch_bytes,
            "outputs": "results of the generated code bound to the shared "
                       "memory"}
        return problem
