//===- plan_decisions_test.cpp - Decisions that a kernel can have ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "saved_plan.h"

#include "tessera/dsl.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tessera {
namespace {

using namespace savedplan;
using testing::HasSubstr;
using testing::Not;

TEST(PlanDecisions, WhatCannotBeAppliedIsNamed) {
  const std::string text = softmaxPlan();
  const std::string first =
      "nest " + std::to_string(idOf(softmax(), 0)) + " (reduce max), ";
  EXPECT_THAT(refusal(withField(text, "vectors_per_iteration", "64")),
              HasSubstr("stages[0].nests[0]: " + first +
                        "vectors_per_iteration: found 64, expected 1 to "));
  EXPECT_THAT(refusal(withField(text, "vector_dimension", "\"depth\"")),
              HasSubstr(first + "vector_dimension: found 'depth', "
                                "expected 'cols': "));
  EXPECT_THAT(refusal(withField(text, "vector_dimension", "null")),
              HasSubstr("vector_dimension: found null, expected 'cols': a nest "
                        "that can fill lanes does"));
  EXPECT_THAT(refusal(withField(text, "rows_per_iteration", "2")),
              HasSubstr("rows_per_iteration: found 2, expected 1: "));
  EXPECT_THAT(refusal(withField(text, "packs_operand", "true")),
              HasSubstr("packs_operand: found true, expected false: "));
  EXPECT_THAT(refusal(withField(text, "atom", "\"dpbusd\"")),
              HasSubstr("atom: found 'dpbusd', expected null: the target has "
                        "no such atom"));
  EXPECT_THAT(refusal(withField(text, "transposes", "true")),
              HasSubstr("transposes: found true, expected false: no other "
                        "dimension of the nest's results has accesses"));
  EXPECT_THAT(refusal(withField(text, "programs_together", "100")),
              HasSubstr("stages[0].programs_together: found 100, expected 1 to "
                        "8: there are too few programs"));
  EXPECT_THAT(damage(withField(text, "prefetch", "\"all\"")),
              HasSubstr("stages[0].prefetch: found \"all\", expected 'none', "
                        "'inputs' or 'inputs and outputs'"));
  // Loops that nothing interrupts.
  Result<Made> copied = make("copy", softmaxDims);
  ASSERT_TRUE(copied) << copied.error().str();
  Result<Made> ahead = make("copy", softmaxDims,
                            withField(copied->text, "prefetch", "\"inputs\""));
  ASSERT_FALSE(ahead);
  EXPECT_THAT(ahead.error().message,
              HasSubstr("stages[0].prefetch: found 'inputs', expected 'none': "
                        "no reduction to wait for"));
  EXPECT_THAT(
      refusal(withField(text, "edges", "\"apart\"")),
      HasSubstr("stages[0].edges: found 'apart', expected 'checked': "
                "all programs touch an edge of an array, or none does"));
}

// What the file says is the file's fault, wherever it is found.
TEST(PlanDecisions, RefusalsNameTheFile) {
  const std::string &text = softmaxPlan();
  auto with = [&](const std::string &field) {
    return replaced(text, "\"keeping\"", field + ", \"keeping\"");
  };
  EXPECT_THAT(damage(with("\"prepacked\": [\"zzz\"]")),
              HasSubstr("prepacked: found the unknown array 'zzz', expected "
                        "one of x, y"));
  auto starts = [](const Error &error, const std::string &start) {
    EXPECT_THAT(error.message, testing::StartsWith("plan 'p.json': " + start));
  };
  starts(errorOf(with("\"prepacked\": [\"x\"]")), "prepacked: 'x' cannot");
  starts(errorOf(with("\"vendor\": \"cblas\"")),
         "vendor: kernel 'softmax' cannot");
  const kernels::Dims dims = {{"m", 64}, {"n", 64}, {"k", 64}};
  Result<Made> gemm = make("gemm", dims);
  ASSERT_TRUE(gemm) << gemm.error().str();
  Result<Made> none = make(
      "gemm", dims, replaced(gemm->text, "\"block_m\": 64", "\"block_m\": 0"));
  ASSERT_FALSE(none);
  starts(none.error(), "tunables: with block_m=0,");
  EXPECT_THAT(none.error().message, HasSubstr("the block size is 0"));
}

// Of the reasons of a stage, that which explains the refusal.
TEST(PlanDecisions, RefusalsGiveTheirReason) {
  Result<Made> gemm = make("gemm", {{"m", 512}, {"n", 512}, {"k", 512}});
  ASSERT_TRUE(gemm) << gemm.error().str();
  Result<Made> many = make("gemm", {{"m", 512}, {"n", 512}, {"k", 512}},
                           withField(gemm->text, "programs_together", "2"));
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message,
              testing::EndsWith("programs_together: found 2, expected 1: the "
                                "body has parts that run one element after "
                                "another"));
}

TEST(PlanDecisions, SquaresAreADecision) {
  const kernels::Dims dims = {{"rows", 64}, {"cols", 96}};
  Result<Made> made = make("transpose", dims);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->text, HasSubstr("\"transposes\": true"));
  EXPECT_THAT(made->summary, HasSubstr("x8 transposed)"));
  Result<Made> flat =
      make("transpose", dims, withField(made->text, "rows_per_iteration", "4"));
  ASSERT_TRUE(flat) << flat.error().str();
  EXPECT_THAT(flat->summary, HasSubstr("x4 transposed)"));
  Result<Made> odd =
      make("transpose", dims, withField(made->text, "rows_per_iteration", "3"));
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message,
              HasSubstr("rows_per_iteration: found 3, expected 8: the rows of "
                        "a square are a power of two"));
  Result<Made> single =
      make("transpose", dims,
           withField(withField(made->text, "transposes", "false"),
                     "rows_per_iteration", "1"));
  ASSERT_TRUE(single) << single.error().str();
  EXPECT_THAT(single->summary, Not(HasSubstr("transposed")));
  EXPECT_NE(single->object, made->object);
}

TEST(PlanDecisions, StoresAroundTheCachesAreADecision) {
  const std::string name = "\"stores_around_caches\": ";
  std::string text = softmaxPlan();
  const size_t last = text.rfind(name + "false");
  ASSERT_NE(last, std::string::npos);
  text.replace(last, name.size() + 5, name + "true");
  Result<Made> made = make("softmax", softmaxDims, text);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->summary, HasSubstr("around the caches)"));
  EXPECT_THAT(made->text, HasSubstr(name + "true"));
  EXPECT_NE(made->object, softmax().object);
  EXPECT_THAT(
      refusal(withField(softmaxPlan(), "stores_around_caches", "true")),
      HasSubstr("stores_around_caches: found true, expected false: the nest "
                "stores no whole vectors"));
}

TEST(PlanDecisions, LoopsThatBeginAlignedAreADecision) {
  const std::string name = "\"aligns_stores\": ";
  std::string text = softmaxPlan();
  const std::string around = "\"stores_around_caches\": ";
  const size_t last = text.rfind(around + "false");
  ASSERT_NE(last, std::string::npos);
  text.replace(last, around.size() + 5, around + "true");
  const std::string unaligned = text;
  const size_t place = text.rfind(name + "false");
  ASSERT_NE(place, std::string::npos);
  text.replace(place, name.size() + 5, name + "true");
  Result<Made> made = make("softmax", softmaxDims, text);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->summary, HasSubstr("around the caches, aligned)"));
  EXPECT_THAT(made->text, HasSubstr(name + "true"));
  Result<Made> other = make("softmax", softmaxDims, unaligned);
  ASSERT_TRUE(other) << other.error().str();
  EXPECT_NE(made->object, other->object);
  EXPECT_THAT(refusal(withField(softmaxPlan(), "aligns_stores", "true")),
              HasSubstr("aligns_stores: found true, expected false: the "
                        "nest's results do not go past the caches"));
}

TEST(PlanDecisions, ProgramsAtEdgesAreADecision) {
  const kernels::Dims dims = {{"m", 130}, {"n", 70}, {"k", 16}};
  Result<Made> chosen = make("gemm", dims);
  ASSERT_TRUE(chosen) << chosen.error().str();
  Result<Made> made =
      make("gemm", dims, withField(chosen->text, "edges", "\"checked\""));
  ASSERT_TRUE(made) << made.error().str();
  Result<Made> apart =
      make("gemm", dims, withField(chosen->text, "edges", "\"apart\""));
  ASSERT_TRUE(apart) << apart.error().str();
  EXPECT_THAT(apart->summary, HasSubstr("edges apart"));
  EXPECT_GT(apart->object.size(), made->object.size());
  Result<Made> again = make("gemm", dims, apart->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->object, apart->object);
}

TEST(PlanDecisions, SharedReductionsAreADecision) {
  const kernels::Dims dims = {{"m", 9}, {"n", 40}, {"k", 500}};
  Result<Made> made = make("gemm", dims);
  ASSERT_TRUE(made) << made.error().str();
  // What follows the contraction is then a nest of its own.
  const std::string text =
      made->text.substr(0, made->text.find(",\n      \"nests\"")) + "\n}]}";
  EXPECT_THAT(text, HasSubstr("\"splits\": "));
  Result<Made> shared = make("gemm", dims, withField(text, "splits", "4"));
  ASSERT_TRUE(shared) << shared.error().str();
  EXPECT_THAT(shared->summary, HasSubstr("4 splits of k"));
  Result<Made> again = make("gemm", dims, shared->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->object, shared->object);
  auto refusal = [&](const char *splits) {
    Result<Made> refused =
        make("gemm", dims, withField(text, "splits", splits));
    EXPECT_FALSE(refused);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_THAT(refusal("1000"),
              HasSubstr("stages[0].splits: found 1000, expected 1 to 256: not "
                        "every part of 'k' would have elements"));
  EXPECT_THAT(refusal("230"), HasSubstr("found 230, expected 1 to 256"));
  EXPECT_THAT(refusal("0"), HasSubstr("splits: found 0"));
  // The maximum, with nests after it of their own; programs that share it run
  // one at a time.
  const std::string whole = softmaxPlan();
  const std::string shares =
      withField(whole.substr(0, whole.find(",\n      \"nests\"")) + "\n}]}",
                "splits", "2");
  Result<Made> rows =
      make("softmax", softmaxDims, withField(shares, "programs_together", "1"));
  ASSERT_TRUE(rows) << rows.error().str();
  EXPECT_THAT(rows->summary, HasSubstr("2 splits of"));
  Result<Made> together =
      make("softmax", softmaxDims, withField(shares, "programs_together", "2"));
  ASSERT_FALSE(together);
  EXPECT_THAT(together.error().message,
              HasSubstr("programs_together: found 2, expected 1: programs that "
                        "share a reduction run one at a time"));
  Result<Made> copied = make("copy", softmaxDims);
  ASSERT_TRUE(copied) << copied.error().str();
  Result<Made> refused =
      make("copy", softmaxDims, withField(copied->text, "splits", "2"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("splits: found 2, expected 1: the program has no fold, "
                        "contraction or reduction"));
}

TEST(PlanDecisions, AnOrderOfEvaluationIsNoChoice) {
  Kernel prefix =
      kernel("prefix", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row))
          store(y(i, col), cumsum(load(x(i, col)), col));
      });
  Result<Program> program = Program::fromKernel(prefix, {});
  ASSERT_TRUE(program) << program.error().str();
  CompileRequest request;
  request.isa = Isa::Avx2;
  request.extents = {{64, 100}, {64, 100}};
  Result<CompiledKernel> made = program->compile(request);
  ASSERT_TRUE(made) << made.error().str();
  std::string text = writePlan(*made->plan, *made->subject);
  request.savedPlan =
      PlanText{"p.json", withField(text, "programs_together", "2")};
  Result<CompiledKernel> again = program->compile(request);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message,
              HasSubstr("programs_together: found 2, expected 1: the body has "
                        "parts that run one element after another"));
}

// The author's pins come first.
TEST(PlanDecisions, APinIsNotOverruled) {
  Kernel rowSum =
      kernel("row_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row))
          store(y(i), sum(load(x(i, col)), col));
      });
  Schedule pins;
  pins.unroll = 3;
  pins.tail = "mask";
  Result<Program> program = Program::fromKernel(rowSum.schedule(pins), {});
  ASSERT_TRUE(program) << program.error().str();
  CompileRequest request;
  request.isa = Isa::Avx2;
  request.extents = {{5, 1000}, {5}};
  Result<CompiledKernel> made = program->compile(request);
  ASSERT_TRUE(made) << made.error().str();
  const std::string text = writePlan(*made->plan, *made->subject);
  request.savedPlan = PlanText{"p.json", text};
  Result<CompiledKernel> same = program->compile(request);
  ASSERT_TRUE(same) << same.error().str();
  EXPECT_EQ(same->object, made->object);
  for (const auto &[field, value, message] :
       {std::tuple("vectors_per_iteration", "4", "found 4, expected 3"),
        {"tail", "\"scalar\"", "found scalar, expected mask"}}) {
    request.savedPlan->text = withField(text, field, value);
    Result<CompiledKernel> other = program->compile(request);
    ASSERT_FALSE(other) << field;
    EXPECT_EQ(other.error().code, "unsupported.plan");
    EXPECT_THAT(other.error().message, HasSubstr(message));
    EXPECT_THAT(other.error().message,
                HasSubstr("the kernel's schedule fixes it"));
  }
}

} // namespace
} // namespace tessera
