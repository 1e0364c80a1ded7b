//===- dsl/language_test.cpp - What each construct traces to --------------===//
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

TEST(Language, TenLineKernel) {
  Kernel scale = kernel(
      "scale", "x, y, factor = 2",
      [](View<const Float, 1> x, View<Float, 1> y, Scalar<Float> factor) {
        Dim n = dim("n", x.extent(0));
        for (auto i : parallel(n))
          store(y(i), load(x(i)) * factor + 1);
      });
  std::string text = textOf(scale, {.storage = DType::BF16});
  EXPECT_THAT(text, HasSubstr("tile.version = 1"));
  EXPECT_THAT(text, HasSubstr("tile.kernel @scale(%x: !tile.view<bf16, 1, "
                              "read>, %y: !tile.view<bf16, 1, write>, %factor: "
                              "f32 = 2.000000e+00)"));
  EXPECT_THAT(text, HasSubstr("tile.parallel (%i_n) in [\"n\"]"));
  EXPECT_THAT(text, HasSubstr("arith.mulf"));
  EXPECT_THAT(text, HasSubstr("tile.store"));
}

TEST(Language, FloatFollowsTheStorageType) {
  Kernel copy =
      kernel("copy", "x, s, y",
             [](View<const Float, 1> x, Scalar<Float> s, View<Float, 1> y) {
               Dim n = dim("n", x.extent(0));
               store(y(n), load(x(n)) + s);
             });
  EXPECT_THAT(textOf(copy, {.storage = DType::F64}), HasSubstr("%s: f64"));
  EXPECT_THAT(textOf(copy, {.storage = DType::F16}), HasSubstr("%s: f32"));
  EXPECT_THAT(textOf(copy, {.storage = DType::F8E5M2}),
              HasSubstr("!tile.view<f8E5M2, 1, read>"));
}

TEST(Language, ConcreteElementTypes) {
  Kernel k = kernel("types", "a, b, c, d, e, f",
                    [](View<const bool, 1> a, View<const uint8_t, 1> b,
                       View<const BF16, 1> c, View<double, 1> d,
                       View<int32_t, 1> e, View<F8E4M3, 1> f) {
                      Dim n = dim("n", a.extent(0));
                      Tile wide = cast(load(b(n)), DType::F64);
                      store(d(n), select(load(a(n)), wide, 0.5));
                      store(e(n), cast(load(b(n)), DType::I32));
                      store(f(n), load(c(n)));
                    });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("!tile.view<ui8, 1, read>"));
  EXPECT_THAT(text, HasSubstr("!tile.view<f8E4M3FN, 1, write>"));
  EXPECT_THAT(text, HasSubstr("unsigned_from"));
}

TEST(Language, BroadcastIsByIdentity) {
  Kernel k = kernel(
      "outer", "a, b, y",
      [](View<const Float, 1> a, View<const Float, 1> b, View<Float, 2> y) {
        Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(0));
        Tile product = load(a(m)) * load(b(n));
        // The store reorders by identity, too.
        store(y(n, m), product + load(a(m)));
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("tensor<?xf32, [\"m\"]> -> tensor<?x?xf32, "
                              "[\"m\", \"n\"]>"));
  EXPECT_THAT(text, HasSubstr("tile.transpose"));
}

TEST(Language, DimensionNamesAreMadeUnique) {
  Kernel k = kernel("names", "x", [](View<const Float, 1> x) {
    Dim a = dim("n", x.extent(0)), b = dim("n", x.extent(0));
    EXPECT_EQ(a.name(), "n");
    EXPECT_EQ(b.name(), "n_1");
    Tile outer = load(x(a)) * load(x(b));
    EXPECT_EQ(outer.dims(), (std::vector<std::string>{"n", "n_1"}));
    EXPECT_EQ(outer.dtype(), DType::F32);
  });
  textOf(k);
}

TEST(Language, AffineSubscripts) {
  Kernel k =
      kernel("affine", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim half = dim("half", x.extent(0) / 2);
        Tile h = half.size();
        store(y(2 * half + 1), load(x(half + h)) - load(x(2 * half + 0)));
        store(y(half * 3 - 2), load(x((h - 1) + -1 * half)));
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("[\"half\" * 2 + %"));
  EXPECT_THAT(text, HasSubstr("[\"half\" * 3 + %"));
  EXPECT_THAT(text, HasSubstr("[\"half\" * -1 + %"));
  EXPECT_THAT(text, HasSubstr("[\"half\" + %"));
}

TEST(Language, BlocksHangOver) {
  Kernel k =
      kernel("blocks", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto [i, b] : parallel(rows, blocks(cols, 64))) {
          Tile v = load(x(i, b), {.fill = -1.0});
          v = select(inside(b), v, 0);
          store(y(b), v + cast(index(b), v.dtype()));
        }
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("tile.parallel (%i_rows, %i_cols_blocks) in "
                              "[\"rows\", \"cols_blocks\"]"));
  EXPECT_THAT(text, HasSubstr("[%i_rows, \"cols_block\" + %"));
  EXPECT_THAT(text, HasSubstr("tile.iota \"cols_block\""));
  EXPECT_THAT(text, HasSubstr("fill("));
}

TEST(Language, GatherAndScatter) {
  Kernel k = kernel(
      "move", "ids, table, y, counts",
      [](View<const int32_t, 1> ids, View<const Float, 2> table,
         View<Float, 2> y, View<int64_t, 1> counts) {
        Dim n = dim("n", ids.extent(0)), d = dim("d", table.extent(1));
        Tile at = load(ids(n));
        store(y(n, d), load(table(at, d), {.fill = 0.0, .mask = at >= 0}));
        scatterAdd(counts(at), 1);
        Tile column = load(table(0, d));
        Tile picked = gather(column, iota(n) % 4, d, -1);
        store(y(n, 0), picked);
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("tile.scatter add"));
  EXPECT_THAT(text, HasSubstr("tile.gather"));
  EXPECT_THAT(text, HasSubstr("tensor<?xi64, [\"n\"]>"));
}

TEST(Language, Elementwise) {
  Kernel k = kernel(
      "all", "x, n, y, z",
      [](View<const Float, 1> x, View<const uint32_t, 1> n, View<Float, 1> y,
         View<uint32_t, 1> z) {
        Dim i = dim("i", x.extent(0));
        Tile v = load(x(i));
        Tile f = exp(v) + exp2(v) + expm1(v) + log(v) + log2(v) + log1p(v) +
                 tanh(v) + erf(v) + sin(v) + cos(v) + sqrt(v) + rsqrt(v) +
                 sigmoid(v) + abs(v) + floor(v) + ceil(v) + round(v) + trunc(v);
        f = fma(v, f, 1) - maxNum(v, 0) * minNum(v, 1) / max(v, f) + min(v, -v);
        f += roundTo(f, DType::BF16);
        store(y(i), select((v < f & v != 0) | !(v >= 1), f, 0));
        Tile u = load(n(i));
        u = (u / 3 + u % 5) ^ ((u << 2) | (u >> 1)) ^ ~u;
        store(z(i), select(u > 7, max(u, 9), min(-u, 3)));
      });
  std::string text = textOf(k);
  for (const char *op :
       {"math.exp ",      "math.exp2",      "math.expm1",     "math.log ",
        "math.log2",      "math.log1p",     "math.tanh",      "math.erf",
        "math.sin",       "math.cos",       "math.sqrt",      "math.rsqrt",
        "tile.sigmoid",   "math.absf",      "math.floor",     "math.ceil",
        "math.roundeven", "math.trunc",     "math.fma",       "tile.max_num",
        "tile.min_num",   "arith.maximumf", "arith.minimumf", "arith.negf",
        "tile.round_to",  "arith.cmpf une", "arith.cmpf olt", "arith.xori",
        "arith.maxui",    "arith.minui",    "arith.cmpi ugt"})
    EXPECT_THAT(text, HasSubstr(op));
  EXPECT_THAT(text, ContainsRegex("tile.div [^\n]* unsigned"));
  EXPECT_THAT(text, ContainsRegex("tile.shr [^\n]* unsigned"));
}

TEST(Language, ReductionsAndScans) {
  Kernel k = kernel(
      "reduce", "x, y, s",
      [](View<const Float, 2> x, View<Float, 1> y, View<Float, 0> s) {
        Dim r = dim("r", x.extent(0)), c = dim("c", x.extent(1));
        Tile v = load(x(r, c));
        store(s(), sum(v, {r, c}, Order::Tree) + prod(max(v, c), r) +
                       mean(min(v, c, Order::Left), r));
        Tile best = reduce(v, c, 0, [](Tile a, Tile b) { return a + b * 2; });
        auto pair =
            reduce({v, iota(c)}, c, {0, -1},
                   [](std::span<const Tile> a, std::span<const Tile> b) {
                     Tile take = b[0] > a[0];
                     return std::vector<Tile>{select(take, b[0], a[0]),
                                              select(take, b[1], a[1])};
                   });
        store(y(r), best + pair[0] + cast(pair[1], v.dtype()));
        Tile running = cumsum(v, c, {.exclusive = true, .reverse = true});
        Tile found = select(any(running > 1, c) & !all(v == v, c),
                            cast(argMax(v, c) - argMin(v, c), v.dtype()), 0);
        store(y(r), found + max(cummax(cumprod(v, c), c), c));
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("tile.reduce add tree"));
  EXPECT_THAT(text, HasSubstr("over [\"r\", \"c\"]"));
  EXPECT_THAT(text, HasSubstr("tile.reduce min left"));
  EXPECT_EQ(countOf(text, "tile.reduce custom unordered"), 2);
  EXPECT_THAT(text, HasSubstr("exclusive"));
  EXPECT_THAT(text, ContainsRegex("tile.arg_reduce +max"));
  EXPECT_THAT(text, HasSubstr("tile.reduce or unordered"));
}

TEST(Language, ContractSortReshape) {
  Kernel k = kernel(
      "order", "a, b, y",
      [](View<const Float, 2> a, View<const Float, 2> b, View<Float, 2> y) {
        Dim m = dim("m", a.extent(0)), d = dim("d", a.extent(1));
        Dim n = dim("n", b.extent(1)), k = dim("k", 4);
        Tile acc = full({n, m}, 0.0);
        Tile c = contract(load(a(m, d)), load(b(d, n)), d,
                          {.acc = acc, .order = Order::Left});
        EXPECT_EQ(c.dims(), (std::vector<std::string>{"n", "m"}));
        Sorted top = topK(c, n, k);
        store(y(m, k), top.values + cast(top.indices, c.dtype()));
        Dim flat = dim("flat", m.size() * n.size());
        store(y(0, flat), reshape(transpose(c, {m, n}), flat));
        store(y(m, n), broadcast(sum(c, n), {m, n}));
      });
  std::string text = textOf(k);
  EXPECT_THAT(text, HasSubstr("tile.contract"));
  EXPECT_THAT(text, HasSubstr("order left"));
  EXPECT_THAT(text, HasSubstr("descending"));
  EXPECT_THAT(text, HasSubstr("tile.reshape"));
}

TEST(Language, StatisticsAreCentered) {
  Kernel k =
      kernel("stats", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Statistics s = statistics(load(x(n)), n);
        store(y(n), s.deviation * rsqrt(s.variance + 1e-5) + s.mean);
      });
  EXPECT_EQ(countOf(textOf(k), "tile.reduce add"), 3);
}

TEST(Language, PromisedBoundsAndRankZero) {
  Kernel k =
      kernel("edge", "x, s", [](View<const Float, 1> x, View<Float, 0> s) {
        store(s(), load(x(3), {.promised = true}), {.promised = true});
      });
  EXPECT_EQ(countOf(textOf(k), "promised"), 2);
}

TEST(Language, TunablesAndSchedule) {
  Kernel k =
      kernel("tuned", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        for (auto b : parallel(blocks(n, tunable("BN", {64, 128}))))
          store(y(b), load(x(b)));
      });
  EXPECT_THAT(textOf(k), HasSubstr("arith.constant 64 : index"));
  EXPECT_THAT(textOf(k, {.tunables = {{"BN", 128}}}),
              HasSubstr("BN = {candidates = array<i64: 64, 128>, value = 128 : "
                        "i64}"));
  Result<std::vector<TunableInfo>> tunables = k.tunables();
  ASSERT_TRUE(tunables.ok());
  ASSERT_EQ(tunables->size(), 1u);
  EXPECT_EQ((*tunables)[0].candidates, (std::vector<int64_t>{64, 128}));
  Result<std::string> unknown = k.text({.tunables = {{"BM", 1}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().family, ErrorFamily::Usage);

  EXPECT_THAT(textOf(k), Not(HasSubstr("tile.schedule")));
  Kernel pinned = k.schedule({.vectorAxis = "n",
                              .lanes = 16,
                              .tileSizes = {{"n", 64}},
                              .tail = "mask"});
  std::string text = textOf(pinned);
  EXPECT_THAT(text, HasSubstr("tile.schedule = {lanes = 16 : i64, tail = "
                              "\"mask\", tile_sizes = {n = 64 : i64}, "
                              "vector_axis = \"n\"}"));
  EXPECT_TRUE(k.schedule().empty());
}

} // namespace
} // namespace tessera
