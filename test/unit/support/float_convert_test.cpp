//===- float_convert_test.cpp - Tests of the narrow float formats ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every encoding is widened and compared with the value its bits mean by
// definition. Narrowing is compared with a search for the nearest value in the
// table of all values: at every rounding boundary and its neighbours, which
// settles a monotone function, and on a sweep over all f32.
//
//===----------------------------------------------------------------------===//

#include "support/float_convert.h"

#include <bit>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace tessera;
using namespace tessera::support;

namespace {

struct FormatCase {
  const char *label;
  DType dtype;
  int exponentBits, mantissaBits;
  bool hasInfinity;
  uint32_t (*narrow32)(float);
  uint32_t (*narrow64)(double);
  float (*widen)(uint32_t);

  uint32_t codes() const { return 1u << (exponentBits + mantissaBits); }
  uint32_t signBit() const { return codes(); }
};

const FormatCase formats[] = {
    {"f16", DType::F16, 5, 10, true,
     [](float v) -> uint32_t { return f32ToF16(v); },
     [](double v) -> uint32_t { return f64ToF16(v); },
     [](uint32_t b) { return f16ToF32(static_cast<uint16_t>(b)); }},
    {"bf16", DType::BF16, 8, 7, true,
     [](float v) -> uint32_t { return f32ToBF16(v); },
     [](double v) -> uint32_t { return f64ToBF16(v); },
     [](uint32_t b) { return bf16ToF32(static_cast<uint16_t>(b)); }},
    {"f8e4m3", DType::F8E4M3, 4, 3, false,
     [](float v) -> uint32_t { return f32ToF8E4M3(v); },
     [](double v) -> uint32_t { return f64ToF8E4M3(v); },
     [](uint32_t b) { return f8E4M3ToF32(static_cast<uint8_t>(b)); }},
    {"f8e5m2", DType::F8E5M2, 5, 2, true,
     [](float v) -> uint32_t { return f32ToF8E5M2(v); },
     [](double v) -> uint32_t { return f64ToF8E5M2(v); },
     [](uint32_t b) { return f8E5M2ToF32(static_cast<uint8_t>(b)); }},
};

/// The magnitude that a code without sign stands for, from the definition.
double meaning(const FormatCase &format, uint32_t code) {
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const int exponent = static_cast<int>(code >> format.mantissaBits);
  const int mantissa =
      static_cast<int>(code & ((1u << format.mantissaBits) - 1));
  const bool top = exponent == (1 << format.exponentBits) - 1;
  if (top && format.hasInfinity)
    return mantissa == 0 ? std::numeric_limits<double>::infinity() : NAN;
  if (!format.hasInfinity && code == format.codes() - 1)
    return NAN;
  const double fraction = std::ldexp(mantissa, -format.mantissaBits);
  if (exponent == 0)
    return std::ldexp(fraction, 1 - bias);
  return std::ldexp(1 + fraction, exponent - bias);
}

class FloatFormat : public testing::TestWithParam<FormatCase> {
protected:
  void SetUp() override {
    for (uint32_t code = 0; code < GetParam().codes(); ++code) {
      const double value = meaning(GetParam(), code);
      if (!std::isfinite(value))
        break;
      values.push_back(value);
    }
    // The value that would follow the largest finite one: rounding to it is
    // overflow.
    const size_t n = values.size();
    values.push_back(2 * values[n - 1] - values[n - 2]);
  }

  /// The code nearest to a finite value, ties to the even code.
  uint32_t nearest(double value) const {
    const uint32_t sign = std::signbit(value) ? GetParam().signBit() : 0;
    const double wanted = std::fabs(value);
    auto above = std::lower_bound(values.begin(), values.end(), wanted);
    if (above == values.end())
      return sign | static_cast<uint32_t>(values.size() - 1);
    auto code = static_cast<uint32_t>(above - values.begin());
    if (code > 0) {
      const double up = values[code] - wanted;
      const double down = wanted - values[code - 1];
      if (down < up || (down == up && (code - 1) % 2 == 0))
        --code;
    }
    return sign | code;
  }

  /// All finite values that are not negative, by code, and the one after.
  std::vector<double> values;
};

} // namespace

TEST_P(FloatFormat, WidensEveryCode) {
  const FormatCase &format = GetParam();
  for (uint32_t code = 0; code < format.codes(); ++code) {
    const double value = meaning(format, code);
    const float plus = format.widen(code);
    const float minus = format.widen(code | format.signBit());
    ASSERT_EQ(std::isnan(plus), std::isnan(value)) << code;
    ASSERT_FALSE(std::signbit(plus)) << code;
    ASSERT_TRUE(std::signbit(minus)) << code;
    if (std::isnan(value))
      continue;
    ASSERT_EQ(plus, value) << code;
    ASSERT_EQ(minus, -value) << code;
    // And back.
    ASSERT_EQ(format.narrow32(plus), code);
    ASSERT_EQ(format.narrow64(minus), code | format.signBit());
  }
}

TEST_P(FloatFormat, RoundsToNearestEvenAtEveryBoundary) {
  const FormatCase &format = GetParam();
  for (size_t code = 0; code + 1 < values.size(); ++code) {
    const double middle = (values[code] + values[code + 1]) / 2;
    for (double value : {values[code], middle, std::nextafter(middle, 0),
                         std::nextafter(middle, INFINITY),
                         std::nextafter(values[code], INFINITY)}) {
      ASSERT_EQ(format.narrow64(value), nearest(value)) << value;
      ASSERT_EQ(format.narrow64(-value), nearest(-value)) << value;
    }
    const auto narrowMiddle = static_cast<float>(middle);
    for (float value :
         {narrowMiddle, std::nextafter(narrowMiddle, 0.0f),
          std::nextafter(narrowMiddle, std::numeric_limits<float>::infinity())})
      if (std::isfinite(value)) {
        ASSERT_EQ(format.narrow32(value), nearest(value)) << value;
        ASSERT_EQ(format.narrow32(-value), nearest(-value)) << value;
      }
  }
}

TEST_P(FloatFormat, SweepOverFloats) {
  const FormatCase &format = GetParam();
  for (uint64_t bits = 0; bits < (uint64_t{1} << 31); bits += 2039) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(value))
      break;
    ASSERT_EQ(format.narrow32(value), nearest(value)) << bits;
    ASSERT_EQ(format.narrow64(value), nearest(value)) << bits;
  }
}

TEST_P(FloatFormat, SpecialValues) {
  const FormatCase &format = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(format.widen(format.narrow32(nan))));
  EXPECT_TRUE(std::signbit(format.widen(format.narrow32(-nan))));
  // A signaling NaN whose payload does not fit must not become infinity.
  const auto signaling = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(format.widen(format.narrow32(signaling))));
  EXPECT_TRUE(std::isnan(format.widen(
      format.narrow64(std::bit_cast<double>(uint64_t{0x7ff0000000000001})))));
  const float big = format.widen(format.narrow32(infinity));
  const float overflow = format.widen(format.narrow64(-1e300));
  if (format.hasInfinity) {
    EXPECT_EQ(big, infinity);
    EXPECT_EQ(overflow, -infinity);
  } else {
    EXPECT_TRUE(std::isnan(big));
    EXPECT_TRUE(std::isnan(overflow));
    EXPECT_TRUE(std::signbit(overflow));
  }
  EXPECT_EQ(format.narrow32(-0.0f), format.signBit());
  EXPECT_EQ(format.narrow64(-5e-324), format.signBit());
}

TEST_P(FloatFormat, NarrowsDoublesOnce) {
  const FormatCase &format = GetParam();
  // Just above a tie: rounding through f32 would land on the tie.
  const double tie = (values[1] + values[2]) / 2;
  const double value = tie * (1 + 0x1p-40);
  EXPECT_EQ(format.narrow64(value), 2u);
  unsigned char bytes[8] = {};
  storeFloat(format.dtype, bytes, value);
  EXPECT_EQ(loadFloat(format.dtype, bytes), values[2]);
}

INSTANTIATE_TEST_SUITE_P(All, FloatFormat, testing::ValuesIn(formats),
                         [](const auto &info) { return info.param.label; });

TEST(FloatConvert, StoresAndLoadsPlainFloats) {
  unsigned char bytes[9];
  for (double value : {1.5, -0.0, 0x1p-149, 0x1.fffffep127, 1e-320}) {
    storeFloat(DType::F64, bytes + 1, value);
    EXPECT_EQ(loadFloat(DType::F64, bytes + 1), value);
    storeFloat(DType::F32, bytes + 1, value);
    EXPECT_EQ(loadFloat(DType::F32, bytes + 1),
              static_cast<double>(static_cast<float>(value)));
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 200000; ++i) {
    // Exponents around the range of f32, any mantissa.
    const uint64_t bits = (random() & 0x800fffffffffffff) |
                          (uint64_t{(random() % 300) + 870} << 52);
    const auto value = std::bit_cast<double>(bits);
    storeFloat(DType::F32, bytes, value);
    ASSERT_EQ(loadFloat(DType::F32, bytes),
              static_cast<double>(static_cast<float>(value)));
  }
}
