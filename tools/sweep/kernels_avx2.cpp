//===- sweep/kernels_avx2.cpp - AVX2 with FMA ----------------------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels with FMA and without scalef.
//
//===----------------------------------------------------------------------===//

#define ISA vmath::Avx2
#define WIDTH_F32 8
#define FILL fillAvx2
#include "sweep/kernels.inc"
