#===- bench/analysis/ceilings.py - What the machine can do -----------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Measured limits of a machine and the floors that follow from them, as
bench/ceilings/ceilings.cpp defines them."""

import math

from . import statistics


class Ceiling:
    """A limit, computed from its samples."""

    def __init__(self, item):
        self.item = item
        self.name, self.threads = item["name"], item["threads"]
        self.bytes = item.get("workingSetBytes") or 0
        # As floors name it.
        self.id = f"{self.name}/{self.bytes}/{self.threads}"
        self.read = item.get("readBytes") or 0
        self.moved = self.read + (item.get("writtenBytes") or 0)
        self.flops = item.get("flops") or 0
        samples = item["samples"]
        # Nanoseconds of one call; None without usable samples.
        self.call = None
        if samples and all(value > 0 for value in samples):
            self.call = statistics.median(samples) / item["inner"]

    @property
    def bytes_per_second(self):
        return self.moved / self.call * 1e9

    @property
    def flops_per_second(self):
        return self.flops / self.call * 1e9

    def figures(self):
        """What the file must say, by field."""
        found = {}
        if self.moved > 0:
            found["bytesPerSecond"] = self.bytes_per_second
        if self.flops > 0:
            found["flopsPerSecond"] = self.flops_per_second
        if not found or "nanoseconds" in self.item:
            found["nanoseconds"] = self.call
        return found


def ceilings_of(result):
    """The usable ceilings of a result, in its order."""
    ceilings = [Ceiling(item) for item in result.ceilings]
    return [ceiling for ceiling in ceilings if ceiling.call]


def floor_of(ceilings, threads, work):
    """The shortest time for this much work as (nanoseconds, by, ceiling's id):
    the larger of bytes over bandwidth and operations over their rate. The
    bandwidth is that of the mix nearest in its share of reads, at the working
    set nearest in ratio, the faster of plain and non-temporal stores."""
    floor = (0.0, "none", "")
    moved = float(work["bytesRead"] + work["bytesWritten"])
    mine = [ceiling for ceiling in ceilings if ceiling.threads == threads]
    best, best_mix, best_size = None, 0.0, 0.0
    for ceiling in mine if moved > 0 else []:
        if ceiling.moved <= 0 or ceiling.bytes <= 0:
            continue
        mix = abs(ceiling.read / ceiling.moved - work["bytesRead"] / moved)
        size = abs(math.log(ceiling.bytes / moved))
        if best is None or mix < best_mix - 1e-3 or (
                mix < best_mix + 1e-3 and (
                    size < best_size - 1e-9 or (
                        size < best_size + 1e-9 and
                        ceiling.bytes_per_second > best.bytes_per_second))):
            best, best_mix, best_size = ceiling, mix, size
    if best:
        floor = (moved / best.bytes_per_second * 1e9, "bandwidth", best.id)
    for ceiling in mine:
        if ceiling.flops > 0 and work["flops"] > 0:
            time = work["flops"] / ceiling.flops_per_second * 1e9
            if time > floor[0]:
                floor = (time, "flops", ceiling.id)
    return floor
