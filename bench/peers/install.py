#!/usr/bin/env python3
#===- install.py - Installs the peers of the benchmarks ---------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Installs the peers that `tessera bench` measures beside Tessera.

Python peers get virtual environments, native ones are compiled from
bench/peers/native/*.cpp; all of it goes to TESSERA_PEERS_DIR (default
~/.local/share/tessera/peers). A peer that cannot be had is listed as missing,
with the reason; that is no failure. The last thing printed is the table of all
peers, which peers.json of that folder has for `tessera bench`.

--system-python asks no registry: a peer is there when the interpreter has its
modules already, and a native one when this machine has its library and headers.
That works inside a bundle too (share/tessera/bench/peers/install.py).

Exit status: 0, also when peers are missing; 2 for wrong arguments.
"""

import argparse
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# The allocator keeps what it has: a library that allocates its results does not
# pay for fresh pages in each call.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "2000000000",
               "MALLOC_TOP_PAD_": "67108864"}

# Environments: packages by name of the environment, and the GB they need.
ENVIRONMENTS = {
    # TorchInductor is read from its generated code, so its version is one that
    # python/torch_inductor.py knows.
    "torch": (["torch==2.11.*", "numpy"], 8),
    "onnxruntime": (["onnxruntime", "onnx", "numpy"], 1),
    "openvino": (["openvino", "onnx", "numpy"], 1),
    "jax": (["jax", "numpy"], 1),
    "iree": (["iree-base-compiler", "iree-base-runtime", "jax", "numpy"], 1),
    "halide": (["halide", "numpy"], 1),
    "tvm": (["apache-tvm", "onnx", "numpy"], 2),
    "mlx": (["mlx", "mlx-cpu", "numpy"], 1),
    "numpy": (["numpy"], 1),
}

# Python peers: the environment of each, and variables for its worker.
PYTHON_PEERS = {
    "torch_eager": ("torch", {}),
    "torch_inductor": ("torch", {"TORCHINDUCTOR_COMPILE_THREADS": "1"}),
    "torch_cuda": ("torch", {}),
    "torch_cuda_inductor": ("torch", {}),
    "onnxruntime": ("onnxruntime", {}),
    "openvino": ("openvino", {}),
    "jax": ("jax", {"JAX_PLATFORMS": "cpu"}),
    "iree": ("iree", {"JAX_PLATFORMS": "cpu"}),
    "halide": ("halide", {}),
    "tvm": ("tvm", {}),
    "mlx": ("mlx", {}),
    "numpy": ("numpy", {}),
}

# What a plug-in's wheels may take, in GB.
WHEELS_GIGABYTES = 3

# Peers that compile C++ while they run, with a compiler of this machine.
COMPILING = {"torch_inductor"}

INSTALL_SECONDS = 3600
DESCRIBE_SECONDS = 180


class Missing(Exception):
    """Why a peer is not there."""


def peers_folder():
    chosen = os.environ.get("TESSERA_PEERS_DIR")
    if chosen:
        return pathlib.Path(chosen).absolute()
    return pathlib.Path.home() / ".local/share/tessera/peers"


def native_sources():
    return {file.stem: file
            for file in sorted((HERE / "native").glob("*.cpp"))}


class Progress:
    """What is being done and for how long; one line that is rewritten on a
    terminal, a line at the start and every half minute elsewhere."""

    def __init__(self, title):
        self.title, self.start = title, time.monotonic()
        self.shown, self.last = self.start, ""
        self.terminal = sys.stdout.isatty()

    def show(self, what):
        now = time.monotonic()
        seconds = int(now - self.start)
        if self.terminal:
            width = max(shutil.get_terminal_size().columns - 1, 20)
            line = f"{self.title}: {what} ({seconds} s)"[:width]
            print(f"\r\033[K{line}", end="", flush=True)
        elif what != self.last or now - self.shown > 30:
            self.shown, self.last = now, what
            print(f"{self.title}: {what} ({seconds} s)", flush=True)

    def done(self, text):
        start = "\r\033[K" if self.terminal else ""
        seconds = int(time.monotonic() - self.start)
        print(f"{start}{self.title}: {text} ({seconds} s)", flush=True)


def run(command, log, progress, what, seconds=INSTALL_SECONDS, **options):
    """Runs a command with its output in `log`. Raises Missing with the line
    that says most when it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    offset = log.stat().st_size if log.exists() else 0
    deadline = time.monotonic() + seconds
    progress.show(what)
    with open(log, "a", encoding="utf-8") as stream:
        try:
            process = subprocess.Popen([str(word) for word in command],
                                       stdin=subprocess.DEVNULL, stdout=stream,
                                       stderr=subprocess.STDOUT, **options)
        except OSError as error:
            raise Missing(f"{command[0]}: {error.strerror}") from error
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise Missing(f"{what} took more than {seconds} s")
                time.sleep(0.2)
                progress.show(what)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as stream:
            stream.seek(offset)
            lines = [line.strip() for line in stream if line.strip()]
        telling = [line for line in lines
                   if re.search(r"\berror\b|^E: |No matching", line, re.I)]
        # A compiler's first error is the cause of the others.
        first = [line for line in lines
                 if re.search(r"\berror: |: cannot find ", line)]
        why = (first[:1] or telling or lines or ["no output"])[-1]
        raise Missing(f"{what} failed: {why[:300]}; see {log}")


# --- Python peers -----------------------------------------------------------

class Environments:
    """Makes each virtual environment once; its failure is the failure of all
    peers in it. With `system`, `python` is the environment of all."""

    def __init__(self, folder, python, system):
        self.folder, self.python, self.system = folder, python, system
        self.failures = {}
        self.made = {}

    def interpreter(self, name, progress, packages=None):
        if self.system:
            return self.python
        if name in self.failures:
            raise Missing(self.failures[name])
        if name not in self.made:
            try:
                self.made[name] = self.make(name, packages, progress)
            except Missing as error:
                self.failures[name] = str(error)
                raise
        return self.made[name]

    def make(self, name, packages, progress):
        gigabytes = WHEELS_GIGABYTES
        if not packages:
            packages, gigabytes = ENVIRONMENTS[name]
        place = self.folder / name
        log = self.folder / "logs" / f"{name}.log"
        if log.exists():
            log.unlink()
        interpreter = place / "bin/python"
        free = shutil.disk_usage(self.folder).free / 1e9
        if not interpreter.exists():
            if free < gigabytes:
                raise Missing(f"needs {gigabytes} GB in {self.folder}, found "
                              f"{free:.1f} GB")
            run([self.python, "-m", "venv", place], log, progress,
                "making the environment")
        run([interpreter, "-m", "pip", "install", "--progress-bar", "off",
             *packages], log, progress, f"installing {' '.join(packages)}")
        return str(interpreter)

    def prefix(self, name, wheels, progress):
        """The folder that has include/ and lib/ of the wheels."""
        interpreter = self.interpreter(name, progress, wheels)
        return ask_python(interpreter, "import sys; print(sys.prefix)")


def ask_python(interpreter, program):
    try:
        return subprocess.run([interpreter, "-c", program], text=True,
                              capture_output=True, check=True,
                              timeout=DESCRIBE_SECONDS).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"{interpreter}: {error}") from error


def compiler_for(interpreter):
    """A C++ compiler that can build extensions of this Python."""
    include = ask_python(interpreter,
                         "import sysconfig; print(sysconfig.get_path('include'))")
    reasons = []
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++",
                              "clang++-19")):
        compiler = shutil.which(name)
        if not compiler:
            continue
        tried = subprocess.run(
            [compiler, "-x", "c++", "-fopenmp", "-fsyntax-only",
             f"-I{include}", "-"], input="#include <Python.h>\n"
            "#include <omp.h>\n#include <vector>\n", text=True,
            capture_output=True)
        if tried.returncode == 0:
            return compiler
        errors = [line for line in tried.stderr.splitlines()
                  if "error" in line]
        reasons.append(f"{name}: {(errors or ['fails'])[0][:200]}")
    raise Missing("found no C++ compiler for code that it generates, expected "
                  "g++ or clang++ with Python.h and omp.h"
                  + "".join(f"; {reason}" for reason in reasons))


def python_entry(name, interpreter):
    variables = {"TESSERA_PROGRAM": "{tessera}", "PYTHONUNBUFFERED": "1",
                 **KEEP_MEMORY, **PYTHON_PEERS[name][1]}
    return {"command": [interpreter, "{bench}/peers/python/worker.py", name],
            "environment": variables}


def ask_worker(command, variables):
    """The worker's description of itself."""
    read, write = os.pipe()
    environment = {**os.environ, **variables,
                   "TESSERA_BENCH_REPLY": str(write)}
    worker = subprocess.Popen(command, stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, pass_fds=[write],
                              env=environment)
    os.close(write)
    data = b""
    try:
        worker.stdin.write(b'{"do":"describe"}\n{"do":"quit"}\n')
        worker.stdin.flush()
        deadline = time.monotonic() + DESCRIBE_SECONDS
        while b"\n" not in data:
            ready, _, _ = select.select([read], [], [],
                                        max(deadline - time.monotonic(), 0))
            if not ready:
                raise Missing("gave no description within "
                              f"{DESCRIBE_SECONDS} s")
            chunk = os.read(read, 65536)
            if not chunk:
                raise Missing("ended without a description, status "
                              f"{worker.wait()}")
            data += chunk
        return json.loads(data.split(b"\n")[0])
    except (BrokenPipeError, ValueError) as error:
        raise Missing(f"gave no description: {error}") from error
    finally:
        os.close(read)
        worker.kill()
        worker.wait()


def install_python(name, environments, progress):
    interpreter = environments.interpreter(PYTHON_PEERS[name][0], progress)
    entry = python_entry(name, interpreter)
    if name in COMPILING:
        entry["environment"]["CXX"] = compiler_for(interpreter)
    progress.show("asking it for its version")
    command = [word.replace("{bench}", str(HERE.parent))
               for word in entry["command"]]
    variables = {key: value for key, value in entry["environment"].items()
                 if "{" not in value}
    return entry, ask_worker(command, variables)


# --- Native peers -----------------------------------------------------------

def head_words(source, key):
    """The words after "// key:" in the head of a plug-in's source."""
    words = []
    with open(source, encoding="utf-8") as stream:
        for line in stream:
            if not line.startswith("//") and line.strip():
                break
            found = re.match(rf"//\s*{key}:\s*(.*)", line)
            if found:
                words += found.group(1).split()
    return words


def missing_packages(packages):
    if not shutil.which("dpkg"):
        return []
    missing = []
    for package in packages:
        status = subprocess.run(["dpkg", "-s", package], text=True,
                                capture_output=True).stdout
        if not re.search(r"^Status: .* installed$", status, re.M):
            missing.append(package)
    return missing


def install_packages(packages, log, progress, system):
    missing = missing_packages(packages)
    if not missing:
        return
    if system:
        raise Missing("found no packages " + " ".join(missing))
    if os.geteuid() != 0:
        raise Missing("needs packages; as root: apt-get install "
                      + " ".join(missing))
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends",
               "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300",
               *missing]
    what = f"installing {' '.join(missing)}"
    try:
        run(install, log, progress, what, env=environment)
    except Missing:
        run(["apt-get", "update"], log, progress, "updating package lists",
            env=environment)
        run(install, log, progress, what, env=environment)


DESCRIBE_PLUGIN = """
import ctypes, sys
peer = ctypes.CDLL(sys.argv[1])
peer.tessera_peer_describe.restype = ctypes.c_char_p
sys.stdout.write(peer.tessera_peer_describe().decode())
"""


def core_variables(version):
    """For an OpenBLAS that does not know the processor and takes the oldest
    core it has: the newest core whose instructions are there."""
    old = ("Prescott", "Core2", "Penryn", "Dunnington", "Nehalem", "Atom",
           "Opteron", "Barcelona", "Bobcat")
    if not any(core in version for core in old):
        return {}
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return {}
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= set(flags):
        return {"OPENBLAS_CORETYPE": "SkylakeX"}
    return {"OPENBLAS_CORETYPE": "Haswell"} if "avx2" in flags else {}


def describe_plugin(library, variables):
    try:
        described = subprocess.run(
            [sys.executable, "-c", DESCRIBE_PLUGIN, library],
            capture_output=True, text=True, timeout=DESCRIBE_SECONDS,
            env={**os.environ, **variables})
        return json.loads(described.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise Missing(f"gave no description: {error}") from error


def install_native(name, source, folder, environments, progress):
    wheels = head_words(source, "wheels")
    prefix = environments.prefix(name, wheels, progress) if wheels else ""
    log = folder / "logs" / f"{name}.log"
    if log.exists() and not wheels:
        log.unlink()
    library = folder / "native" / f"{name}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    install_packages(head_words(source, "packages"), log, progress,
                     environments.system)
    compiler = (shutil.which("clang++-19") or shutil.which("clang++") or
                shutil.which("g++"))
    if not compiler:
        raise Missing("found no C++ compiler")
    libraries = [word.replace("{wheels}", prefix) for word in
                 (*head_words(source, "flags"),
                  *head_words(source, "libraries"))]
    # A bundle has the headers of request.h beside it.
    try:
        # The program that loads it may bring an older C++ library.
        run([compiler, "-O2", "-std=c++20", "-shared", "-fPIC",
             "-static-libstdc++", "-static-libgcc",
             f"-I{HERE.parent.parent}", "-isystem", HERE / "native/include",
             source, "-o", library, *libraries], log, progress, "compiling")
    except Missing as error:
        if not wheels:
            raise
        raise Missing(f"{error}; needs what the wheels {' '.join(wheels)} "
                      f"have, in {prefix}") from error
    progress.show("asking it for its version")
    description = describe_plugin(library, {})
    variables = core_variables(description.get("version", "")) \
        if "openblas" in name else {}
    if variables:
        description = describe_plugin(library, variables)
    entry = {"command": ["{tessera}", "bench-worker", "--plugin",
                         f"{{peers}}/native/{name}.so"],
             "environment": variables}
    description.setdefault("status", "ok")
    return entry, description


# --- peers.json and the table -----------------------------------------------

def read_peers(folder):
    file = folder / "peers.json"
    try:
        return {entry["name"]: entry
                for entry in json.loads(file.read_text())["peers"]}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        print(f"{file} is malformed and written anew", file=sys.stderr)
        return {}


def write_peers(folder, entries):
    folder.mkdir(parents=True, exist_ok=True)
    order = [*native_sources(), *PYTHON_PEERS]
    ordered = sorted(entries.values(), key=lambda entry: (
        order.index(entry["name"]) if entry["name"] in order else len(order),
        entry["name"]))
    file = folder / "peers.json"
    partial = folder / "peers.json.new"
    partial.write_text(json.dumps({"peers": ordered}, indent=1) + "\n")
    partial.replace(file)


def print_table(entries, names):
    rows = []
    for name in names:
        entry = entries.get(name, {"status": "not installed"})
        rows.append((name, entry["status"], entry.get("version", ""),
                     ", ".join(entry.get("boundaries", [])),
                     entry.get("why", "")))
    heads = ("peer", "status", "version", "boundaries", "why")
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(4)]
    print()
    for row in [heads, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join([*cells, row[4]]).rstrip())


def install(name, folder, environments, progress):
    """The entry of peers.json for one peer; nothing is raised."""
    natives = native_sources()
    entry = {"name": name}
    try:
        if name in natives:
            made, description = install_native(name, natives[name], folder,
                                               environments, progress)
        else:
            made, description = install_python(name, environments, progress)
        if description.get("status") != "ok":
            raise Missing(description.get("why", "gave no description"))
        entry.update(made, status="ok", why="",
                     version=description.get("version", ""),
                     boundaries=description.get("boundaries", []))
    except Missing as error:
        entry.update(status="missing", why=str(error))
    except OSError as error:
        entry.update(status="missing", why=f"{error}")
    return entry


def remove(folder, names, entries):
    for name in names:
        entries.pop(name, None)
        for file in (folder / "native" / f"{name}.so",
                     folder / "logs" / f"{name}.log"):
            file.unlink(missing_ok=True)
    natives = native_sources()
    used = {PYTHON_PEERS[name][0] if name in PYTHON_PEERS else name
            for name in entries}
    for name in (*ENVIRONMENTS, *natives):
        if name not in used and (folder / name / "pyvenv.cfg").exists():
            print(f"removing {folder / name}")
            shutil.rmtree(folder / name)
    write_peers(folder, entries)


def main():
    known = [*native_sources(), *PYTHON_PEERS]
    parser = argparse.ArgumentParser(
        prog="peers", description=__doc__.splitlines()[0],
        epilog="peers: " + ", ".join(known))
    parser.add_argument("names", nargs="*", metavar="PEER",
                        help="only these (default: all)")
    parser.add_argument("--list", action="store_true",
                        help="print what is installed, install nothing")
    parser.add_argument("--remove", action="store_true",
                        help="remove the peers")
    parser.add_argument("--system-python", action="store_true",
                        help="take what this machine has, install nothing")
    parser.add_argument("--python", default=sys.executable,
                        help="interpreter (default: this one)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown peer '{unknown[0]}', expected "
                     + ", ".join(known))
    names = options.names or known
    folder = peers_folder()
    entries = read_peers(folder)
    if options.list:
        print_table(entries, names)
        return 0
    if options.remove:
        remove(folder, names, entries)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    environments = Environments(folder, options.python, options.system_python)
    print(f"{len(names)} peers, in {folder}")
    for number, name in enumerate(names, 1):
        progress = Progress(f"[{number}/{len(names)}] {name}")
        entries[name] = install(name, folder, environments, progress)
        text = entries[name]["version"] if entries[name]["status"] == "ok" \
            else f"missing: {entries[name]['why']}"
        progress.done(text)
        write_peers(folder, entries)
    print_table(entries, known)
    return 0


if __name__ == "__main__":
    sys.exit(main())
