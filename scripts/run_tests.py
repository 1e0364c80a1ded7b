#!/usr/bin/env python3
#===- run_tests.py - Runs every suite and adds up the totals ----------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Runs the suites of built trees and prints their totals.

    run_tests.py [--build DIR] [--core NAME=DIR]... [--suite NAME]... [-j N]

Suites: layers (the include check), bench (the Python side of the benchmark),
core and unit (GoogleTest programs of --build), lit (text tests), NAME for every
--core tree (its tessera_unit_tests_core, built with a sanitizer), package (an
installed Tessera used by a project outside the tree). On request only: soak (the
long tests of --build, one process each, -j at a time).

The last line is "N passed, N failed, N skipped" over all suites. Exit status 0
when something ran and nothing failed, 1 otherwise.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIT = ["/usr/lib/llvm-19/build/utils/lit/lit.py"]

# Long tests carry one of these in the name of their suite and run only on
# request (./dev soak, ./dev sweep).
ON_REQUEST = "-*Soak*.*:*Sweep*.*"

# LLVM's allocators mark memory as poisoned in their headers, which our code
# compiles with AddressSanitizer, and as good again in their library, which
# Debian compiled without: user poisoning is off.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:strict_string_checks=1:"
                    "detect_stack_use_after_return=1:"
                    "allow_user_poisoning=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=0:second_deadlock_stack=1",
}


class Totals:
    """What a suite reports: counts and one text per failure."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def fail(self, text, count=1):
        self.failed += count
        self.failures.append(text)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures


class Progress:
    """One line per suite; rewritten in place on a terminal where no other suite
    runs beside it, else a line every thirty seconds."""

    lock = threading.Lock()

    def __init__(self, name, alone=True):
        self.name = name
        self.start = self.shown = time.monotonic()
        self.terminal = alone and sys.stdout.isatty()

    def update(self, text):
        now = time.monotonic()
        if now - self.shown < (0.1 if self.terminal else 30):
            return
        self.shown = now
        line = f"  {self.name:<10} {text} ({now - self.start:.0f} s)"
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r\033[K" + line[:width], end="", flush=True)
        else:
            print(line, flush=True)

    def finish(self, totals):
        with self.lock:
            self.print_totals(totals)

    def print_totals(self, totals):
        if self.terminal:
            print("\r\033[K", end="")
        seconds = time.monotonic() - self.start
        mark = "FAIL" if totals.failed else "ok"
        print(f"  {self.name:<10} {mark:<4} {totals.passed} passed, "
              f"{totals.failed} failed, {totals.skipped} skipped "
              f"[{seconds:.1f} s]", flush=True)
        for text in totals.failures[:50]:
            print("    " + text.rstrip().replace("\n", "\n    "))
        if len(totals.failures) > 50:
            print(f"    ... and {len(totals.failures) - 50} more")
        sys.stdout.flush()


def environment():
    result = dict(os.environ)
    # What the user calibrated is none of the tests' business.
    result["TESSERA_CALIBRATION"] = "off"
    for name, value in SANITIZER_OPTIONS.items():
        result[name] = ":".join(filter(None, [value, result.get(name)]))
    # Plans that a user has tuned are no part of what is tested.
    result["TESSERA_PLAN_DIR"] = "off"
    # What is tested is what the compiler makes now.
    result["TESSERA_CACHE_DIR"] = "off"
    result.setdefault("ASAN_SYMBOLIZER_PATH",
                      "/usr/lib/llvm-19/bin/llvm-symbolizer")
    return result


def stream(command, timeout, on_line, extra=None):
    """Runs a command and hands each line of its output to on_line. Returns the
    exit status, or None when it was stopped after `timeout` seconds."""
    env = environment()
    env.update(extra or {})
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", env=env,
        cwd=ROOT, start_new_session=True)
    expired = threading.Event()

    def stop():
        expired.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        status = process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        timer.cancel()
    return None if expired.is_set() else status


class Shard:
    """One run of a GoogleTest program over a part of its tests. The program's
    own lines are followed, so that a crash loses no result."""

    RESULT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([^ :,(]+)")

    def __init__(self):
        self.results = {}
        self.current = None
        self.expected = None
        self.text = []
        self.failed_text = {}
        self.tail = []

    def line(self, text):
        match = re.match(r"^\[=+\] Running (\d+) tests?", text)
        if match:
            self.expected = int(match.group(1))
        if text.startswith("[ RUN "):
            self.current = text.split("] ", 1)[1]
            self.text = []
            return
        match = self.RESULT.match(text) if self.current else None
        if match and match.group(2) == self.current:
            self.results[self.current] = match.group(1)
            if match.group(1) == "FAILED":
                self.failed_text[self.current] = self.text[-60:]
            self.current = None
            self.tail = []
            return
        if self.current:
            self.text.append(text)
        else:
            self.tail.append(text)

    def totals(self, name, status, timeout):
        totals = Totals()
        for test, result in self.results.items():
            if result == "OK":
                totals.passed += 1
            elif result == "SKIPPED":
                totals.skipped += 1
            else:
                totals.fail("\n".join([f"FAILED {test}"] +
                                      self.failed_text[test]))
        how = f"exit status {status}"
        if status is None:
            how = f"stopped after {timeout} s"
        elif status < 0:
            how = f"killed by {signal.Signals(-status).name}"
        if self.current:
            totals.fail("\n".join([f"CRASHED {self.current}: {how}"] +
                                  self.text[-60:]))
        done = len(self.results) + (1 if self.current else 0)
        if self.expected is None:
            totals.fail("\n".join([f"{name} ran no test: {how}"] +
                                  self.tail[-60:]))
        elif done < self.expected:
            totals.fail(f"{self.expected - done} tests did not run: {how}",
                        self.expected - done)
        elif status != 0 and not totals.failed:
            # All tests passed and the process still failed: a leak or a race
            # that a sanitizer reported at exit.
            totals.fail("\n".join([f"{name}: {how} after its last test"] +
                                  self.tail[-100:]))
        return totals


# Tests differ in length: more parts than processes keep all processes busy to
# the end.
PARTS_PER_PROCESS = 4


def run_gtest(progress, program, sources, jobs, timeout):
    """Runs a GoogleTest program in parts, `jobs` processes side by side."""
    shards = 1 if jobs == 1 else jobs * PARTS_PER_PROCESS
    totals = Totals()
    if not program.exists():
        if any(next(folder.rglob("*.cpp"), None) for folder in sources):
            totals.fail(f"{program} is missing, expected it to be built")
        return totals
    runs = [Shard() for _ in range(shards)]
    statuses = [0] * shards

    def work(index):
        def on_line(text):
            runs[index].line(text)
            progress.update(
                f"{sum(len(run.results) for run in runs)} of "
                f"{sum(run.expected or 0 for run in runs)} tests")

        statuses[index] = stream(
            [str(program), f"--gtest_filter={ON_REQUEST}",
             "--gtest_color=no"], timeout, on_line,
            {"GTEST_TOTAL_SHARDS": str(shards),
             "GTEST_SHARD_INDEX": str(index)})

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(shards)))
    for run, status in zip(runs, statuses):
        # With fewer tests than processes one of them has nothing to do.
        if run.expected is None and status == 0 and shards > 1:
            continue
        totals.add(run.totals(program.name, status, timeout))
    return totals


def long_tests(program):
    """The names of the tests that run on request only."""
    listing = subprocess.run(
        [str(program), "--gtest_list_tests", "--gtest_filter=*Soak*.*"],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    suite, names = "", []
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        elif "DISABLED" not in name:
            names.append(suite + name.strip())
    return names


def run_soak(progress, options):
    """Every long test in a process of its own, the slow machines first."""
    program = options.build / "bin/tessera_unit_tests"
    totals = Totals()
    if not program.exists():
        totals.fail(f"{program} is missing, expected it to be built")
        return totals
    names = sorted(long_tests(program), key=lambda name: "interp" not in name)
    names = [name for name in names if options.filter in name]
    finished = []

    def work(name):
        run = Shard()
        start = time.monotonic()
        status = stream([str(program), f"--gtest_filter={name}",
                         "--gtest_color=no"], options.timeout, run.line)
        result = run.totals(program.name, status, options.timeout)
        finished.append(name)
        mark = "FAIL" if result.failed else "ok"
        print(f"  {mark:<4} {name} [{time.monotonic() - start:.0f} s]",
              flush=True)
        progress.update(f"{len(finished)} of {len(names)} tests")
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(work, names):
            totals.add(result)
    return totals


def drawing_python():
    """The first interpreter with what pages are drawn with; this one when
    there is none, so that those tests are skipped with a reason. Debian's
    packages belong to the system's own, which need not be first in PATH."""
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if subprocess.run([python, "-c", "import jinja2, matplotlib"],
                              stderr=subprocess.DEVNULL,
                              check=False).returncode == 0:
                return python
        except OSError:
            continue
    return sys.executable


def run_bench(progress, options):
    """The Python side of the benchmark: audit, comparison, report."""
    run = Shard()

    def on_line(text):
        run.line(text)
        progress.update(f"{len(run.results)} of {run.expected or 0} tests")

    extra = {}
    if options.build:
        extra["TESSERA_BINARY"] = str(options.build / "bin/tessera")
    status = stream([drawing_python(), str(ROOT / "test/bench/run.py")],
                    options.timeout, on_line, extra)
    return run.totals("test/bench/run.py", status, options.timeout)


def run_layers(progress, options):
    totals = Totals()
    for arguments in (["--self-test"], []):
        lines = []
        command = [sys.executable, str(ROOT / "scripts/check_layers.py")]
        status = stream(command + arguments, 120, lines.append)
        if status == 0:
            totals.passed += 1
        else:
            totals.fail("\n".join(lines))
    return totals


def run_lit(progress, options):
    totals = Totals()
    folder = options.build / "test/lit"
    tests = [path for pattern in ("*.mlir", "*.test")
             for path in (ROOT / "test/lit").rglob(pattern)]
    if not tests:
        return totals
    if not (folder / "lit.site.cfg.py").exists():
        totals.fail(f"{folder} is not configured")
        return totals
    with tempfile.TemporaryDirectory() as temporary:
        report = pathlib.Path(temporary) / "lit.xml"
        lines = []

        def on_line(text):
            lines.append(text)
            match = re.search(r"\((\d+) of (\d+)\)$", text)
            if match:
                progress.update(f"{match.group(1)} of {match.group(2)} tests")

        status = stream([sys.executable] + LIT +
                        ["-v", f"-j{options.jobs}",
                         f"--xunit-xml-output={report}", str(folder)],
                        options.timeout, on_line)
        if not report.exists():
            totals.fail("\n".join([f"lit wrote no report, status {status}"] +
                                  lines[-60:]))
            return totals
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            failure = case.find("failure")
            if case.find("skipped") is not None:
                totals.skipped += 1
            elif failure is not None:
                name = f"{case.get('classname')}/{case.get('name')}"
                text = (failure.text or "").splitlines()
                totals.fail("\n".join([f"FAILED {name}"] + text[-60:]))
            else:
                totals.passed += 1
    if status != 0 and not totals.failed:
        totals.fail("\n".join([f"lit: exit status {status}"] + lines[-60:]))
    return totals


def run_package(progress, options):
    """Installs to a fresh prefix, then builds and runs each example project
    with nothing but that prefix."""
    totals = Totals()
    with tempfile.TemporaryDirectory() as temporary:
        prefix = pathlib.Path(temporary) / "prefix"
        project = pathlib.Path(temporary) / "project"
        # A copy, so that nothing can be found by a relative path.
        shutil.copytree(ROOT / "examples/cmake_project", project)
        steps = [
            ("install", ["cmake", "--install", str(options.build), "--prefix",
                         str(prefix)]),
            ("configure", ["cmake", "-S", str(project), "-B",
                           str(project / "build"), "-G", "Ninja",
                           "-DCMAKE_CXX_COMPILER=clang++-19",
                           f"-DCMAKE_PREFIX_PATH={prefix}"]),
            ("build", ["cmake", "--build", str(project / "build")]),
            ("run", [str(project / "build/example")]),
        ]
        tool = prefix / "bin/tessera"
        if (options.build / "bin/tessera").exists():
            steps.append(("installed command", [str(tool), "--help"]))
        for name, command in steps:
            progress.update(name)
            lines = []
            try:
                status = stream(command, options.timeout, lines.append)
            except OSError as error:
                status, lines = 127, [str(error)]
            if status != 0:
                totals.fail("\n".join([f"FAILED {name}: status {status}"] +
                                      lines[-60:]))
                break
            totals.passed += 1
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, help="tree to test")
    parser.add_argument("--core", action="append", default=[],
                        metavar="NAME=DIR",
                        help="a tree whose tessera_unit_tests_core is run")
    parser.add_argument("--suite", action="append", default=[],
                        help="run only this suite (may be repeated)")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=1800,
                        help="seconds after which one suite, or one long test, "
                        "is stopped")
    parser.add_argument("--filter", default="",
                        help="only long tests whose name contains this")
    options = parser.parse_args()

    unit = ROOT / "test/unit"
    # As coreFolders in test/CMakeLists.txt.
    core = [unit / name for name in ("support", "runtime", "target", "oracle",
                                     "math")]
    compiler = [folder for folder in unit.glob("*") if folder not in core]
    processes = max(1, min(options.jobs, 8))
    suites = {"layers": lambda progress: run_layers(progress, options),
              "bench": lambda progress: run_bench(progress, options)}
    if options.build:
        options.build = options.build.resolve()
        binaries = options.build / "bin"
        suites["core"] = lambda progress: run_gtest(
            progress, binaries / "tessera_unit_tests_core", core, 1,
            options.timeout)
        suites["unit"] = lambda progress: run_gtest(
            progress, binaries / "tessera_unit_tests", compiler, processes,
            options.timeout)
        suites["lit"] = lambda progress: run_lit(progress, options)
        suites["package"] = lambda progress: run_package(progress, options)
    for item in options.core:
        name, separator, folder = item.partition("=")
        if not separator:
            parser.error(f"--core: found {item!r}, expected NAME=DIR")
        program = pathlib.Path(folder).resolve() / "bin/tessera_unit_tests_core"
        suites[name] = lambda progress, program=program: run_gtest(
            progress, program, core, 1, options.timeout)
    on_request = set()
    if options.build:
        suites["soak"] = lambda progress: run_soak(progress, options)
        on_request.add("soak")
    for name in options.suite:
        if name not in suites:
            parser.error(f"--suite: found {name!r}, expected one of " +
                         ", ".join(suites))

    totals = Totals()
    chosen = options.suite or [name for name in suites
                               if name not in on_request]

    def run(name, alone=True):
        progress = Progress(name, alone)
        result = suites[name](progress)
        progress.finish(result)
        return result

    # Suites of one process each run side by side, the others by themselves.
    spread = [name for name in chosen if name in ("unit", "lit", "soak")]
    single = [name for name in chosen if name not in spread]
    alone = options.jobs == 1 or len(single) == 1
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: run(name, alone), single))
    for result in results + [run(name) for name in spread]:
        totals.add(result)
    print(f"{totals.passed} passed, {totals.failed} failed, "
          f"{totals.skipped} skipped", flush=True)
    return 1 if totals.failed or not totals.passed else 0


if __name__ == "__main__":
    sys.exit(main())
