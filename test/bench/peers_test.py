#===- peers_test.py - What peers are asked to compute --------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Graphs, settings and results of Python peers, without any peer."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/peers"))

from python import onnx_models  # noqa: E402
from python.problem import (ACTIVATIONS, CopiedOutputs,  # noqa: E402
                            Unsupported, choice, settings_of)

ATTENTION = {"b": 1, "hq": 4, "hkv": 2, "q": 3, "k": 5, "d": 8, "dv": 8}
ALL = {"attention", "skip_rms_norm"}


def request(operator, dims, inputs, outputs, **settings):
    arrays = [{"name": name, "output": False} for name in inputs.split()]
    arrays += [{"name": name, "output": True} for name in outputs.split()]
    return {"operator": operator, "dims": dims, "settings": settings,
            "dtype": "f32", "arrays": arrays}


class Settings(unittest.TestCase):
    def test_extents_are_settings_too(self):
        # k of a top_k is an extent or a setting.
        for made in (request("top_k", {"k": 7}, "x", "values indices"),
                     request("top_k", {}, "x", "values indices", k=7)):
            self.assertEqual(settings_of(made)["k"], 7)

    def test_choice(self):
        self.assertEqual(choice({}, "activation", ACTIVATIONS), "none")
        self.assertEqual(choice({"activation": 2}, "activation", ACTIVATIONS),
                         "gelu")
        self.assertEqual(choice({"activation": "silu"}, "activation",
                                ACTIVATIONS), "silu")
        with self.assertRaises(Unsupported):
            choice({"activation": "elu"}, "activation", ACTIVATIONS)


class Results(unittest.TestCase):
    def test_a_result_that_is_missing_is_no_result(self):
        stored = []
        problem = CopiedOutputs(lambda: (1,), ["values", "indices"],
                                lambda result, output: stored.append(output))
        problem.run()
        with self.assertRaises(ValueError):
            problem.finish()


class Graphs(unittest.TestCase):
    def check(self, made, fused=ALL):
        """Every name is assigned once, before its use; the outputs are."""
        text = onnx_models.body(made, fused)
        known = {array["name"] for array in made["arrays"]
                 if not array["output"]}
        for statement in re.sub(r"\n\s+(?=[^=]*\}>)", " ", text).split("\n"):
            if not statement.strip():
                continue
            names, _, call = statement.partition(" = ")
            used = re.search(r"\(([^()]*)\)\s*$", call)
            self.assertTrue(used, statement)
            for name in filter(None, re.split(r",\s*", used.group(1))):
                self.assertIn(name, known, text)
            for name in re.split(r",\s*", names.strip()):
                self.assertNotIn(name, known, text)
                known.add(name)
        for array in made["arrays"]:
            self.assertIn(array["name"], known, text)
        return text

    def test_rank(self):
        dims = {"rows": 5, "cols": 9}
        text = self.check(request("sort", dims, "x", "values indices"))
        self.assertIn("{9}", text)
        self.assertIn("largest = 0", text)
        text = self.check(request("sort", dims, "x", "values indices",
                                  descending=1))
        self.assertIn("largest = 1", text)
        text = self.check(request("top_k", dims, "x", "values indices", k=3))
        self.assertIn("{3}", text)
        self.assertIn("largest = 1", text)

    def test_epilogues(self):
        dims = {"m": 3, "n": 4, "k": 5}
        for inputs in ("a b", "a b bias", "a b bias residual"):
            for activation in ACTIVATIONS:
                for scale in (1, 0.5):
                    self.check(request("gemm_epilogue", dims, inputs, "c",
                                       activation=activation, scale=scale))
        self.check(request("gemm_affine_leaky", dims, "a b", "c"))
        with self.assertRaises(Unsupported):
            self.check(request("gemm_affine_leaky", dims, "a b", "c",
                               slope=2))

    def test_attention(self):
        text = self.check(request("attention", ATTENTION, "q k v", "o"))
        self.assertIn("is_causal = 0", text)
        # Aligned with the last key, where the flag aligns with the first.
        text = self.check(request("attention", ATTENTION, "q k v", "o",
                                  causal=1))
        self.assertIn("Trilu", text)
        self.assertIn("{2}", text)
        # The last query sees every key.
        text = self.check(request("attention", {**ATTENTION, "q": 1}, "q k v",
                                  "o", causal=1))
        self.assertNotIn("Trilu", text)
        self.assertIn("is_causal = 0", text)
        text = self.check(request("attention", {**ATTENTION, "q": 5}, "q k v",
                                  "o", causal=1))
        self.assertIn("is_causal = 1", text)
        with self.assertRaises(Unsupported):
            self.check(request("attention", ATTENTION, "q k v mask", "o",
                               causal=1))

    def test_attention_of_plain_operators(self):
        text = self.check(request("attention", ATTENTION, "q k v", "o"),
                          fused=())
        self.assertNotIn("Attention", text)
        with self.assertRaises(Unsupported):
            self.check(request("attention", ATTENTION, "q k v mask", "o"),
                       fused=())


if __name__ == "__main__":
    unittest.main()
