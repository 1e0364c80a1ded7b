"""Values of the engine: what is known of a node on a cell; see engine.py."""

import math

from flint import arb, ctx

ctx.prec = 192
# A sum with it is that of an integer, which its low bits show.
MAGIC = 1.5 * 2.0 ** 52
# What rides in such a constant at most: the biases of two exponents.
MOST_OFFSET = 2 * 1023
LARGEST = math.nextafter(math.inf, 0)
NEGLIGIBLE = arb(2) ** -14
ZERO = arb(0)
# [-1, 1]; times a bound it is a ball, also for the least numbers.
UNIT = arb(0, 1)
_powers = {}


def power(n):
    """2^n as a ball."""
    value = _powers.get(n)
    if value is None:
        value = _powers[n] = arb(2) ** n
    return value


class Split(Exception):
    """The cell is too wide for a decision."""


class Fork(Exception):
    """The node is one of these: numbers, functions of the cell that make its
    value, or names of cases of its rounding."""

    def __init__(self, node, choices):
        super().__init__(node, choices)
        self.node, self.choices = node, choices


def float_below(x):
    """A double not above the ball's lower end."""
    low = x.lower()
    f = float(low)
    return f if arb(f) <= low else math.nextafter(f, -math.inf)


def float_above(x):
    high = x.upper()
    f = float(high)
    return f if arb(f) >= high else math.nextafter(f, math.inf)


def exponent(x):
    """floor(log2 x) of a positive double."""
    return math.frexp(x)[1] - 1


def grid_of(x):
    """The exponent of the lowest bit of a double."""
    if x == 0:
        return 9999
    n, d = x.as_integer_ratio()
    return (n & -n).bit_length() - d.bit_length()


def rounding_offset(x):
    """o where x = MAGIC + o with an integer o that such constants have; or
    None."""
    if x is None or not 0 <= x - MAGIC <= MOST_OFFSET:
        return None
    return int(x - MAGIC)


def half_ulp(largest):
    """A bound of the rounding error of results up to `largest`, as a ball."""
    if largest < 2.0 ** -1022:
        return power(-1075)
    e = exponent(largest)
    if e >= 1024:
        raise Split("overflow")
    excess = largest - 2.0 ** e
    # Just above a power of two rounding goes back to it.
    if e > -1022 and excess < 2.0 ** (e - 53):
        return arb(max(math.ldexp(1.0, max(e - 54, -1074)), excess))
    return power(e - 53)


class Value:
    __slots__ = ("center", "over", "noise", "rest", "grid", "number", "last",
                 "low", "high", "nan", "_total", "_radius", "ideal")

    def __init__(self, center, over, noise, rest, grid=None, number=None):
        self.center, self.over, self.noise, self.rest = \
            center, over, noise, rest
        self.grid, self.number, self.last = grid, number, None
        self._total = self._radius = None
        self.nan = False

    def least(self):
        """A lower bound of the magnitude."""
        return max(0.0, self.low, -self.high)

    def most(self):
        return max(abs(self.low), abs(self.high))


def number(x):
    v = Value(None, None, {}, ZERO, None, x)
    v.low = v.high = x
    if math.isfinite(x):
        v.center = v.over = v.ideal = arb(x)
        v.grid = grid_of(x)
    v.nan = math.isnan(x)
    return v


def unknown(low, high, nan=False):
    """A node of which only the ends are known; they may be infinite."""
    v = Value(None, None, {}, ZERO)
    v.low, v.high, v.nan = low, high, nan
    return v
