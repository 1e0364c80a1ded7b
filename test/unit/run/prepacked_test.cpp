//===- prepacked_test.cpp - Arrays that are packed once for many calls ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_file.h"
#include "kernels/table.h"
#include "session/session.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <gmock/gmock.h>

namespace tessera {
namespace {

using testing::HasSubstr;

const kernels::Operator &op(const char *name) {
  return *kernels::findOperator(name);
}

void expectRight(const char *name, session::RunRequest request,
                 int threads = 1) {
  request.prepacked = {"b"};
  Result<session::RunResult> result =
      session::runOperator(op(name), request, {.threads = threads});
  EXPECT_TRUE(result && result->passed())
      << (result ? result->failures() : result.error().str());
}

TEST(Prepacked, ProductsAreRight) {
  for (bool transB : {false, true})
    for (int threads : {1, 2})
      for (auto [m, n, k] : {std::array<int64_t, 3>{16, 256, 64},
                             {1, 200, 130},
                             {67, 131, 33},
                             {5, 17, 3},
                             {130, 70, 1}}) {
        SCOPED_TRACE(testing::Message() << m << " " << n << " " << k << " "
                                        << transB << " " << threads);
        expectRight("gemm",
                    {.dims = {{"m", m}, {"n", n}, {"k", k}},
                     .settings = {{"trans_b", transB}}},
                    threads);
      }
  const kernels::Dims dims = {{"m", 20}, {"n", 100}, {"k", 40}};
  for (DType dtype : {DType::F64, DType::F16, DType::BF16})
    expectRight("gemm", {.dims = dims, .dtype = dtype});
  for (Isa isa : {Isa::X86_64, Isa::Avx2})
    if (hostRuns(isa))
      expectRight("gemm", {.dims = dims, .isa = isa});
  expectRight("gemm", {.dims = dims, .present = {"c0"}});
  expectRight("gemm_epilogue", {.dims = dims,
                                .settings = {{"activation", int64_t{2}}},
                                .present = {"bias", "residual"}});
  // Weights of their own for each product of a batch.
  expectRight("bmm", {.dims = {{"batch", 3}, {"m", 20}, {"n", 70}, {"k", 9}}},
              2);
  // Rows that lie apart.
  expectRight("gemm", {.dims = dims, .strides = {{"b", {111, 1}}}});
}

/// A product and the arrays for it.
struct Product {
  Product(int64_t m, int64_t n, int64_t k) : m(m), n(n), k(k) {
    a.resize(size_t(m * k));
    b.resize(size_t(k * n));
    c.resize(size_t(m * n));
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = 0.37F * float(i % 91) - 11;
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = 0.11F * float(i % 83) - 4;
  }
  std::vector<Argument> arguments() {
    return {TensorRef::dense(a.data(), DType::F32, {m, k}),
            TensorRef::dense(b.data(), DType::F32, {k, n}),
            TensorRef::dense(c.data(), DType::F32, {m, n})};
  }
  TensorRef weights() { return TensorRef::dense(b.data(), DType::F32, {k, n}); }
  Result<Executable> compiled(std::vector<std::string> prepacked = {"b"}) {
    static const Kernel gemm = op("gemm").kernel();
    CompileOptions options;
    options.prepacked = std::move(prepacked);
    return compile(gemm, arguments(), options);
  }

  int64_t m, n, k;
  std::vector<float> a, b, c;
};

TEST(Prepacked, BitsAreThoseOfTheProductThatPacksNothing) {
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{16, 300, 200}, {100, 130, 77}}) {
    Product product(m, n, k);
    Result<Executable> plain = product.compiled({});
    Result<Executable> own = product.compiled();
    ASSERT_TRUE(plain) << plain.error().str();
    ASSERT_TRUE(own) << own.error().str();
    ASSERT_TRUE(plain->launch(product.arguments()));
    const std::vector<float> expected = product.c;
    Result<Packed> packed = own->pack("b", product.weights());
    ASSERT_TRUE(packed) << packed.error().str();
    EXPECT_GE(packed->bytes(), k * n * int64_t(sizeof(float)));
    // The array is no longer needed.
    std::fill(product.b.begin(), product.b.end(), 0.0F);
    std::vector<Argument> arguments = product.arguments();
    arguments[1] = *packed;
    for (int threads : {1, 2, 2}) {
      std::fill(product.c.begin(), product.c.end(), -1.0F);
      ASSERT_TRUE(own->launch(arguments, {.threads = threads}));
      EXPECT_EQ(product.c, expected);
    }
    // A prepared launch keeps the memory.
    Result<PreparedLaunch> prepared = own->prepare(arguments);
    ASSERT_TRUE(prepared);
    arguments.clear();
    *packed = Packed();
    std::fill(product.c.begin(), product.c.end(), -1.0F);
    ASSERT_TRUE(prepared->run());
    EXPECT_EQ(product.c, expected);
  }
}

/// The lines of docs/howto/prepack.md.
TEST(Prepacked, IsUsedAsThePageSays) {
  Product product(16, 200, 70);
  const Kernel gemm = op("gemm").kernel();
  const TensorRef b = product.weights();
  std::vector<Argument> arguments = product.arguments();
  // snippet: prepack
  CompileOptions options;
  options.prepacked = {"b"};
  Result<Executable> executable = compile(gemm, arguments, options);
  Result<Packed> weights = executable->pack("b", b);
  arguments[1] = *weights;
  Result<void> done = executable->launch(arguments);
  // end snippet
  EXPECT_TRUE(done) << done.error().str();
}

TEST(Prepacked, OtherArgumentsAreRefused) {
  Product product(16, 200, 70), other(16, 200, 72);
  Result<Executable> own = product.compiled();
  Result<Executable> plain = product.compiled({});
  Result<Executable> others = other.compiled();
  ASSERT_TRUE(own && plain && others);
  auto launched = [&](const Executable &executable, Argument b) {
    std::vector<Argument> arguments = product.arguments();
    arguments[1] = std::move(b);
    Result<void> result = executable.launch(arguments);
    return result ? std::string("no error") : result.error().str();
  };
  EXPECT_THAT(launched(*own, product.weights()),
              HasSubstr("argument 'b': found an array as it is, expected what "
                        "Executable::pack made of 'b' of kernel 'gemm', "
                        "70x200 f32"));
  EXPECT_THAT(launched(*own, 1.0), HasSubstr("found a scalar"));
  EXPECT_THAT(launched(*own, Packed()), HasSubstr("without memory"));
  Result<Packed> packed = own->pack("b", product.weights());
  ASSERT_TRUE(packed) << packed.error().str();
  EXPECT_EQ(launched(*own, *packed), "no error");
  EXPECT_THAT(launched(*plain, *packed), HasSubstr("found a packed array"));
  Result<Packed> wrong = others->pack("b", other.weights());
  ASSERT_TRUE(wrong);
  EXPECT_THAT(launched(*own, *wrong),
              HasSubstr("packed for 'b' of kernel 'gemm', 72x200 f32"));
  // What is packed is what a launch would take.
  Result<Packed> extents = own->pack("b", other.weights());
  ASSERT_FALSE(extents);
  EXPECT_EQ(extents.error().code, "launch.extent");
  for (const char *name : {"a", "c", "beta", "nothing"}) {
    Result<Packed> none = own->pack(name, product.weights());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, "launch.packed");
  }
  // Another executable of the same plan reads the same panels.
  clearCompileCache();
  Result<Executable> again = product.compiled();
  ASSERT_TRUE(again);
  EXPECT_EQ(launched(*again, *packed), "no error");
}

std::string refusalOf(const Result<Executable> &compiled) {
  return compiled ? std::string("it was compiled") : compiled.error().str();
}

TEST(Prepacked, WhatCannotBePackedIsRefused) {
  Product product(16, 200, 70);
  EXPECT_THAT(refusalOf(product.compiled({"c"})),
              HasSubstr("expected an array that kernel 'gemm' reads"));
  EXPECT_THAT(refusalOf(product.compiled({"x"})), HasSubstr("'x'"));
  auto refused = [](const char *name, const char *array,
                    session::RunRequest request = {}) {
    request.prepacked = {array};
    Result<session::Compilation> made =
        session::compileOperator(op(name), request);
    if (made)
      return std::string("it was compiled");
    EXPECT_EQ(made.error().code, "prepack.not_packed");
    return made.error().message;
  };
  EXPECT_THAT(refused("softmax", "x"), HasSubstr("no contraction takes"));
  EXPECT_THAT(refused("gemm_epilogue", "bias", {.present = {"bias"}}),
              HasSubstr("no contraction takes"));
  // One array, twice.
  Kernel gram =
      kernel("gram", "a, c", [](View<const Float, 2> a, View<Float, 2> c) {
        Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
        Dim k = dim("k", a.extent(0));
        for (auto [i, j] : parallel(blocks(m, 16), blocks(n, 16)))
          store(c(i, j), contract(load(a(k, i)), load(a(k, j)), k));
      });
  std::vector<float> a(64 * 32), c(32 * 32);
  CompileOptions options;
  options.prepacked = {"a"};
  EXPECT_THAT(
      refusalOf(compile(gram,
                        std::vector<Argument>{
                            TensorRef::dense(a.data(), DType::F32, {64, 32}),
                            TensorRef::dense(c.data(), DType::F32, {32, 32})},
                        options)),
      HasSubstr("read in more than one place"));
}

TEST(Prepacked, IsPartOfASavedPlan) {
  session::RunRequest request;
  request.dims = {{"m", 16}, {"n", 200}, {"k", 70}};
  request.prepacked = {"b"};
  Result<session::Compilation> made =
      session::compileOperator(op("gemm"), request);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->kernel.planSummary, HasSubstr("prepacked"));
  const std::string summary = made->kernel.planSummary;
  const std::string text = writePlan(*made->kernel.plan, *made->kernel.subject);
  EXPECT_THAT(text, HasSubstr("\"prepacked\": ["));

  // The file alone says it.
  request.prepacked.clear();
  request.savedPlan = PlanText{"p.json", text};
  made = session::compileOperator(op("gemm"), request);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(made->kernel.planSummary, summary);
  EXPECT_EQ(made->kernel.executable.info().packs.size(), 1u);
  Result<session::RunResult> result = session::runOperator(op("gemm"), request);
  EXPECT_TRUE(result && result->passed());

  // Another array is asked for than the file has.
  request.prepacked = {"a"};
  made = session::compileOperator(op("gemm"), request);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "usage.prepacked");

  // A library takes none.
  request.savedPlan.reset();
  request.vendor = Vendor::Cblas;
  made = session::compileOperator(op("gemm"), request);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "usage.prepacked");
}

} // namespace
} // namespace tessera
