"""What the pieces take for granted, checked on the recorded operations.

Each check runs exact arithmetic over a finite set (every exponent, every count
of exponents, the values where something changes) and raises Failed. What a
check does not reach, docs/numerics.md argues.
"""

import fractions
import math
import random

from flint import arb, ctx

import engine
import functions
import record as rec

LARGEST = math.nextafter(math.inf, 0)
LEAST = 2.0 ** -1074
MANTISSA = (1 << 52) - 1
ODD, EVEN = ("tanh", "erf", "sin"), ("cos",)


class Failed(Exception):
    """A check that does not hold."""


def require(holds, record, what):
    if not holds:
        raise Failed(f"{record.title()}: {what}")


def evaluate(record, given, wanted):
    """The wanted nodes' values, given those of some others."""
    known = dict(given)

    def at(i):
        if i not in known:
            operation, rest = record.nodes[i]
            if operation == "constF":
                known[i] = rec.float_of(rest[0])
            elif operation == "constI":
                known[i] = rest[0] & rec.MASK
            elif operation in ("shl", "lshr"):
                value = at(rest[0])
                known[i] = (value << rest[1]) & rec.MASK \
                    if operation == "shl" else value >> rest[1]
            else:
                known[i] = rec.EMULATED[operation](*[at(r) for r in rest])
        return known[i]
    return [at(i) for i in wanted]


# --- The cut x = r + n L ---

def reduction(record):
    """|x - n L| for the n of the code, x within the piece's range, is within
    the range of r: the sum with 1.5 2^52 rounds x times its factor to the
    nearest integer, the product itself once before where there is no FMA."""
    period, half_range, limit = functions.CUTS[record.function]
    _, n, shifted, offset = functions.argument_rounding(record)
    name, rest = record.nodes[shifted]
    if name == "fma":
        factor, before = record.constant(rest[1]), 0
    else:
        product = functions.op(record, rest[0], "mul")
        factor = record.constant(product[1]) if product else 1.0
        before = 0 if factor in (None, 1.0) else \
            engine.half_ulp(limit * factor * 1.001)
    factor = arb(factor or 1)
    largest = period * (arb(0.5) + before) + limit * abs(1 - factor * period)
    require(largest <= arb(half_range), record,
            f"the remainder reaches {largest.str(12)}")
    most = functions.MOST_N[record.function]
    require(limit * factor + 1 <= most, record,
            "the integer leaves its groups")
    # Between 2^52 and 2^53 the unit is 1.
    require(2 ** 52 < engine.MAGIC + offset - most and
            engine.MAGIC + offset + most < 2 ** 53, record,
            "the sum does not round to an integer")


# --- Cells ---

def coverage(record):
    """The cells of pieces whose variable is x leave no double out."""
    cells = []
    for piece in getattr(functions, record.function)(record):
        require(piece.assign is None, record, f"{piece.name} has a cut")
        cells += piece.cells
    positive, negative = functions.DIRECT[record.function]
    parts = [(positive, [c for c in cells if c[1] > 0])]
    if negative is not None:
        parts.append((negative, [(-b, -a) for a, b in cells if a < 0]))
    for (least, largest), side in parts:
        reached = 0.0
        for low, high in sorted(side):
            require(low <= math.nextafter(reached, math.inf), record,
                    f"no cell between {reached!r} and {low!r}")
            reached = max(reached, high)
        require(reached >= largest, record, f"the cells end at {reached!r}")


# --- The cut x = 2^k (1 + f) ---

def logarithm_split(record):
    """At both ends of each stretch of arguments on which k is the same, in
    every binade: between them m has the mantissa bits of x, so that f is exact
    there if it is at the ends."""
    f_node, k_node = functions.split_nodes(record)
    source = functions.split_argument(record)

    def check(x):
        f, k = evaluate(record, {source: x}, (f_node, k_node))
        whole = fractions.Fraction(2) ** int(k) * (1 + fractions.Fraction(f))
        require(whole == fractions.Fraction(x) and -0.33335 < f < 0.33335 and
                k == int(k), record, f"x = {x!r} is split into {k!r}, {f!r}")
        return k
    count, step = 0, 0
    for e in range(-1074, 1024):
        ends = [math.ldexp(1.0, e), math.nextafter(math.ldexp(1.0, e + 1), 0)
                if e < 1023 else LARGEST]
        low, high = (rec.bits_of(end) for end in ends)
        first, last = check(ends[0]), check(ends[1])
        count += 2
        if first != last:
            # The step, by bisection; k is monotone in the bits. First where it
            # was in the last binade.
            require(last == first + 1, record, f"k has steps in binade {e}")
            guesses = [(low & ~MANTISSA) | step + 1, (low & ~MANTISSA) | step]
            while high - low > 1:
                middle = guesses.pop() if guesses else (low + high) // 2
                if not low < middle < high:
                    continue
                if check(rec.float_of(middle)) == first:
                    low = middle
                else:
                    high = middle
            step = low & MANTISSA
            count += 2
    return count


# --- Scaling by a power of two ---

def scaling(record):
    """p 2^n is rounded once, for every n that occurs."""
    p = functions.scaled_node(record)
    _, n, shifted, offset = functions.argument_rounding(record)
    numbers = [0.5, math.nextafter(0.5, 1), 0.70710678, math.nextafter(1, 0),
               1.0, math.nextafter(1, 2), 4 / 3, 1.5, math.nextafter(2, 0)]
    for count in range(-1078, 1026):
        for value in numbers:
            given = {p: value, n: float(count),
                     shifted: engine.MAGIC + offset + count}
            result, = evaluate(record, given, (record.output,))
            require(result == rec.scalef(value, float(count)), record,
                    f"{value!r} times 2^{count} gives {result!r}")


# --- Symmetry ---

def symmetry(record):
    """x enters through its magnitude and its sign bit alone (sin and cos: also
    as x - x, where x is not finite); the samples have the symmetry."""
    odd = record.function in ODD
    for user in record.users[record.x]:
        name, rest = record.nodes[user]
        fine = name == "abs" or (name == "sub" and rest == (record.x,) * 2)
        if name == "toBits" and odd:
            fine = all(record.nodes[i][0] == "iand" and
                       ("constI", (-(1 << 63),)) in
                       [record.nodes[r] for r in record.operands(i)]
                       for i in record.users[user])
        require(fine, record, f"x is used by {name}")
    flip = rec.SIGN if odd else 0
    for x_bits, _ in record.samples:
        there, back = record.emulate(x_bits), record.emulate(x_bits ^ rec.SIGN)
        require(there ^ flip == back or
                math.isnan(rec.float_of(there)) and
                math.isnan(rec.float_of(back)), record,
                f"not symmetric at {rec.float_of(x_bits)!r}")


# --- twoProd without FMA ---

def two_product(record):
    """Products of every pair of significands with extreme halves, and of random
    ones: the error term is exact but for 2^-104 of the powers of two."""
    found = [(i, p) for i, p in record.patterns.items() if p[0] == "split"]
    if not found:
        return
    halves = [0, 1, 2, (1 << 25) - 1, 1 << 25, (1 << 26) - 1, 1 << 26,
              (1 << 27) - 1]
    significands = [(1 << 52) | (high % (1 << 25)) << 27 | low
                    for high in halves for low in halves]
    source = random.Random(1)
    pairs = [(a, c) for a in significands for c in significands]
    pairs += [tuple(source.getrandbits(52) | 1 << 52 for _ in range(2))
              for _ in range(2000)]
    mask = ~((1 << 27) - 1)
    for a, c in pairs:
        x, y = math.ldexp(a, -52), math.ldexp(c, -52)
        x_hi, y_hi = math.ldexp(a & mask, -52), math.ldexp(c & mask, -52)
        x_lo, y_lo = x - x_hi, y - y_hi
        p = x * y
        e = ((x_hi * y_hi - p) + x_hi * y_lo + x_lo * y_hi) + x_lo * y_lo
        lost = fractions.Fraction(x) * fractions.Fraction(y) - \
            fractions.Fraction(p) - fractions.Fraction(e)
        require(abs(lost) <= fractions.Fraction(1, 1 << 104), record,
                f"twoProd of {x!r} and {y!r} loses {float(lost)}")


# --- sin and cos beyond 2^30 ---

def least_fraction(e):
    """A lower bound of the distance of x 2/pi from an integer, for the doubles
    of binade e, and the mantissa that comes closest: |m a - n| with
    a = 2^(e-52) 2/pi is least at a convergent's denominator."""
    a = engine.power(e - 52) * 2 / arb.pi()
    part = a - a.floor()
    q0, q1, rest = 0, 1, part
    while True:
        rest = 1 / rest
        whole = rest.floor()
        term = int(whole.unique_fmpz())
        if term * q1 + q0 >= 1 << 53:
            break
        q0, q1, rest = q1, term * q1 + q0, rest - whole
    value = part * q1
    return abs(value - (value + 0.5).floor()), q1


def large_reduction(record):
    """In every binade from 2^30: the bound that the pieces use, at the argument
    next to a multiple of pi/2, the ends and random ones."""
    old, ctx.prec = ctx.prec, 1400
    try:
        _, hi, lo = functions.large_selects(record)
        hi, lo = (record.nodes[i][1][1] for i in (hi, lo))
        magnitude = next(i for i in record.users[record.x]
                         if record.nodes[i][0] == "abs")
        source, pi_half = random.Random(2), arb.pi() / 2
        for e in range(30, 1024):
            least, mantissa = least_fraction(e)
            require(least > engine.power(-functions.CLOSEST), record,
                    f"binade {e} comes closer to a multiple of pi/2")
            while mantissa < 1 << 52:
                mantissa *= 2
            chosen = {mantissa, 1 << 52, (1 << 53) - 1} | \
                {source.getrandbits(52) | 1 << 52 for _ in range(4)}
            for m in chosen:
                x = math.ldexp(float(m), e - 52)
                high, low = evaluate(record, {magnitude: x}, (hi, lo))
                n = (arb(x) / pi_half + 0.5).floor()
                r = arb(x) - n * pi_half
                gap = abs(arb(high) + arb(low) - r)
                require(gap <= functions.large_error(abs(r)) and
                        abs(high) <= 0.7853984 and
                        abs(arb(high) - r) <= arb(1.001) *
                        engine.half_ulp(engine.float_above(abs(r))), record,
                        f"the remainder of {x!r} is wrong by {gap.str(5)}")
    finally:
        ctx.prec = old


def quadrants(record):
    """The right one of sine and cosine and its sign, for the first counts of
    pi/2, random ones, and both paths: results within the tier's bound."""
    source, old = random.Random(3), ctx.prec
    ctx.prec = 1400
    try:
        counts = list(range(9)) + [source.randrange(683565276)
                                   for _ in range(40)]
        arguments = [float(n * functions.HALF_PI + r) for n in counts
                     for r in (-0.7, 0.3)]
        arguments += [math.ldexp(source.random() + 1, e)
                      for e in range(30, 1024, 8)]
        for x in arguments:
            x = abs(x)
            got = rec.float_of(record.emulate(rec.bits_of(x)))
            value = exact(record.function, x)
            e = engine.exponent(engine.float_above(abs(value)))
            require(abs(arb(got) - value) <= record.tier_bound["constant"] *
                    engine.power(e - 52), record, f"{x!r} gives {got!r}")
    finally:
        ctx.prec = old


# --- Special values ---

NAN, INFINITY = math.nan, math.inf
SPECIAL = {
    "exp": {INFINITY: INFINITY, -INFINITY: 0.0, 0.0: 1.0},
    "exp2": {INFINITY: INFINITY, -INFINITY: 0.0, 0.0: 1.0},
    "expm1": {INFINITY: INFINITY, -INFINITY: -1.0, 0.0: 0.0},
    "sigmoid": {INFINITY: 1.0, -INFINITY: 0.0, 0.0: 0.5},
    "silu": {INFINITY: INFINITY, -INFINITY: NAN, 0.0: 0.0},
    "gelu_tanh": {INFINITY: INFINITY, -INFINITY: NAN, 0.0: 0.0},
    "tanh": {INFINITY: 1.0, -INFINITY: -1.0, 0.0: 0.0},
    "erf": {INFINITY: 1.0, -INFINITY: -1.0, 0.0: 0.0},
    "log": {INFINITY: INFINITY, -INFINITY: NAN, 0.0: -INFINITY, 1.0: 0.0},
    "log2": {INFINITY: INFINITY, -INFINITY: NAN, 0.0: -INFINITY, 1.0: 0.0},
    "log1p": {INFINITY: INFINITY, -INFINITY: NAN, 0.0: 0.0, -1.0: -INFINITY},
    "rsqrt": {INFINITY: 0.0, -INFINITY: NAN, 0.0: INFINITY},
    "sin": {INFINITY: NAN, -INFINITY: NAN, 0.0: 0.0},
    "cos": {INFINITY: NAN, -INFINITY: NAN, 0.0: 1.0},
}
# Functions whose value at -0 is that at 0 with the sign turned.
SIGNED_ZERO = ("expm1", "silu", "gelu_tanh", "tanh", "erf", "log1p", "rsqrt",
               "sin")
BELOW_DOMAIN = {"log": 0.0, "log2": 0.0, "log1p": -1.0, "rsqrt": 0.0}


def exact(function, x):
    """The function at a finite x as a ball."""
    # Beyond these ends the exponentials are what they are at them, to doubles.
    if function in ("exp", "exp2", "expm1"):
        x = max(-10000.0, min(10000.0, x))
    elif function in ("sigmoid", "silu", "gelu_tanh"):
        x = max(-10000.0, x)
    x = arb(x)
    gelu = x * (functions.GELU_1 + functions.GELU_3 * x * x)
    logistic = lambda v: 1 / (1 + (-v).exp())
    return {"exp": x.exp, "exp2": lambda: (x * functions.LN2).exp(),
            "expm1": x.expm1, "sigmoid": lambda: logistic(x),
            "silu": lambda: x * logistic(x),
            "gelu_tanh": lambda: x * logistic(gelu), "tanh": x.tanh,
            "erf": x.erf, "log": x.log, "log1p": x.log1p,
            "log2": lambda: x.log() / functions.LN2, "rsqrt": x.rsqrt,
            "sin": x.sin, "cos": x.cos}[function]()


def edges(record):
    """Numbers at which something changes: the record's constants, the ends of
    the formats, where results overflow or become subnormal or 0."""
    numbers = {LEAST, 2 * LEAST, 2.0 ** -1022, LARGEST, 1.0, 0.5, 2.0 ** -54,
               2.0 ** -53, 2.0 ** 30, 2.0 ** 52, 2.0 ** 53, 2.0 ** 1023}
    for i, (name, _) in enumerate(record.nodes):
        if name == "constF":
            value = abs(record.constant(i))
            if math.isfinite(value) and value > 0:
                numbers.add(value)
    for e in (1024, -1022, -1074, -1075):
        numbers.add(abs(float(e * functions.LN2)))
        numbers.add(float(abs(e)))
    near = set()
    for value in numbers:
        below, above = value, value
        near.add(value)
        for _ in range(2):
            below = math.nextafter(below, 0)
            above = math.nextafter(above, math.inf)
            near.update((below, above))
    near = {v for v in near if 0 < v < math.inf}
    return sorted(near | {-v for v in near})


def special_values(record):
    """NaN, infinities and zeros give exactly what is listed; at the edges the
    result is infinite where the exact one rounds to infinity, has the exact
    one's sign, and is within the tier's bound. Returns the number of
    arguments."""
    def at(x):
        return rec.float_of(record.emulate(rec.bits_of(x)))

    def same(a, b):
        return math.isnan(a) and math.isnan(b) or \
            rec.bits_of(a) == rec.bits_of(b)
    function, count = record.function, 1
    require(math.isnan(at(NAN)), record, "NaN does not give NaN")
    listed = dict(SPECIAL[function])
    for x, wanted in listed.items():
        require(same(at(x), wanted), record, f"{x!r} gives {at(x)!r}")
        count += 1
    zero = -listed[0.0] if function in SIGNED_ZERO else listed[0.0]
    require(same(at(-0.0), zero), record, f"-0 gives {at(-0.0)!r}")
    bound = dict(record.tier_bound)
    if bound["constant"] == 0:
        bound = {"constant": 4, "per_x": 1, "absolute": 1e-6}
    old, ctx.prec = ctx.prec, 2400
    try:
        for x in edges(record):
            if x in listed:
                continue
            count += 1
            got = at(x)
            if function in BELOW_DOMAIN and x < BELOW_DOMAIN[function]:
                require(math.isnan(got), record, f"{x!r} gives {got!r}")
                continue
            value = exact(function, x)
            if abs(value) >= arb(LARGEST) + engine.power(970):
                require(got == (INFINITY if value > 0 else -INFINITY), record,
                        f"{x!r} gives {got!r}, not infinity")
                continue
            # Far below every double the ball may not show the sign.
            sign = 1 if value > 0 else -1 if value < 0 else \
                math.copysign(1, x) if function in ("silu", "gelu_tanh") else 1
            require(math.isfinite(got) and math.copysign(1, got) == sign,
                    record, f"{x!r} gives {got!r}")
            gap = abs(arb(got) - value)
            if function == "gelu_tanh" and x < -5:
                require(gap <= bound["absolute"], record,
                        f"{x!r} gives {got!r}")
                continue
            # The exact value may be below every double.
            size = engine.float_above(abs(value))
            e = max(engine.exponent(max(size, 2.0 ** -1022)), -1022)
            allowed = (bound["constant"] + bound["per_x"] * abs(x)) * \
                engine.power(e - 52)
            require(gap <= allowed, record, f"{x!r} gives {got!r}")
    finally:
        ctx.prec = old
    return count


def check(record):
    """All checks that concern the record; the names of those made."""
    made = ["special values"]
    count = special_values(record)
    by_name = {"coverage": (coverage, functions.DIRECT),
               "reduction": (reduction, functions.CUTS),
               "scaling": (scaling, ("exp", "exp2")),
               "split": (logarithm_split, ("log", "log2", "log1p")),
               "symmetry": (symmetry, ODD + EVEN),
               "quadrants": (quadrants, ("sin", "cos")),
               "large reduction": (large_reduction, ("sin", "cos"))}
    for name, (run, names) in by_name.items():
        if record.function in names:
            run(record)
            made.append(name)
    two_product(record)
    return made, count
