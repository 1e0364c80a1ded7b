#===- install_test.py - ./dev peers and the worker of Python peers ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Nothing is downloaded: peers come from this machine's Python, or are missing."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INSTALL = ROOT / "bench/peers/install.py"
WORKER = ROOT / "bench/peers/python/worker.py"


PLUGIN = """// wheels: made-up
// libraries: -I{wheels}/include
#include <made_up.h>
extern "C" const char *tessera_peer_describe(void) {
  return R"({"name": "fake", "version": ")" MADE_UP
         R"(", "boundaries": ["native"]})";
}
"""


def load_install():
    spec = importlib.util.spec_from_file_location("install", INSTALL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(folder, *arguments, script=INSTALL):
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "TESSERA_PEERS_DIR": folder},
        capture_output=True, text=True, timeout=300)


class InstallTest(unittest.TestCase):
    def test_missing_is_no_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            # A Python without site packages has no peer.
            python = pathlib.Path(folder) / "python"
            python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
            python.chmod(0o755)
            done = install(folder, "--system-python", "--python", str(python),
                           "tvm", "numpy")
            self.assertEqual(done.returncode, 0, done.stderr)
            entries = {entry["name"]: entry for entry in json.loads(
                (pathlib.Path(folder) / "peers.json").read_text())["peers"]}
        self.assertEqual(set(entries), {"tvm", "numpy"})
        for name, entry in entries.items():
            self.assertEqual(entry["status"], "missing")
            self.assertIn("No module named", entry["why"])
            self.assertIn(name, done.stdout)

    def test_library_of_the_interpreter(self):
        # A plug-in whose library comes in a wheel takes what stands in the
        # prefix of the system's Python.
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            peers, prefix = folder / "bench/peers", folder / "prefix"
            (peers / "native").mkdir(parents=True)
            script = peers / "install.py"
            shutil.copy(INSTALL, script)
            (peers / "native/fake.cpp").write_text(PLUGIN)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip",
                            str(prefix)], check=True)

            def entry():
                done = install(str(folder / "made"), "--system-python",
                               "--python", str(prefix / "bin/python"), "fake",
                               script=script)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads((folder / "made/peers.json").read_text())[
                    "peers"][0]

            missing = entry()
            self.assertEqual(missing["status"], "missing")
            self.assertIn("made_up.h", missing["why"])
            self.assertIn(f"the wheels made-up have, in {prefix}",
                          missing["why"])
            (prefix / "include").mkdir(exist_ok=True)
            (prefix / "include/made_up.h").write_text(
                '#define MADE_UP "7.1"\n')
            found = entry()
            self.assertEqual((found["status"], found.get("version")),
                             ("ok", "7.1"), found["why"])
            self.assertEqual(found["command"][-1],
                             "{peers}/native/fake.so")

    def test_no_compiler_for_generated_code(self):
        module = load_install()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"PATH": folder}):
            os.environ.pop("CXX", None)
            with self.assertRaises(module.Missing) as caught:
                module.compiler_for(sys.executable)
        self.assertIn("found no C++ compiler", str(caught.exception))

    def test_system_installs_no_package(self):
        module = load_install()
        with mock.patch.object(module, "missing_packages",
                               return_value=["libmade-up"]):
            with self.assertRaises(module.Missing) as caught:
                module.install_packages(["libmade-up"], None, None,
                                        system=True)
        self.assertEqual(str(caught.exception), "found no packages libmade-up")

    def test_heads(self):
        module = load_install()
        sources = module.native_sources()
        for name in ("mkl", "onednn3"):
            self.assertTrue(module.head_words(sources[name], "wheels"))
            self.assertIn("-L{wheels}/lib",
                          module.head_words(sources[name], "libraries"))

    def test_list_and_remove(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "peers.json"
            file.write_text(json.dumps({"peers": [
                {"name": "numpy", "status": "ok", "version": "1.2.3"}]}))
            listed = install(folder, "--list")
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertRegex(listed.stdout, r"numpy +ok +1\.2\.3")
            self.assertRegex(listed.stdout, r"jax +not installed")
            self.assertEqual(install(folder, "--remove").returncode, 0)
            self.assertEqual(json.loads(file.read_text()), {"peers": []})

    def test_unknown_peer(self):
        with tempfile.TemporaryDirectory() as folder:
            done = install(folder, "nobody")
            self.assertEqual(os.listdir(folder), [])
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown peer 'nobody'", done.stderr)


class WorkerTest(unittest.TestCase):
    def ask(self, *lines):
        done = subprocess.run(
            [sys.executable, "-S", str(WORKER), "no_such_peer"],
            input="\n".join(lines) + "\n", capture_output=True, text=True,
            timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_failures_are_replies(self):
        replies = self.ask('{"do": "describe"}', "no json", "[1]",
                           '{"do": "dance"}', '{"do": "run"}',
                           '{"do": "time", "samples": "many"}')
        self.assertEqual([reply["status"] for reply in replies],
                         ["failed"] * 6)
        self.assertIn("No module named", replies[0]["why"])
        self.assertIn("no JSON object", replies[2]["why"])
        self.assertIn("unknown request 'dance'", replies[3]["why"])
        self.assertIn("nothing is prepared", replies[4]["why"])

    def test_quit(self):
        self.assertEqual(self.ask('{"do": "release"}', '{"do": "quit"}',
                                  '{"do": "describe"}'),
                         [{"status": "ok"}] * 2)


if __name__ == "__main__":
    unittest.main()
