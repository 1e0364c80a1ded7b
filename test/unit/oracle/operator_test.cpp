//===- test/unit/oracle/operator_test.cpp - Right and wrong kernels -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every oracle accepts a plain kernel under several summation orders, and
// rejects kernels with the mistakes that tile compilers are known for.
//
//===----------------------------------------------------------------------===//

#include "operator_cases.h"

#include <cmath>

namespace tessera::oracletest {
namespace {

using kernels::ValueClass;

constexpr std::string_view operators[] = {
    "add",           "row_sum",       "row_mean",
    "col_sum",       "softmax",       "masked_softmax",
    "rms_norm",      "layer_norm",    "residual_layer_norm",
    "add_rms_norm",  "gelu_residual", "gelu_pair",
    "sigmoid_pair",  "swiglu",        "rope",
    "cross_entropy", "cumsum",        "gemm",
    "bmm",           "attention",     "gemm_epilogue",
    "gemm_q4",       "conv2d",
};

template <typename T>
Counts check(std::string_view op, DType dtype, int64_t rows, int64_t cols,
             ValueClass valueClass, SumOrder order, Fault fault = Fault::None,
             int64_t partials = 1) {
  Call call(dtype, partials);
  makeArguments(call, op, rows, cols, valueClass);
  Outputs actual =
      runReference<T>(call, op, rows, cols, Reference<T>(order, fault));
  return judgeAll(call.expected(op), actual, dtype);
}

Counts checkAny(std::string_view op, DType dtype, int64_t rows, int64_t cols,
                ValueClass valueClass, SumOrder order,
                Fault fault = Fault::None, int64_t partials = 1) {
  if (dtype == DType::F64)
    return check<double>(op, dtype, rows, cols, valueClass, order, fault,
                         partials);
  return check<float>(op, dtype, rows, cols, valueClass, order, fault,
                      partials);
}

TEST(OperatorOracle, PlainKernelsPass) {
  for (std::string_view op : operators)
    for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
      for (int64_t cols : {1, 5, 17, 64, 65, 257})
        for (SumOrder order :
             {SumOrder::Left, SumOrder::Pairwise, SumOrder::Lanes}) {
          int64_t width = op == "rope" ? cols + cols % 2 : cols;
          int64_t rows = op == "attention" ? 2 : 4;
          Counts counts =
              checkAny(op, dtype, rows, width, ValueClass::Normal, order,
                       Fault::None, order == SumOrder::Lanes ? 64 : 1);
          EXPECT_EQ(counts.rejected, 0)
              << op << " " << name(dtype) << " cols " << width << " order "
              << static_cast<int>(order) << " " << counts.firstRejection;
          EXPECT_EQ(counts.undecided, 0)
              << op << " " << name(dtype) << " cols " << width;
        }
}

TEST(OperatorOracle, ThreadsChangeNothing) {
  std::unique_ptr<TaskPool> pool = makeTaskPool(3);
  for (std::string_view op : operators)
    for (ValueClass valueClass :
         {ValueClass::Normal, ValueClass::SprinkledNan}) {
      Call call(DType::F32);
      makeArguments(call, op, op == "attention" ? 2 : 50, 66, valueClass);
      oracle::OracleResult alone = call.expected(op);
      call.args.pool = pool.get();
      oracle::OracleResult together = call.expected(op);
      ASSERT_EQ(together.size(), alone.size()) << op;
      for (const auto &[name, output] : alone) {
        const std::vector<Bounded> &found = together.find(name)->second.values;
        ASSERT_EQ(found.size(), output.values.size()) << op << " " << name;
        for (size_t i = 0; i < found.size(); ++i) {
          const Bounded &expected = output.values[i];
          EXPECT_TRUE(
              found[i].value == expected.value ||
              (std::isnan(found[i].value) && std::isnan(expected.value)))
              << op << " " << name << "[" << i << "]";
          EXPECT_EQ(found[i].radius, expected.radius) << op << " " << name;
          EXPECT_EQ(found[i].outcomes, expected.outcomes) << op << " " << name;
        }
      }
    }
}

/// Two keys whose scores tie in exact arithmetic and differ in the roundings of
/// an execution: either may win, or both have a half.
TEST(OperatorOracle, AttentionAllowsWhatRoundingsDecide) {
  constexpr int64_t depth = 4097, keys = 7;
  for (DType dtype : {DType::F32, DType::F16}) {
    Call call(dtype);
    std::vector<double> k(keys * depth, 16376), v;
    k[2 * depth + 5] = k[6 * depth + 4000] = 16384;
    for (int64_t key = 0; key < keys; ++key)
      v.push_back(1000.0 + 100.0 * static_cast<double>(key));
    call.floats("q", {1, 1, 1, depth}, std::vector<double>(depth, 16376));
    call.floats("k", {1, 1, keys, depth}, k);
    call.floats("v", {1, 1, keys, 1}, v);
    oracle::OracleResult result = call.expected("attention");
    const Bounded &o = result.find("o")->second.values[0];
    EXPECT_FALSE(o.isUnknown()) << name(dtype);
    for (double found : {1200.0, 1600.0, 1400.0})
      EXPECT_LE(std::fabs(found - o.value), o.radius) << name(dtype);
  }
}

TEST(OperatorOracle, PlainKernelsPassOnOtherValues) {
  for (std::string_view op : operators)
    for (DType dtype : {DType::F32, DType::F64, DType::BF16})
      for (ValueClass valueClass :
           {ValueClass::HugeOffset, ValueClass::SignedZeros,
            ValueClass::Subnormal, ValueClass::SprinkledNan,
            ValueClass::LargeMagnitude}) {
        int64_t cols = op == "rope" ? 66 : 65;
        Counts counts = checkAny(op, dtype, 2, cols, valueClass,
                                 SumOrder::Lanes, Fault::None, 64);
        EXPECT_EQ(counts.rejected, 0)
            << op << " " << name(dtype) << " " << kernels::name(valueClass)
            << " " << counts.firstRejection;
        bool decidable = valueClass != ValueClass::LargeMagnitude &&
                         valueClass != ValueClass::HugeOffset;
        if (decidable) {
          EXPECT_EQ(counts.undecided, 0)
              << op << " " << name(dtype) << " " << kernels::name(valueClass);
        }
      }
}

TEST(OperatorOracle, OnlineSoftmaxSumsPass) {
  std::vector<double> x(257);
  Call call(DType::F32);
  call.generated("logits", {1, 257}, ValueClass::Normal);
  call.integers("target", DType::I64, {1}, {3});
  x = call.get("logits");
  // Rising values make each element a new maximum.
  std::sort(x.begin(), x.end());
  call.floats("logits", {1, 257}, x);
  Reference<float> kernel(SumOrder::Left);
  float maximum;
  float total =
      kernel.onlineSum(std::vector<float>(x.begin(), x.end()), maximum);
  Outputs actual{
      {"loss", {maximum + std::log(total) - static_cast<float>(x[3])}}};
  Counts counts = judgeAll(call.expected("cross_entropy"), actual, DType::F32);
  EXPECT_EQ(counts.rejected, 0) << counts.firstRejection;
}

struct WrongCase {
  std::string_view op;
  Fault fault;
  ValueClass valueClass = ValueClass::Normal;
  DType dtype = DType::F32;
};

constexpr WrongCase wrongCases[] = {
    {"row_sum", Fault::DropTail},
    {"row_mean", Fault::DropTail},
    {"softmax", Fault::DropTail},
    {"masked_softmax", Fault::DropTail},
    {"rms_norm", Fault::DropTail},
    {"layer_norm", Fault::DropTail},
    {"residual_layer_norm", Fault::DropTail},
    {"add_rms_norm", Fault::DropTail},
    {"cross_entropy", Fault::DropTail},
    {"cumsum", Fault::DropTail},
    {"gemm", Fault::DropTail},
    {"bmm", Fault::DropTail},
    {"gemm_epilogue", Fault::DropTail},
    {"gemm_q4", Fault::DropTail},
    {"conv2d", Fault::DropTail},
    {"attention", Fault::DropTail},
    {"row_sum", Fault::DropTail, ValueClass::Normal, DType::F64},
    {"row_sum", Fault::DropTail, ValueClass::Normal, DType::BF16},
    {"gemm", Fault::DropTail, ValueClass::Normal, DType::BF16},
    {"row_sum", Fault::Bf16Accumulation},
    {"row_sum", Fault::Bf16Accumulation, ValueClass::Normal, DType::BF16},
    {"row_mean", Fault::Bf16Accumulation},
    {"softmax", Fault::Bf16Accumulation},
    {"rms_norm", Fault::Bf16Accumulation},
    {"layer_norm", Fault::Bf16Accumulation},
    {"cross_entropy", Fault::Bf16Accumulation},
    {"cumsum", Fault::Bf16Accumulation},
    {"gemm", Fault::Bf16Accumulation},
    {"gemm", Fault::Bf16Accumulation, ValueClass::Normal, DType::BF16},
    {"attention", Fault::Bf16Accumulation},
    {"layer_norm", Fault::SquareDifference, ValueClass::HugeOffset},
    {"residual_layer_norm", Fault::SquareDifference, ValueClass::HugeOffset},
    {"layer_norm", Fault::SquareDifference, ValueClass::HugeOffset, DType::F64},
    {"layer_norm", Fault::UncorrectedMean, ValueClass::HugeOffset},
    {"softmax", Fault::InaccurateExp},
    {"masked_softmax", Fault::InaccurateExp},
    {"gelu_residual", Fault::InaccurateTanh},
    {"gelu_pair", Fault::InaccurateTanh},
    {"sigmoid_pair", Fault::InaccurateTanh},
    {"swiglu", Fault::InaccurateTanh},
};

TEST(OperatorOracle, WrongKernelsFail) {
  for (const WrongCase &wrong : wrongCases)
    for (int64_t cols : {17, 65, 257, 1025}) {
      Counts counts = checkAny(wrong.op, wrong.dtype, 4, cols, wrong.valueClass,
                               SumOrder::Lanes, wrong.fault,
                               /*partials=*/64);
      EXPECT_GT(counts.rejected, 0)
          << wrong.op << " " << name(wrong.dtype) << " cols " << cols
          << " fault " << static_cast<int>(wrong.fault) << " undecided "
          << counts.undecided;
    }
}

} // namespace
} // namespace tessera::oracletest
