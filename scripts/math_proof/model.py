"""Arithmetic of the engine's values and its rounding; see engine.py."""

import math

from flint import arb, arb_series, ctx

from values import (LARGEST, NEGLIGIBLE, UNIT, ZERO, Fork, Split, Value,
                    exponent, float_above, float_below, half_ulp, number, power,
                    unknown)


def below_unit(values, unit):
    """The largest distance of the values from multiples of 2^unit."""
    parts = [value * power(-unit) for value in values]
    lost = max((abs(p - round(float(p))).upper() for p in parts),
               key=float_above)
    return lost * power(unit)


class Model:
    """The values of a record's nodes on one cell: how they are built, added,
    multiplied and rounded."""

    def __init__(self, record, half_width, order):
        self.record, self.order = record, order
        ctx.cap = order + 1
        h = arb(half_width)
        self.h = [arb(1)]
        for _ in range(order):
            self.h.append(self.h[-1] * h)
        self.values, self.bound, self.exact = {}, {}, set()
        self.patterns, self.assigned = record.patterns, set()
        # Nodes whose roundings are taken by cases, and the cases taken.
        self.ties, self.cases = (), {}
        # Whether ends come from those of the operands too: a Taylor model has
        # no useful ones on a cell of many binades.
        self.wide = False
        # Sums whose second addend is one of some balls, up to its own rounding.
        self.addends = {}

    # --- Building values ---

    def variable(self, center, low=None, high=None, grid=None):
        """centre + t; with the ends of its range where they are exact."""
        half = self.h[1]
        v = Value(arb_series([arb(center), arb(1)]),
                  arb_series([arb(center) + UNIT * half, arb(1)]), {}, ZERO)
        self.finish(v)
        if low is not None:
            v.low, v.high = low, high
        least = v.least()
        v.grid = grid if grid is not None else \
            max(exponent(least) - 52, -1074) if least > 0 else -1074
        return v

    def value(self, center, over, noise, rest, grid=-1074):
        v = Value(center, over, noise, rest, grid)
        self.finish(v)
        return v

    def finish(self, v):
        v.ideal = v.center if isinstance(v.center, arb) else \
            v.center[0] + UNIT * self.radius(v)
        self.ends(v)

    def ends(self, v):
        """low and high, to full precision: a ball's radius has 30 bits."""
        total = self.total(v)
        if isinstance(v.center, arb):
            middle = v.center
        else:
            middle, total = v.center[0], total + self.radius(v)
        v.low, v.high = float_below(middle - total), float_above(middle + total)

    def radius(self, v):
        """How far the ideal value is from its centre at most."""
        if v._radius is None:
            radius = abs(v.over[self.order]) * self.h[self.order]
            for k in range(1, self.order):
                radius += abs(v.center[k]) * self.h[k]
            v._radius = radius.upper()
        return v._radius

    def total(self, v):
        """A bound of |computed - ideal|."""
        if v._total is None:
            total = v.rest
            for symbol, coefficient in v.noise.items():
                total += abs(coefficient) * self.bound[symbol]
            v._total = total.upper()
        return v._total

    def rounded(self, v, node, grid, exact=False, addend=None):
        """v, a result before rounding, becomes the rounded node; as the sum of
        one of addend[0] with a multiple of 2^addend[1]."""
        self.finish(v)
        most = v.most()
        if most > LARGEST or (most >= 2.0 ** 1023 and
                              exponent(most) >= 1024):
            return unknown(v.low, math.inf if v.high == math.inf else v.high)
        if most <= 2.0 ** -1074 and self.enclosure(v) <= power(-1075):
            return number(0.0)
        v.grid = grid
        if exact or (grid is not None and grid >= -1074 and
                     most <= math.ldexp(1.0, min(grid + 53, 1023))):
            if v.grid is None or v.grid < -1074:
                v.grid = -1074
            self.exact.add(node)
            return v
        settled = self.settled(v)
        if settled is not None:
            return number(settled)
        half = half_ulp(most)
        least = v.least()
        found = -1074
        if least >= 2.0 ** -1022:
            found = exponent(least) - 52
        v.grid = max(found, grid if grid is not None else -1074)
        unit = exponent(most) - 52
        if addend is not None and addend[1] >= unit - 1 > -1075:
            # Only the addend's part below the unit is lost, beside half a unit
            # that the other may have; in lower binades at most half of theirs.
            odd = [power(unit - 1)] if addend[1] < unit else []
            lost = below_unit(addend[0] + [value + half_unit for value in
                                           addend[0] for half_unit in odd],
                              unit)
            if found < unit:
                lost = max(lost, power(unit - 2), key=float_above)
            half = min(half, lost, key=float_above)
        if node in self.ties and grid is not None and grid >= -1074 and \
                found - 6 <= grid < found and least >= 2.0 ** -1022:
            half, v.grid = self.tie(node, grid, exponent(least),
                                    exponent(most))
        small = half * NEGLIGIBLE
        kept, rest = {}, v.rest
        for symbol, coefficient in v.noise.items():
            part = abs(coefficient) * self.bound[symbol]
            if part < small:
                rest += part
            else:
                kept[symbol] = coefficient
        v.noise, v.rest = kept, rest.upper()
        kept[node] = arb(1)
        self.bound[node] = half
        v._total = None
        self.ends(v)
        v.last = node
        return v

    def tie(self, node, fine, low, high):
        """A bound of the rounding, and the result's grid, in one of the cases:
        what is rounded, a multiple of 2^fine, is of the binade e, and it lies
        half-way, so that the result is an even multiple of its unit, or its
        error is less than half a unit by 2^fine."""
        case = self.cases.get(node)
        if case is None:
            raise Fork(node, [(kind, e) for e in range(low, high + 1)
                              for kind in ("tie", "no tie")])
        kind, e = case
        if kind == "tie":
            return power(e - 53), e - 51
        return power(e - 53) - power(fine), e - 52

    def enclosure(self, v):
        """A bound of the magnitude before rounding, to full precision."""
        middle, total = v.center, self.total(v)
        if not isinstance(middle, arb):
            middle, total = middle[0], total + self.radius(v)
        return (abs(middle) + total).upper()

    def settled(self, v):
        """The one double that all results round to, if the range is that
        narrow."""
        f = float(v.center if isinstance(v.center, arb) else v.center[0])
        if not 2.0 ** -900 < abs(f) < 2.0 ** 1022:
            return None
        quarter = math.ldexp(1.0, exponent(abs(f)) - 54)
        if v.high - v.low > 16 * quarter:
            return None
        middle, total = v.center, self.total(v)
        if not isinstance(middle, arb):
            middle, total = middle[0], total + self.radius(v)
        return f if abs(middle - f) + total < quarter else None

    # --- Arithmetic before rounding ---

    def sum(self, a, b, sign=1):
        noise = dict(a.noise)
        for symbol, c in b.noise.items():
            c = c if sign > 0 else -c
            noise[symbol] = noise[symbol] + c if symbol in noise else c
        if sign > 0:
            center, over = a.center + b.center, a.over + b.over
        else:
            center, over = a.center - b.center, a.over - b.over
        return Value(center, over, noise, a.rest + b.rest)

    def product(self, a, b):
        if a is b:
            twice = a.ideal * 2
            noise = {s: c * twice for s, c in a.noise.items()}
            total = self.total(a)
            rest = abs(twice) * a.rest + total * total
        else:
            noise = {s: c * b.ideal for s, c in a.noise.items()}
            for symbol, c in b.noise.items():
                c = c * a.ideal
                noise[symbol] = noise[symbol] + c if symbol in noise else c
            rest = abs(a.ideal) * b.rest + abs(b.ideal) * a.rest + \
                self.total(a) * self.total(b)
        return Value(a.center * b.center, a.over * b.over, noise, rest.upper())

    def quotient(self, a, b):
        """(A + e)/(B + d) = A/B + (e - A/B d)/B, and what d does to that."""
        divisor = b.ideal + UNIT * self.total(b)
        if divisor.contains(0):
            raise Split("division")
        inverse = 1 / b.ideal
        ratio = a.ideal * inverse
        noise = {s: c * inverse for s, c in a.noise.items()}
        for symbol, c in b.noise.items():
            c = c * ratio * inverse
            noise[symbol] = noise[symbol] - c if symbol in noise else -c
        first = (self.total(a) + abs(ratio) * self.total(b)) * abs(inverse)
        rest = (a.rest + abs(ratio) * b.rest) * abs(inverse) + \
            first * self.total(b) / abs(divisor)
        return Value(self.over_series(a.center, b.center),
                     self.over_series(a.over, b.over), noise, rest.upper())

    @staticmethod
    def over_series(a, b):
        if isinstance(b, arb):
            return a * (1 / b)
        try:
            return (arb_series([a]) if isinstance(a, arb) else a) / b
        except ValueError:
            raise Split("division") from None
