//===- sweep/kernels.h - The vector math library, compiled ---------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of codegen/cpu/vector_math.h as array kernels for each ISA
// form, for the sweep and the tests. Each table comes from its own unit, which
// is compiled for that ISA; only call a table whose ISA the host has
// (hostSupports).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SWEEP_KERNELS_H
#define TESSERA_SWEEP_KERNELS_H

#include "codegen/cpu/vector_math.h"

#include <cstddef>

namespace tessera::sweep {

enum class Isa { Avx512, Avx2, Baseline };
inline constexpr unsigned isaCount = 3;
/// "avx512", "avx2", "baseline".
const char *name(Isa isa);
bool hostSupports(Isa isa);

/// The tiers that differ: Strict and Default.
inline constexpr unsigned tierCount = 2;

/// Elements per call are a multiple of this.
inline constexpr size_t kernelStep = 16;

template <class E> struct Kernel {
  void (*vector)(const E *in, E *out, size_t count) = nullptr;
  void (*scalar)(const E *in, E *out, size_t count) = nullptr;
};

/// The largest errors within a block; a wrong NaN or a zero of the wrong sign
/// counts as wrongResult ULP.
struct BlockWorst {
  double ulp = 0;
  /// ULP - |x|, for x >= beyondFrom.
  double beyondX = 0;
  /// For x <= geluAbsoluteTo.
  double absolute = 0;
};
inline constexpr double wrongResult = 1e30;
/// GELU's bounds: 4 + |x| ULP from here up, the absolute one up to there.
inline constexpr double geluUlpFrom = -5, geluAbsoluteTo = 5;

struct KernelTable {
  BlockWorst (*measure)(const float *in, const float *out, const double *ref,
                        size_t count, double beyondFrom) = nullptr;
  Kernel<float> f32[vmath::functionCount][tierCount];
  Kernel<double> f64[vmath::functionCount][tierCount];
};

void fillAvx512(KernelTable &table);
void fillAvx2(KernelTable &table);
void fillBaseline(KernelTable &table);

/// The table of an ISA that the host supports.
const KernelTable &kernels(Isa isa);

/// f(x) in double for f32 arguments by AVX-512 libmvec; false if this build has
/// none. Call only where hostSupports(Isa::Avx512).
bool referenceAvx512(vmath::Function function, const float *in, double *out,
                     size_t count);

} // namespace tessera::sweep

#endif // TESSERA_SWEEP_KERNELS_H
