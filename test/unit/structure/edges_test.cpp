//===- test/unit/structure/edges_test.cpp - Bodies of programs ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that touch no edge of an array have code without checks, where there
// are such programs and others.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "driver/program.h"
#include "plan/plan_record.h"
#include "target/target.h"
#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const PlanChoices> choose(Edges edges) {
  auto choices = std::make_shared<PlanChoices>();
  choices->edges[0] = edges;
  return choices;
}

Emitted gemm(int64_t m, int64_t n, int64_t k, Isa isa, Edges edges) {
  return emit(*kernels::findOperator("gemm"),
              {.dims = {{"m", m}, {"n", n}, {"k", k}},
               .isa = isa,
               .choices = choose(edges)});
}

/// A block and its neighbours on either side: every vector may hang over.
const char *const neighbours = R"(
!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>
!block = tensor<?xf32, ["block"]>
module attributes {tile.version = 1 : i64} {
tile.kernel @neighbours(%x: !in, %y: !out) {
  %n = tile.extent %y, 0 : !out
  %one = arith.constant 1 : index
  %size = arith.constant 256 : index
  %most = arith.constant 255 : index
  %more = arith.addi %n, %most : index
  %count = tile.div %more, %size : index
  tile.dim "blocks" = %count
  tile.dim "block" = %size
  tile.parallel (%p) in ["blocks"] {
    %o = arith.muli %p, %size : index
    %before = arith.subi %o, %one : index
    %after = arith.addi %o, %one : index
    %a = tile.load %x["block" + %before] : !in -> !block
    %b = tile.load %x["block" + %after] : !in -> !block
    %c = arith.addf %a, %b : !block
    tile.store %c, %y["block" + %o] : !block, !out
  }
}
}
)";

/// The text of loops, and the plan.
struct Compiled {
  std::string loops;
  std::shared_ptr<const Plan> plan;
};

Compiled compile(const Result<Program> &program,
                 std::vector<std::vector<int64_t>> extents, Isa isa,
                 std::shared_ptr<const PlanChoices> choices = {}) {
  Compiled result;
  EXPECT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.extents = std::move(extents);
  request.isa = isa;
  request.choices = std::move(choices);
  request.machine = plannedMachine();
  request.useTunedPlans = false;
  request.stageText = [&](const char *stage, const std::string &text) {
    if (std::string_view(stage) == "loops")
      result.loops = text;
  };
  auto compiled = program->compile(request);
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  if (compiled)
    result.plan = compiled->plan;
  return result;
}

/// The two bodies of programs in the text of loops: the region after the branch
/// whose share is known, and the one after its "else".
struct Bodies {
  std::string inside, edge;
};

Bodies bodiesOf(const std::string &loops) {
  Bodies bodies;
  size_t end = loops.find("} {tessera.share");
  if (end == std::string::npos)
    return bodies;
  size_t line = loops.rfind('\n', end) + 1;
  const std::string indent = loops.substr(line, end - line);
  size_t middle = loops.rfind("\n" + indent + "} else {", end);
  size_t begin = loops.rfind("\n" + indent + "scf.if", middle);
  EXPECT_NE(begin, std::string::npos);
  bodies.inside = loops.substr(begin, middle - begin);
  bodies.edge = loops.substr(middle, end - middle);
  return bodies;
}

const char *const masks = R"(masked\.(load|store))";
const char *const tests = R"(arith\.select|arith\.cmpi|arith\.minsi)";

TEST(EdgeCode, ProgramsInsideCheckNothing) {
  for (Isa isa : hostIsas()) {
    if (!getTarget(isa).hasMaskedAccess)
      continue;
    Emitted code = gemm(130, 131, 32, isa, Edges::Apart);
    EXPECT_THAT(code.plan, HasSubstr("edges apart")) << name(isa);
    Bodies product = bodiesOf(code["loops"]);
    EXPECT_FALSE(linesWith(product.inside, "math.fma").empty());
    Bodies sums = bodiesOf(compile(Program::fromText(neighbours, "k.mlir"),
                                   {{1000}, {1000}}, isa, choose(Edges::Apart))
                               .loops);
    EXPECT_FALSE(linesWith(sums.inside, "arith.addf").empty());
    for (const Bodies &bodies : {product, sums}) {
      EXPECT_THAT(linesWith(bodies.inside, masks), testing::IsEmpty())
          << name(isa);
      EXPECT_THAT(linesWith(bodies.inside, tests), testing::IsEmpty())
          << name(isa);
      EXPECT_FALSE(linesWith(bodies.edge, masks).empty()) << name(isa);
    }
  }
}

// Rows at an edge are read without a test for each element, and whole vectors
// without a mask: of vectors only the one that hangs over has one.
TEST(EdgeCode, WhatIsSeenIsNotTested) {
  Emitted code = gemm(130, 131, 32, Isa::Avx2, Edges::Checked);
  EXPECT_THAT(code["loops"], Not(HasSubstr("tessera.share")));
  EXPECT_THAT(linesWith(code["loops"], R"(arith\.select)"), testing::IsEmpty());
  EXPECT_FALSE(linesWith(code["loops"], R"(arith\.minsi)").empty());
  // In the loops over k of single vectors, of a group of rows and of what is
  // left of a whole block and of the last one.
  EXPECT_EQ(linesWith(code["loops"], R"(masked\.load)").size(), 3u);
}

TEST(EdgeCode, NothingIsDoubledWhereProgramsAreAlike) {
  // No program touches an edge; all do.
  for (auto [m, n] : {std::pair(128, 128), std::pair(40, 50)}) {
    Emitted code = gemm(m, n, 32, Isa::Avx2, Edges::Apart);
    EXPECT_THAT(code.plan, Not(HasSubstr("edges apart")));
    EXPECT_THAT(code["loops"], Not(HasSubstr("tessera.share")));
  }
}

// Where most of the time goes into checks, the programs that need none are set
// apart; not where there are few checks.
TEST(EdgeCode, IsSearched) {
  Compiled sums = compile(Program::fromText(neighbours, "k.mlir"),
                          {{4000}, {4000}}, Isa::Avx2);
  ASSERT_TRUE(sums.plan);
  EXPECT_THAT(sums.plan->summary(), HasSubstr("edges apart"));
  EXPECT_EQ(sums.plan->stages[0].order.interior, 14);
  bool isListed = false;
  for (const PlanCandidate &candidate : sums.plan->candidates)
    isListed |= candidate.what == "programs that touch no edge apart";
  EXPECT_TRUE(isListed);
  Emitted product =
      emit(*kernels::findOperator("gemm"),
           {.dims = {{"m", 513}, {"n", 257}, {"k", 129}}, .isa = Isa::Avx2});
  EXPECT_THAT(product.plan, Not(HasSubstr("edges apart")));
}

// What is read where data says is checked in every program.
TEST(EdgeCode, IndicesFromDataStayChecked) {
  Kernel taken = kernel(
      "taken", "x, ids, y",
      [](View<const float, 1> x, View<const int64_t, 1> ids, View<float, 1> y) {
        Dim n = dim("n", y.extent(0));
        for (auto b : parallel(blocks(n, 64)))
          store(y(b), load(x(load(ids(b)))));
      });
  Bodies bodies =
      bodiesOf(compile(Program::fromKernel(taken, {}), {{9}, {200}, {200}},
                       Isa::Avx2, choose(Edges::Apart))
                   .loops);
  EXPECT_FALSE(linesWith(bodies.inside, "arith.cmpi ult").empty());
}

} // namespace
} // namespace tessera::structuretest
