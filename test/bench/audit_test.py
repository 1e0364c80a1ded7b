#===- test/bench/audit_test.py - Altered evidence is rejected --------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Each mutation of a valid file is found by the audit, although its digest was
made anew; the valid file passes."""

import contextlib
import copy
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import synthetic
from analysis import audit as auditor
from analysis.operators import REWRITE, TABLE, arrays_of, load_table
from analysis.results import ResultError, dump, load

# Softmax 17x65 with an unsupported peer, row_sum 17x65, one row that is not
# implemented, one peer that is missing, a failed peer.
BASE = synthetic.make_document(
    seed=3, operators=("softmax", "row_sum"), shapes=[(17, 65)],
    statuses={("row_sum", 0): {"torch": "failed"}}, threads=(1, 2))


def arm(document, name="tessera", row=0):
    return next(item for item in document["rows"][row]["arms"]
                if item["name"] == name)


def drop(container, key):
    del container[key]


def remove_arm(document, name, row=0):
    """Takes an arm out without a trace: the order and the rest are balanced."""
    rows = document["rows"]
    number = next(index for index, item in enumerate(rows[row]["arms"])
                  if item["name"] == name)
    del rows[row]["arms"][number]
    rows[row]["order"] = [
        [index - (index > number) for index in order if index != number]
        for order in rows[row]["order"]]


def scale_samples(document, name, factor):
    """Other times for an arm, with statistics that follow from them."""
    row = document["rows"][0]
    target = arm(document, name)
    target["samples"] = [[round(value * factor) for value in values]
                         for values in target["samples"]]
    medians = [value * factor for value in
               target["statistics"]["roundMedians"]]
    target["statistics"]["roundMedians"] = medians
    synthetic.derive(row)


def best_samples(document):
    """The best sample of every turn, and nothing of the others."""
    row = document["rows"][0]
    row["samplesPerTurn"] = 1
    for item in row["arms"]:
        item["samples"] = [[min(values)] for values in
                           item.get("samples") or []]


def swap_samples(document):
    one, other = arm(document), arm(document, "inductor")
    for field in ("samples", "statistics", "inner"):
        one[field], other[field] = other[field], one[field]


def set_verdict(document, row=0, **fields):
    document["rows"][row]["verdict"].update(fields)


def compared(document, name="tessera", when="before"):
    return arm(document, name)["verification"][when][0]


def unbalance(document):
    order = document["rows"][0]["order"]
    order[1] = list(order[0])


def drop_round(document):
    row = document["rows"][0]
    drop(row["order"], -1)
    drop(row["seeds"], -1)
    for item in row["inputs"]:
        drop(item["before"], -1)
        drop(item["after"], -1)
    for item in row["arms"]:
        if item["status"] != "ok":
            continue
        for field in ("samples", "guards", "outputHashes"):
            drop(item[field], -1)
        medians = item["statistics"]["roundMedians"][:-1]
        item["statistics"] = {
            "roundMedians": medians,
            "median": synthetic.statistics.median(medians),
            "low": synthetic.statistics.quantile(medians, 0.1),
            "high": synthetic.statistics.quantile(medians, 0.9)}
    synthetic.derive(row)


def drop_design(document):
    """One whole design less: still balanced."""
    row = document["rows"][0]
    half = len(row["order"]) // 2
    row["order"] = row["order"][:half]


def copy_round(document):
    samples = arm(document)["samples"]
    samples[3] = list(samples[5])


def copy_arm(document):
    arm(document, "torch")["samples"] = copy.deepcopy(
        arm(document, "onednn")["samples"])


H = "0123456789abcdef" * 2
ROW = lambda d, row=0: d["rows"][row]  # noqa: E731

# What evidence.md names, then more. Name, mutation, part of a finding.
MUTATIONS = [
    ("dropped_sample", lambda d: drop(arm(d)["samples"][2], 1),
     "samples[2]: found 4 samples, expected 5"),
    ("duplicated_sample", lambda d: arm(d)["samples"][2].append(
        arm(d)["samples"][2][0]), "samples[2]: found 6 samples, expected 5"),
    ("dropped_round_of_an_arm", lambda d: drop(arm(d)["samples"], 0),
     "tessera: samples: found 19 rounds, expected 20"),
    ("duplicated_round_of_an_arm", copy_round, "samples of tessera round"),
    ("samples_of_another_arm", copy_arm, "found the samples of"),
    ("altered_sample", lambda d: arm(d)["samples"][0].__setitem__(
        slice(0, 5), [9, 11, 12, 13, 14]), "statistics.roundMedians[0]"),
    ("exchanged_samples", swap_samples, "comparisons.ratios"),
    ("altered_round_median", lambda d: arm(d)["statistics"][
        "roundMedians"].__setitem__(1, 1.5), "statistics.roundMedians[1]"),
    ("altered_median", lambda d: arm(d)["statistics"].update(median=1.5),
     "tessera: statistics.median: found 1.5"),
    ("altered_low", lambda d: arm(d)["statistics"].update(low=1.5),
     "statistics.low"),
    ("altered_high", lambda d: arm(d)["statistics"].update(high=1.5),
     "statistics.high"),
    ("altered_ratio", lambda d: ROW(d)["comparisons"][0][
        "ratios"].__setitem__(0, 0.25), "comparisons.ratios[0]: found 0.25"),
    ("altered_ratio_median", lambda d: ROW(d)["comparisons"][0].update(
        median=0.25), "comparisons.median: found 0.25"),
    ("altered_interval", lambda d: ROW(d)["comparisons"][0].update(
        low=0.1, high=0.2), "comparisons.low"),
    ("altered_range", lambda d: ROW(d)["comparisons"][0].update(max=0.2),
     "comparisons.max"),
    ("altered_output_hash_of_subject", lambda d: arm(d)["outputHashes"][
        4].update(y=H), "outputHashes[4]: found other outputs"),
    ("altered_output_hash_of_control", lambda d: arm(d, "tessera-again")[
        "outputHashes"][0].update(y=H), "tessera-again: outputHashes[0]"),
    ("dropped_output_hash", lambda d: drop(arm(d)["outputHashes"], 0),
     "outputHashes: found"),
    ("output_without_hash", lambda d: arm(d)["outputHashes"][1].clear(),
     "outputHashes[1]: found hashes of []"),
    ("wrong_threads_of_arm", lambda d: arm(d, "torch").update(threads=2),
     "torch: threads: found 2, expected the row's 1"),
    ("wrong_threads_of_row", lambda d: ROW(d).update(threads=2),
     "id: expected softmax/f32/rows=17,cols=65/native/2"),
    ("wrong_threads_in_detail", lambda d: arm(d, "torch")["detail"].update(
        threads=2), "detail.threads"),
    ("more_threads_than_cores", lambda d: d["environment"].update(
        cores=1, affinity=[0]), "expected at most the 1 cores"),
    ("failed_guard", lambda d: arm(d)["guards"].__setitem__(7, False),
     "guards[7]: found a damaged guard"),
    ("dropped_guard", lambda d: drop(arm(d)["guards"], 0), "guards: found"),
    ("wrong_oracle_size", lambda d: compared(d).update(elements=1000,
                                                       compared=1000),
     "found 1000 elements, expected 1105"),
    ("wrong_oracle_size_after", lambda d: compared(d, when="after").update(
        elements=17, compared=17), "verification.after.y: found 17"),
    ("elements_not_compared", lambda d: compared(d).update(compared=1104),
     "found 1104 of 1105 elements compared"),
    ("wrong_elements", lambda d: compared(d, "torch").update(wrong=1),
     "torch: verification.before.y: found 1 wrong"),
    ("wrong_elements_after", lambda d: compared(d, when="after").update(
        wrong=2), "verification.after.y: found 2 wrong"),
    ("beyond_the_bound", lambda d: compared(d).update(boundUsed=1.01),
     "of the error bound used"),
    ("much_looser_bound_of_a_peer", lambda d: compared(d, "torch").update(
        factor=1000), "expected at most 16"),
    ("looser_bound", lambda d: compared(d).update(factor=4),
     "4 times the error bound"),
    ("no_verification_after", lambda d: arm(d)["verification"].pop("after"),
     "verification.after: found none"),
    ("no_verification_before", lambda d: arm(d, "torch")["verification"].update(
        before=[]), "torch: verification.before: found none"),
    ("verification_of_another_output", lambda d: compared(d).update(output="z"),
     "found an output that softmax does not have"),
    ("verification_of_another_round", lambda d: compared(
        d, when="after").update(hash=arm(d)["outputHashes"][0]["y"]),
     "verification.after: found another hash of y"),
    ("unbalanced_order", unbalance, "order: arm"),
    ("arm_twice_in_order", lambda d: ROW(d)["order"].__setitem__(
        0, [0, 0, 3, 4, 5]), "order: round"),
    ("unknown_arm_in_order", lambda d: ROW(d)["order"][0].__setitem__(0, 9),
     "order: "),
    ("dropped_round", drop_round, "order: "),
    ("dropped_design", drop_design, "rounds, expected"),
    ("other_rounds", lambda d: ROW(d).update(rounds=40), "rounds, expected"),
    ("other_samples_per_turn", lambda d: ROW(d).update(samplesPerTurn=6),
     "samples, expected 6"),
    ("peer_at_another_boundary", lambda d: arm(d, "torch").update(
        boundary="call"), "torch: boundary: found 'call'"),
    ("row_at_another_boundary", lambda d: ROW(d).update(boundary="call"),
     "id: expected"),
    ("missing_unsupported_arm", lambda d: remove_arm(d, "openblas"),
     "openblas: arms: found no arm of this peer"),
    ("missing_failed_arm", lambda d: remove_arm(d, "torch", 1),
     "torch: arms: found no arm of this peer"),
    ("missing_arm", lambda d: remove_arm(d, "torch"), "torch: arms: found no"),
    ("missing_control", lambda d: remove_arm(d, "tessera-again"),
     "arms: found 0 arms as control"),
    ("failed_arm_as_ok", lambda d: arm(d, "torch", 1).update(status="ok"),
     "torch: samples: found 0 rounds"),
    ("missing_peer_as_ok", lambda d: d["peers"][-1].update(status="ok"),
     "mkl: arms: found no arm of this peer"),
    ("ok_peer_as_missing", lambda d: d["peers"][2].update(
        status="missing", why="gone"), "torch is missing"),
    ("ok_peer_as_failed", lambda d: d["peers"][2].update(
        status="failed", why="gone"), "torch: status: found 'failed'"),
    ("unknown_peer", lambda d: drop(d["peers"], 1),
     "not among the peers of the run"),
    ("peer_twice", lambda d: d["peers"].append(dict(d["peers"][0])),
     "openblas: name: found twice"),
    ("peer_hidden_as_slow", lambda d: (
        arm(d, "torch").update(status="slow", why="slow",
                               callNanoseconds=1e2),
        drop(arm(d, "torch"), "samples"), drop(arm(d, "torch"), "statistics")),
     "torch: callNanoseconds: found 100.0, expected at least"),
    ("slow_peer_without_its_time", lambda d: arm(d, "torch", 1).update(
        status="slow"), "torch: callNanoseconds: found 0, expected at least"),
    ("slow_peer_never_checked", lambda d: arm(d, "torch", 1).update(
        status="slow", callNanoseconds=1e12),
     "torch: verification.before: found none"),
    ("slow_peer_with_samples", lambda d: arm(d, "torch").update(
        status="slow", why="slow", callNanoseconds=1e12),
     "torch: samples: found samples of an arm that was too slow"),
    ("slow_control", lambda d: arm(d, "tessera-again").update(
        status="slow", why="slow", callNanoseconds=1e12),
     "tessera-again: status: found 'slow', which only a peer"),
    ("failure_without_reason", lambda d: arm(d, "torch", 1).update(why=""),
     "torch: why: found no reason"),
    ("missing_peer_without_reason", lambda d: d["peers"][-1].update(why=""),
     "mkl: why: found no reason"),
    ("other_version", lambda d: arm(d, "torch").update(version="9"),
     "torch: version: found '9'"),
    ("other_math_mode", lambda d: arm(d, "torch").update(mathMode="fast"),
     "torch: mathMode: found 'fast'"),
    ("input_written", lambda d: ROW(d)["inputs"][0]["after"].__setitem__(2, H),
     "inputs.x.after[2]"),
    ("input_reused", lambda d: [ROW(d)["inputs"][0][when].__setitem__(
        1, ROW(d)["inputs"][0][when][0]) for when in ("before", "after")],
     "the same data in two rounds"),
    ("input_of_another_size", lambda d: ROW(d)["inputs"][0].update(bytes=4),
     "inputs.x.bytes: found 4, expected 4420"),
    ("input_dropped", lambda d: ROW(d).update(inputs=[]), "inputs: found none"),
    ("input_hash_dropped", lambda d: drop(ROW(d)["inputs"][0]["before"], 0),
     "inputs.x.before: found"),
    ("seed_twice", lambda d: ROW(d)["seeds"].__setitem__(1, ROW(d)["seeds"][0]),
     "found a seed twice"),
    ("unstable_outputs", lambda d: ROW(d)["seeds"].__setitem__(
        1, ROW(d)["seeds"][0]), "the round with the same seed"),
    ("another_seed", lambda d: ROW(d)["seeds"].__setitem__(1, 10 ** 6),
     "seeds: found others, expected those that follow 3, the run's"),
    ("fewer_samples", best_samples,
     "samplesPerTurn: found 1, expected 5: there was time for all"),
    ("fewer_rounds", lambda d: ROW(d).update(rounds=4),
     "rounds: found 4, expected 12"),
    ("inner_of_single_calls", lambda d: ROW(d).update(boundary="call"),
     "expected 1: samples of 'call' are single calls"),
    ("peer_not_asked_for", lambda d: d["run"].update(peers=["torch"]),
     "run: peers: found torch, but the file has "),
    ("peer_as_variant", lambda d: arm(d, "torch").update(role="variant"),
     "torch: role: found 'variant' of torch, expected 'peer'"),
    ("library_as_subject", lambda d: arm(d).update(vendor="cblas"),
     "vendor: found the library cblas in the arm's role 'subject', expected "
     "'variant'"),
    ("wider_bound_without_a_library", lambda d: arm(d)["verification"][
        "after"][0].update(factor=16), "found 16 times the error bound"),
    ("slow_peer_with_time_enough", lambda d: (
        arm(d, "torch").update(status="slow", why="slow",
                               callNanoseconds=1e6),
        drop(arm(d, "torch"), "samples"), drop(arm(d, "torch"), "statistics")),
     "torch: callNanoseconds: found 1000000.0, whose turns take no more than"),
    ("seed_dropped", lambda d: drop(ROW(d)["seeds"], 0), "seeds: found"),
    ("sample_of_zero", lambda d: arm(d)["samples"][0].__setitem__(0, 0),
     "samples[0]: found 0, expected whole nanoseconds"),
    ("negative_sample", lambda d: arm(d)["samples"][0].__setitem__(0, -5),
     "samples[0]: found -5"),
    ("fractional_sample", lambda d: arm(d)["samples"][0].__setitem__(0, 5.5),
     "samples[0]: found 5.5"),
    ("other_inner", lambda d: arm(d).update(inner=arm(d)["inner"] * 2),
     "statistics.roundMedians[0]"),
    ("no_inner", lambda d: drop(arm(d), "inner"), "inner: found none"),
    ("no_statistics", lambda d: drop(arm(d), "statistics"),
     "statistics: found none"),
    ("statistics_without_samples", lambda d: arm(d, "torch", 1).update(
        statistics=arm(d)["statistics"]), "figures without samples"),
    ("altered_noise", lambda d: ROW(d)["noise"].update(p90=0.5),
     "noise.p90: found 0.5"),
    ("altered_noise_ratio", lambda d: ROW(d)["noise"][
        "ratios"].__setitem__(0, 1), "noise.ratios[0]"),
    ("dropped_noise", lambda d: drop(ROW(d), "noise"), "noise.ratios: found 0"),
    ("altered_verdict_ratio", lambda d: set_verdict(d, ratio=0.25),
     "verdict.ratio: found 0.25"),
    ("altered_verdict", lambda d: set_verdict(d, result="level"),
     "verdict.result: found 'level'"),
    ("verdict_of_a_slower_peer", lambda d: set_verdict(d, bestPeer="torch"),
     "verdict.bestPeer: found 'torch'"),
    ("verdict_alone", lambda d: ROW(d).update(verdict={"result": "alone"}),
     "verdict.bestPeer: found none"),
    ("verdict_failed", lambda d: set_verdict(d, result="failed"),
     "verdict.result: found 'failed'"),
    ("no_verdict", lambda d: drop(ROW(d), "verdict"), "verdict: found none"),
    ("verdict_of_a_row_that_is_not_there", lambda d: ROW(d, 2).update(
        verdict={"result": "ahead"}), "that is not implemented"),
    ("no_comparison", lambda d: drop(ROW(d)["comparisons"], 0),
     "comparisons: found none with this arm"),
    ("comparison_with_a_failure", lambda d: ROW(d)["comparisons"].append(
        dict(ROW(d)["comparisons"][0], arm="openblas")),
     "openblas: comparisons: found one with an arm that is not"),
    ("altered_floor", lambda d: ROW(d)["floor"].update(nanoseconds=999.0),
     "floor.nanoseconds: found 999.0"),
    ("altered_over_floor", lambda d: set_verdict(d, overFloor=1.0),
     "verdict.overFloor: found 1.0"),
    ("unknown_ceiling", lambda d: ROW(d)["floor"].update(ceiling="copy/1/1"),
     "floor.ceiling: found 'copy/1/1'"),
    ("ceiling_of_other_threads", lambda d: ROW(d)["floor"].update(
        ceiling="copy/16384/2"), "floor.ceiling: found 'copy/16384/2'"),
    ("floor_of_another_kind", lambda d: ROW(d)["floor"].update(by="none"),
     "by none, expected"),
    ("smaller_work", lambda d: ROW(d)["work"].update(flops=1),
     "floor.nanoseconds"),
    ("inflated_work", lambda d: ROW(d)["work"].update(bytesRead=10 ** 6),
     "work.bytesRead: found 1000000, expected at most the 4420"),
    ("dropped_work", lambda d: drop(ROW(d), "work"), "work: found none"),
    ("altered_ceiling", lambda d: d["ceilings"]["rows"][0].update(
        bytesPerSecond=1e9), "bytesPerSecond: found 1000000000.0"),
    ("altered_ceiling_sample", lambda d: d["ceilings"]["rows"][0].update(
        samples=[5] * 15), "copy/16384/1: bytesPerSecond"),
    ("altered_peak", lambda d: d["ceilings"]["rows"][3].update(
        flopsPerSecond=1e9), "flopsPerSecond"),
    ("ceiling_without_samples", lambda d: d["ceilings"]["rows"][0].update(
        samples=[]), "samples: found none"),
    ("ceiling_twice", lambda d: d["ceilings"]["rows"].append(
        dict(d["ceilings"]["rows"][0])), "copy/16384/1: name: found twice"),
    ("row_twice", lambda d: d["rows"].append(copy.deepcopy(d["rows"][0])),
     "id: found twice"),
    ("row_of_the_plan_dropped", lambda d: drop(d["rows"], 1),
     "the run planned it"),
    ("row_that_was_not_planned", lambda d: drop(d["run"]["rowIds"], 0),
     "did not plan"),
    ("altered_shape", lambda d: ROW(d)["dims"].update(rows=16),
     "id: expected softmax/f32/rows=16,cols=65"),
    ("dropped_dimension", lambda d: drop(ROW(d)["dims"], "rows"),
     "dims: found no extent of rows"),
    ("other_operator", lambda d: ROW(d).update(operator="copy"),
     "id: expected copy/"),
    ("unknown_operator", lambda d: ROW(d).update(operator="mystery"),
     "operator: found 'mystery'"),
    ("control_of_other_code", lambda d: arm(d, "tessera-again")[
        "identity"].update(object=H), "no control pair"),
    ("control_as_peer", lambda d: arm(d, "torch")["identity"].update(
        arm(d)["identity"]), "a control, no peer"),
    ("no_identity", lambda d: arm(d)["identity"].clear(),
     "identity.object: found none"),
    ("wrong_subject_in_an_ok_row", lambda d: arm(d).update(
        status="wrong", why="1 of 1105"), "status: found 'ok', but"),
    ("failed_row_of_ok_arms", lambda d: (
        remove_arm(d, "openblas"), d["rows"][0].update(status="failed")),
     "found 'failed', but every arm is ok"),
    ("run_that_passed", lambda d: d["run"].update(passed=True),
     "passed: found True, but an arm"),
    ("no_revision", lambda d: d["run"].update(revision=""), "run: revision"),
    ("time_backwards", lambda d: d["run"].update(
        finished="2026-11-28T00:00:00Z"), "before the start"),
    ("not_implemented_without_reason", lambda d: ROW(d, 2).update(why=""),
     "why: found no reason"),
    ("no_row", lambda d: d["rows"].clear(), "rows: found no row"),
]


class Mutations(unittest.TestCase):
    """One test per entry of MUTATIONS, made below."""


def findings_of(document, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "r.json"
        synthetic.write(path, document)
        findings, notes = auditor.audit(load(path, strict=False), **options)
        return [str(finding) for finding in findings], notes


def add_mutation(name, mutate, expected):
    def test(self):
        document = copy.deepcopy(BASE)
        mutate(document)
        found, _ = findings_of(document)
        self.assertTrue(any(expected in text for text in found),
                        f"expected {expected!r} among {found}")
    setattr(Mutations, f"test_{name}", test)


for entry in MUTATIONS:
    add_mutation(*entry)


class Audit(unittest.TestCase):
    def test_valid_files_pass(self):
        for document in (
                BASE,
                synthetic.make_document(seed=5, gaps=False),
                synthetic.make_document(seed=6, peers=(), gaps=False),
                synthetic.make_document(seed=7, peers=("torch",)),
                synthetic.make_document(seed=8, rounds=30, per_turn=1),
                synthetic.make_document(
                    seed=9, operators=("softmax",), shapes=[(17, 65)],
                    gemm=[(16, 8, 24)], statuses={("softmax", 0): {
                        "tessera": "failed", "tessera-again": "failed"}})):
            self.assertEqual(findings_of(document)[0], [])

    def test_a_row_that_the_run_did_not_reach(self):
        document = copy.deepcopy(BASE)
        row = next(row for row in document["rows"]
                   if row["status"] == "not implemented")
        row.update(status="failed", why="the run ended before this row",
                   verdict={"bestPeer": "", "overFloor": 0.0, "ratio": 0.0,
                            "result": "failed"})
        self.assertEqual(findings_of(document)[0], [])

    def test_edited_bytes_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.json"
            raw = dump(BASE).replace(b'"dirty":false', b'"dirty":true')
            path.write_bytes(raw)
            findings, _ = auditor.audit(load(path, strict=False))
            self.assertEqual(len(findings), 1)
            self.assertIn("the file was edited", str(findings[0]))

    def test_rows_that_do_not_record_their_counts(self):
        document = copy.deepcopy(BASE)
        for row in document["rows"]:
            row.pop("samplesPerTurn", None)
            row.pop("rounds", None)
        document["run"]["samplesPerTurn"] = 25
        self.assertEqual(findings_of(document)[0], [])
        drop(arm(document)["samples"][2], 1)
        self.assertIn("found 4 samples, expected 5", findings_of(document)[0][0])

    def test_rows_of_the_suite(self):
        suite = {"groups": [
            {"operators": ["softmax", "row_sum"], "dtypes": ["f32"],
             "shapes": [{"rows": 17, "cols": 65}],
             "boundaries": [["native", 1], ["native", 0]]},
            {"operators": ["top_k"], "dtypes": ["f32"], "boundaries":
             [["native", 1], ["native", 2]],
             "shapes": [{"rows": 128, "cols": 257}]}]}
        document = copy.deepcopy(BASE)
        document["run"].update(threads=-1, filter="")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.json"
            path.write_text(json.dumps(suite))
            self.assertEqual(findings_of(document, suite=path), ([], []))
            self.assertEqual(findings_of(BASE, suite=path), ([], []))
            for ids in (document["rows"], document["run"]["rowIds"]):
                del ids[1]  # row_sum on one thread
            found, _ = findings_of(document, suite=path)
            self.assertEqual(found, ["row_sum/f32/rows=17,cols=65/native/1: "
                                     "found no such row of suite made-up"])
            document["run"]["filter"] = "native/2"
            self.assertEqual(findings_of(document, suite=path)[0], [])
            del document["run"]["filter"]
            document["rows"] = [row for row in document["rows"]
                                if row["operator"] != "row_sum"]
            document["run"]["passed"] = True
            document["run"]["rowIds"] = [row["id"]
                                         for row in document["rows"]]
            found, notes = findings_of(document, suite=path)
            self.assertEqual(found, [])
            self.assertIn("row of suite made-up", notes[0])
            for text, problem in (
                    ("{}", 'suite: found no field "groups"'),
                    ("[]", "suite: found a list, expected an object"),
                    ('{"groups":\n', "line 2 is not JSON"),
                    ('{"groups": [{"operators": 3}]}', r"suite.groups\[0\]"
                     ".operators: found a whole number, expected a list"),
                    (json.dumps(suite).replace('"native", 2', '"native"'),
                     r"groups\[1\].boundaries\[1\]: found ")):
                path.write_text(text)
                with self.assertRaisesRegex(ResultError, "s.json': " + (
                        problem if "line" in problem or "suite" in problem
                        else "suite." + problem)):
                    findings_of(BASE, suite=path)
            # One that is given is read, or the audit fails.
            with self.assertRaisesRegex(ResultError, "none.json': cannot be "
                                        "read: No such file"):
                findings_of(BASE, suite=path.with_name("none.json"))
        notes = findings_of(BASE)[1]
        self.assertIn("not checked", notes[0])

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = auditor.main([str(item) for item in arguments])
        return status, out.getvalue(), err.getvalue()

    def test_exit_status(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            good = synthetic.write(folder / "good.json", BASE)
            document = copy.deepcopy(BASE)
            arm(document)["statistics"]["median"] = 1.5
            bad = synthetic.write(folder / "bad.json", document)
            status, out, _ = self.run_main(good)
            self.assertEqual(status, 0)
            self.assertIn("clean", out)
            status, out, _ = self.run_main(good, bad)
            self.assertEqual(status, 1)
            self.assertIn("bad.json: softmax/f32/rows=17,cols=65/native/1: "
                          "tessera: statistics.median: found 1.5", out)
            status, _, err = self.run_main(bad, folder / "none.json")
            self.assertEqual(status, 2)
            self.assertIn("none.json: cannot be read", err)

    def test_the_executable(self):
        with tempfile.TemporaryDirectory() as folder:
            good = synthetic.write(pathlib.Path(folder) / "good.json", BASE)
            done = subprocess.run([synthetic.ROOT / "bench/audit", good],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open("/dev/full", "w") as full:
                done = subprocess.run([synthetic.ROOT / "bench/audit", good],
                                      stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (
                2, "bench/audit: cannot write to standard output: No space "
                "left on device\n"))

    def test_table_of_operators_is_current(self):
        tessera = os.environ.get("TESSERA_BINARY")
        if not tessera or not pathlib.Path(tessera).exists():
            self.skipTest("TESSERA_BINARY does not name a built tessera")
        listed = json.loads(subprocess.run(
            [tessera, "list", "--json", "-"], check=True, capture_output=True,
            text=True).stdout)
        kept = json.loads(TABLE.read_text("utf-8"))
        wanted = [{name: entry[name] for name in ("name", "dims", "inputs",
                                                  "outputs")}
                  for entry in listed["operators"]]
        self.assertEqual(kept["operators"], wanted, REWRITE)

    def test_extents_that_follow_are_those_of_the_kernel(self):
        table = load_table()
        dims = {"n": 1, "c": 3, "h": 9, "w": 8, "f": 5, "kh": 3, "kw": 3}
        row = {"operator": "conv2d", "dtype": "f32", "dims": dims, "arms": []}
        with self.assertRaises(KeyError):
            arrays_of(row, table)
        row["arms"] = [{"report": None}, {"report": [{"parameters": [
            {"name": "x", "kind": "view", "extents": [0, 0, 0, 0]},
            {"name": "y", "kind": "view", "extents": [1, 5, 7, 6]}]}]}]
        inputs, outputs = arrays_of(row, table)
        self.assertEqual(outputs["y"].elements, 5 * 7 * 6)
        # Those that the row gives are its own.
        self.assertEqual(inputs["x"].elements, 3 * 9 * 8)

    def test_arrays_of_every_operator_have_extents(self):
        table = load_table()
        for name, entry in table.items():
            # A row of a convolution has the extents of its result, too.
            row = {"operator": name, "dtype": "f32", "dims": {
                "oh": 2, "ow": 3, "ph": 2, "pw": 3,
                **{dim["name"]: dim["default"] for dim in entry["dims"]}}}
            inputs, outputs = arrays_of(row, table)
            for array in {**inputs, **outputs}.values():
                self.assertGreater(array.elements, 0, (name, array.name))
        inputs, _ = arrays_of(
            {"operator": "gemm_q4", "dtype": "f32",
             "dims": {"m": 3, "n": 5, "k": 96, "group": 32}}, table)
        self.assertEqual(inputs["scales"].elements, 3 * 5)
        self.assertEqual(inputs["b"].elements, 48 * 5)

    def test_writer_of_the_table_needs_a_tessera(self):
        for arguments in ([], ["--help"]):
            done = subprocess.run(
                [sys.executable, str(TABLE.with_name("operators.py")),
                 *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: operators.py PATH-OF-TESSERA\n" + REWRITE,
                          done.stderr)


if __name__ == "__main__":
    unittest.main()
