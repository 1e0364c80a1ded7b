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
import pathlib
import re
import sys

from . import statistics, suites
from .audit_row import RowAudit, describe
from .ceilings import Ceiling, ceilings_of
from .operators import load_table
from .output import show
from .results import ResultError, arms_of, load

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")


class Finding:
    def __init__(self, row, arm, field, text):
        self.row, self.arm, self.field, self.text = row, arm, field, text

    def __str__(self):
        place = ": ".join(part for part in (self.row, self.arm, self.field)
                          if part)
        return f"{place}: {self.text}"


# --- Ceilings --------------------------------------------------------------


def audit_ceilings(result, findings):
    seen = set()
    for item in result.ceilings:
        ceiling = Ceiling(item)

        def report(field, text, place=ceiling.id):
            findings.append(Finding("ceilings", place, field, text))

        if ceiling.id in seen:
            report("name", "found twice")
        seen.add(ceiling.id)
        if ceiling.call is None:
            report("samples", "found none, or one that is not above 0")
            continue
        for field, value in ceiling.figures().items():
            if not statistics.close(item.get(field), value):
                report(field, f"found {describe(item.get(field))}, expected "
                       f"{value!r} from the raw samples")


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
    if "passed" in run:
        bad = any(arm["status"] in ("wrong", "failed")
                  for row in rows for arm in arms_of(row)) or \
            any(row["status"] == "failed" for row in rows) or \
            (rows and not any(arm["status"] == "ok" for row in rows
                              for arm in arms_of(row)))
        if run["passed"] == bool(bad):
            report("passed", f"found {run['passed']}, but " +
                   ("an arm or a row is wrong or failed, or nothing was "
                    "measured" if bad else "nothing is wrong or failed"))
    names = [peer["name"] for peer in result["peers"]]
    asked = run.get("peers")
    if isinstance(asked, list) and sorted(map(str, asked)) != sorted(names):
        report("peers", f"found {', '.join(map(str, asked))}, but the file has "
               f"{', '.join(names) or 'none'}")
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
    planned = run.get("rowIds")
    if planned is not None:
        for name in sorted(set(planned) - set(ids)):
            findings.append(Finding(name, "", "", "found no such row, but the "
                                    "run planned it"))
        for name in sorted(set(ids) - set(planned)):
            findings.append(Finding(name, "", "", "found a row that the run "
                                    "did not plan"))


def audit_suite(result, path, table, findings, notes):
    """Every row of the suite is in the result, failed or not."""
    run = result["run"]
    name = run["suite"]
    given = path is not None
    path = pathlib.Path(path if given else suites.FOLDER / f"{name}.json")
    if not given and not path.exists():
        # A run of one operator has its name.
        if name not in table:
            notes.append(f"suite {name} is not here: whether its rows are all "
                         "in the file was not checked; give it with --suite")
        return
    ids = [row["id"] for row in result["rows"]]
    unmeasured = [suites.parts_of(row["id"]) for row in result["rows"]
                  if row["status"] != "ok" and not any(
                      arm["status"] == "ok" for arm in arms_of(row))]

    def stands_for(wanted):
        around, parts = suites.parts_of(wanted)
        return any(found == wanted or wanted.endswith("/") and
                   found.startswith(wanted) for found in ids) or any(
            place == around and some <= parts for place, some in unmeasured)
    missing = [wanted.rstrip("/") for wanted in suites.expected_ids(
        suites.read_suite(path), run, result["environment"], table)
        if not stands_for(wanted)]
    if "filter" not in run:
        # The run may have been asked for a part; the rows that it planned are
        # checked in any case.
        if missing:
            notes.append(f"found no {missing[0]}" +
                         (f" and {len(missing) - 1} more" if missing[1:] else
                          "") + f", row of suite {name}; the run does not "
                         "record whether it was asked for all")
        return
    for wanted in missing:
        findings.append(Finding(wanted, "", "", "found no such row of suite "
                                f"{name}"))


def audit(result, table=None, suite=None, check_suite=True):
    """(findings, notes) of a loaded result."""
    findings, notes = [], []
    table = table if table is not None else load_table()
    if result.digest_problem:
        findings.append(Finding("file", "", "", result.digest_problem))
    audit_run(result, findings)
    audit_ceilings(result, findings)
    ceilings = ceilings_of(result)
    if check_suite:
        audit_suite(result, suite, table, findings, notes)
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
            lines = findings + [f"note: {note}" for note in notes]
            arms = sum(len(arms_of(row)) for row in result["rows"])
            lines.append(f"{len(result['rows'])} rows, {arms} arms, " + (
                f"{len(findings)} findings" if findings else "clean"))
            show("".join(f"{path}: {line}\n" for line in lines))
        except ResultError as error:
            print(f"bench/audit: {error}", file=sys.stderr)
            status = 2
            continue
        if findings:
            status = max(status, 1)
    return status
