//===- test/unit/structure/plan_test.cpp - What is planned when -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans by their summaries, which say what was applied.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "plan/plan_record.h"
#include "target/machine.h"

#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>

#include <memory>
#include <utility>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string planOf(const char *name, int64_t rows, int64_t cols) {
  const kernels::Operator *op = kernels::findOperator(name);
  EXPECT_NE(op, nullptr) << name;
  if (!op)
    return {};
  return emit(*op, {.dims = rowsOf(rows, cols), .isa = Isa::Avx2}).plan;
}

std::string planOf(const Kernel &kernel, int64_t rows, int64_t cols) {
  auto program = Program::fromKernel(kernel, {});
  EXPECT_TRUE(program.ok()) << program.error().str();
  if (!program.ok())
    return {};
  return emit(std::move(*program),
              {.dims = rowsOf(rows, cols), .isa = Isa::Avx2})
      .plan;
}

// The mean of the centred row and its mean square need no result of each other,
// whatever is computed from the first in between.
TEST(PlanShape, IndependentSumsShareALoop) {
  EXPECT_THAT(planOf("layer_norm", 129, 768),
              HasSubstr("reduce add, reduce add, reduce add in one pass"));
}

TEST(PlanShape, ScalarArithmeticBetweenSumsDoesNotSplitThem) {
  Kernel moments =
      kernel("moments", "x, y", [](View<const float, 2> x, View<float, 1> y) {
        for (auto row : parallel(dim("rows", x.extent(0)))) {
          Dim cols = dim("cols", x.extent(1));
          auto v = load(x(row, cols));
          auto root = sqrt(sum(v, cols)) + 1.0f;
          store(y(row), root * sum(v * v, cols));
        }
      });
  EXPECT_THAT(planOf(moments, 16, 768),
              HasSubstr("reduce add, reduce add over +cols"));
}

// Three loops over a sum of two arrays: the sum is kept by the first.
TEST(PlanShape, WhatIsLoadedAgainAndAgainIsKept) {
  // No law tells the mean distance about one centre from that about another.
  Kernel distances = kernel(
      "distances", "x, r, y",
      [](View<const float, 2> x, View<const float, 2> r, View<float, 2> y) {
        for (auto row : parallel(dim("rows", x.extent(0)))) {
          Dim cols = dim("cols", x.extent(1));
          Tile v = load(x(row, cols)) + load(r(row, cols));
          Tile mean = sum(v, cols) / cast(cols.size(), DType::F32);
          store(y(row, cols), v * sum(abs(v - mean), cols));
        }
      });
  std::string plan = planOf(distances, 129, 768);
  EXPECT_THAT(plan, HasSubstr("keep"));
  EXPECT_EQ(plan.find("keep"), plan.rfind("keep")) << "only one: " << plan;
  EXPECT_THAT(planOf("layer_norm", 129, 768), Not(HasSubstr("keep")));
  EXPECT_THAT(planOf("add_rms_norm", 129, 768), Not(HasSubstr("keep")));
}

std::string gemmPlan(int64_t m, DType dtype, Isa isa) {
  return emit(*kernels::findOperator("gemm"),
              {.dims = {{"m", m}, {"n", 64}, {"k", 64}},
               .dtype = dtype,
               .isa = isa})
      .plan;
}

// What windows share is found in the nearest cache: no streams.
TEST(PlanShape, WindowsAreNotReadInBlocks) {
  EXPECT_THAT(emit(*kernels::findOperator("depthwise_conv2d"),
                   {.dims = {{"n", 8},
                             {"c", 512},
                             {"h", 28},
                             {"w", 28},
                             {"kh", 5},
                             {"kw", 5}},
                    .isa = Isa::Avx512,
                    .machine = &genericMachine(Isa::Avx512)})
                  .plan,
              Not(HasSubstr(", by ")));
}

session::RunRequest convolutionOf(int64_t channels, int64_t width,
                                  int64_t filters) {
  return {.dims = {{"n", 1},
                   {"c", channels},
                   {"h", 28},
                   {"w", width},
                   {"f", filters},
                   {"kh", 3},
                   {"kw", 3}},
          .settings = {{"pad", 1}},
          .isa = Isa::Avx512,
          .machine = plannedMachine()};
}

// Rows of three and a half vectors leave lanes idle that whole vectors of
// filters fill: rows of results are then transposed where they are stored.
TEST(PlanShape, FiltersFillTheLanesWhereRowsDoNot) {
  const kernels::Operator &conv = *kernels::findOperator("conv2d");
  const std::string narrow = emit(conv, convolutionOf(64, 56, 64)).plan;
  EXPECT_THAT(narrow, HasSubstr("+kw (f_block x16 x"));
  EXPECT_THAT(narrow, HasSubstr("store y over f_block, ow (f_block x16, ow "
                                "x16 transposed)"));
  // A row of a small image fills less than half of a vector.
  EXPECT_THAT(emit(conv, convolutionOf(64, 7, 64)).plan,
              HasSubstr("+kw (f_block x16"));
  // Few filters are no whole vectors; whole rows need no transposing.
  EXPECT_THAT(emit(conv, convolutionOf(64, 64, 19)).plan,
              HasSubstr("+kw (ow x16 x"));
}

// Windows three elements wide have each element of the image three times. Rows
// of 58 elements, with those beside the image, begin with a line each.
TEST(PlanShape, WindowsAreCopiedOnce) {
  for (const char *dim : {"ow", "f_block"}) {
    session::RunRequest request = convolutionOf(64, 56, 64);
    const kernels::Operator &conv = *kernels::findOperator("conv2d");
    auto compiled = [&] {
      auto made = session::compileOperator(conv, request);
      EXPECT_TRUE(made.ok()) << made.error().str();
      return made ? *made->kernel.plan : Plan();
    };
    auto choices = std::make_shared<PlanChoices>();
    for (const StagePlan &stage : compiled().stages)
      for (const NestPlan &nest : stage.nests)
        if (nest.roots.starts_with("contract"))
          choices->nests[nest.id].vectorDim = dim;
    request.choices = choices;
    EXPECT_THAT(compiled().buffers,
                testing::Contains(std::pair<std::string, int64_t>(
                    "packed region", 64 * 3 * 64 * 4)))
        << dim;
  }
}

// A step of the second product reads a whole row of values, which lies behind
// the one before: nothing is waited for that no prefetcher has asked for.
TEST(PlanShape, WholeRowsAreOneStream) {
  auto jumpsFor = [](int64_t values) {
    session::RunRequest request{.dims = {{"b", 1},
                                         {"hq", 8},
                                         {"hkv", 2},
                                         {"q", 1},
                                         {"k", 8192},
                                         {"d", 64},
                                         {"dv", values}},
                                .isa = Isa::Avx512,
                                .threads = 1,
                                .machine = &genericMachine(Isa::Avx512)};
    request.choices = std::make_shared<PlanChoices>();
    auto nestOf = [&] {
      auto made = session::compileOperator(*kernels::findOperator("attention"),
                                           request);
      EXPECT_TRUE(made.ok()) << made.error().str();
      NestPlan found;
      if (made)
        for (const StagePlan &stage : made->kernel.plan->stages)
          for (const NestPlan &nest : stage.nests)
            if (nest.space == "group, query, dv, +key")
              found = nest;
      return found;
    };
    auto choices = std::make_shared<PlanChoices>();
    choices->nests[nestOf().id].reducedBlock = 0;
    request.choices = choices;
    return nestOf().jumps;
  };
  EXPECT_EQ(jumpsFor(64), 0);
  // Rows that are read in two halves, all of the first ones before the others.
  EXPECT_GT(jumpsFor(128), 0);
}

// As many rows as the registers hold accumulators for.
TEST(PlanShape, ContractionsAreTiledByRegisters) {
  EXPECT_THAT(gemmPlan(64, DType::F32, Isa::Avx2),
              HasSubstr("(n_block x8 x2, m_block x6)"));
  if (hostRuns(Isa::Avx512))
    EXPECT_THAT(gemmPlan(64, DType::F32, Isa::Avx512),
                HasSubstr("(n_block x16 x4, m_block x6)"));
  // Blocks hang over the end of c: only what is stored is computed.
  EXPECT_THAT(gemmPlan(3, DType::F32, Isa::Avx2), HasSubstr("m_block x3)"));
  EXPECT_THAT(gemmPlan(1, DType::F32, Isa::Avx2),
              HasSubstr("+k (n_block x8 x8)"));
  // Vectors of eight doubles take two registers each.
  EXPECT_THAT(gemmPlan(64, DType::F64, Isa::Avx2),
              HasSubstr("(n_block x8, m_block x"));
}

// Where all of an operand is read again and again, from beyond the first-level
// cache, it is copied once; not where it stays near, nor for few rows, nor
// where its rows are whole lines that the second-level cache holds.
TEST(PlanShape, FarOperandsArePacked) {
  auto planFor = [](int64_t m, int64_t n, int64_t k) {
    return emit(*kernels::findOperator("gemm"),
                {.dims = {{"m", m}, {"n", n}, {"k", k}}, .isa = Isa::Avx2})
        .plan;
  };
  EXPECT_THAT(planFor(128, 2048, 512), HasSubstr(", packed)"));
  EXPECT_THAT(planFor(128, 72, 512), HasSubstr(", packed)"));
  EXPECT_THAT(planFor(128, 64, 512), Not(HasSubstr("packed")));
  EXPECT_THAT(planFor(128, 2048, 32), Not(HasSubstr("packed")));
  EXPECT_THAT(planFor(8, 2048, 512), Not(HasSubstr("packed")));
}

const Machine *described(std::string_view name) {
  for (const Machine &machine : knownMachines())
    if (machine.name == name)
      return &machine;
  ADD_FAILURE() << "there is no description '" << name << "'";
  return nullptr;
}

std::string planOn(const char *machine, kernels::Dims dims) {
  return emit(*kernels::findOperator("gemm"), {.dims = std::move(dims),
                                               .isa = Isa::Avx512,
                                               .machine = described(machine)})
      .plan;
}

// What is too large to be copied for few rows is read in as many streams as the
// machine follows, by tiles that read it as few times as registers allow.
TEST(PlanShape, StreamsAreThoseOfTheMachine) {
  const kernels::Dims few{{"m", 16}, {"n", 4096}, {"k", 1024}};
  EXPECT_THAT(planOn("zen4", few),
              HasSubstr("(n_block x16 x2, m_block x8, by 8)"));
  EXPECT_THAT(planOn("sapphire-rapids", few),
              HasSubstr("(n_block x16 x2, m_block x8, by 16)"));
}

// Where each piece of a row is a jump that takes long, whole rows are the block
// that is predicted to be read fastest.
TEST(PlanShape, RowsFromMemoryAreReadToTheirEnds) {
  auto made =
      session::compileOperator(*kernels::findOperator("gemm"),
                               {.dims = {{"m", 1}, {"n", 4096}, {"k", 4096}},
                                .isa = Isa::Avx512,
                                .threads = 1,
                                .machine = described("zen4"),
                                .useTunedPlans = false});
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_THAT(made->kernel.planSummary, HasSubstr("by 8"));
  EXPECT_EQ(made->kernel.plan->stages[0].programs, 1);
}

// Rows a multiple of a page apart have elements in one set of the nearest
// cache; of others it holds more.
TEST(PlanShape, RowsOfATileFitTheSetsOfTheCache) {
  EXPECT_THAT(planOn("zen4", {{"m", 60}, {"n", 32}, {"k", 1024}}),
              HasSubstr("m_block x8"));
  EXPECT_THAT(planOn("zen4", {{"m", 60}, {"n", 32}, {"k", 1040}}),
              HasSubstr("m_block x12"));
}

/// What a product in blocks of 64 by 64 is predicted to take, for each
/// multiply-add.
double priceOn(const char *machine, int64_t n, bool packs) {
  session::RunRequest request{.dims = {{"m", 256}, {"n", n}, {"k", 1024}},
                              .tunables = {{"block_m", 64}, {"block_n", 64}},
                              .isa = Isa::Avx512,
                              .threads = 1,
                              .machine = described(machine),
                              .useTunedPlans = false};
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  auto made = session::compileOperator(gemm, request);
  auto choices = std::make_shared<PlanChoices>();
  if (made)
    for (const NestPlan &nest : made->kernel.plan->stages[0].nests)
      if (nest.roots.starts_with("contract"))
        choices->nests[nest.id].packs = packs;
  request.choices = choices;
  made = session::compileOperator(gemm, request);
  EXPECT_TRUE(made.ok()) << made.error().str();
  if (!made)
    return 0;
  EXPECT_EQ(made->kernel.planSummary.find("packed") != std::string::npos,
            packs);
  double time = 0;
  for (const Stage &stage : made->kernel.executable.info().stages)
    time += stage.nanosecondsPerProgram * double(stage.programs);
  return time / (256 * double(n) * 1024);
}

// Rows a power of two apart push each other out of the caches where they are
// read in place, a copy of them stays; other rows stay where they are.
TEST(PlanShape, RowsThatShareSetsCostMoreInPlace) {
  for (const char *machine : {"zen4", "sapphire-rapids"}) {
    EXPECT_GT(priceOn(machine, 1024, false),
              1.1 * priceOn(machine, 1040, false))
        << machine;
    EXPECT_NEAR(priceOn(machine, 1024, true) / priceOn(machine, 1040, true), 1,
                0.03)
        << machine;
    EXPECT_GT(priceOn(machine, 1024, false), 1.1 * priceOn(machine, 1024, true))
        << machine;
  }
}

// Blocks that read little each read much together: what programs read is not
// what is their share of the arrays.
TEST(PlanShape, SmallBlocksReadTheirOperandsFromFurtherAway) {
  for (int64_t extent : {1024, 2048}) {
    auto made = session::compileOperator(
        *kernels::findOperator("gemm_epilogue"),
        {.dims = {{"m", extent}, {"n", extent}, {"k", extent}},
         .isa = Isa::Avx512,
         .threads = 16,
         .machine = described("sapphire-rapids"),
         .useTunedPlans = false});
    ASSERT_TRUE(made.ok()) << made.error().str();
    EXPECT_THAT(made->kernel.planSummary, HasSubstr("packed"));
    EXPECT_LE(made->kernel.plan->stages[0].programs,
              extent / 64 * (extent / 64));
  }
}

// Rows of sums read the other operand's rows again for every row of their own,
// from the second-level cache; a transposed copy has registers that share them.
TEST(PlanShape, RowsOfSumsReadTheirOperandsAgain) {
  auto made =
      session::compileOperator(*kernels::findOperator("gemm"),
                               {.dims = {{"m", 1024}, {"n", 1024}, {"k", 1024}},
                                .settings = {{"trans_b", true}},
                                .isa = Isa::Avx512,
                                .threads = 16,
                                .machine = described("sapphire-rapids"),
                                .useTunedPlans = false});
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_THAT(made->kernel.planSummary, HasSubstr("transposed"));
  EXPECT_THAT(made->kernel.planSummary, HasSubstr(", packed)"));
}

// Small blocks of rows have few uses for a copy each, but programs in a row
// share it.
TEST(PlanShape, ProgramsShareCopiesOfRowsThatPushThemselvesOut) {
  auto planFor = [](int64_t n) {
    return emit(*kernels::findOperator("gemm"),
                {.dims = {{"m", 256}, {"n", n}, {"k", 1024}},
                 .tunables = {{"block_m", 32}, {"block_n", 32}},
                 .isa = Isa::Avx512,
                 .machine = described("zen4")})
        .plan;
  };
  EXPECT_THAT(planFor(1024), HasSubstr("packed"));
  EXPECT_THAT(planFor(1040), Not(HasSubstr("packed")));
}

// Lines that a square is stored to are asked for where the nearest cache has
// places for them: not for sixteen in one set of eight ways.
TEST(PlanShape, LinesThatPushEachOtherOutAreNotAskedFor) {
  auto asksFor = [](int64_t extent) {
    auto made = session::compileOperator(*kernels::findOperator("transpose"),
                                         {.dims = rowsOf(extent, extent),
                                          .isa = Isa::Avx512,
                                          .machine = described("zen4"),
                                          .useTunedPlans = false});
    EXPECT_TRUE(made.ok()) << made.error().str();
    return made && made->kernel.plan->stages[0].nests[0].asksForLines;
  };
  EXPECT_TRUE(asksFor(1040));
  EXPECT_TRUE(asksFor(512));
  EXPECT_FALSE(asksFor(1024));
  EXPECT_FALSE(asksFor(2048));
}

// A window's row of products for one vector waits for its only sum; with
// several, and with several vectors, there is always one to start.
TEST(PlanShape, FewResultsOfWindowsHaveSeveralSums) {
  auto chainsFor = [](int64_t width) -> int64_t {
    auto made =
        session::compileOperator(*kernels::findOperator("depthwise_conv2d"),
                                 {.dims = {{"n", 1},
                                           {"c", 4},
                                           {"h", 28},
                                           {"w", width},
                                           {"kh", 5},
                                           {"kw", 5}},
                                  .settings = {{"pad", 1}},
                                  .isa = Isa::Avx512,
                                  .machine = described("zen4"),
                                  .useTunedPlans = false});
    EXPECT_TRUE(made.ok()) << made.error().str();
    return made ? made->kernel.plan->stages[0].nests[0].chains : 0;
  };
  EXPECT_EQ(chainsFor(28), 4);
  EXPECT_EQ(chainsFor(66), 1);
}

// An operand that lies along the reduced dimension is copied through squares,
// so that vectors along the result's rows serve as many of them as in the plain
// form; not for few rows.
TEST(PlanShape, OperandsThatLieAcrossAreTransposed) {
  auto planFor = [](int64_t m) {
    return emit(*kernels::findOperator("gemm"),
                {.dims = {{"m", m}, {"n", 64}, {"k", 64}},
                 .settings = {{"trans_b", true}},
                 .isa = Isa::Avx2})
        .plan;
  };
  std::string plan = planFor(64);
  EXPECT_THAT(plan,
              HasSubstr("keep over k, n_block (k x8, n_block x8 transposed)"));
  EXPECT_THAT(plan, HasSubstr("(n_block x8 x2, m_block x6, packed)"));
  EXPECT_THAT(planFor(2), Not(HasSubstr("packed")));
}

// The rows of the last block that are outside are not computed: the loop over
// groups of rows ends where the view does.
TEST(PlanShape, LoopsEndWhereNothingIsStored) {
  Emitted code =
      emit(*kernels::findOperator("gemm"),
           {.dims = {{"m", 513}, {"n", 64}, {"k", 64}}, .isa = Isa::Avx2});
  EXPECT_FALSE(linesWith(code["loops"], "arith.minsi").empty());
  Emitted even =
      emit(*kernels::findOperator("gemm"),
           {.dims = {{"m", 512}, {"n", 64}, {"k", 64}}, .isa = Isa::Avx2});
  EXPECT_TRUE(linesWith(even["loops"], "arith.minsi").empty());
}

// A row alone has nothing to share vectors with: several chains of
// multiply-adds hide their latency instead.
TEST(PlanShape, VectorTimesMatrixIsNotTiled) {
  Kernel product = kernel(
      "product", "x, a, y",
      [](View<const float, 1> x, View<const float, 2> a, View<float, 1> y) {
        Dim k = dim("rows", a.extent(0)), n = dim("cols", a.extent(1));
        store(y(n), contract(load(x(k)), load(a(k, n)), k));
      });
  // Twelve vectors are three groups of four; eight would leave four vectors
  // with a chain each.
  EXPECT_THAT(planOf(product, 64, 96), HasSubstr("(cols x8 x4)"));
  EXPECT_THAT(planOf(product, 64, 128), HasSubstr("(cols x8 x8)"));
}

// What follows a contraction is done in its registers, but for what needs its
// result elsewhere.
TEST(PlanShape, StoresFollowContractionsInRegisters) {
  auto planFor = [](auto follow) {
    Kernel affine = kernel(
        "affine", "a, b, bias, c, s",
        [=](View<const float, 2> a, View<const float, 2> b,
            View<const float, 1> bias, View<float, 2> c, View<float, 1> s) {
          Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(1));
          Dim k = dim("k", a.extent(1));
          Tile product = contract(load(a(m, k)), load(b(k, n)), k);
          follow(product, load(bias(n)), c(m, n), n);
          store(s(m), sum(load(a(m, k)), k));
        });
    auto program = Program::fromKernel(affine, {});
    EXPECT_TRUE(program.ok()) << program.error().str();
    return emit(std::move(*program),
                {.dims = {{"m", 24}, {"n", 32}, {"k", 40}}, .isa = Isa::Avx2});
  };
  Emitted once = planFor([](Tile product, Tile bias, auto c, Dim) {
    store(c, max(product + bias, 0));
  });
  EXPECT_THAT(once.plan, HasSubstr("contract, store c over m, n, +k"));
  Emitted after = planFor([](Tile product, Tile, auto c, Dim n) {
    store(c, product / sum(product, n));
  });
  EXPECT_THAT(after.plan, HasSubstr("contract over m, n, +k"));
}

// The region of a reduction may use what was computed from another one.
TEST(PlanShape, ReductionsThatUseAResultComeAfterIt) {
  Kernel capturing =
      kernel("capturing", "x, y", [](View<const float, 2> x, View<float, 1> y) {
        for (auto row : parallel(dim("rows", x.extent(0)))) {
          Dim cols = dim("cols", x.extent(1));
          auto v = load(x(row, cols));
          Tile scale = max(v, cols) + 1.0f;
          store(y(row), reduce(v, cols, 0.0f,
                               [&](Tile a, Tile b) { return a + b * scale; }));
        }
      });
  std::string plan = planOf(capturing, 16, 96);
  EXPECT_LT(plan.find("reduce max"), plan.find("reduce custom")) << plan;
}

TEST(PlanShape, ShortRowsWithReductionsAdvanceTogether) {
  EXPECT_THAT(planOf("layer_norm", 64, 256), StartsWith("parallel rows x"));
  // Rows that come from memory displace each other in the caches.
  EXPECT_THAT(planOf("rms_norm", 1024, 4097), StartsWith("parallel rows;"));
  // Too few rows, and nothing to wait for.
  EXPECT_THAT(planOf("layer_norm", 3, 33), StartsWith("parallel rows;"));
  EXPECT_THAT(planOf("swiglu", 17, 33), StartsWith("parallel rows;"));
}

} // namespace
} // namespace tessera::structuretest
