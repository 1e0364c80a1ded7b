//===- support/bounded.h - Real numbers known within a radius ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Error-bounded arithmetic for the oracles. A Bounded carries the real number
// that a formula denotes and a radius that covers whatever a legal compiled
// execution may produce instead: an execution in the compute type (F32 or F64,
// round to nearest even, subnormals kept) that may fuse multiply-adds, may sum
// in any order and whose functions meet the stated ULP bounds
// (docs/semantics.md, "Numbers").
//
//   Laws. If the operands' computed values lie within their radii, so does the
//   computed value of the result, fused or not. A radius of zero means that
//   every legal execution gives exactly this value. Infinities and NaN have
//   radius zero. The sign of a zero is free in a result; at a pole (1 / 0) it
//   is the one that elementwise IEEE arithmetic gives.
//
//   Leaving the range. Where value +- radius reaches past the compute type's
//   largest number, executions may give infinities, and from them NaN and
//   zeros. `leftRange` is then set and `outcomes` lists them: a legal result is
//   a number within the radius or one of them. A sum has +inf among them only
//   if its positive terms alone reach past the range (so a partial sum may),
//   and NaN only if both signs do. A product past the range keeps its real
//   value beside the infinity, because a fused multiply-add never rounds it;
//   any other value that is wholly past the range is the infinity and nothing
//   else.
//
//   Not knowing. Where the radius cannot decide (a pole, a comparison), nothing
//   is known: `leftRange` is set and `outcomes` is empty, and stays so in all
//   that is computed from it. Such an element is compared with the strict
//   interpreter.
//
//   The oracle's own precision. Values are long double (64-bit significand on
//   x86-64), whose error is part of the radius. That leaves 11 bits below F64's
//   unit roundoff; sums, where it would add up, are compensated (an error-free
//   two-sum of long doubles), so that the oracle's error stays near 2^-63
//   whatever the length. Where long double is only a double the F64 bounds
//   stay sound and become about twice as wide.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_BOUNDED_H
#define TESSERA_SUPPORT_BOUNDED_H

#include "support/float_format.h"
#include "tessera/dtype.h"

#include <array>
#include <cstdint>
#include <optional>

namespace tessera::bounded {

enum class Function : uint8_t {
  Exp,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Tanh,
  Erf,
  Sin,
  Cos,
  Rsqrt,
  Sigmoid,
};
inline constexpr int numFunctions = 13;

/// A function's error is at most constant + slope * |x| units in the last place
/// of its result, x being the argument that the execution passes.
struct FunctionUlps {
  double constant = 0;
  double slope = 0;
};

enum class Tier : uint8_t { Strict, Default };

/// How an execution may compute: the type, the functions' error and the
/// summation plan.
struct Arithmetic {
  /// F32 or F64.
  DType compute = DType::F32;
  std::array<FunctionUlps, numFunctions> functions = {};
  /// A sum of n terms is made of this many partial sums of about n / partials
  /// terms, combined by a tree. 1, the default, covers every grouping and
  /// permutation.
  int64_t partials = 1;
  /// Additions on the longest path beyond what `partials` implies (a second
  /// level of splits, a scalar tail).
  int64_t extraDepth = 0;
  /// True when exponentials may be summed in one pass that rescales the partial
  /// sum at each new maximum.
  bool onlineExponentials = true;
  /// True when sums may be about a reference: what a sum of deviations, or of
  /// their squares, loses to rounding is that of terms which are larger
  /// (docs/numerics.md).
  bool aboutReference = false;
  /// The units of the compute type's roundoff that one addition of a
  /// contraction may lose; above 1 for a matrix atom that truncates.
  double contractionUnits = 1;
  /// True when contractions may take subnormal factors, products and sums for
  /// zero: those that an atom of bf16 does (target/contraction_atoms.h).
  bool flushesContractions = false;

  /// The rules of a tier for arrays of `storage`, summation plan unknown.
  static Arithmetic forTier(DType storage, Tier tier = Tier::Default);

  /// Exponentials may be about a reference, and moved to their centre.
  void allowShift();

  const FloatFormat &format() const { return floatFormat(compute); }
  const FunctionUlps &ulps(Function function) const {
    return functions[static_cast<size_t>(function)];
  }
  FunctionUlps &ulps(Function function) {
    return functions[static_cast<size_t>(function)];
  }
  /// The most additions that one of n terms passes through.
  int64_t depth(int64_t n) const;
  /// What stands for the magnitudes of n terms in the rounding error of their
  /// sum, from the sums of their magnitudes and of their squares.
  long double effectiveMagnitude(long double magnitude, long double squares,
                                 int64_t n) const;
  /// The most that n terms pass through on average: along a chain of additions
  /// the terms are spread evenly.
  double meanDepth(int64_t n) const;
};

/// What executions may give beside a number within the radius, as bits.
enum Outcome : uint8_t {
  PlusInfinity = 1,
  MinusInfinity = 2,
  NotANumber = 4,
  /// Exactly zero, as 1 / x gives where x overflowed.
  Zero = 8,
};

struct Bounded {
  long double value = 0;
  long double radius = 0;
  bool leftRange = false;
  /// Outcome bits; none without leftRange.
  uint8_t outcomes = 0;

  static Bounded exact(long double value) { return {value, 0, false}; }
  static Bounded nan();
  /// A value of which no execution's outcome is known; leftRange is set.
  static Bounded undecided(long double value);

  bool isUnknown() const { return leftRange && outcomes == 0; }
  /// From now on nothing is known.
  void forget() {
    leftRange = true;
    outcomes = 0;
  }

  bool isExact() const { return radius == 0; }
  bool mayBeZero() const;
};

/// The parameter or literal as an execution holds it: rounded to the compute
/// type, exactly.
Bounded parameter(double value, const Arithmetic &arithmetic);

/// A mathematical constant that executions round as they please, within one
/// unit in the last place.
Bounded constant(long double value, const Arithmetic &arithmetic);

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Bounded add(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic);
Bounded sub(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic);
Bounded mul(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic);
Bounded div(const Bounded &a, const Bounded &b, const Arithmetic &arithmetic);
/// a * b + c; covers the fused and the unfused form.
Bounded fma(const Bounded &a, const Bounded &b, const Bounded &c,
            const Arithmetic &arithmetic);
/// Correctly rounded, as IEEE 754 demands.
Bounded sqrt(const Bounded &a, const Arithmetic &arithmetic);
Bounded apply(Function function, const Bounded &a,
              const Arithmetic &arithmetic);

inline Bounded exp(const Bounded &a, const Arithmetic &arithmetic) {
  return apply(Function::Exp, a, arithmetic);
}
inline Bounded log(const Bounded &a, const Arithmetic &arithmetic) {
  return apply(Function::Log, a, arithmetic);
}
inline Bounded tanh(const Bounded &a, const Arithmetic &arithmetic) {
  return apply(Function::Tanh, a, arithmetic);
}
inline Bounded rsqrt(const Bounded &a, const Arithmetic &arithmetic) {
  return apply(Function::Rsqrt, a, arithmetic);
}
inline Bounded sigmoid(const Bounded &a, const Arithmetic &arithmetic) {
  return apply(Function::Sigmoid, a, arithmetic);
}

// The following round nothing and need no rules.
Bounded neg(const Bounded &a);
Bounded abs(const Bounded &a);
/// NaN if either operand is NaN.
Bounded min(const Bounded &a, const Bounded &b);
Bounded max(const Bounded &a, const Bounded &b);
/// The other operand if one is NaN.
Bounded minNum(const Bounded &a, const Bounded &b);
Bounded maxNum(const Bounded &a, const Bounded &b);
Bounded copysign(const Bounded &magnitude, const Bounded &sign);
Bounded floor(const Bounded &a);
Bounded ceil(const Bounded &a);
Bounded trunc(const Bounded &a);
Bounded roundEven(const Bounded &a);
/// The value truncated towards zero if every execution truncates to the same
/// number (NaN and infinities included), for casts to integers.
std::optional<long double> truncated(const Bounded &a);

/// Rounds to a storage type, to nearest even: the value of the result is the
/// rounded value, its radius the distance to what the ends of the interval
/// round to. No change if `type` holds every number of the compute type.
Bounded roundTo(const Bounded &a, DType type, const Arithmetic &arithmetic);

//===----------------------------------------------------------------------===//
// Comparison and selection
//===----------------------------------------------------------------------===//

enum class Tri : uint8_t { False, True, Unknown };

inline Tri tri(bool value) { return value ? Tri::True : Tri::False; }
Tri logicalNot(Tri a);
Tri logicalAnd(Tri a, Tri b);
Tri logicalOr(Tri a, Tri b);
Tri logicalXor(Tri a, Tri b);

// Ordered comparisons: False where an operand is NaN. Unknown where the radii
// do not decide.
Tri less(const Bounded &a, const Bounded &b);
Tri lessEqual(const Bounded &a, const Bounded &b);
Tri equal(const Bounded &a, const Bounded &b);
/// True if either operand is NaN.
Tri unordered(const Bounded &a, const Bounded &b);

/// One of two values; covers both where the condition is Unknown.
Bounded select(Tri condition, const Bounded &ifTrue, const Bounded &ifFalse);

/// The same real number computed in either of two ways: the first's value and
/// the larger radius.
Bounded either(const Bounded &a, const Bounded &b);

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// A sum of many terms in any order that the arithmetic's plan allows. Terms
/// are streamed in; finish() may be called after any of them (prefix sums).
class Summation {
public:
  explicit Summation(const Arithmetic &arithmetic);

  void add(const Bounded &term);
  /// Adds the product of two exact values, rounded or fused into the sum.
  void addProduct(long double a, long double b);

  /// What is known of many terms that were added up elsewhere. None of their
  /// partial sums comes near the end of the range.
  struct Totals {
    int64_t terms = 0;
    /// Their sum, in two parts.
    long double high = 0, low = 0;
    /// The sum of their magnitudes and that of their radii, with what `high`
    /// and `low` may be off.
    long double magnitude = 0, radius = 0;
    /// At least the largest magnitude that one of them may have.
    long double largest = 0;
  };
  void add(const Totals &totals);

  int64_t terms() const { return count; }
  /// The sum; at most `depth` additions on the way of each term, by default
  /// arithmetic.depth(terms()).
  Bounded finish(std::optional<int64_t> depth = std::nullopt) const;
  /// The same with the roundoff per addition that contractions may have.
  Bounded finishContraction() const;

private:
  void accumulate(long double term);
  Bounded finish(int64_t depth, double meanDepth, long double units) const;

  const Arithmetic *arithmetic;
  int64_t count = 0;
  long double high = 0;
  long double low = 0;
  /// The sums of the positive terms and of the negative ones' magnitudes.
  long double positive = 0;
  long double negative = 0;
  /// How far the terms' radii reach beyond these.
  long double positiveReach = 0;
  long double negativeReach = 0;
  /// The largest magnitude that a term may have.
  long double largest = 0;
  long double radius = 0;
  /// The sum of the terms' squares.
  long double squares = 0;
  /// Of the terms.
  uint8_t outcomes = 0;
  bool unknown = false;
  bool noNumber = false;
  bool sawNan = false;
  bool sawPositiveInfinity = false;
  bool sawNegativeInfinity = false;
};

//===----------------------------------------------------------------------===//
// Judgement
//===----------------------------------------------------------------------===//

enum class Verdict : uint8_t {
  Accept,
  Reject,
  /// Not among the known outcomes of a value with leftRange, or nothing is
  /// known: legal if the strict interpreter gives the same.
  Undecided,
};

/// Judges a result that was stored as `storage`. NaN matches NaN alone, an
/// infinity itself; an infinity also matches a value whose interval reaches
/// the storage type's overflow threshold; zeros match whatever their sign.
/// Where leftRange is set, a known outcome is accepted and nothing is rejected.
Verdict judge(const Bounded &expected, double actual, DType storage);

/// judge() == Accept.
bool accepts(const Bounded &expected, double actual, DType storage);

} // namespace tessera::bounded

namespace tessera {
using bounded::Arithmetic;
using bounded::Bounded;
} // namespace tessera

#endif // TESSERA_SUPPORT_BOUNDED_H
