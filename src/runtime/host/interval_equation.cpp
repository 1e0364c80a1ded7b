//===- interval_equation.cpp - Bounded linear equations -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collapses terms where that is exact, then searches from the largest
// coefficient down, stepping only through values that leave the rest divisible
// and in reach. Two terms are solved in closed form.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/interval_equation.h"

#include <algorithm>

namespace tessera::runtime {

namespace {

/// Visited values per equation before the search gives up.
constexpr int64_t searchBudget = int64_t{1} << 20;

__int128 gcd(__int128 a, __int128 b) {
  while (b != 0) {
    const __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

__int128 floorDivide(__int128 a, __int128 positive) {
  const __int128 quotient = a / positive;
  return a % positive < 0 ? quotient - 1 : quotient;
}

/// The inverse of `value` modulo `modulus`; the two have no common divisor.
__int128 inverse(__int128 value, __int128 modulus) {
  __int128 a = value % modulus, b = modulus, x = 1, y = 0;
  while (b != 0) {
    const __int128 quotient = a / b;
    a -= quotient * b;
    std::swap(a, b);
    x -= quotient * y;
    std::swap(x, y);
  }
  return x < 0 ? x + modulus : x;
}

} // namespace

void IntervalEquation::add(__int128 coefficient, __int128 last) {
  if (coefficient > 0 && last > 0)
    terms.push_back({coefficient, last});
}

void IntervalEquation::merge() {
  // A small coefficient c with x <= n covers all multiples of c up to c * n. A
  // larger one m * c that steps by no more than n + 1 of them extends that to
  // all multiples up to c * (n + m * n').
  std::sort(terms.begin(), terms.end(), [](const Term &a, const Term &b) {
    return a.coefficient < b.coefficient;
  });
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t k = i + 1; k < terms.size();) {
      const __int128 factor = terms[k].coefficient / terms[i].coefficient;
      if (terms[k].coefficient % terms[i].coefficient == 0 &&
          factor - 1 <= terms[i].last) {
        terms[i].last += factor * terms[k].last;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(k));
        k = i + 1; // The longer reach may take in one passed over before.
      } else {
        ++k;
      }
    }
  }
  std::reverse(terms.begin(), terms.end());
}

Answer IntervalEquation::solve(__int128 target) {
  merge();
  reach.assign(terms.size() + 1, 0);
  divisor.assign(terms.size() + 1, 0);
  for (size_t level = terms.size(); level-- > 0;) {
    reach[level] =
        reach[level + 1] + terms[level].coefficient * terms[level].last;
    divisor[level] = gcd(terms[level].coefficient, divisor[level + 1]);
  }
  budget = searchBudget;
  return search(0, target);
}

Answer IntervalEquation::search(size_t level, __int128 target) {
  if (target < 0 || target > reach[level])
    return Answer::No;
  if (level == terms.size() || target == 0 || target == reach[level])
    return Answer::Yes;
  if (target % divisor[level] != 0)
    return Answer::No;
  const Term term = terms[level];
  if (level + 1 == terms.size())
    return Answer::Yes; // Divisible and in reach.

  // x must leave target - c * x within the reach of the other terms and
  // divisible by their common divisor, which fixes x modulo `step`.
  const __int128 rest = divisor[level + 1];
  const __int128 common = divisor[level];
  const __int128 step = rest / common;
  __int128 low = 0;
  if (target > reach[level + 1])
    low = floorDivide(target - reach[level + 1] - 1, term.coefficient) + 1;
  const __int128 high = std::min(term.last, target / term.coefficient);
  __int128 residue = 0;
  if (step > 1)
    residue = (target / common) % step *
              inverse(term.coefficient / common, step) % step;
  __int128 x = low + ((residue - low) % step + step) % step;
  if (level + 2 == terms.size())
    return x <= high ? Answer::Yes : Answer::No;

  for (; x <= high; x += step) {
    if (--budget < 0)
      return Answer::Unknown;
    const Answer answer = search(level + 1, target - term.coefficient * x);
    if (answer != Answer::No)
      return answer;
  }
  return Answer::No;
}

} // namespace tessera::runtime
