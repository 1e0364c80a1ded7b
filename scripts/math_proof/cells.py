"""Lists of cells: (low, high) of a piece's variable; see functions.py."""

import math

from values import LARGEST, exponent


def before(x):
    return math.nextafter(x, -math.inf)


def linear(low, high, width):
    """Cells of about `width` from low up to, not including, high."""
    count = max(1, math.ceil((high - low) / width))
    ends = [low + (high - low) * (i / count) for i in range(count)] + [high]
    return [(a, before(b)) for a, b in zip(ends, ends[1:]) if a <= before(b)]


def octaves(low, high, per_octave=1):
    """Cells that refine the binades from low up to, not including, high."""
    cells, a = [], low
    while a < high:
        e = exponent(a)
        top = min(high, 2.0 ** (e + 1)) if e < 1023 else high
        step = 2.0 ** max(e, -1074) / per_octave
        b = top
        if per_octave > 1 and e > -1060:
            b = min(top, 2.0 ** e * (1 + (math.floor((a / 2.0 ** e - 1) *
                                                     per_octave + 1e-9) + 1) /
                                     per_octave))
        cells.append((a, before(b) if b < high or high < math.inf else b))
        a = b
    return cells


def reduced_cells(low, high):
    """Cells from low up to, not including, high, on each of which x log2(e)
    rounds to one integer, but for tiny ones about the steps."""
    ends, period = [low], math.log(2)
    for n in range(math.ceil(low / period) - 1, math.ceil(high / period) + 1):
        middle = n * period
        ends += [middle + period * (i / 8 - 0.5) for i in range(1, 8)]
        step = middle + period / 2
        ends += [step * (1 - 2.0 ** -40), step * (1 + 2.0 ** -40)]
    ends = sorted({e for e in ends if low <= e < high}) + [high]
    return [(a, before(b)) for a, b in zip(ends, ends[1:])]


def mirrored(cells):
    return [(-b, -a) for a, b in cells]


def real(cells):
    """Cells of a real variable: neighbours share an end."""
    return [(a, math.nextafter(b, math.inf)) for a, b in cells]
