//===- test/unit/run/options_test.cpp - What operators can be told --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constants, scalars and optional arrays of the operators that have any, and
// the tiers, on every machine.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "kernels/elements.h"
#include "plan/plan_record.h"
#include "tessera/npy.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::RunRequest;

/// Values beside normal ones that any form of an operator must bear.
const std::vector<ValueClass> fewClasses = {ValueClass::Normal,
                                            ValueClass::SprinkledNan};

class Options : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }

  RunRequest request(std::string_view name, Dims dims,
                     DType dtype = DType::F32) const {
    return requestFor({kernels::findOperator(name), GetParam()},
                      std::move(dims), dtype);
  }

  bool run(std::string_view name, const RunRequest &request,
           std::vector<ValueClass> classes = fewClasses) const {
    return check(*kernels::findOperator(name), {request, std::move(classes)},
                 GetParam());
  }

  int64_t lanes() const { return GetParam().lanes(); }
};

/// An array of integers with the given elements.
Array integers(DType dtype, std::vector<int64_t> extents,
               const std::vector<int64_t> &values) {
  Result<Array> array = Array::allocate(dtype, std::move(extents));
  if (!array) {
    ADD_FAILURE() << array.error().str();
    std::abort();
  }
  kernels::forEachElement(array->view(), [&](void *address, int64_t linear) {
    kernels::storeIntegerElement(dtype, address,
                                 values[static_cast<size_t>(linear)]);
  });
  return std::move(*array);
}

//===----------------------------------------------------------------------===//
// Rope, norms
//===----------------------------------------------------------------------===//

TEST_P(Options, RopeInPairsSideBySide) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::F16})
    for (int64_t cols : {int64_t{0}, int64_t{2}, 2 * lanes() - 2, 2 * lanes(),
                         2 * lanes() + 2, int64_t{66}}) {
      RunRequest rope = request("rope", {{"rows", 3}, {"cols", cols}}, dtype);
      rope.settings["interleaved"] = true;
      run("rope", rope, acceptanceClasses());
    }
}

TEST_P(Options, EpsilonOfNorms) {
  for (const char *name :
       {"rms_norm", "layer_norm", "residual_layer_norm", "add_rms_norm"})
    for (double eps : {0.0, 1e-12, 0.5, 1e30}) {
      RunRequest norm = request(name, {{"rows", 3}, {"cols", 65}});
      norm.settings["eps"] = eps;
      run(name, norm,
          {ValueClass::Normal, ValueClass::Subnormal, ValueClass::SignedZeros});
    }
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

TEST_P(Options, GemmForms) {
  const std::vector<Dims> extents = {{{"m", 5}, {"n", 17}, {"k", 7}},
                                     {{"m", 33}, {"n", 65}, {"k", 19}},
                                     {{"m", 3}, {"n", 5}, {"k", 0}},
                                     {{"m", 1}, {"n", 1}, {"k", 1}},
                                     {{"m", 0}, {"n", 4}, {"k", 3}}};
  for (const Dims &dims : extents)
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (DType dtype : {DType::F32, DType::BF16}) {
          // The large ones in one type each.
          if (dims.at("m") > 5 && (dtype == DType::F32) != (transA == transB))
            continue;
          RunRequest gemm = request("gemm", dims, dtype);
          gemm.settings["trans_a"] = transA;
          gemm.settings["trans_b"] = transB;
          run("gemm", gemm);
        }
}

TEST_P(Options, GemmOntoAnother) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64})
    for (double beta : {1.0, 0.0, -0.5})
      for (bool transB : {false, true}) {
        RunRequest gemm =
            request("gemm", {{"m", 5}, {"n", 19}, {"k", 9}}, dtype);
        gemm.present = {"c0"};
        gemm.settings["beta"] = beta;
        gemm.settings["trans_b"] = transB;
        run("gemm", gemm);
      }
}

TEST_P(Options, GemmOntoItself) {
  RunRequest gemm = request("gemm", {{"m", 35}, {"n", 67}, {"k", 9}});
  gemm.present = {"c0"};
  gemm.inPlace = {{"c", "c0"}};
  run("gemm", gemm);
}

TEST_P(Options, EpiloguesOfGemm) {
  for (int64_t activation = 0; activation < 4; ++activation)
    for (int form = 0; form < 4; ++form)
      for (DType dtype : {DType::F32, DType::BF16}) {
        RunRequest gemm = request(
            "gemm_epilogue", {{"m", 5}, {"n", lanes() + 3}, {"k", 9}}, dtype);
        gemm.settings["activation"] = activation;
        if (form & 1)
          gemm.present.push_back("bias");
        if (form & 2)
          gemm.present.push_back("residual");
        if (form == 3)
          gemm.settings["scale"] = 0.375;
        run("gemm_epilogue", gemm,
            {ValueClass::Normal, ValueClass::SprinkledNan,
             ValueClass::SprinkledInfinity, ValueClass::NegativeInfinity});
      }
}

TEST_P(Options, SumsOfBytesWrap) {
  // 2^17 products of -128 and -128 are 2^31.
  const int64_t k = int64_t(1) << 17;
  if (GetParam().backend == session::Backend::Interpreter)
    GTEST_SKIP() << "takes long";
  std::vector<int64_t> least(static_cast<size_t>(k), -128);
  Array a = integers(DType::I8, {1, k}, least);
  Array b = integers(DType::I8, {k, 1}, least);
  RunRequest gemm = request("gemm_q8", {});
  gemm.inputs.emplace("a", a.view());
  gemm.inputs.emplace("b", b.view());
  run("gemm_q8", gemm, {ValueClass::Normal});
}

TEST_P(Options, GroupsOfGemmQ4) {
  for (int64_t group : {2, 6, 32})
    for (int64_t groups : {0, 1, 3})
      for (DType dtype : {DType::F32, DType::F16})
        run("gemm_q4", request("gemm_q4",
                               {{"m", 3},
                                {"n", lanes() + 5},
                                {"k", group * groups},
                                {"group", group}},
                               dtype));
}

TEST_P(Options, BmmForms) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (DType dtype : {DType::F32, DType::F16}) {
        RunRequest bmm = request(
            "bmm", {{"batch", 2}, {"m", 5}, {"n", 18}, {"k", 7}}, dtype);
        bmm.settings["trans_a"] = transA;
        bmm.settings["trans_b"] = transB;
        run("bmm", bmm);
      }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

TEST_P(Options, SortForms) {
  for (bool descending : {false, true})
    for (int64_t cols : {int64_t{2}, lanes() + 1, int64_t{63}, int64_t{64},
                         int64_t{65}, int64_t{127}, int64_t{200}, int64_t{257},
                         int64_t{1027}, int64_t{2600}})
      for (DType dtype : {DType::F32, DType::F64}) {
        RunRequest sorted =
            request("sort", {{"rows", 3}, {"cols", cols}}, dtype);
        sorted.settings["descending"] = descending;
        run("sort", sorted,
            {ValueClass::Normal, ValueClass::SprinkledNan,
             ValueClass::SprinkledInfinity, ValueClass::SignedZeros,
             ValueClass::Integers});
      }
}

TEST_P(Options, TopKForms) {
  for (bool largest : {false, true})
    for (int64_t k : {0, 1, 2, 16, 63})
      for (int64_t cols :
           {int64_t{1}, int64_t{40}, int64_t{257}, int64_t{2049}})
        for (DType dtype : {DType::F32, DType::F64}) {
          RunRequest best =
              request("top_k", {{"rows", 2}, {"cols", cols}, {"k", k}}, dtype);
          best.settings["largest"] = largest;
          run("top_k", best,
              {ValueClass::Normal, ValueClass::SprinkledNan,
               ValueClass::SprinkledInfinity, ValueClass::SignedZeros,
               ValueClass::Integers});
        }
}

// Each element replaces one of the best, or none does.
TEST_P(Options, TopKOfSortedRows) {
  for (bool rising : {false, true})
    for (bool largest : {false, true}) {
      constexpr int64_t cols = 3001;
      Result<Array> x = Array::allocate(DType::F32, {2, cols});
      ASSERT_TRUE(x);
      kernels::forEachElement(x->view(), [&](void *address, int64_t linear) {
        double number = static_cast<double>(linear % cols) - 1500;
        kernels::storeFloatElement(DType::F32, address,
                                   rising ? number : -number);
      });
      RunRequest best = request("top_k", {{"k", 17}});
      best.dims = {{"rows", 2}, {"cols", cols}, {"k", 17}};
      best.inputs.emplace("x", x->view());
      best.settings["largest"] = largest;
      run("top_k", best, {ValueClass::Normal});
    }
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

TEST_P(Options, ConvolutionForms) {
  for (const char *name : {"conv2d", "depthwise_conv2d"})
    for (int64_t stride : {1, 2, 3})
      for (int64_t pad : {0, 1, 4})
        for (int64_t dilation : {1, 2}) {
          bool isDepthwise = name != std::string("conv2d");
          if (isDepthwise && dilation > 1)
            continue;
          Dims dims{{"n", 2},           {"c", 3},  {"h", 5},
                    {"w", lanes() + 4}, {"kh", 3}, {"kw", 2}};
          if (!isDepthwise)
            dims["f"] = 5;
          RunRequest conv =
              request(name, dims, stride == 2 ? DType::BF16 : DType::F32);
          conv.settings["stride"] = stride;
          conv.settings["pad"] = pad;
          if (!isDepthwise)
            conv.settings["dilation"] = dilation;
          if (pad > 0)
            conv.present = {"bias"};
          run(name, conv,
              {ValueClass::Normal, ValueClass::SprinkledNan,
               ValueClass::SprinkledInfinity});
        }
}

TEST_P(Options, PoolForms) {
  for (int64_t window : {1, 2, 3})
    for (int64_t stride : {1, 2})
      for (int64_t pad : {0, 1, 3}) {
        RunRequest pool = request(
            "max_pool2d", {{"n", 2}, {"c", 2}, {"h", 5}, {"w", lanes() + 4}},
            stride == 2 ? DType::F16 : DType::F32);
        pool.settings["window"] = window;
        pool.settings["stride"] = stride;
        pool.settings["pad"] = pad;
        run("max_pool2d", pool);
      }
}

TEST_P(Options, ConstantsOutOfRangeAreRefused) {
  RunRequest conv = request("conv2d", {});
  conv.settings["stride"] = int64_t(0);
  auto compiled =
      session::CompiledOperator::create(*kernels::findOperator("conv2d"), conv);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, "usage.set") << compiled.error().str();
  RunRequest gemm = request("gemm_epilogue", {});
  gemm.settings["activation"] = int64_t(4);
  compiled = session::CompiledOperator::create(
      *kernels::findOperator("gemm_epilogue"), gemm);
  ASSERT_FALSE(compiled.ok());
  EXPECT_NE(compiled.error().message.find("none, relu, gelu, silu"),
            std::string::npos)
      << compiled.error().str();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

const Dims attentionDims = {{"b", 2},  {"hq", 4}, {"hkv", 2}, {"q", 5},
                            {"k", 19}, {"d", 9},  {"dv", 7}};

TEST_P(Options, AttentionForms) {
  for (int form = 0; form < 32; ++form) {
    // Half of the forms in each type, both for every option.
    const bool isOdd = std::popcount(static_cast<unsigned>(form)) % 2 != 0;
    if (GetParam().backend == session::Backend::Cpu &&
        addsNarrowProducts(GetParam().isa) && isOdd)
      continue; // The code of avx512.
    RunRequest attention =
        request("attention", attentionDims, isOdd ? DType::F32 : DType::BF16);
    attention.settings["causal"] = (form & 1) != 0;
    if (form & 2)
      attention.present.push_back("mask");
    if (form & 4)
      attention.present.push_back("lengths");
    if (form & 8)
      attention.present.push_back("lse");
    if (form & 16)
      attention.settings["scale"] = 0.75;
    run("attention", attention);
  }
}

TEST_P(Options, AttentionMasksBroadcast) {
  constexpr size_t queries = 5, keys = 19;
  std::vector<int64_t> visible(queries * keys);
  for (size_t i = 0; i < visible.size(); ++i)
    visible[i] = i % 3 != 0;
  // A query that sees nothing.
  std::fill_n(visible.begin() + static_cast<ptrdiff_t>(2 * keys), keys, 0);
  Array mask = integers(DType::Bool, {1, 1, 5, 19}, visible);
  RunRequest attention = request("attention", attentionDims);
  attention.inputs.emplace("mask", mask.view());
  attention.present = {"lse"};
  run("attention", attention, acceptanceClasses());
}

TEST_P(Options, AttentionNeverReadsBeyondALength) {
  // What lies beyond is NaN in one of the runs: a product with it would show.
  Array lengths = integers(DType::I32, {2}, {0, 7});
  for (bool causal : {false, true}) {
    RunRequest attention = request("attention", attentionDims);
    attention.inputs.emplace("lengths", lengths.view());
    attention.settings["causal"] = causal;
    attention.present = {"lse"};
    run("attention", attention, acceptanceClasses());
  }
}

TEST_P(Options, AttentionIgnoresLengthsOutOfRange) {
  Array lengths = integers(DType::I32, {2}, {-3, 1000});
  RunRequest attention = request("attention", attentionDims);
  attention.inputs.emplace("lengths", lengths.view());
  run("attention", attention);
}

TEST_P(Options, CausalAttentionWithMoreQueriesThanKeys) {
  Dims dims = attentionDims;
  dims["q"] = 9;
  dims["k"] = 4;
  RunRequest attention = request("attention", dims);
  attention.settings["causal"] = true;
  attention.present = {"lse"};
  run("attention", attention, acceptanceClasses());
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// Expects a Launch error and outputs that hold the bytes they held before.
void expectNothingWritten(std::string_view name, const RunRequest &request,
                          std::string_view output) {
  auto compiled =
      session::CompiledOperator::create(*kernels::findOperator(name), request);
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  auto result = compiled->run(onMachine({}, request));
  ASSERT_FALSE(result.ok()) << name << ": an index out of range was accepted";
  EXPECT_EQ(result.error().family, ErrorFamily::Launch) << result.error().str();
  for (unsigned char byte : bytesOf(*compiled->array(output)))
    ASSERT_EQ(byte, 0xff) << name << " wrote something";
}

TEST_P(Options, EmbeddingChecksIds) {
  // Rows before the wrong one must not be written either; nor in programs that
  // other threads run.
  for (int64_t wrong :
       {int64_t{-1}, int64_t{11}, std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min()})
    for (int64_t tokens : {1, 40, 4000}) {
      std::vector<int64_t> values(static_cast<size_t>(tokens));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<int64_t>(i * 7 % 11);
      values[values.size() * 2 / 3] = wrong;
      Array ids = integers(DType::I64, {tokens}, values);
      RunRequest embedding =
          request("embedding", {{"vocab", 11}, {"cols", 33}});
      embedding.inputs.emplace("ids", ids.view());
      expectNothingWritten("embedding", embedding, "y");
      // Unchecked, such an id reads zeros.
      embedding.validate = false;
      if (GetParam().backend == session::Backend::Cpu || tokens < 4000)
        run("embedding", embedding, {ValueClass::Normal});
    }
}

TEST_P(Options, CrossEntropyChecksTargets) {
  for (int64_t wrong : {int64_t{-1}, int64_t{-99}, int64_t{65},
                        std::numeric_limits<int64_t>::min()})
    for (DType dtype : {DType::F32, DType::BF16}) {
      Array target = integers(DType::I64, {5}, {0, 64, -100, wrong, 3});
      RunRequest loss = request("cross_entropy", {{"cols", 65}}, dtype);
      loss.inputs.emplace("target", target.view());
      expectNothingWritten("cross_entropy", loss, "loss");
      // Unchecked, the loss of such a row is NaN.
      loss.validate = false;
      run("cross_entropy", loss, {ValueClass::Normal});
    }
}

TEST_P(Options, CrossEntropyIgnoresOneTarget) {
  for (int64_t ignored : {int64_t{-100}, int64_t{3}, int64_t{-1}})
    for (bool validate : {false, true}) {
      Array target = integers(DType::I64, {4}, {0, ignored, 64, ignored});
      RunRequest loss = request("cross_entropy", {{"cols", 65}});
      loss.inputs.emplace("target", target.view());
      if (ignored != -100)
        loss.settings["ignore_index"] = ignored;
      loss.validate = validate;
      run("cross_entropy", loss, acceptanceClasses());
    }
}

//===----------------------------------------------------------------------===//
// Tiers and types
//===----------------------------------------------------------------------===//

TEST_P(Options, TiersOfEveryOperator) {
  for (const kernels::Operator &op : kernels::operators())
    for (Tier tier : {Tier::Strict, Tier::Fast})
      for (DType dtype : {DType::F32, DType::BF16}) {
        Dims dims = smallDims(op);
        dims.find(longDim(op))->second = 2 * lanes() + 4;
        RunRequest tiered = request(op.name, admissible(op, dims), dtype);
        tiered.tier = tier;
        run(op.name, tiered, acceptanceClasses());
      }
}

TEST_P(Options, EveryTypeOfEveryOperator) {
  for (const kernels::Operator &op : kernels::operators())
    for (DType dtype : op.dtypes) {
      Dims dims = smallDims(op);
      dims.find(longDim(op))->second = lanes() + 6;
      run(op.name, request(op.name, admissible(op, dims), dtype),
          {ValueClass::Normal, ValueClass::SprinkledInfinity});
    }
}

// The variance is a difference of rounding errors, which may come out negative.
TEST_P(Options, EqualElementsFarFromZero) {
  const bool isInterpreter =
      GetParam().backend == session::Backend::Interpreter;
  for (int64_t cols : {int64_t{65}, int64_t{4097}, int64_t{100003}})
    for (float element : {497664.0f, -1.2345678e7f, 3.3e15f}) {
      if (isInterpreter && cols > 4097)
        continue;
      Result<Array> x = Array::allocate(DType::F32, {2, cols});
      ASSERT_TRUE(x);
      kernels::forEachElement(x->view(), [&](void *address, int64_t) {
        kernels::storeFloatElement(DType::F32, address, element);
      });
      RunRequest wanted = request("layer_norm", {{"rows", 2}, {"cols", cols}});
      wanted.inputs.emplace("x", x->view());
      Result<session::CompiledOperator> compiled =
          session::CompiledOperator::create(
              *kernels::findOperator("layer_norm"), wanted);
      ASSERT_TRUE(compiled) << compiled.error().str();
      Result<session::RunResult> result = compiled->run(onMachine({}, wanted));
      ASSERT_TRUE(result) << result.error().str();
      EXPECT_TRUE(result->passed())
          << cols << " " << element << " " << result->failures();
      // The oracle decides, unless the mean's own error is past all bounds.
      if (!isInterpreter && std::abs(element) < 1e9f)
        EXPECT_EQ(result->outputs[0].comparedWithInterpreter, 0);
      for (double value : kernels::loadFloats(*compiled->array("y")))
        ASSERT_TRUE(std::isfinite(value)) << cols << " " << element;
    }
}

// The last group of the programs that advance together may have fewer.
TEST_P(Options, EveryNumberOfProgramsTogether) {
  if (GetParam().backend == session::Backend::Interpreter)
    GTEST_SKIP() << "the interpreter has no plan";
  for (const char *name :
       {"layer_norm", "masked_softmax", "cross_entropy", "row_sum"})
    for (int64_t rows : {8, 13, 15, 16, 17})
      for (int64_t together : {2, 4, 8}) {
        RunRequest wanted =
            request(name, {{"rows", rows}, {"cols", lanes() + 3}});
        PlanChoices choices;
        choices.together[0] = together;
        wanted.choices = std::make_shared<const PlanChoices>(choices);
        SCOPED_TRACE(testing::Message() << name << " " << rows << " rows, "
                                        << together << " together");
        ASSERT_TRUE(run(name, wanted));
      }
}

// A last vector that repeats elements of the one before it.
TEST_P(Options, TailsThatOverlap) {
  if (GetParam().backend == session::Backend::Interpreter)
    GTEST_SKIP() << "the interpreter has no plan";
  for (const char *name : {"gelu_residual", "sigmoid_pair", "softmax",
                           "layer_norm", "rms_norm", "col_sum"})
    for (int64_t more : {int64_t{1}, lanes() - 1, 4 * lanes() + 3}) {
      RunRequest wanted =
          request(name, {{"rows", 3}, {"cols", lanes() + more}});
      Result<session::Compilation> usual =
          session::compileOperator(*kernels::findOperator(name), wanted);
      ASSERT_TRUE(usual) << usual.error().str();
      PlanChoices choices;
      for (const StagePlan &stage : usual->kernel.plan->stages)
        for (const NestPlan &nest : stage.nests)
          if (nest.alternatives.overlapsTail)
            choices.nests[nest.id].tail = TailForm::Overlap;
      SCOPED_TRACE(testing::Message() << name << " " << lanes() + more);
      // Blocks of columns may have no tail.
      EXPECT_TRUE(!choices.nests.empty() || name == std::string("col_sum"));
      wanted.choices = std::make_shared<const PlanChoices>(choices);
      ASSERT_TRUE(run(name, wanted));
    }
}

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Options, testing::ValuesIn(machines()),
                         machineName);
INSTANTIATE_TEST_SUITE_P(Emulated, Options,
                         testing::ValuesIn(emulatedMachines(5)), machineName);
INSTANTIATE_TEST_SUITE_P(EmulatedSoak, Options,
                         testing::ValuesIn(emulatedMachines(1)), machineName);

} // namespace
} // namespace tessera::runtest
