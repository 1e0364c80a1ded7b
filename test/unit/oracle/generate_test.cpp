//===- test/unit/oracle/generate_test.cpp - Generated arguments -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated elements depend on seed, name and index alone and have the
// properties of their class, for every type.
//
//===----------------------------------------------------------------------===//

#include "kernels/generate.h"

#include "kernels/elements.h"
#include "support/float_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tessera::kernels {
namespace {

class Array {
public:
  Array(DType dtype, std::vector<int64_t> extents) {
    int64_t count = 1;
    for (int64_t extent : extents)
      count *= extent;
    buffer.resize(static_cast<size_t>(count * sizeInBytes(dtype) + 8));
    tensor = TensorRef::dense(buffer.data(), dtype, std::move(extents));
  }
  std::vector<double> fill(ValueClass valueClass, uint64_t seed = 1,
                           std::string_view name = "x") {
    GenerateOptions options;
    options.seed = seed;
    options.valueClass = valueClass;
    EXPECT_TRUE(generate(tensor, name, options).ok());
    return loadFloats(tensor);
  }

  std::vector<char> buffer;
  TensorRef tensor;
};

TEST(Generate, DependsOnSeedNameAndIndexAlone) {
  Array a(DType::F32, {6, 4}), b(DType::F32, {4, 6});
  std::vector<double> first = a.fill(ValueClass::Normal);
  EXPECT_EQ(first, b.fill(ValueClass::Normal));
  EXPECT_NE(first, a.fill(ValueClass::Normal, 2));
  EXPECT_NE(first, a.fill(ValueClass::Normal, 1, "y"));
  // Column-major strides change the addresses, not the values.
  b.tensor = a.tensor;
  b.tensor.strides = {1, 6};
  EXPECT_EQ(first, b.fill(ValueClass::Normal));
}

TEST(Generate, ThreadsChangeNothing) {
  std::unique_ptr<TaskPool> pool = makeTaskPool(3);
  GenerateOptions options;
  for (std::vector<int64_t> extents :
       std::vector<std::vector<int64_t>>{{70001},
                                         {2, 50000},
                                         {1, 70000},
                                         {70000, 1},
                                         {301, 7, 40},
                                         {70000, 0}}) {
    Array alone(DType::F32, extents), together(DType::F32, extents);
    options.pool = nullptr;
    ASSERT_TRUE(generate(alone.tensor, "x", options).ok());
    options.pool = pool.get();
    ASSERT_TRUE(generate(together.tensor, "x", options).ok());
    EXPECT_EQ(alone.buffer, together.buffer);
  }
  // Every other element of a transposed array, and one that overlaps itself.
  Array alone(DType::F32, {600, 400}), together(DType::F32, {600, 400});
  for (std::vector<int64_t> strides : {std::vector<int64_t>{2, 600}, {0, 1}}) {
    for (Array *array : {&alone, &together}) {
      array->tensor.extents = {300, 400};
      array->tensor.strides = strides;
      options.pool = array == &alone ? nullptr : pool.get();
      ASSERT_TRUE(generate(array->tensor, "x", options).ok());
    }
    EXPECT_EQ(alone.buffer, together.buffer);
  }
}

TEST(Generate, NormalHasMeanAndSpread) {
  Array a(DType::F32, {100, 100});
  double sum = 0, squares = 0;
  for (double x : a.fill(ValueClass::Normal)) {
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.05);
}

TEST(Generate, IntegersAndMasks) {
  Array a(DType::I32, {1000}), mask(DType::Bool, {10000});
  GenerateOptions options;
  options.valueClass = ValueClass::Integers;
  options.low = -3;
  options.high = 4;
  ASSERT_TRUE(generate(a.tensor, "ids", options).ok());
  std::vector<int64_t> values = loadIntegers(a.tensor);
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -3);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 3);
  options.high = -3;
  EXPECT_FALSE(generate(a.tensor, "ids", options).ok());
  options.valueClass = ValueClass::Mask;
  ASSERT_TRUE(generate(mask.tensor, "mask", options).ok());
  values = loadIntegers(mask.tensor);
  EXPECT_NEAR(std::count(values.begin(), values.end(), 0), 2000, 200);
}

TEST(Generate, ClassesHoldForEveryFloatType) {
  for (DType type :
       {DType::F16, DType::BF16, DType::F8E5M2, DType::F32, DType::F64}) {
    const FloatFormat &format = floatFormat(type);
    Array a(type, {4, 33});
    for (double x : a.fill(ValueClass::NegativeInfinity))
      EXPECT_TRUE(std::isinf(x) && x < 0) << name(type);
    std::vector<double> values = a.fill(ValueClass::SprinkledNan);
    auto isNan = [](double x) { return std::isnan(x); };
    EXPECT_TRUE(std::any_of(values.begin(), values.end(), isNan));
    EXPECT_FALSE(std::all_of(values.begin(), values.end(), isNan));
    for (double x : a.fill(ValueClass::Subnormal)) {
      EXPECT_NE(x, 0) << name(type);
      EXPECT_LT(std::fabs(x), std::ldexp(1.0L, format.minExponent));
    }
    for (double x : a.fill(ValueClass::LargeMagnitude)) {
      EXPECT_TRUE(std::isfinite(x)) << name(type);
      EXPECT_GE(std::fabs(x), format.maxFinite / 260) << name(type);
    }
    for (double x : a.fill(ValueClass::HugeOffset))
      EXPECT_GE(x, 9e3) << name(type);
    int negative = 0;
    for (double x : a.fill(ValueClass::SignedZeros)) {
      EXPECT_EQ(x, 0);
      negative += std::signbit(x);
    }
    EXPECT_GT(negative, 20);
    EXPECT_LT(negative, 112);
  }
}

TEST(Generate, AShortArrayStillHasItsNan) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Array a(DType::F32, {3});
    std::vector<double> values = a.fill(ValueClass::SprinkledNan, seed);
    EXPECT_TRUE(std::any_of(values.begin(), values.end(),
                            [](double x) { return std::isnan(x); }));
  }
}

TEST(Generate, RefusesWhatTheTypeCannotHold) {
  GenerateOptions options;
  options.valueClass = ValueClass::SprinkledNan;
  Array integers(DType::I32, {4}), small(DType::F8E4M3, {4});
  Result<void> result = generate(integers.tensor, "ids", options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().family, ErrorFamily::Launch);
  options.valueClass = ValueClass::NegativeInfinity;
  EXPECT_FALSE(generate(small.tensor, "x", options).ok());
}

TEST(Generate, NamesRoundTrip) {
  for (auto valueClass :
       {ValueClass::Normal, ValueClass::Integers, ValueClass::Mask,
        ValueClass::NegativeInfinity, ValueClass::SprinkledNan,
        ValueClass::SprinkledInfinity, ValueClass::Subnormal,
        ValueClass::HugeOffset, ValueClass::SignedZeros,
        ValueClass::LargeMagnitude})
    EXPECT_EQ(parseValueClass(name(valueClass)), valueClass);
  EXPECT_EQ(parseValueClass("nothing"), std::nullopt);
}

} // namespace
} // namespace tessera::kernels
