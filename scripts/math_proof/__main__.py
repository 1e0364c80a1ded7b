"""Proves error bounds of the f64 vector math functions; see `./dev prove`.

Usage: python3 scripts/math_proof TRACE_PROGRAM [--output FILE] [--only NAMES]
           [--processes N]

TRACE_PROGRAM is tessera-math-trace. Needs python-flint. Writes one row per
function, tier and ISA: the proved bound beside the one that the sweep observed
and the tier's, the piece and cell that decide it, the pieces without a bound,
and the checks of what the pieces take for granted. Exit status 1 if a piece has
no bound, a bound is above what the tier promises, or a check fails.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import time

import checks
import engine
import functions
import prover
import record as rec

# The headers give these no strict bound of their own.
COMPOSED = ("silu", "gelu_tanh")


def prove_record(record):
    start = time.time()
    record.patterns = engine.find_patterns(record)
    goal = prover.Goal(**record.stated)
    row = {"proved": 0.0, "piece": None, "cell": None, "proved_absolute": 0.0,
           "pieces": 0, "cells": 0, "unproved": [], "checks": [],
           "special_values": 0}
    for piece in getattr(functions, record.function)(record):
        row["pieces"] += 1
        try:
            bound = prover.prove(record, piece, goal)
        except prover.Unproved as reason:
            row["unproved"].append(str(reason).split(", ", 1)[1])
            continue
        row["cells"] += bound.cells
        if piece.absolute:
            row["proved_absolute"] = max(row["proved_absolute"], bound.value)
        elif bound.value > row["proved"]:
            row.update(proved=bound.value, piece=piece.name,
                       cell=list(bound.at))
    try:
        row["checks"], row["special_values"] = checks.check(record)
    except checks.Failed as reason:
        row["unproved"].append(f"check: {reason}")
    return row, time.time() - start


def finish(record, row, compared):
    """The row of the output, and whether it fails."""
    promised, stated = record.tier_bound, record.stated
    limit = promised["constant"]
    failed = bool(row["unproved"]) or (0 < limit < row["proved"]) or \
        (limit > 0 and row["proved_absolute"] > promised["absolute"])
    absolute = {}
    if stated["absolute"]:
        absolute = {"proved_absolute": row["proved_absolute"],
                    "observed_absolute": stated["absolute"],
                    "tier_absolute": promised["absolute"]}
    row = {k: v for k, v in row.items() if k != "proved_absolute"}
    return {"function": record.function, "type": "f64", "tier": record.tier,
            "isa": record.isa, **row, "per_x": stated["per_x"],
            "observed": stated["constant"], **absolute,
            "tier_bound": None if record.tier == "strict" and
            record.function in COMPOSED else limit,
            "samples": compared}, failed


def write(path, source_hash, rows):
    with open(path, "w") as stream:
        json.dump({"hash": source_hash, "results": rows}, stream, indent=1)
        stream.write("\n")


def rounded_up(value):
    return f"{-(-value * 1000 // 1) / 1000:g}"


def print_table(rows):
    """The rows of docs/numerics.md: proved, rounded up; AVX-512, AVX2 and plain
    x86-64, or where they differ."""
    cells = {}
    for row in rows:
        text = rounded_up(row["proved"])
        if row["per_x"]:
            text += " + \\|x\\|"
        cells.setdefault(row["function"], {}).setdefault(
            row["tier"], []).append(text)
    for function, tiers in cells.items():
        columns = []
        for tier in ("strict", "default"):
            wide, narrow, plain = tiers[tier]
            different = [wide]
            if wide != narrow:
                different += [narrow, plain]
            elif plain != narrow:
                different.append(plain)
            columns.append("; ".join(different))
        print(f"| `{function}` | {' | '.join(columns)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--output")
    parser.add_argument("--only", help="functions, separated by commas; the "
                        "rows of others stay as the output file has them")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    sys.setrecursionlimit(10000)
    text = subprocess.run([options.trace], capture_output=True, text=True,
                          check=True).stdout
    source_hash, records = rec.load(text)
    kept = []
    if options.only:
        wanted = options.only.split(",")
        records = [r for r in records if r.function in wanted]
        if options.output:
            with open(options.output) as stream:
                old = json.load(stream)
            kept = [r for r in old["results"] if r["function"] not in wanted] \
                if old["hash"] == source_hash else []
    # Records of the same operations and goals share one proof.
    proofs, firsts = {}, []
    for record in records:
        record.proof = (record.key(), str(record.stated))
        if record.proof not in proofs:
            proofs[record.proof] = None
            firsts.append(record)
    with multiprocessing.Pool(options.processes) as pool:
        for record, (row, seconds) in zip(firsts, pool.imap(prove_record,
                                                            firsts)):
            proofs[record.proof] = row
            print(f"{record.title()}: proved {row['proved']:.4g}, "
                  f"{len(row['unproved'])} pieces without a bound "
                  f"({seconds:.0f} s)", flush=True)
    rows, failures, above = [], 0, 0
    for record in records:
        row, failed = finish(record, proofs[record.proof],
                             record.check_samples())
        rows.append(row)
        failures += failed
        notes = [f"no bound: {reason}" for reason in row["unproved"]]
        if failed and not notes:
            notes.append(f"above the tier's {row['tier_bound']:g}")
        if row["proved"] > row["observed"]:
            above += 1
            notes.append(f"proved {row['proved']:.4g} is above the observed "
                         f"{row['observed']:.4g}")
        for note in notes:
            print(f"{record.title()}: {note}")
    if options.output:
        write(options.output, source_hash, kept + rows)
    print_table(rows)
    print(f"{len(rows)} bounds, {above} above what the sweep observed, "
          f"{failures} unproved or above their tier")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
