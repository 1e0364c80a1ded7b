//===- test/unit/driver/tunables_test.cpp - Values of tunables ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/planned_machine.h"

#include "driver/plan_file.h"
#include "session/session.h"
#include "tessera/dsl.h"

#include "nlohmann/json.hpp"
#include "gmock/gmock.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

session::RunRequest productOf(int64_t extent, int threads) {
  return {.dims = {{"m", extent}, {"n", extent}, {"k", extent}},
          .isa = Isa::Avx2,
          .threads = threads,
          .machine = plannedMachine()};
}

Json planOf(const Result<CompiledKernel> &kernel) {
  EXPECT_TRUE(kernel.ok()) << kernel.error().str();
  return kernel ? Json::parse(kernel->report)["plan"] : Json();
}

Json planOf(const Result<session::Compilation> &compiled) {
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  return compiled ? Json::parse(compiled->kernel.report)["plan"] : Json();
}

Json chosenIn(const Json &plan) {
  Json chosen;
  for (const Json &candidate : plan["tunables"])
    if (candidate["code"] == "chosen") {
      EXPECT_TRUE(chosen.is_null()) << plan["tunables"];
      chosen = candidate["values"];
    }
  return chosen;
}

TEST(Tunables, GiveEveryThreadAProgram) {
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  Json one = planOf(session::compileOperator(gemm, productOf(128, 1)));
  // The author's first values, unless others are clearly better.
  EXPECT_EQ(chosenIn(one), Json({{"block_m", 64}, {"block_n", 64}}));
  EXPECT_EQ(one["stages"][0]["programs"], 4);
  Json many = planOf(session::compileOperator(gemm, productOf(128, 16)));
  EXPECT_EQ(many["threads"], 16);
  EXPECT_GE(many["stages"][0]["programs"], 16);
  // What was not taken has a price and a reason.
  EXPECT_EQ(many["tunables"].size(), 15u);
  for (const Json &candidate : many["tunables"])
    EXPECT_GT(candidate["predicted_seconds"].get<double>(), 0) << candidate;
}

TEST(Tunables, BlocksAreEvenOverThreads) {
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  session::RunRequest ragged = productOf(513, 16);
  ragged.dims = {{"m", 513}, {"n", 257}, {"k", 129}};
  Json plan = planOf(session::compileOperator(gemm, ragged));
  EXPECT_EQ(plan["stages"][0]["programs"].get<int64_t>() % 16, 0);
  EXPECT_GT(plan["tunables"].size(), 15u);
  Result<session::Compilation> made = session::compileOperator(gemm, ragged);
  ASSERT_TRUE(made.ok()) << made.error().str();
  session::RunRequest again = ragged;
  again.threads = 1;
  again.savedPlan =
      PlanText{"p.json", writePlan(*made->kernel.plan, *made->kernel.subject)};
  Result<session::Compilation> replayed = session::compileOperator(gemm, again);
  ASSERT_TRUE(replayed.ok()) << replayed.error().str();
  EXPECT_EQ(replayed->kernel.planSummary, made->kernel.planSummary);
  // One thread waits for nobody.
  ragged.threads = 1;
  plan = planOf(session::compileOperator(gemm, ragged));
  EXPECT_EQ(plan["tunables"].size(), 15u);
}

TEST(Tunables, ASavedPlanBringsItsValues) {
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  Result<session::Compilation> made =
      session::compileOperator(gemm, productOf(128, 16));
  ASSERT_TRUE(made.ok()) << made.error().str();
  session::RunRequest again = productOf(128, 1);
  again.savedPlan =
      PlanText{"p.json", writePlan(*made->kernel.plan, *made->kernel.subject)};
  Result<session::Compilation> replayed = session::compileOperator(gemm, again);
  ASSERT_TRUE(replayed.ok()) << replayed.error().str();
  EXPECT_EQ(replayed->kernel.planSummary, made->kernel.planSummary);
  EXPECT_EQ(replayed->kernel.subject->tunables, made->kernel.subject->tunables);
  // Values that nobody would trace are those of another compilation.
  Json edited = Json::parse(again.savedPlan->text);
  edited["tunables"]["block_m"] = 48;
  again.savedPlan->text = edited.dump();
  Result<session::Compilation> other = session::compileOperator(gemm, again);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().str(),
              ::testing::HasSubstr("the plan is for another compilation"));
}

/// Doubles x in blocks of rows, again and again.
Kernel doubled(std::vector<int64_t> rows, std::vector<int64_t> cols,
               int64_t times = 1) {
  return kernel(
      "doubled", "x, y", [=](View<const float, 2> x, View<float, 2> y) {
        Blocks down =
            blocks(dim("rows", x.extent(0)), tunable("block_rows", rows));
        Blocks across =
            blocks(dim("cols", x.extent(1)), tunable("block_cols", cols));
        for (auto [i, j] : parallel(down, across)) {
          Tile v = load(x(i, j));
          for (int64_t time = 0; time < times; ++time)
            v = 2 * v;
          store(y(i, j), v);
        }
      });
}

Result<CompiledKernel> compiled(const Kernel &kernel,
                                const TraceOptions &options = {}) {
  Result<Program> program = Program::fromKernel(kernel, options);
  if (!program)
    return program.error();
  CompileRequest request;
  request.extents = {{64, 256}, {64, 256}};
  request.isa = Isa::Avx2;
  request.threads = 4;
  request.machine = plannedMachine();
  return program->compile(request);
}

TEST(Tunables, AssignedValuesAreKept) {
  Json plan = planOf(compiled(doubled({8, 16}, {64, 128}),
                              {.tunables = {{"block_rows", 16}}}));
  EXPECT_EQ(plan["tunables"].size(), 2u);
  for (const Json &candidate : plan["tunables"])
    EXPECT_FALSE(candidate["values"].contains("block_rows")) << candidate;
  plan =
      planOf(compiled(doubled({8, 16}, {64, 128}),
                      {.tunables = {{"block_rows", 16}, {"block_cols", 64}}}));
  ASSERT_EQ(plan["tunables"].size(), 1u);
  EXPECT_EQ(plan["tunables"][0]["code"], "given");
  EXPECT_EQ(plan["tunables"][0]["values"]["block_rows"], 16);
  EXPECT_EQ(plan["stages"][0]["programs"], 4 * 4);
}

TEST(Tunables, CandidatesThatFailSayWhy) {
  Json plan = planOf(compiled(doubled({8, 0}, {64})));
  EXPECT_EQ(chosenIn(plan)["block_rows"], 8);
  EXPECT_THAT(plan["tunables"][1]["code"].get<std::string>(),
              ::testing::StartsWith("dsl."));
  // The first ones are the author's word: what is wrong with them is an error.
  EXPECT_FALSE(compiled(doubled({0, 8}, {64})).ok());
}

TEST(Tunables, LooksAtABoundedNumber) {
  Json plan = planOf(compiled(doubled({8, 16, 32, 4, 2}, {64, 128, 32, 16})));
  EXPECT_EQ(plan["tunables"].size(), 17u);
  EXPECT_EQ(plan["tunables"].back()["code"], "search.budget");
}

TEST(Tunables, LooksAtFewerOfLargeKernels) {
  Json plan =
      planOf(compiled(doubled({8, 16, 32, 4, 2}, {64, 128, 32, 16}, 3000)));
  // The first ones have more operations than are looked at in all.
  EXPECT_EQ(plan["tunables"].size(), 5u);
  EXPECT_EQ(plan["tunables"].back()["code"], "search.budget");
}

} // namespace
} // namespace tessera
