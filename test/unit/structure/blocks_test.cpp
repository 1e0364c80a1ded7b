//===- test/unit/structure/blocks_test.cpp - Loops over blocks ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What programs that go through their data in blocks are made of: contractions
// with sums in the lanes, values that are kept before a loop, results that are
// computed where they are wanted, loops and branches that vanish.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "tessera/dsl.h"

#include <gmock/gmock.h>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Emitted emitted(const Kernel &kernel, kernels::Dims dims) {
  auto program = Program::fromKernel(kernel, {});
  EXPECT_TRUE(program.ok()) << program.error().str();
  if (!program.ok())
    return {};
  return emit(std::move(*program), {.dims = std::move(dims), .isa = Isa::Avx2});
}

Emitted attention(int64_t group, int64_t queries, int64_t keys) {
  return emit(*kernels::findOperator("attention"), {.dims = {{"b", 1},
                                                             {"hq", 2 * group},
                                                             {"hkv", 2},
                                                             {"q", queries},
                                                             {"k", keys},
                                                             {"d", 64},
                                                             {"dv", 64}},
                                                    .isa = Isa::Avx2});
}

// Products that are adjacent along the reduced dimension: eight sums come out
// of the lanes of eight vectors at once, as one vector.
TEST(Blocks, RowsOfSumsAreAddedUpTogether) {
  Kernel product = kernel(
      "product", "a, x, y",
      [](View<const float, 2> a, View<const float, 1> x, View<float, 1> y) {
        Dim rows = dim("rows", a.extent(0)), cols = dim("cols", a.extent(1));
        store(y(rows), contract(load(a(rows, cols)), load(x(cols)), cols));
      });
  Emitted code = emitted(product, rowsOf(64, 96));
  EXPECT_THAT(code.plan, HasSubstr("+cols (cols x8, rows x8)"));
  EXPECT_THAT(linesWith(code["loops"], "llvm.extractelement"), IsEmpty());
  // A row alone, or the rest of them, has a sum like any other.
  EXPECT_THAT(emitted(product, rowsOf(1, 96)).plan,
              HasSubstr("+cols (cols x8 x"));
}

TEST(Blocks, WhatALoopWouldRepeatIsKeptBeforeIt) {
  Kernel repeated = kernel("repeated", "x, y, z, scale",
                           [](View<const float, 1> x, View<const float, 2> y,
                              View<float, 1> z, Scalar<float> scale) {
                             Dim rows = dim("rows", y.extent(0)),
                                 cols = dim("cols", x.extent(0));
                             Tile scaled = load(x(cols)) * scale;
                             Tile most = full(cols, 0.0);
                             for (auto i : serial(rows))
                               most = max(most, scaled - load(y(i, cols)));
                             store(z(cols), most);
                           });
  std::string plan = emitted(repeated, rowsOf(64, 96)).plan;
  EXPECT_THAT(plan, HasSubstr("one program; keep over cols"));
}

// The contraction's accumulator and its result are the two memories of the
// carried tile.
TEST(Blocks, CarriedResultsAreNotCopied) {
  Kernel carried = kernel(
      "carried", "a, b, c",
      [](View<const float, 2> a, View<const float, 2> b, View<float, 2> c) {
        Dim m = dim("rows", c.extent(0)), n = dim("cols", c.extent(1));
        Dim k = dim("k", a.extent(1)), step = dim("step", 8);
        dim("l", b.extent(0));
        Tile sum = full({m, n}, 0.0);
        for (auto i : serial(dim("steps", k.size() / 8))) {
          Tile at = index(i) * 8;
          sum = contract(load(a(m, step + at)), load(b(step + at, n)), step,
                         {.acc = sum});
        }
        store(c(m, n), sum);
      });
  Emitted code =
      emitted(carried, {{"rows", 16}, {"cols", 16}, {"k", 32}, {"l", 32}});
  EXPECT_THAT(linesWith(code["loops"], "intr.memcpy"), IsEmpty());
}

TEST(Blocks, LoopsWithoutIterationsAndDecidedBranchesVanish) {
  auto contractions = [](const Emitted &code) {
    size_t count = 0;
    for (size_t at = 0;
         (at = code.plan.find("contract", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  // Whole blocks alone, whole blocks and a rest, a rest alone.
  EXPECT_EQ(contractions(attention(4, 1, 512)), 2u);
  EXPECT_EQ(contractions(attention(4, 1, 515)), 4u);
  EXPECT_EQ(contractions(attention(4, 1, 1)), 2u);
}

// Tiles in memory fill the lanes along the dimension that they lie along: that
// of the queries where there are many, and of the keys where a contraction has
// its sums along them.
TEST(Blocks, LanesFollowTilesInMemory) {
  EXPECT_THAT(attention(1, 64, 512).plan,
              HasSubstr("reduce max over group, query, +key (query x8"));
  EXPECT_THAT(attention(4, 1, 512).plan,
              HasSubstr("reduce max over group, query, +key (key x8"));
}

// Keys that the heads of a group read one after another come while they are
// read; what is read once is left to the processor's own prefetchers.
TEST(Blocks, RowsThatAreReadRepeatedlyArePrefetched) {
  EXPECT_THAT(linesWith(attention(4, 1, 512)["loops"], "intr.prefetch"),
              Not(IsEmpty()));
  EXPECT_THAT(linesWith(attention(1, 1, 512)["loops"], "intr.prefetch"),
              IsEmpty());
}

// What a contraction carries stays in registers: the constants of exp, which
// another loop of the same block needs, are not held across it.
TEST(Blocks, TilesOfContractionsAreNotSpilled) {
  for (const auto &[queries, keys] :
       {std::pair(1, 2048), std::pair(512, 512)}) {
    Emitted code =
        emit(*kernels::findOperator("attention"), {.dims = {{"b", 1},
                                                            {"hq", 8},
                                                            {"hkv", 2},
                                                            {"q", queries},
                                                            {"k", keys},
                                                            {"d", 64},
                                                            {"dv", 64}},
                                                   .isa = Isa::Avx512});
    EXPECT_THAT(
        linesWith(code["asm"], "vmov[a-z]*\\s+%zmm[0-9]+, -?[0-9]*\\(%rsp"),
        IsEmpty());
  }
}

// The rows of one block are all there is of a dense array's: a copy would lie
// as they do.
TEST(Blocks, WholeRowsAreNotCopied) {
  EXPECT_THAT(attention(1, 64, 512).plan, Not(HasSubstr("packed")));
}

} // namespace
} // namespace tessera::structuretest
