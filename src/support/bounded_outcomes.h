//===- support/bounded_outcomes.h - Results beside a number -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What bounded.cpp, bounded_sums.cpp and bounded_functions.cpp share: a Bounded
// with outcomes is a union of parts (its number, or the infinity or NaN that
// stands for it, and one part per outcome). An operation is applied to each
// part, or pair of parts, and the results are united.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_BOUNDED_OUTCOMES_H
#define TESSERA_SUPPORT_BOUNDED_OUTCOMES_H

#include "support/bounded.h"
#include "support/special.h"

#include <limits>

namespace tessera::bounded {

inline constexpr long double infinity =
    std::numeric_limits<long double>::infinity();

/// Twice the unit roundoff of long double: bounds the relative error of one of
/// its operations with room to spare.
inline constexpr long double ownError =
    std::numeric_limits<long double>::epsilon();

/// Covers the roundings made while a radius is computed.
inline constexpr long double inflation = 1 + 64 * ownError;

/// The result of an operation on finite operands whose computed counterpart
/// differs from `value` by at most `propagated` before it is rounded, and by
/// `rounding` after.
Bounded finish(long double value, long double propagated, long double rounding,
               const FloatFormat &format);

/// The parts of a value, none of which has outcomes of its own.
class Parts {
public:
  explicit Parts(const Bounded &value);
  const Bounded *begin() const { return parts.data(); }
  const Bounded *end() const { return parts.data() + count; }

private:
  // Only those that there are get made.
  union {
    std::array<Bounded, 6> parts;
  };
  int count = 0;
};

/// The outcome that an infinity or NaN is; 0 for a number.
uint8_t outcomeOf(long double value);

/// `value` with further outcomes; those that it covers already are dropped, and
/// nothing stays known where nothing was.
Bounded withOutcomes(Bounded value, unsigned outcomes);

/// `value` with the infinities that its interval reaches in `format`.
Bounded withOverflow(const Bounded &value, const FloatFormat &format);

/// The value where it is not the product that a fused multiply-add consumes: an
/// interval wholly past the range of `format` is the infinity.
Bounded settled(const Bounded &value, const FloatFormat &format);

/// Either of the two.
Bounded unite(const Bounded &a, const Bounded &b);

/// `operation` on each part of `a`.
template <typename Operation>
Bounded overParts(const Bounded &a, Operation operation) {
  if (!a.leftRange)
    return operation(a);
  Bounded result;
  bool first = true;
  for (const Bounded &part : Parts(a)) {
    Bounded image = operation(part);
    result = first ? image : unite(result, image);
    first = false;
  }
  if (a.isUnknown())
    result.forget();
  return result;
}

/// `operation` on each pair of parts.
template <typename Operation>
Bounded overParts(const Bounded &a, const Bounded &b, Operation operation) {
  return overParts(a, [&](const Bounded &x) {
    return overParts(b, [&](const Bounded &y) { return operation(x, y); });
  });
}

} // namespace tessera::bounded

#endif // TESSERA_SUPPORT_BOUNDED_OUTCOMES_H
