#===- bench/analysis/inductor_check.py - Is Inductor timed fairly? ---------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""bench/inductor-check [OPERATOR:ROWSxCOLS ...]: times the code that TorchInductor
generates twice, as `tessera bench` does at the boundary `native` and as
PyTorch's own benchmarks of it do, and compares.

Tessera's way calls the generated entries from libtessera_bench_timer.so.
PyTorch's is torch._inductor.utils.timed, the loop of benchmark_compiled_module,
over the same generated functions with the same memory. That loop is in Python, so
it has the time of a call from Python as well; this is what it takes for a
kernel of one element, and is subtracted. The two ways alternate; a ratio is the
median over rounds of same-round ratios, with its bootstrap interval.
"""

import argparse
import json
import os
import pathlib
import sys

from . import statistics
from .operators import arrays_of, extent, load_table
from .units import percent, ratio_text, time_text

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROWS = ("softmax:129x768", "rms_norm:129x768", "layer_norm:129x768")


class CheckError(Exception):
    """Why nothing can be compared."""


def row_of(text):
    """("softmax", 129, 768) of "softmax:129x768"."""
    operator, _, shape = text.partition(":")
    rows, _, cols = shape.partition("x")
    if not (operator and rows.isdigit() and cols.isdigit()):
        raise CheckError(f"found the row '{text}', expected "
                         "OPERATOR:ROWSxCOLS")
    return operator, int(rows), int(cols)


class Agreement:
    """What the times per call of some rounds say, in nanoseconds; `overhead`
    is part of `theirs`."""

    def __init__(self, name, ours, theirs, overhead):
        self.ours, self.theirs = map(statistics.median, (ours, theirs))
        self.overhead = overhead
        ratios = [(other - overhead) / one for one, other in zip(ours, theirs)]
        self.ratio = statistics.median(ratios)
        self.low, self.high = statistics.bootstrap_median(ratios, name)
        # What is subtracted is known no better than to a fifth.
        self.allowed = 0.02 + 0.2 * abs(overhead) / self.ours
        if self.high - self.low > 0.1:
            self.verdict = "undecided, too noisy"
        elif self.low - 1 <= self.allowed and 1 - self.high <= self.allowed:
            self.verdict = "agree"
        else:
            self.verdict = "DIFFER"


# --- In the environment of PyTorch ------------------------------------------


def array_request(operator, rows, cols, timer):
    """A native "prepare" request with its arrays, as a worker gets it."""
    import numpy
    row = {"operator": operator, "dtype": "f32", "settings": {},
           "dims": {"rows": rows, "cols": cols}}
    table = load_table()
    if operator not in table:
        raise CheckError(f"there is no operator '{operator}'")
    try:
        inputs, outputs = arrays_of(row, table)
    except KeyError as error:
        raise CheckError(f"{operator} has other dimensions than rows and "
                         f"cols: {error}") from error
    axes = {item["name"]: item["axes"] for side in ("inputs", "outputs")
            for item in table[operator][side]}
    random = numpy.random.default_rng(1)
    arrays, listed = {}, []
    for array in [*inputs.values(), *outputs.values()]:
        if array.optional:
            continue
        extents = [extent(axis, row["dims"]) for axis in axes[array.name]]
        if array.dtype == "bool":
            values = random.random(extents) < 0.8
        elif array.dtype == "i64":
            values = random.integers(0, cols, extents)
        else:
            values = random.standard_normal(extents, dtype="f4")
        arrays[array.name] = numpy.ascontiguousarray(values)
        listed.append({"name": array.name, "dtype": array.dtype,
                       "extents": extents, "output": array.name in outputs})
    return {**row, "boundary": "native", "threads": 1, "timer": timer,
            "arrays": listed}, arrays


def timers(problem, timer):
    """(ours, theirs): functions from a number of calls to nanoseconds per
    call."""
    from python.worker import time_native
    from torch._inductor.utils import timed
    if len(problem.generated) == 1:
        function, tensors = problem.generated[0]
    else:
        steps, tensors = problem.generated, ()

        def function():
            for step, arguments in steps:
                step(*arguments)

    def model(*arguments):
        function(*arguments)
        # timed() wants a result.
        return True

    return (lambda calls: time_native(timer, problem.native, 0, 1,
                                      calls)[0] / calls,
            lambda calls: timed(model, tensors, calls, "cpu") / calls * 1e9)


def overhead_of(peer, timer, rounds):
    """Nanoseconds of a call from Python: of the smallest kernel there is."""
    request, arrays = array_request("copy", 1, 1, timer)
    ours, theirs = timers(peer.prepare(request, arrays), timer)
    return statistics.median([theirs(2000) - ours(2000)
                              for _ in range(rounds)])


def compare(peer, timer, row, rounds, milliseconds):
    import numpy
    request, arrays = array_request(*row, timer)
    problem = peer.prepare(request, arrays)
    ours, theirs = timers(problem, timer)
    outputs = [array["name"] for array in request["arrays"] if array["output"]]
    found = []
    for way in (ours, theirs):
        for name in outputs:
            arrays[name].fill(0)
        way(1)
        found.append([arrays[name].copy() for name in outputs])
    if not all(numpy.array_equal(one, other, equal_nan=True) and one.any()
               for one, other in zip(*found)):
        raise CheckError(f"{row[0]}: the two ways computed different results")
    calls = max(1, round(milliseconds * 1e6 / max(ours(10), 1)))
    samples = [], []
    for number in range(rounds):
        order = ((0, ours), (1, theirs))
        for place, way in order if number % 2 else reversed(order):
            way(max(calls // 10, 1))
            samples[place].append(way(calls))
    steps = len(problem.generated)
    overhead = overhead_of(peer, timer, 9) * steps
    return Agreement(row[0], *samples, overhead)


def check(options):
    sys.path.insert(0, str(BENCH / "peers"))
    os.environ["TESSERA_PROGRAM"] = str(options.program)
    from python.worker import find_timer
    timer = find_timer()
    if not timer:
        raise CheckError("found no libtessera_bench_timer.so beside "
                         f"'{options.program}'; give --program")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from python.problem import Unsupported
    from python.torch_inductor import Peer
    peer, agree = Peer(), True
    print(f"{'row':24} {'entry':>9} {'in Python':>9} {'of it call':>10} "
          f"{'ratio':>7}  {'95 % interval':16} {'allowed':>7}")
    for row in map(row_of, options.rows or ROWS):
        try:
            result = compare(peer, timer, row, options.rounds,
                             options.milliseconds)
        except Unsupported as error:
            raise CheckError(f"{row[0]}: {error}") from error
        agree = agree and result.verdict == "agree"
        interval = f"{ratio_text(result.low)} to {ratio_text(result.high)}"
        print(f"{row[0] + f' {row[1]}x{row[2]}':24} "
              f"{time_text(result.ours):>9} {time_text(result.theirs):>9} "
              f"{time_text(result.overhead):>10} "
              f"{ratio_text(result.ratio):>7}  {interval:16} "
              f"{percent(result.allowed):>7}  {result.verdict}", flush=True)
    return 0 if agree else 1


# --- Finding that environment -----------------------------------------------


def peer_entry():
    """The entry of torch_inductor in peers.json."""
    folder = os.environ.get("TESSERA_PEERS_DIR") or \
        pathlib.Path.home() / ".local/share/tessera/peers"
    file = pathlib.Path(folder) / "peers.json"
    try:
        entries = json.loads(file.read_text())["peers"]
    except (OSError, ValueError, KeyError) as error:
        raise CheckError(f"{file} cannot be read; run ./dev peers "
                         "torch_inductor") from error
    for entry in entries:
        if entry.get("name") == "torch_inductor" and entry.get("command"):
            return entry
    raise CheckError(f"{file} has no torch_inductor; run ./dev peers "
                     "torch_inductor")


def default_program():
    for place in (BENCH.parent / "build/release/bin/tessera",
                  BENCH.parent.parent.parent / "bin/tessera"):
        if place.exists():
            return place
    return "tessera"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/inductor-check",
        description="Compares two ways to time TorchInductor's code.",
        epilog="exit status: 0 when they agree in every row, 1 when not, 2 "
        "when nothing could be compared")
    parser.add_argument("rows", nargs="*", metavar="OPERATOR:ROWSxCOLS",
                        help="default: " + " ".join(ROWS))
    parser.add_argument("--program", type=pathlib.Path,
                        default=default_program(),
                        help="the built tessera, which has the timer beside it")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--milliseconds", type=float, default=3,
                        help="of a sample")
    options = parser.parse_args(arguments)
    try:
        for text in options.rows:
            row_of(text)
        try:
            import torch  # noqa: F401
        except ImportError as error:
            if os.environ.get("TESSERA_CHECK_PYTHON"):
                raise CheckError(f"no Python module {error.name}") from error
            entry = peer_entry()
            interpreter = entry["command"][0]
            os.environ["TESSERA_CHECK_PYTHON"] = interpreter
            variables = {name: value for name, value in
                         entry.get("environment", {}).items()
                         if "{" not in value}
            os.execve(interpreter,
                      [interpreter, str(BENCH / "inductor-check"),
                       *(sys.argv[1:] if arguments is None else arguments)],
                      {**os.environ, **variables, "OMP_NUM_THREADS": "1"})
        return check(options)
    except (CheckError, OSError) as error:
        print(f"bench/inductor-check: {error}", file=sys.stderr)
        return 2
