//===- support/float_format.h - Parameters of the float types ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The floating types as sets of real numbers: precision, exponent range, unit
// in the last place and rounding to nearest even, all on long double. The error
// bounds and the oracles use these instead of the bit-level conversions of the
// product, so that one checks the other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_FLOAT_FORMAT_H
#define TESSERA_SUPPORT_FLOAT_FORMAT_H

#include "tessera/dtype.h"

namespace tessera {

/// A binary floating format. Normal numbers are m * 2^e with 1 <= m < 2,
/// minExponent <= e <= maxExponent and `precision` significant bits (the
/// implicit one included); numbers below are multiples of the smallest
/// subnormal 2^(minExponent - precision + 1).
struct FloatFormat {
  int precision;
  int minExponent;
  int maxExponent;
  /// False when rounding past maxFinite gives NaN (F8E4M3).
  bool hasInfinity;
  long double maxFinite;
  /// The smallest magnitude that no longer rounds to a finite number, or its
  /// infimum for a format without infinity.
  long double overflowThreshold;

  /// Half the distance between 1 and the next number: 2^-precision.
  long double unitRoundoff() const;
  /// The smallest positive number.
  long double minSubnormal() const;
  /// The distance between neighbours in the binade of `magnitude` (at least
  /// minSubnormal()); `magnitude` is finite and not negative.
  long double ulp(long double magnitude) const;
  /// The nearest number, ties to even; infinity (NaN without one) past the
  /// range; infinities, NaN and the sign of zero are kept.
  long double round(long double value) const;
  /// True for a finite value that round() keeps.
  bool represents(long double value) const;
};

/// The format of a floating `type`; F64's for any other type, whose values a
/// long double holds exactly.
const FloatFormat &floatFormat(DType type);

} // namespace tessera

#endif // TESSERA_SUPPORT_FLOAT_FORMAT_H
