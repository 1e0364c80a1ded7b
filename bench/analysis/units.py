#===- bench/analysis/units.py - Figures as text ----------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-------------------------------------------------------------------------===#
"""Figures as people read them."""


def time_text(nanoseconds):
    """Three significant digits with a unit; a dash for None."""
    if nanoseconds is None:
        return "–"
    for limit, scale, unit in ((1e3, 1, "ns"), (1e6, 1e3, "µs"),
                               (1e9, 1e6, "ms"), (float("inf"), 1e9, "s")):
        # 999.6 ns is 1.00 us.
        if nanoseconds < limit * 0.9995:
            break
    return f"{digits(nanoseconds / scale)} {unit}"


def digits(value):
    """Three significant digits without an exponent."""
    places = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{places}f}"


def ratio_text(ratio):
    if ratio is None:
        return "–"
    return f"{ratio:.3f}" if ratio < 9.9995 else digits(ratio)


def percent(fraction):
    return "–" if fraction is None else f"{fraction * 100:.1f} %"


def bytes_text(count):
    """A power of 1024 where it is whole, else one decimal."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if float(count).is_integer() else \
        f"{count:.1f} {unit}"


def count(number, one, many=None):
    """"1 row", "2 rows"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
