"""The recorded operations of a function, and their exact emulation.

tessera-math-trace (tools/sweep/trace.cpp) instantiates the headers on a builder
that records, so a record is the code as written. Evaluating a record on
numbers is IEEE arithmetic; comparing with the compiled kernels' results checks
that the record and the emulation mean what the machine does.
"""

import fractions
import json
import math
import struct

WIDTH = 64
MASK = (1 << WIDTH) - 1
SIGN = 1 << (WIDTH - 1)


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def float_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits & MASK))[0]


def nearest(exact):
    """The double nearest to a Fraction, ties to even, subnormals kept."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        # inf and NaN come out as they do from the separate operations, except
        # that an overflowing product of finite factors is no infinity.
        if math.isfinite(a) and math.isfinite(b):
            return c
        return a * b + c
    exact = fractions.Fraction(a) * fractions.Fraction(b) + \
        fractions.Fraction(c)
    if exact == 0:
        # The sign of an exact zero is that of the sum of signed zeros.
        product = math.copysign(1, a) * math.copysign(1, b)
        if a == 0 or b == 0 or c == 0:
            return math.copysign(0.0, product) + c if c == 0 else 0.0
        return 0.0
    result = nearest(exact)
    return math.copysign(result, 1 if exact > 0 else -1)


def divide(a, b):
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf,
                             math.copysign(1, a) * math.copysign(1, b))
    return a / b


def square_root(a):
    if a < 0:
        return math.nan
    return math.sqrt(a) if a != math.inf else a


def scalef(a, n):
    """a * 2^floor(n), rounded once."""
    if math.isnan(a) or math.isnan(n):
        return math.nan
    if math.isinf(n):
        return math.copysign(0.0 if n < 0 else math.inf, a)
    # ldexp is exact or rounds once; far exponents need no more than this.
    n = int(math.floor(max(-5000.0, min(5000.0, n))))
    if a == 0 or math.isinf(a):
        return a
    exact = fractions.Fraction(a) * fractions.Fraction(2) ** n
    return math.copysign(nearest(exact), a)


# Operations on numbers: floating-point ones on floats, others on bit patterns.
EMULATED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": divide,
    "fma": fma,
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": square_root,
    "min": lambda a, b: a if a < b else b,
    "max": lambda a, b: a if a > b else b,
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "ieq": lambda i, j: i == j,
    "select": lambda m, a, b: a if m else b,
    "ifAny": lambda m, otherwise, then: then if m else otherwise,
    "toBits": bits_of,
    "fromBits": float_of,
    "iadd": lambda i, j: (i + j) & MASK,
    "isub": lambda i, j: (i - j) & MASK,
    "imul": lambda i, j: (i * j) & MASK,
    "iand": lambda i, j: i & j,
    "ior": lambda i, j: i | j,
    "ixor": lambda i, j: i ^ j,
    "shlv": lambda i, j: (i << j) & MASK,
    "scalef": scalef,
}


class Record:
    """One function in one tier for one ISA."""

    def __init__(self, row):
        self.function, self.tier, self.isa = \
            row["function"], row["tier"], row["isa"]
        self.stated, self.tier_bound = row["stated"], row["tier_bound"]
        self.nodes = [(n[0], tuple(n[1:])) for n in row["nodes"]]
        self.output, self.samples = row["output"], row["samples"]
        self.x = next(i for i, n in enumerate(self.nodes) if n[0] == "x")
        self.users = [[] for _ in self.nodes]
        for i in range(len(self.nodes)):
            for operand in self.operands(i):
                self.users[operand].append(i)

    def title(self):
        return f"{self.function} {self.tier} {self.isa}"

    def key(self):
        """Equal for records of the same operations."""
        return (self.function, tuple(self.nodes), self.output)

    def operands(self, i):
        """The nodes that node i uses."""
        operation, rest = self.nodes[i]
        if operation in ("constF", "constI", "x"):
            return ()
        return rest[:1] if operation in ("shl", "lshr") else rest

    def constant(self, i):
        operation, rest = self.nodes[i]
        return float_of(rest[0]) if operation == "constF" else None

    def find(self, predicate):
        return [i for i in range(len(self.nodes)) if predicate(i)]

    def emulate(self, x_bits, wanted=None):
        """The output's bits for an argument's bits (or the wanted nodes)."""
        values = []
        for operation, rest in self.nodes:
            if operation == "x":
                values.append(float_of(x_bits))
            elif operation == "constF":
                values.append(float_of(rest[0]))
            elif operation == "constI":
                values.append(rest[0] & MASK)
            elif operation == "shl":
                values.append((values[rest[0]] << rest[1]) & MASK)
            elif operation == "lshr":
                values.append(values[rest[0]] >> rest[1])
            else:
                try:
                    value = EMULATED[operation](*[values[r] for r in rest])
                except OverflowError:
                    value = math.inf
                values.append(value)
        if wanted is not None:
            return [values[i] for i in wanted]
        return bits_of(values[self.output])

    def check_samples(self):
        """Compares with the compiled kernel; returns the number compared."""
        for x_bits, y_bits in self.samples:
            got = self.emulate(x_bits)
            if got != y_bits and not (math.isnan(float_of(got)) and
                                      math.isnan(float_of(y_bits))):
                raise AssertionError(
                    f"{self.title()}: the record gives {float_of(got)!r} at "
                    f"{float_of(x_bits)!r}, the kernel {float_of(y_bits)!r}")
        return len(self.samples)


def load(text):
    document = json.loads(text)
    return document["hash"], [Record(r) for r in document["functions"]]
