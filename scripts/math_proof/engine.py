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
  - its result is a multiple of 2^g (every operand is a multiple of a known power
    of two) below 2^(g + 53), and g is no less than -1074;
  - it is a difference of numbers within a factor of two (Sterbenz);
  - it scales by a power of two a number that stays normal.
The error terms of twoSum, fastTwoSum and twoProd are recognized by their
operations; they are minus the symbol of the sum or product.

Integers are known numbers or the bit pattern of a Value; masks must come out
decided. Where a rounding to an integer has several results, or a mask is open,
Fork or Split is raised: the caller takes all cases, or smaller cells.
"""

import math

from flint import arb, arb_series, ctx

import record as rec

ctx.prec = 192
MAGIC = 1.5 * 2.0 ** 52
UPPER_HALF = 0xFFFFFFFFF8000000
BELOW_TWO = 0xBFFFFFFFFFFFFFFF
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
    """The node may be any of these numbers."""

    def __init__(self, node, values):
        super().__init__(node, values)
        self.node, self.values = node, values


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
                 "low", "high", "_total", "ideal")

    def __init__(self, center, over, noise, rest, grid=None, number=None):
        self.center, self.over, self.noise, self.rest = \
            center, over, noise, rest
        self.grid, self.number, self.last = grid, number, None
        self._total = None

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
    return v


class Cell:
    """Evaluates the nodes of a record on one cell."""

    def __init__(self, record, half_width, order):
        self.record, self.order = record, order
        ctx.cap = order + 1
        h = arb(half_width)
        self.h = [arb(1)]
        for _ in range(order):
            self.h.append(self.h[-1] * h)
        self.values, self.bound, self.exact = {}, {}, set()
        self.patterns, self.assigned = record.patterns, set()

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
        v.ideal = self.enclose(v.center, v.over)
        self.ends(v)

    def ends(self, v):
        """low and high, to full precision: a ball's radius has 30 bits."""
        total = self.total(v)
        if isinstance(v.center, arb):
            middle = v.center
        else:
            middle, total = v.center[0], total + self.radius(v.center, v.over)
        v.low, v.high = float_below(middle - total), float_above(middle + total)

    def radius(self, center, over):
        radius = abs(over[self.order]) * self.h[self.order]
        for k in range(1, self.order):
            radius += abs(center[k]) * self.h[k]
        return radius.upper()

    def enclose(self, center, over):
        if isinstance(center, arb):
            return center
        return center[0] + UNIT * self.radius(center, over)

    def total(self, v):
        """A bound of |computed - ideal|."""
        if v._total is None:
            total = v.rest
            for symbol, coefficient in v.noise.items():
                total += abs(coefficient) * self.bound[symbol]
            v._total = total.upper()
        return v._total

    def rounded(self, v, node, grid, exact=False):
        """v, a result before rounding, becomes the rounded node."""
        self.finish(v)
        most = v.most()
        if not math.isfinite(most):
            raise Split("range")
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

    def settled(self, v):
        """The one double that all results round to, if the range is that
        narrow."""
        f = float(v.center if isinstance(v.center, arb) else v.center[0])
        if not 2.0 ** -900 < abs(f) < 2.0 ** 1000:
            return None
        quarter = math.ldexp(1.0, exponent(abs(f)) - 54)
        if v.high - v.low > 16 * quarter:
            return None
        middle, total = v.center, self.total(v)
        if not isinstance(middle, arb):
            middle, total = middle[0], total + self.radius(v.center, v.over)
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
        return getattr(self, "op_" + operation)(node, *operands)

    def op_toBits(self, node, a):
        return ("bits", a)

    def op_fromBits(self, node, i):
        return i[1]

    def op_iand(self, node, i, j):
        if isinstance(i, int):
            i, j = j, i
        v = i[1]
        if j == rec.SIGN:
            if v.low >= 0:
                return 0
            if v.high < 0:
                return rec.SIGN
        if j == BELOW_TWO:
            if v.most() < 2:
                return i
            return ("bits", self.value(ZERO, ZERO, {}, arb(2)))
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
        v = Value(-a.center, -a.over, {s: -c for s, c in a.noise.items()},
                  a.rest, a.grid)
        v.ideal, v.low, v.high, v.last = -a.ideal, -a.high, -a.low, a.last
        v._total = a._total
        return v

    def op_abs(self, node, a):
        if a.low >= 0:
            return a
        if a.high <= 0:
            return self.op_neg(node, a)
        raise Split("sign")

    def op_lt(self, node, a, b):
        if a.high < b.low:
            return True
        if a.low >= b.high:
            return False
        raise Split("comparison")

    def op_eq(self, node, a, b):
        if a.high < b.low or a.low > b.high:
            return False
        raise Split("comparison")

    def op_min(self, node, a, b):
        if a.high <= b.low:
            return a
        if a.low >= b.high:
            return b
        raise Split("minimum")

    def op_max(self, node, a, b):
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
        return self.rounded(v, node, min(a.grid, b.grid))

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
            raise Split("overflow")
        result = self.rounded(v, node, a.grid + n, normal)
        if node in self.exact:
            result.grid = a.grid + n
            result.last = a.last
        return result

    def op_scalef(self, node, a, n):
        if n.number is None:
            raise Split("scale")
        return self.scaled(node, a, int(math.floor(n.number)))

    def op_fma(self, node, a, b, c):
        if a.number == 0 or b.number == 0:
            return c
        v = self.sum(self.product(a, b), c)
        integer = self.to_integer(node, v, c)
        if integer is not None:
            return integer
        return self.rounded(v, node, min(a.grid + b.grid, c.grid))

    def op_div(self, node, a, b):
        return self.rounded(self.quotient(a, b), node, None)

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
        ball = self.enclose(v.center, v.over) + UNIT * self.total(v)
        half = arb(0.5)
        low = int((ball.lower() - half).ceil().unique_fmpz())
        high = int((ball.upper() + half).floor().unique_fmpz())
        if not 2 ** 52 <= low <= high < 2 ** 53 or high - low > 3:
            raise Split("integer")
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
        if result.number is not None:
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
        """What twoProd without FMA loses: the product of the lower halves has 54
        bits, and the last sum rounds once, together below 2^-103 of the product
        of the powers of two. Nothing where a factor has fewer bits."""
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


def find_patterns(record):
    """Nodes that are error terms: node -> (kind, s, a, c)."""
    nodes = record.nodes

    def op(i, name):
        return nodes[i][1] if nodes[i][0] == name else None

    def product_split(i):
        """aHi cHi - p + aHi cLo + aLo cHi + aLo cLo."""
        terms = []
        for _ in range(3):
            pair = op(i, "add")
            if pair is None:
                return None
            i, term = pair
            terms.append(op(term, "mul"))
        first = op(i, "sub")
        if first is None or None in terms:
            return None
        upper, product = op(first[0], "mul"), op(first[1], "mul")
        if upper is None or product is None:
            return None
        a, c = product
        (low_low, low_high, high_low) = terms

        def is_upper(j, whole):
            bits = op(j, "fromBits")
            masked = bits and op(bits[0], "iand")
            return masked and op(masked[0], "toBits") == (whole,) and \
                nodes[masked[1]] == ("constI", (UPPER_HALF - (1 << 64),))

        def is_lower(j, whole, high):
            return op(j, "sub") == (whole, high)
        high_a, high_c = upper
        low_a, low_c = low_low
        if is_upper(high_a, a) and is_upper(high_c, c) and \
                is_lower(low_a, a, high_a) and is_lower(low_c, c, high_c) and \
                high_low == (high_a, low_c) and low_high == (low_a, high_c):
            return ("split", first[1], a, c)
        return None

    patterns = {}
    for i, (operation, rest) in enumerate(nodes):
        found = None
        if operation == "sub":
            c, inner = rest
            pair = op(inner, "sub")
            if pair and op(pair[0], "add"):
                s, a = pair
                if op(s, "add") in ((a, c), (c, a)):
                    found = ("fast", s, a, c)
            # (a - s) - c with s = a - c.
            pair = op(rest[0], "sub")
            if pair and op(pair[1], "sub") == (pair[0], rest[1]):
                found = ("fast", pair[1], pair[0], rest[1])
        elif operation == "add":
            left, right = op(rest[0], "sub"), op(rest[1], "sub")
            if left and right:
                a, a_round = left
                c, c_round = right
                inner, outer = op(a_round, "sub"), op(c_round, "sub")
                if inner and outer and inner[1] == c_round and \
                        outer == (inner[0], a) and \
                        op(inner[0], "add") in ((a, c), (c, a)):
                    found = ("sum", inner[0], a, c)
            found = found or product_split(i)
        elif operation == "fma":
            negated = op(rest[2], "neg")
            if negated and op(negated[0], "mul") in ((rest[0], rest[1]),
                                                     (rest[1], rest[0])):
                found = ("product", negated[0], rest[0], rest[1])
        if found:
            patterns[i] = found
    return patterns
