//===- kernels/gelu.h - GELU as an expression -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_GELU_H
#define TESSERA_KERNELS_GELU_H

#include "tessera/dsl.h"

namespace tessera::kernels {

// GELU is x sigmoid(2 z) with 2 z = x (slope + cube x^2), which is the tanh
// form 0.5 x (1 + tanh z) with z = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr double geluSlope = 2 * 0.7978845608028653558798921198687637;
inline constexpr double geluCube = geluSlope * 0.044715;

inline Tile gelu(const Tile &x) {
  return x * sigmoid(x * (geluSlope + geluCube * (x * x)));
}

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_GELU_H
