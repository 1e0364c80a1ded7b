#===- bench/analysis/compare.py - What became faster or slower -------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""bench/compare BEFORE.json AFTER.json: a regression report in Markdown.

A row's figure is the subject's median after over that before, divided by what
the rest of the machine did between the runs: the median of the same ratio over
the peers of the row that are ok in both files in the same version, or over the
control when it is the same code in both. A difference within the larger noise
of the two rows (p90 of the A/A ratios) is called "same". Where the row itself
did not change and one or two witnesses alone say that the machine did, it is
"undecided": one unstable peer is no drift."""

import argparse
import sys

from . import statistics
from .output import check_apart, show, write
from .results import ResultError, arm_by_role, arms_of, load
from .summary import escape
from .units import percent, ratio_text, time_text

ORDER = ["broken", "slower", "undecided", "faster", "repaired", "same",
         "not measured"]
ENOUGH = 3  # Witnesses whose median one of them cannot move.


def ok(arm):
    return arm is not None and arm["status"] == "ok" and \
        (arm.get("statistics") or {}).get("median", 0) > 0


def median(arm):
    return arm["statistics"]["median"]


def drift(before, after):
    """(factor, what it comes from, by how many): how much slower the same code
    became."""
    others = {arm["name"]: arm for arm in arms_of(after)
              if arm["role"] == "peer" and ok(arm)}
    ratios = [median(others[arm["name"]]) / median(arm)
              for arm in arms_of(before)
              if arm["role"] == "peer" and ok(arm) and arm["name"] in others
              and others[arm["name"]].get("version") == arm.get("version")]
    if ratios:
        return statistics.median(ratios), \
            f"{len(ratios)} peer" + ("s" if len(ratios) > 1 else ""), \
            len(ratios)
    old, new = arm_by_role(before, "control"), arm_by_role(after, "control")
    if ok(old) and ok(new):
        code = (old.get("identity") or {}).get("object")
        if code and code == (new.get("identity") or {}).get("object"):
            return median(new) / median(old), "control", 1
    return 1.0, "nothing", 0


def noise(row):
    """The noise of a row: that of its control, else the spread of its own
    rounds."""
    found = row.get("noise") or {}
    if found.get("ratios"):
        return found["p90"]
    arm = arm_by_role(row, "subject")
    if not ok(arm):
        return 0.0
    figures = arm["statistics"]
    return (figures["high"] - figures["low"]) / figures["median"]


class Change:
    """One row of both files."""

    def __init__(self, before, after):
        self.id = after["id"]
        old, new = arm_by_role(before, "subject"), arm_by_role(after, "subject")
        self.before = median(old) if ok(old) else None
        self.after = median(new) if ok(new) else None
        self.ratio = self.drift = self.normalized = None
        self.noise, self.source = 0.0, ""
        self.why = after.get("why") or (new or {}).get("why") or ""
        if not ok(old) or not ok(new):
            self.verdict = "broken" if ok(old) else \
                "repaired" if ok(new) else "not measured"
            return
        self.ratio = self.after / self.before
        self.drift, self.source, witnesses = drift(before, after)
        self.normalized = self.ratio / self.drift
        self.noise = max(noise(before), noise(after))
        if abs(self.normalized - 1) <= self.noise:
            self.verdict = "same"
        elif abs(self.ratio - 1) <= self.noise and witnesses < ENOUGH:
            self.verdict = "undecided"
        else:
            self.verdict = "slower" if self.normalized > 1 else "faster"


def compare(before, after):
    """(changes, ids only before, ids only after) of two results."""
    old = {row["id"]: row for row in before["rows"]}
    new = {row["id"]: row for row in after["rows"]}
    changes = [Change(old[name], new[name]) for name in old if name in new]
    changes.sort(key=lambda change: (ORDER.index(change.verdict),
                                     -(change.normalized or 0), change.id))
    return (changes, [name for name in old if name not in new],
            [name for name in new if name not in old])


def remarks(before, after):
    """What makes the two runs hard to compare."""
    found = []
    for field, what in (("machine", "machines"), ("cpu", "processors"),
                        ("isa", "instruction sets"), ("cores", "core counts"),
                        ("governor", "governors"), ("system", "systems")):
        one, other = before["environment"].get(field), \
            after["environment"].get(field)
        if one != other:
            found.append(f"different {what}: {one} and {other}")
    for result, which in ((before, "before"), (after, "after")):
        if result["run"].get("dirty"):
            found.append(f"the sources of the run {which} had changes that are "
                         "not committed")
    return found


def in_code(name):
    """A name that ends neither its backquotes nor its cell."""
    return " ".join(name.split()).replace("`", "'").replace("|", "\\|")


def markdown(before, after):
    changes, only_before, only_after = compare(before, after)
    lines = ["# Comparison of two runs", "", "| | before | after |",
             "|---|---|---|"]
    for title, field in (("suite", "suite"), ("revision", "revision"),
                         ("started", "started")):
        lines.append(f"| {title} | {before['run'].get(field) or '?'} | "
                     f"{after['run'].get(field) or '?'} |")
    lines.append(f"| machine | {before['environment']['machine']} | "
                 f"{after['environment']['machine']} |")
    lines.append("")
    for remark in remarks(before, after):
        lines.append(f"**Note:** {remark}.")
        lines.append("")
    counts = {verdict: sum(change.verdict == verdict for change in changes)
              for verdict in ORDER}
    measured = [change.normalized for change in changes if change.normalized]
    lines.append(", ".join(f"{count} {verdict}"
                           for verdict, count in counts.items() if count) +
                 "." if changes else "No row is in both files.")
    if measured:
        lines.append(f"Geometric mean of {len(measured)} rows: "
                     f"{statistics.geometric_mean(measured):.3f} "
                     "(below 1 is faster after).")
    lines += ["", "`ratio` is after over before; `drift` is what the peers or "
              "the control did meanwhile; `change` is ratio over drift; within "
              "`noise` it is called same; undecided where only one or two "
              "witnesses changed.", ""]
    if changes:
        lines += ["| row | verdict | before | after | ratio | drift | change | "
                  "noise |", "|---|---|--:|--:|--:|--:|--:|--:|"]
    for change in changes:
        note = f" ({escape(change.why)})" if change.verdict == "broken" and change.why \
            else ""
        by = f"{change.drift:.3f} ({change.source})" if change.drift else "–"
        mark = "**" if change.verdict in ("broken", "slower") else ""
        lines.append(
            f"| `{in_code(change.id)}` | {mark}{change.verdict}{mark}{note} | "
            f"{time_text(change.before)} | {time_text(change.after)} | "
            f"{ratio_text(change.ratio)} | {by} | "
            f"{ratio_text(change.normalized)} | "
            f"{percent(change.noise) if change.ratio else '–'} |")
    for title, names in (("before", only_before), ("after", only_after)):
        if names:
            lines += ["", f"Only in the run {title}:", ""]
            lines += [f"- `{in_code(name)}`" for name in names]
    return "\n".join(lines) + "\n", changes


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="bench/compare", description="Says what became faster or slower "
        "between two result files, as Markdown.",
        epilog="exit status: 0; 1 with --fail-on-slower when a row is slower "
        "beyond the noise or broken; 2 when a file is no result")
    parser.add_argument("before", metavar="BEFORE.json")
    parser.add_argument("after", metavar="AFTER.json")
    parser.add_argument("--markdown", "-o", metavar="FILE",
                        help="write there (default: standard output)")
    parser.add_argument("--fail-on-slower", action="store_true",
                        help="exit with status 1 when a row is slower beyond "
                        "the noise, or no longer ok")
    options = parser.parse_args(arguments)
    try:
        check_apart(filter(None, [options.markdown]),
                    [options.before, options.after])
        text, changes = markdown(load(options.before), load(options.after))
        if options.markdown:
            write(options.markdown, text)
        else:
            show(text)
    except ResultError as error:
        print(f"bench/compare: {error}", file=sys.stderr)
        return 2
    bad = any(change.verdict in ("slower", "broken") for change in changes)
    return 1 if bad and options.fail_on_slower else 0
