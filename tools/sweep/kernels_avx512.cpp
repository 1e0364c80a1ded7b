//===- sweep/kernels_avx512.cpp - AVX-512 --------------------------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels with FMA and scalef, and the fast reference of the f32 sweep:
// glibc's vector library in double (at most 4 ULP of double), which shares
// nothing with ours.
//
//===----------------------------------------------------------------------===//

#define ISA vmath::Avx512
#define WIDTH_F32 16
#define FILL fillAvx512
#include "sweep/kernels.inc"

#ifdef TESSERA_SWEEP_LIBMVEC
extern "C" {
__m512d _ZGVeN8v_exp(__m512d);
__m512d _ZGVeN8v_exp2(__m512d);
__m512d _ZGVeN8v_expm1(__m512d);
__m512d _ZGVeN8v_tanh(__m512d);
__m512d _ZGVeN8v_erf(__m512d);
__m512d _ZGVeN8v_log(__m512d);
__m512d _ZGVeN8v_log2(__m512d);
__m512d _ZGVeN8v_log1p(__m512d);
__m512d _ZGVeN8v_sin(__m512d);
__m512d _ZGVeN8v_cos(__m512d);
}

namespace tessera::sweep {

static __m512d reference8(vmath::Function function, __m512d x) {
  using vmath::Function;
  __m512d one = _mm512_set1_pd(1);
  auto sigmoid = [&](__m512d v) { return one / (one + _ZGVeN8v_exp(-v)); };
  switch (function) {
  case Function::Exp:
    return _ZGVeN8v_exp(x);
  case Function::Exp2:
    return _ZGVeN8v_exp2(x);
  case Function::Expm1:
    return _ZGVeN8v_expm1(x);
  case Function::Sigmoid:
    return sigmoid(x);
  case Function::Silu:
    return x * sigmoid(x);
  case Function::GeluTanh: {
    __m512d inner = x + _mm512_set1_pd(0.044715) * x * x * x;
    return x * sigmoid(_mm512_set1_pd(0x1.9884533d43651p+0) * inner);
  }
  case Function::Tanh:
    return _ZGVeN8v_tanh(x);
  case Function::Erf:
    return _ZGVeN8v_erf(x);
  case Function::Log:
    return _ZGVeN8v_log(x);
  case Function::Log2:
    return _ZGVeN8v_log2(x);
  case Function::Log1p:
    return _ZGVeN8v_log1p(x);
  case Function::Rsqrt:
    return one / _mm512_sqrt_pd(x);
  case Function::Sin:
    return _ZGVeN8v_sin(x);
  case Function::Cos:
    return _ZGVeN8v_cos(x);
  }
  return x;
}

bool referenceAvx512(vmath::Function function, const float *in, double *out,
                     size_t count) {
  for (size_t i = 0; i < count; i += 8) {
    __m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(in + i));
    _mm512_storeu_pd(out + i, reference8(function, x));
  }
  return true;
}

} // namespace tessera::sweep
#else
bool tessera::sweep::referenceAvx512(vmath::Function, const float *, double *,
                                     size_t) {
  return false;
}
#endif
