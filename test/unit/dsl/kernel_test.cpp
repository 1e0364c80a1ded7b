//===- dsl/kernel_test.cpp - Kernels, signatures and traces ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "trace_text.h"

#include "dsl/trace.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <thread>

namespace tessera {
namespace {

using testing::HasSubstr;
using Kind = ParameterInfo::Kind;

TEST(Kernels, DescribeTheirParameters) {
  Kernel k = kernel("k", "x, y, mask, eps = 1e-6, scale, flip = true",
                    [](View<const Float, 2>, View<int32_t, 1>,
                       OptionalView<const bool, 3>, Scalar<double>,
                       OptionalScalar<Float>, Const<bool>) {});
  const std::vector<ParameterInfo> &p = k.parameters();
  ASSERT_EQ(p.size(), 6u);
  EXPECT_EQ(p[0].name, "x");
  EXPECT_EQ(p[0].kind, Kind::View);
  EXPECT_FALSE(p[0].dtype.has_value());
  EXPECT_EQ(p[0].rank, 2);
  EXPECT_FALSE(p[0].writable);
  EXPECT_EQ(p[1].dtype, DType::I32);
  EXPECT_TRUE(p[1].writable);
  EXPECT_TRUE(p[2].optional);
  EXPECT_EQ(p[2].dtype, DType::Bool);
  EXPECT_EQ(p[3].kind, Kind::Scalar);
  EXPECT_EQ(std::get<double>(*p[3].defaultValue), 1e-6);
  EXPECT_TRUE(p[4].optional);
  EXPECT_EQ(p[5].kind, Kind::Constant);
  EXPECT_EQ(std::get<bool>(*p[5].defaultValue), true);
  EXPECT_EQ(k.name(), "k");
}

std::string faultOf(const char *signature) {
  Kernel k = kernel("k", signature,
                    [](View<Float, 1>, Scalar<int64_t>, Const<bool>) {});
  Result<std::string> text = k.text();
  EXPECT_FALSE(text.ok());
  if (text)
    return "";
  EXPECT_EQ(text.error().family, ErrorFamily::Diagnostic);
  EXPECT_THAT(text.error().where.file, HasSubstr("kernel_test.cpp"));
  return text.error().message;
}

TEST(Kernels, FaultySignatures) {
  EXPECT_THAT(faultOf("x, n"), HasSubstr("names 2 parameters, the function "
                                         "takes 3"));
  EXPECT_THAT(faultOf(""), HasSubstr("names 0"));
  EXPECT_THAT(faultOf("x, x, c"), HasSubstr("two parameters are named 'x'"));
  EXPECT_THAT(faultOf("x, 2n, c"), HasSubstr("is named '2n'"));
  EXPECT_THAT(faultOf("x, , c"), HasSubstr("is named ''"));
  EXPECT_THAT(faultOf("x = 1, n, c"), HasSubstr("view 'x' has the default"));
  EXPECT_THAT(faultOf("x, n = 1.5, c"), HasSubstr("'1.5', expected i64"));
  EXPECT_THAT(faultOf("x, n = many, c"), HasSubstr("'many'"));
  EXPECT_THAT(faultOf("x, n, c = 2"), HasSubstr("expected bool"));
}

TEST(Kernels, FaultyNames) {
  for (std::string name : {std::string("a b"), std::string("2n"),
                           std::string("a-b"), std::string(129, 'a')}) {
    Kernel k = kernel(name, "x", [](View<const Float, 1>) {});
    Result<std::string> text = k.text();
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().code, "dsl.signature");
    EXPECT_THAT(text.error().where.file, HasSubstr("kernel_test.cpp"));
  }
  Kernel longest =
      kernel(std::string(128, 'a'), "x", [](View<const Float, 1>) {});
  EXPECT_TRUE(longest.text().ok());
}

TEST(Kernels, FunctionsAreKernelsToo) {
  auto *function =
      +[](View<const Float, 0> x, View<Float, 0> y) { store(y(), load(x())); };
  EXPECT_THAT(textOf(kernel("scalar", "x, y", function)),
              HasSubstr("tile.load %x[]"));
}

TEST(Kernels, Constants) {
  Kernel k =
      kernel("k", "y, count = 2, factor",
             [](View<Float, 1> y, Const<int> count, Const<double> factor) {
               for (int i = 0; i < count; ++i)
                 store(y(i), factor * i);
             });
  Result<std::string> missing = k.text();
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().family, ErrorFamily::Usage);
  EXPECT_THAT(missing.error().message, HasSubstr("'factor' has no value"));
  TraceOptions options;
  options.constants["factor"] = 0.5;
  options.constants["count"] = int64_t(3);
  EXPECT_EQ(countOf(textOf(k, options), "tile.store"), 3);
  options.constants["count"] = 2.5;
  EXPECT_FALSE(k.text(options).ok());
  options.constants["count"] = int64_t(1);
  options.constants["size"] = int64_t(1);
  EXPECT_FALSE(k.text(options).ok());
}

TEST(Kernels, OptionsThatDoNotFit) {
  Kernel k = kernel("k", "x", [](View<const Float, 1>) {});
  EXPECT_FALSE(k.text({.storage = DType::I32}).ok());
  EXPECT_FALSE(k.text({.present = {"x"}}).ok());
}

TEST(Kernels, Tier) {
  Kernel k = kernel("k", "x", [](View<const Float, 1>) {});
  EXPECT_THAT(textOf(k, {.tier = Tier::Strict}), HasSubstr("tier(strict)"));
}

TEST(Kernels, TraceWithinATrace) {
  std::string inner;
  Tile leaked;
  Kernel k =
      kernel("outer", "x, y", [&](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Tile v = load(x(n));
        inner = textOf(kernel("inner", "a", [&](View<Float, 1> a) {
          Dim m = dim("m", a.extent(0));
          Tile w = 1.0;
          for (auto i : serial(m))
            w = w + load(a(i));
          store(a(0), w);
        }));
        // A tile of this trace is refused by another one.
        std::vector<Error> errors = kernel("thief", "a", [&](View<Float, 1> a) {
                                      store(a(0), v);
                                    }).diagnostics();
        ASSERT_EQ(errors.size(), 1u);
        EXPECT_EQ(errors[0].code, "dsl.other-trace");
        store(y(n), v);
        leaked = v;
      });
  EXPECT_THAT(textOf(k), HasSubstr("@outer"));
  EXPECT_THAT(inner, HasSubstr("carry("));
  // Outside of any trace operations do nothing.
  EXPECT_FALSE((leaked + 1).valid());
  for (auto i : parallel(dim("n", 4)))
    (void)i, ADD_FAILURE();
}

TEST(Kernels, SeveralThreadsTraceAtOnce) {
  Kernel k = kernel("k", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
    Dim n = dim("n", x.extent(0));
    Tile total = 0.0;
    for (auto i : serial(n))
      total = total + load(x(i));
    store(y(n), total);
  });
  std::string expected = textOf(k);
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string &text : texts)
    threads.emplace_back([&k, &text] {
      for (int i = 0; i < 20; ++i)
        text = *k.text();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : texts)
    EXPECT_EQ(text, expected);
}

TEST(Kernels, ModulesCarryTheAuthorsLines) {
  mlir::MLIRContext context;
  unsigned line = 0;
  Kernel k = kernel("k", "x, y", [&](View<const Float, 1> x, View<Float, 1> y) {
    Dim n = dim("n", x.extent(0));
    line = __LINE__ + 1;
    store(y(n), exp(load(x(n))));
  });
  auto module = trace(k, context, {});
  ASSERT_TRUE(module.ok());
  int found = 0;
  (*module)->walk([&](mlir::Operation *op) {
    if (op->getName().getStringRef() != "math.exp")
      return;
    ++found;
    auto where = llvm::dyn_cast<mlir::FileLineColLoc>(op->getLoc());
    ASSERT_TRUE(where);
    EXPECT_EQ(where.getLine(), line);
    EXPECT_TRUE(where.getFilename().getValue().ends_with("kernel_test.cpp"));
  });
  EXPECT_EQ(found, 1);
}

} // namespace
} // namespace tessera
