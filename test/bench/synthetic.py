#===- test/bench/synthetic.py - Made-up result files -----------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Valid result files made from a seed: the audit finds nothing in them. Times
are drawn around a model of memory and arithmetic, so that pages look real."""

import hashlib
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from analysis import statistics  # noqa: E402
from analysis.ceilings import Ceiling, floor_of  # noqa: E402
from analysis.operators import arrays_of, load_table  # noqa: E402
from analysis.results import dump  # noqa: E402
from analysis.suites import row_id  # noqa: E402

TABLE = load_table()
SHAPES = [(17, 65), (64, 256), (129, 768), (257, 1538), (1024, 4096),
          (1024, 4097), (137, 1023), (513, 2051)]
# Time over the time of the subject, and what else is known of a peer.
PEERS = {
    "openblas": (1.6, "0.3.21", "IEEE f32, no flush"),
    "onednn": (1.15, "2.6.0", "IEEE f32, no flush"),
    "torch": (3.1, "2.5.1", "default"),
    "inductor": (2.2, "2.5.1", "default"),
}
FLOPS = {"copy": 0, "softmax": 9, "rms_norm": 4, "layer_norm": 8, "row_sum": 1,
         "swiglu": 12}
BANDWIDTH = {16384: 180e9, 1 << 20: 62e9, 1 << 26: 19e9}


def make_hash(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def make_ceilings(rng, threads):
    rows = []

    def add(name, nanoseconds, inner=100, **fields):
        samples = [round(nanoseconds * inner * rng.uniform(1, 1.02))
                   for _ in range(15)]
        item = {"name": name, "threads": threads, "inner": inner,
                "samples": samples, **fields}
        item.setdefault("workingSetBytes", 0)
        item.update(Ceiling(item).figures())
        rows.append(item)

    for size, rate in BANDWIDTH.items():
        add("copy", size / (rate * threads) * 1e9, workingSetBytes=size,
            readBytes=size // 2, writtenBytes=size // 2)
    add("fma-f32", 1e6 / (117e9 * threads) * 1e9, flops=1000000)
    if threads > 1:
        add("fork-join", 2100)
    return rows


def measure(row, arm, rng, true_time, rounds, per_turn):
    """Samples and evidence of an ok arm."""
    outputs = arrays_of(row, TABLE)[1].values()
    arm["inner"] = max(1, round(200000 / true_time))
    arm["samples"] = []
    for _ in range(rounds):
        drift = rng.gauss(1, 0.004)
        arm["samples"].append([
            max(1, round(true_time * arm["inner"] * drift *
                         (1 + abs(rng.gauss(0, 0.008)))))
            for _ in range(per_turn)])
    medians = statistics.round_medians(arm["samples"], arm["inner"])
    arm["statistics"] = {"roundMedians": medians,
                         "median": statistics.median(medians),
                         "low": statistics.quantile(medians, 0.1),
                         "high": statistics.quantile(medians, 0.9)}
    compared = [{"output": item.name, "elements": item.elements,
                 "compared": item.elements, "wrong": 0, "maxError": 1e-7,
                 "bound": 4e-7, "boundUsed": 0.25, "factor": 1}
                for item in outputs if not item.optional]
    arm["verification"] = {"before": compared,
                           "after": [dict(item) for item in compared]}
    same = "subject" if arm["role"] == "control" else arm["name"]
    same = "subject" if arm["role"] == "subject" else same
    arm["outputHashes"] = [{item["output"]: make_hash(row["id"], same, seed)
                            for item in compared} for seed in row["seeds"]]
    arm["guards"] = [True] * rounds


def derive(row):
    """Comparisons, noise and verdict from the arms."""
    arms = row["arms"]
    subject = arms[0]
    row["comparisons"], row["noise"] = [], {}
    row["verdict"] = {"result": "failed"}
    if subject["status"] != "ok":
        return
    mine = subject["statistics"]["roundMedians"]
    for arm in arms[1:]:
        if arm["status"] != "ok":
            continue
        ratios = [a / b for a, b in zip(mine,
                                        arm["statistics"]["roundMedians"])]
        if arm["role"] == "control":
            row["noise"] = {"ratios": ratios,
                            "median": statistics.median(ratios),
                            "p90": statistics.noise_of(ratios)}
            continue
        low, high = statistics.bootstrap_median(ratios,
                                                f"{row['id']}/{arm['name']}")
        row["comparisons"].append({
            "arm": arm["name"], "ratios": ratios,
            "median": statistics.median(ratios), "low": low, "high": high,
            "min": min(ratios), "max": max(ratios)})
    median = subject["statistics"]["median"]
    verdict = row["verdict"] = {"result": "alone"}
    if row["floor"]["by"] != "none":
        verdict["overFloor"] = median / row["floor"]["nanoseconds"]
    peers = [arm for arm in arms if arm["role"] == "peer" and
             arm["status"] == "ok"]
    if peers:
        best = min(peers, key=lambda arm: arm["statistics"]["median"])
        ratio = next(item["median"] for item in row["comparisons"]
                     if item["arm"] == best["name"])
        noise = row["noise"].get("p90", 0)
        verdict.update(bestPeer=best["name"], ratio=ratio,
                       result="level" if abs(ratio - 1) <= noise else
                       "ahead" if ratio < 1 else "behind")


def make_row(operator, dims, rng, ceilings, peers, threads=1, dtype="f32",
             seed=1, rounds=12, per_turn=5, statuses=None, speed=1.0,
             boundary="native"):
    """One implemented row. `statuses` gives arms another status than ok, and
    the subject takes `speed` times as long as usual."""
    statuses = statuses or {}
    row = {"operator": operator, "dtype": dtype, "dims": dims, "settings": {},
           "boundary": boundary, "threads": threads, "status": "ok", "why": ""}
    row["id"] = row_id(row, TABLE)
    inputs, outputs = arrays_of(row, TABLE)
    outputs = [item for item in outputs.values() if not item.optional]
    inputs = [item for item in inputs.values() if not item.optional]
    row["work"] = {
        "bytesRead": sum(item.bytes for item in inputs),
        "bytesWritten": sum(item.bytes for item in outputs),
        "flops": 2 * dims["m"] * dims["n"] * dims["k"] if operator == "gemm"
        else FLOPS.get(operator, 2) * max(item.elements for item in inputs)}
    nanoseconds, by, name = floor_of(
        [Ceiling(item) for item in ceilings], threads, row["work"])
    row["floor"] = {"nanoseconds": nanoseconds, "by": by, "ceiling": name}
    arms = [{"name": "tessera", "role": "subject", "peer": "tessera",
             "version": "0.1.0", "mathMode": "strict"},
            {"name": "tessera-again", "role": "control", "peer": "tessera",
             "version": "0.1.0", "mathMode": "strict"}]
    arms += [{"name": peer["name"], "role": "peer", "peer": peer["name"],
              "version": peer["version"], "mathMode": peer["mathMode"]}
             for peer in peers if peer["status"] == "ok"]
    taking_part = [index for index, arm in enumerate(arms)
                   if statuses.get(arm["name"], "ok") == "ok"]
    design = statistics.balanced_orders(len(taking_part))
    row["order"] = []
    while design and len(row["order"]) < rounds:
        row["order"] += [[taking_part[index] for index in order]
                         for order in design]
    wanted, rounds = rounds, len(row["order"])
    row["seeds"] = [seed + 1 + number for number in range(rounds)]
    row["inputs"] = []
    for item in inputs:
        hashes = [make_hash(item.name, seed) for seed in row["seeds"]]
        row["inputs"].append({"name": item.name, "bytes": item.bytes,
                              "before": hashes, "after": list(hashes)})
    base = row["floor"]["nanoseconds"] * rng.uniform(1.05, 1.9) + 40
    for arm in arms:
        arm.update(boundary=boundary, threads=threads, why="", detail={},
                   status=statuses.get(arm["name"], "ok"))
        code = "tessera" if arm["role"] != "peer" else arm["name"]
        arm["identity"] = {"object": make_hash(row["id"], code)}
        if arm["status"] != "ok":
            arm["why"] = {"unsupported": f"no form of {operator}",
                          "failed": "killed by SIGSEGV",
                          "wrong": "3 of 1105 elements of y are wrong"
                          }.get(arm["status"], "not installed")
            continue
        time = base * (speed if arm["role"] != "peer" else 1)
        if arm["role"] == "peer":
            time *= PEERS[arm["name"]][0] * rng.uniform(0.75, 1.3)
        measure(row, arm, rng, time, rounds, per_turn)
    row["arms"] = arms
    row["rounds"], row["samplesPerTurn"] = wanted, per_turn
    if statuses.get("tessera", "ok") != "ok":
        row["status"], row["why"] = "failed", arms[0]["why"]
    derive(row)
    return row


def not_implemented(operator, dims, threads=1):
    row = {"operator": operator, "dtype": "f32", "dims": dims, "settings": {},
           "boundary": "native", "threads": threads,
           "status": "not implemented", "why": f"no operator {operator}",
           "arms": []}
    row["id"] = row_id(row, TABLE)
    return row


def make_document(seed=1, operators=("softmax", "rms_norm", "row_sum"),
                  shapes=SHAPES[:2], peers=tuple(PEERS), threads=(1,),
                  rounds=12, per_turn=5, gaps=True, statuses=None, speed=1.0,
                  gemm=(), boundary="native"):
    """A whole result. `gaps` adds a row that is not implemented, a missing peer
    and an unsupported one; `statuses` maps (operator, shape number) to
    make_row's."""
    rng = random.Random(seed)
    listed = [{"name": name, "status": "ok", "version": PEERS[name][1],
               "mathMode": PEERS[name][2], "why": ""} for name in peers]
    if gaps:
        listed.append({"name": "mkl", "status": "missing", "version": "",
                       "mathMode": "", "why": "libmkl_rt.so is not installed"})
    ceilings = [item for count in threads
                for item in make_ceilings(rng, count)]
    rows = []
    for count in threads:
        for operator in operators:
            for index, (height, width) in enumerate(shapes):
                arms = dict((statuses or {}).get((operator, index), {}))
                if gaps and "openblas" in peers:
                    arms.setdefault("openblas", "unsupported")
                rows.append(make_row(
                    operator, {"rows": height, "cols": width}, rng, ceilings,
                    listed, threads=count, seed=seed, rounds=rounds, per_turn=per_turn,
                    statuses=arms, speed=speed, boundary=boundary))
        for m, n, k in gemm:
            rows.append(make_row(
                "gemm", {"m": m, "n": n, "k": k}, rng, ceilings, listed,
                threads=count, seed=seed, rounds=rounds, per_turn=per_turn, speed=speed))
        if gaps:
            rows.append(not_implemented("top_k", {"rows": 128, "cols": 257},
                                        count))
    return {
        "schema": "tessera-bench", "schemaVersion": 1,
        "run": {"id": make_hash(seed), "started": "2026-11-29T17:00:00Z",
                "finished": "2026-11-29T17:04:10Z",
                "command": "tessera bench --suite made-up --json r.json",
                "suite": "made-up", "seed": seed, "rowSeconds": 20.0,
                "rounds": rounds,
                "samplesPerTurn": per_turn,
                "rowIds": [row["id"] for row in rows],
                "passed": not any(arm["status"] in ("failed", "wrong")
                                  for row in rows for arm in row["arms"]),
                "revision": "abc1234",
                "dirty": False, "version": "0.1.0"},
        "environment": {
            "machine": "made-up-2core", "cpu": "An x86-64 processor",
            "cores": max(threads), "isa": "avx512", "governor": "performance",
            "frequencyMHz": 3700, "memoryBytes": 8 << 30,
            "system": "Linux 6.1", "affinity": list(range(max(threads))),
            "caches": [{"level": 1, "kind": "data", "bytes": 32768,
                        "sharedBy": 1},
                       {"level": 2, "kind": "unified", "bytes": 1 << 20,
                        "sharedBy": 1},
                       {"level": 3, "kind": "unified", "bytes": 32 << 20,
                        "sharedBy": 2}]},
        "peers": listed, "ceilings": {"rows": ceilings}, "rows": rows}


def write(path, document):
    pathlib.Path(path).write_bytes(dump(document))
    return path


if __name__ == "__main__":
    # For looking at a page: synthetic.py OUT.json [SEED]
    write(sys.argv[1], make_document(
        int(sys.argv[2]) if len(sys.argv) > 2 else 1,
        operators=("softmax", "rms_norm", "layer_norm", "row_sum", "swiglu"),
        shapes=SHAPES, threads=(1, 2),
        statuses={("softmax", 1): {"torch": "failed"},
                  ("row_sum", 2): {"onednn": "wrong"},
                  ("swiglu", 0): {"tessera": "failed",
                                  "tessera-again": "failed"}},
        gemm=((64, 64, 64), (512, 512, 512), (127, 61, 193),
              (1, 4096, 4096))))
