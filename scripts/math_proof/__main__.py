"""Proves error bounds of the f64 vector math functions; see `./dev prove`.

Usage: python3 scripts/math_proof TRACE_PROGRAM [--output FILE] [--only NAME]

TRACE_PROGRAM is tessera-math-trace. Needs python-flint. Writes one row per
function, tier and ISA: the proved bound, the piece and cell that decide it, and
the pieces without a bound. Exit status 1 if a piece has no bound or a bound is
above what the tier promises.
"""

import argparse
import json
import subprocess
import sys
import time

import engine
import functions
import prover
import record as rec


def prove_record(record):
    record.patterns = engine.find_patterns(record)
    goal = prover.Goal(**record.stated)
    row = {"proved": 0.0, "piece": None, "cell": None, "pieces": 0,
           "cells": 0, "unproved": []}
    for piece in getattr(functions, record.function)(record):
        row["pieces"] += 1
        try:
            bound = prover.prove(record, piece, goal)
        except prover.Unproved as reason:
            row["unproved"].append(str(reason).split(", ", 1)[1])
            continue
        row["cells"] += bound.cells
        if bound.value > row["proved"]:
            row.update(proved=bound.value, piece=piece.name,
                       cell=list(bound.at))
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--output")
    parser.add_argument("--only", help="functions, separated by commas; the "
                        "rows of others stay as the output file has them")
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
    rows, known, failures = [], {}, 0
    for record in records:
        start = time.time()
        compared = record.check_samples()
        row = known.get((record.key(), str(record.stated)))
        if row is None:
            row = known[record.key(), str(record.stated)] = \
                prove_record(record)
        promised = record.tier_bound["constant"]
        failed = bool(row["unproved"]) or \
            0 < promised < row["proved"]
        failures += failed
        rows.append({"function": record.function, "type": "f64",
                     "tier": record.tier, "isa": record.isa, **row,
                     "per_x": record.stated["per_x"],
                     "stated": record.stated["constant"],
                     "tier_bound": promised, "samples": compared})
        print(f"{record.title()}: proved {row['proved']:.4g}, stated "
              f"{record.stated['constant']:.4g}, {len(row['unproved'])} pieces "
              f"without a bound ({time.time() - start:.0f} s)", flush=True)
        if options.output:
            with open(options.output, "w") as stream:
                json.dump({"hash": source_hash, "results": kept + rows},
                          stream, indent=1)
                stream.write("\n")
    print(f"{len(rows)} bounds, {failures} unproved or above their tier")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
