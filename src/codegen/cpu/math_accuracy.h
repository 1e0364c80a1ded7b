//===- codegen/cpu/math_accuracy.h - Stated error bounds --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The error bounds that the compiler states for the vector math library: one
// row per function, element type, tier and ISA in math_accuracy.inc, rounded up
// from what tessera-sweep measured (all 2^32 arguments for f32, 10^8 for f64).
// The rows belong to the sources whose hash stands beside them; the sampled
// sweep of the test suite fails when they no longer do.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_MATH_ACCURACY_H
#define TESSERA_CODEGEN_CPU_MATH_ACCURACY_H

#include "codegen/cpu/vector_math.h"

namespace tessera::vmath {

/// The builder's abilities: Avx512 has FMA and scalef, Avx2 FMA, Baseline none.
enum class MathIsa { Avx512, Avx2, Baseline };

/// |error| <= constant + perX |x| ULP. For gelu_tanh that holds for x >= -5,
/// and |error| <= absolute for x <= 5.
struct StatedBound {
  double constant = 0, perX = 0, absolute = 0;
};

namespace detail {
struct AccuracyRow {
  Function function;
  bool isF64;
  Accuracy tier;
  MathIsa isa;
  StatedBound bound;
};
inline constexpr AccuracyRow accuracyRows[] = {
#define MATH_ACCURACY(FUNCTION, TYPE, TIER, ISA, CONSTANT, PER_X, ABSOLUTE)    \
  {Function::FUNCTION,                                                         \
   F##TYPE::width == 64,                                                       \
   Accuracy::TIER,                                                             \
   MathIsa::ISA,                                                               \
   {CONSTANT, PER_X, ABSOLUTE}},
#include "codegen/cpu/math_accuracy.inc"
#undef MATH_ACCURACY
};
inline constexpr const char *accuracyHash =
#define MATH_ACCURACY_HASH(HASH) HASH
#include "codegen/cpu/math_accuracy.inc"
#undef MATH_ACCURACY_HASH
    ;
} // namespace detail

/// Fast has the bounds of Default.
constexpr StatedBound statedBound(Function function, bool isF64,
                                  Accuracy accuracy, MathIsa isa) {
  Accuracy tier =
      accuracy == Accuracy::Strict ? Accuracy::Strict : Accuracy::Default;
  for (const detail::AccuracyRow &row : detail::accuracyRows)
    if (row.function == function && row.isF64 == isF64 && row.tier == tier &&
        row.isa == isa)
      return row.bound;
  return {};
}

/// The hash of the sources that the rows were measured with.
constexpr const char *statedSourceHash() { return detail::accuracyHash; }

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_MATH_ACCURACY_H
