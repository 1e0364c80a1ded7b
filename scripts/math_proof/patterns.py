"""Error terms among the operations of a record: twoSum, fastTwoSum, twoProd."""

UPPER_HALF = 0xFFFFFFFFF8000000


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
