//===- stepped_test.cpp - Elements a small step apart ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads of every few elements of a row, forwards and backwards, inside and over
// both edges of the array, in memory that ends at a guard page on either side.
//
//===----------------------------------------------------------------------===//

#include "kernels/table.h"
#include "session/session.h"
#include "tessera/dsl.h"
#include "tessera/npy.h"

#include <gmock/gmock.h>

namespace tessera {
namespace {

using session::Edge;

const std::vector<Isa> &levels() {
  static const std::vector<Isa> all = [] {
    std::vector<Isa> mine;
    for (Isa isa : {Isa::X86_64, Isa::Avx2, Isa::Avx512})
      if (hostRuns(isa))
        mine.push_back(isa);
    return mine;
  }();
  return all;
}

/// y[i] = x[step i + offset] + x[step i + offset + 1], with a fill outside.
Kernel every(int64_t step, int64_t offset, bool fills) {
  return kernel("every", "x, y", [=](View<const Float, 2> x, View<Float, 2> y) {
    Dim row = dim("row", y.extent(0)), col = dim("col", y.extent(1));
    for (auto i : parallel(row)) {
      auto at = [&](int64_t shift) {
        return fills ? load(x(i, step * col + (offset + shift)), {.fill = 7.0})
                     : load(x(i, step * col + (offset + shift)));
      };
      store(y(i, col), at(0) + at(1));
    }
  });
}

void expectRight(Kernel kernel, int64_t across, int64_t cols, DType dtype,
                 Isa isa) {
  for (Edge edge : {Edge::End, Edge::Begin}) {
    TraceOptions options;
    options.storage = dtype;
    Result<Program> program = Program::fromKernel(kernel, options);
    ASSERT_TRUE(program) << program.error().str();
    session::RunRequest request;
    request.dims = {{"row", 3}, {"col", cols}};
    request.isa = isa;
    request.edge = edge;
    Result<Array> x = Array::allocate(dtype, {3, across});
    ASSERT_TRUE(x);
    kernels::GenerateOptions generation;
    ASSERT_TRUE(kernels::generate(x->view(), "x", generation));
    request.inputs = {{"x", x->view()}};
    Result<session::RunResult> result =
        session::runProgram(std::move(*program), request);
    EXPECT_TRUE(result && result->passed())
        << (result ? result->failures() : result.error().str());
  }
}

TEST(Stepped, RowsAreRight) {
  for (Isa isa : levels())
    for (int64_t step : {-5, -4, -2, -1, 2, 3, 5})
      for (int64_t cols : {15, 41}) {
        SCOPED_TRACE(testing::Message()
                     << name(isa) << " step " << step << " cols " << cols);
        const int64_t reach = std::abs(step) * (cols - 1) + 2;
        const int64_t first = step < 0 ? reach - 2 : 0;
        // Wholly inside, to the last element; over either edge.
        expectRight(every(step, first, false), reach, cols, DType::F32, isa);
        expectRight(every(step, first - 3, true), reach, cols, DType::F32, isa);
        expectRight(every(step, first + 3, false), reach, cols, DType::F32,
                    isa);
      }
}

TEST(Stepped, TypesAreRight) {
  for (Isa isa : levels())
    for (DType dtype : {DType::F64, DType::F16, DType::BF16})
      for (int64_t step : {-3, 2}) {
        const int64_t reach = std::abs(step) * 44 + 2;
        const int64_t first = step < 0 ? reach - 2 : 0;
        SCOPED_TRACE(testing::Message()
                     << name(isa) << " step " << step << " " << name(dtype));
        expectRight(every(step, first, true), reach, 45, dtype, isa);
        expectRight(every(step, first - 2, false), reach, 45, dtype, isa);
      }
}

void expectRight(const char *op, session::RunRequest request) {
  for (Isa isa : levels()) {
    request.isa = isa;
    Result<session::RunResult> result =
        session::runOperator(*kernels::findOperator(op), request);
    EXPECT_TRUE(result && result->passed())
        << op << " " << name(isa) << ": "
        << (result ? result->failures() : result.error().str());
  }
}

// A dimension of one coordinate has no loop, but its coordinate is asked for
// where windows read beside the image.
TEST(Stepped, WindowsOfOneRowAreRight) {
  for (auto [kh, kw] : {std::pair<int64_t, int64_t>{1, 5}, {5, 1}, {1, 1}})
    for (int64_t filters : {6, 64})
      for (int64_t pad : {0, 1}) {
        SCOPED_TRACE(testing::Message() << kh << "x" << kw << " " << filters);
        expectRight("conv2d", {.dims = {{"n", 2},
                                        {"c", 6},
                                        {"h", 17},
                                        {"w", 17},
                                        {"f", filters},
                                        {"kh", kh},
                                        {"kw", kw}},
                               .settings = {{"pad", pad}}});
      }
}

TEST(Stepped, WindowsAreRight) {
  for (int64_t stride : {2, 3})
    for (int64_t pad : {0, 1}) {
      SCOPED_TRACE(testing::Message() << stride << " " << pad);
      const kernels::Settings settings = {{"stride", stride}, {"pad", pad}};
      expectRight(
          "depthwise_conv2d",
          {.dims =
               {{"n", 1}, {"c", 3}, {"h", 21}, {"w", 71}, {"kh", 3}, {"kw", 5}},
           .settings = settings});
      expectRight("conv2d", {.dims = {{"n", 1},
                                      {"c", 5},
                                      {"h", 9},
                                      {"w", 67},
                                      {"f", 10},
                                      {"kh", 3},
                                      {"kw", 3}},
                             .settings = settings});
      expectRight("conv2d", {.dims = {{"n", 1},
                                      {"c", 3},
                                      {"h", 15},
                                      {"w", 75},
                                      {"f", 6},
                                      {"kh", 3},
                                      {"kw", 3}},
                             .settings = {{"stride", stride},
                                          {"pad", pad},
                                          {"dilation", int64_t{2}}}});
      expectRight("max_pool2d",
                  {.dims = {{"n", 1}, {"c", 3}, {"h", 21}, {"w", 69}},
                   .settings = {{"window", int64_t{3}},
                                {"stride", stride},
                                {"pad", pad}}});
    }
}

TEST(Stepped, NothingIsGathered) {
  std::string text;
  session::RunRequest request;
  request.dims = {{"n", 1},  {"c", 8},  {"h", 56},
                  {"w", 56}, {"kh", 3}, {"kw", 3}};
  request.settings = {{"stride", int64_t{2}}, {"pad", int64_t{1}}};
  request.isa = Isa::Avx512;
  request.threads = 1;
  request.stageText = [&](const char *stage, std::string content) {
    if (std::string_view(stage) == "loops")
      text = std::move(content);
  };
  Result<session::Compilation> made = session::compileOperator(
      *kernels::findOperator("depthwise_conv2d"), request);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->kernel.planSummary, testing::HasSubstr("(ow x16"));
  EXPECT_THAT(made->kernel.report, testing::HasSubstr("vector.stepped"));
  EXPECT_EQ(text.find("masked.gather"), std::string::npos);
}

} // namespace
} // namespace tessera
