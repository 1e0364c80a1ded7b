//===- structure/stores_test.cpp - Stores past the caches -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "stages.h"
#include "test/unit/planned_machine.h"

#include <gtest/gtest.h>

namespace tessera::structuretest {
namespace {

std::string codeOf(const char *op, int64_t rows, int64_t cols, Isa isa,
                   DType dtype = DType::F32) {
  session::RunRequest request{
      .dims = rowsOf(rows, cols), .dtype = dtype, .isa = isa};
  request.machine = plannedMachine();
  return emit(*kernels::findOperator(op), std::move(request))["asm"];
}

bool contains(const std::string &code, const char *text) {
  return code.find(text) != std::string::npos;
}

// What is written would be read first, and push out what is read.
TEST(Stores, GoPastTheCachesWhereArraysDoNotFitThem) {
  for (Isa isa : {Isa::Avx512, Isa::Avx2})
    for (DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(name(dtype));
      std::string large = codeOf("softmax", 8192, 4096, isa, dtype);
      EXPECT_TRUE(contains(large, "vmovnt"));
      // Before another thread is told that the result is there.
      EXPECT_TRUE(contains(large, "sfence"));
      std::string small = codeOf("softmax", 512, 1024, isa, dtype);
      EXPECT_FALSE(contains(small, "vmovnt"));
      EXPECT_FALSE(contains(small, "sfence"));
    }
}

// Arrays that fill the last cache do not stay in it.
TEST(Stores, GoPastACacheThatArraysWouldFill) {
  const int64_t bytes = plannedMachine()->memory[2].bytes;
  const int64_t rows = bytes / (2 * 4096 * 4);
  ASSERT_EQ(rows * 2 * 4096 * 4, bytes);
  EXPECT_TRUE(contains(codeOf("softmax", rows, 4096, Isa::Avx512), "vmovnt"));
  EXPECT_FALSE(
      contains(codeOf("softmax", rows * 4 / 5, 4096, Isa::Avx512), "vmovnt"));
}

// Rows that are no whole number of vectors begin anywhere: a loop that began
// with them would have few aligned vectors.
TEST(Stores, BeginAtAnAlignedElementWhereRowsDoNot) {
  auto planOf = [](int64_t cols, Isa isa) {
    session::RunRequest request{.dims = rowsOf(8192, cols), .isa = isa};
    request.machine = plannedMachine();
    return emit(*kernels::findOperator("gelu_residual"), std::move(request))
        .plan;
  };
  for (Isa isa : {Isa::Avx512, Isa::Avx2}) {
    EXPECT_TRUE(contains(planOf(4097, isa), "around the caches, aligned"));
    EXPECT_FALSE(contains(planOf(4096, isa), "aligned"));
    EXPECT_TRUE(contains(planOf(4096, isa), "around the caches"));
  }
  EXPECT_FALSE(contains(planOf(17, Isa::Avx512), "aligned"));
}

// A sum is one element for a row, and a product's results are in tiles.
TEST(Stores, GoThroughTheCachesWhereTheyAreFewOrNoVectors) {
  session::RunRequest small{.dims = {{"m", 1}, {"n", 4096}, {"k", 4096}},
                            .isa = Isa::Avx512};
  small.machine = plannedMachine();
  small.threads = 16;
  EXPECT_FALSE(contains(
      emit(*kernels::findOperator("gemm"), std::move(small))["asm"], "vmovnt"));
  EXPECT_FALSE(contains(codeOf("row_sum", 8192, 4096, Isa::Avx512), "vmovnt"));
  session::RunRequest request{.dims = {{"m", 64}, {"n", 65536}, {"k", 64}},
                              .isa = Isa::Avx512};
  request.machine = plannedMachine();
  EXPECT_FALSE(
      contains(emit(*kernels::findOperator("gemm"), std::move(request))["asm"],
               "vmovnt"));
}

} // namespace
} // namespace tessera::structuretest
