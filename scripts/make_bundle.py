#!/usr/bin/env python3
#===- make_bundle.py - A relocatable archive of the tools -------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Packs the tools of a built tree with every shared library they need.

    make_bundle.py --build DIR (--output FILE.tar.xz | --directory DIR)
                   [--program FILE]... [--max-megabytes N]

The archive unpacks to one folder, tessera/, that runs from anywhere on an
x86-64 Linux whose C library is at least as new as the one named in its BUNDLE
file: bin/ (tessera, and each --program), lib/, include/ and share/. It needs no
LLVM, no MLIR and no environment variable. --directory makes the folder and does
not pack it.

Exit status 0, or 1 with a message: a library that is not found, an archive above
--max-megabytes (default 60), a program of the bundle that does not start.
"""

import argparse
import concurrent.futures
import io
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Part of the C library: always the machine's own.
OF_THE_SYSTEM = re.compile(
    r"^(ld-linux.*|linux-vdso|libc|libm|libdl|librt|libpthread|libresolv|"
    r"libutil)\.so")

JSON_HEADERS = pathlib.Path("/usr/include/nlohmann")

# A library above this many bytes is compressed apart from its neighbours, so
# that large ones are compressed at the same time.
LARGE = 8 << 20


class BundleError(Exception):
    pass


def output_of(command, **options):
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        raise BundleError(f"{' '.join(map(str, command))}: exit status "
                          f"{result.returncode}\n{result.stdout}")
    return result.stdout


def needed_libraries(binary):
    """What the loader would load for `binary`: name to path."""
    found = {}
    for line in output_of(["ldd", binary]).splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow or OF_THE_SYSTEM.match(name):
            continue
        path = rest.split(" (")[0]
        if path == "not found":
            raise BundleError(f"{binary} needs {name}, which is not found")
        found[name] = pathlib.Path(path).resolve()
    return found


def glibc_version(binaries):
    """The newest version of the C library's symbols that the files use."""
    newest = (0, 0)
    for binary in binaries:
        for match in re.findall(r"\(GLIBC_([0-9.]+)\)",
                                output_of(["objdump", "-T", binary])):
            newest = max(newest, tuple(map(int, match.split("."))))
    return ".".join(map(str, newest))


def revision():
    try:
        return output_of(["git", "-C", ROOT, "describe", "--always",
                          "--dirty"]).strip()
    except (BundleError, FileNotFoundError):
        return "unknown"


def stage(build, programs, folder):
    output_of(["cmake", "--install", build, "--prefix", folder])
    for program in programs:
        shutil.copy2(program, folder / "bin")
    for data in ("examples", "bench/suites", "bench/peers"):
        source = ROOT / data
        if source.is_dir():
            shutil.copytree(source, folder / "share/tessera" / data,
                            ignore=shutil.ignore_patterns("__pycache__"),
                            dirs_exist_ok=True)
    # For plug-ins of peers whose library the other machine has.
    shutil.copytree(JSON_HEADERS, folder /
                    "share/tessera/bench/peers/native/include/nlohmann")

    libraries = folder / "lib"
    # Debian installs below lib/x86_64-linux-gnu only when asked to.
    libraries.mkdir(exist_ok=True)
    binaries = [path for path in (folder / "bin").iterdir()]
    own = {path.name for path in libraries.glob("lib*.so*")}
    for binary in binaries:
        for name, path in needed_libraries(binary).items():
            if name not in own:
                shutil.copyfile(path, libraries / name)
                own.add(name)
    shared = [path for path in libraries.glob("lib*.so*")
              if not path.is_symlink()]
    for path in binaries:
        output_of(["patchelf", "--set-rpath", "$ORIGIN/../lib", path])
    for path in shared:
        path.chmod(0o755)
        output_of(["patchelf", "--set-rpath", "$ORIGIN", path])
    for path in binaries + shared:
        output_of(["strip", "--strip-unneeded", path])

    (folder / "BUNDLE").write_text(
        f"Tessera {revision()}, x86-64 Linux\n"
        f"needs a C library of at least glibc {glibc_version(binaries + shared)}"
        "\nstart bin/tessera; nothing has to be installed or set\n")


def check(folder):
    """The tool starts, and loads nothing from outside but the C library."""
    for binary in sorted((folder / "bin").iterdir()):
        for name, path in needed_libraries(binary).items():
            if folder.resolve() not in path.parents:
                raise BundleError(f"{binary.name} would load {name} from "
                                  f"{path}, outside the bundle")
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    output_of([folder / "bin/tessera", "run", "softmax", "--dims",
               "rows=3,cols=5", "--verify"], env=environment)


def tar_of(members):
    """A tar without its end, so that several can follow one another."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, name in members:
            def settle(info):
                info.mtime = 0
                info.uid = info.gid = 0
                info.uname = info.gname = "root"
                return info
            tar.add(path, name, recursive=False, filter=settle)
        length = tar.offset
    return buffer.getvalue()[:length]


def pack(folder, archive):
    """Writes the archive as xz streams one after another, which every xz reads
    as one. Large files are compressed side by side."""
    small, groups = [], []
    for path in sorted(folder.rglob("*")):
        member = (path, "tessera/" + str(path.relative_to(folder)))
        if path.is_file() and not path.is_symlink() and \
                path.stat().st_size > LARGE:
            groups.append([member])
        else:
            small.append(member)
    groups.insert(0, small)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        streams = pool.map(
            lambda group: lzma.compress(tar_of(group), preset=6), groups)
        temporary = archive.with_name(archive.name + ".part")
        with open(temporary, "wb") as file:
            for stream in streams:
                file.write(stream)
            file.write(lzma.compress(bytes(1024)))
        temporary.replace(archive)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--output", type=pathlib.Path)
    target.add_argument("--directory", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, action="append",
                        default=[], help="another program to put into bin/")
    parser.add_argument("--max-megabytes", type=float, default=60)
    arguments = parser.parse_args()
    try:
        if arguments.directory:
            if arguments.directory.exists():
                raise BundleError(f"{arguments.directory} exists already")
            stage(arguments.build, arguments.program, arguments.directory)
            check(arguments.directory)
            print(f"{arguments.directory}: ready")
            return 0
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "tessera"
            print("collecting", flush=True)
            stage(arguments.build, arguments.program, folder)
            check(folder)
            print("compressing (minutes)", flush=True)
            arguments.output.parent.mkdir(parents=True, exist_ok=True)
            pack(folder, arguments.output)
        megabytes = arguments.output.stat().st_size / 1e6
        if megabytes > arguments.max_megabytes:
            raise BundleError(f"{arguments.output} has {megabytes:.1f} MB, "
                              f"expected at most {arguments.max_megabytes:g}")
        print(f"{arguments.output}: {megabytes:.1f} MB")
    except (BundleError, OSError) as error:
        print(f"make_bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
