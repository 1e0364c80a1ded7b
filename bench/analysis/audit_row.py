#===- bench/analysis/audit_row.py - What the audit demands of a row --------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Checks of one row: everything derived is computed again from raw samples, and
what the row says of itself must agree. Each check calls
`report(arm, field, text)` per finding; arm is "" for the row itself."""

import math

from . import statistics
from .audit_evidence import Evidence
from .ceilings import floor_of
from .operators import REWRITE, arrays_of
from .results import arm_by_role, arms_of
from .suites import parts_of, row_id

# A peer that is not timed was this many times slower than the fastest arm when
# it was calibrated; half of that must hold for the figures of the rounds.
SLOW_FACTOR = 20
# What a call of its own takes while it is calibrated may be far more than later:
# threads have to be woken. Rows whose turns take less than this part of the
# time of a row have no reason for fewer samples.
LEAST_PART = {"native": 0.25, "prepared": 0.25, "batch": 0.25, "device": 0.25}
LEAST_PART_OF_SINGLE_CALLS = 0.005
CALL_SAMPLES = 25


def describe(value):
    return "none" if value is None else repr(value)


class RowAudit(Evidence):
    """One row with what its checks share."""

    def __init__(self, row, result, ceilings, table, report):
        self.row, self.run = row, result["run"]
        self.environment, self.peers = result["environment"], result["peers"]
        self.ceilings, self.table, self.report = ceilings, table, report
        self.arms = arms_of(row)
        self.subject = arm_by_role(row, "subject")
        self.control = arm_by_role(row, "control")
        self.orders = row.get("order") or []
        self.rounds = len(self.orders)
        self.per_turn = row.get("samplesPerTurn") or self.common_count()
        # A row may have ended early as a whole; it then says why.
        self.ended = row["status"] == "failed" and self.subject is not None \
            and self.subject["status"] == "ok"
        if self.ended:
            self.rounds = len(row.get("seeds") or [])
        # Round medians from raw samples, by the arm's name.
        self.medians = {}

    def common_count(self):
        """The samples per turn of a row that does not record them: calls have
        more than the run says, slow rows fewer, and all turns the same."""
        counts = [len(values) for arm in self.arms
                  for values in arm.get("samples") or []]
        return max(set(counts), key=counts.count) if counts else \
            self.run["samplesPerTurn"]

    def check(self):
        self.check_id()
        self.check_arms()
        self.check_peers()
        if self.row["status"] == "not implemented":
            self.check_not_implemented()
            if not self.orders:  # Nothing was measured, no peer either.
                return
        self.check_order()
        arrays = self.arrays()
        for arm in self.arms:
            self.check_samples(arm)
            if not self.ended:
                self.check_evidence(arm, arrays)
        if not self.ended:
            self.check_inputs(arrays)
        self.check_slow()
        self.check_effort()
        self.check_copies()
        self.check_identity()
        self.check_status()
        if self.subject and self.subject["status"] == "ok":
            self.check_comparisons()
            self.check_noise()
            self.check_floor(arrays)
        self.check_verdict()

    def expect(self, arm, field, found, expected):
        """A figure that was computed again."""
        if not statistics.close(found, expected):
            self.report(arm, field, f"found {describe(found)}, expected "
                        f"{expected!r} from the raw samples")

    def expect_list(self, arm, field, found, expected):
        found = found or []
        if len(found) != len(expected):
            self.report(arm, field, f"found {len(found)} figures, expected "
                        f"{len(expected)}")
            return
        for index, (one, other) in enumerate(zip(found, expected)):
            self.expect(arm, f"{field}[{index}]", one, other)

    # --- What the row is ---------------------------------------------------

    def check_id(self):
        row = self.row
        expected = row_id(row, self.table)
        if row["id"] != expected and (
                row["status"] == "ok" or
                parts_of(row["id"]) != parts_of(expected)):
            self.report("", "id", f"expected {expected} from the row's own "
                        "fields")
        cores = self.environment["cores"]
        affinity = self.environment.get("affinity")
        limit = len(affinity) if affinity else cores
        if row["threads"] > limit:
            self.report("", "threads", f"found {row['threads']}, expected at "
                        f"most the {limit} cores of the run")

    def check_arms(self):
        names = [arm["name"] for arm in self.arms]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.report(name, "name", "found twice, expected once in a row")
        for role in ("subject", "control"):
            found = sum(arm["role"] == role for arm in self.arms)
            needed = self.row["status"] == "ok"
            if found > 1 or (needed and not found):
                self.report("", "arms", f"found {found} arms as {role}, "
                            "expected 1")
        for arm in self.arms:
            for field in ("boundary", "threads"):
                if arm[field] != self.row[field]:
                    self.report(arm["name"], field,
                                f"found {describe(arm[field])}, expected the "
                                f"row's {describe(self.row[field])}")
            if arm["role"] != "peer" and \
                    (arm.get("peer") or "tessera") != "tessera":
                self.report(arm["name"], "role", f"found "
                            f"{describe(arm['role'])} of {arm['peer']}, "
                            "expected 'peer'")
            if arm.get("vendor") and arm["role"] != "variant":
                self.report(arm["name"], "vendor", f"found the library "
                            f"{arm['vendor']} in the arm's role "
                            f"{describe(arm['role'])}, expected 'variant'")
            detail = arm.get("detail")
            if isinstance(detail, dict) and \
                    str(detail.get("threads", arm["threads"])) != \
                    str(arm["threads"]):
                self.report(arm["name"], "detail.threads",
                            f"found {describe(detail['threads'])}, expected "
                            f"{arm['threads']}")
            if arm["status"] != "ok" and not arm.get("why"):
                self.report(arm["name"], "why", "found no reason for the "
                            f"status {describe(arm['status'])}")

    def check_peers(self):
        known = {peer["name"]: peer for peer in self.peers}
        present = set()
        for arm in self.arms:
            if arm["role"] != "peer":
                continue
            name = arm.get("peer") or arm["name"]
            present.add(name)
            peer = known.get(name)
            if not peer:
                self.report(arm["name"], "peer", f"found {describe(name)}, "
                            "which is not among the peers of the run")
                continue
            if peer["status"] != "ok" and arm["status"] in ("ok", "wrong"):
                self.report(arm["name"], "status",
                            f"found {describe(arm['status'])}, but the run "
                            f"says that peer {name} is {peer['status']}")
            if peer["status"] == "ok" and arm["status"] == "missing":
                self.report(arm["name"], "status", "found 'missing', but the "
                            f"run says that peer {name} is ok")
            for field in ("version", "mathMode"):
                if arm["status"] == "ok" and peer.get(field) and \
                        arm.get(field) != peer[field]:
                    self.report(arm["name"], field,
                                f"found {describe(arm.get(field))}, expected "
                                f"{describe(peer[field])} as the run says")
        if not self.arms and self.row["status"] != "ok":
            return  # The row failed as a whole, or there is no operator.
        for name, peer in known.items():
            if peer["status"] == "ok" and name not in present:
                self.report(name, "arms", "found no arm of this peer, expected "
                            "one: what fails or is unsupported stays in the "
                            "row")

    def check_not_implemented(self):
        if not self.row.get("why"):
            self.report("", "why", "found no reason for the status 'not "
                        "implemented'")
        if self.subject and (self.subject["status"] != "unsupported" or
                             self.subject.get("samples")):
            self.report(self.subject["name"], "status", f"found "
                        f"{describe(self.subject['status'])} with "
                        f"{len(self.subject.get('samples') or [])} rounds of "
                        "samples, expected 'unsupported' without any in a row "
                        "that is not implemented")
        result = (self.row.get("verdict") or {}).get("result")
        if result not in (None, "failed", "not implemented"):
            self.report("", "verdict.result", f"found {describe(result)} for "
                        "a row that is not implemented")

    def arrays(self):
        """(inputs, outputs) of the operator, or None."""
        try:
            arrays = arrays_of(self.row, self.table)
        except KeyError as error:
            if self.row.get("status") != "ok" and not any(
                    arm["status"] == "ok" for arm in self.arms):
                # Nothing was measured, for an operator that has changed since.
                return None
            self.report("", "dims", f"found no extent of {error.args[0]}, which "
                        f"{self.row['operator']} has")
            return None
        if not arrays and self.row.get("status") == "failed" and not self.arms:
            # Nothing was measured: the run ended before this row.
            return None
        if not arrays:
            self.report("", "operator", f"found {describe(self.row['operator'])}"
                        ", which the table of operators does not have, so that "
                        "the oracle's size cannot be checked; " + REWRITE)
        return arrays

    # --- Order and samples -------------------------------------------------

    def takes_part(self, number):
        return bool(self.orders) and number in self.orders[0]

    def check_order(self):
        timed = [arm for arm in self.arms if arm["status"] == "ok"]
        if not self.orders:
            if timed:
                self.report("", "order", "found no order of the arms")
            return
        problem = statistics.imbalance(self.orders)
        if problem:
            self.report("", "order", problem)
        for number, arm in enumerate(self.arms):
            if not self.takes_part(number) and arm["status"] == "ok":
                self.report(arm["name"], "order", "found no turn of this arm, "
                            "expected one per round")
        for number in self.orders[0]:
            if number >= len(self.arms):
                self.report("", "order", f"found arm {number}, expected one "
                            f"below {len(self.arms)}")
        design = len(statistics.balanced_orders(len(self.orders[0]))) or 1
        # Slow rows get fewer rounds: one design, or what the row says.
        wanted = self.row.get("rounds") or self.run["rounds"]
        expected = -(-wanted // design) * design
        if len(self.orders) != expected and (
                self.row.get("rounds") or len(self.orders) != design):
            self.report("", "order", f"found {len(self.orders)} rounds, "
                        f"expected {expected}: {wanted} in whole designs of "
                        f"{design}")
        seeds = self.row.get("seeds") or []
        if len(seeds) != self.rounds:
            self.report("", "seeds", f"found {len(seeds)}, expected "
                        f"{self.rounds}, one per round")
        elif seeds != [self.run["seed"] + 1 + index
                       for index in range(len(seeds))]:
            self.report("", "seeds", "found others, expected those "
                        f"that follow {self.run['seed']}, the run's: a round "
                        "was dropped or others were put in its place")
        if len(set(seeds)) < len(seeds):
            self.report("", "seeds", "found a seed twice, expected fresh data "
                        "in every round")

    def check_samples(self, arm):
        name, samples = arm["name"], arm.get("samples") or []
        ok = arm["status"] == "ok"
        if not samples and not ok:
            if (arm.get("statistics") or {}).get("median"):
                self.report(name, "statistics", "found figures without samples")
            return
        if ok and len(samples) != self.rounds:
            self.report(name, "samples", f"found {len(samples)} rounds, "
                        f"expected {self.rounds}")
        if len(samples) > self.rounds:
            self.report(name, "samples", "found more rounds than orders")
        bad = False
        for index, values in enumerate(samples):
            if len(values) != self.per_turn:
                self.report(name, f"samples[{index}]", f"found {len(values)} "
                            f"samples, expected {self.per_turn}, as many as in "
                            "every turn of the row")
            for value in values:
                if value <= 0 or value != int(value):
                    self.report(name, f"samples[{index}]", f"found {value}, "
                                "expected whole nanoseconds above 0")
                    bad = True
            bad = bad or not values
        if self.row["boundary"] in ("call", "cold", "disk") and \
                arm.get("inner", 1) != 1:
            self.report(name, "inner", f"found {arm['inner']}, expected 1: "
                        f"samples of '{self.row['boundary']}' are single calls")
        if not arm.get("inner"):
            self.report(name, "inner", "found none, expected the calls of a "
                        "sample")
            return
        if bad:
            return
        medians = statistics.round_medians(samples, arm["inner"])
        self.medians[name] = medians
        found = arm.get("statistics")
        if not found:
            if ok:
                self.report(name, "statistics", "found none")
            return
        self.expect_list(name, "statistics.roundMedians",
                         found.get("roundMedians"), medians)
        for field, value in (("median", statistics.median(medians)),
                             ("low", statistics.quantile(medians, 0.1)),
                             ("high", statistics.quantile(medians, 0.9))):
            self.expect(name, f"statistics.{field}", found.get(field), value)

    def check_slow(self):
        """Only a peer far behind may stay without samples for its time."""
        fastest = min((statistics.median(medians)
                       for medians in self.medians.values() if medians),
                      default=None)
        for arm in self.arms:
            if arm["status"] != "slow":
                continue
            name, call = arm["name"], arm.get("callNanoseconds") or 0
            if arm["role"] != "peer":
                self.report(name, "status", "found 'slow', which only a peer "
                            "may be")
            if arm.get("samples"):
                self.report(name, "samples", "found samples of an arm that was "
                            "too slow to be timed")
            if not (arm.get("verification") or {}).get("before"):
                self.report(name, "verification.before", "found none, expected "
                            "every output compared: a slow peer is checked "
                            "before it is left out")
            limit = self.run.get("rowSeconds")
            turns = call * (arm.get("inner") or 1) * 2 * self.run["rounds"]
            if limit and turns <= limit * 1e9:
                self.report(name, "callNanoseconds", f"found {call}, whose "
                            f"turns take no more than the {limit:g} s of a row")
            if fastest is not None and call < SLOW_FACTOR / 2 * fastest:
                self.report(name, "callNanoseconds", f"found {call}, expected "
                            f"at least {SLOW_FACTOR / 2 * fastest:g}, "
                            f"{SLOW_FACTOR // 2} times the fastest arm's, of a "
                            "peer that is not timed")

    def check_effort(self):
        """Fewer samples or rounds than the run wanted need a slow row."""
        limit, run = self.run.get("rowSeconds"), self.run
        timed = [self.arms[number] for number in
                 (self.orders[0] if self.orders else [])
                 if number < len(self.arms)]
        if not limit or not timed or not all(
                self.medians.get(arm["name"]) for arm in timed):
            return
        design = len(statistics.balanced_orders(len(timed)))
        rounds = -(-run["rounds"] // design) * design
        wanted = CALL_SAMPLES if self.row["boundary"] == "call" else \
            run["samplesPerTurn"]
        # A warming call and the samples, of every arm in every round.
        call = sum(statistics.median(self.medians[arm["name"]]) * arm["inner"]
                   for arm in timed) * 1e-9
        least = limit * LEAST_PART.get(self.row["boundary"],
                                       LEAST_PART_OF_SINGLE_CALLS)
        if self.row.get("samplesPerTurn") and \
                self.per_turn < wanted and call * rounds * (wanted + 1) < least:
            self.report("", "samplesPerTurn", f"found {self.per_turn}, "
                        f"expected {wanted}: there was time for all")
        told = self.row.get("rounds")
        if told and told != run["rounds"] and (
                told != design or call * rounds * 2 < least):
            self.report("", "rounds", f"found {told}, expected "
                        f"{run['rounds']}" + (
                            f", or {design} in a slow row" if told != design
                            else ": there was time for all"))

    def check_copies(self):
        """The samples of a turn are never those of another turn."""
        seen = {}
        everything = [int(value) for arm in self.arms
                      for values in arm.get("samples") or []
                      for value in values]
        tick = math.gcd(*everything) or 1
        for arm in self.arms:
            samples = arm.get("samples") or []
            flat = [value for values in samples for value in values]
            span = (statistics.quantile(flat, 0.9) -
                    statistics.quantile(flat, 0.1)) / tick
            for index, values in enumerate(samples):
                # Few or coarse samples may be equal by chance.
                if span < 2 or len(values) * math.log10(span) < 9:
                    continue
                place = f"{arm['name']} round {index}"
                other = seen.setdefault(tuple(values), place)
                if other != place:
                    self.report(arm["name"], f"samples[{index}]", "found the "
                                f"samples of {other} again")

    def check_status(self):
        subject, status = self.subject, self.row["status"]
        if status == "ok" and subject and subject["status"] != "ok":
            self.report("", "status", "found 'ok', but the subject is "
                        f"{describe(subject['status'])}")
        if status == "failed":
            if all(arm["status"] == "ok" for arm in self.arms) and self.arms:
                self.report("", "status", "found 'failed', but every arm is ok")
            if not self.row.get("why") and not any(
                    arm.get("why") for arm in self.arms):
                self.report("", "why", "found no reason for the status "
                            "'failed'")

    # --- Derived figures ---------------------------------------------------

    def ratios(self, arm):
        """The subject's round medians over an arm's, or None."""
        mine = self.medians.get(self.subject["name"])
        other = self.medians.get(arm["name"])
        if not mine or not other or len(mine) != len(other):
            return None
        return [one / two for one, two in zip(mine, other)]

    def check_comparisons(self):
        found = {}
        for item in self.row.get("comparisons") or []:
            if item["arm"] in found:
                self.report(item["arm"], "comparisons", "found twice")
            found[item["arm"]] = item
        arms = {arm["name"]: arm for arm in self.arms}
        for name, arm in arms.items():
            if arm["role"] in ("peer", "variant") and \
                    arm["status"] == "ok" and name not in found:
                self.report(name, "comparisons", "found none with this arm")
        for name, item in found.items():
            arm = arms.get(name)
            if not arm or arm["status"] != "ok" or arm is self.subject:
                self.report(name, "comparisons", "found one with an arm that "
                            "is not an ok peer")
                continue
            ratios = self.ratios(arm)
            if not ratios:
                continue
            self.expect_list(name, "comparisons.ratios", item["ratios"], ratios)
            low, high = statistics.bootstrap_median(
                ratios, f"{self.row['id']}/{name}")
            for field, value in (("median", statistics.median(ratios)),
                                 ("low", low), ("high", high),
                                 ("min", min(ratios)), ("max", max(ratios))):
                self.expect(name, f"comparisons.{field}", item[field], value)

    def check_noise(self):
        control, found = self.control, self.row.get("noise") or {}
        ratios = self.ratios(control) if control else None
        if not ratios:
            if found.get("ratios"):
                self.report("", "noise", "found a noise without a control arm")
            return
        name = control["name"]
        self.expect_list(name, "noise.ratios", found.get("ratios"), ratios)
        self.expect(name, "noise.median", found.get("median"),
                    statistics.median(ratios))
        self.expect(name, "noise.p90", found.get("p90"),
                    statistics.noise_of(ratios))

    def check_floor(self, arrays):
        floor, work = self.row.get("floor"), self.row.get("work")
        if not floor or not work:
            self.report("", "floor" if work else "work", "found none")
            return
        if arrays:
            written = sum(array.bytes for array in arrays[1].values())
            read = sum(item["bytes"] for item in self.row.get("inputs") or [])
            for field, limit in (("bytesRead", read),
                                 ("bytesWritten", written)):
                if work[field] > limit:
                    self.report("", f"work.{field}", f"found {work[field]}, "
                                f"expected at most the {limit} bytes of the "
                                "arrays")
        if self.row["boundary"] in ("cold", "disk") and floor["by"] == "none":
            return
        nanoseconds, by, name = floor_of(self.ceilings, self.row["threads"],
                                         work)
        if (floor["by"], floor.get("ceiling") or "") != (by, name):
            self.report("", "floor.ceiling",
                        f"found {describe(floor.get('ceiling'))} by "
                        f"{floor['by']}, expected {describe(name)} by {by}")
        self.expect("", "floor.nanoseconds", floor.get("nanoseconds") or 0,
                    nanoseconds)

    def check_verdict(self):
        found = self.row.get("verdict")
        if not found:
            self.report("", "verdict", "found none")
            return
        result, subject = found["result"], self.subject
        if not subject or subject["status"] != "ok":
            expected = "not implemented" \
                if self.row["status"] == "not implemented" else "failed"
            if result != expected:
                self.report("", "verdict.result", f"found {describe(result)}, "
                            f"expected {describe(expected)}: the subject is "
                            "not ok")
            return
        peers = [arm for arm in self.arms if arm["role"] == "peer" and
                 arm["status"] == "ok" and self.medians.get(arm["name"])]
        mine = self.medians.get(subject["name"])
        if not mine:
            return
        floor = self.row.get("floor") or {}
        if floor.get("by") in ("bandwidth", "flops") and \
                floor.get("nanoseconds"):
            self.expect("", "verdict.overFloor", found.get("overFloor"),
                        statistics.median(mine) / floor["nanoseconds"])
        if not peers:
            if result != "alone":
                self.report("", "verdict.result", f"found {describe(result)}, "
                            "expected 'alone': no peer is ok")
            return
        best = min(peers, key=lambda arm: statistics.median(
            self.medians[arm["name"]]))
        if found.get("bestPeer") != best["name"]:
            self.report("", "verdict.bestPeer",
                        f"found {describe(found.get('bestPeer'))}, expected "
                        f"{describe(best['name'])}, the fastest")
        ratios = self.ratios(best)
        if not ratios:
            return
        ratio = statistics.median(ratios)
        self.expect("", "verdict.ratio", found.get("ratio"), ratio)
        noise = self.ratios(self.control) if self.control else None
        noise = statistics.noise_of(noise) if noise else 0
        expected = "level" if abs(ratio - 1) <= noise else \
            "ahead" if ratio < 1 else "behind"
        if result != expected:
            self.report("", "verdict.result", f"found {describe(result)}, "
                        f"expected {describe(expected)} at the ratio "
                        f"{ratio:.4f} and the noise {noise:.4f}")
