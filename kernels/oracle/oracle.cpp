//===- kernels/oracle/oracle.cpp - The table of oracles -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/oracle.h"

#include "kernels/oracle/families.h"

#include <array>

namespace tessera::oracle {
namespace {

struct Entry {
  std::string_view name;
  OracleFunction function;
};

constexpr auto oracles = std::to_array<Entry>({
    {"add", addArrays},
    {"add_rms_norm", addRmsNorm},
    {"affine_leaky", affineLeaky},
    {"arg_max", argMax},
    {"attention", attention},
    {"bmm", bmm},
    {"col_sum", colSum},
    {"conv2d", conv2d},
    {"copy", copy},
    {"cross_entropy", crossEntropy},
    {"cumsum", cumsum},
    {"depthwise_conv2d", depthwiseConv2d},
    {"embedding", embedding},
    {"gelu_pair", geluPair},
    {"gelu_residual", geluResidual},
    {"gemm", gemm},
    {"gemm_affine_leaky", gemmAffineLeaky},
    {"gemm_epilogue", gemmEpilogue},
    {"gemm_q4", gemmQ4},
    {"gemm_q8", gemmQ8},
    {"layer_norm", layerNorm},
    {"masked_softmax", maskedSoftmax},
    {"max_pool2d", maxPool2d},
    {"median3", median3},
    {"residual_layer_norm", residualLayerNorm},
    {"rms_norm", rmsNorm},
    {"rope", rope},
    {"row_max", rowMax},
    {"row_mean", rowMean},
    {"row_sum", rowSum},
    {"sigmoid_pair", sigmoidPair},
    {"sobel", sobel},
    {"softmax", softmax},
    {"sort", sort},
    {"swiglu", swiglu},
    {"top_k", topK},
    {"transpose", transpose},
});

} // namespace

OracleFunction findOracle(std::string_view op) {
  for (const Entry &entry : oracles)
    if (entry.name == op)
      return entry.function;
  return nullptr;
}

std::vector<std::string_view> oracleNames() {
  std::vector<std::string_view> names;
  for (const Entry &entry : oracles)
    names.push_back(entry.name);
  return names;
}

} // namespace tessera::oracle
