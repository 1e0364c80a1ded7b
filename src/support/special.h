//===- support/special.h - Infinities and NaN of long double ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The x87 unit takes a hundred cycles and more for an operation on an infinity
// or NaN, comparisons included. These look at the bits instead, so that special
// operands are sorted out before anything is computed with them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_SPECIAL_H
#define TESSERA_SUPPORT_SPECIAL_H

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tessera {

/// Whether long double is the x87 extended format: its biased exponent in bytes
/// 8 and 9 and an explicit leading bit.
inline constexpr bool isExtended = LDBL_MANT_DIG == 64 && LDBL_MAX_EXP == 16384;

inline bool isFinite(long double value) {
  if constexpr (isExtended) {
    uint16_t biased;
    std::memcpy(&biased, reinterpret_cast<const char *>(&value) + 8,
                sizeof biased);
    return (biased & 0x7fff) != 0x7fff;
  }
  return std::isfinite(value);
}

inline bool isInfinite(long double value) {
  if (isFinite(value))
    return false;
  if constexpr (isExtended) {
    uint64_t significand;
    std::memcpy(&significand, &value, sizeof significand);
    return significand << 1 == 0;
  }
  return std::isinf(value);
}

inline bool isNan(long double value) {
  return !isFinite(value) && !isInfinite(value);
}

} // namespace tessera

#endif // TESSERA_SUPPORT_SPECIAL_H
