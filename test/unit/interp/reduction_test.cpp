//===- reduction_test.cpp - Reductions, scans, order, contraction -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Identities on every type, the four orders to the last bit, custom combiners,
// total order, contraction.
//
//===----------------------------------------------------------------------===//

#include "fixture.h"

#include <functional>

using namespace tessera;
using namespace tessera::interp;
using namespace tessera::interp::test;

namespace {

/// Runs `op`, which turns %a (TILE over "n") into %r (RESULT: "i64" and the
/// like for a scalar, or TILE), and returns all elements of %r.
template <typename R, typename T>
std::vector<R> along(std::string op, std::vector<T> x, bool scalar) {
  auto compute = [](std::string name) {
    return name[0] == 'u' ? name.substr(1) : name;
  };
  std::string in = spelling<T>(), out = spelling<R>();
  std::string tile = "tensor<?x" + compute(in) + ", [\"n\"]>";
  std::string result =
      scalar ? compute(out) : "tensor<?x" + compute(out) + ", [\"n\"]>";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = op.find(from)) != std::string::npos;)
      op.replace(at, from.size(), to);
  };
  replace("TILE", tile);
  replace("RESULT", result);
  replace("ELEMENT", compute(in));
  std::string r = "!tile.view<" + in + ", 1, read>";
  std::string w = "!tile.view<" + out + ", 1, write>";
  Program program("%x: " + r + ", %y: " + w,
                  "%e = tile.extent %x, 0 : " + r + "\ntile.dim \"n\" = %e\n" +
                      "%zero = arith.constant 0 : index\n%a = tile.load "
                      "%x[\"n\"] : " +
                      r + " -> " + tile + "\n" + op + "\ntile.store %r, %y[" +
                      (scalar ? "%zero" : "\"n\"") + "] : " + result + ", " +
                      w);
  std::vector<R> y(scalar ? 1 : x.size());
  program.check({view(x), view(y)});
  return y;
}

template <typename T>
T reduce(const std::string &combiner, const std::string &order,
         std::vector<T> x) {
  return along<T>("%r = tile.reduce " + combiner + " " + order +
                      " %a over [\"n\"] : TILE -> RESULT",
                  x, true)[0];
}

/// combine(a, b) = 2a + b shows the order.
const char *const skewed = R"( combine {
  ^bb0(%p: ELEMENT, %q: ELEMENT):
    %d = arith.addf %p, %p : ELEMENT
    %s = arith.addf %d, %q : ELEMENT
    tile.yield %s : ELEMENT
  })";

float reduceSkewed(const std::string &order, std::vector<float> x) {
  return along<float>("%id = arith.constant 77.0 : ELEMENT\n%r = tile.reduce "
                      "custom " +
                          order +
                          " %a identity(%id : ELEMENT) over [\"n\"] : TILE -> "
                          "RESULT" +
                          skewed,
                      x, true)[0];
}

float c(float a, float b) { return 2 * a + b; }

TEST(Reduce, OrdersOfACustomCombiner) {
  std::vector<float> x{1, 3, 5, 7, 11, 13};
  EXPECT_EQ(reduceSkewed("left", x), c(c(c(c(c(1, 3), 5), 7), 11), 13));
  EXPECT_EQ(reduceSkewed("unordered", x), c(c(c(c(c(1, 3), 5), 7), 11), 13));
  EXPECT_EQ(reduceSkewed("right", x), c(1, c(3, c(5, c(7, c(11, 13))))));
  EXPECT_EQ(reduceSkewed("tree", x), c(c(c(1, 3), c(5, 7)), c(11, 13)));
  x.push_back(17);
  EXPECT_EQ(reduceSkewed("tree", x), c(c(c(1, 3), c(5, 7)), c(c(11, 13), 17)));
  for (const char *order : {"left", "right", "tree", "unordered"}) {
    EXPECT_EQ(reduceSkewed(order, {}), 77);
    EXPECT_EQ(reduceSkewed(order, {4}), 4) << "the identity takes no part";
  }
}

float tree(const std::vector<float> &x, size_t first, size_t n) {
  if (n == 1)
    return x[first];
  size_t h = 1;
  while (h * 2 < n)
    h *= 2;
  return tree(x, first, h) + tree(x, first + h, n - h);
}

TEST(Reduce, OrdersOfASum) {
  for (size_t n : {1, 2, 3, 7, 8, 9, 31, 100}) {
    std::vector<float> x;
    for (size_t i = 0; i < n; ++i)
      x.push_back(1.0f / static_cast<float>(3 * i + 1) *
                  static_cast<float>(i % 2 ? -1 : 1000));
    float left = x[0], right = x[n - 1];
    for (size_t i = 1; i < n; ++i) {
      left += x[i];
      right = x[n - 1 - i] + right;
    }
    EXPECT_EQ(reduce("add", "left", x), left);
    EXPECT_EQ(reduce("add", "right", x), right);
    EXPECT_EQ(reduce("add", "tree", x), tree(x, 0, n));
  }
}

template <typename T> class Identities : public testing::Test {};
using AllTypes = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t,
                                uint16_t, uint32_t, uint64_t, float, double>;
TYPED_TEST_SUITE(Identities, AllTypes);

TYPED_TEST(Identities, EmptyReductions) {
  using T = TypeParam;
  using L = std::numeric_limits<T>;
  constexpr bool real = std::is_floating_point_v<T>;
  std::string u = std::is_unsigned_v<T> ? "u" : "";
  T least = real ? -L::infinity() : L::min();
  T most = real ? L::infinity() : L::max();
  for (const char *order : {"left", "right", "tree", "unordered"}) {
    expectSame<T>({reduce<T>("add", order, {})}, {0});
    expectSame<T>({reduce<T>("mul", order, {})}, {1});
    expectSame<T>({reduce<T>(u + "max", order, {})}, {least});
    expectSame<T>({reduce<T>(u + "min", order, {})}, {most});
    if constexpr (real) {
      expectSame<T>({reduce<T>("max_num", order, {})}, {least});
      expectSame<T>({reduce<T>("min_num", order, {})}, {most});
    } else {
      expectSame<T>({reduce<T>("and", order, {})}, {static_cast<T>(-1)});
      expectSame<T>({reduce<T>("or", order, {})}, {0});
      expectSame<T>({reduce<T>("xor", order, {})}, {0});
    }
  }
}

TYPED_TEST(Identities, MaximumOfSmallValues) {
  using T = TypeParam;
  using L = std::numeric_limits<T>;
  std::string u = std::is_unsigned_v<T> ? "u" : "";
  EXPECT_EQ(reduce<T>(u + "max", "tree", {L::lowest(), L::lowest()}),
            L::lowest());
  EXPECT_EQ(reduce<T>(u + "min", "left", {L::max(), L::max()}), L::max());
  EXPECT_EQ(reduce<T>("add", "left", {1, 2, 3, 4}), T(10));
  EXPECT_EQ(reduce<T>("mul", "right", {1, 2, 3, 4}), T(24));
}

TEST(Reduce, NanAndSignedZero) {
  expectSame<float>({reduce<float>("max", "left", {1, NaN, 2})}, {NaN});
  expectSame<float>({reduce<float>("min", "tree", {1, NaN, 2})}, {NaN});
  expectSame<float>({reduce<float>("max_num", "left", {1, NaN, 2})}, {2});
  expectSame<float>({reduce<float>("min_num", "left", {NaN, NaN})}, {NaN});
  expectSame<float>({reduce<float>("max", "left", {-0.0f, 0.0f})}, {0.0f});
  expectSame<float>({reduce<float>("add", "left", {-0.0f, -0.0f})}, {-0.0f});
  expectSame<float>({reduce<float>("max", "left", {-Inf, -Inf})}, {-Inf});
}

TEST(Reduce, AnyAndAll) {
  auto run = [](const std::string &combiner, std::vector<float> x) {
    return along<int32_t>(
        "%c = tile.cast %a : TILE -> tensor<?xi1, [\"n\"]>\n%t = tile.reduce " +
            combiner +
            " unordered %c over [\"n\"] : tensor<?xi1, [\"n\"]> -> i1\n%r = "
            "tile.cast %t : i1 -> RESULT",
        x, true)[0];
  };
  EXPECT_EQ(run("or", {}), 0);
  EXPECT_EQ(run("and", {}), 1);
  EXPECT_EQ(run("or", {0, 2}), 1);
  EXPECT_EQ(run("and", {0, 2}), 0);
  EXPECT_EQ(run("and", {1, 2}), 1);
}

TEST(Reduce, AxesOfAMatrix) {
  auto run = [](const std::string &over, const std::string &kept) {
    std::string result =
        kept.empty() ? "f32" : "tensor<?xf32, [\"" + kept + "\"]>";
    Program program("%x: !tile.view<f32, 2, read>, "
                    "%y: !tile.view<f32, 1, write>",
                    R"(
      %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
      %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
      tile.dim "r" = %r
      tile.dim "c" = %c
      %z = arith.constant 0 : index
      %id = arith.constant 0.0 : f32
      %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read>
             -> tensor<?x?xf32, ["r", "c"]>
      %s = tile.reduce custom left %v identity(%id : f32) over )" +
                        over + " : tensor<?x?xf32, [\"r\", \"c\"]> -> " +
                        result + R"( combine {
      ^bb0(%p: f32, %q: f32):
        %d = arith.addf %p, %p : f32
        %t = arith.addf %d, %q : f32
        tile.yield %t : f32
      }
      tile.store %s, %y[)" +
                        (kept.empty() ? "%z" : "\"" + kept + "\"") +
                        "] : " + result + ", !tile.view<f32, 1, write>");
    std::vector<float> x{1, 2, 3, 4, 5, 6};
    std::vector<float> y(kept.empty() ? 1 : kept == "r" ? 2 : 3);
    program.check({view(x, {2, 3}), view(y)});
    return y;
  };
  expectSame(run("[\"c\"]", "r"), {c(c(1, 2), 3), c(c(4, 5), 6)});
  expectSame(run("[\"r\"]", "c"), {c(1, 4), c(2, 5), c(3, 6)});
  // Row-major as the input has its axes, however `over` lists them.
  float all = c(c(c(c(c(1, 2), 3), 4), 5), 6);
  expectSame(run("[\"r\", \"c\"]", ""), {all});
  expectSame(run("[\"c\", \"r\"]", ""), {all});
}

TEST(Reduce, SeveralValuesAtOnce) {
  // Count and sum together; the count's combination uses both sides.
  std::vector<float> mean = along<float>(R"(
    %one = arith.constant 1.0 : f32
    %z = arith.constant 0.0 : f32
    %ones = tile.broadcast %one : f32 -> TILE
    %s, %k = tile.reduce custom tree %a, %ones identity(%z, %z : f32, f32)
      over ["n"] : TILE, TILE -> f32, f32 combine {
      ^bb0(%p: f32, %pk: f32, %q: f32, %qk: f32):
        %t = arith.addf %p, %q : f32
        %tk = arith.addf %qk, %pk : f32
        tile.yield %t, %tk : f32, f32
      }
    %r = arith.divf %s, %k : f32)",
                                         std::vector<float>{1, 2, 6}, true);
  expectSame(mean, {3});
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

std::vector<float> scan(const std::string &order, const std::string &flags,
                        std::vector<float> x) {
  return along<float>("%id = arith.constant 77.0 : ELEMENT\n%r = tile.scan "
                      "custom " +
                          order + " %a identity(%id : ELEMENT) along \"n\"" +
                          flags + " : TILE -> RESULT" + skewed,
                      x, false);
}

TEST(Scan, EveryResultIsTheReductionOfItsWindow) {
  std::vector<float> x{1, 3, 5, 7, 11};
  for (std::string order : {"left", "right", "tree"})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true}) {
        std::vector<float> expected;
        for (size_t i = 0; i < x.size(); ++i) {
          size_t begin = reverse ? i + exclusive : 0;
          size_t end = reverse ? x.size() : i + !exclusive;
          expected.push_back(
              reduceSkewed(order, {x.begin() + begin, x.begin() + end}));
        }
        expectSame(scan(order,
                        std::string(exclusive ? " exclusive" : "") +
                            (reverse ? " reverse" : ""),
                        x),
                   expected);
      }
  EXPECT_EQ(scan("unordered", "", x), scan("left", "", x));
  EXPECT_EQ(scan("unordered", " reverse", x), scan("right", " reverse", x));
  EXPECT_TRUE(scan("left", "", {}).empty());
}

TEST(Scan, NamedCombiners) {
  std::vector<int8_t> x{100, 100, -3};
  expectSame(along<int8_t>(
                 "%r = tile.scan add unordered %a along \"n\" : TILE -> RESULT",
                 x, false),
             {100, -56, -59});
  expectSame(along<int8_t>("%r = tile.scan max unordered %a along \"n\" "
                           "exclusive : TILE -> RESULT",
                           x, false),
             {-128, 100, 100});
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

template <typename T>
int64_t argReduce(const std::string &combiner, std::vector<T> x) {
  return along<int64_t>("%r = tile.arg_reduce " + combiner +
                            " %a along \"n\" : TILE -> i64",
                        x, true)[0];
}

TEST(Order, ArgReduce) {
  EXPECT_EQ(argReduce<float>("max", {1, 3, 3, 2}), 1);
  EXPECT_EQ(argReduce<float>("min", {1, 0.0f, -0.0f, 2}), 1);
  EXPECT_EQ(argReduce<float>("max", {-0.0f, 0.0f}), 0);
  EXPECT_EQ(argReduce<float>("max", {Inf, NaN, NaN}), 1);
  EXPECT_EQ(argReduce<float>("min", {NaN, Inf, -Inf}), 2);
  EXPECT_EQ(argReduce<float>("min", {NaN, NaN}), 0);
  EXPECT_EQ(argReduce<float>("max", {-Inf}), 0);
  EXPECT_EQ(argReduce<float>("max", {}), -1);
  EXPECT_EQ(argReduce<int8_t>("max", {-1, 5}), 1);
  EXPECT_EQ(argReduce<int8_t>("umax", {-1, 5}), 0);
  EXPECT_EQ(argReduce<uint8_t>("umin", {255, 5}), 1);
}

TEST(Order, Sort) {
  auto sort = [](const std::string &flags, std::vector<float> x) {
    return along<float>(
        "%r = tile.sort %a along \"n\"" + flags + " : TILE -> TILE", x, false);
  };
  expectSame(sort("", {NaN, 2, -Inf, 0.0f, -0.0f, Inf}),
             {-Inf, 0.0f, -0.0f, 2, Inf, NaN});
  expectSame(sort(" descending", {NaN, 2, -Inf, 0.0f, -0.0f, Inf}),
             {NaN, Inf, 2, 0.0f, -0.0f, -Inf});
  // Stable in both directions: the payload keeps its order among ties.
  for (bool descending : {false, true}) {
    std::vector<int64_t> order = along<int64_t>(
        "%i = tile.iota \"n\" : tensor<?xi64, [\"n\"]>\n%k, %r = tile.sort %a, "
        "%i along \"n\"" +
            std::string(descending ? " descending" : "") +
            " : TILE, RESULT -> TILE, RESULT",
        std::vector<float>{1, 0, 1, 0, 1}, false);
    expectSame(order, descending ? std::vector<int64_t>{0, 2, 4, 1, 3}
                                 : std::vector<int64_t>{1, 3, 0, 2, 4});
  }
  expectSame(along<int8_t>("%r = tile.sort %a along \"n\" unsigned : TILE -> "
                           "TILE",
                           std::vector<int8_t>{-1, 5, -128}, false),
             {5, -128, -1});
}

//===----------------------------------------------------------------------===//
// Contract
//===----------------------------------------------------------------------===//

template <typename T>
std::vector<T> matmul(std::vector<T> a, std::vector<T> b, int64_t m, int64_t k,
                      int64_t n, const std::string &order = "",
                      bool withAcc = false) {
  std::string t = spelling<T>();
  std::string r = "!tile.view<" + t + ", 2, read>";
  std::string w = "!tile.view<" + t + ", 2, write>";
  auto tile = [&](const std::string &dims) {
    return "tensor<?x?x" + t + ", [" + dims + "]>";
  };
  std::string mk = tile("\"m\", \"k\""), kn = tile("\"k\", \"n\"");
  std::string mn = tile("\"m\", \"n\"");
  Program program(
      "%a: " + r + ", %b: " + r + ", %c: " + w,
      "%m = tile.extent %a, 0 : " + r + "\n%k = tile.extent %a, 1 : " + r +
          "\n%n = tile.extent %b, 1 : " + r +
          "\ntile.dim \"m\" = %m\ntile.dim \"k\" = %k\ntile.dim "
          "\"n\" = %n\n%x = tile.load %a[\"m\", \"k\"] : " +
          r + " -> " + mk + "\n%y = tile.load %b[\"k\", \"n\"] : " + r +
          " -> " + kn + "\n%old = tile.load %c[\"m\", \"n\"] : " + w + " -> " +
          mn + "\n%z = tile.contract %x, %y" +
          (withAcc ? " acc(%old : " + mn + ")" : "") + " over [\"k\"]" +
          (order.empty() ? "" : " {order = #tile<order " + order + ">}") +
          " : " + mk + ", " + kn + " -> " + mn +
          "\ntile.store %z, %c[\"m\", \"n\"] : " + mn + ", " + w);
  std::vector<T> c(m * n, 10);
  program.check({view(a, {m, k}), view(b, {k, n}), view(c, {m, n})});
  return c;
}

TEST(Contract, MatrixProduct) {
  expectSame(matmul<float>({1, 2, 3, 4}, {5, 6, 7, 8}, 2, 2, 2),
             {19, 22, 43, 50});
  expectSame(matmul<float>({1, 2, 3, 4}, {5, 6, 7, 8}, 2, 2, 2, "", true),
             {29, 32, 53, 60});
  expectSame(matmul<float>({}, {}, 1, 0, 2), {0, 0});
  expectSame(matmul<float>({}, {}, 1, 0, 2, "", true), {10, 10});
  expectSame(matmul<int8_t>({100}, {3}, 1, 1, 1), {44});
  expectSame(matmul<int32_t>({1 << 20, 1}, {1 << 20, 7}, 1, 2, 1), {7});
}

TEST(Contract, OrderedIsAChainOfFusedOperations) {
  std::vector<float> a, b;
  for (int i = 0; i < 9; ++i) {
    a.push_back(1.0f / static_cast<float>(i + 3));
    b.push_back(static_cast<float>(i % 2 ? -1 : 1) / static_cast<float>(i + 7));
  }
  float left = 0, right = 0;
  std::vector<float> products;
  for (int i = 0; i < 9; ++i) {
    left = std::fma(a[i], b[i], left);
    right = std::fma(a[8 - i], b[8 - i], right);
    products.push_back(a[i] * b[i]);
  }
  expectSame(matmul<float>(a, b, 1, 9, 1, "left"), {left});
  expectSame(matmul<float>(a, b, 1, 9, 1), {left});
  expectSame(matmul<float>(a, b, 1, 9, 1, "right"), {right});
  expectSame(matmul<float>(a, b, 1, 9, 1, "tree"), {0 + tree(products, 0, 9)});
}

TEST(Contract, BatchAndScalarOperands) {
  Program program("%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 1, write>",
                  R"(
    %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
    %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
    tile.dim "r" = %r
    tile.dim "c" = %c
    %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read>
           -> tensor<?x?xf32, ["r", "c"]>
    %s = tile.contract %v, %v over ["c"] : tensor<?x?xf32, ["r", "c"]>,
           tensor<?x?xf32, ["r", "c"]> -> tensor<?xf32, ["r"]>
    tile.store %s, %y["r"] : tensor<?xf32, ["r"]>, !tile.view<f32, 1, write>)");
  std::vector<float> x{1, 2, 3, 4}, y(2);
  program.check({view(x, {2, 2}), view(y)});
  expectSame(y, {5, 25});
}

/// A tile without elements costs nothing, whatever its other extents are: each
/// way of reducing along the long axis of a [2^40, 0] tile.
TEST(Reduce, NothingOfALongAxis) {
  const std::string mat = "tensor<?x?xf32, [\"r\", \"c\"]>";
  const std::string col = "tensor<?xf32, [\"c\"]>";
  const std::string reductions[] = {
      "%s = tile.reduce add unordered %v over [\"r\"] : " + mat + " -> " + col,
      "%s = tile.reduce custom left %v identity(%id : f32) over [\"r\"] : " +
          mat + " -> " + col +
          " combine {\n^bb0(%p: f32, %q: f32):\n"
          "%t = arith.addf %p, %q : f32\ntile.yield %t : f32\n}",
      "%s = tile.contract %v, %v over [\"r\"] : " + mat + ", " + mat + " -> " +
          col,
      "%i = tile.arg_reduce max %v along \"r\" : " + mat +
          " -> tensor<?xi64, [\"c\"]>\n"
          "%s = tile.cast %i : tensor<?xi64, [\"c\"]> -> " +
          col};
  for (Mode mode : {Mode::Strict, Mode::Oracle})
    for (const std::string &reduction : reductions) {
      Program program("%x: !tile.view<f32, 2, read>, "
                      "%y: !tile.view<f32, 1, write>",
                      R"(
      %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
      %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
      tile.dim "r" = %r
      tile.dim "c" = %c
      %id = arith.constant 0.0 : f32
      %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read> -> )" +
                          mat + "\n" + reduction +
                          "\ntile.store %s, %y[\"c\"] : " + col +
                          ", !tile.view<f32, 1, write>");
      InterpretOptions options;
      options.mode = mode;
      std::vector<float> nothing;
      program.check({view(nothing, {int64_t{1} << 40, 0}), view(nothing)},
                    options);
    }
}

} // namespace
