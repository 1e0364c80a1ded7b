#===- bench/analysis/statistics.py - Medians, ratios, intervals ------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""The figures of a result file. bench/core/statistics.cpp has the same
definitions; audit.py expects the same doubles."""

import functools
import math

RESAMPLES = 1000
MASK = (1 << 64) - 1


def median(values):
    """The middle value, or the mean of the two middle ones; 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return (float(ordered[middle - 1]) + float(ordered[middle])) / 2


def quantile(values, q):
    """sorted[min(n - 1, floor(q * n))]; 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return float(ordered[min(len(ordered) - 1,
                             math.floor(q * len(ordered)))])


def fnv1a(text):
    """The 64-bit FNV-1a hash of a text's UTF-8 bytes."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def split_mix64(state):
    """Yields the numbers of SplitMix64 from a 64-bit state."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def bootstrap_median(values, name):
    """The 95 % bootstrap interval (low, high) of the median. `name`, the row's
    id and the arm's name joined by a slash, seeds it."""
    return resample(tuple(values), name) if values else (0.0, 0.0)


@functools.lru_cache(maxsize=4096)
def resample(values, name):
    count = len(values)
    ordered = sorted(float(value) for value in values)
    # Resamples are drawn as places in the sorted list: their median follows
    # from the sorted places.
    place = {index: rank for rank, index in enumerate(
        sorted(range(count), key=lambda index: values[index]))}
    random = split_mix64(fnv1a(name))
    middle = count // 2
    medians = []
    for _ in range(RESAMPLES):
        drawn = sorted(place[next(random) % count] for _ in range(count))
        if count % 2:
            medians.append(ordered[drawn[middle]])
        else:
            medians.append((ordered[drawn[middle - 1]] +
                            ordered[drawn[middle]]) / 2)
    medians.sort()
    return medians[25], medians[974]


def noise_of(ratios):
    """|ratio - 1| at the 90th percentile: the noise of equal things."""
    return quantile([abs(ratio - 1) for ratio in ratios], 0.9)


def round_medians(samples, inner):
    """Nanoseconds per call of each round; a sample is `inner` calls."""
    return [median(values) / inner for values in samples]


def geometric_mean(values):
    """The geometric mean of positive values; None for none."""
    if not values:
        return None
    return math.exp(math.fsum(math.log(value) for value in values) /
                    len(values))


def balanced_orders(arms):
    """The design of bench/core/order.cpp: every arm in every position and after
    every other arm equally often."""
    first = [(i + 1) // 2 if i % 2 else (arms - i // 2) % arms
             for i in range(arms)]
    orders = [[(arm + shift) % arms for arm in first] for shift in range(arms)]
    if arms % 2 and arms > 1:
        orders += [order[::-1] for order in orders]
    return orders


def imbalance(orders):
    """Why a list of orders is not balanced, or None when it is."""
    if not orders:
        return "found no order"
    arms = sorted(orders[0])
    positions, neighbours = {}, {}
    for number, order in enumerate(orders):
        if sorted(order) != arms or len(set(order)) != len(order):
            return (f"round {number}: found arms {order}, expected each of "
                    f"{arms} once")
        for position, arm in enumerate(order):
            key = arm, position
            positions[key] = positions.get(key, 0) + 1
        for pair in zip(order, order[1:]):
            neighbours[pair] = neighbours.get(pair, 0) + 1
    for arm in arms:
        counts = [positions.get((arm, position), 0)
                  for position in range(len(arms))]
        if len(set(counts)) > 1:
            return (f"arm {arm} stands in the positions {counts} times, "
                    "expected equally often")
    counts = {(one, other): neighbours.get((one, other), 0)
              for one in arms for other in arms if one != other}
    if len(set(counts.values())) > 1:
        (rare, low), (often, high) = (
            min(counts.items(), key=lambda item: item[1]),
            max(counts.items(), key=lambda item: item[1]))
        return (f"arm {rare[1]} follows arm {rare[0]} {low} times and arm "
                f"{often[1]} follows arm {often[0]} {high} times, expected "
                "equally often")
    return None


def close(found, expected):
    """Whether two doubles are the same figure: both sides compute the same
    definition, at most the order of two operations differs."""
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        return False
    return found == expected or math.isclose(found, expected, rel_tol=1e-12,
                                             abs_tol=1e-300)
