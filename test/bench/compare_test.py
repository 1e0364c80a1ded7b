#===- test/bench/compare_test.py - Regressions are told from noise ---------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Verdicts of bench/compare on made-up pairs of runs."""

import contextlib
import copy
import io
import pathlib
import tempfile
import unittest

import synthetic
from analysis import compare as comparer
from analysis.results import Result
from analysis.units import bytes_text, count, percent, ratio_text, time_text

BASE = synthetic.make_document(seed=11, operators=("softmax", "row_sum"),
                               shapes=[(64, 256)], gaps=False,
                               peers=("torch", "onednn"))


def slowed(document, factor, names=None, row=0):
    """A copy in which arms of a row (all, or those named) take longer."""
    document = copy.deepcopy(document)
    for arm in document["rows"][row]["arms"]:
        if arm["status"] == "ok" and (names is None or arm["name"] in names):
            figures = arm["statistics"]
            for field in ("median", "low", "high"):
                figures[field] *= factor
    return document


def changes(before, after):
    found, only_before, only_after = comparer.compare(
        Result("a.json", before), Result("b.json", after))
    return {change.id.split("/")[0]: change for change in found}, \
        only_before, only_after


SUBJECT = ("tessera", "tessera-again")


class Compare(unittest.TestCase):
    def test_same(self):
        found, only_before, only_after = changes(BASE, BASE)
        self.assertEqual({c.verdict for c in found.values()}, {"same"})
        self.assertEqual(found["softmax"].normalized, 1)
        self.assertEqual((only_before, only_after), ([], []))

    def test_slower_and_faster(self):
        found, _, _ = changes(BASE, slowed(BASE, 1.5, SUBJECT))
        self.assertEqual(found["softmax"].verdict, "slower")
        self.assertAlmostEqual(found["softmax"].normalized, 1.5)
        self.assertEqual(found["row_sum"].verdict, "same")
        found, _, _ = changes(BASE, slowed(BASE, 0.5, SUBJECT))
        self.assertEqual(found["softmax"].verdict, "faster")

    def test_a_slower_machine_is_no_regression(self):
        found, _, _ = changes(BASE, slowed(BASE, 1.5))
        self.assertEqual(found["softmax"].verdict, "same")
        self.assertAlmostEqual(found["softmax"].ratio, 1.5)
        self.assertEqual(found["softmax"].source, "2 peers")

    def test_one_unstable_peer_is_no_drift(self):
        alone = synthetic.make_document(seed=13, operators=("softmax",),
                                        shapes=[(64, 256)], gaps=False,
                                        peers=("torch",))
        found, _, _ = changes(alone, slowed(alone, 0.5, ("torch",)))
        self.assertEqual(found["softmax"].verdict, "undecided")
        # The row changed, too: then one witness is better than none.
        found, _, _ = changes(alone, slowed(alone, 1.5, SUBJECT))
        self.assertEqual(found["softmax"].verdict, "slower")
        many = synthetic.make_document(
            seed=14, operators=("softmax",), shapes=[(64, 256)], gaps=False,
            peers=("torch", "onednn", "openblas", "inductor"))
        names = [arm["name"] for arm in many["rows"][0]["arms"]
                 if arm["role"] == "peer" and arm["status"] == "ok"]
        self.assertGreaterEqual(len(names), 3)
        found, _, _ = changes(many, slowed(many, 0.5, names))
        self.assertEqual(found["softmax"].verdict, "slower")

    def test_a_new_version_of_a_peer_says_nothing(self):
        after = slowed(BASE, 1.5, ("torch",))
        after["rows"][0]["arms"][-1]["version"] = "9"
        found, _, _ = changes(BASE, after)
        self.assertEqual(found["softmax"].source, "1 peer")

    def test_the_control_stands_in_for_peers(self):
        alone = synthetic.make_document(seed=12, operators=("softmax",),
                                        shapes=[(64, 256)], gaps=False,
                                        peers=())
        found, _, _ = changes(alone, slowed(alone, 1.5))
        self.assertEqual((found["softmax"].source, found["softmax"].verdict),
                         ("control", "same"))
        # Other code: its time says nothing about the machine.
        after = slowed(alone, 1.5)
        for arm in after["rows"][0]["arms"]:
            arm["identity"]["object"] = "0" * 32
        found, _, _ = changes(alone, after)
        self.assertEqual((found["softmax"].source, found["softmax"].verdict),
                         ("nothing", "slower"))

    def test_within_the_noise(self):
        before = copy.deepcopy(BASE)
        before["rows"][0]["noise"]["p90"] = 0.1
        found, _, _ = changes(before, slowed(BASE, 1.09, SUBJECT))
        self.assertEqual(found["softmax"].verdict, "same")
        self.assertEqual(found["softmax"].noise, 0.1)
        found, _, _ = changes(before, slowed(BASE, 1.11, SUBJECT))
        self.assertEqual(found["softmax"].verdict, "slower")

    def test_broken_and_repaired(self):
        failed = copy.deepcopy(BASE)
        failed["rows"][0]["arms"][0].update(status="failed", why="SIGSEGV")
        found, _, _ = changes(BASE, failed)
        self.assertEqual(found["softmax"].verdict, "broken")
        found, _, _ = changes(failed, BASE)
        self.assertEqual(found["softmax"].verdict, "repaired")
        found, _, _ = changes(failed, failed)
        self.assertEqual(found["softmax"].verdict, "not measured")

    def test_names_stay_in_their_cells(self):
        before = copy.deepcopy(BASE)
        before["rows"][0]["id"] = "a|b`c\nd"
        after = copy.deepcopy(before)
        after["rows"][0].update(status="failed", why="<b>|\nx")
        after["rows"][0]["arms"][0].update(status="failed")
        text, _ = comparer.markdown(Result("a.json", before),
                                    Result("b.json", after))
        self.assertIn("| `a\\|b'c d` | **broken** (&lt;b>\\| x) |", text)

    def test_rows_in_one_file(self):
        after = copy.deepcopy(BASE)
        del after["rows"][0]
        found, only_before, only_after = changes(BASE, after)
        self.assertEqual(list(found), ["row_sum"])
        self.assertEqual(only_before, [BASE["rows"][0]["id"]])
        self.assertEqual(only_after, [])

    def test_main(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            before = synthetic.write(folder / "a.json", BASE)
            other = slowed(BASE, 1.5, SUBJECT)
            other["environment"]["machine"] = "elsewhere"
            after = synthetic.write(folder / "b.json", other)

            def run(*arguments):
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), \
                        contextlib.redirect_stderr(err):
                    status = comparer.main([str(a) for a in arguments])
                return status, out.getvalue(), err.getvalue()

            status, out, _ = run(before, after)
            self.assertEqual(status, 0)
            self.assertIn("1 slower, 1 same.", out)
            self.assertIn("different machines: made-up-2core and elsewhere", out)
            self.assertIn("| `softmax/f32/rows=64,cols=256/native/1` | "
                          "**slower** |", out)
            self.assertEqual(run(before, after, "--fail-on-slower")[0], 1)
            self.assertEqual(run(before, before, "--fail-on-slower")[0], 0)
            kept = after.read_bytes()
            status, _, err = run(before, after, "-o", after)
            self.assertEqual((status, after.read_bytes()), (2, kept))
            self.assertIn("is a result that is read", err)
            status, _, err = run(before, before, "-o", "/dev/full")
            self.assertEqual((status, err), (
                2, "bench/compare: cannot write '/dev/full': No space left on "
                "device\n"))
            status, _, err = run(before, folder / "none.json")
            self.assertEqual(status, 2)
            self.assertIn("cannot be read", err)
            status, out, _ = run(before, after, "-o", folder / "c.md")
            self.assertEqual((status, out), (0, ""))
            self.assertIn("slower", (folder / "c.md").read_text("utf-8"))


class Units(unittest.TestCase):
    def test_texts(self):
        self.assertEqual(
            [time_text(v) for v in (None, 0, 1.234, 45.67, 999.4, 999.6, 1e6,
                                    2.5e9, 1e12)],
            ["–", "0.00 ns", "1.23 ns", "45.7 ns", "999 ns", "1.00 µs",
             "1.00 ms", "2.50 s", "1000 s"])
        self.assertEqual([ratio_text(v) for v in (None, 0.5, 1.23456, 12.345)],
                         ["–", "0.500", "1.235", "12.3"])
        self.assertEqual(percent(0.0123), "1.2 %")
        self.assertEqual([bytes_text(v) for v in (17, 2048, 1536, 1 << 40)],
                         ["17 B", "2 KiB", "1.5 KiB", "1024 GiB"])
        self.assertEqual([count(1, "row"), count(2, "row"),
                          count(2, "loss", "losses")],
                         ["1 row", "2 rows", "2 losses"])


if __name__ == "__main__":
    unittest.main()
