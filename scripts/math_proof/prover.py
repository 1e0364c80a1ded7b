"""From cells to the bound of a piece of a function.

A piece is a range of arguments with what the engine must be told about it. Its
cells are halved until each one's bound is no more than the goal, or has been
halved often enough; the piece's bound is the largest of its cells. Halving ends
in single arguments, where the emulated result is compared with the function, so
that a bound is proved wherever it holds with some room between arguments.
"""

import copy
import dataclasses
import heapq
import itertools
import math
import typing

from flint import arb, arb_series

import engine
from engine import Cell, Fork, Split


DEEPEST = 64
# Cells that a piece may add to those it lists.
CELLS = 1000


@dataclasses.dataclass
class Goal:
    """|error| <= constant + per_x |x| ULP; `absolute`: an absolute error."""
    constant: float
    per_x: float = 0
    absolute: float = 0


@dataclasses.dataclass
class Piece:
    name: str
    cells: typing.Iterable            # (low, high) of the variable
    target: typing.Callable           # series of the variable -> series
    output: int                       # the node that approximates the target
    # (cell, low, high) -> what is put in place of nodes; the variable as well.
    assign: typing.Callable = None
    # The variable is a double: halves do not share an end.
    doubles: bool = True
    least_x: typing.Callable = None   # (low, high) -> least |x|; None: itself
    order: int = 12
    absolute: bool = False
    extra: typing.Callable = None     # target's remainder: (low, high) -> ball
    # Symbols of the assigned values: name -> bound, and what the target has of
    # each.
    symbols: dict = None
    slopes: dict = None
    # Nodes whose rounding is taken by cases: half-way or not.
    ties: tuple = ()
    wide: bool = False                # cells of many binades


@dataclasses.dataclass
class Bound:
    value: float = 0.0
    at: tuple = None
    cells: int = 0


class Unproved(Exception):
    """No bound for a cell that cannot be halved further."""


def assign_x(record):
    def assign(cell, low, high):
        middle = (arb(low) + arb(high)) / 2
        if low == high:
            return {record.x: engine.number(low)}
        return {record.x: cell.variable(middle, low, high)}
    return assign


def distance(cell, result, wanted, wanted_over, extra):
    """A bound of |ideal - target|, and the target's range."""
    order, h = cell.order, cell.h
    radius = abs(wanted_over[order]) * h[order]
    for k in range(1, order):
        radius += abs(wanted[k]) * h[k]
    # The ends to full precision; a ball's radius has 30 bits.
    radius = radius.upper()
    span = [wanted[0] - radius, wanted[0] + radius]
    difference, over = result.center - wanted, result.over - wanted_over
    if isinstance(difference, arb):
        difference = arb_series([difference])
        over = arb_series([over])
    gap = abs(difference[0]) + abs(over[order]) * h[order]
    for k in range(1, order):
        gap += abs(difference[k]) * h[k]
    if extra is not None:
        gap += abs(extra)
        span = [span[0] - abs(extra).upper(), span[1] + abs(extra).upper()]
    return gap.upper(), span


def measure(cell, result, gap, span, absolute):
    """The largest error in ULP of the target (or absolute)."""
    total = cell.total(result)
    if absolute:
        return float((total + gap).upper())
    low, high = engine.float_below(span[0]), engine.float_above(span[1])
    most = max(abs(low), abs(high))
    least = max(0.0, low, -high)
    last = result.last
    if last is not None and last in result.noise:
        rounding = abs(result.noise[last]) * cell.bound[last]
        before = gap + sum((abs(c) * cell.bound[s]
                            for s, c in result.noise.items() if s != last),
                           result.rest)
    else:
        rounding, before = engine.ZERO, gap + total
    bottom = -1022 if least < 2.0 ** -1022 else engine.exponent(least)
    top = -1022 if most < 2.0 ** -1022 else engine.exponent(most)
    if top - bottom > 8:
        raise Split("binades")
    worst = 0.0
    for e in range(bottom, top + 1):
        unit = engine.power(e - 52)
        part = before / unit
        ulp = part
        if rounding > 0:
            # A target of this binade is rounded to half its unit, unless what
            # is rounded lies in the next one: then at most to `before` too,
            # rounding back to the power of two.
            ulp += 0.5
            beyond = arb(most) + before >= engine.power(e + 1)
            if part > 0.5 and beyond:
                ulp += 0.5 if part > 1 else part - 0.5
        worst = max(worst, engine.float_above(ulp))
    return worst


def measure_cell(record, piece, assign, low, high, forced=None, ties=()):
    middle = (arb(low) + arb(high)) / 2
    half = ((arb(high) - arb(low)) / 2).upper()
    cell = Cell(record, half, piece.order)
    for symbol, bound in (piece.symbols or {}).items():
        cell.bound[symbol] = bound
    chosen = {}
    for node, choice in (forced or {}).items():
        if isinstance(choice, tuple):
            cell.cases[node] = choice
        else:
            chosen[node] = choice(cell) if callable(choice) else \
                engine.number(choice)
    cell.ties, cell.wide = ties, piece.wide
    cell.values.update(chosen)
    cell.assigned.update(chosen)
    try:
        assigned = {**assign(cell, low, high), **chosen}
        result = cell.run(piece.output, assigned)
    except Fork as fork:
        return max(measure_cell(record, piece, assign, low, high,
                                {**(forced or {}), fork.node: choice}, ties)
                   for choice in fork.choices)
    if result.center is None:
        raise Split("not finite")
    wanted = piece.target(arb_series([middle, arb(1)]))
    over = piece.target(arb_series([middle + engine.UNIT * half, arb(1)]))
    if isinstance(wanted, arb):
        wanted, over = arb_series([wanted]), arb_series([over])
    extra = piece.extra(low, high) if piece.extra else None
    swing = engine.ZERO
    if piece.slopes and result.number is None:
        result = copy.copy(result)
        result.noise = dict(result.noise)
        result._total = None
        for symbol, slope in piece.slopes.items():
            result.noise[symbol] = \
                result.noise.get(symbol, engine.ZERO) - slope
            swing += abs(slope) * cell.bound[symbol]
    gap, span = distance(cell, result, wanted, over, extra)
    swing = swing.upper()
    return measure(cell, result, gap, (span[0] - swing, span[1] + swing),
                   piece.absolute)


def halves(low, high, doubles):
    middle = low + (high - low) / 2
    if doubles:
        if low == high:
            return None
        middle = min(middle, math.nextafter(high, -math.inf))
        after = math.nextafter(middle, math.inf)
        return (low, middle), (after, high)
    if not low < middle < high:
        return None
    return (low, middle), (middle, high)


def prove(record, piece, goal):
    """The piece's bound as Bound; the part beyond per_x |x| where per_x is."""
    bound = Bound()
    assign = piece.assign or assign_x(record)
    limit = goal.absolute if piece.absolute else goal.constant
    heap, order = [], itertools.count()

    def evaluate(low, high):
        reason = None
        try:
            value = measure_cell(record, piece, assign, low, high)
            if piece.ties and not value <= limit:
                value = measure_cell(record, piece, assign, low, high,
                                     ties=piece.ties)
        except Split as split:
            value, reason = math.inf, split
        if not value >= 0:
            value = math.inf
        if goal.per_x and not piece.absolute:
            least = piece.least_x(low, high) if piece.least_x else \
                (0.0 if low < 0 < high else min(abs(low), abs(high)))
            value -= goal.per_x * least
        bound.cells += 1
        return value, reason

    def add(part, depth, found, dense):
        value, reason = found
        heapq.heappush(heap, (-value, next(order), *part, depth, dense, reason))

    for part in piece.cells:
        add(part, 0, evaluate(*part), False)
    # Worst first, until the rest is below what halving no longer improves.
    floor, budget = limit, 2 * bound.cells + CELLS
    while heap and -heap[0][0] > floor and bound.cells < budget:
        value, _, low, high, depth, dense, reason = heapq.heappop(heap)
        parts = halves(low, high, piece.doubles) if depth < DEEPEST else None
        if -value < math.inf:
            # Halving a cell at a step of some ULP improves one half only.
            if (depth >= 8 and dense) or parts is None:
                floor = -value
                bound.value, bound.at = floor, (low, high)
                continue
        elif parts is None:
            raise Unproved(f"{record.title()}, {piece.name}: no bound on "
                           f"[{low!r}, {high!r}]: {reason}")
        found = [evaluate(*part) for part in parts]
        values = [value for value, _ in found]
        dense = min(values) > 0.995 * max(values)
        for part, each in zip(parts, found):
            add(part, depth + 1, each, dense)
    if heap and heap[0][0] == -math.inf:
        raise Unproved(f"{record.title()}, {piece.name}: no bound on "
                       f"[{heap[0][2]!r}, {heap[0][3]!r}]: {heap[0][6]}")
    if heap and -heap[0][0] > bound.value:
        bound.value, bound.at = -heap[0][0], heap[0][2:4]
    return bound
