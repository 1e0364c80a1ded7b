//===- support/float_format.cpp - Parameters of the float types -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/float_format.h"

#include "support/special.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tessera {
namespace {

// Reading and building the bits of the x87 extended format is several times
// faster than ilogb and ldexp, which the bounds call for each operation.

/// floor(log2(value)) for a finite value > 0 that is normal in long double.
int exponentOf(long double value) {
  if constexpr (isExtended) {
    uint16_t biased;
    std::memcpy(&biased, reinterpret_cast<const char *>(&value) + 8,
                sizeof biased);
    return (biased & 0x7fff) - 16383;
  }
  return std::ilogb(value);
}

/// 2^exponent, normal in long double.
long double powerOfTwo(int exponent) {
  if constexpr (isExtended) {
    long double result = 0;
    uint64_t significand = uint64_t{1} << 63;
    auto biased = static_cast<uint16_t>(exponent + 16383);
    std::memcpy(&result, &significand, sizeof significand);
    std::memcpy(reinterpret_cast<char *>(&result) + 8, &biased, sizeof biased);
    return result;
  }
  return std::ldexp(1.0L, exponent);
}

/// 2^exponent for a constant.
constexpr long double constantPower(int exponent) {
  long double result = 1;
  for (int i = 0; i < exponent; ++i)
    result *= 2;
  for (int i = 0; i > exponent; --i)
    result /= 2;
  return result;
}

constexpr FloatFormat ieee(int precision, int minExponent, int maxExponent) {
  // 2^(maxExponent + 1) need not be a number.
  long double top = constantPower(maxExponent);
  return {precision,
          minExponent,
          maxExponent,
          true,
          top * (2 - constantPower(1 - precision)),
          top * (2 - constantPower(-precision))};
}

constexpr FloatFormat e4m3() {
  // The mantissa 1.111 of the top binade is NaN, so the largest number is
  // 1.110 * 2^8; the tie at 464 goes to it because its last bit is even.
  FloatFormat format{4, -6, 8, false, 448.0L, 464.0L};
  return format;
}

// Constants, so that no use has to ask whether they are made already.
constexpr FloatFormat f16 = ieee(11, -14, 15);
constexpr FloatFormat bf16 = ieee(8, -126, 127);
constexpr FloatFormat f32 = ieee(24, -126, 127);
constexpr FloatFormat f64 = ieee(53, -1022, 1023);
constexpr FloatFormat f8e4m3 = e4m3();
constexpr FloatFormat f8e5m2 = ieee(3, -14, 15);

} // namespace

long double FloatFormat::unitRoundoff() const { return powerOfTwo(-precision); }

long double FloatFormat::minSubnormal() const {
  return powerOfTwo(minExponent - precision + 1);
}

long double FloatFormat::ulp(long double magnitude) const {
  int exponent = minExponent;
  if (magnitude > 0)
    exponent = std::max(exponentOf(magnitude), minExponent);
  return powerOfTwo(exponent - precision + 1);
}

long double FloatFormat::round(long double value) const {
  if (!isFinite(value) || value == 0)
    return value;
  long double quantum = ulp(std::fabs(value));
  // Division and multiplication by a power of two are exact here: the quotient
  // has the significand of `value`.
  long double rounded =
      std::copysign(std::rint(value / quantum) * quantum, value);
  if (std::fabs(rounded) <= maxFinite)
    return rounded;
  if (hasInfinity)
    return std::copysign(std::numeric_limits<long double>::infinity(), value);
  return std::numeric_limits<long double>::quiet_NaN();
}

bool FloatFormat::represents(long double value) const {
  if (!(std::fabs(value) <= maxFinite))
    return false;
  if (precision == FLT_MANT_DIG)
    return static_cast<long double>(static_cast<float>(value)) == value;
  if (precision == DBL_MANT_DIG)
    return static_cast<long double>(static_cast<double>(value)) == value;
  return round(value) == value;
}

const FloatFormat &floatFormat(DType type) {
  if (type == DType::F16)
    return f16;
  if (type == DType::BF16)
    return bf16;
  if (type == DType::F8E4M3)
    return f8e4m3;
  if (type == DType::F8E5M2)
    return f8e5m2;
  if (type == DType::F32)
    return f32;
  return f64;
}

} // namespace tessera
