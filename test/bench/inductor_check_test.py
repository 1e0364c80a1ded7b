#===- inductor_check_test.py - The verdict of bench/inductor-check ------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import synthetic  # noqa: F401  (finds the package)
from analysis import inductor_check
from analysis.inductor_check import Agreement, CheckError, row_of

HAS_TORCH = importlib.util.find_spec("torch") is not None


class Verdicts(unittest.TestCase):
    def verdict(self, theirs, overhead=200.0):
        ours = [1000.0 + number % 5 for number in range(20)]
        return Agreement("softmax", ours, theirs, overhead)

    def test_agree(self):
        found = self.verdict([1204.0 + number % 4 for number in range(20)])
        self.assertEqual(found.verdict, "agree")
        self.assertAlmostEqual(found.ratio, 1.0035, places=2)

    def test_differ(self):
        for time in (1290.0, 1110.0):
            found = self.verdict([time + number % 4 for number in range(20)])
            self.assertEqual(found.verdict, "DIFFER")

    def test_the_call_counts_when_it_is_not_subtracted(self):
        found = self.verdict([1204.0] * 20, overhead=0.0)
        self.assertEqual(found.verdict, "DIFFER")

    def test_noise_is_no_agreement(self):
        found = self.verdict([900.0, 1600.0] * 10)
        self.assertEqual(found.verdict, "undecided, too noisy")

    def test_rows(self):
        self.assertEqual(row_of("softmax:129x768"), ("softmax", 129, 768))
        for text in ("softmax", "softmax:129", ":1x2", "softmax:ax2"):
            with self.assertRaises(CheckError):
                row_of(text)


class Main(unittest.TestCase):
    def run_main(self, *arguments):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            status = inductor_check.main(list(arguments))
        return status, err.getvalue()

    def test_bad_row(self):
        status, err = self.run_main("softmax")
        self.assertEqual(status, 2)
        self.assertIn("expected OPERATOR:ROWSxCOLS", err)

    @unittest.skipIf(HAS_TORCH, "PyTorch is here")
    def test_without_the_peer(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(
                os.environ, {"TESSERA_PEERS_DIR": folder}):
            os.environ.pop("TESSERA_CHECK_PYTHON", None)
            status, err = self.run_main()
            self.assertEqual(status, 2)
            self.assertIn("run ./dev peers torch_inductor", err)
            pathlib.Path(folder, "peers.json").write_text(json.dumps(
                {"peers": [{"name": "torch_inductor", "status": "missing"}]}))
            status, err = self.run_main()
            self.assertEqual(status, 2)
            self.assertIn("has no torch_inductor", err)


if __name__ == "__main__":
    unittest.main()
