//===- reduction_algebra.h - Reductions about a centre ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction R2 = sum f(x, c) often depends on an earlier one over the same
// elements only through a scalar, its centre c: c is the maximum and f is
// exp(x - c), or c is the mean and f is (x - c)^2. Written so, R2 needs a loop
// of its own, since c is known at the end of the first one only.
//
// Where a law tells what the sum about one centre is, given that about another,
// both can be computed in one loop, about any reference r that is known before
// it:
//
//   law     f                            about c, from sums about r
//   shift   g(x) exp(k (x - c))          sum f(x, c) = sum f(x, r) exp(k (r -
//   c)) powers  (x - c), (x - c)^2           with d = r - c, s = sum (x - r):
//                                        sum (x - c)   = s + n d
//                                        sum (x - c)^2 = sum (x - r)^2
//                                                        + d (2 s + n d)
//
// The state of the loop is a plain sum per reduction: its identity is 0 and
// partial states are merged by adding, in any grouping. Sums about r are exact
// about no other centre, so the one who uses the laws has to bound what they
// lose to rounding (realize/cpu/join.cpp, docs/numerics.md).
//
// This file proves that a law applies. It knows no operators and no patterns of
// whole kernels: every value that depends on the centre gets a form, from the
// forms of its operands and a rule of the operation; what no rule covers is
// refused, with the reason.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_REDUCTION_ALGEBRA_H
#define TESSERA_ANALYSIS_REDUCTION_ALGEBRA_H

#include "dialect/tile_dialect.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tessera {

enum class Law { Shift, Powers };

/// One row of the table of laws.
struct LawRow {
  Law law;
  std::string_view name;
  /// What is proved, for reports.
  std::string_view statement;
};

const LawRow &rowOf(Law law);

/// How a value depends on a centre c.
struct Dependence {
  enum class Form {
    /// Not at all.
    Free,
    /// rate * c.
    Centre,
    /// Something free of c, plus rate * c, rate not zero. If it is x - c or
    /// c - x, `element` is x, rate -1 or 1, and `deviation` the value that was
    /// computed so.
    Deviation,
    /// rate * (x - c)^2, rate 1 or -1; x is `element`, and `deviation` x - c or
    /// c - x.
    Square,
    /// Something free of c, times exp(rate * c), or exp2.
    Exponential,
  };
  Form form = Form::Free;
  double rate = 0;
  bool isBase2 = false;
  mlir::Value element;
  mlir::Value deviation;
};

/// Why no law applies, with a stable code.
struct Refusal {
  std::string code;
  std::string text;
};

using Proof = std::variant<Dependence, Refusal>;

/// The form of `value` as a function of the scalar `centre`.
Proof dependenceOn(mlir::Value centre, mlir::Value value);

/// A reduction that depends on an earlier one, as far as a law is concerned.
struct JoinQuery {
  tile::KernelOp kernel;
  /// The earlier reduction, the scalar computed from its result alone that the
  /// later one depends on, and whether that is the result itself.
  tile::ReduceOp first;
  mlir::Value centre;
  /// The later reduction; null if `value` is only kept beside it.
  tile::ReduceOp second;
  /// What is summed or kept.
  mlir::Value value;
  /// The number of elements that are reduced, if it is constant.
  std::optional<int64_t> count;
};

/// What lets a reduction, or a value that is kept, join the loop of the
/// reduction that it depends on.
struct Licence {
  Law law;
  Dependence dependence;
};

std::variant<Licence, Refusal> proveJoin(const JoinQuery &query);

} // namespace tessera

#endif // TESSERA_ANALYSIS_REDUCTION_ALGEBRA_H
