//===- codegen/cpu/native_math.h - Vector math that computes ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The builder of vector_math_support.h on clang's vector types: the operations
// are performed. N = 1 is a plain scalar. Isa says what the unit is compiled
// for; a unit that includes this must be compiled for that ISA, with
// contraction off. Since Isa is part of every instantiation's name, units for
// different ISAs link together.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_NATIVE_MATH_H
#define TESSERA_CODEGEN_CPU_NATIVE_MATH_H

#include "codegen/cpu/vector_math.h"

#include <type_traits>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace tessera::vmath {

/// AVX-512 F, DQ, VL: FMA and scalef.
struct Avx512 {
  static constexpr bool fma = true, scalef = true;
};
/// AVX2 with FMA.
struct Avx2 {
  static constexpr bool fma = true, scalef = false;
};
/// Plain x86-64 (SSE2).
struct Baseline {
  static constexpr bool fma = false, scalef = false;
};

template <class E, unsigned N> struct NativeShape {
  typedef E Type __attribute__((ext_vector_type(N)));
};
template <class E> struct NativeShape<E, 1> {
  using Type = E;
};

template <class T, unsigned N, class Isa> struct NativeBuilder {
  static constexpr bool isF32 = T::width == 32;
  using Element = std::conditional_t<isF32, float, double>;
  using IntElement = std::conditional_t<isF32, int32_t, int64_t>;
  using UIntElement = std::conditional_t<isF32, uint32_t, uint64_t>;
  using Value = typename NativeShape<Element, N>::Type;
  using Int = typename NativeShape<IntElement, N>::Type;
  using UInt = typename NativeShape<UIntElement, N>::Type;
  using Mask = std::conditional_t<N == 1, bool, Int>;

  Value constF(double c) { return Value(Element(c)); }
  Value add(Value a, Value c) { return a + c; }
  Value sub(Value a, Value c) { return a - c; }
  Value mul(Value a, Value c) { return a * c; }
  Value div(Value a, Value c) { return a / c; }
  bool hasFMA() { return Isa::fma; }
  Value fma(Value a, Value c, Value d) {
    if constexpr (Isa::fma)
      return __builtin_elementwise_fma(a, c, d);
    else
      return a * c + d;
  }
  Value neg(Value a) { return -a; }
  Value abs(Value a) { return __builtin_elementwise_abs(a); }
  Value sqrt(Value a) { return __builtin_elementwise_sqrt(a); }
  Value min(Value a, Value c) { return a < c ? a : c; }
  Value max(Value a, Value c) { return a > c ? a : c; }
  Mask lt(Value a, Value c) { return Mask(a < c); }
  Mask eq(Value a, Value c) { return Mask(a == c); }
  Value select(Mask m, Value a, Value c) { return m ? a : c; }

  Int toBits(Value a) { return __builtin_bit_cast(Int, a); }
  Value fromBits(Int i) { return __builtin_bit_cast(Value, i); }
  Int constI(int64_t c) { return Int(IntElement(c)); }
  Int iadd(Int i, Int j) { return Int(UInt(i) + UInt(j)); }
  Int isub(Int i, Int j) { return Int(UInt(i) - UInt(j)); }
  Int imul(Int i, Int j) { return Int(UInt(i) * UInt(j)); }
  Int iand(Int i, Int j) { return i & j; }
  Int ior(Int i, Int j) { return i | j; }
  Int ixor(Int i, Int j) { return i ^ j; }
  Int shl(Int i, unsigned n) { return Int(UInt(i) << UInt(UIntElement(n))); }
  Int lshr(Int i, unsigned n) { return Int(UInt(i) >> UInt(UIntElement(n))); }
  Int shlv(Int i, Int j) { return Int(UInt(i) << UInt(j)); }
  Mask ieq(Int i, Int j) { return Mask(i == j); }
  Int iselect(Mask m, Int i, Int j) { return m ? i : j; }

  bool hasScalef() { return Isa::scalef; }
  Value scalef(Value a, Value n) {
#ifdef __AVX512F__
    if constexpr (N == 1 && isF32)
      return _mm_cvtss_f32(_mm_scalef_ss(_mm_set_ss(a), _mm_set_ss(n)));
    else if constexpr (N == 1)
      return _mm_cvtsd_f64(_mm_scalef_sd(_mm_set_sd(a), _mm_set_sd(n)));
    else if constexpr (isF32)
      return __builtin_bit_cast(
          Value, _mm512_scalef_ps(__builtin_bit_cast(__m512, a),
                                  __builtin_bit_cast(__m512, n)));
    else
      return __builtin_bit_cast(
          Value, _mm512_scalef_pd(__builtin_bit_cast(__m512d, a),
                                  __builtin_bit_cast(__m512d, n)));
#else
    return a * n; // never taken
#endif
  }

  template <class Then> Value ifAny(Mask m, Value otherwise, Then then) {
    bool any = false;
    if constexpr (N == 1)
      any = m;
    else
      any = __builtin_reduce_or(m) != 0;
    return any ? then() : otherwise;
  }
};

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_NATIVE_MATH_H
