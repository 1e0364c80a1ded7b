//===- interval_equation.h - Bounded linear equations -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides whether sum of c[k] * x[k] = t has a solution in integers with 0 <=
// x[k] <= n[k]. The question is hard in general; for the strides of array views
// the terms collapse to two or three, which are solved outright.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_HOST_INTERVAL_EQUATION_H
#define TESSERA_RUNTIME_HOST_INTERVAL_EQUATION_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::runtime {

enum class Answer { No, Yes, Unknown };

class IntervalEquation {
public:
  /// Adds the term coefficient * x with 0 <= x <= last; the coefficient is at
  /// least 0. A term that can only be 0 is dropped.
  void add(__int128 coefficient, __int128 last);

  /// Answers Unknown only when the search exceeds its budget. Reorders the
  /// terms; call it once.
  Answer solve(__int128 target);

private:
  struct Term {
    __int128 coefficient;
    __int128 last;
  };

  void merge();
  Answer search(size_t level, __int128 target);

  /// Sorted by falling coefficient once solve() runs.
  std::vector<Term> terms;
  /// For each level, of the terms from there on: the greatest sum and the
  /// greatest common divisor of the coefficients.
  std::vector<__int128> reach;
  std::vector<__int128> divisor;
  int64_t budget = 0;
};

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_HOST_INTERVAL_EQUATION_H
