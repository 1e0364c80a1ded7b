//===- float_convert.cpp - Narrow float formats ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One narrowing and one widening routine, parameterized by the format's layout.
//
//===----------------------------------------------------------------------===//

#include "support/float_convert.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace tessera::support {

namespace {

/// Layout of a binary format: sign, exponent, mantissa.
struct Format {
  int exponentBits;
  int mantissaBits;
  /// False for f8e4m3: the top exponent holds numbers, all ones are NaN.
  bool hasInfinity;

  constexpr int bias() const { return (1 << (exponentBits - 1)) - 1; }
  constexpr uint64_t exponentMask() const {
    return ((uint64_t{1} << exponentBits) - 1) << mantissaBits;
  }
  constexpr uint64_t mantissaMask() const {
    return (uint64_t{1} << mantissaBits) - 1;
  }
  constexpr int signShift() const { return exponentBits + mantissaBits; }
};

constexpr Format f64Format = {11, 52, true};
constexpr Format f32Format = {8, 23, true};
constexpr Format f16Format = {5, 10, true};
constexpr Format bf16Format = {8, 7, true};
constexpr Format f8E4M3Format = {4, 3, false};
constexpr Format f8E5M2Format = {5, 2, true};

/// The encoding in `To` of the number that `bits` encodes in the wider `From`.
template <Format From, Format To> uint64_t narrow(uint64_t bits) {
  constexpr int droppedBits = From.mantissaBits - To.mantissaBits;
  const uint64_t sign = (bits >> From.signShift()) << To.signShift();
  const uint64_t exponentField =
      (bits & From.exponentMask()) >> From.mantissaBits;
  const uint64_t mantissa = bits & From.mantissaMask();

  if ((bits & From.exponentMask()) == From.exponentMask()) {
    if (mantissa == 0 && To.hasInfinity)
      return sign | To.exponentMask();
    if (!To.hasInfinity)
      return sign | To.exponentMask() | To.mantissaMask();
    const uint64_t quiet = uint64_t{1} << (To.mantissaBits - 1);
    return sign | To.exponentMask() | quiet | (mantissa >> droppedBits);
  }

  // The value is significand * 2^(exponent - From.mantissaBits).
  const int exponent =
      std::max(static_cast<int>(exponentField), 1) - From.bias();
  const uint64_t implicit =
      exponentField == 0 ? 0 : uint64_t{1} << From.mantissaBits;
  const uint64_t significand = implicit | mantissa;

  // Below the smallest normal exponent the spacing of `To` stays constant.
  const int scale = std::max(exponent, 1 - To.bias());
  const int shift = droppedBits + (scale - exponent);
  if (shift > From.mantissaBits + 1)
    return sign; // Less than half of the smallest subnormal.

  uint64_t quotient = significand >> shift;
  const uint64_t remainder = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  if (remainder > half || (remainder == half && (quotient & 1)))
    ++quotient;

  // A normal quotient holds its implicit bit, which adds one to the exponent;
  // a carry out of the mantissa does the same.
  const uint64_t encoded =
      quotient +
      (static_cast<uint64_t>(scale + To.bias() - 1) << To.mantissaBits);
  if (To.hasInfinity)
    return sign | std::min(encoded, To.exponentMask());
  return sign | std::min(encoded, To.exponentMask() | To.mantissaMask());
}

/// The f32 encoding of the number that `bits` encodes in `From`; always exact.
template <Format From> uint32_t widen(uint32_t bits) {
  constexpr int addedBits = 23 - From.mantissaBits;
  const uint32_t sign = (bits >> From.signShift()) << 31;
  const uint32_t exponentField =
      (bits & static_cast<uint32_t>(From.exponentMask())) >> From.mantissaBits;
  const uint32_t mantissa = bits & static_cast<uint32_t>(From.mantissaMask());
  constexpr uint32_t topExponent = (1u << From.exponentBits) - 1;

  if (From.hasInfinity && exponentField == topExponent)
    return sign | 0x7f800000u |
           (mantissa == 0 ? 0 : 0x00400000u | (mantissa << addedBits));
  if (!From.hasInfinity && exponentField == topExponent &&
      mantissa == From.mantissaMask())
    return sign | 0x7fc00000u;

  if (exponentField != 0)
    return sign | ((exponentField + 127 - From.bias()) << 23) |
           (mantissa << addedBits);
  if (mantissa == 0)
    return sign;
  if constexpr (From.bias() == 127) {
    return sign | (mantissa << addedBits); // Subnormal in f32 as well.
  } else {
    // Normalize: move the leading one to the implicit position.
    const int lead = std::bit_width(mantissa) - 1;
    const int exponent = 1 - From.bias() - From.mantissaBits + lead;
    const uint32_t fraction = (mantissa << (23 - lead)) & 0x007fffffu;
    return sign | (static_cast<uint32_t>(exponent + 127) << 23) | fraction;
  }
}

template <Format To> uint64_t fromF32(float value) {
  return narrow<f32Format, To>(std::bit_cast<uint32_t>(value));
}
template <Format To> uint64_t fromF64(double value) {
  return narrow<f64Format, To>(std::bit_cast<uint64_t>(value));
}

template <typename T> T read(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}
template <typename T> void write(void *address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

} // namespace

uint16_t f32ToF16(float value) { return fromF32<f16Format>(value); }
uint16_t f32ToBF16(float value) { return fromF32<bf16Format>(value); }
uint8_t f32ToF8E4M3(float value) { return fromF32<f8E4M3Format>(value); }
uint8_t f32ToF8E5M2(float value) { return fromF32<f8E5M2Format>(value); }

uint16_t f64ToF16(double value) { return fromF64<f16Format>(value); }
uint16_t f64ToBF16(double value) { return fromF64<bf16Format>(value); }
uint8_t f64ToF8E4M3(double value) { return fromF64<f8E4M3Format>(value); }
uint8_t f64ToF8E5M2(double value) { return fromF64<f8E5M2Format>(value); }

float f16ToF32(uint16_t bits) {
  return std::bit_cast<float>(widen<f16Format>(bits));
}
float bf16ToF32(uint16_t bits) {
  return std::bit_cast<float>(widen<bf16Format>(bits));
}
float f8E4M3ToF32(uint8_t bits) {
  return std::bit_cast<float>(widen<f8E4M3Format>(bits));
}
float f8E5M2ToF32(uint8_t bits) {
  return std::bit_cast<float>(widen<f8E5M2Format>(bits));
}

double loadFloat(DType type, const void *address) {
  switch (type) {
  case DType::F16:
    return f16ToF32(read<uint16_t>(address));
  case DType::BF16:
    return bf16ToF32(read<uint16_t>(address));
  case DType::F8E4M3:
    return f8E4M3ToF32(read<uint8_t>(address));
  case DType::F8E5M2:
    return f8E5M2ToF32(read<uint8_t>(address));
  case DType::F32:
    return read<float>(address);
  case DType::F64:
    return read<double>(address);
  default:
    assert(false && "loadFloat needs a floating type");
    return 0;
  }
}

void storeFloat(DType type, void *address, double value) {
  switch (type) {
  case DType::F16:
    return write(address, f64ToF16(value));
  case DType::BF16:
    return write(address, f64ToBF16(value));
  case DType::F8E4M3:
    return write(address, f64ToF8E4M3(value));
  case DType::F8E5M2:
    return write(address, f64ToF8E5M2(value));
  case DType::F32:
    return write(address, static_cast<uint32_t>(fromF64<f32Format>(value)));
  case DType::F64:
    return write(address, value);
  default:
    assert(false && "storeFloat needs a floating type");
  }
}

} // namespace tessera::support
