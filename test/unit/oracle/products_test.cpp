//===- test/unit/oracle/products_test.cpp - Many sums of products ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vector loops give what adding every product on its own gives: the same
// values, outcomes and radii, whatever the factors are.
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/products.h"

#include "reference_kernels.h"

#include <random>

namespace tessera::oracletest {
namespace {

using kernels::ValueClass;
using oracle::Factors;
using oracle::ProductLoops;
using oracle::Products;
using oracle::Row;

std::string describe(const Bounded &x) {
  return testing::PrintToString(static_cast<double>(x.value)) + " within " +
         testing::PrintToString(static_cast<double>(x.radius)) + " outcomes " +
         std::to_string(x.outcomes) + (x.isUnknown() ? " unknown" : "");
}

/// The same up to the roundings that values and radii are made with: those of
/// a long double, which has 11 bits more than an F64.
testing::AssertionResult isSame(const Bounded &loops, const Bounded &single,
                                DType dtype) {
  long double part = dtype == DType::F64 ? 0x1p-9L : 0x1p-30L;
  bool same =
      loops.leftRange == single.leftRange && loops.outcomes == single.outcomes;
  if (std::isfinite(single.value)) {
    long double radius = single.radius;
    same &= std::fabs(loops.value - single.value) <=
                part * radius + 0x1p-60L * std::fabs(single.value) &&
            std::fabs(loops.radius - radius) <= part * radius;
  } else {
    same &= std::isnan(single.value) ? std::isnan(loops.value)
                                     : loops.value == single.value;
  }
  if (same)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << describe(loops) << " instead of " << describe(single);
}

/// Runs the oracle with each kind of loops.
void expectSameResults(Call &call, std::string_view op,
                       const std::string &what) {
  call.args.products = ProductLoops::OneByOne;
  oracle::OracleResult single = call.expected(op);
  for (ProductLoops loops : {ProductLoops::Widest, ProductLoops::Narrow}) {
    call.args.products = loops;
    oracle::OracleResult result = call.expected(op);
    for (const auto &[name, output] : single) {
      const std::vector<Bounded> &made = result.find(name)->second.values;
      ASSERT_EQ(made.size(), output.values.size());
      for (size_t i = 0; i < made.size(); ++i)
        ASSERT_TRUE(isSame(made[i], output.values[i], call.args.dtype))
            << op << " " << what << " " << name << "[" << i << "] loops "
            << static_cast<int>(loops);
    }
  }
}

constexpr ValueClass classes[] = {
    ValueClass::Normal,       ValueClass::NegativeInfinity,
    ValueClass::SprinkledNan, ValueClass::SprinkledInfinity,
    ValueClass::Subnormal,    ValueClass::HugeOffset,
    ValueClass::SignedZeros,  ValueClass::LargeMagnitude};

TEST(OracleProducts, ContractionsAgree) {
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (ValueClass valueClass : classes)
      for (int64_t n : {0, 1, 3, 8, 9, 16, 17, 37})
        for (int64_t k : {0, 1, 2, 65, 301}) {
          std::string what = std::string(name(dtype)) + " class " +
                             std::to_string(static_cast<int>(valueClass)) +
                             " n " + std::to_string(n) + " k " +
                             std::to_string(k);
          bool transposed = (n + k) % 2 != 0;
          Call call(dtype, /*partials=*/n % 2 ? 1 : 64);
          call.generated("a", {3, k}, valueClass, 1);
          call.generated("b",
                         transposed ? std::vector<int64_t>{n, k}
                                    : std::vector<int64_t>{k, n},
                         valueClass, 2);
          call.args.scalars["trans_b"] = transposed;
          if (k % 2 != 0)
            call.generated("c0", {3, n}, valueClass, 3);
          expectSameResults(call, "gemm", what);
          if (testing::Test::HasFatalFailure())
            return;
        }
}

TEST(OracleProducts, AttentionAgrees) {
  struct Extents {
    int64_t queries, keys, depth, valueDepth;
  };
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (ValueClass valueClass : classes)
      for (Extents x :
           {Extents{0, 3, 2, 2}, Extents{2, 0, 2, 2}, Extents{2, 3, 0, 1},
            Extents{2, 1, 1, 0}, Extents{3, 7, 3, 5}, Extents{5, 33, 19, 17},
            Extents{2, 65, 1, 1}}) {
        std::string what = std::string(name(dtype)) + " class " +
                           std::to_string(static_cast<int>(valueClass)) +
                           " keys " + std::to_string(x.keys);
        Call call(dtype, x.keys % 3 ? 1 : 64);
        call.generated("q", {2, 4, x.queries, x.depth}, valueClass, 1);
        call.generated("k", {2, 2, x.keys, x.depth}, valueClass, 2);
        call.generated("v", {2, 2, x.keys, x.valueDepth}, valueClass, 3);
        expectSameResults(call, "attention", what);
        call.args.scalars["causal"] = 1;
        call.args.scalars["scale"] = 0.25;
        call.integers("lengths", DType::I32, {2}, {x.keys, x.keys / 2});
        std::vector<int64_t> mask;
        for (int64_t i = 0; i < x.queries * x.keys; ++i)
          mask.push_back(i % 3 != 1);
        call.integers("mask", DType::Bool, {1, 1, x.queries, x.keys}, mask);
        expectSameResults(call, "attention", what + " masked");
        if (testing::Test::HasFatalFailure())
          return;
      }
}

TEST(OracleProducts, ThreadsChangeNothing) {
  std::unique_ptr<TaskPool> pool = makeTaskPool(3);
  Call call(DType::F32);
  call.generated("a", {70, 33}, ValueClass::SprinkledInfinity, 1);
  call.generated("b", {33, 40}, ValueClass::Normal, 2);
  oracle::OracleResult alone = call.expected("gemm");
  call.args.pool = pool.get();
  oracle::OracleResult together = call.expected("gemm");
  const std::vector<Bounded> &expected = alone.find("c")->second.values;
  const std::vector<Bounded> &found = together.find("c")->second.values;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i].value == expected[i].value ||
                std::isnan(expected[i].value));
    EXPECT_EQ(found[i].radius, expected[i].radius);
    EXPECT_EQ(found[i].outcomes, expected[i].outcomes);
  }
}

/// A number of every kind: ordinary, exact, huge, tiny, zero, special.
double anyNumber(std::mt19937_64 &random, DType compute) {
  std::normal_distribution<double> normal;
  double value = normal(random);
  switch (random() % 40) {
  case 0:
    value = static_cast<double>(static_cast<int>(random() % 9) - 4);
    break;
  case 1:
    value *= compute == DType::F64 ? 0x1p-1040 : 0x1p-140;
    break;
  case 2:
    value *= compute == DType::F64 ? 0x1p1020 : 0x1p124;
    break;
  case 3:
    value *= compute == DType::F64 ? 0x1p-500 : 0x1p-70;
    break;
  case 4:
    value = std::copysign(0.0, value);
    break;
  case 5:
    value = std::copysign(std::numeric_limits<double>::infinity(), value);
    break;
  case 6:
    if (random() % 4 == 0)
      value = std::numeric_limits<double>::quiet_NaN();
    break;
  default:
    break;
  }
  return static_cast<double>(floatFormat(compute).round(value));
}

/// What operations on such numbers may leave: radii, outcomes, nothing known.
Bounded anyFactor(std::mt19937_64 &random, const Arithmetic &rules) {
  Bounded value = Bounded::exact(anyNumber(random, rules.compute));
  switch (random() % 8) {
  case 0:
    return value;
  case 1:
    return mul(value, Bounded::exact(anyNumber(random, rules.compute)), rules);
  case 2:
    if (random() % 16 == 0)
      value.forget();
    return value;
  default:
    return exp(value, rules);
  }
}

TEST(OracleProducts, RandomFactorsAgree) {
  std::mt19937_64 random(20261129);
  for (int round = 0; round < 3000; ++round) {
    Arithmetic rules = Arithmetic::forTier(round % 2 ? DType::F32 : DType::F64);
    rules.partials = round % 3 ? 1 : 8;
    auto terms = static_cast<int64_t>(random() % 12);
    auto columns = static_cast<int64_t>(1 + random() % 40);
    std::vector<double> y;
    for (int64_t i = 0; i < (terms + 2) * columns; ++i)
      y.push_back(round % 5 ? anyNumber(random, rules.compute)
                            : static_cast<double>(i % 7));
    std::vector<double> exact;
    std::vector<Bounded> bounded;
    for (int64_t k = 0; k < terms; ++k) {
      exact.push_back(anyNumber(random, rules.compute));
      bounded.push_back(anyFactor(random, rules));
    }
    // The factors may have more terms than the row.
    Factors factors(y.data(), terms + 2, columns, columns, 1);
    Row rows[2];
    rows[0].setExact(exact.data(), 1, terms);
    rows[1].setBounded(bounded);
    for (const Row &row : rows)
      for (ProductLoops loops : {ProductLoops::Widest, ProductLoops::Narrow}) {
        std::vector<Bounded> made;
        Products(rules, loops)
            .sums(row, factors,
                  [&](int64_t column, const bounded::Summation &sum) {
                    EXPECT_EQ(column, static_cast<int64_t>(made.size()));
                    made.push_back(sum.finishContraction());
                  });
        ASSERT_EQ(static_cast<int64_t>(made.size()), columns);
        for (int64_t j = 0; j < columns; ++j) {
          bounded::Summation sum(rules);
          for (int64_t k = 0; k < terms; ++k)
            row.addTerm(sum, k, factors.at(k, j), rules);
          ASSERT_TRUE(isSame(made[static_cast<size_t>(j)],
                             sum.finishContraction(), rules.compute))
              << "round " << round << " column " << j << " exact "
              << row.isExact << " loops " << static_cast<int>(loops);
        }
      }
  }
}

} // namespace
} // namespace tessera::oracletest
