//===- sweep/measure.h - Errors of a block of f32 results ----------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sweep's inner loop, on vectors of eight doubles; instantiated per ISA so
// that the units for different ISAs link together.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SWEEP_MEASURE_H
#define TESSERA_SWEEP_MEASURE_H

#include "sweep/kernels.h"

#include <cstdint>

namespace tessera::sweep {

template <class Isa> struct BlockMeasure {
  typedef double Double __attribute__((ext_vector_type(8)));
  typedef float Float __attribute__((ext_vector_type(8)));
  typedef int64_t Long __attribute__((ext_vector_type(8)));

  static Double select(Long m, Double a, Double c) { return m ? a : c; }
  static Long select(Long m, Long a, Long c) { return m ? a : c; }
  static Double abs(Double a) { return __builtin_elementwise_abs(a); }
  static Double larger(Double a, Double c) { return select(a > c, a, c); }
  static Long bits(Double a) { return __builtin_bit_cast(Long, a); }

  static BlockWorst run(const float *in, const float *out, const double *ref,
                        size_t count, double beyondFrom) {
    Double ulp = 0, beyond = 0, absolute = 0;
    for (size_t i = 0; i < count; i += 8) {
      Float xf, yf;
      Double r;
      __builtin_memcpy(&xf, in + i, sizeof(xf));
      __builtin_memcpy(&yf, out + i, sizeof(yf));
      __builtin_memcpy(&r, ref + i, sizeof(r));
      Double x = __builtin_convertvector(xf, Double);
      Double y = __builtin_convertvector(yf, Double);
      // Infinity stands for the value after the largest finite one.
      Long sign = bits(r) & INT64_MIN;
      Double cap = __builtin_bit_cast(Double, bits(Double(0x1p128)) | sign);
      r = select(Long(abs(r) > 0x1p128), cap, r);
      Double yCap = __builtin_bit_cast(Double, bits(Double(0x1p128)) |
                                                   (bits(y) & INT64_MIN));
      y = select(Long(abs(y) > 0x1p128), yCap, y);
      Long exponent = (bits(r) >> 52) & 0x7ff;
      exponent = select(exponent < 897, Long(897), exponent);
      exponent = select(exponent > 1150, Long(1150), exponent);
      Double perUlp = __builtin_bit_cast(Double, (Long(2069) - exponent) << 52);
      Double distance = abs(y - r);
      Long rNan = Long(r != r), yNan = Long(y != y);
      Long wrong =
          (rNan ^ yNan) | (Long(y == 0) & ((bits(y) ^ bits(r)) < 0) & ~rNan);
      Double e = distance * perUlp;
      e = select(rNan, Double(0), e);
      e = select(wrong, Double(wrongResult), e);
      ulp = larger(e, ulp);
      Double b = select(Long(x < beyondFrom), Double(0), e - abs(x));
      beyond = larger(b, beyond);
      Double a = select(Long(x <= geluAbsoluteTo), distance, Double(0));
      absolute = larger(a, absolute);
    }
    BlockWorst worst;
    for (int i = 0; i < 8; ++i) {
      worst.ulp = worst.ulp > ulp[i] ? worst.ulp : ulp[i];
      worst.beyondX = worst.beyondX > beyond[i] ? worst.beyondX : beyond[i];
      worst.absolute =
          worst.absolute > absolute[i] ? worst.absolute : absolute[i];
    }
    return worst;
  }
};

} // namespace tessera::sweep

#endif // TESSERA_SWEEP_MEASURE_H
