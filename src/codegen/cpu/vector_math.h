//===- codegen/cpu/vector_math.h - The vector math library ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementary functions for f32 and f64, written once against a builder
// (vector_math_support.h states it): the code generator instantiates them to
// emit IR for scalars and vectors, the sweep and the tests to compute.
//
//   typename B::Value y = vmath::exp<vmath::F32>(builder, x,
//   Accuracy::Default); typename B::Value y =
//   vmath::evaluate<vmath::F32>(builder,
//                             Function::Exp, x, Accuracy::Default);
//
// Accuracy, in units in the last place of the result (of the subnormal grid
// for subnormal results): Strict at most 1; Default exp 2 + |x|, sigmoid and
// silu 4 + |x|, gelu_tanh an absolute error of at most 1e-6 and 4 + |x| for
// |x| <= 5, the rest 4. silu and gelu_tanh stand for several operations of the
// author, so they have no Strict bound of their own. NaN, infinities, signed
// zeros, overflow and subnormals follow IEEE conventions in every tier. The
// bounds that the sweep established are in math_accuracy.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_CPU_VECTOR_MATH_H
#define TESSERA_CODEGEN_CPU_VECTOR_MATH_H

#include "codegen/cpu/vector_math_exp.h"
#include "codegen/cpu/vector_math_log.h"
#include "codegen/cpu/vector_math_trig.h"

namespace tessera::vmath {

enum class Function {
  Exp,
  Exp2,
  Expm1,
  Sigmoid,
  Silu,
  GeluTanh,
  Tanh,
  Erf,
  Log,
  Log2,
  Log1p,
  Rsqrt,
  Sin,
  Cos,
};
inline constexpr unsigned functionCount = 14;

/// The function's name in reports: "exp", "gelu_tanh", ...
constexpr const char *name(Function function) {
  constexpr const char *names[functionCount] = {
      "exp", "exp2", "expm1", "sigmoid", "silu",  "gelu_tanh", "tanh",
      "erf", "log",  "log2",  "log1p",   "rsqrt", "sin",       "cos"};
  return names[unsigned(function)];
}

template <class T, class B>
typename B::Value evaluate(B &b, Function function, typename B::Value x,
                           Accuracy accuracy) {
  switch (function) {
  case Function::Exp:
    return exp<T>(b, x, accuracy);
  case Function::Exp2:
    return exp2<T>(b, x, accuracy);
  case Function::Expm1:
    return expm1<T>(b, x, accuracy);
  case Function::Sigmoid:
    return sigmoid<T>(b, x, accuracy);
  case Function::Silu:
    return silu<T>(b, x, accuracy);
  case Function::GeluTanh:
    return geluTanh<T>(b, x, accuracy);
  case Function::Tanh:
    return tanh<T>(b, x, accuracy);
  case Function::Erf:
    return erf<T>(b, x, accuracy);
  case Function::Log:
    return log<T>(b, x, accuracy);
  case Function::Log2:
    return log2<T>(b, x, accuracy);
  case Function::Log1p:
    return log1p<T>(b, x, accuracy);
  case Function::Rsqrt:
    return rsqrt<T>(b, x, accuracy);
  case Function::Sin:
    return sin<T>(b, x, accuracy);
  case Function::Cos:
    return cos<T>(b, x, accuracy);
  }
  return x;
}

} // namespace tessera::vmath

#endif // TESSERA_CODEGEN_CPU_VECTOR_MATH_H
