#===- inductor_wrapper.py - Reads the code that Inductor generates ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Finds in a wrapper of TorchInductor's CPU backend which kernels it calls, in
which order and with which memory.

read(source) interprets the wrapper's call(): its arguments, the buffers that it
allocates, the names that alias them, the kernel calls and what it returns. Every
statement must be one of the forms below; any other (a call of a library, a loop,
memory of another kind) raises NotUnderstood, since a benchmark of something that
was guessed is worth nothing.

    a, b = args                      del a
    args.clear()                     assert_size_stride(a, size, stride)
    buf0 = empty_strided_cpu(size, stride, torch.float32)
    buf1 = buf0                      buf1 = reinterpret_tensor(buf0, size,
    cpp_fused_x_0(a, b, buf1)                     stride, offset)
    return (buf1, )
"""

import ast
import dataclasses

# Versions whose wrappers have been read and checked; others may differ in ways
# that look alike.
VERSIONS = ("2.11",)

ITEM_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
              "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
              "bool": 1}


class NotUnderstood(Exception):
    """The wrapper has something that is none of the known forms."""


@dataclasses.dataclass
class Storage:
    """Memory: argument number `argument` of the wrapper, or allocated by it."""
    name: str
    bytes: int = 0
    argument: int = -1


@dataclasses.dataclass
class View:
    """A tensor of the wrapper."""
    storage: Storage
    size: tuple = None
    stride: tuple = None
    item: int = 0
    # In bytes.
    offset: int = 0

    def is_dense(self):
        """Whether it is a whole storage in row-major order."""
        step = 1
        for extent, stride in reversed(list(zip(self.size, self.stride))):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return self.offset == 0 and step * self.item == self.storage.bytes


@dataclasses.dataclass
class Kernel:
    """A kernel of the wrapper: its C++ text and the types of its arguments."""
    name: str
    types: list
    source: str


@dataclasses.dataclass
class Call:
    kernel: Kernel
    arguments: list


@dataclasses.dataclass
class Wrapper:
    arguments: list
    calls: list
    results: list

    def scratch(self):
        """Storages that are neither arguments nor results."""
        results = [id(view.storage) for view in self.results]
        found = {}
        for call in self.calls:
            for view in call.arguments:
                storage = view.storage
                if storage.argument < 0 and id(storage) not in results:
                    found[id(storage)] = storage
        return list(found.values())


def refuse(node, why):
    text = ast.unparse(node).split("\n")[0][:120]
    raise NotUnderstood(f"the wrapper {why}: {text}")


def called(node):
    """The name of a called function, or None."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) \
            and not node.keywords:
        return node.func.id
    return None


def literal(node):
    try:
        return ast.literal_eval(node)
    except ValueError:
        refuse(node, "has a value that is not constant")


def find_kernels(tree):
    """The kernels that the module defines with async_compile.cpp_pybinding."""
    kernels = {}
    for node in tree.body:
        if not (isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)):
            continue
        if ast.unparse(node.value.func) != "async_compile.cpp_pybinding":
            continue
        types, source = [literal(argument) for argument in node.value.args[:2]]
        name = node.targets[0].id
        kernels[name] = Kernel(name, types, source)
    return kernels


def find_call(tree):
    """The function call(args), alone or of class Runner."""
    found = []
    for node in tree.body:
        body = node.body if isinstance(node, ast.ClassDef) else [node]
        found += [entry for entry in body
                  if isinstance(entry, ast.FunctionDef)
                  and entry.name == "call"]
    if len(found) != 1:
        raise NotUnderstood(f"found {len(found)} functions 'call', expected 1")
    return found[0]


class Reader:
    def __init__(self, kernels):
        self.kernels = kernels
        self.names = {}
        self.wrapper = Wrapper([], [], None)

    def view(self, node):
        """A name, or a reinterpreted one."""
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                refuse(node, "uses an unknown name")
            return self.names[node.id]
        if called(node) == "reinterpret_tensor" and len(node.args) == 4:
            base = self.view(node.args[0])
            size, stride, offset = [literal(a) for a in node.args[1:]]
            if base.item == 0:
                refuse(node, "reinterprets memory of unknown type")
            # The offset is one from the start of the storage.
            return View(base.storage, size, stride, base.item,
                        offset * base.item)
        return refuse(node, "uses something unknown")

    def allocate(self, name, node):
        size, stride = literal(node.args[0]), literal(node.args[1])
        dtype = ast.unparse(node.args[2])
        item = ITEM_BYTES.get(dtype.removeprefix("torch."))
        if not dtype.startswith("torch.") or not item:
            refuse(node, "allocates an unknown type")
        elements = 1 + sum((extent - 1) * step
                           for extent, step in zip(size, stride))
        if 0 in size:
            elements = 0
        storage = Storage(name, elements * item)
        return View(storage, size, stride, item)

    def assign(self, node):
        if len(node.targets) != 1:
            refuse(node, "assigns several names")
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            if not (isinstance(value, ast.Name) and value.id == "args"):
                refuse(node, "has an unknown assignment")
            for number, element in enumerate(target.elts):
                storage = Storage(element.id, argument=number)
                self.names[element.id] = View(storage)
                self.wrapper.arguments.append(storage)
            return
        if not isinstance(target, ast.Name):
            refuse(node, "has an unknown assignment")
        if called(value) == "empty_strided_cpu" and len(value.args) == 3:
            self.names[target.id] = self.allocate(target.id, value)
        else:
            self.names[target.id] = self.view(value)

    def expression(self, node):
        if ast.unparse(node) == "args.clear()":
            return
        name = called(node)
        if name == "assert_size_stride":
            view = self.view(node.args[0])
            view.size, view.stride = literal(node.args[1]), literal(
                node.args[2])
            return
        kernel = self.kernels.get(name)
        if not kernel:
            refuse(node, "calls something that is no generated kernel")
        if any("*" not in kind for kind in kernel.types):
            refuse(node, "calls a kernel with arguments other than pointers")
        if len(kernel.types) != len(node.args):
            refuse(node, "calls a kernel with another number of arguments")
        views = [self.view(argument) for argument in node.args]
        for view, kind in zip(views, kernel.types):
            if view.storage.argument >= 0 and "const" not in kind:
                refuse(node, "writes to an argument")
        self.wrapper.calls.append(Call(kernel, views))

    def statement(self, node):
        if self.wrapper.results is not None:
            refuse(node, "goes on after it returned")
        if isinstance(node, ast.Assign):
            self.assign(node)
        elif isinstance(node, ast.Expr):
            self.expression(node.value)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if not isinstance(target, ast.Name):
                    refuse(node, "deletes something unknown")
                self.names.pop(target.id, None)
        elif isinstance(node, ast.Return) and isinstance(node.value,
                                                         ast.Tuple):
            self.wrapper.results = [self.view(element)
                                    for element in node.value.elts]
        else:
            refuse(node, "has an unknown statement")


def read(source):
    """The Wrapper of a generated module. Raises NotUnderstood."""
    tree = ast.parse(source)
    reader = Reader(find_kernels(tree))
    for node in find_call(tree).body:
        reader.statement(node)
    wrapper = reader.wrapper
    if not wrapper.results:
        raise NotUnderstood("the wrapper returns nothing")
    if not wrapper.calls:
        raise NotUnderstood("the wrapper calls no kernel")
    storages = [view.storage for view in wrapper.results]
    for view in wrapper.results:
        if view.storage.argument >= 0:
            raise NotUnderstood("the wrapper returns an argument")
        if storages.count(view.storage) > 1:
            raise NotUnderstood("two results share their memory")
        if not view.is_dense():
            raise NotUnderstood(f"result {view.storage.name} is not dense and "
                                "row-major")
    return wrapper
