//===- kernels/oracle/families.h - The oracles by family --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function per operator, one file per family; oracle.cpp lists them by
// name.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_FAMILIES_H
#define TESSERA_KERNELS_ORACLE_FAMILIES_H

#include "kernels/oracle/oracle.h"

namespace tessera::oracle {

// movement.cpp
Result<OracleResult> copy(const OracleArgs &args);
Result<OracleResult> addArrays(const OracleArgs &args);
Result<OracleResult> transpose(const OracleArgs &args);
Result<OracleResult> embedding(const OracleArgs &args);

// reductions.cpp
Result<OracleResult> rowSum(const OracleArgs &args);
Result<OracleResult> rowMax(const OracleArgs &args);
Result<OracleResult> rowMean(const OracleArgs &args);
Result<OracleResult> colSum(const OracleArgs &args);
Result<OracleResult> argMax(const OracleArgs &args);
Result<OracleResult> cumsum(const OracleArgs &args);

// softmax.cpp
Result<OracleResult> softmax(const OracleArgs &args);
Result<OracleResult> maskedSoftmax(const OracleArgs &args);
Result<OracleResult> crossEntropy(const OracleArgs &args);

// norms.cpp
Result<OracleResult> rmsNorm(const OracleArgs &args);
Result<OracleResult> addRmsNorm(const OracleArgs &args);
Result<OracleResult> layerNorm(const OracleArgs &args);
Result<OracleResult> residualLayerNorm(const OracleArgs &args);

// activations.cpp
Result<OracleResult> geluResidual(const OracleArgs &args);
Result<OracleResult> geluPair(const OracleArgs &args);
Result<OracleResult> sigmoidPair(const OracleArgs &args);
Result<OracleResult> swiglu(const OracleArgs &args);
Result<OracleResult> affineLeaky(const OracleArgs &args);
Result<OracleResult> rope(const OracleArgs &args);

// contractions.cpp
Result<OracleResult> gemm(const OracleArgs &args);
Result<OracleResult> gemmAffineLeaky(const OracleArgs &args);
Result<OracleResult> gemmEpilogue(const OracleArgs &args);
Result<OracleResult> bmm(const OracleArgs &args);

// quantized.cpp
Result<OracleResult> gemmQ8(const OracleArgs &args);
Result<OracleResult> gemmQ4(const OracleArgs &args);

// ordering.cpp
Result<OracleResult> sort(const OracleArgs &args);
Result<OracleResult> topK(const OracleArgs &args);

// images.cpp
Result<OracleResult> maxPool2d(const OracleArgs &args);
Result<OracleResult> sobel(const OracleArgs &args);
Result<OracleResult> median3(const OracleArgs &args);

// convolutions.cpp
Result<OracleResult> conv2d(const OracleArgs &args);
Result<OracleResult> depthwiseConv2d(const OracleArgs &args);

// attention.cpp
Result<OracleResult> attention(const OracleArgs &args);

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_FAMILIES_H
