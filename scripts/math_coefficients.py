#!/usr/bin/env python3
"""Generates src/codegen/cpu/vector_math_coefficients.h.

Usage: scripts/math_coefficients.py > src/codegen/cpu/vector_math_coefficients.h

Needs `sollya` (polynomials: fpminimax, coefficients constrained to the element
type) and Python's `mpmath` (constants, the bits of 2/pi, and the fit of erf's
upper range by iteratively reweighted least squares). Each
table is printed with the error that sollya or the fit found. After a change of
coefficients run the full sweep (`./dev sweep`): the stated accuracy table and
the recorded hash must follow.
"""
import subprocess
import mpmath as mp

mp.mp.prec = 1600

# name, comment, sollya statement that defines the polynomial q and the
# relative error function e over [lo;hi]; FMT is SG (f32) or D (f64).
POLYNOMIALS = {
    "exp2": ("2^r = 1 + r q(r), |r| <= 1/2", [5, 11],
             "q=fpminimax(2^x,[|1,...,DEG|],[|FMT...|],[-0.5;0.5],relative,1);"
             "e=q/2^x-1; lo=-0.5; hi=0.5;", 1),
    "exp2Long": ("2^r = 1 + r q(r), |r| <= 1/2, the error that of 2^r - 1",
                 [5, 11],
                 "q=fpminimax((2^x-1)/x,DEG,[|FMT...|],[-0.5;0.5],relative);"
                 "e=q*x/(2^x-1)-1; lo=1b-40; hi=0.5;", 0),
    "expQ": ("e^r = 1 + r + r^2 q(r), |r| <= ln(2)/2", [7, 12],
             "q=fpminimax(exp(x),[|2,...,DEG|],[|FMT...|],[-0.3466;0.3466],"
             "relative,1+x); e=q/exp(x)-1; lo=-0.3466; hi=0.3466;", 2),
    "sinP": ("sin r = r + r z q(z), z = r^2, |r| <= pi/4", [3, 6],
             "q=fpminimax((sin(sqrt(x))/sqrt(x)-1)/x,DEG,[|FMT...|],"
             "[1b-40;0.6171],absolute);"
             "e=(1+x*q)/(sin(sqrt(x))/sqrt(x))-1; lo=1b-40; hi=0.6171;", 0),
    "cosP": ("cos r = 1 - z/2 + z^2 q(z), z = r^2, |r| <= pi/4", [2, 5],
             "q=fpminimax((cos(sqrt(x))-1+x/2)/x^2,DEG,[|FMT...|],"
             "[1b-40;0.6171],absolute);"
             "e=(1-x/2+x^2*q)/cos(sqrt(x))-1; lo=1b-40; hi=0.6171;", 0),
    "erfSmall": ("erf t = t + t q(t^2), t <= 15/16", [6, 11],
                 "q=fpminimax(erf(sqrt(x))/sqrt(x)-1,DEG,[|FMT...|],"
                 "[1b-40;(15/16)^2],absolute);"
                 "e=(1+q)/(erf(sqrt(x))/sqrt(x))-1; lo=1b-40; hi=(15/16)^2;",
                 0),
}
# log differs by type: a plain polynomial for f32, fdlibm's form for f64.
LOG_F32 = ("log(1+f) = f - f^2/2 + f^3 q(f), |f| <= 1/3", 10,
           "q=fpminimax(log(1+x),[|3,...,DEG|],[|FMT...|],[-1/3;1/3],relative,"
           "x-x^2/2); e=q/log(1+x)-1; lo=-1/3; hi=1/3;", 3)
LOG_F64 = ("log(1+f) = f - (f^2/2 - s (f^2/2 + z q(z))), s = f/(2+f), z = s^2,"
           " |f| <= 1/3", 7,
           "q=fpminimax(2*(atanh(sqrt(x))/sqrt(x)-1)/x,DEG,[|FMT...|],"
           "[1b-40;0.0401],relative);"
           "e=(q*x+2)/(2*atanh(sqrt(x))/sqrt(x))-1; lo=1b-40; hi=0.0401;", 0)
# log(erfc(15/16) / erfc(15/16 + u)): name, degree, largest u.
ERF_LARGE = [(6, "3.1"), (18, "5.1")]


def sollya(script):
    run = subprocess.run(["sollya"], input=script + "quit;", capture_output=True,
                         text=True, check=True)
    return [line for line in run.stdout.splitlines() if line.strip()]


def fit(statement, degree, fmt, first):
    """Coefficients of x^first.. and log2 of the largest relative error."""
    script = "prec=250!; verbosity=0!; display=decimal!;"
    script += statement.replace("DEG", str(degree)).replace("FMT", fmt)
    script += "print(round(log2(dirtyinfnorm(e,[lo;hi])),10,RN));"
    script += f"for i from {first} to degree(q) do print(coeff(q,i));"
    lines = sollya(script)
    return [mp.mpf(v) for v in lines[1:]], float(lines[0])


def fit_erf(degree, limit, points=140, rounds=20):
    """h(u) = u q(u), 1 - erfc(15/16) exp(-h(u)) = erf(15/16 + u), u <= limit.

    Reweighted least squares; the weight is what an error of h does to erf.
    """
    saved, mp.mp.prec = mp.mp.prec, 400
    limit, start = mp.mpf(limit), mp.mpf(15) / 16
    us = [limit * (1 - mp.cos(mp.pi * (j + 0.5) / points)) / 2
          for j in range(points)]
    target = [-mp.log(mp.erfc(u + start) / mp.erfc(start)) for u in us]
    gain = [mp.erfc(u + start) / mp.erf(u + start) for u in us]
    weight, best = [mp.mpf(1)] * points, None
    for _ in range(rounds):
        a, b = mp.zeros(degree, degree), mp.zeros(degree, 1)
        for u, t, w, g in zip(us, target, weight, gain):
            powers = [u ** (k + 1) for k in range(degree)]
            for i in range(degree):
                row = powers[i] * w * g * g
                b[i] += row * t
                for j in range(i, degree):
                    a[i, j] += row * powers[j]
        for i in range(degree):
            for j in range(i):
                a[i, j] = a[j, i]
        s = mp.lu_solve(a, b)
        p = [s[k] for k in range(degree)]
        error = [abs((sum(c * u ** (k + 1) for k, c in enumerate(p)) - t) * g)
                 for u, t, g in zip(us, target, gain)]
        worst = max(error)
        if best is None or worst < best[0]:
            best = (worst, p)
        weight = [w * (e / worst + mp.mpf(10) ** -3)
                  for w, e in zip(weight, error)]
        total = sum(weight)
        weight = [w / total for w in weight]
    mp.mp.prec = saved
    return best[1], float(mp.log(best[0], 2))


def round_bits(value, bits):
    """Round to nearest with that many significant bits."""
    value = mp.mpf(value)
    if value == 0:
        return value
    exponent = int(mp.floor(mp.log(abs(value), 2)))
    scale = mp.mpf(2) ** (bits - 1 - exponent)
    return mp.nint(value * scale) / scale


def literal(value, bits):
    """Exact hexadecimal literal of `value` rounded to the type."""
    return float(round_bits(value, bits)).hex()


def parts(value, widths):
    """Successive remainders of value rounded to the widths in bits."""
    result, rest = [], mp.mpf(value)
    for width in widths:
        part = round_bits(rest, width)
        result.append(part)
        rest -= part
    return result


def emit_table(name, comment, values, bits, error=None):
    note = "" if error is None else f"; error 2^{error:.1f}"
    print(f"  /// {comment}{note}.")
    print(f"  static constexpr double {name}[] = {{")
    for v in values:
        print(f"      {literal(v, bits)},")
    print("  };")


def emit_scalar(name, value, bits):
    print(f"  static constexpr double {name} = {literal(value, bits)};")


def emit_type(type_name, bits, fmt, index):
    print(f"struct {type_name}Coefficients {{")
    for name, (comment, degrees, statement, first) in POLYNOMIALS.items():
        values, error = fit(statement, degrees[index], fmt, first)
        emit_table(name, comment, values, bits, error)
    comment, degree, statement, first = LOG_F64 if index else LOG_F32
    values, error = fit(statement, degree, fmt, first)
    emit_table("logP", comment, values, bits, error)
    degree, limit = ERF_LARGE[index]
    values, error = fit_erf(degree, limit)
    emit_table("erfLarge", "erf(15/16 + u) = 1 - erfcStart exp(-u q(u)), "
               f"0 <= u <= {limit}", values, bits, error)
    emit_scalar("erfcStart", mp.erfc(mp.mpf(15) / 16), bits)
    print("  /// ln 2 in two parts; a count of exponents times the first is"
          " exact.")
    hi, lo = parts(mp.log(2), [15 if index == 0 else 41, bits])
    emit_scalar("ln2Hi", hi, bits)
    emit_scalar("ln2Lo", lo, bits)
    print("  /// ln 2 and log2(e) as unevaluated sums of two full words.")
    for name, value in (("ln2", mp.log(2)), ("log2e", 1 / mp.log(2))):
        hi, lo = parts(value, [bits, bits])
        emit_scalar(name + "Word", hi, bits)
        emit_scalar(name + "Rest", lo, bits)
    print("  /// pi/2 in three full words, and 2/pi.")
    for i, part in enumerate(parts(mp.pi / 2, [bits] * 3)):
        emit_scalar(f"halfPi{i + 1}", part, bits)
    emit_scalar("twoOverPi", 2 / mp.pi, bits)
    print("  /// gelu_tanh: 2 sqrt(2/pi) and the same times 0.044715; then both"
          " times log2(e).")
    c1 = 2 * mp.sqrt(2 / mp.pi)
    for suffix, factor in (("", mp.mpf(1)), ("Log2", 1 / mp.log(2))):
        hi, lo = parts(c1 * factor, [bits, bits])
        emit_scalar("gelu1" + suffix, hi, bits)
        emit_scalar("gelu1Rest" + suffix, lo, bits)
        emit_scalar("gelu3" + suffix, c1 * factor * mp.mpf("0.044715"), bits)
    limb = 16 if index == 0 else 32
    count = (8 if index == 0 else 32) + 7
    print(f"  /// The first bits of 2/pi, {limb} in each limb, after two zero"
          " limbs (sin and cos of large arguments).")
    print(f"  static constexpr unsigned twoOverPiLimbs[] = {{")
    rest, limbs = 2 / mp.pi, [0, 0]
    while len(limbs) < count:
        rest *= 2 ** limb
        digit = int(mp.floor(rest))
        rest -= digit
        limbs.append(digit)
    for i in range(0, count, 6):
        print("      " + " ".join(f"{v:#x}," for v in limbs[i:i + 6]))
    print("  };")
    print("};\n")


BANNER = """\
//===- codegen/cpu/vector_math_coefficients.h - Coefficients ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated by scripts/math_coefficients.py; do not edit. Polynomials are
// listed from the lowest power. Every value is exact in the element type.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_COEFFICIENTS_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_COEFFICIENTS_H

// clang-format off
namespace tessera::vmath {
"""


def main():
    print(BANNER)
    emit_type("F32", 24, "SG", 0)
    emit_type("F64", 53, "D", 1)
    print("} // namespace tessera::vmath\n// clang-format on\n")
    print("#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_COEFFICIENTS_H")


if __name__ == "__main__":
    main()
