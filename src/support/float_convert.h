//===- support/float_convert.h - Narrow float formats -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between f32 or f64 and the storage formats f16, bf16, f8e4m3 (the
// finite-only variant, "fn") and f8e5m2. Narrowing rounds once, to nearest
// even; subnormals, signed zeros and infinities are kept. All work is done on
// integers, so the caller's floating-point mode changes nothing.
//
// NaN stays NaN, quiet, with its sign and as much of its payload as fits. A
// value beyond the largest finite one becomes infinity; f8e4m3 has no infinity
// and gives NaN there.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_FLOAT_CONVERT_H
#define TESSERA_SUPPORT_FLOAT_CONVERT_H

#include "tessera/dtype.h"

#include <cstdint>

namespace tessera::support {

uint16_t f32ToF16(float value);
uint16_t f32ToBF16(float value);
uint8_t f32ToF8E4M3(float value);
uint8_t f32ToF8E5M2(float value);

/// The same from f64 with one rounding (not through f32).
uint16_t f64ToF16(double value);
uint16_t f64ToBF16(double value);
uint8_t f64ToF8E4M3(double value);
uint8_t f64ToF8E5M2(double value);

float f16ToF32(uint16_t bits);
float bf16ToF32(uint16_t bits);
float f8E4M3ToF32(uint8_t bits);
float f8E5M2ToF32(uint8_t bits);

/// Reads one element of a floating type; `address` needs no alignment.
double loadFloat(DType type, const void *address);

/// Writes `value` as one element of a floating type, rounded once;
/// `address` needs no alignment.
void storeFloat(DType type, void *address, double value);

} // namespace tessera::support

#endif // TESSERA_SUPPORT_FLOAT_CONVERT_H
