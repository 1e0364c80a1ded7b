#===- test/bench/report_test.py - Pages and tables -------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Pages of usual and odd runs: whole, self-contained, the same every time.
Drawing needs matplotlib and jinja2; without them those tests are skipped."""

import contextlib
import copy
import html.parser
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import synthetic
from analysis import report as reporter
from analysis.results import Result, shape_of
from analysis.summary import Run, markdown

PROGRAM = pathlib.Path(reporter.__file__).parent.parent / "report"
PROBLEM = reporter.drawing_problem()
GONE = {name: "failed" for name in ("tessera", "tessera-again", "torch")}


def run_of(document):
    return Run(Result("r.json", document))


def small(**options):
    options = {"operators": ("softmax",), "shapes": [(17, 65), (64, 256)],
               "peers": ("torch", "onednn"), "rounds": 8, **options}
    return synthetic.make_document(**options)


PLAN = "parallel rows; reduce add over +cols (cols x16 x4)"
REPORT = {
    "kernel": "softmax", "machine": {
        "isa": "avx512", "vector_bits": 512, "object_bytes": 1280,
        "spills": None, "symbols": []},
    "plan": {"summary": PLAN, "reasons": [{"code": "unroll", "text": "cheap"}],
             "stages": [{"symbol": "softmax_stage0", "programs": 17,
                         "scratch_bytes": 64, "nests": [
                             {"reasons": [{"text": "adjacent"}],
                              "rejected_alternatives": []}]}]},
    "vectorized_loads": {"vector": 15, "scalar": 6, "gathers": 0, "total": 21},
    "masked_accesses": {"loads": 3, "stores": 1},
    "numerics": {"functions": [{"name": "exp", "ulps": 1.87}]},
    "work": {"predicted_seconds": 3e-7, "predicted_terms": [
        {"term": "reduce add", "seconds": 1e-7},
        {"term": "store y", "seconds": 2e-7}]},
    "notes": ["not disassembled"]}


class Checker(html.parser.HTMLParser):
    """Finds what a page loads, ids that stand twice, and open elements."""

    VOID = {"meta", "br", "link", "img", "path", "use", "rect", "hr"}

    def __init__(self):
        super().__init__()
        self.loaded, self.ids, self.links, self.open = [], [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("src", "href", "xlink:href", "data", "action"):
            value = attributes.get(name)
            if value and not value.startswith("#"):
                self.loaded.append(value)
            elif value:
                self.links.append(value[1:])
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


@unittest.skipIf(PROBLEM, PROBLEM)
class Pages(unittest.TestCase):
    def has(self, part, text, wanted=True):
        # Without the whole page in the message.
        self.assertTrue((part in text) == wanted,
                        f"{part!r} is {'not ' if wanted else ''}there")

    def page(self, *documents):
        text = reporter.html([run_of(document) for document in documents])
        checker = Checker()
        checker.feed(text)
        self.assertEqual(checker.open, [])
        self.assertEqual(checker.loaded, [])
        outside = re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)",
                            text)
        self.assertIsNone(outside)
        for name in set(checker.links):
            self.assertIn(name, checker.ids)
        twice = {name for name in checker.ids if checker.ids.count(name) > 1}
        self.assertEqual(twice, set())
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            ElementTree.fromstring(svg.replace(
                "<svg ", '<svg xmlns:xlink="x" ', 1))
            self.assertNotIn("#0102", svg)
        self.has("None", re.sub(r"<svg.*?</svg>", "", text, flags=re.S),
                 wanted=False)
        return text

    def test_usual(self):
        document = small(gemm=[(64, 64, 64)], threads=(1, 2))
        text = self.page(document)
        row = run_of(document).rows[0]
        for part in ("made-up on made-up-2core", "native, 1 thread, f32",
                     "native, 2 threads, f32", "libmkl_rt.so is not installed",
                     "no operator top_k", "Roofline", row.cells()["ratio"],
                     "abc1234"):
            self.has(part, text)

    def test_the_same_every_time(self):
        document = small()
        self.assertTrue(self.page(document) == self.page(document))

    def test_losses_come_first(self):
        document = small(speed=20)
        text = self.page(document)
        run = run_of(document)
        self.assertTrue(run.losses)
        self.assertEqual([row.ratio for row in run.losses],
                         sorted((row.ratio for row in run.losses),
                                reverse=True))
        self.has("2 rows in which a peer is faster", text)
        self.assertLess(text.index(">Losses<"), text.index(">Operators<"))

    def test_unsupported_is_no_failure(self):
        document = small(peers=("torch", "openblas"))
        text = self.page(document)
        # Two rows in which OpenBLAS has no form of the operator.
        self.has("2 arms unsupported", text)
        self.has(">Arms without a valid time<", text, wanted=False)
        text = self.page(small(statuses={("softmax", 0): {"torch": "wrong"}}))
        self.has(">Arms without a valid time<", text)

    def test_no_peers(self):
        text = self.page(small(peers=(), gaps=False))
        self.has("No row was compared with a peer", text)
        self.has("The run had no peers", text)
        self.has("no peer was missing", text)

    def test_all_failed(self):
        text = self.page(small(
            peers=("torch",), gaps=False,
            statuses={("softmax", 0): GONE, ("softmax", 1): GONE}))
        self.has("6 arms wrong or failed, 2 rows failed", text)
        self.has("killed by SIGSEGV", text)

    def test_only_the_subject_failed(self):
        self.has("Rows that failed", self.page(small(
            statuses={("softmax", 0): {"tessera": "wrong"}})))

    def test_only_rows_that_are_not_implemented(self):
        text = self.page(small(operators=()))
        self.has("no operator top_k", text)
        self.has(">Operators<", text, wanted=False)

    def test_no_row(self):
        text = self.page(small(operators=(), gaps=False))
        self.has("The run has no rows", text)

    def test_one_row(self):
        self.page(small(shapes=[(17, 65)], gaps=False))

    def test_no_floor_and_no_ceilings(self):
        document = small()
        document["ceilings"] = None
        for row in document["rows"]:
            row["floor"] = {"nanoseconds": 0.0, "by": "none", "ceiling": ""}
            if "verdict" in row:
                row["verdict"]["overFloor"] = 0.0
        self.has(">Roofline<", self.page(document), wanted=False)

    def test_fields_that_the_harness_leaves_empty(self):
        document = small(peers=(), gaps=False)
        for row in document["rows"]:
            row["verdict"].update(bestPeer="", ratio=0.0)
        self.page(document)

    def test_identical_samples(self):
        document = small(shapes=[(17, 65)], rounds=1, per_turn=1)
        for arm in document["rows"][0]["arms"]:
            if arm["status"] == "ok":
                arm["samples"] = [[5000]] * len(arm["samples"])
        self.page(document)

    def test_hostile_texts(self):
        document = small()
        evil = "</title><script>alert(1)</script> $x_{ & \" '"
        document["environment"]["machine"] = evil
        document["peers"][0]["mathMode"] = evil
        row = document["rows"][0]
        row["arms"][2].update(name=evil, status="failed", why=evil)
        row["operator"] = row["id"] = evil
        text = self.page(document)
        self.has("<script>alert", text, wanted=False)

    def test_execution_reports(self):
        document = small(speed=20, threads=(1, 2))
        for row in document["rows"]:
            for arm in row.get("arms", []):
                arm.update(detail={"plans": [PLAN]}, report=[REPORT])
        text = self.page(document)
        for part in (PLAN, "softmax_stage0", "avx512, 512-bit vectors",
                     "object of 1.2 KiB", "17 programs with 64 B of scratch",
                     "15 vector, 6 scalar; 3 masked", "cheap; adjacent",
                     "exp (1.87 ulp)", "not disassembled",
                     "300 ns (reduce add 100 ns, store y 200 ns)"):
            self.has(part, text)
        # Beneath the losses, and once per shape and kernel below.
        losses, rest = text.split(">Failures and gaps<")
        self.assertEqual(losses.count("softmax_stage0"), 4)
        self.assertEqual(rest.count("<dd>softmax_stage0"), 2)
        self.has("native, 1 thread, f32; native, 2 threads, f32", rest)

    def test_odd_execution_reports(self):
        document = small(speed=20)
        odd = [None, 3, "text", [], {}, {"plan": None, "machine": 1},
               {"plan": {"stages": [1, {"nests": [None]}], "reasons": [3],
                         "rejected_alternatives": [None, {}]},
                "notes": [1], "numerics": {"functions": [{}, 2]},
                "work": {"predicted_seconds": 1, "predicted_terms": [1]},
                "machine": {"symbols": ["a"]},
                "vectorized_loads": {"vector": "x"}}]
        for arm in document["rows"][0]["arms"]:
            arm["report"] = odd
        for arm in document["rows"][1]["arms"]:
            arm.update(report=None, detail=["x"])
        self.page(document)

    def test_parts_of_a_cold_call(self):
        document = small(boundary="cold")
        split = {"trace": 2_000_000, "plan": 1_000_000, "compile": 6_000_000,
                 "load": 990_000, "firstCall": 10_000}
        rows = [row for row in document["rows"] if row.get("arms")]
        rows[0]["arms"][0]["cold"] = {"codegen": 6_000_000, "split": split}
        text = self.page(document)
        for part in ("Parts of one cold call", "first call", "6.00 ms",
                     "compile: 60.0 %"):
            self.has(part, text)
        # The other row has no split; other boundaries show none.
        rows[0]["arms"][0]["cold"] = {"codegen": 6_000_000}
        self.has("Parts of one cold call", self.page(document), wanted=False)

    def test_two_runs(self):
        text = self.page(small(), small(seed=2, gaps=False))
        self.has('id="run2-losses"', text)

    def test_many_dimensions(self):
        document = small(shapes=[(17, 65)], gaps=False)
        row = document["rows"][0]
        row["dims"] = {name: 1000 for name in "abcdefghijkl"}
        self.page(document)


class Tables(unittest.TestCase):
    def test_usual(self):
        document = small(statuses={("softmax", 1): {"torch": "failed"}})
        text = markdown([run_of(document)])
        cells = run_of(document).rows[0].cells()
        self.assertIn(f"| softmax | 17×65 | {cells['time']} | "
                      f"{cells['best']} |", text)
        self.assertIn("torch is failed in 1 row: killed by SIGSEGV.", text)
        self.assertIn("Peer mkl is missing: libmkl_rt.so is not installed.",
                      text)
        self.assertIn("not implemented: no operator top_k |", text)
        width = {line.count("|") for line in text.splitlines()
                 if line.startswith("|")}
        self.assertEqual(width, {11})

    def test_names_are_no_html_in_markdown(self):
        document = small()
        document["environment"]["machine"] = "<script>|\nx"
        text = markdown([run_of(document)])
        self.assertIn("on &lt;script>\\| x\n", text)
        self.assertNotIn("<script", text)

    def test_odd_runs(self):
        for options in ({"peers": (), "gaps": False}, {"operators": ()},
                        {"statuses": {("softmax", 0): GONE}}):
            markdown([run_of(small(**options))])
        self.assertIn("The run has no rows", markdown(
            [run_of(small(operators=(), gaps=False))]))

    def test_means_are_per_boundary(self):
        document = small(gaps=False)
        other = copy.deepcopy(document["rows"][0])
        other.update(boundary="call", id=other["id"].replace("native", "call"))
        document["rows"].append(other)
        run = run_of(document)
        self.assertEqual([len(group.rows) for group in run.groups], [2, 1])
        self.assertAlmostEqual(run.groups[1].mean, other["verdict"]["ratio"])

    def test_shapes(self):
        row = {"id": "top_k/f32/rows=2,cols=9,k=16,+mask/native/1",
               "dims": {"cols": 9, "rows": 2}, "settings": {"k": 16}}
        self.assertEqual(shape_of(row), "2×9 k=16 +mask")


class Main(unittest.TestCase):
    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = reporter.main([str(item) for item in arguments])
        return status, out.getvalue(), err.getvalue()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = synthetic.write(self.folder / "r.json", small())

    def test_tables(self):
        status, out, _ = self.run_main(self.file)
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith("## made-up on made-up-2core"))
        status, out, _ = self.run_main(self.file, "--markdown",
                                       self.folder / "t.md")
        self.assertEqual((status, out), (0, ""))

    def test_tables_to_standard_output(self):
        _, tables, _ = self.run_main(self.file)
        here = pathlib.Path.cwd() / "-"
        status, out, _ = self.run_main(self.file, "--markdown", "-")
        self.assertEqual((status, out, here.exists()), (0, tables, False))

    def test_no_result(self):
        status, _, err = self.run_main(self.folder / "none.json")
        self.assertEqual(status, 2)
        self.assertIn("cannot be read", err)

    def test_an_edited_file(self):
        self.file.write_bytes(self.file.read_bytes().replace(
            b'"dirty":false', b'"dirty":true'))
        status, _, err = self.run_main(self.file)
        self.assertEqual(status, 2)
        self.assertIn("the file was edited", err)

    def test_unwritable(self):
        status, _, err = self.run_main(self.file, "--markdown",
                                       self.folder / "no/t.md")
        self.assertEqual(status, 2)
        self.assertIn("cannot write", err)

    def test_one_file_for_two(self):
        page = self.folder / "page"
        status, _, err = self.run_main(self.file, "--markdown", page, "--html",
                                       self.folder / "." / "page")
        self.assertEqual((status, page.exists()), (2, False))
        self.assertIn("is written already, expected another file", err)

    def test_a_full_disk(self):
        """The name is that of the option; a failing write does not tell it."""
        status, _, err = self.run_main(self.file, "--markdown", "/dev/full")
        self.assertEqual((status, err), (2, "bench/report: cannot write "
                                         "'/dev/full': No space left on "
                                         "device\n"))
        with open("/dev/full", "w") as full:
            done = subprocess.run([sys.executable, PROGRAM, self.file],
                                  stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (
            2, "bench/report: cannot write to standard output: No space left "
            "on device\n"))

    @unittest.skipIf(PROBLEM, PROBLEM)
    def test_page(self):
        status, _, _ = self.run_main(self.file, "-o", self.folder / "r.html")
        self.assertEqual(status, 0)
        self.assertIn("</html>", (self.folder / "r.html").read_text("utf-8"))

    @unittest.skipUnless(PROBLEM, "the drawing packages are installed")
    def test_page_without_the_packages(self):
        status, _, err = self.run_main(self.file, "-o", self.folder / "r.html")
        self.assertEqual(status, 2)
        self.assertIn("install the packages", err)


if __name__ == "__main__":
    unittest.main()
