//===- structure/search_test.cpp - What the search looks at ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_record.h"
#include "search/predicted_time.h"
#include "stages.h"
#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tessera::structuretest {
namespace {

std::shared_ptr<const Plan> planOf(const char *name, int64_t rows, int64_t cols,
                                   Isa isa = Isa::Avx2) {
  Result<session::Compilation> compiled = session::compileOperator(
      *kernels::findOperator(name),
      {.dims = rowsOf(rows, cols), .isa = isa, .machine = plannedMachine()});
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  return compiled ? compiled->kernel.plan : nullptr;
}

const PlanCandidate *chosenOf(const Plan &plan) {
  for (const PlanCandidate &candidate : plan.candidates)
    if (candidate.code == "chosen")
      return &candidate;
  return nullptr;
}

TEST(Search, ChoosesOneOfSeveralAndSaysWhyNotTheOthers) {
  std::shared_ptr<const Plan> plan = planOf("layer_norm", 64, 256);
  ASSERT_TRUE(plan);
  const PlanCandidate *chosen = chosenOf(*plan);
  ASSERT_TRUE(chosen);
  EXPECT_GT(plan->candidates.size(), 3u);
  for (const PlanCandidate &candidate : plan->candidates) {
    if (&candidate == chosen)
      continue;
    EXPECT_NE(candidate.code, "chosen") << candidate.what;
    EXPECT_FALSE(candidate.code.empty()) << candidate.what;
    // What was not taken is not much better by its own price.
    if (candidate.nanoseconds && candidate.code.starts_with("cost.")) {
      EXPECT_GE(*candidate.nanoseconds, 0.96 * *chosen->nanoseconds)
          << candidate.what;
    }
  }
}

// Whatever was best on the way there.
TEST(Search, OnePlanIsChosen) {
  for (const char *op : {"rms_norm", "softmax", "masked_softmax"})
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{17, 65}, {129, 768}, {257, 1538}})
      for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
        std::shared_ptr<const Plan> plan = planOf(op, rows, cols, isa);
        ASSERT_TRUE(plan);
        EXPECT_EQ(std::count_if(plan->candidates.begin(),
                                plan->candidates.end(),
                                [](const PlanCandidate &candidate) {
                                  return candidate.code == "chosen";
                                }),
                  1)
            << op << " " << rows << "x" << cols;
      }
}

TEST(Search, EqualKernelsGetEqualPlans) {
  std::shared_ptr<const Plan> first = planOf("softmax", 17, 65),
                              second = planOf("softmax", 17, 65);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->summary(), second->summary());
  ASSERT_EQ(first->candidates.size(), second->candidates.size());
  for (size_t i = 0; i < first->candidates.size(); ++i) {
    EXPECT_EQ(first->candidates[i].what, second->candidates[i].what);
    EXPECT_EQ(first->candidates[i].nanoseconds,
              second->candidates[i].nanoseconds);
  }
}

// Tiles with other vectors than the planner takes, each with a price or the
// reason why it has none.
TEST(Search, LooksAtTilesOfContractions) {
  std::shared_ptr<const Plan> plan;
  auto compileAt = [&](const char *name, kernels::Dims dims) {
    Result<session::Compilation> compiled = session::compileOperator(
        *kernels::findOperator(name), {.dims = std::move(dims),
                                       .isa = Isa::Avx512,
                                       .threads = 1,
                                       .machine = plannedMachine()});
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    plan = compiled->kernel.plan;
  };
  auto looksAt = [&](const std::string &what) {
    return std::any_of(plan->candidates.begin(), plan->candidates.end(),
                       [&](const PlanCandidate &candidate) {
                         return candidate.what == what &&
                                (candidate.nanoseconds ||
                                 candidate.code.starts_with("search.") ||
                                 candidate.code.starts_with("admission."));
                       });
  };
  compileAt("gemm", {{"m", 256}, {"n", 256}, {"k", 256}});
  EXPECT_TRUE(looksAt("tiles of 1 vectors"));
  EXPECT_TRUE(looksAt("tiles of 2 vectors") || looksAt("tiles of 4 vectors"));
  // Sums along the lanes have rows alone; a long kernel is not searched for
  // them, and says so.
  compileAt("attention", {{"b", 1},
                          {"hq", 8},
                          {"hkv", 2},
                          {"q", 64},
                          {"k", 515},
                          {"d", 64},
                          {"dv", 64}});
  EXPECT_TRUE(looksAt("half as many rows of sums"));
}

// Loops whose ends data decides say themselves how often they run.
TEST(Search, SortsArePricedByTheirLoops) {
  double before = 0;
  for (int64_t cols : {64, 256, 1024, 4096, 16384, 65536}) {
    std::shared_ptr<const Plan> plan = planOf("sort", 4, cols);
    ASSERT_TRUE(plan);
    const PlanCandidate *chosen = chosenOf(*plan);
    ASSERT_TRUE(chosen && chosen->nanoseconds);
    EXPECT_GT(*chosen->nanoseconds, 3 * before) << cols;
    if (before > 0)
      EXPECT_LT(*chosen->nanoseconds, 16 * before) << cols;
    before = *chosen->nanoseconds;
  }
}

// Long sums are added up in blocks: a loop around the loop.
TEST(Search, LongerRowsArePredictedToTakeLonger) {
  double before = 0;
  for (int64_t cols : {2048, 4096, 8192, 16384, 65536}) {
    std::shared_ptr<const Plan> plan = planOf("row_sum", 4, cols);
    ASSERT_TRUE(plan);
    const PlanCandidate *chosen = chosenOf(*plan);
    ASSERT_TRUE(chosen && chosen->nanoseconds);
    EXPECT_GT(*chosen->nanoseconds, 1.5 * before) << cols;
    before = *chosen->nanoseconds;
    // A sum along the lanes needs several partial results.
    ASSERT_EQ(plan->stages.size(), 1u);
    EXPECT_GE(plan->stages[0].nests[0].unroll, 4) << cols;
  }
}

// The exponentials of such a row do not fit the scratch memory of a program.
TEST(Search, WhatDoesNotFitIsEvaluatedAgain) {
  std::shared_ptr<const Plan> plan = planOf("softmax", 2, 2'200'000'000);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->keeping, Keeping::Required);
}

// Many nests: the search looks at as much as it may, and says where it ended.
TEST(Search, HasABudget) {
  Kernel many =
      kernel("many", "x, y", [](View<const float, 2> x, View<float, 2> y) {
        for (auto row : parallel(dim("rows", x.extent(0)))) {
          Dim cols = dim("cols", x.extent(1));
          Tile v = load(x(row, cols));
          for (int i = 0; i < 60; ++i)
            v = exp(v - max(v, cols));
          store(y(row, cols), v);
        }
      });
  Result<Program> program = Program::fromKernel(many, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  Result<session::Compilation> compiled = session::compileProgram(
      std::move(*program),
      {.dims = rowsOf(8, 96), .isa = Isa::Avx2, .machine = plannedMachine()});
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  const Plan &plan = *compiled->kernel.plan;
  int64_t instructions = 0;
  std::set<std::string> codes;
  for (const PlanCandidate &candidate : plan.candidates) {
    instructions += candidate.instructions;
    codes.insert(candidate.code);
  }
  EXPECT_LT(instructions, 60000);
  EXPECT_TRUE(codes.count("search.size")) << "evaluating again multiplies code";
  double search = 0;
  for (const StageTime &time : compiled->kernel.times)
    if (time.stage == "search")
      search = time.seconds;
  EXPECT_LT(search, 2);
}

// One chain of dependent arithmetic does not keep a core busy; two that take
// turns nearly do, and more are not worth their code.
TEST(Search, ChainsOfFunctionsTakeTurns) {
  std::shared_ptr<const Plan> plan = planOf("gelu_pair", 96, 640);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->stages.size(), 1u);
  ASSERT_EQ(plan->stages[0].nests.size(), 1u);
  EXPECT_EQ(plan->stages[0].nests[0].unroll, 2);
  const PlanCandidate *chosen = chosenOf(*plan);
  ASSERT_TRUE(chosen && chosen->nanoseconds);
  bool isPriced = false;
  for (const PlanCandidate &candidate : plan->candidates)
    if (candidate.what == "1 vectors per iteration" && candidate.nanoseconds) {
      isPriced = true;
      EXPECT_GT(*candidate.nanoseconds, 1.04 * *chosen->nanoseconds);
    }
  EXPECT_TRUE(isPriced);
}

// Lines that are fetched for the next program wait in the nearest cache, beside
// what the program touches, the arrays of all programs included. Without room
// they come from the next cache once more.
TEST(Search, LinesWithoutRoomComeTwice) {
  const Machine &machine = *plannedMachine();
  const Target &target = getTarget(Isa::Avx512);
  constexpr double programs = 100, row = 8192;
  StagePrice price;
  price.cycles = price.throughputCycles = 500;
  price.counts.instructions = 1000;
  price.counts.loadedBytes = row;
  price.nestCycles = {{0, 250}, {1, 250}};
  auto predicted = [&](double ahead, double readByEach) {
    price.counts.prefetchedBytes = ahead;
    return predictTime(
        price, programs,
        {programs * row, programs * row, programs * row, readByEach}, target,
        machine);
  };
  EXPECT_LT(predicted(row, 0).total, predicted(0, 0).total);
  EXPECT_EQ(predicted(row, 0).repeatedReads, 0);
  // The first-level cache has 48 KiB.
  constexpr double large = 30 * 1024;
  EXPECT_EQ(predicted(0, large).repeatedReads, 0);
  EXPECT_DOUBLE_EQ(predicted(row, large).repeatedReads,
                   programs * row / machine.memory[1].read);
  const double half = 0.9 * 48 * 1024 - 2.5 * row;
  EXPECT_NEAR(predicted(row, half).repeatedReads,
              programs * row / 2 / machine.memory[1].read, 1e-6);
}

// A vector that crosses into another line waits for two where they come from a
// cache that is not the nearest, unless a prefetch asked for them; what a
// program reads again crosses near lines.
TEST(Search, CrossedLinesAreWaitedForOnce) {
  const Machine &machine = *plannedMachine();
  const Target &target = getTarget(Isa::Avx512);
  constexpr double programs = 100, row = 8192, lines = row / 64;
  ASSERT_GT(machine.memory[1].crossingCycles, 0);
  StagePrice price;
  price.cycles = price.throughputCycles = 10;
  price.counts.instructions = 1000;
  price.nestCycles = {{0, 10}};
  auto memory = [&](double crossings, double ahead, double loaded,
                    double read) {
    price.counts.crossings = crossings;
    price.counts.prefetchedBytes = ahead;
    price.counts.loadedBytes = loaded;
    return predictTime(price, programs, {read, 0, read, 0}, target, machine)
        .memory;
  };
  const double all = programs * row, waited = programs * lines *
                                              machine.memory[1].crossingCycles /
                                              machine.costs(target).gigahertz;
  EXPECT_NEAR(memory(lines, 0, row, all), memory(0, 0, row, all) + waited,
              1e-6);
  EXPECT_EQ(memory(lines, row, row, all), memory(0, row, row, all));
  EXPECT_NEAR(memory(2 * lines, 0, 2 * row, all),
              memory(0, 0, row, all) + waited, 1e-6);
  // All of it in the nearest cache.
  EXPECT_EQ(memory(lines, 0, row, row), memory(0, 0, row, row));
}

// Two vectors of each of several programs take turns; rows of few vectors have
// one each, since a core looks beyond their end.
TEST(Search, ProgramsTogetherHaveFewVectors) {
  for (auto [cols, vectors] : {std::pair<int64_t, int64_t>{129, 1}, {768, 2}}) {
    std::shared_ptr<const Plan> plan =
        planOf("layer_norm", 129, cols, Isa::Avx512);
    ASSERT_TRUE(plan);
    ASSERT_GT(plan->stages[0].order.together, 1);
    for (const NestPlan &nest : plan->stages[0].nests)
      EXPECT_EQ(nest.unroll, vectors) << cols << " " << nest.roots;
  }
}

// Separate loops read what is kept, and prefetch nothing; those in one pass
// read the inputs twice.
TEST(Search, LoopsInOnePassAreSearchedAgain) {
  std::shared_ptr<const Plan> plan =
      planOf("residual_layer_norm", 129, 768, Isa::Avx512);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->summary(), testing::HasSubstr("in one pass"));
  EXPECT_EQ(plan->stages[0].order.prefetch, Prefetch::Inputs);
}

} // namespace
} // namespace tessera::structuretest
