"""Rigorous error bounds of a recorded function on one cell of arguments.

A cell is |t| <= h about a centre; x, or another variable that a piece puts in
its place, is centre + t. Every floating-point node gets a Value, which says

    computed = ideal(t) + sum over symbols of coefficient * symbol + rest

ideal is what the node would be in real arithmetic, as Taylor coefficients at
the centre and, for Lagrange's remainder, over the cell, all in ball arithmetic.
Each operation that may round adds one symbol, bounded by half a unit in the
last place of the largest result that the cell allows. What is found of second
order, or is too small to matter, is in `rest`. Since symbols are kept, a sum's
rounding cancels against the error term that recovers it.

An operation is exact, with no symbol, where
  - its result is a multiple of 2^g (every operand is a multiple of a known
    power of two) below 2^(g + 53), and g is no less than -1074;
  - it is a difference of numbers within a factor of two (Sterbenz);
  - it scales by a power of two a number that stays normal;
  - its result is certainly too small for any number but 0.
A rounding is less than half a unit where the addend of a sum with a multiple of
the unit is known, and in one of the cases of `tie`. The error terms of twoSum,
fastTwoSum and twoProd are recognized by their operations; they are minus the
symbol of the sum or product.

Integers are known numbers or the bit pattern of a Value; masks must come out
decided. Where a rounding to an integer has several results, or a mask is open,
Fork or Split is raised: the caller takes all cases, or smaller cells. A node
that may be infinite or NaN has ends alone, which follow from its operands' by
the monotony of the operations (`extended`).
"""

import itertools
import math

from flint import arb

import record as rec
from model import Model
from patterns import UPPER_HALF, find_patterns
from values import (MAGIC, UNIT, ZERO, Fork, Split, Value, exponent,
                    float_above, float_below, half_ulp, number, power,
                    rounding_offset, unknown)

BELOW_TWO = 0xBFFFFFFFFFFFFFFF
ROUNDED = ("add", "sub", "mul", "div", "fma", "sqrt", "scalef")


class Cell(Model):
    """Evaluates the nodes of a record on one cell."""

    # --- Operations ---

    def at(self, node):
        found = self.values.get(node)
        if found is None:
            found = self.values[node] = self.evaluate(node)
        return found

    def evaluate(self, node):
        operation, rest = self.record.nodes[node]
        if operation == "constF":
            return number(rec.float_of(rest[0]))
        if operation == "constI":
            return rest[0] & rec.MASK
        if operation in ("select", "ifAny"):
            chosen = self.at(rest[0])
            if operation == "ifAny":
                chosen = not chosen
            return self.at(rest[1] if chosen else rest[2])
        pattern = self.patterns.get(node)
        if pattern is not None:
            v = self.error_term(node, *pattern)
            if v is not None:
                return v
        if operation in ("shl", "lshr"):
            i = self.at(rest[0])
            if not isinstance(i, int):
                raise Split("bits")
            return (i << rest[1]) & rec.MASK if operation == "shl" \
                else i >> rest[1]
        operands = [self.at(r) for r in rest]
        plain = [o.number if isinstance(o, Value) else
                 None if isinstance(o, tuple) else o for o in operands]
        if None not in plain:
            result = rec.EMULATED[operation](*plain)
            return number(result) if isinstance(result, float) else result
        if operation in ROUNDED and any(o.center is None for o in operands):
            return self.extended(operation, operands)
        handler = getattr(self, "op_" + operation, None)
        if handler is None:
            raise Split("bits")
        result = handler(node, *operands)
        if self.wide and operation in ROUNDED and result.number is None:
            ends = self.extended(operation, operands)
            if result.center is None:
                return ends
            if not ends.nan:
                result.low = max(result.low, ends.low)
                result.high = min(result.high, ends.high)
        return result

    @staticmethod
    def vanishes(a, n):
        """Whether a 2^n is below half the least number, whatever n is."""
        return exponent(max(a.most(), 2.0 ** -1000)) + 1 + n.high <= -1075

    def extended(self, operation, operands):
        """Ends of the result, from those of operands that may be infinite or
        NaN: every operation is monotone in each operand, as rounded too."""
        factors = {"mul": operands, "fma": operands[:2],
                   "div": operands[1:]}.get(operation, ())
        infinite = any(math.inf in (-o.low, o.high) for o in factors)
        zero = any(o.low <= 0 <= o.high for o in factors)
        if operation == "scalef":
            a, n = operands
            if a.center is not None and not n.nan and \
                    self.vanishes(a, n):
                return number(0.0)
        wild = any(o.nan for o in operands) or operation in ("sqrt", "scalef")
        if wild or (zero and (infinite or operation == "div")):
            return unknown(-math.inf, math.inf, True)
        corners = [rec.EMULATED[operation](*ends) for ends in
                   itertools.product(*((o.low, o.high) for o in operands))]
        if any(math.isnan(c) for c in corners):
            return unknown(-math.inf, math.inf, True)
        return unknown(min(corners), max(corners))

    def op_toBits(self, node, a):
        return ("bits", a)

    def op_fromBits(self, node, i):
        return i[1]

    def op_iand(self, node, i, j):
        if isinstance(i, int):
            i, j = j, i
        v = i[1]
        if j == rec.SIGN and not v.nan:
            if v.low >= 0:
                return 0
            if v.high < 0:
                return rec.SIGN
        if j == BELOW_TWO:
            if v.most() < 2 and not v.nan:
                return i
            if not self.wide:
                raise Split("range")
            # Anything below 2; in parts, of which polynomials have bounds.
            def part(k):
                center = arb(k) / 32 + arb(1) / 64
                return lambda cell: ("bits", cell.value(center, center, {},
                                                        arb(1) / 64))
            raise Fork(node, [part(k) for k in range(-64, 64)])
        if j == UPPER_HALF:
            # Towards zero; only where an error term was not recognized.
            return ("bits", unknown(min(v.low, 0.0), max(v.high, 0.0), v.nan))
        raise Split("mask of bits")

    def op_ior(self, node, i, j):
        if isinstance(i, int):
            i, j = j, i
        if isinstance(j, int) and (j == 0 or (j == rec.SIGN and
                                              i[1].low >= 0)):
            return ("bits", self.op_neg(node, i[1])) if j else i
        raise Split("or of bits")

    def op_ixor(self, node, i, j):
        if isinstance(i, int):
            i, j = j, i
        if j not in (0, rec.SIGN):
            raise Split("xor of bits")
        return ("bits", self.op_neg(node, i[1])) if j else i

    def op_neg(self, node, a):
        if a.center is None:
            return unknown(-a.high, -a.low, a.nan)
        v = Value(-a.center, -a.over, {s: -c for s, c in a.noise.items()},
                  a.rest, a.grid)
        v.ideal, v.low, v.high, v.last = -a.ideal, -a.high, -a.low, a.last
        v._total, v.nan = a._total, a.nan
        return v

    def op_abs(self, node, a):
        if a.low >= 0:
            return a
        if a.high <= 0:
            return self.op_neg(node, a)
        raise Split("sign")

    @staticmethod
    def ordered(a, b):
        if a.nan or b.nan:
            raise Split("NaN")

    def op_lt(self, node, a, b):
        self.ordered(a, b)
        if a.high < b.low:
            return True
        if a.low >= b.high:
            return False
        raise Split("comparison")

    def op_eq(self, node, a, b):
        self.ordered(a, b)
        if a.high < b.low or a.low > b.high:
            return False
        raise Split("comparison")

    def op_min(self, node, a, b):
        self.ordered(a, b)
        if a.high <= b.low:
            return a
        if a.low >= b.high:
            return b
        raise Split("minimum")

    def op_max(self, node, a, b):
        self.ordered(a, b)
        if a.low >= b.high:
            return a
        if a.high <= b.low:
            return b
        raise Split("maximum")

    def op_add(self, node, a, b):
        if a.number == 0:
            return b
        if b.number == 0:
            return a
        if a is b:
            return self.scaled(node, a, 1)
        v = self.sum(a, b)
        integer = self.to_integer(node, v, a, b)
        if integer is not None:
            return integer
        known = ([arb(a.number)], b.grid) if a.number is not None else \
            ([arb(b.number)], a.grid) if b.number is not None else \
            (self.addends[node], a.grid) if node in self.addends else None
        return self.rounded(v, node, min(a.grid, b.grid), addend=known)

    def op_sub(self, node, a, b):
        if b.number == 0:
            return a
        return self.rounded(self.sum(a, b, -1), node, min(a.grid, b.grid),
                            self.sterbenz(a, b))

    @staticmethod
    def sterbenz(a, b):
        if a.low < 0:
            return a.high < 0 and b.high < 0 and \
                a.low >= 2 * b.high and b.low >= 2 * a.high
        return a.low > 0 and b.low > 0 and a.high <= 2 * b.low and \
            b.high <= 2 * a.low

    def op_mul(self, node, a, b):
        for scale, v in ((a, b), (b, a)):
            if scale.number is not None and scale.number != 0 and \
                    abs(math.frexp(scale.number)[0]) == 0.5:
                return self.scaled(node, v, exponent(abs(scale.number)),
                                   scale.number < 0)
            if scale.number == 0:
                return number(0.0)
        return self.rounded(self.product(a, b), node, a.grid + b.grid)

    def scaled(self, node, a, n, negative=False):
        """a * 2^n, exact where it stays normal."""
        factor = -power(n) if negative else power(n)
        v = Value(a.center * factor, a.over * factor,
                  {s: c * factor for s, c in a.noise.items()},
                  (a.rest * power(n)).upper())
        least = a.least()
        normal = least > 0 and exponent(least) + n >= -1022
        if a.most() > 0 and exponent(a.most()) + n >= 1024:
            if negative:
                raise Split("overflow")
            ends = [rec.scalef(end, float(n)) for end in (a.low, a.high)]
            return unknown(*ends)
        result = self.rounded(v, node, a.grid + n, normal)
        if node in self.exact:
            result.grid = a.grid + n
            result.last = a.last
            if not negative and normal:
                # The ends to full precision, also of a wide cell.
                result.low = max(result.low, math.ldexp(a.low, n))
                result.high = min(result.high, math.ldexp(a.high, n))
        return result

    def op_scalef(self, node, a, n):
        if n.number is None:
            if self.vanishes(a, n):
                return number(0.0)
            raise Split("scale")
        return self.scaled(node, a, int(math.floor(n.number)))

    def op_fma(self, node, a, b, c):
        if a.number == 0 or b.number == 0:
            return c
        if c.number == 0:
            return self.op_mul(node, a, b)
        v = self.sum(self.product(a, b), c)
        integer = self.to_integer(node, v, c)
        if integer is not None:
            return integer
        known = ([a.center * b.center], c.grid) \
            if a.number is not None and b.number is not None else None
        return self.rounded(v, node, min(a.grid + b.grid, c.grid),
                            addend=known)

    def op_div(self, node, a, b):
        if b.number == 1:
            return a
        v = self.quotient(a, b)
        return self.near_quotient(a, b, v) or self.rounded(v, node, None)

    def near_quotient(self, a, b, v):
        """a / b for an exactly known b next to 1 and a multiple a of the
        quotient's unit: a / b - a is small, and where it rounds to one multiple
        m of the unit on all of the cell, the result is a + m unit."""
        if b.number is None or not 0 < abs(b.number - 1) < 2.0 ** -40 or \
                self.total(a) > 0:
            return None
        self.finish(v)
        least = v.least()
        if least < 2.0 ** -1022 or exponent(least) != exponent(v.most()):
            return None
        unit = power(exponent(least) - 52)
        if exponent(least) - 52 > a.grid:
            return None
        small = a.ideal * (1 - b.center) / b.center / unit
        m = round(float(small))
        if not abs(small - m) < 0.5:
            return None
        result = self.value(a.center + m * unit, a.over + m * unit, {}, ZERO,
                            exponent(least) - 52)
        return result

    def op_sqrt(self, node, a):
        total = self.total(a)
        least = a.ideal - total
        if not least > 0:
            raise Split("root")
        root = a.ideal.sqrt()
        noise = {s: c / (2 * root) for s, c in a.noise.items()}
        rest = a.rest / (2 * root) + total * total / (8 * least * least.sqrt())
        series = lambda s: s.sqrt()
        v = Value(series(a.center), series(a.over), noise, abs(rest).upper())
        return self.rounded(v, node, None)

    def to_integer(self, node, v, *addends):
        """The sum with 1.5 * 2^52 (plus a small integer) is that of an integer:
        known, or one of a few."""
        if not any(a.number is not None and 2.0 ** 52 <= a.number < 2.0 ** 53
                   for a in addends):
            return None
        self.finish(v)
        ball = v.ideal + UNIT * self.total(v)
        half = arb(0.5)
        if not 2.0 ** 52 < ball or not ball < 2.0 ** 53 - 1:
            return None
        low = int((ball.lower() - half).ceil().unique_fmpz())
        high = int((ball.upper() + half).floor().unique_fmpz())
        # Many integers: a rounding like others.
        if high - low > 3:
            return None
        if low < high:
            raise Fork(node, [float(i) for i in range(low, high + 1)])
        return number(float(low))

    # --- Error terms ---

    def error_term(self, node, kind, s, a, c):
        """(a op c) - s, where s is the rounded a op c; None where the pattern
        does not apply and the operations are taken as they are."""
        if s in self.assigned:
            return None
        result, first, second = self.at(s), self.at(a), self.at(c)
        if kind == "split" and result.number == 0:
            # The product is below half the least number; so are its parts.
            return number(0.0)
        if result.number is not None or \
                None in (result.center, first.center, second.center):
            return None
        if kind == "fast" and not self.fast_applies(result, first, second, s):
            return None
        rest, grid = ZERO, -1074
        if kind in ("product", "split"):
            grid = first.grid + second.grid
            if grid < -1074:
                rest, grid = power(-1072), -1074
            if kind == "split":
                rest += self.split_error(first, second)
        else:
            grid = min(first.grid, second.grid)
        if s in self.exact or s not in result.noise:
            if s not in self.exact:
                return None
            if not rest > 0:
                return number(0.0)
            return self.value(ZERO, ZERO, {}, rest, -1074)
        # The rounded s has its own symbol with coefficient 1.
        return self.value(ZERO, ZERO, {s: arb(-1)}, rest, grid)

    def fast_applies(self, s, a, c, node):
        if a.number == 0 or node in self.exact:
            return True
        if a.least() > 0 and (c.most() == 0 or
                              exponent(a.least()) >= exponent(c.most())):
            return True
        # Else s - a must be exact.
        return self.sterbenz(s, a) or self.sterbenz(a, s)

    @staticmethod
    def split_error(a, c):
        """What twoProd without FMA loses: the product of the lower halves has
        54 bits, and the last sum rounds once, together below 2^-103 of the
        product of the powers of two. Nothing where a factor has fewer bits."""
        high_a, high_c = a.most(), c.most()
        if high_a == 0 or high_c == 0:
            return ZERO
        ea, ec = exponent(high_a), exponent(high_c)
        if ea - a.grid <= 51 or ec - c.grid <= 51:
            return ZERO
        return power(ea + ec - 103)

    def run(self, output, assigned):
        self.values.update(assigned)
        self.assigned = set(assigned)
        return self.at(output)
