#===- faulty_peer.py - A peer that misbehaves on request --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""faulty_peer.py MODE: a worker for the operator `copy`, for tests alone.

Modes: good, device (good at that boundary), and slow (correct, 2 ms a call) and crawl (correct, 0.3 s a
call); absent (ends at once), mute (ends without a description), crash, hang, exit (while it is timed), refuse (has no
such operator), garbage (no JSON), kinds (JSON of the wrong kinds), samples (too
few of them), negative (times below 0), zero (times of 0), future (times longer
than the answer took), deep (a reply of many levels), twice (two replies to a
request), identity (one that is no object), reasonless (unsupported, with an
empty reason), endless (a reply without an end), wrong
(one element differs), late (right at first, wrong while it is timed), inputs
(writes to them), inputs-late (only after the calibration), outside (writes past
its output), boundary (is measured at
another one). Needs nothing but the standard library.
"""

import json
import mmap
import os
import signal
import sys
import time

MODE = sys.argv[1]
REPLIES = int(os.environ["TESSERA_BENCH_REPLY"])


class Copy:
    """The problem: two arrays of the shared memory."""

    def __init__(self, request):
        descriptor = os.open(request["memory"], os.O_RDWR)
        self.turns = 0
        self.changed = False
        self.memory = mmap.mmap(descriptor, request["bytes"])
        os.close(descriptor)
        places = {}
        for array in request["arrays"]:
            elements = 1
            for extent in array["extents"]:
                elements *= extent
            places[array["output"]] = (array["offset"], 4 * elements)
        (self.source, self.bytes), (self.target, _) = (places[False],
                                                       places[True])

    def run(self, timed):
        if MODE == "slow":
            time.sleep(0.002)
        if MODE == "crawl":
            time.sleep(0.3)
        data = bytearray(
            self.memory[self.source:self.source + self.bytes])
        if MODE == "wrong" or (MODE == "late" and timed):
            data[3] ^= 0x40
        self.memory[self.target:self.target + self.bytes] = bytes(data)
        # The harness calibrates with two turns at most.
        late = MODE == "inputs-late" and self.turns > 2
        if (MODE == "inputs" or late) and not self.changed:
            # Once: a second change would undo the first.
            self.changed = True
            self.memory[self.source] ^= 1
        if MODE == "outside":
            end = self.target + self.bytes
            self.memory[end:end + 4] = b"over"


def send(text):
    data = text.encode()
    while data:
        data = data[os.write(REPLIES, data):]


def timed(problem, request):
    if MODE == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if MODE == "hang":
        time.sleep(3600)
    if MODE == "exit":
        os._exit(7)
    if MODE == "garbage":
        send("now measuring ...\n")
        return None
    if MODE == "endless":
        while True:
            send("x" * 65536)
    if MODE == "kinds":
        return {"nanoseconds": [{"a": 1}] * request["samples"]}
    if MODE == "samples":
        return {"nanoseconds": [1000] * (request["samples"] - 1)}
    if MODE == "zero" and problem.turns > 1:
        return {"nanoseconds": [0] * request["samples"]}
    if MODE == "future":
        return {"nanoseconds": [10 ** 18] * request["samples"]}
    if MODE == "negative":
        return {"nanoseconds": [-5] * request["samples"]}
    problem.turns += 1
    for _ in range(request["warm"]):
        problem.run(True)
    totals = []
    for _ in range(request["samples"]):
        start = time.perf_counter_ns()
        for _ in range(request["inner"]):
            problem.run(True)
        totals.append(time.perf_counter_ns() - start)
    return {"nanoseconds": totals}


def main():
    if MODE == "absent":
        return 3
    problem = None
    for line in sys.stdin:
        request = json.loads(line)
        what = request["do"]
        reply = {}
        if what == "describe":
            if MODE == "mute":
                return 0
            reply = {"name": MODE, "version": os.environ.get("FAULTY_VERSION", "1"),
                     "mathMode": "IEEE",
                     "boundaries": {"boundary": ["call"],
                                    "device": ["device"]}.get(
                                        MODE, ["native", "call"])}
        elif what == "prepare":
            if MODE == "refuse" or request["operator"] != "copy":
                reply = {"status": "unsupported", "why": "copies only"}
            else:
                problem = Copy(request)
                if MODE == "deep":
                    send('{"status":"ok","detail":' + "[" * 10 ** 6 +
                         "]" * 10 ** 6 + "}\n")
                    continue
                if MODE == "identity":
                    reply = {"identity": "mine"}
                if MODE == "reasonless":
                    reply = {"status": "unsupported", "why": ""}
        elif what == "run":
            problem.run(False)
        elif what == "time":
            reply = timed(problem, request)
        # In one write, so that the second one is there when the first is read.
        twice = '{"status":"ok"}\n' if MODE == "twice" and what == "run" else ""
        if reply is not None:
            send(twice + json.dumps({"status": "ok", **reply}) + "\n")
        if what == "quit":
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
