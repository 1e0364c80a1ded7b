//===- test/unit/oracle/bounded_test.cpp - Laws of bounded numbers --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random expressions, evaluated in the compute type with multiply-adds fused or
// not and functions off by what they may be, must lie within the radius.
//
//===----------------------------------------------------------------------===//

#include "support/bounded.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera::bounded {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// A value as an execution in type T has it, and as the oracle has it.
template <typename T> struct Pair {
  T actual;
  Bounded expected;
};

template <typename T> class Program {
public:
  explicit Program(unsigned seed) : engine(seed) {
    rules = Arithmetic::forTier(sizeof(T) == 8 ? DType::F64 : DType::F32,
                                pick(2) ? Tier::Default : Tier::Strict);
  }

  Pair<T> expression(int depth) {
    if (depth == 0)
      return leaf();
    switch (pick(13)) {
    case 0:
    case 1: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      return {a.actual + b.actual, add(a.expected, b.expected, rules)};
    }
    case 2: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      return {a.actual - b.actual, sub(a.expected, b.expected, rules)};
    }
    case 3: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      return {a.actual * b.actual, mul(a.expected, b.expected, rules)};
    }
    case 4: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      return {a.actual / b.actual, div(a.expected, b.expected, rules)};
    }
    case 5:
    case 6: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1),
              c = expression(depth - 1);
      T fused = std::fma(a.actual, b.actual, c.actual);
      T unfused = a.actual * b.actual + c.actual;
      return {pick(2) ? fused : unfused,
              fma(a.expected, b.expected, c.expected, rules)};
    }
    case 7: {
      Pair<T> a = expression(depth - 1);
      return {std::sqrt(a.actual), sqrt(a.expected, rules)};
    }
    case 8: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      bool larger = pick(2);
      T actual = std::isnan(a.actual) || std::isnan(b.actual)
                     ? std::numeric_limits<T>::quiet_NaN()
                 : larger ? std::max(a.actual, b.actual)
                          : std::min(a.actual, b.actual);
      return {actual, larger ? max(a.expected, b.expected)
                             : min(a.expected, b.expected)};
    }
    case 9: {
      Pair<T> a = expression(depth - 1), b = expression(depth - 1);
      return {a.actual < b.actual ? a.actual : b.actual,
              select(less(a.expected, b.expected), a.expected, b.expected)};
    }
    case 10: {
      Pair<T> a = expression(depth - 1);
      T actual = static_cast<T>(floatFormat(DType::BF16).round(a.actual));
      return {actual, roundTo(a.expected, DType::BF16, rules)};
    }
    default:
      return function(expression(depth - 1));
    }
  }

  unsigned pick(unsigned n) { return engine() % n; }
  Arithmetic rules;

private:
  Pair<T> leaf() {
    std::normal_distribution<double> normal;
    double value = normal(engine);
    switch (pick(8)) {
    case 0:
      value *= 1e-3;
      break;
    case 1:
      value *= 1e4;
      break;
    case 2:
      value = std::floor(value * 4);
      break;
    case 3:
      value = std::ldexp(value, -static_cast<int>(pick(150)));
      break;
    default:
      break;
    }
    T actual = static_cast<T>(value);
    return {actual, Bounded::exact(actual)};
  }

  Pair<T> function(const Pair<T> &a) {
    auto which = static_cast<Function>(pick(numFunctions));
    long double x = a.actual, value = 0;
    switch (which) {
    case Function::Exp:
      value = std::exp(x);
      break;
    case Function::Exp2:
      value = std::exp2(x);
      break;
    case Function::Expm1:
      value = std::expm1(x);
      break;
    case Function::Log:
      value = std::log(x);
      break;
    case Function::Log2:
      value = std::log2(x);
      break;
    case Function::Log10:
      value = std::log10(x);
      break;
    case Function::Log1p:
      value = std::log1p(x);
      break;
    case Function::Tanh:
      value = std::tanh(x);
      break;
    case Function::Erf:
      value = std::erf(x);
      break;
    case Function::Sin:
      value = std::sin(x);
      break;
    case Function::Cos:
      value = std::cos(x);
      break;
    case Function::Rsqrt:
      value = 1 / std::sqrt(x);
      break;
    case Function::Sigmoid:
      value = x < -100 ? std::exp(x) : 1 / (1 + std::exp(-x));
      break;
    }
    T rounded = static_cast<T>(value);
    // Anything within the rule but half a unit is legal.
    if (value != 0 && std::isfinite(x) && std::isfinite(rounded)) {
      FunctionUlps rule = rules.ulps(which);
      long double units = rule.constant + rule.slope * std::fabs(x) - 0.5L;
      long double part = pick(3) - 1.0L;
      rounded = static_cast<T>(
          value + part * units * rules.format().ulp(std::fabs(value)));
    }
    return {rounded, apply(which, a.expected, rules)};
  }

  std::mt19937 engine;
};

template <typename T> void checkPrograms(DType type, int depth, int count) {
  int decided = 0, exact = 0;
  for (int seed = 0; seed < count; ++seed) {
    Program<T> program(static_cast<unsigned>(seed));
    Pair<T> result = program.expression(depth);
    Verdict verdict = judge(result.expected, result.actual, type);
    ASSERT_NE(verdict, Verdict::Reject)
        << "seed " << seed << " depth " << depth << ": got " << result.actual
        << ", expected " << static_cast<double>(result.expected.value)
        << " within " << static_cast<double>(result.expected.radius);
    decided += verdict == Verdict::Accept;
    exact += result.expected.radius == 0;
  }
  // The law is worth little if most programs are given up.
  EXPECT_GT(decided, count / 2);
  EXPECT_LT(exact, decided);
}

TEST(Bounded, RandomProgramsInF32) {
  checkPrograms<float>(DType::F32, 1, 40000);
  checkPrograms<float>(DType::F32, 2, 40000);
  checkPrograms<float>(DType::F32, 3, 20000);
}

TEST(Bounded, RandomProgramsInF64) {
  checkPrograms<double>(DType::F64, 1, 40000);
  checkPrograms<double>(DType::F64, 2, 20000);
}

TEST(Bounded, RadiusIsTight) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 1000; ++i) {
    Bounded a = Bounded::exact(normal(engine)),
            b = Bounded::exact(normal(engine));
    Bounded product = mul(a, b, rules);
    // Half a unit in the last place, not more.
    EXPECT_LE(product.radius,
              0.501L * floatFormat(DType::F32).ulp(std::fabs(product.value)));
  }
}

TEST(Bounded, ExactOperationsStayExact) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  Bounded three = Bounded::exact(3), half = Bounded::exact(0.5L);
  EXPECT_TRUE(add(three, half, rules).isExact());
  EXPECT_TRUE(mul(three, half, rules).isExact());
  EXPECT_TRUE(div(half, Bounded::exact(4), rules).isExact());
  EXPECT_TRUE(sqrt(Bounded::exact(9), rules).isExact());
  EXPECT_FALSE(div(Bounded::exact(1), three, rules).isExact());
  EXPECT_FALSE(sqrt(three, rules).isExact());
}

TEST(Bounded, InfinitiesAndNan) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  Bounded inf = Bounded::exact(infinity), zero = Bounded::exact(0);
  Bounded blurredZero{0, 1e-7L, false};
  EXPECT_TRUE(std::isnan(sub(inf, inf, rules).value));
  EXPECT_TRUE(std::isnan(mul(inf, zero, rules).value));
  EXPECT_FALSE(mul(inf, zero, rules).leftRange);
  EXPECT_TRUE(mul(inf, blurredZero, rules).leftRange);
  EXPECT_TRUE(div(Bounded::exact(1), blurredZero, rules).leftRange);
  EXPECT_EQ(div(Bounded::exact(1), inf, rules).value, 0);
  EXPECT_EQ(exp(neg(inf), rules).value, 0);
  EXPECT_TRUE(exp(neg(inf), rules).isExact());
  EXPECT_EQ(log(zero, rules).value, -infinity);
  EXPECT_TRUE(log(blurredZero, rules).leftRange);
  EXPECT_TRUE(std::isnan(max(inf, Bounded::nan()).value));
  EXPECT_EQ(maxNum(zero, Bounded::nan()).value, 0);
}

/// The results among NaN, both infinities, zero and further numbers that are
/// accepted, as text.
std::string accepted(const Bounded &value, std::vector<double> numbers = {},
                     DType type = DType::F32) {
  std::string text;
  auto tryOne = [&](double actual, const std::string &name) {
    if (accepts(value, actual, type))
      text += (text.empty() ? "" : " ") + name;
  };
  tryOne(std::numeric_limits<double>::quiet_NaN(), "nan");
  tryOne(-std::numeric_limits<double>::infinity(), "-inf");
  tryOne(std::numeric_limits<double>::infinity(), "inf");
  tryOne(0, "0");
  for (size_t i = 0; i < numbers.size(); ++i)
    tryOne(numbers[i], "#" + std::to_string(i));
  return text;
}

Bounded sumOf(const std::vector<double> &terms, const Arithmetic &rules) {
  Summation sum(rules);
  for (double term : terms)
    sum.add(Bounded::exact(term));
  return sum.finish();
}

TEST(Bounded, WhatIsWhollyPastTheRangeIsAnInfinity) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  Bounded large = Bounded::exact(3e38f);
  EXPECT_FALSE(large.leftRange);
  Bounded sum = add(large, large, rules);
  EXPECT_EQ(sum.value, infinity);
  EXPECT_FALSE(sum.leftRange);
  EXPECT_EQ(accepted(sum, {3e38f}), "inf");
  EXPECT_EQ(accepted(sub(sum, large, rules), {3e38f}), "inf");
  EXPECT_EQ(accepted(exp(Bounded::exact(100), rules), {3e38f}), "inf");
  EXPECT_EQ(accepted(exp(Bounded::exact(30000), rules), {3e38f}), "inf");
  EXPECT_FALSE(
      exp(Bounded::exact(100), Arithmetic::forTier(DType::F64)).leftRange);
  // At the threshold both are legal.
  Bounded edge = exp(Bounded::exact(88.7228394f), rules);
  EXPECT_TRUE(edge.leftRange);
  EXPECT_EQ(accepted(edge, {3.4028e38f, 3.3e38f}), "inf #0");
  // 1 / x and x - x of an overflow.
  EXPECT_EQ(accepted(div(Bounded::exact(1), sum, rules), {1e-39f}), "0");
  EXPECT_EQ(accepted(sub(sum, sum, rules)), "nan");
}

TEST(Bounded, AProductPastTheRangeMayBeFused) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  Bounded big = Bounded::exact(0x1p100L);
  Bounded product = mul(big, big, rules);
  EXPECT_EQ(accepted(product, {3.4e38f}), "inf");
  Bounded back = Bounded::exact(-0x1p120L);
  // 2^128 - 2^127.9 in one step, or inf - 2^127.9.
  Bounded edge = mul(Bounded::exact(0x1p64L), Bounded::exact(0x1p64L), rules);
  Bounded sum = add(edge, Bounded::exact(-0x1p127L), rules);
  EXPECT_EQ(accepted(sum, {0x1p127, 0x1p126, -0x1p127}), "inf #0");
  EXPECT_EQ(accepted(add(neg(edge), Bounded::exact(0x1p127L), rules),
                     {-0x1p127, 0x1p127}),
            "-inf #0");
  EXPECT_EQ(accepted(add(product, back, rules), {0x1p120}), "inf");
  // Nothing else sees the product but as an infinity.
  EXPECT_EQ(accepted(div(Bounded::exact(1), product, rules), {0x1p-126}), "0");
  EXPECT_EQ(accepted(mul(product, Bounded::exact(0), rules)), "nan");
}

TEST(Bounded, SumsOverflowByTheSignsOfTheirTerms) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  double big = 3e38f;
  // Only the positive part reaches past the range.
  Bounded sum = sumOf({big, big, -big}, rules);
  EXPECT_TRUE(sum.leftRange);
  EXPECT_EQ(accepted(sum, {big, 2.9e38f, -big}), "inf #0");
  sum = sumOf({-big, -big, big}, rules);
  EXPECT_EQ(accepted(sum, {-big, 2.9e38f, big}), "-inf #0");
  // Both do: (big + big) + (-big - big) is NaN.
  sum = sumOf({big, -big, big, -big}, rules);
  EXPECT_EQ(accepted(sum, {big, 1e36f}), "nan -inf inf 0");
  // Neither does, whatever the sum of the magnitudes.
  sum = sumOf({2e38f, -2e38f, 1e38f, -1e38f}, rules);
  EXPECT_FALSE(sum.leftRange);
  EXPECT_EQ(accepted(sum, {1e38f}), "0");
  // The whole is past the range in every order.
  EXPECT_EQ(accepted(sumOf({big, big, 1}, rules), {big}), "inf");
  EXPECT_EQ(accepted(sumOf({big, big, big, -big}, rules), {big}), "inf");
  double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(accepted(sumOf({infinite, big, big}, rules), {big}), "inf");
  EXPECT_EQ(accepted(sumOf({infinite, -big, -big}, rules), {big}), "nan inf");
}

TEST(Bounded, OutcomesPassThroughOperations) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  Bounded sum = sumOf({3e38f, 3e38f, -3e38f, -3e38f, 4}, rules);
  // The number's radius is huge, so start from one that is not.
  Bounded four{4, 1e-6L, true, PlusInfinity};
  EXPECT_EQ(accepted(four, {4, 5}), "inf #0");
  EXPECT_EQ(accepted(neg(four), {-4, 4}), "-inf #0");
  EXPECT_EQ(accepted(div(Bounded::exact(1), four, rules), {0.25, 0.125}),
            "0 #0");
  EXPECT_EQ(accepted(rsqrt(four, rules), {0.5, 0.25}), "0 #0");
  EXPECT_EQ(accepted(sqrt(four, rules), {2, 1}), "inf #0");
  EXPECT_EQ(accepted(log(four, rules), {std::log(4.0), 1}), "inf #0");
  EXPECT_EQ(accepted(exp(neg(four), rules), {std::exp(-4.0), 1}), "0 #0");
  EXPECT_EQ(accepted(sub(four, four, rules), {1}), "nan -inf inf 0");
  EXPECT_EQ(accepted(mul(four, Bounded::exact(-2), rules), {-8, 8}), "-inf #0");
  EXPECT_EQ(accepted(max(four, Bounded::exact(9)), {9, 4}), "inf #0");
  EXPECT_EQ(accepted(roundTo(four, DType::F16, Arithmetic::forTier(DType::F16)),
                     {4, 5}, DType::F16),
            "inf #0");
  EXPECT_EQ(
      accepted(roundTo(four, DType::F8E4M3, Arithmetic::forTier(DType::F16)),
               {4, 5}, DType::F8E4M3),
      "nan #0");
  EXPECT_EQ(accepted(sum, {}), "nan -inf inf 0");
  // What nobody knows stays unknown.
  Bounded unknown = Bounded::undecided(1);
  EXPECT_TRUE(add(four, unknown, rules).isUnknown());
  EXPECT_TRUE(select(Tri::Unknown, four, unknown).isUnknown());
  EXPECT_EQ(accepted(mul(four, unknown, rules), {4}), "");
}

TEST(Bounded, TheMeanDepthBoundsTermsOfOneSize) {
  Arithmetic rules = Arithmetic::forTier(DType::F32);
  std::vector<double> terms(1000, 1.0 + 0x1p-20);
  long double unit = floatFormat(DType::F32).unitRoundoff();
  Bounded sum = sumOf(terms, rules);
  EXPECT_LT(sum.radius, 510 * unit * sum.value);
  // The worst grouping, a chain, is inside.
  float chain = 0;
  for (double term : terms)
    chain += static_cast<float>(term);
  EXPECT_TRUE(accepts(sum, chain, DType::F32));
  EXPECT_LE(rules.meanDepth(1000), 501);
  EXPECT_EQ(rules.meanDepth(2), 1);
  rules.partials = 64;
  rules.extraDepth = 5;
  EXPECT_LT(rules.meanDepth(1 << 20), rules.depth(1 << 20));
  EXPECT_GT(2 * rules.meanDepth(1 << 20), rules.depth(1 << 20));
}

// Of deviations from a reference less is known than of those from the mean.
TEST(Bounded, SumsAboutAReferenceAreOfLargerTerms) {
  Arithmetic rules = Arithmetic::forTier(DType::F32), about = rules;
  about.aboutReference = true;
  std::vector<double> terms(1000, 1.0 + 0x1p-20);
  long double exact = sumOf(terms, rules).value;
  EXPECT_EQ(sumOf(terms, about).value, exact);
  EXPECT_GT(sumOf(terms, about).radius, 20 * sumOf(terms, rules).radius);
  // One large deviation: by Cauchy, not by the sum of the magnitudes.
  std::vector<double> apart(10000, 0.0);
  apart[17] = 1;
  EXPECT_GT(sumOf(apart, about).radius, 300 * sumOf(apart, rules).radius);

  Arithmetic shifted = rules;
  shifted.allowShift();
  EXPECT_EQ(shifted.ulps(Function::Exp).constant,
            rules.ulps(Function::Exp).constant + 70);
  EXPECT_EQ(shifted.ulps(Function::Exp).slope, rules.ulps(Function::Exp).slope);
  EXPECT_EQ(shifted.ulps(Function::Log).constant,
            rules.ulps(Function::Log).constant);
}

TEST(Bounded, ComparisonsKnowWhatTheyDoNotKnow) {
  Bounded one = Bounded::exact(1), about{1, 0.1L, false}, two{2, 0.1L, false};
  EXPECT_EQ(less(one, one), Tri::False);
  EXPECT_EQ(lessEqual(one, one), Tri::True);
  EXPECT_EQ(equal(one, one), Tri::True);
  EXPECT_EQ(less(one, about), Tri::Unknown);
  EXPECT_EQ(equal(one, about), Tri::Unknown);
  EXPECT_EQ(equal(about, two), Tri::False);
  EXPECT_EQ(less(about, two), Tri::True);
  EXPECT_EQ(less(Bounded::nan(), two), Tri::False);
  EXPECT_EQ(lessEqual(Bounded::nan(), two), Tri::False);
  EXPECT_EQ(unordered(Bounded::nan(), two), Tri::True);
  EXPECT_EQ(logicalAnd(Tri::Unknown, Tri::False), Tri::False);
  EXPECT_EQ(logicalOr(Tri::Unknown, Tri::True), Tri::True);
  EXPECT_EQ(logicalXor(Tri::Unknown, Tri::True), Tri::Unknown);
  Bounded both = select(Tri::Unknown, about, two);
  EXPECT_TRUE(accepts(both, 0.91, DType::F32));
  EXPECT_TRUE(accepts(both, 2.09, DType::F32));
  EXPECT_FALSE(accepts(both, 2.2, DType::F32));
  EXPECT_TRUE(select(Tri::Unknown, about, Bounded::nan()).leftRange);
}

TEST(Bounded, RoundingToStorage) {
  Arithmetic rules = Arithmetic::forTier(DType::F16);
  Bounded third{1 / 3.0L, 1e-9L, false};
  Bounded stored = roundTo(third, DType::F16, rules);
  EXPECT_TRUE(stored.isExact());
  EXPECT_EQ(stored.value, 0.333251953125L);
  // A tie that the radius leaves open: both neighbours are legal.
  Bounded tie{1 + 0x1p-11L, 1e-9L, false};
  stored = roundTo(tie, DType::F16, rules);
  EXPECT_TRUE(accepts(stored, 1, DType::F16));
  EXPECT_TRUE(accepts(stored, 1 + 0x1p-10, DType::F16));
  EXPECT_FALSE(accepts(stored, 1 + 0x1p-9, DType::F16));
  EXPECT_EQ(roundTo(Bounded::exact(65519), DType::F16, rules).value, 65504);
  EXPECT_EQ(roundTo(Bounded::exact(65520), DType::F16, rules).value, infinity);
  EXPECT_TRUE(roundTo({65520, 1, false}, DType::F16, rules).leftRange);
  // A zero whose sign is open decides no pole.
  Bounded vanishing = roundTo({1e-30L, 2e-30L, false}, DType::F16, rules);
  EXPECT_TRUE(accepts(vanishing, 0, DType::F16));
  EXPECT_TRUE(div(Bounded::exact(1), vanishing, rules).leftRange);
  vanishing = roundTo({1e-30L, 1e-31L, false}, DType::F16, rules);
  EXPECT_EQ(div(Bounded::exact(1), vanishing, rules).value, infinity);
  // Subnormals are kept.
  EXPECT_EQ(roundTo(Bounded::exact(0x1.8p-24L), DType::F16, rules).value,
            0x1p-23L);
  EXPECT_TRUE(
      std::isnan(roundTo(Bounded::exact(1000), DType::F8E4M3, rules).value));
}

TEST(Bounded, StepsAndTruncation) {
  Bounded below{2.5L, 0.25L, false}, across{3, 0.25L, false};
  EXPECT_TRUE(floor(below).isExact());
  EXPECT_EQ(floor(below).value, 2);
  EXPECT_TRUE(accepts(floor(across), 2, DType::F32));
  EXPECT_TRUE(accepts(floor(across), 3, DType::F32));
  EXPECT_EQ(truncated(below), 2.0L);
  EXPECT_FALSE(truncated(across).has_value());
}

TEST(Bounded, Acceptance) {
  EXPECT_TRUE(accepts(Bounded::nan(), notANumber, DType::F32));
  EXPECT_FALSE(accepts(Bounded::nan(), 0, DType::F32));
  EXPECT_FALSE(accepts(Bounded::exact(0), notANumber, DType::F32));
  EXPECT_TRUE(accepts(Bounded::exact(0), -0.0, DType::F32));
  EXPECT_TRUE(accepts(Bounded::exact(infinity), infinity, DType::F32));
  EXPECT_FALSE(accepts(Bounded::exact(infinity), -infinity, DType::F32));
  EXPECT_FALSE(accepts(Bounded::exact(infinity), 3e38, DType::F32));
  EXPECT_FALSE(accepts(Bounded::exact(1), infinity, DType::F32));
}

// A factor that may be taken for zero times an infinity, and nothing else.
TEST(Bounded, FlushedFactorsOfInfinities) {
  Arithmetic rules = Arithmetic::forTier(DType::BF16);
  rules.flushesContractions = true;
  const double infinity = std::numeric_limits<double>::infinity();
  for (double sign : {1.0, -1.0}) {
    Summation sum(rules);
    sum.addProduct(0x1p-130L, sign * infinity);
    sum.addProduct(1, 3);
    Bounded result = sum.finishContraction();
    EXPECT_EQ(judge(result, std::nan(""), DType::F32), Verdict::Accept);
    EXPECT_EQ(judge(result, sign * infinity, DType::F32), Verdict::Accept);
    EXPECT_NE(judge(result, -sign * infinity, DType::F32), Verdict::Accept);
    EXPECT_NE(judge(result, 3, DType::F32), Verdict::Accept);
    EXPECT_NE(judge(result, 0, DType::F32), Verdict::Accept);
  }
}

TEST(Bounded, DepthOfPlans) {
  Arithmetic rules;
  EXPECT_EQ(rules.depth(0), 0);
  EXPECT_EQ(rules.depth(1), 0);
  EXPECT_EQ(rules.depth(100), 99);
  rules.partials = 64;
  EXPECT_EQ(rules.depth(2), 1);
  EXPECT_EQ(rules.depth(64), 6);
  EXPECT_EQ(rules.depth(65), 7);
  EXPECT_EQ(rules.depth(4096), 69);
  rules.extraDepth = 3;
  EXPECT_EQ(rules.depth(4096), 72);
}

TEST(Bounded, SumsInF64AreCompensated) {
  Arithmetic rules = Arithmetic::forTier(DType::F64);
  Summation sum(rules);
  sum.add(Bounded::exact(1e30L));
  for (int i = 0; i < 1000; ++i)
    sum.add(Bounded::exact(1 + 1e-16L));
  sum.add(Bounded::exact(-1e30L));
  EXPECT_NEAR(static_cast<double>(sum.finish().value), 1000.0000000000001,
              1e-12);
}

} // namespace
} // namespace tessera::bounded
