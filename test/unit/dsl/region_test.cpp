//===- dsl/region_test.cpp - Inferred carries and branches ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "trace_text.h"

namespace tessera {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A kernel of a scalar input and output around a body.
template <typename Body> std::string traced(Body body) {
  return textOf(kernel("k", "x, y, n = 4",
                       [body](View<const Float, 1> x, View<Float, 1> y,
                              Scalar<int64_t> n) { body(x, y, n); }));
}
using In = View<const Float, 1>;
using Out = View<Float, 1>;
using Count = Scalar<int64_t>;

TEST(Regions, AssignmentCarries) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    Tile total = 0.0, untouched = 3.0;
    for (auto i : serial(k))
      total = total + load(x(i)) * untouched;
    store(y(0), total);
  });
  EXPECT_THAT(text,
              ContainsRegex("%[0-9]+ = tile.serial %i_k in \"k\" "
                            "carry\\(%[a-z0-9_]+ = %cst[_0-9]* : f32\\)"));
  EXPECT_EQ(countOf(text, "tile.yield"), 1);
  EXPECT_THAT(text, Not(HasSubstr("unrealized")));
}

TEST(Regions, CarriesUpdateTogether) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    Tile a = load(x(0)), b = load(x(1));
    for (auto i : serial(k)) {
      (void)i;
      Tile old = a;
      a = b;
      b = old;
    }
    store(y(0), a);
    store(y(1), b);
  });
  // The yielded values are the block arguments, swapped.
  EXPECT_THAT(text, ContainsRegex("carry\\((%[a-z0-9]+) = %[0-9]+ : f32, "));
  size_t carry = text.find("carry(");
  std::string first = text.substr(carry + 6, text.find(' ', carry) - carry - 6);
  size_t comma = text.find(", %", carry);
  std::string second =
      text.substr(comma + 2, text.find(' ', comma + 2) - comma - 2);
  EXPECT_THAT(text, HasSubstr("tile.yield " + second + ", " + first));
}

TEST(Regions, StdSwapWorks) {
  std::string text = traced([](In x, Out y, Count) {
    Tile a = load(x(0)), b = load(x(1));
    for (auto i : serial(dim("k", x.extent(0)))) {
      (void)i;
      std::swap(a, b);
    }
    store(y(0), a - b);
  });
  EXPECT_EQ(countOf(text, "tile.yield"), 1);
}

TEST(Regions, NestedLoopsCarryThrough) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0)), j = dim("j", x.extent(0));
    Tile total = 0.0, last = 0.0;
    for (auto a : serial(k)) {
      for (auto b : serial(j))
        total += load(x(a)) * load(x(b));
      last = total;
    }
    store(y(0), total + last);
  });
  EXPECT_EQ(countOf(text, "carry("), 2);
  EXPECT_EQ(countOf(text, "tile.yield"), 2);
}

TEST(Regions, ParallelInsideSerialSeesTheCarry) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0)), p = dim("p", x.extent(0));
    Tile total = 0.0;
    for (auto a : serial(k)) {
      total = total + load(x(a));
      for (auto q : parallel(p))
        store(y(q), total);
    }
  });
  EXPECT_EQ(countOf(text, "carry("), 1);
}

TEST(Regions, ContainersOfTilesCarry) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    std::vector<Tile> sums(3, Tile(0.0));
    for (auto a : serial(k))
      for (Tile &sum : sums)
        sum += load(x(a));
    for (int i = 0; i < 3; ++i)
      store(y(i), sums[i]);
  });
  EXPECT_THAT(text, ContainsRegex("carry\\([^)]*,[^)]*,[^)]*\\)"));
}

TEST(Regions, ScalarCarryIsBroadcastToItsType) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0)), c = dim("c", 8);
    Tile total = full(c, 0.0);
    for (auto a : serial(k))
      total = load(x(a));
    store(y(c), total);
  });
  EXPECT_THAT(text, HasSubstr("tensor<?xf32, [\"c\"]>)"));
}

TEST(Regions, SerialOverBlocks) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    Tile total = 0.0;
    for (auto b : serial(blocks(k, 128))) {
      Tile v = load(x(b));
      total += sum(select(inside(b), v * v, 0), b);
    }
    store(y(0), total);
  });
  EXPECT_THAT(text,
              HasSubstr("tile.serial %i_k_blocks in \"k_blocks\" carry("));
  EXPECT_THAT(text, HasSubstr("over [\"k_block\"]"));
}

TEST(Regions, DataDependentTripCount) {
  std::string text = traced([](In x, Out y, Count n) {
    for (auto r : parallel(dim("r", x.extent(0)))) {
      Tile trips = cast(load(x(r)), DType::I64) + n;
      Tile total = 0;
      for (auto i : serial(dim("k", max(trips, 0))))
        total = total + index(i);
      store(y(r), cast(total, DType::F32));
    }
  });
  EXPECT_THAT(text, HasSubstr("tile.dim \"k\" = %"));
  EXPECT_THAT(text, HasSubstr(" : i64)"));
}

TEST(Regions, PipelineWithStages) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    Tile total = 0.0;
    for (auto i : pipeline(k, 2)) {
      stage("load");
      Tile v = load(x(i));
      stage("compute");
      total += v;
    }
    store(y(0), total);
  });
  EXPECT_THAT(text, HasSubstr("tile.pipeline %i_k in \"k\" carry("));
  EXPECT_THAT(text, HasSubstr("window = 2"));
  EXPECT_THAT(text, HasSubstr("tile.stage \"compute\""));
}

TEST(Regions, ReductionRegion) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    Tile total = 1.0, highest = load(x(0));
    for (auto i : reduction(k)) {
      Tile v = load(x(i));
      total += v * v;
      highest = max(v, highest);
    }
    store(y(0), total + highest);
  });
  EXPECT_THAT(text, ContainsRegex("tile.fold %i_k in \"k\" unordered init\\("));
  EXPECT_THAT(text, HasSubstr("combine"));
  // The initial values take part once, outside: the fold starts from the
  // identities.
  EXPECT_THAT(text, HasSubstr("0xFF800000"));
  EXPECT_EQ(countOf(text, "arith.maximumf"), 2);
}

TEST(Regions, OrderedReductionStartsFromTheInitialValue) {
  std::string text = traced([](In x, Out y, Count) {
    Tile total = 1.0;
    for (auto i : reduction(dim("k", x.extent(0)), Order::Left))
      total = total + load(x(i));
    store(y(0), total);
  });
  EXPECT_THAT(text, HasSubstr("\"k\" left init(%cst"));
  EXPECT_EQ(countOf(text, "arith.addf"), 1);
}

TEST(Regions, FoldWithSeveralValues) {
  std::string text = traced([](In x, Out y, Count) {
    Dim k = dim("k", x.extent(0));
    auto result = fold(
        k, {0.0, 0.0}, Order::Tree,
        [&](Coord i) {
          Tile v = load(x(i));
          return std::vector<Tile>{v, v * v};
        },
        [](std::span<const Tile> a, std::span<const Tile> b) {
          return std::vector<Tile>{a[0] + b[0], max(a[1], b[1])};
        });
    store(y(0), result[0] / result[1]);
  });
  EXPECT_THAT(text, HasSubstr("tree init("));
  EXPECT_THAT(text, HasSubstr(" : f32, f32"));
}

TEST(Regions, BranchesInferResults) {
  std::string text = traced([](In x, Out y, Count) {
    Tile v = load(x(0)), sign, other = 1.0;
    if_(
        v > 0, [&] { sign = 1.0; },
        [&] {
          sign = -1.0;
          other = v;
        });
    store(y(0), sign * other);
    if_(v == 0, [&] { store(y(1), v); });
  });
  EXPECT_THAT(text, ContainsRegex("%[0-9]+:2 = tile.if %[0-9]+ -> \\(f32, "
                                  "f32\\)"));
  EXPECT_EQ(countOf(text, "else"), 1);
}

TEST(Regions, BranchInsideLoop) {
  std::string text = traced([](In x, Out y, Count) {
    Tile best = -1.0;
    for (auto i : serial(dim("k", x.extent(0)))) {
      Tile v = load(x(i));
      if_(v > best, [&] { best = v; });
    }
    store(y(0), best);
  });
  EXPECT_THAT(text, HasSubstr("carry("));
  EXPECT_THAT(text, HasSubstr("tile.if"));
}

} // namespace
} // namespace tessera
