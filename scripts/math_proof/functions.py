"""The pieces of every function: which arguments, which target, which cuts.

A cut replaces nodes by what they stand for: the argument reductions by
x = r + n L with an integer n in a range, log's split by x = 2^k (1 + f), the
reduction in integers by its error. checks.py shows that the cuts hold.
Everything else is the recorded operations.
"""

import math

from flint import arb, arb_series

import engine
from cells import linear, mirrored, octaves, real, reduced_cells
from prover import Piece
from values import LARGEST

LN2 = arb(2).log()
HALF_PI = arb.pi() / 2
GELU_1 = 2 * (2 / arb.pi()).sqrt()
GELU_3 = GELU_1 * arb("0.044715")
LEAST = 2.0 ** -1074


# The cuts x = r + n L: L, the range of r, that of x; and the largest n.
CUTS = {"exp": (LN2, 0.3465736, 746.0), "exp2": (arb(1), 0.5, 1076.0),
        "sin": (HALF_PI, 0.7853984, 2.0 ** 30),
        "cos": (HALF_PI, 0.7853984, 2.0 ** 30)}
MOST_N = {"exp": 1078, "exp2": 1078, "sin": 683565277, "cos": 683565277}


# --- Finding nodes ---

def op(record, i, name):
    return record.nodes[i][1] if record.nodes[i][0] == name else None


def argument_rounding(record):
    """(argument, n, shifted, offset): the first rounding to an integer,
    n = shifted - (magic + offset)."""
    for i, (name, rest) in enumerate(record.nodes):
        if name not in ("fma", "add"):
            continue
        offset = engine.rounding_offset(record.constant(rest[-1]))
        if offset is None:
            continue
        argument = rest[0]
        if name == "add":
            product = op(record, rest[0], "mul")
            if product is not None:
                argument = product[0]
        for user in record.users[i]:
            if op(record, user, "sub") == (i, rest[-1]):
                return argument, user, i, offset
    raise AssertionError(f"{record.title()}: no rounding to an integer found")


def scaled_node(record):
    """p where the result is p 2^n."""
    p = op(record, record.output, "scalef")
    if p is None:
        p = op(record, op(record, record.output, "mul")[0], "mul")
    return p[0]


# --- exp and exp2 ---

def integer_groups(limit, factor):
    """0, +-1, +-2..2 factor - 1, ... up to the limit."""
    groups = [(0, 0), (1, 1), (-1, -1)]
    n = 2
    while n <= limit:
        top = min(factor * n - 1, limit)
        groups += [(n, top), (-top, -n)]
        n = top + 1
    return groups


def reduced(record, group, period, argument, n):
    """argument = r + n period, n an integer of the group."""
    low_n, high_n = group
    middle, half = (low_n + high_n) // 2, 0
    half = max(high_n - middle, middle - low_n)

    def assign(cell, low, high):
        center = (arb(low) + arb(high)) / 2
        base = cell.variable(center)
        noise = {"n": arb(1)} if half else {}
        x = cell.value(base.center + middle * period,
                       base.over + middle * period,
                       {s: period for s in noise}, engine.ZERO)
        # The ends of the range, better than a ball's radius has them.
        x.low = engine.float_below(arb(low) + (middle - half) * period)
        x.high = engine.float_above(arb(high) + (middle + half) * period)
        least = x.least()
        x.grid = max(engine.exponent(least) - 52, -1074) if least else -1074
        if half:
            count = cell.value(arb(middle), arb(middle), noise, engine.ZERO, 0)
        else:
            count = engine.number(float(middle))
        return {argument: x, n: count}

    def least_x(low, high):
        if low_n > 0:
            return max(0.0, engine.float_below(arb(low) + low_n * period))
        if high_n < 0:
            return max(0.0, engine.float_below(-arb(high) - high_n * period))
        return 0.0 if low < 0 < high else min(abs(low), abs(high))
    return assign, {"n": arb(half)}, least_x


def exponential(record, period, target, half_range, x_range):
    """Pieces of exp and exp2: p by the reduced argument; subnormal results."""
    argument, n, _, _ = argument_rounding(record)
    near = octaves(2.0 ** -20, half_range, 16)
    cells = mirrored(real(near)) + real(near) + [(-2.0 ** -20, 2.0 ** -20)]
    # A bound that grows with |x| needs groups of about one |x|.
    factor = 4 if record.stated["per_x"] else 1024
    for group in integer_groups(MOST_N[record.function], factor):
        assign, symbols, least_x = reduced(record, group, period, argument, n)
        yield Piece(f"n in {group[0]}..{group[1]}", cells, target,
                    scaled_node(record), assign, doubles=False,
                    symbols=symbols, least_x=least_x,
                    ties=before_one(record, scaled_node(record)))
    low, high = x_range
    p = scaled_node(record)
    yield Piece("subnormal results", linear(low, high, 2.0 ** -4),
                target, record.output, ties=(*before_one(record, p), p))
    yield Piece("0", [(-LARGEST, low)], constant(0), record.output, order=2,
                wide=True, extra=lambda a, b: engine.UNIT * target(arb(low)))


def before_one(record, p):
    """The node y where p = y + 1."""
    rest = op(record, p, "add")
    return (rest[0],) if rest and record.constant(rest[1]) == 1.0 else ()


def exp(record):
    yield from exponential(record, LN2, lambda s: s.exp(), 0.3465736,
                           (-748.0, engine.float_above(-1022 * LN2)))


def exp2(record):
    yield from exponential(record, arb(1), lambda s: (s * LN2).exp(), 0.5,
                           (-1078.0, -1022.0))


# --- expm1, sigmoid, silu, gelu_tanh, tanh, erf ---

def constant(value):
    return lambda s: arb_series([arb(value), arb(0)])


def expm1(record):
    small = octaves(LEAST, 2.0 ** -54)
    for name, cells in (("x tiny", small), ("-x tiny", mirrored(small))):
        yield Piece(name, cells, lambda s: s, record.output, order=2,
                    extra=lambda a, b: engine.UNIT *
                    arb(max(abs(a), abs(b))) ** 2)
    middle = octaves(2.0 ** -54, 0.25, 4)
    target = lambda s: s.exp() - 1
    yield Piece("small x", middle, target, record.output)
    yield Piece("small -x", mirrored(middle), target, record.output)
    yield Piece("x > 0", linear(0.25, 8.0, 2.0 ** -6), target, record.output)
    yield Piece("large x", reduced_cells(8.0, 709.7827128933841), target,
                record.output, order=16)
    yield Piece("x < 0", mirrored(linear(0.25, 39.9, 2.0 ** -5)), target,
                record.output)
    yield Piece("-1", [(-LARGEST, -40.0), (-40.0, -39.9)], constant(-1),
                record.output, order=2, extra=lambda a, b: (-arb(39.9)).exp())


def logistic(s):
    """1 / (1 + e^-s), to full relative precision."""
    return 1 / (1 + (-s).exp())


def sigmoid(record):
    output = record.output
    yield Piece("0", [(0.0, 2.0 ** -56), (-2.0 ** -56, -LEAST)], logistic,
                output)
    near = octaves(2.0 ** -56, 1.0, 4)
    yield Piece("small x", near, logistic, output)
    yield Piece("small -x", mirrored(near), logistic, output)
    yield Piece("x > 0", linear(1.0, 40.0, 2.0 ** -5), logistic, output)
    yield Piece("x < 0", mirrored(reduced_cells(1.0, 746.0)), logistic,
                output, order=16)
    yield Piece("1", linear(40.0, 750.0, 0.5), constant(1), output, order=2,
                extra=lambda a, b: engine.UNIT * (-arb(40)).exp())
    yield Piece("exactly 1", [(750.0, LARGEST)], constant(1), output, order=2,
                wide=True,
                extra=lambda a, b: engine.UNIT * (-arb(40)).exp())
    yield Piece("0", [(-LARGEST, -746.0)], constant(0), output, order=2,
                wide=True,
                extra=lambda a, b: engine.UNIT * (-arb(746)).exp())


def silu(record):
    output = record.output
    target = lambda s: s * logistic(s)
    tiny = octaves(LEAST, 2.0 ** -56)
    near = octaves(2.0 ** -56, 1.0, 4)
    for name, cells in (("x", tiny + near), ("-x", mirrored(tiny + near))):
        yield Piece("small " + name, cells, target, output)
    yield Piece("x > 0", linear(1.0, 40.0, 2.0 ** -4), target, output)
    yield Piece("x < 0", mirrored(reduced_cells(1.0, 752.0)), target,
                output, order=16)
    yield Piece("large x", linear(40.0, 750.0, 0.5) +
                octaves(750.0, LARGEST) + [(LARGEST, LARGEST)],
                lambda s: s, output, order=2,
                extra=lambda a, b: engine.UNIT * arb(b) * (-arb(40)).exp())
    yield Piece("0", [(-LARGEST, -752.0)], constant(0), output, order=2,
                wide=True,
                extra=lambda a, b: engine.UNIT * (-arb(752)).exp() * 752)


def gelu_tanh(record):
    output = record.output
    target = lambda s: s * logistic(s * (GELU_1 + GELU_3 * s * s))
    tiny = octaves(LEAST, 2.0 ** -56)
    near = octaves(2.0 ** -56, 0.5, 4)
    for name, cells in (("x", tiny + near), ("-x", mirrored(tiny + near))):
        yield Piece("small " + name, cells, target, output)
    yield Piece("x > 0", linear(0.5, 8.0, 2.0 ** -6), target, output)
    yield Piece("-5 <= x < 0", mirrored(linear(0.5, 5.0, 2.0 ** -6)) +
                [(-5.0, -5.0)], target, output)
    rest = lambda x: (-arb(x) * GELU_1 - GELU_3 * arb(x) ** 3).exp()
    # From 8 the quotient that multiplies x is that of 8.
    yield Piece("large x", octaves(8.0, LARGEST) + [(LARGEST, LARGEST)],
                lambda s: s, output, order=2,
                extra=lambda a, b: engine.UNIT * arb(b) * rest(8.0))
    yield Piece("x < -5", mirrored(linear(math.nextafter(5.0, 6), 12.0,
                                          2.0 ** -6) +
                                   linear(12.0, 20.5, 2.0 ** -8)),
                target, output, absolute=True)
    yield Piece("x << -5", mirrored(linear(20.5, 22.5, 2.0 ** -7)) +
                [(-LARGEST, -22.5)], constant(0), output, order=2,
                absolute=True, wide=True,
                extra=lambda a, b: engine.UNIT * 21 * rest(20.5))


def series_by_size(small, usual, limit):
    """`small` for cells within the limit, where `usual` would cancel."""
    return lambda s: small(s) if abs(s[0]) < limit else usual(s)


def tanh(record):
    output = record.output
    quotient = lambda s: 1 - 2 / (1 + (2 * s).exp())
    yield Piece("tiny x", octaves(LEAST, 2.0 ** -30), lambda s: s - s ** 3 / 3,
                output, extra=lambda a, b: engine.UNIT * arb(b) ** 5)
    yield Piece("small x", octaves(2.0 ** -30, 0.125, 8), quotient,
                output)
    yield Piece("x", linear(0.125, 22.25, 2.0 ** -6), quotient, output)
    yield Piece("1", [(22.25, LARGEST)], constant(1), output, order=2,
                wide=True,
                extra=lambda a, b: 2 * (-arb(44)).exp() * engine.UNIT)


def erf(record):
    output = record.output
    target = lambda s: s.erf()
    yield Piece("tiny x", octaves(LEAST, 2.0 ** -30),
                lambda s: (s - s ** 3 / 3) * (2 / arb.pi().sqrt()), output,
                extra=lambda a, b: engine.UNIT * arb(b) ** 5)
    yield Piece("small x", octaves(2.0 ** -30, 0.9375, 8), target, output)
    yield Piece("x", linear(0.9375, 6.0, 2.0 ** -6), target, output, order=16)
    yield Piece("1", [(6.0, 6.0), (math.nextafter(6.0, 7), LARGEST)],
                constant(1), output, order=2,
                extra=lambda a, b: engine.UNIT * arb(6).erfc())


# --- Logarithms ---

def split_nodes(record):
    """(f, k) of splitLog: f = m - 1, k = field + offset."""
    for i, (name, rest) in enumerate(record.nodes):
        if name == "sub" and record.constant(rest[1]) == 1.0 and \
                record.nodes[rest[0]][0] == "fromBits":
            f = i
        if name == "add" and record.nodes[rest[0]][0] == "fromBits" and \
                record.nodes[rest[1]][0] == "select":
            k = i
    return f, k


def split_argument(record):
    """What splitLog splits: compared with the least normal number."""
    return next(rest[0] for name, rest in record.nodes
                if name == "lt" and record.constant(rest[1]) == 2.0 ** -1022)


# Functions whose pieces have cells of x itself: the least and largest magnitude
# of positive and negative x.
DIRECT = {"expm1": ((LEAST, 709.782712893384), (LEAST, LARGEST)),
          "sigmoid": ((LEAST, LARGEST), (LEAST, LARGEST)),
          "silu": ((LEAST, LARGEST), (LEAST, LARGEST)),
          "gelu_tanh": ((LEAST, LARGEST), (LEAST, LARGEST)),
          "tanh": ((LEAST, LARGEST), None), "erf": ((LEAST, LARGEST), None),
          "rsqrt": ((LEAST, LARGEST), None)}


def log_result(record):
    """The value that the special cases choose from."""
    i = op(record, record.output, "select")[2]
    return op(record, i, "select")[1]


def fraction_cells():
    """f in [-1/3, 1/3] but 0: (grid, cells). Its ends are a little further."""
    near = octaves(2.0 ** -53, 2.0 ** -5) + linear(2.0 ** -5, 0.33335,
                                                  2.0 ** -7)
    return mirrored(real(near)), real([c for c in near if c[0] >= 2.0 ** -52])


def exponent_groups():
    groups = [(k, k) for n in range(1, 5) for k in (n, -n)]
    n = 5
    while n <= 1075:
        top = min(8 * n - 1, 1075)
        groups += [(n, top), (-top, -n)]
        n = top + 1
    return groups


def with_split(record, group, grid, base, extra=()):
    f_node, k_node = split_nodes(record)
    low_k, high_k = group
    middle = (low_k + high_k) // 2
    half = max(high_k - middle, middle - low_k)

    def assign(cell, low, high):
        if low == high:
            f = engine.number(low)
        else:
            f = cell.variable((arb(low) + arb(high)) / 2, grid=grid)
            f.grid = max(grid, engine.exponent(f.least()) - 52) \
                if f.least() > 0 else grid
        k = engine.number(float(middle)) if not half else \
            cell.value(arb(middle), arb(middle), {"k": arb(1)}, engine.ZERO, 0)
        assigned = {f_node: f, k_node: k}
        for make in extra:
            assigned.update(make(cell, f, k))
        return assigned
    slopes = {"k": base} if half else {}
    return assign, {"k": arb(half)}, slopes, middle


def logarithm(record, base, factor, groups, output, extra=(), symbols=None,
              slopes=None, remainder=None):
    negative, positive = fraction_cells()
    for group in groups:
        for name, grid, cells in (("f < 0", -53, negative),
                                  ("f > 0", -52, positive),
                                  ("f = 0", -52, [(0.0, 0.0)])):
            if group == (0, 0) and name == "f = 0" and not symbols:
                continue # log 1 = 0 is among the special values
            assign, bounds, rise, middle = with_split(record, group, grid, base,
                                                      extra)
            target = lambda s, m=middle: (1 + s).log() * factor + m * base
            yield Piece(f"k in {group[0]}..{group[1]}, {name}", cells, target,
                        output, assign, doubles=False,
                        symbols={**bounds, **(symbols or {})},
                        slopes={**rise, **(slopes or {})}, order=14,
                        extra=remainder)


def log(record):
    yield from logarithm(record, LN2, arb(1), [(0, 0)] + exponent_groups(),
                         log_result(record))


def log2(record):
    yield from logarithm(record, arb(1), 1 / LN2, [(0, 0)] + exponent_groups(),
                         log_result(record))


def log1p(record):
    chosen = op(record, log_result(record), "select")
    output = chosen[2]
    f_node, k_node = split_nodes(record)
    tiny = octaves(LEAST, 2.0 ** -54)
    for name, cells in (("x tiny", tiny), ("-x tiny", mirrored(tiny))):
        yield Piece(name, cells, lambda s: s, chosen[1], order=2,
                    extra=lambda a, b: engine.UNIT *
                    arb(max(abs(a), abs(b))) ** 2)
    sum_node = next(i for i, (name, rest) in enumerate(record.nodes)
                    if name == "add" and record.x in rest and
                    record.constant(rest[0]) == 1.0)
    quotient = next(i for i, (name, rest) in enumerate(record.nodes)
                    if name == "div" and rest[1] == sum_node)

    def assign_near(cell, low, high):
        x = cell.variable((arb(low) + arb(high)) / 2, low, high) \
            if low < high else engine.number(low)
        cell.values[record.x] = x
        u = cell.at(sum_node)
        # Few sums, as 1 + x is monotone: each is taken for itself.
        sums = [1.0 + low]
        while sums[-1] < 1.0 + high and len(sums) < 5:
            sums.append(math.nextafter(sums[-1], 2))
        if u.number is None and len(sums) < 5:
            raise engine.Fork(sum_node, sums)
        if u.number is not None:
            f = engine.number(u.number - 1)
        else:
            f = cell.value(u.center - 1, u.over - 1, dict(u.noise), u.rest,
                           -53)
        return {record.x: x, f_node: f, k_node: engine.number(0.0)}
    near = octaves(2.0 ** -54, 2.0 ** -5, 2) + linear(2.0 ** -5, 0.33334,
                                                    2.0 ** -7)
    for name, cells in (("x small", near), ("-x small", mirrored(near))):
        yield Piece(name, cells, lambda s: (1 + s).log(), output, assign_near,
                    order=14)

    # 1 + x = u + c: log(u + c) = log u + q + (at most q^2), q = c/u, which is
    # at most 2^-53; its quotient is rounded.
    corrected = next(i for i, (name, rest) in enumerate(record.nodes)
                     if name == "add" and quotient in rest)

    def quotient_value(cell, f, k):
        v = cell.value(engine.ZERO, engine.ZERO, {"q": arb(1)},
                       engine.power(-106))
        if k.number == 1 and f.high < -0.25 and \
                record.nodes[corrected][1][1] == quotient:
            # x in [1/3, 1/2) is a multiple of 2^-54, so that c, which is at
            # most 2^-53, is one of five numbers.
            error = engine.UNIT * engine.power(-106)
            cell.addends[corrected] = [
                arb(j) * engine.power(-54) / (2 * (1 + f.ideal)) + error
                for j in range(-2, 3)]
        return {quotient: v}
    yield from logarithm(record, LN2, arb(1), exponent_groups(), output,
                         [quotient_value], {"q": engine.power(-53)},
                         {"q": arb(1)},
                         lambda a, b: engine.power(-105) * engine.UNIT)


# --- rsqrt ---

def rsqrt(record):
    target = lambda s: s.rsqrt()
    for name, low, high in (("x >= 1", 1.0, LARGEST),
                            ("x < 1", 2.0 ** -1000, 1.0),
                            ("smallest x", LEAST, 2.0 ** -1000)):
        yield Piece(name, octaves(low, high, 8), target, record.output,
                    order=16)
    yield Piece("largest x", [(LARGEST, LARGEST)], target, record.output)


# --- sin and cos ---

def nearest_multiple(low_n, high_n):
    """A lower bound of |x - n pi/2| over doubles x below 2^30 and the group's
    n: by the continued fraction of pi/2 at each scale of x, |m 2^e - n pi/2| is
    no less than its best approximation with n <= high_n."""
    worst = arb(1)
    lowest = engine.exponent(float(low_n) * 1.5 - 0.8)
    highest = engine.exponent(float(high_n) * 1.58 + 0.8)
    for e in range(lowest, highest + 1):
        # x = m 2^(e - 52): |m - n alpha| with alpha = pi/2 2^(52 - e).
        alpha = HALF_PI * engine.power(52 - e)
        rest = alpha - int(alpha.floor().unique_fmpz())
        q0, q1, part = 0, 1, rest
        while True:
            part = 1 / part
            a = int(part.floor().unique_fmpz())
            q0, q1 = q1, a * q1 + q0
            part = part - a
            if q1 > high_n:
                break
        value = rest * q0
        distance = abs(value - int((value + 0.5).floor().unique_fmpz()))
        worst = min(worst, distance * engine.power(e - 52),
                    key=lambda v: float(v.lower()))
    return engine.float_below(worst)


# Beyond 2^30 no double comes closer to a multiple of pi/2, in quarter turns.
CLOSEST = 62


def large_error(r):
    """What hi + lo of the reduction in integers differ from r at most: 128 bits
    of the fraction of a quarter turn, with less than eight units lost below;
    roundings of the lower words."""
    return 2 * engine.power(-125) + r * engine.power(-100)


def large_selects(record):
    """Quadrant, hi and lo: either path's."""
    either = op(record, record.output, "select")[1]
    large = op(record, either, "ifAny")[0]
    return [i for i, (name, rest) in enumerate(record.nodes)
            if name == "select" and rest[0] == large]


def branches(record, i):
    """The sine and the cosine that the path with result i chooses from."""
    signed = op(record, i, "fromBits")[0]
    y = op(record, op(record, signed, "ixor")[0], "toBits")[0]
    return op(record, y, "select")[1:]


def beyond(record):
    """Pieces for the arguments beyond 2^30, whose remainder is given."""
    _, hi, lo = large_selects(record)
    either = op(record, record.output, "select")[1]
    sine, cosine = branches(record, op(record, either, "ifAny")[2])

    def assign(cell, low, high):
        r = cell.variable((arb(low) + arb(high)) / 2)
        most = max(abs(low), abs(high))
        cell.bound["hi"] = engine.half_ulp(most) * arb(1.001)
        error = large_error(arb(most)).upper()
        return {hi: cell.value(r.center, r.over, {"hi": arb(1)}, engine.ZERO),
                lo: cell.value(engine.ZERO, engine.ZERO, {"hi": arb(-1)},
                               error)}
    near = real(octaves(2.0 ** -CLOSEST, 2.0 ** -6, 2)) + \
        real(linear(2.0 ** -6, 0.7853984, 2.0 ** -6))
    cells = mirrored(near) + near
    yield Piece("sine, x > 2^30", cells, lambda s: s.sin(), sine, assign,
                doubles=False)
    yield Piece("cosine, x > 2^30",
                [c for c in cells if abs(c[0]) + abs(c[1]) > 2.0 ** -5] +
                [(-2.0 ** -6, 2.0 ** -6)], lambda s: s.cos(), cosine, assign,
                doubles=False)


def trigonometric(record):
    argument, n, _, _ = argument_rounding(record)
    either = op(record, record.output, "select")[1]
    sine, cosine = branches(record, op(record, either, "ifAny")[1])
    _, quarter, _ = CUTS[record.function]
    groups = [(0, 0), (1, 1)]
    low = 2
    while low < 2 ** 30 * 0.6366198:
        groups.append((low, min(32 * low - 1, 683565277)))
        low *= 32
    for group in groups:
        least = LEAST if group == (0, 0) else nearest_multiple(*group)
        near = real(octaves(least, quarter, 1 if least < 2.0 ** -70 else 2))
        fine = [c for c in near if c[1] <= 2.0 ** -6] + \
            real(linear(2.0 ** -6, quarter, 2.0 ** -6))
        sides = fine if group == (0, 0) else mirrored(fine) + fine
        assign, symbols, _ = reduced(record, group, HALF_PI, argument, n)
        for name, output, target in (("sine", sine, lambda s: s.sin()),
                                     ("cosine", cosine, lambda s: s.cos())):
            if name == "cosine":
                cells = [c for c in sides if abs(c[0]) + abs(c[1]) > 2.0 ** -5]
                cells += [(-2.0 ** -6, 2.0 ** -6)] if group != (0, 0) else \
                    [(0.0, 2.0 ** -6)]
            else:
                cells = sides
            yield Piece(f"{name}, n in {group[0]}..{group[1]}", cells, target,
                        output, assign, doubles=False, symbols=symbols)
    yield from beyond(record)


def sin(record):
    yield from trigonometric(record)


def cos(record):
    yield from trigonometric(record)
