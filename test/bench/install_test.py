#===- install_test.py - ./dev peers and the worker of Python peers ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Nothing is downloaded: peers come from this machine's Python, or are missing."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INSTALL = ROOT / "bench/peers/install.py"
WORKER = ROOT / "bench/peers/python/worker.py"


def install(folder, *arguments):
    return subprocess.run(
        [sys.executable, str(INSTALL), *arguments],
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
