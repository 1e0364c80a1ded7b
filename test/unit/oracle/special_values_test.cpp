//===- test/unit/oracle/special_values_test.cpp - Edges of the oracles ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What docs/semantics.md says of empty extents, NaN, infinities, masks, ties
// and indices out of range.
//
//===----------------------------------------------------------------------===//

#include "reference_kernels.h"

namespace tessera::oracletest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Each value must be decided and must accept exactly `wanted`.
void expectValues(const oracle::OracleResult &result, std::string_view output,
                  const std::vector<double> &wanted) {
  auto found = result.find(output);
  ASSERT_NE(found, result.end()) << output;
  const oracle::OracleOutput &values = found->second;
  ASSERT_EQ(values.values.size(), wanted.size()) << output;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(bounded::judge(values.values[i], wanted[i], values.dtype),
              bounded::Verdict::Accept)
        << output << "[" << i << "] is "
        << static_cast<double>(values.values[i].value) << " within "
        << static_cast<double>(values.values[i].radius) << ", wanted "
        << wanted[i];
}

oracle::OracleResult runX(std::string_view op, std::vector<int64_t> extents,
                          const std::vector<double> &x,
                          DType dtype = DType::F32) {
  Call call(dtype);
  call.floats("x", std::move(extents), x);
  return call.expected(op);
}

TEST(OracleEdges, EmptyReductionsGiveTheIdentity) {
  expectValues(runX("row_sum", {2, 0}, {}), "y", {0, 0});
  expectValues(runX("row_max", {2, 0}, {}), "y", {-inf, -inf});
  expectValues(runX("row_mean", {2, 0}, {}), "y", {nan, nan});
  expectValues(runX("col_sum", {0, 2}, {}), "y", {0, 0});
  EXPECT_EQ(runX("arg_max", {2, 0}, {})["index"].integers,
            (std::vector<int64_t>{-1, -1}));
  expectValues(runX("row_sum", {0, 3}, {}), "y", {});
  expectValues(runX("softmax", {2, 0}, {}), "y", {});
  expectValues(runX("cumsum", {0, 4}, {}), "y", {});
}

TEST(OracleEdges, SortsAreStableAndNanIsLargest) {
  Call call(DType::F32);
  call.floats("x", {1, 6}, {2, nan, 0.0, 2, -0.0, inf});
  oracle::OracleResult rising = call.expected("sort");
  expectValues(rising, "values", {0, 0, 2, 2, inf, nan});
  EXPECT_EQ(rising["indices"].integers,
            (std::vector<int64_t>{2, 4, 0, 3, 5, 1}));
  call.args.scalars["descending"] = 1;
  EXPECT_EQ(call.expected("sort")["indices"].integers,
            (std::vector<int64_t>{1, 5, 0, 3, 2, 4}));
  call.args.dims["k"] = 2;
  EXPECT_EQ(call.expected("top_k")["indices"].integers,
            (std::vector<int64_t>{1, 5}));
  call.args.scalars["largest"] = 0;
  call.args.dims["k"] = 8;
  oracle::OracleResult least = call.expected("top_k");
  expectValues(least, "values", {0, 0, 2, 2, inf, nan, 0, 0});
  EXPECT_EQ(least["indices"].integers,
            (std::vector<int64_t>{2, 4, 0, 3, 5, 1, -1, -1}));
}

TEST(OracleEdges, BytesAreMultipliedExactly) {
  Call call(DType::F32);
  call.integers("a", DType::I8, {1, 3}, {-128, 127, 1});
  call.integers("b", DType::I8, {3, 2}, {-128, 2, 127, 0, 3, -5});
  call.floats("scale_a", {1}, {0.5});
  call.floats("scale_b", {2}, {2, 4});
  expectValues(call.expected("gemm_q8"), "c",
               {16384 + 16129 + 3, 2 * (-256.0 - 5)});
}

TEST(OracleEdges, LowNibblesComeFirst) {
  Call call(DType::F32);
  call.floats("a", {1, 2}, {1, 100});
  call.integers("b", DType::U8, {1, 1}, {0x5a});
  call.floats("scales", {1, 1}, {2});
  call.floats("zeros", {1, 1}, {8});
  expectValues(call.expected("gemm_q4"), "c", {2.0 * (10 - 8) - 600});
}

TEST(OracleEdges, PaddingCounts) {
  Call call(DType::F32);
  call.floats("x", {1, 1, 1, 2}, {1, 2});
  call.floats("w", {1, 1, 1, 2}, {inf, 3});
  call.args.scalars["pad"] = 1;
  expectValues(call.expected("conv2d"), "y",
               {nan, nan, nan, nan, inf, inf, nan, nan, nan});
}

TEST(OracleEdges, EmptyNormsAndContractions) {
  Call norm(DType::F32);
  norm.floats("x", {3, 0}, {});
  norm.floats("w", {0}, {});
  norm.floats("b", {0}, {});
  expectValues(norm.expected("layer_norm"), "y", {});
  expectValues(norm.expected("rms_norm"), "y", {});
  Call product(DType::F32);
  product.floats("a", {2, 0}, {});
  product.floats("b", {0, 2}, {});
  expectValues(product.expected("gemm"), "c", {0, 0, 0, 0});
  product.floats("c0", {2, 2}, {1, 2, 3, 4});
  product.args.scalars["beta"] = 2;
  expectValues(product.expected("gemm"), "c", {2, 4, 6, 8});
}

TEST(OracleEdges, ReductionsMeetNanAndInfinity) {
  std::vector<double> x = {1, nan, 3, inf, -inf, 0, inf, 1, 2};
  expectValues(runX("row_sum", {3, 3}, x), "y", {nan, nan, inf});
  expectValues(runX("row_max", {3, 3}, x), "y", {nan, inf, inf});
  expectValues(runX("row_mean", {3, 3}, x), "y", {nan, nan, inf});
  expectValues(runX("cumsum", {1, 4}, {1, inf, 2, -inf}), "y",
               {1, inf, inf, nan});
  expectValues(runX("row_max", {1, 2}, {-inf, -inf}), "y", {-inf});
}

TEST(OracleEdges, ArgMaxHasATotalOrder) {
  EXPECT_EQ(runX("arg_max", {4, 4},
                 {1, 3, 3, 2,        //
                  inf, nan, nan, 1,  //
                  -0.0, 0, -0.0, -1, //
                  -inf, -inf, -inf, -inf})["index"]
                .integers,
            (std::vector<int64_t>{1, 1, 0, 0}));
}

TEST(OracleEdges, SoftmaxRows) {
  expectValues(runX("softmax", {3, 2}, {-inf, -inf, nan, 1, inf, 1}), "y",
               {nan, nan, nan, nan, nan, nan});
  expectValues(runX("softmax", {2, 2}, {-inf, 5, 3, 3}), "y", {0, 1, 0.5, 0.5});
  // Differences beyond the exponential's range are zeros, not NaN.
  expectValues(runX("softmax", {1, 2}, {3e38, -3e38}, DType::F64), "y", {1, 0});
}

TEST(OracleEdges, MaskedSoftmaxRows) {
  Call call(DType::F32);
  call.floats("x", {3, 3}, {1, nan, 2, 5, 5, nan, -inf, -inf, 1});
  call.integers("mask", DType::Bool, {3, 3}, {0, 0, 0, 1, 1, 0, 1, 1, 0});
  expectValues(call.expected("masked_softmax"), "y",
               {0, 0, 0, 0.5, 0.5, 0, nan, nan, 0});
}

TEST(OracleEdges, CrossEntropyTargets) {
  Call call(DType::F32);
  call.floats("logits", {5, 2}, {0, 0, 0, 0, 0, 0, -inf, -inf, nan, nan});
  call.integers("target", DType::I64, {5}, {1, -100, 2, 0, -100});
  expectValues(call.expected("cross_entropy"), "loss",
               {static_cast<double>(std::log(2.0f)), 0, nan, nan, 0});
  call.floats("logits", {5, 2}, {-inf, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  call.integers("target", DType::I64, {5}, {0, -1, 7, 7, 7});
  call.args.scalars["ignore_index"] = 7;
  expectValues(call.expected("cross_entropy"), "loss", {inf, nan, 0, 0, 0});
}

TEST(OracleEdges, NormsMeetNanAndConstants) {
  Call call(DType::F32);
  call.floats("x", {3, 2}, {nan, 1, inf, 1, 7, 7});
  call.floats("w", {2}, {2, 2});
  call.floats("b", {2}, {0.5, 0.25});
  expectValues(call.expected("layer_norm"), "y",
               {nan, nan, nan, nan, 0.5, 0.25});
  expectValues(call.expected("rms_norm"), "y", {nan, nan, nan, 0, 2, 2});
}

TEST(OracleEdges, ActivationsAtInfinity) {
  Call call(DType::F32);
  call.floats("x", {1, 4}, {inf, -inf, nan, -0.0});
  call.floats("r", {1, 4}, {0, 0, 0, 1});
  expectValues(call.expected("gelu_residual"), "y", {inf, nan, nan, 1});
  expectValues(call.expected("sigmoid_pair"), "y", {1, 0, nan, 0.5});
  expectValues(call.expected("sigmoid_pair"), "dy", {0, 0, nan, 0.25});
}

TEST(OracleEdges, RopePairings) {
  Call call(DType::F32);
  call.floats("x", {1, 4}, {1, 2, 3, 4});
  call.floats("cos", {1, 2}, {0, 1});
  call.floats("sin", {1, 2}, {1, 0});
  expectValues(call.expected("rope"), "y", {-3, 2, 1, 4});
  call.args.scalars["interleaved"] = 1;
  expectValues(call.expected("rope"), "y", {-2, 1, 3, 4});
  call.floats("x", {1, 3}, {1, 2, 3});
  EXPECT_FALSE(oracle::findOracle("rope")(call.args).ok());
}

TEST(OracleEdges, EmbeddingOutOfRangeReadsTheFill) {
  Call call(DType::BF16);
  call.floats("table", {2, 2}, {1, 2, nan, -inf});
  call.integers("ids", DType::I64, {4}, {1, 0, 2, -1});
  expectValues(call.expected("embedding"), "y", {nan, -inf, 1, 2, 0, 0, 0, 0});
}

TEST(OracleEdges, MovementIsExactAndSeesStrides) {
  Call call(DType::F16);
  TensorRef &x = call.floats("x", {2, 3}, {1, 2, 3, 4, 5, 0x1p-24});
  expectValues(call.expected("copy"), "y", {1, 2, 3, 4, 5, 0x1p-24});
  expectValues(call.expected("transpose"), "y", {1, 4, 2, 5, 3, 0x1p-24});
  // A reversed and a broadcast axis.
  x.data = static_cast<char *>(x.data) + 4;
  x.strides = {0, -1};
  expectValues(call.expected("copy"), "y", {3, 2, 1, 3, 2, 1});
}

TEST(OracleEdges, GemmTransposesAndPropagates) {
  Call call(DType::F32);
  call.floats("a", {2, 1}, {1, 2});
  call.floats("b", {1, 2}, {3, 4});
  expectValues(call.expected("gemm"), "c", {3, 4, 6, 8});
  call.args.scalars["trans_a"] = 1;
  call.args.scalars["trans_b"] = 1;
  expectValues(call.expected("gemm"), "c", {11});
  call.floats("a", {2, 1}, {0, 2});
  call.floats("b", {1, 2}, {inf, 4});
  expectValues(call.expected("gemm"), "c", {nan});
}

TEST(OracleEdges, AttentionMasksAndLengths) {
  Call call(DType::F32);
  // One batch, one head, three queries, two of three keys in the sequence.
  call.floats("q", {1, 1, 3, 1}, {0, 0, 0});
  call.floats("k", {1, 1, 3, 1}, {1, 1, nan});
  call.floats("v", {1, 1, 3, 1}, {2, 4, inf});
  call.integers("lengths", DType::I32, {1}, {2});
  call.args.scalars["causal"] = 1;
  double log2 = static_cast<double>(std::log(2.0f));
  oracle::OracleResult result = call.expected("attention");
  expectValues(result, "o", {0, 2, 3});
  expectValues(result, "lse", {-inf, 0, log2});
  call.integers("mask", DType::Bool, {1, 1, 3, 3}, {1, 1, 1, 0, 1, 1, 0, 1, 1});
  expectValues(call.expected("attention"), "o", {0, 0, 4});
  call.args.scalars["causal"] = 0;
  expectValues(call.expected("attention"), "o", {3, 4, 4});
}

TEST(OracleEdges, EachInputIsChecked) {
  Call call(DType::F32);
  Result<oracle::OracleResult> missing = oracle::findOracle("add")(call.args);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().family, ErrorFamily::Launch);
  call.floats("a", {1, 2}, {1, 2});
  call.floats("b", {2, 1}, {1, 2});
  EXPECT_FALSE(oracle::findOracle("add")(call.args).ok());
  call.integers("b", DType::I32, {1, 2}, {1, 2});
  EXPECT_FALSE(oracle::findOracle("add")(call.args).ok());
  call.floats("b", {2}, {1, 2});
  EXPECT_FALSE(oracle::findOracle("add")(call.args).ok());
  EXPECT_EQ(oracle::findOracle("no_such_operator"), nullptr);
  for (std::string_view name : oracle::oracleNames())
    EXPECT_NE(oracle::findOracle(name), nullptr);
}

/// Which of NaN, the infinities, zero and `number` an element accepts.
std::string accepted(const Bounded &value, double number, DType type) {
  std::string text;
  for (auto [actual, name] : {std::pair{nan, "nan "},
                              {-inf, "-inf "},
                              {inf, "inf "},
                              {0.0, "0 "},
                              {number, "number "}})
    if (bounded::accepts(value, actual, type))
      text += name;
  return text;
}

TEST(OracleEdges, OverflowHasKnownOutcomes) {
  for (DType type : {DType::F32, DType::BF16}) {
    double big = 0x1.fp127;
    auto sum = [&](std::vector<double> x, double number) {
      auto n = static_cast<int64_t>(x.size());
      return accepted(runX("row_sum", {1, n}, x, type)["y"].values[0], number,
                      type);
    };
    EXPECT_EQ(sum({big, big, -big}, big), "inf number ");
    EXPECT_EQ(sum({big, big, -big}, big / 2), "inf ");
    EXPECT_EQ(sum({-big, -big, big}, -big), "-inf number ");
    EXPECT_EQ(sum({big, -big, big, -big}, big), "nan -inf inf 0 ");
    EXPECT_EQ(sum({big, big}, big), "inf ");
  }
  // f16 sums are f32: only the store overflows.
  oracle::OracleResult half =
      runX("row_sum", {1, 3}, {60000, 60000, -60000}, DType::F16);
  EXPECT_EQ(accepted(half["y"].values[0], 60000, DType::F16), "number ");
  half = runX("row_sum", {1, 2}, {60000, 60000}, DType::F16);
  EXPECT_EQ(accepted(half["y"].values[0], 65504, DType::F16), "inf ");
}

TEST(OracleEdges, HugeLogitsAndSquares) {
  expectValues(runX("softmax", {1, 3}, {3e38, -3e38, 3e38}), "y",
               {0.5, 0, 0.5});
  EXPECT_EQ(accepted(runX("softmax", {1, 2}, {3e38, -3e38})["y"].values[1],
                     1e-30, DType::F32),
            "0 ");
  // The squares overflow: 1 / infinity is 0, and no number is right.
  Call norm(DType::F32);
  norm.floats("x", {1, 2}, {3e38, 1});
  norm.floats("w", {2}, {1, 1});
  oracle::OracleResult rms = norm.expected("rms_norm");
  EXPECT_EQ(accepted(rms["y"].values[0], 1.4142135, DType::F32), "0 ");
  // One square does not overflow, their sum may or must.
  norm.floats("x", {1, 2}, {1.8e19, 1.8e19});
  rms = norm.expected("rms_norm");
  EXPECT_EQ(accepted(rms["y"].values[0], 1, DType::F32), "0 ");
  norm.floats("b", {2}, {7, 7});
  norm.floats("x", {1, 2}, {3e38, -3e38});
  oracle::OracleResult layer = norm.expected("layer_norm");
  EXPECT_TRUE(bounded::accepts(layer["y"].values[0], 7, DType::F32));
  EXPECT_FALSE(bounded::accepts(layer["y"].values[0], 8, DType::F32));
  EXPECT_FALSE(bounded::accepts(layer["y"].values[0], -inf, DType::F32));
}

TEST(OracleEdges, OverflowOfOneGroupingIsNoted) {
  oracle::OracleResult result = runX("row_sum", {1, 3}, {3e38, 3e38, -3e38});
  EXPECT_TRUE(result["y"].values[0].leftRange);
  result = runX("row_sum", {1, 3}, {3e38, 3e38, -3e38}, DType::F64);
  EXPECT_FALSE(result["y"].values[0].leftRange);
}

} // namespace
} // namespace tessera::oracletest
