//===- elementwise_test.cpp - Elementwise ops in the interpreter ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The edges that docs/semantics.md names: integer division, shifts and
// wrapping, float minima and maxima, casts, roundings, comparisons.
//
//===----------------------------------------------------------------------===//

#include "fixture.h"

using namespace tessera::interp::test;

namespace {

template <typename T> constexpr T least = std::numeric_limits<T>::min();
template <typename T> constexpr T most = std::numeric_limits<T>::max();

template <typename T> class Integers : public testing::Test {};
using IntegerTypes = testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t,
                                    uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Integers, IntegerTypes);

TYPED_TEST(Integers, DivisionByZeroAndOfMinimum) {
  using T = TypeParam;
  std::string flag = std::is_unsigned_v<T> ? " unsigned" : "";
  std::vector<T> a{7, 7, 0, least<T>, static_cast<T>(-7), most<T>};
  std::vector<T> b{2, 0, 0, static_cast<T>(-1), 2, most<T>};
  std::vector<T> quotient, rest;
  for (size_t i = 0; i < a.size(); ++i) {
    bool wraps =
        std::is_signed_v<T> && a[i] == least<T> && b[i] == static_cast<T>(-1);
    quotient.push_back(b[i] == 0 ? 0 : wraps ? a[i] : T(a[i] / b[i]));
    rest.push_back(b[i] == 0 || wraps ? 0 : T(a[i] % b[i]));
  }
  expectSame(elementwise<T>("%r = tile.div %a, %b" + flag + " : TILE", a, b),
             quotient);
  expectSame(elementwise<T>("%r = tile.rem %a, %b" + flag + " : TILE", a, b),
             rest);
}

TYPED_TEST(Integers, ShiftsByTheWidthOrMore) {
  using T = TypeParam;
  T width = 8 * sizeof(T);
  std::vector<T> a{1, 1, 3, static_cast<T>(-5), static_cast<T>(-5), least<T>};
  std::vector<T> b{1, width, static_cast<T>(-1), 1, width, T(width - 1)};
  expectSame(elementwise<T>("%r = tile.shl %a, %b : TILE", a, b),
             {2, 0, 0, static_cast<T>(-10), 0, 0});
  T high = std::is_signed_v<T> ? T(-1) : T(0);
  if (std::is_signed_v<T>)
    expectSame(elementwise<T>("%r = tile.shr %a, %b : TILE", a, b),
               {0, 0, 0, static_cast<T>(-3), high, high});
  else
    expectSame(elementwise<T>("%r = tile.shr %a, %b unsigned : TILE", a, b),
               {0, 0, 0, static_cast<T>(T(-5) / 2), 0, 0});
}

TYPED_TEST(Integers, ArithmeticWraps) {
  using T = TypeParam;
  std::vector<T> a{most<T>, least<T>, most<T>}, b{1, 1, most<T>};
  using U = std::make_unsigned_t<T>;
  std::vector<T> sum, difference, product;
  for (size_t i = 0; i < a.size(); ++i) {
    sum.push_back(T(U(uint64_t(a[i]) + uint64_t(b[i]))));
    difference.push_back(T(U(uint64_t(a[i]) - uint64_t(b[i]))));
    product.push_back(T(U(uint64_t(a[i]) * uint64_t(b[i]))));
  }
  expectSame(elementwise<T>("%r = arith.addi %a, %b : TILE", a, b), sum);
  expectSame(elementwise<T>("%r = arith.subi %a, %b : TILE", a, b), difference);
  expectSame(elementwise<T>("%r = arith.muli %a, %b : TILE", a, b), product);
}

TYPED_TEST(Integers, OrderAndBits) {
  using T = TypeParam;
  std::vector<T> a{5, T(-5), least<T>}, b{T(-3), 7, most<T>};
  std::vector<T> larger, smaller, both;
  for (size_t i = 0; i < a.size(); ++i) {
    larger.push_back(std::max(a[i], b[i]));
    smaller.push_back(std::min(a[i], b[i]));
    both.push_back(a[i] & b[i]);
  }
  std::string sign = std::is_unsigned_v<T> ? "u" : "s";
  expectSame(elementwise<T>("%r = arith.max" + sign + "i %a, %b : TILE", a, b),
             larger);
  expectSame(elementwise<T>("%r = arith.min" + sign + "i %a, %b : TILE", a, b),
             smaller);
  expectSame(elementwise<T>("%r = arith.andi %a, %b : TILE", a, b), both);
  if (std::is_signed_v<T>)
    expectSame(elementwise<T>("%r = math.absi %a : TILE", a), {5, 5, least<T>});
}

TYPED_TEST(Integers, FloatCastsSaturate) {
  using T = TypeParam;
  std::string flag = std::is_unsigned_v<T> ? " unsigned_to" : "";
  std::vector<double> a{NaN, Inf, -Inf, -1.9, 1.9, 1e30, -1e30, -0.0};
  T minusOne = std::is_unsigned_v<T> ? T(0) : T(-1);
  expectSame(
      elementwise<T>("%r = tile.cast %a" + flag + " : TILE -> RESULT", a),
      {0, most<T>, least<T>, minusOne, 1, most<T>, least<T>, 0});
}

TYPED_TEST(Integers, CastToFloatRoundsOnce) {
  using T = TypeParam;
  std::string flag = std::is_unsigned_v<T> ? " unsigned_from" : "";
  std::vector<T> a{most<T>, least<T>, T(-1), 3};
  std::vector<float> expected;
  for (T value : a)
    expected.push_back(static_cast<float>(value));
  expectSame(
      elementwise<float>("%r = tile.cast %a" + flag + " : TILE -> RESULT", a),
      expected);
}

TEST(Elementwise, IntegerCastsWrapAndExtend) {
  std::vector<int32_t> a{300, -1, 128, -129};
  expectSame(elementwise<int8_t>("%r = tile.cast %a : TILE -> RESULT", a),
             {44, -1, -128, 127});
  std::vector<int8_t> b{-1, 127, -128};
  expectSame(elementwise<int32_t>("%r = tile.cast %a : TILE -> RESULT", b),
             {-1, 127, -128});
  expectSame(elementwise<int32_t>(
                 "%r = tile.cast %a unsigned_from : TILE -> RESULT", b),
             {255, 127, 128});
}

TEST(Elementwise, CastsOfBool) {
  std::vector<float> a{0, -0.0f, 1, NaN, 1e-45f};
  std::string toBool = "%t = tile.cast %a : TILE -> tensor<?xi1, [\"n\"]>\n";
  expectSame(
      elementwise<int32_t>(
          toBool + "%r = tile.cast %t : tensor<?xi1, [\"n\"]> -> RESULT", a),
      {0, 0, 1, 1, 1});
  expectSame(
      elementwise<float>(
          toBool + "%r = tile.cast %t : tensor<?xi1, [\"n\"]> -> RESULT", a),
      {0, 0, 1, 1, 1});
}

TEST(Elementwise, MaximaAndMinima) {
  std::vector<float> a{NaN, 1, 0.0f, -0.0f, Inf, 2, NaN};
  std::vector<float> b{1, NaN, -0.0f, 0.0f, -Inf, 3, NaN};
  expectSame(elementwise<float>("%r = arith.maximumf %a, %b : TILE", a, b),
             {NaN, NaN, 0.0f, 0.0f, Inf, 3, NaN});
  expectSame(elementwise<float>("%r = arith.minimumf %a, %b : TILE", a, b),
             {NaN, NaN, -0.0f, -0.0f, -Inf, 2, NaN});
  expectSame(elementwise<float>("%r = tile.max_num %a, %b : TILE", a, b),
             {1, 1, 0.0f, 0.0f, Inf, 3, NaN});
  expectSame(elementwise<float>("%r = tile.min_num %a, %b : TILE", a, b),
             {1, 1, -0.0f, -0.0f, -Inf, 2, NaN});
}

TEST(Elementwise, FloatArithmeticRoundsInItsType) {
  std::vector<float> a{16777216.0f, 1e-45f, 3e38f, 1.0f}, b{1, 0.5f, 3e38f, 3};
  expectSame(elementwise<float>("%r = arith.addf %a, %b : TILE", a, b),
             {16777216.0f, 0.5f, Inf, 4});
  expectSame(elementwise<float>("%r = arith.mulf %a, %b : TILE", a, b),
             {16777216.0f, 0.0f, Inf, 3});
  expectSame(elementwise<float>("%r = arith.divf %a, %b : TILE", a, b),
             {16777216.0f, 2 * 1e-45f, 1, 1.0f / 3});
  std::vector<double> c{9007199254740992.0}, d{1};
  expectSame(elementwise<double>("%r = arith.addf %a, %b : TILE", c, d),
             {9007199254740992.0});
}

TEST(Elementwise, FusedMultiplyAddRoundsOnce) {
  float x = 1 + std::ldexp(1.0f, -12);
  std::vector<float> a{x}, b{-(1 + std::ldexp(1.0f, -11))};
  expectSame(elementwise<float>("%r = math.fma %a, %a, %b : TILE", a, b),
             {std::ldexp(1.0f, -24)});
}

TEST(Elementwise, Functions) {
  std::vector<float> a{0, -0.0f, 1, Inf, -Inf, NaN};
  expectSame(elementwise<float>("%r = math.exp %a : TILE", a),
             {1, 1, std::exp(1.0f), Inf, 0, NaN});
  expectSame(elementwise<float>("%r = math.log %a : TILE", a),
             {-Inf, -Inf, 0, Inf, NaN, NaN});
  expectSame(elementwise<float>("%r = math.rsqrt %a : TILE", a),
             {Inf, -Inf, 1, 0, NaN, NaN});
  expectSame(elementwise<float>("%r = math.sqrt %a : TILE", a),
             {0, -0.0f, 1, Inf, NaN, NaN});
  expectSame(elementwise<float>("%r = math.tanh %a : TILE", a),
             {0, -0.0f, static_cast<float>(std::tanh(1.0)), 1, -1, NaN});
  expectSame(
      elementwise<float>("%r = tile.sigmoid %a : TILE", a),
      {0.5f, 0.5f, static_cast<float>(1 / (1 + std::exp(-1.0))), 1, 0, NaN});
  expectSame(elementwise<float>("%r = math.erf %a : TILE", a),
             {0, -0.0f, static_cast<float>(std::erf(1.0)), 1, -1, NaN});
  expectSame(elementwise<float>("%r = math.expm1 %a : TILE", a),
             {0, -0.0f, static_cast<float>(std::expm1(1.0)), Inf, -1, NaN});
}

TEST(Elementwise, RoundingFunctions) {
  std::vector<float> a{2.5f, -2.5f, 3.5f, -0.25f, 0.75f};
  expectSame(elementwise<float>("%r = math.roundeven %a : TILE", a),
             {2, -2, 4, -0.0f, 1});
  expectSame(elementwise<float>("%r = math.floor %a : TILE", a),
             {2, -3, 3, -1, 0});
  expectSame(elementwise<float>("%r = math.ceil %a : TILE", a),
             {3, -2, 4, -0.0f, 1});
  expectSame(elementwise<float>("%r = math.trunc %a : TILE", a),
             {2, -2, 3, -0.0f, 0});
  expectSame(elementwise<float>("%r = math.absf %a : TILE", a),
             {2.5f, 2.5f, 3.5f, 0.25f, 0.75f});
  expectSame(elementwise<float>("%r = arith.negf %a : TILE", a),
             {-2.5f, 2.5f, -3.5f, 0.25f, -0.75f});
}

TEST(Elementwise, RoundToNarrowTypes) {
  std::vector<float> a{1.00390625f, 1.01171875f, 65520, 65519,
                       448,         464,         480,   1e-9f};
  expectSame(elementwise<float>("%r = tile.round_to %a to bf16 : TILE", a),
             {1.0f, 1.015625f, 65536, 65536, 448, 464, 480,
              elementwise<float>("%r = tile.round_to %a to bf16 : TILE",
                                 std::vector<float>{1e-9f})[0]});
  std::vector<float> half =
      elementwise<float>("%r = tile.round_to %a to f16 : TILE", a);
  EXPECT_EQ(half[2], Inf);
  EXPECT_EQ(half[3], 65504);
  std::vector<float> eight =
      elementwise<float>("%r = tile.round_to %a to f8E4M3FN : TILE", a);
  EXPECT_EQ(eight[0], 1);
  EXPECT_EQ(eight[4], 448);
  EXPECT_EQ(eight[5], 448); // A tie, to even.
  EXPECT_TRUE(std::isnan(eight[6]));
}

TEST(Elementwise, FloatComparisons) {
  std::vector<float> a{1, 2, 1, NaN, 0.0f}, b{2, 1, 1, 1, -0.0f};
  auto compare = [&](const std::string &predicate) {
    return elementwise<int32_t>(
        "%c = arith.cmpf " + predicate +
            ", %a, %b : TILE\n%r = tile.cast %c : tensor<?xi1, [\"n\"]> -> "
            "RESULT",
        a, b);
  };
  using V = std::vector<int32_t>;
  expectSame(compare("olt"), V{1, 0, 0, 0, 0});
  expectSame(compare("ole"), V{1, 0, 1, 0, 1});
  expectSame(compare("ogt"), V{0, 1, 0, 0, 0});
  expectSame(compare("oge"), V{0, 1, 1, 0, 1});
  expectSame(compare("oeq"), V{0, 0, 1, 0, 1});
  expectSame(compare("one"), V{1, 1, 0, 0, 0});
  expectSame(compare("ord"), V{1, 1, 1, 0, 1});
  expectSame(compare("ult"), V{1, 0, 0, 1, 0});
  expectSame(compare("ule"), V{1, 0, 1, 1, 1});
  expectSame(compare("ugt"), V{0, 1, 0, 1, 0});
  expectSame(compare("uge"), V{0, 1, 1, 1, 1});
  expectSame(compare("ueq"), V{0, 0, 1, 1, 1});
  expectSame(compare("une"), V{1, 1, 0, 1, 0});
  expectSame(compare("uno"), V{0, 0, 0, 1, 0});
  expectSame(compare("true"), V{1, 1, 1, 1, 1});
  expectSame(compare("false"), V{0, 0, 0, 0, 0});
}

TEST(Elementwise, IntegerComparisonsAndSelect) {
  std::vector<int8_t> a{-1, 1, 5}, b{1, -1, 5};
  auto choose = [&](const std::string &predicate) {
    return elementwise<int8_t>("%c = arith.cmpi " + predicate +
                                   ", %a, %b : TILE\n%r = arith.select %c, "
                                   "%a, %b : tensor<?xi1, [\"n\"]>, TILE",
                               a, b);
  };
  using V = std::vector<int8_t>;
  expectSame(choose("slt"), V{-1, -1, 5});
  expectSame(choose("ult"), V{1, 1, 5});
  expectSame(choose("sge"), V{1, 1, 5});
  expectSame(choose("uge"), V{-1, -1, 5});
  expectSame(choose("eq"), V{1, -1, 5});
  expectSame(choose("ne"), V{-1, 1, 5});
}

TEST(Elementwise, FloatingEnvironmentOfTheCallerIsIgnored) {
  unsigned saved = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved | 0x8040); // Flush to zero, denormals are zero.
  std::vector<float> a{1e-38f}, b{0.01f};
  std::vector<float> product =
      elementwise<float>("%r = arith.mulf %a, %b : TILE", a, b);
  unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved);
  EXPECT_EQ(after & 0x8040, 0x8040u);
  EXPECT_GT(product[0], 0.0f);
}

} // namespace
