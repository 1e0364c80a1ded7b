#!/usr/bin/env python3
#===- worker.py - Runs a Python peer for `tessera bench` --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""worker.py NAME: answers the requests of the benchmark harness for one peer.

Requests come as lines of JSON on standard input; replies go to the descriptor
TESSERA_BENCH_REPLY, or to standard output (docs/benchmarking.md has both). What
libraries print never gets among the replies. Compiled entries are timed by
libtessera_bench_timer.so, anything else by a loop here.
"""

import ctypes
import gc
import glob
import importlib
import itertools
import json
import mmap
import os
import pathlib
import sys
import time
import traceback

# Peers are modules of the package `python`: a peer's module may then have the
# name of the library that it imports.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

from python.problem import Unsupported  # noqa: E402

# How numpy sees the bytes of an element.
ELEMENTS = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2",
            "f8e4m3": "u1", "f8e5m2": "u1", "bool": "?",
            "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
            "u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8"}


def private_descriptors():
    """(requests, replies): descriptors that no library and no child has."""
    requests = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    given = os.environ.pop("TESSERA_BENCH_REPLY", None)
    replies = int(given) if given else os.dup(1)
    os.set_inheritable(replies, False)
    if not given:
        os.dup2(2, 1)
    return requests, replies


def map_arrays(request):
    """Views of the shared memory by name."""
    import numpy
    descriptor = os.open(request["memory"], os.O_RDWR)
    try:
        memory = mmap.mmap(descriptor, request["bytes"], mmap.MAP_SHARED)
    finally:
        os.close(descriptor)
    arrays = {}
    for array in request["arrays"]:
        dtype = numpy.dtype(ELEMENTS[array["dtype"]])
        count = 1
        for extent in array["extents"]:
            count *= extent
        arrays[array["name"]] = numpy.frombuffer(
            memory, dtype, count, array["offset"]).reshape(array["extents"])
    return arrays


def find_timer():
    """libtessera_bench_timer.so of the Tessera that started this worker."""
    program = os.environ.get("TESSERA_PROGRAM")
    if not program:
        return None
    root = pathlib.Path(program).resolve().parent.parent
    for pattern in ("lib", "lib64", "lib/*", "bin"):
        for file in glob.glob(f"{root}/{pattern}/libtessera_bench_timer.so"):
            timer = ctypes.CDLL(file)
            timer.tessera_bench_time.argtypes = [
                ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                ctypes.c_int64, ctypes.c_int64,
                ctypes.POINTER(ctypes.c_int64)]
            timer.tessera_bench_bind.restype = ctypes.c_void_p
            timer.tessera_bench_bind.argtypes = [
                ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                ctypes.c_int64]
            timer.tessera_bench_unbind.argtypes = [ctypes.c_void_p]
            return timer
    return None


def time_native(timer, native, warm, samples, inner):
    totals = (ctypes.c_int64 * samples)()
    status = timer.tessera_bench_time(*native, warm, samples, inner, totals)
    if status != 0:
        raise RuntimeError(f"a call returned {status}")
    return list(totals)


def time_calls(run, warm, samples, inner):
    clock = time.perf_counter_ns
    totals = []
    for _ in range(warm):
        run()
    for _ in range(samples):
        calls = itertools.repeat(None, inner)
        start = clock()
        for _ in calls:
            run()
        totals.append(clock() - start)
    return totals


class Server:
    """The state between requests."""

    def __init__(self, peer):
        self.peer = peer
        self.problem = None
        # Keeps the mapping: a library may hold bare addresses.
        self.arrays = None
        self.timer = find_timer()

    def answer(self, request):
        what = request.get("do")
        if what == "describe":
            return self.peer.describe()
        if what == "prepare":
            return self.prepare(request)
        if what == "run":
            self.turn(0, 1, 1)
            return {}
        if what == "time":
            counts = [max(int(request.get(name, least)), least) for name, least
                      in (("warm", 0), ("samples", 1), ("inner", 1))]
            return {"nanoseconds": self.turn(*counts)}
        if what in ("release", "quit"):
            self.release()
            return {}
        raise ValueError(f"unknown request '{what}'")

    def prepare(self, request):
        self.release()
        if not self.timer:
            raise RuntimeError(
                "found no libtessera_bench_timer.so beside the program that "
                "TESSERA_PROGRAM names")
        request["timer"] = self.timer
        self.arrays = map_arrays(request)
        self.problem = self.peer.prepare(request, self.arrays)
        if request["boundary"] == "native" and not self.problem.native:
            self.release()
            raise Unsupported("has no compiled entry to call")
        if request["boundary"] == "device" and not self.problem.interval:
            self.release()
            raise Unsupported("has no device to measure")
        # What the library and the problem have made is not looked at again:
        # the collection before each turn would take a fifth of a second.
        gc.collect()
        gc.freeze()
        return {"identity": self.problem.identity,
                "detail": self.problem.detail}

    def turn(self, warm, samples, inner):
        problem = self.problem
        if problem is None:
            raise ValueError("nothing is prepared")
        problem.begin()
        gc.collect()
        gc.disable()
        try:
            if problem.interval:
                return problem.interval(warm, samples, inner)
            if problem.native:
                return time_native(self.timer, problem.native, warm, samples,
                                   inner)
            return time_calls(problem.run, warm, samples, inner)
        finally:
            gc.enable()
            problem.finish()

    def release(self):
        problem, self.problem = self.problem, None
        gc.unfreeze()
        if problem is not None:
            problem.release()
            del problem
        self.arrays = None
        gc.collect()


def reply_to(server, line):
    """The reply; no exception leaves here."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("the request is no JSON object")
        reply = dict(server.answer(request))
        reply["status"] = "ok"
        return request, json.dumps(reply)
    except Unsupported as error:
        reply = {"status": "unsupported", "why": str(error)}
    except BaseException as error:  # whatever a library thinks of
        traceback.print_exc()
        text = str(error).strip().split("\n")[0][:400]
        reply = {"status": "failed",
                 "why": f"{type(error).__name__}: {text}"}
    return {}, json.dumps(reply)


class Missing:
    """A peer that cannot be imported answers all the same."""

    def __init__(self, error):
        self.error = error

    def describe(self):
        raise self.error

    def prepare(self, request, arrays):
        raise self.error


def load(name):
    try:
        return importlib.import_module(f"python.{name}").Peer()
    except BaseException as error:
        traceback.print_exc()
        return Missing(error)


def main():
    if len(sys.argv) != 2:
        print("usage: worker.py NAME", file=sys.stderr)
        return 2
    requests, replies = private_descriptors()
    server = Server(load(sys.argv[1]))
    with os.fdopen(requests, "rb") as stream:
        for line in stream:
            request, reply = reply_to(server, line)
            data = reply.encode() + b"\n"
            while data:
                data = data[os.write(replies, data):]
            if request.get("do") == "quit":
                break
    sys.stdout.flush()
    # Threads of libraries must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
