//===- sweep/kernels_baseline.cpp - Plain x86-64 -------------------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels without FMA and without scalef, on SSE2.
//
//===----------------------------------------------------------------------===//

#define ISA vmath::Baseline
#define WIDTH_F32 4
#define FILL fillBaseline
#include "sweep/kernels.inc"
