//===- scalars_test.cpp - Numbers given to a kernel, to the last bit ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scalars of every integer type, their defaults and constants: compiled code
// and the interpreter compute with the number that was given.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace tessera;
using testing::ElementsAre;

namespace {

/// Launches the kernel of one array and scalars as compiled code and in the
/// interpreter; empty where one fails.
template <typename T>
std::vector<T> compute(const Kernel &kernel, DType dtype, size_t count,
                       const std::vector<Argument> &scalars) {
  std::vector<T> compiled(count), interpreted(count);
  auto arguments = [&](std::vector<T> &y) {
    std::vector<Argument> all = {
        TensorRef::dense(y.data(), dtype, {int64_t(count)})};
    all.insert(all.end(), scalars.begin(), scalars.end());
    return all;
  };
  Result<void> done = launch(kernel, arguments(compiled));
  Result<Program> program = Program::fromKernel(kernel, {});
  EXPECT_TRUE(program.ok()) << program.error().str();
  if (!program)
    return {};
  Result<void> strict = program->interpret(arguments(interpreted), {});
  EXPECT_EQ(done.ok(), strict.ok());
  if (!done || !strict) {
    EXPECT_EQ(done.error().message, strict.error().message);
    return {};
  }
  EXPECT_EQ(compiled, interpreted);
  return compiled;
}

TEST(Scalars, UnsignedOnesHoldUnsignedNumbers) {
  Kernel k = kernel("k", "y, a, b, c",
                    [](View<int64_t, 1> y, Scalar<uint8_t> a,
                       Scalar<uint32_t> b, Scalar<uint64_t> c) {
                      store(y(0), cast(a, DType::I64));
                      store(y(1), cast(b, DType::I64));
                      store(y(2), cast(a > 100, DType::I64));
                      store(y(3), cast(c >> 1, DType::I64));
                    });
  auto run = [&](Argument a, Argument b, Argument c) {
    return compute<int64_t>(k, DType::I64, 4, {a, b, c});
  };
  EXPECT_THAT(run(int64_t(200), int64_t(3000000000), 0x1p63),
              ElementsAre(200, 3000000000, 1, int64_t(1) << 62));
  EXPECT_THAT(run(255.0, 4294967295.0, int64_t(6)),
              ElementsAre(255, 4294967295, 1, 3));
  EXPECT_TRUE(run(int64_t(256), int64_t(0), int64_t(0)).empty());
  EXPECT_TRUE(run(int64_t(-1), int64_t(0), int64_t(0)).empty());
  EXPECT_TRUE(run(int64_t(0), int64_t(-1), int64_t(0)).empty());
  EXPECT_TRUE(run(int64_t(0), int64_t(0), int64_t(-1)).empty());
}

TEST(Scalars, DefaultsHaveAllTheirBits) {
  Kernel k = kernel("k", "y, a = 200, b = true, c = 9007199254740993, d = -7",
                    [](View<int64_t, 1> y, Scalar<uint8_t> a, Scalar<bool> b,
                       Scalar<int64_t> c, Scalar<int16_t> d) {
                      store(y(0), cast(a, DType::I64));
                      store(y(1), cast(b, DType::I64));
                      store(y(2), c);
                      store(y(3), cast(d, DType::I64));
                    });
  EXPECT_THAT(compute<int64_t>(k, DType::I64, 4, {}),
              ElementsAre(200, 1, 9007199254740993, -7));
}

TEST(Scalars, IntegersAreRoundedOnce) {
  Kernel k = kernel("k", "y, a",
                    [](View<float, 1> y, Scalar<float> a) { store(y(0), a); });
  // Just above the middle between two floats; f64 rounds it to the middle.
  const int64_t number = (int64_t(1) << 54) + (int64_t(1) << 30) + 1;
  EXPECT_THAT(compute<float>(k, DType::F32, 1, {number}),
              ElementsAre(0x1.000002p54f));
}

TEST(Scalars, ConstantsThatDifferLittleAreOtherKernels) {
  Kernel k = kernel("k", "y, c", [](View<double, 1> y, Const<double> c) {
    store(y(0), double(c));
  });
  for (double c : {1.0, 1 + 0x1p-52, 123456789.0, 123456790.0}) {
    double y = 0;
    CompileOptions options;
    options.trace.constants["c"] = c;
    std::vector<Argument> arguments = {TensorRef::dense(&y, DType::F64, {1})};
    ASSERT_TRUE(launch(k, arguments, options).ok());
    EXPECT_EQ(y, c);
  }
}

TEST(Scalars, CeilDivNeitherWrapsNorTruncates) {
  Kernel k = kernel("k", "y, a, b, c, d",
                    [](View<int64_t, 1> y, Scalar<uint8_t> a, Scalar<uint8_t> b,
                       Scalar<int64_t> c, Scalar<int64_t> d) {
                      store(y(0), cast(ceilDiv(a, b), DType::I64));
                      store(y(1), ceilDiv(c, d));
                    });
  auto run = [&](int64_t a, int64_t b, int64_t c, int64_t d) {
    return compute<int64_t>(k, DType::I64, 2, {a, b, c, d});
  };
  const int64_t top = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(run(250, 10, top, 2), ElementsAre(25, top / 2 + 1));
  EXPECT_THAT(run(251, 250, -6, 2), ElementsAre(2, -3));
  EXPECT_THAT(run(0, 3, -7, 2), ElementsAre(0, -3));
  EXPECT_THAT(run(255, 255, 0, 5), ElementsAre(1, 0));
}

} // namespace
