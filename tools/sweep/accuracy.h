//===- sweep/accuracy.h - Measured accuracy of the vector math -----*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the kernels of every ISA that the host supports over a range of inputs
// and records the largest errors against an independent reference: glibc's
// double functions for f32, its long double functions for f64.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SWEEP_ACCURACY_H
#define TESSERA_SWEEP_ACCURACY_H

#include "sweep/kernels.h"

#include <cstdint>
#include <string>

namespace tessera::sweep {

struct Extreme {
  double value = 0, at = 0;

  void raise(double candidate, double where) {
    if (candidate > value)
      *this = {candidate, where};
  }
};

/// One function, type, tier and ISA.
struct Measured {
  Extreme ulp;
  /// ULP - |x| where that is positive (GELU: for x >= -5 only).
  Extreme beyondX;
  /// For x <= 5 (of use for GELU only).
  Extreme absolute;
  uint64_t points = 0;
  /// Elements whose scalar instantiation gave other bits, and one of them.
  uint64_t laneDifferences = 0;
  double laneDifferenceAt = 0;

  void merge(const Measured &other);
};

struct Results {
  Measured of[isaCount][tierCount];

  void merge(const Results &other);
};

/// Indices of f32 inputs run from 0 to f32Inputs(sample): one input out of each
/// `sample` neighbouring bit patterns; sample is a power of two up to 2^20.
uint64_t f32Inputs(unsigned sample);
void sweepF32(vmath::Function function, unsigned sample, uint64_t begin,
              uint64_t end, Results &results);

/// The f64 inputs are a fixed pseudo-random sequence: all exponents, the
/// function's interesting ranges and, first, special values.
void sweepF64(vmath::Function function, uint64_t begin, uint64_t end,
              Results &results);

/// Chunks should be multiples of this.
inline constexpr uint64_t blockSize = 4096;

/// The form of the tier's bound (vector_math.h): `constant` + perX |x| ULP and,
/// if not 0, an absolute error. Silu and gelu_tanh have none in Strict: 0.
struct Bound {
  double constant = 0, perX = 0, absolute = 0;
};
Bound tierBound(vmath::Function function, vmath::Accuracy tier);

/// Hash of the library's sources below `sourceDir` (an FNV-1a of 64 bits in
/// hexadecimal); empty if a file cannot be read.
std::string sourceHash(const std::string &sourceDir);

} // namespace tessera::sweep

#endif // TESSERA_SWEEP_ACCURACY_H
