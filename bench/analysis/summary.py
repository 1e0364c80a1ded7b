#===- bench/analysis/summary.py - What a run says in few figures -----------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Figures of a run for pages and tables. Boundaries, thread counts and types
are never mixed: whatever is summed up is summed up per Group."""

from . import statistics
from .execution import cold_of, kernels_of
from .results import arm_by_role, arms_of, shape_of
from .units import count, percent, ratio_text, time_text


def median_of(arm):
    """Nanoseconds per call of an ok arm, or None."""
    if arm is None or arm["status"] != "ok":
        return None
    return (arm.get("statistics") or {}).get("median") or None


class Row:
    """One row as a page shows it."""

    def __init__(self, row):
        self.row, self.id, self.operator = row, row["id"], row["operator"]
        self.shape = shape_of(row)
        self.group = (row["boundary"], row["threads"], row["dtype"])
        self.subject = arm_by_role(row, "subject")
        self.time = median_of(self.subject)
        verdict = row.get("verdict") or {}
        self.result = verdict.get("result") or "failed"
        if row["status"] == "not implemented":
            self.result = "not implemented"
        elif self.time is None or row["status"] == "failed":
            self.result = "failed"
        measured = self.result in ("ahead", "level", "behind", "alone")
        self.ratio = (verdict.get("ratio") or None) if measured else None
        self.over_floor = (verdict.get("overFloor") or None) if measured \
            else None
        self.best = (verdict.get("bestPeer") or None) if self.ratio else None
        noise = row.get("noise") or {}
        self.noise = noise.get("p90") if noise.get("ratios") else None
        # Comparisons by the arm's name.
        self.comparisons = {item["arm"]: item
                            for item in row.get("comparisons") or []}
        self.kernels = kernels_of(self.subject)
        self.cold = cold_of(self.subject) \
            if row["boundary"] in ("cold", "disk") else []
        self.why = row.get("why") or (self.subject or {}).get("why") or ""

    @property
    def plan(self):
        """The plans of its kernels in one line."""
        return " · ".join(kernel.plan for kernel in self.kernels
                          if kernel.plan)

    @property
    def best_time(self):
        arm = next((arm for arm in arms_of(self.row)
                    if arm["name"] == self.best), None)
        return median_of(arm)

    @property
    def interval(self):
        """(low, high) of the ratio over the best peer, or None."""
        item = self.comparisons.get(self.best)
        return (item["low"], item["high"]) if item else None

    @property
    def intensity(self):
        """Operations per byte, or None."""
        work = self.row.get("work") or {}
        moved = (work.get("bytesRead") or 0) + (work.get("bytesWritten") or 0)
        return work["flops"] / moved if moved and work.get("flops") else None

    @property
    def flops_per_second(self):
        work = self.row.get("work") or {}
        if not self.time or not work.get("flops"):
            return None
        return work["flops"] / self.time * 1e9

    def cells(self):
        """Texts: time, best peer, its time, ratio, interval, noise, floor."""
        interval = self.interval
        return {
            "time": time_text(self.time), "best": self.best or "–",
            "best_time": time_text(self.best_time),
            "ratio": ratio_text(self.ratio),
            "interval": f"{ratio_text(interval[0])} to "
                        f"{ratio_text(interval[1])}" if interval else "–",
            "noise": percent(self.noise),
            "floor": ratio_text(self.over_floor), "result": self.result}


def group_text(group):
    boundary, threads, dtype = group
    return f"{boundary}, {count(threads, 'thread')}, {dtype}"


class Group:
    """The rows of one boundary, thread count and type."""

    def __init__(self, key, rows):
        self.key, self.rows, self.title = key, rows, group_text(key)
        ratios = [row.ratio for row in rows if row.ratio]
        floors = [row.over_floor for row in rows if row.over_floor]
        noises = [row.noise for row in rows if row.noise is not None]
        self.compared = len(ratios)
        self.mean = statistics.geometric_mean(ratios)
        self.floor_mean = statistics.geometric_mean(floors)
        self.noise = statistics.median(noises) if noises else None
        self.worst = max((row for row in rows if row.ratio),
                         key=lambda row: row.ratio, default=None)
        self.counts = {result: sum(row.result == result for row in rows)
                       for result in ("ahead", "level", "behind", "alone",
                                      "failed", "not implemented")}
        self.bad_arms = sum(arm["status"] in ("wrong", "failed")
                            for row in rows for arm in arms_of(row.row))


def grouped(rows, key):
    """Lists of rows by key, in the order of first appearance."""
    found = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


class Trouble:
    """What is wrong, failed or unsupported for one reason, and where."""

    def __init__(self, arm, status, why, rows):
        self.arm, self.status, self.why, self.rows = arm, status, why, rows


class PeerLine:
    """One peer over the whole run."""

    def __init__(self, peer, rows, several):
        self.name, self.status = peer["name"], peer["status"]
        self.version = peer.get("version") or ""
        self.math_mode = peer.get("mathMode") or ""
        self.why = peer.get("why") or ""
        arms = [(row, arm) for row in rows for arm in arms_of(row.row)
                if arm["role"] == "peer" and
                (arm.get("peer") or arm["name"]) == peer["name"]]
        self.counts = {status: sum(arm["status"] == status for _, arm in arms)
                       for status in ("ok", "wrong", "failed", "slow",
                                      "unsupported")}
        self.best = sum(row.best == arm["name"] for row, arm in arms)
        # Geometric means per group, never over all.
        self.means = []
        for key, part in grouped(arms, lambda item: item[0].group).items():
            ratios = [row.comparisons[arm["name"]]["median"]
                      for row, arm in part if arm["name"] in row.comparisons]
            if ratios:
                text = ratio_text(statistics.geometric_mean(ratios))
                self.means.append(f"{text} ({group_text(key)})" if several
                                  else text)


class Run:
    """A result file as a page shows it."""

    def __init__(self, result):
        self.result = result
        self.run, self.environment = result["run"], result["environment"]
        self.title = f"{self.run['suite']} on {self.environment['machine']}"
        self.rows = [Row(row) for row in result["rows"]]
        self.groups = [Group(key, rows) for key, rows in
                       grouped(self.rows, lambda row: row.group).items()]
        self.operators = grouped(self.rows, lambda row: row.operator)
        self.losses = sorted((row for row in self.rows
                              if row.result == "behind"),
                             key=lambda row: -row.ratio)
        self.failed = [row for row in self.rows if row.result == "failed"]
        self.missing_rows = [row for row in self.rows
                             if row.result == "not implemented"]
        self.peers = [PeerLine(peer, self.rows, len(self.groups) > 1)
                      for peer in result["peers"]]
        self.troubles = []
        found = {}
        for row in self.rows:
            for arm in arms_of(row.row):
                if arm["status"] != "ok":
                    key = (arm["status"], arm["name"], arm.get("why") or "")
                    found.setdefault(key, []).append(row.id)
        order = ["wrong", "failed", "missing", "slow", "unsupported"]
        for (status, name, why), ids in sorted(
                found.items(), key=lambda item: order.index(item[0][0])):
            self.troubles.append(Trouble(name, status, why, ids))

    def operator_groups(self, operator):
        return [Group(key, rows) for key, rows in grouped(
            self.operators[operator], lambda row: row.group).items()]


# --- Markdown --------------------------------------------------------------


def escape(text):
    """Text that is no Markdown and no HTML in a line or a cell."""
    text = " ".join(str(text).split())
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def markdown(runs):
    """A table per group of every run, losses and failures stated first."""
    lines = []
    for run in runs:
        lines += [f"## {escape(run.title)}", ""]
        facts = [run.environment.get("cpu"), run.environment.get("isa"),
                 f"revision {run.run.get('revision') or 'unknown'}" +
                 (" with changes" if run.run.get("dirty") else ""),
                 run.run.get("started")]
        lines += [", ".join(escape(fact) for fact in facts if fact) + ".", ""]
        for peer in run.peers:
            if peer.status != "ok":
                lines += [f"Peer {escape(peer.name)} is {peer.status}: "
                          f"{escape(peer.why)}.", ""]
        for trouble in run.troubles:
            lines += [f"{escape(trouble.arm)} is {trouble.status} in "
                      f"{count(len(trouble.rows), 'row')}: "
                      f"{escape(trouble.why)}.", ""]
        if not run.rows:
            lines += ["The run has no rows.", ""]
        for group in run.groups:
            counts = ", ".join(f"{number} {result}" for result, number in
                               group.counts.items() if number)
            lines += [f"### {escape(group.title)}", "",
                      f"{count(len(group.rows), 'row')}: {counts}."]
            if group.mean:
                lines.append(f"Time over the best peer: geometric mean "
                             f"{ratio_text(group.mean)}, worst row "
                             f"{ratio_text(group.worst.ratio)} "
                             f"({escape(group.worst.operator)} "
                             f"{escape(group.worst.shape)}).")
            lines += ["", "| operator | shape | time | best peer | its time | "
                      "ratio | 95 % interval | noise | over floor | |",
                      "|---|---|--:|---|--:|--:|--:|--:|--:|---|"]
            for row in group.rows:
                cells = {name: escape(text)
                         for name, text in row.cells().items()}
                if row.result in ("failed", "not implemented") and row.why:
                    cells["result"] += f": {escape(row.why)}"
                lines.append("| {} | {} | {time} | {best} | {best_time} | "
                             "{ratio} | {interval} | {noise} | {floor} | "
                             "{result} |".format(escape(row.operator),
                                                 escape(row.shape), **cells))
            lines.append("")
    return "\n".join(lines)
