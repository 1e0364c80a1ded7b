#===- bench/analysis/audit.py - Recomputes and rejects ---------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""bench/audit FILE...: rereads result files, computes every figure again from
the raw samples and rejects what does not follow from them.

One line per finding: file, row, arm, field, what was found and expected. Exit
status 0 when clean, 1 with findings, 2 when a file is no readable result."""

import argparse
import json
import pathlib
import re
import sys

from . import statistics
from .audit_row import RowAudit, describe
from .operators import load_table
from .results import ResultError, arms_of, load

SUITES = pathlib.Path(__file__).resolve().parent.parent / "suites"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")


class Finding:
    def __init__(self, row, arm, field, text):
        self.row, self.arm, self.field, self.text = row, arm, field, text

    def __str__(self):
        place = ": ".join(part for part in (self.row, self.arm, self.field)
                          if part)
        return f"{place}: {self.text}"


# --- Ceilings --------------------------------------------------------------


class Ceiling:
    """A measured limit of the machine, computed from its samples."""

    def __init__(self, item):
        self.item = item
        parts = [item["name"]]
        if item.get("workingSetBytes") is not None:
            parts.append(str(item["workingSetBytes"]))
        self.id = "/".join(parts + [str(item["threads"])])
        # The field that holds the figure, its value, and the kind of floor.
        self.field, self.value, self.bounds = "seconds", None, None
        positive = item["samples"] and all(v > 0 for v in item["samples"])
        seconds = statistics.median(item["samples"]) / item["inner"] * 1e-9
        bytes_moved = (item.get("readBytes") or 0) + \
            (item.get("writtenBytes") or 0)
        if bytes_moved:
            self.field, self.bounds = "bytesPerSecond", "bandwidth"
            self.value = bytes_moved / seconds if positive else None
        elif item.get("flops"):
            self.field, self.bounds = "flopsPerSecond", "flops"
            self.value = item["flops"] / seconds if positive else None
        else:
            self.value = seconds if positive else None

    def floor(self, work):
        """Nanoseconds that the work takes at this limit, or None."""
        if not self.value or not self.bounds:
            return None
        amount = work["flops"] if self.bounds == "flops" else \
            work["bytesRead"] + work["bytesWritten"]
        return amount / self.value * 1e9


def audit_ceilings(result, findings):
    ceilings = {}
    for item in result.ceilings:
        ceiling = Ceiling(item)

        def report(field, text, place=ceiling.id):
            findings.append(Finding("ceilings", place, field, text))

        if ceiling.id in ceilings:
            report("name", "found twice")
        ceilings[ceiling.id] = ceiling
        if ceiling.value is None:
            report("samples", "found none, or one that is not above 0")
            continue
        found = item.get(ceiling.field)
        # Exact to the order of the operations.
        if not isinstance(found, (int, float)) or \
                abs(found - ceiling.value) > 1e-9 * ceiling.value:
            report(ceiling.field, f"found {describe(found)}, expected "
                   f"{ceiling.value!r} from the raw samples")
    return ceilings


# --- The run ---------------------------------------------------------------


def audit_run(result, findings):
    run, rows = result["run"], result["rows"]

    def report(field, text):
        findings.append(Finding("run", "", field, text))

    for field in ("started", "finished"):
        if not TIME.match(run.get(field) or ""):
            report(field, f"found {describe(run.get(field))}, expected a time "
                   "as 2026-01-31T12:00:00Z")
    if (run.get("started") or "") > (run.get("finished") or "~"):
        report("finished", "found a time before the start")
    if not run.get("revision"):
        report("revision", "found none, expected the revision that was run")
    if "exitStatus" in run:
        bad = any(arm["status"] in ("wrong", "failed")
                  for row in rows for arm in arms_of(row)) or \
            any(row["status"] == "failed" for row in rows)
        if bool(run["exitStatus"]) != bad:
            report("exitStatus", f"found {run['exitStatus']}, expected " +
                   ("another: an arm is wrong or failed" if bad else
                    "0: no arm is wrong or failed"))
    names = [peer["name"] for peer in result["peers"]]
    for peer in result["peers"]:
        if names.count(peer["name"]) > 1:
            findings.append(Finding("peers", peer["name"], "name",
                                    "found twice"))
        if peer["status"] != "ok" and not peer.get("why"):
            findings.append(Finding(
                "peers", peer["name"], "why", "found no reason for the status "
                f"{describe(peer['status'])}"))
        arms = [arm for row in rows for arm in arms_of(row)
                if (arm.get("peer") or arm["name"]) == peer["name"]]
        if peer["status"] == "failed" and any(a["status"] == "ok"
                                              for a in arms):
            findings.append(Finding("peers", peer["name"], "status", "found "
                                    "'failed', but it has ok arms"))
    if not rows and run["suite"] != "ceilings":
        findings.append(Finding("rows", "", "", "found no row"))
    ids = [row["id"] for row in rows]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        findings.append(Finding(name, "", "id", "found twice"))
    planned = run.get("planned")
    if planned is not None:
        for name in sorted(set(planned) - set(ids)):
            findings.append(Finding(name, "", "", "found no such row, but the "
                                    "run planned it"))
        for name in sorted(set(ids) - set(planned)):
            findings.append(Finding(name, "", "", "found a row that the run "
                                    "did not plan"))


def suite_cases(document):
    """The (operator, dtype, dims) of a suite file's "rows", or None where it
    has another form."""
    rows = document.get("rows") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return None
    cases = []
    for row in rows:
        if not isinstance(row, dict) or "operator" not in row or \
                not isinstance(row.get("dims"), dict):
            return None
        cases.append((row["operator"], row.get("dtype"), row["dims"]))
    return cases


def audit_suite(result, path, findings, notes):
    """Every row of the suite is in the result, failed or not."""
    name = result["run"]["suite"]
    path = path or SUITES / f"{name}.json"
    try:
        cases = suite_cases(json.loads(pathlib.Path(path).read_text("utf-8")))
    except FileNotFoundError:
        notes.append(f"suite {name} is not here: whether its rows are all in "
                     "the file was not checked; give it with --suite")
        return
    except (OSError, ValueError) as error:
        raise ResultError(f"{path}: cannot be read: {error}; expected a "
                          "suite") from None
    if cases is None:
        notes.append(f"{path} lists no rows with operator and dims: whether "
                     "they are all in the file was not checked")
        return
    missing = []
    for operator, dtype, dims in cases:
        if not any(row["operator"] == operator and row["dims"] == dims and
                   dtype in (None, row["dtype"]) for row in result["rows"]):
            shape = ",".join(f"{k}={v}" for k, v in sorted(dims.items()))
            missing.append(f"{operator}/{dtype or '*'}/{shape}")
    for row in dict.fromkeys(missing):
        findings.append(Finding(row, "", "", "found no such row of suite "
                                f"{name}"))


def audit(result, table=None, suite=None, check_suite=True):
    """(findings, notes) of a loaded result."""
    findings, notes = [], []
    table = table if table is not None else load_table()
    if result.digest_problem:
        findings.append(Finding("file", "", "", result.digest_problem))
    audit_run(result, findings)
    ceilings = audit_ceilings(result, findings)
    if check_suite:
        audit_suite(result, suite, findings, notes)
    for row in result["rows"]:
        def report(arm, field, text, place=row["id"]):
            findings.append(Finding(place, arm, field, text))

        RowAudit(row, result, ceilings, table, report).check()
    return findings, notes


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/audit", description="Computes every figure of result files "
        "again and rejects what does not follow from their raw samples.",
        epilog="exit status: 0 clean, 1 findings, 2 a file is no result")
    parser.add_argument("files", nargs="+", metavar="FILE.json")
    parser.add_argument("--suite", type=pathlib.Path, metavar="FILE",
                        help="the suite that was run (default: the one of its "
                        "name in bench/suites)")
    parser.add_argument("--no-suite", action="store_true",
                        help="a run of selected rows: do not ask for all rows "
                        "of the suite")
    options = parser.parse_args(arguments)
    status = 0
    for path in options.files:
        try:
            result = load(path, strict=False)
            findings, notes = audit(result, suite=options.suite,
                                    check_suite=not options.no_suite)
        except ResultError as error:
            print(f"bench/audit: {error}", file=sys.stderr)
            status = 2
            continue
        for finding in findings:
            print(f"{path}: {finding}")
        for note in notes:
            print(f"{path}: note: {note}")
        arms = sum(len(arms_of(row)) for row in result["rows"])
        print(f"{path}: {len(result['rows'])} rows, {arms} arms, " +
              (f"{len(findings)} findings" if findings else "clean"))
        if findings:
            status = max(status, 1)
    return status
