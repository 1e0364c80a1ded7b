//===- kernels/kernels.h - The operator library -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library operators as kernels, written in the front end like any user's.
// What each computes, and the names of its parameters, is in the operator table
// (table.h); how it behaves at the edges, in docs/semantics.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_KERNELS_H
#define TESSERA_KERNELS_KERNELS_H

#include "tessera/dsl/kernel.h"

namespace tessera::kernels {

// movement.cpp
Kernel copy();
Kernel add();
Kernel transpose();
Kernel embedding();

// reductions.cpp
Kernel rowSum();
Kernel rowMax();
Kernel rowMean();
Kernel colSum();
Kernel argMax();
Kernel cumsum();

// softmax.cpp
Kernel softmax();
Kernel maskedSoftmax();
Kernel crossEntropy();

// norms.cpp
Kernel rmsNorm();
Kernel addRmsNorm();
Kernel layerNorm();
Kernel residualLayerNorm();

// activations.cpp
Kernel geluResidual();
Kernel geluPair();
Kernel sigmoidPair();
Kernel swiglu();
Kernel affineLeaky();
Kernel rope();

// contractions.cpp
Kernel gemm();
Kernel gemmAffineLeaky();
Kernel gemmEpilogue();
Kernel bmm();

// quantized.cpp
Kernel gemmQ8();
Kernel gemmQ4();

// ordering.cpp
Kernel sort();
Kernel topK();

// images.cpp
Kernel maxPool2d();
Kernel sobel();
Kernel median3();

// convolutions.cpp
Kernel conv2d();
Kernel depthwiseConv2d();

// attention.cpp
Kernel attention();

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_KERNELS_H
