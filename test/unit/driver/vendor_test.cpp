//===- vendor_test.cpp - Kernels that are handed to a library -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products through libraries are right, what is no product is refused with the
// reason, and the second check finds calls that are not what the kernel says.
//
//===----------------------------------------------------------------------===//

#include "dialect/specialize.h"
#include "driver/plan_file.h"
#include "driver/text.h"
#include "plan/plan_product.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/vendor.h"
#include "runtime/host/vendor_library.h"
#include "session/session.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <limits>

namespace tessera {
namespace {

using testing::HasSubstr;

/// A library that is not there is no failure.
#define NEED(vendor)                                                           \
  if (auto opened = VendorLibrary::open(vendor); !opened)                      \
  GTEST_SKIP() << opened.error().message

/// Names a library while it lives.
class Library {
public:
  explicit Library(const char *file) {
    ::setenv("TESSERA_VENDOR_LIBRARY", file, 1);
  }
  ~Library() { ::unsetenv("TESSERA_VENDOR_LIBRARY"); }
};

std::string failure(const Result<session::RunResult> &result) {
  return result ? result->failures() : result.error().str();
}

Result<session::RunResult> runProduct(const char *op,
                                      session::RunRequest request,
                                      int threads = 1,
                                      Vendor vendor = Vendor::Cblas) {
  request.vendor = vendor;
  return session::runOperator(*kernels::findOperator(op), request,
                              {.threads = threads});
}

void expectRight(const char *op, const session::RunRequest &request,
                 int threads = 1, Vendor vendor = Vendor::Cblas) {
  Result<session::RunResult> result = runProduct(op, request, threads, vendor);
  EXPECT_TRUE(result && result->passed()) << failure(result);
}

void expectProducts(Vendor vendor) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (int threads : {1, 2}) {
        const kernels::Settings forms = {{"trans_a", transA},
                                         {"trans_b", transB}};
        expectRight(
            "gemm",
            {.dims = {{"m", 67}, {"n", 130}, {"k", 33}}, .settings = forms},
            threads, vendor);
        expectRight("bmm",
                    {.dims = {{"batch", 5}, {"m", 17}, {"n", 70}, {"k", 9}},
                     .settings = forms},
                    threads, vendor);
      }
  // One row, one column, one product, none at all.
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 70, 20},
                         {70, 1, 20},
                         {3, 5, 1},
                         {1, 1, 1},
                         {5, 7, 0},
                         {0, 7, 3},
                         {5, 0, 3}})
    if (k > 0 || vendor != Vendor::OneDnn)
      expectRight("gemm", {.dims = {{"m", m}, {"n", n}, {"k", k}}}, 1, vendor);
}

TEST(Vendor, ComputesProducts) {
  NEED(Vendor::Cblas);
  expectProducts(Vendor::Cblas);
  expectRight("gemm",
              {.dims = {{"m", 40}, {"n", 30}, {"k", 20}}, .dtype = DType::F64});
}

TEST(Vendor, ComputesProductsWithBlis) {
  Library blis("libblis.so.4");
  NEED(Vendor::Cblas);
  expectProducts(Vendor::Cblas);
}

TEST(Vendor, ComputesProductsWithOneDnn) {
  NEED(Vendor::OneDnn);
  expectProducts(Vendor::OneDnn);
}

TEST(Vendor, TakesRowsThatLieApart) {
  NEED(Vendor::Cblas);
  const kernels::Dims dims = {{"m", 20}, {"n", 30}, {"k", 10}};
  expectRight("gemm",
              {.dims = dims, .strides = {{"a", {15, 1}}, {"c", {40, 1}}}});
  // By columns.
  expectRight("gemm",
              {.dims = dims, .strides = {{"a", {1, 25}}, {"b", {1, 11}}}});
  expectRight("gemm", {.dims = dims, .strides = {{"c", {1, 20}}}});
  auto errorOf = [&](session::RunRequest request) {
    Result<session::RunResult> result = runProduct("gemm", request);
    return result ? std::string("no error") : result.error().str();
  };
  // Rows that overlap, or go backwards.
  for (int64_t stride : {0, 3, -10}) {
    std::string error =
        errorOf({.dims = dims, .strides = {{"a", {stride, 1}}}});
    EXPECT_THAT(error, HasSubstr("argument 'a': its stride along axis 0"));
  }
  EXPECT_THAT(errorOf({.dims = dims, .strides = {{"a", {30, 2}}}}),
              HasSubstr("stride 1 as the library needs it"));
}

TEST(Vendor, IsAnOptionOfCompilations) {
  NEED(Vendor::Cblas);
  Kernel product = kernels::findOperator("gemm")->kernel();
  std::vector<float> a(6, 2), b(6, 3), c(4, -1);
  std::vector<Argument> arguments = {
      TensorRef::dense(a.data(), DType::F32, {2, 3}),
      TensorRef::dense(b.data(), DType::F32, {3, 2}),
      TensorRef::dense(c.data(), DType::F32, {2, 2})};
  CompileOptions options;
  options.vendor = "cblas";
  Result<Executable> handed = compile(product, arguments, options);
  ASSERT_TRUE(handed) << handed.error().str();
  EXPECT_TRUE(handed->info().vendor);
  ASSERT_TRUE(handed->launch(arguments));
  EXPECT_EQ(c, std::vector<float>(4, 18));
  // Not the default, and another executable.
  Result<Executable> own = compile(product, arguments);
  ASSERT_TRUE(own) << own.error().str();
  EXPECT_FALSE(own->info().vendor);
  options.vendor = "blas";
  Result<Executable> unknown = compile(product, arguments, options);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("expected none, cblas"));
}

TEST(Vendor, SaysWhatIsMissing) {
  Library none("/nowhere/libnone.so");
  Result<session::RunResult> result =
      runProduct("gemm", {.dims = {{"m", 2}, {"n", 2}, {"k", 2}}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, "vendor.library");
  EXPECT_THAT(result.error().message, HasSubstr("/nowhere/libnone.so"));
}

TEST(Vendor, IsPartOfASavedPlan) {
  NEED(Vendor::Cblas);
  session::RunRequest request;
  request.dims = {{"m", 20}, {"n", 30}, {"k", 10}};
  request.vendor = Vendor::Cblas;
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  Result<session::Compilation> made = session::compileOperator(gemm, request);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(made->kernel.planSummary, "cblas_sgemm(N, N, m 20, n 30, k 10)");
  std::string text = writePlan(*made->kernel.plan, *made->kernel.subject);
  EXPECT_THAT(text, HasSubstr("\"vendor\": \"cblas\""));

  request.vendor = Vendor::None;
  request.savedPlan = PlanText{"p.json", text};
  made = session::compileOperator(gemm, request);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(made->kernel.planSource, "file");
  EXPECT_EQ(made->kernel.planSummary, "cblas_sgemm(N, N, m 20, n 30, k 10)");

  request.vendor = Vendor::OneDnn;
  made = session::compileOperator(gemm, request);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, "usage.vendor");

  // Loops and a library at once.
  request.vendor = Vendor::None;
  request.savedPlan.reset();
  made = session::compileOperator(gemm, request);
  ASSERT_TRUE(made) << made.error().str();
  text = writePlan(*made->kernel.plan, *made->kernel.subject);
  text.replace(text.find("\"stages\""), 0, "\"vendor\": \"cblas\", ");
  request.savedPlan = PlanText{"p.json", text};
  made = session::compileOperator(gemm, request);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("and stages of compiled loops"));
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

std::string refusalOf(const char *op, session::RunRequest request,
                      Vendor vendor = Vendor::Cblas) {
  request.vendor = vendor;
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator(op), request);
  if (made)
    return "it was taken: " + made->kernel.planSummary;
  EXPECT_EQ(made.error().code, "vendor.not_a_product") << made.error().str();
  return made.error().message;
}

TEST(Vendor, RefusesOperatorsThatAreMore) {
  const kernels::Dims dims = {{"m", 20}, {"n", 30}, {"k", 10}};
  EXPECT_THAT(refusalOf("gemm", {.dims = dims, .present = {"c0"}}),
              HasSubstr("'arith.addf', expected a contraction"));
  EXPECT_THAT(
      refusalOf("gemm_epilogue",
                {.dims = dims, .settings = {{"activation", int64_t{2}}}}),
      HasSubstr("expected a contraction"));
  EXPECT_THAT(refusalOf("gemm_epilogue", {.dims = dims}),
              HasSubstr("the product is scaled"));
  EXPECT_THAT(refusalOf("gemm_affine_leaky", {.dims = dims}),
              HasSubstr("expected a contraction"));
  EXPECT_THAT(refusalOf("gemm_q8", {.dims = dims}),
              HasSubstr("expected a contraction"));
  EXPECT_THAT(refusalOf("gemm", {.dims = dims, .dtype = DType::BF16}),
              HasSubstr("no product of"));
  EXPECT_THAT(
      refusalOf("gemm", {.dims = dims, .dtype = DType::F64}, Vendor::OneDnn),
      HasSubstr("no product of"));
  EXPECT_THAT(refusalOf("gemm", {.dims = {{"m", 5}, {"n", 7}, {"k", 0}}},
                        Vendor::OneDnn),
              HasSubstr("there is nothing to sum"));
  EXPECT_THAT(refusalOf("softmax", {}), HasSubstr("expected a contraction"));
  EXPECT_THAT(refusalOf("conv2d", {}), HasSubstr("dimensions, expected one"));
  EXPECT_THAT(refusalOf("attention", {}), HasSubstr("cannot be handed"));
}

using Body = void (*)(View<const Float, 2> a, View<const Float, 2> b,
                      View<Float, 2> c);

/// Of a 64x48 product with 32 terms.
std::string refusalOf(Body body, AliasMode alias = AliasMode::Disjoint) {
  Result<Program> program = Program::fromKernel(
      kernel("product", "a, b, c",
             [body](View<const Float, 2> a, View<const Float, 2> b,
                    View<Float, 2> c) { body(a, b, c); }),
      {});
  if (!program)
    return program.error().str();
  CompileRequest request;
  request.extents = {{64, 32}, {32, 48}, {64, 48}};
  request.vendor = Vendor::Cblas;
  request.alias = alias;
  Result<CompiledKernel> made = program->compile(request);
  if (made)
    return "it was taken: " + made->planSummary;
  EXPECT_EQ(made.error().code, "vendor.not_a_product") << made.error().str();
  return made.error().message;
}

/// A product by blocks of 16x16 with something changed.
template <typename Change>
void product(View<const Float, 2> a, View<Float, 2> c, Change change) {
  Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
  Dim k = dim("k", a.extent(1));
  for (auto [i, j] : parallel(blocks(m, 16), blocks(n, 16)))
    change(i, j, k);
}

TEST(Vendor, TakesTheUnchangedProduct) {
  NEED(Vendor::Cblas);
  EXPECT_EQ(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                          View<Float, 2> c) {
              product(a, c, [&](auto i, auto j, Dim k) {
                store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k));
              });
            }),
            "it was taken: cblas_sgemm(N, N, m 64, n 48, k 32)");
  // The right operand first, and a sign.
  EXPECT_EQ(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                          View<Float, 2> c) {
              product(a, c, [&](auto i, auto j, Dim k) {
                store(c(i, j), -contract(load(b(k, j)), load(a(i, k)), k));
              });
            }),
            "it was taken: cblas_sgemm(N, N, m 64, n 48, k 32, alpha -1)");
}

TEST(Vendor, RefusesChangedProducts) {
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                product(a, c, [&](auto i, auto j, Dim k) {
                  store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k,
                                          {.order = Order::Left}));
                });
              }),
              HasSubstr("the order of its sums is pinned ('left')"));
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                product(a, c, [&](auto i, auto j, Dim k) {
                  Tile sum = contract(load(a(i, k)), load(b(k, j)), k);
                  store(c(i, j), sum);
                  store(c(i, j), sum);
                });
              }),
              HasSubstr("a second store"));
  // Half of the rows.
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                Dim half = dim("half", 32), n = dim("n", c.extent(1));
                Dim k = dim("k", a.extent(1));
                for (auto [i, j] : parallel(blocks(half, 16), blocks(n, 16)))
                  store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k));
              }),
              HasSubstr("do not store each element along axis 0 of 'c' once"));
  // Rows that are one further on.
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                Dim p = dim("p", 4), row = dim("row", 16);
                Dim n = dim("n", c.extent(1)), k = dim("k", a.extent(1));
                for (auto [i, j] : parallel(p, blocks(n, 16)))
                  store(c(row + index(i) * 16, j),
                        contract(load(a(row + (index(i) * 16 + 1), k)),
                                 load(b(k, j)), k));
              }),
              HasSubstr("axis 0 of 'a' is shifted by 1"));
  // Half of the terms.
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                Dim half = dim("half", 16);
                product(a, c, [&](auto i, auto j, Dim) {
                  store(c(i, j), contract(load(a(i, half + 0)),
                                          load(b(half + 0, j)), half));
                });
              }),
              HasSubstr("not summed from its first element to its last"));
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                product(a, c, [&](auto i, auto j, Dim k) {
                  store(c(i, j),
                        contract(exp(load(a(i, k))), load(b(k, j)), k));
                });
              }),
              HasSubstr("'math.exp', expected elements of an array"));
  EXPECT_THAT(refusalOf(+[](View<const Float, 2> a, View<const Float, 2> b,
                            View<Float, 2> c) {
                product(a, c, [&](auto i, auto j, Dim k) {
                  store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k,
                                          {.acc = load(c(i, j))}));
                });
              }),
              HasSubstr("begin with values of their own"));
  EXPECT_THAT(refusalOf(
                  +[](View<const Float, 2> a, View<const Float, 2> b,
                      View<Float, 2> c) {
                    product(a, c, [&](auto i, auto j, Dim k) {
                      store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k));
                    });
                  },
                  AliasMode::InPlace),
              HasSubstr("may share memory"));
}

//===----------------------------------------------------------------------===//
// The second check
//===----------------------------------------------------------------------===//

/// A batch of products, specialized, with what the proof says of it.
class EmittedCall : public testing::Test {
protected:
  void SetUp() override {
    Result<Program> program =
        Program::fromKernel(kernels::findOperator("bmm")->kernel(), {});
    ASSERT_TRUE(program) << program.error().str();
    tile::loadTileDialects(context);
    loadRealizationDialects(context);
    auto parsed = parseTileText(program->text(), "t.mlir", context);
    ASSERT_TRUE(parsed) << parsed.error().str();
    source = std::move(*parsed);
    kernel = *findKernel(source.get(), "t.mlir", "");
    const std::vector<std::vector<int64_t>> extents = {
        {3, 20, 20}, {3, 20, 20}, {3, 20, 20}};
    ASSERT_TRUE(specialize(kernel, extents));
    StrideFacts strides;
    strides.unit.assign(3, {false, false, true});
    analysis = std::make_unique<KernelAnalysis>(kernel, AliasMode::Disjoint,
                                                extents, strides);
    Result<VendorCall> proved = proveProduct(*analysis, Vendor::Cblas);
    ASSERT_TRUE(proved) << proved.error().str();
    call = *proved;
  }

  /// What the check says of a call, after a change of the function.
  std::string
  checked(const VendorCall &planned,
          llvm::function_ref<void(mlir::func::FuncOp)> change = {}) {
    mlir::OpBuilder b(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module =
        mlir::ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToEnd(module->getBody());
    mlir::Type ptr = mlir::LLVM::LLVMPointerType::get(&context);
    mlir::Type i64 = b.getI64Type();
    auto body = b.create<mlir::func::FuncOp>(
        b.getUnknownLoc(), "bmm_stage0_body",
        b.getFunctionType({ptr, ptr, ptr, i64, i64, ptr}, {b.getI32Type()}));
    body.addEntryBlock();
    std::vector<Error> checks;
    emitVendorCall(module.get(), body, planned, kernel, getTarget(Isa::Avx2),
                   checks);
    if (change)
      change(body);
    Result<void> same = checkVendorCall(module.get(), "bmm_stage0", *analysis);
    if (same)
      return "";
    EXPECT_EQ(same.error().code, "vendor.check");
    return same.error().message;
  }

  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> source;
  tile::KernelOp kernel;
  std::unique_ptr<KernelAnalysis> analysis;
  VendorCall call;
};

TEST_F(EmittedCall, PassesAsItWasProved) { EXPECT_EQ(checked(call), ""); }

TEST_F(EmittedCall, OfOtherElementsIsFound) {
  auto changed = [&](auto change) {
    VendorCall other = call;
    change(other);
    return checked(other);
  };
  const char *elements = "other elements are multiplied or stored";
  EXPECT_THAT(changed([](VendorCall &c) { c.a.transposed = true; }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { c.b.transposed = true; }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { std::swap(c.a, c.b); }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { c.a.parameter = 1; }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { c.a.leadingAxis = 0; }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { c.c.leadingAxis = 0; }),
              HasSubstr("write"));
  EXPECT_THAT(changed([](VendorCall &c) { c.b.batchAxes = {-1}; }),
              HasSubstr(elements));
  EXPECT_THAT(changed([](VendorCall &c) { c.k = 19; }),
              HasSubstr("another number of products"));
  EXPECT_THAT(changed([](VendorCall &c) { c.m = 19; }),
              HasSubstr("another number of elements"));
  EXPECT_THAT(changed([](VendorCall &c) { c.batch = {2}; }),
              HasSubstr("another number of elements"));
  EXPECT_THAT(changed([](VendorCall &c) { c.alpha = -1; }),
              HasSubstr("its factor is another one"));
}

TEST_F(EmittedCall, WithOtherEffectsIsFound) {
  EXPECT_THAT(checked(call,
                      [](mlir::func::FuncOp body) {
                        body.walk([](mlir::LLVM::CallOp made) {
                          mlir::OpBuilder b(made);
                          b.clone(*made);
                        });
                      }),
              HasSubstr("2 calls, expected one"));
  EXPECT_THAT(checked(call,
                      [](mlir::func::FuncOp body) {
                        mlir::OpBuilder b(&body.front(), body.front().begin());
                        mlir::Location loc = body.getLoc();
                        auto zero = b.create<mlir::arith::ConstantIntOp>(
                            loc, 0, b.getI32Type());
                        b.create<mlir::LLVM::StoreOp>(loc, zero,
                                                      body.getArgument(5));
                      }),
              HasSubstr("'llvm.store', which no call needs"));
}

} // namespace
} // namespace tessera
