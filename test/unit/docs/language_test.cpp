//===- docs/language_test.cpp - The snippets of docs/language.md ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every C++ block of the page stands here between "snippet" comments, is
// compiled, traced and, where the page promises a value, run.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"
#include "tessera/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void expectTraces(const Kernel &kernel, const TraceOptions &options = {}) {
  for (const Error &error : kernel.diagnostics(options))
    ADD_FAILURE() << error.str();
}

template <typename T>
TensorRef array(std::vector<T> &elements, std::vector<int64_t> extents = {}) {
  if (extents.empty())
    extents = {int64_t(elements.size())};
  return TensorRef::dense(elements.data(), *detail::dtypeOf<T>(), extents);
}

void run(const Kernel &kernel, std::vector<Argument> arguments,
         const CompileOptions &options = {}) {
  Result<void> done = launch(kernel, arguments, options);
  EXPECT_TRUE(done.ok()) << done.error().str();
}

TEST(LanguagePage, First) {
  // snippet: first
  Kernel scale = kernel(
      "scale", "x, y, factor = 2",
      [](View<const Float, 1> x, View<Float, 1> y, Scalar<Float> factor) {
        Dim n = dim("n", x.extent(0));
        for (auto b : parallel(blocks(n, 64)))
          store(y(b), load(x(b)) * factor);
      });
  // end snippet
  std::vector<float> x = {1, 2, 3}, y(3);
  run(scale, {array(x), array(y)});
  EXPECT_THAT(y, ElementsAre(2, 4, 6));
}

/// The plan in one line for vectors of 1000 elements.
std::string planOf(const Kernel &kernel) {
  Result<Program> program = Program::fromKernel(kernel, {});
  if (!program)
    return program.error().str();
  CompileRequest request;
  request.isa = hostIsa();
  request.extents = {{1000}, {1000}};
  Result<CompiledKernel> compiled = program->compile(request);
  return compiled ? compiled->planSummary : compiled.error().str();
}

/// The table of "What runs in lanes, what in threads".
TEST(LanguagePage, LanesAndThreads) {
  using V = View<const Float, 1>;
  using W = View<Float, 1>;
  Kernel elements = kernel("elements", "x, y", [](V x, W y) {
    Dim n = dim("n", x.extent(0));
    for (auto i : parallel(n))
      store(y(i), load(x(i)) * 2);
  });
  EXPECT_EQ(planOf(elements), "parallel n");
  Kernel whole = kernel("whole", "x, y", [](V x, W y) {
    Dim n = dim("n", x.extent(0));
    store(y(n), load(x(n)) * 2);
  });
  EXPECT_THAT(planOf(whole), AllOf(Not(HasSubstr("parallel")),
                                   HasSubstr("store y over n (n x")));
  Kernel both = kernel("both", "x, y", [](V x, W y) {
    Dim n = dim("n", x.extent(0));
    for (auto b : parallel(blocks(n, 64)))
      store(y(b), load(x(b)) * 2);
  });
  EXPECT_THAT(planOf(both),
              AllOf(HasSubstr("parallel n_blocks"), HasSubstr("(n_block x")));
}

TEST(LanguagePage, Parameters) {
  // snippet: parameters
  Kernel axpby =
      kernel("axpby", "x, z, y, a = 1, b, scaled = false",
             [](View<const Float, 1> x, OptionalView<const Float, 1> z,
                View<Float, 1> y, Scalar<Float> a, OptionalScalar<Float> b,
                Const<bool> scaled) {
               Dim n = dim("n", x.extent(0));
               Tile v = a * load(x(n));
               if (z.present())
                 v = v + (b.present() ? b * load(z(n)) : load(z(n)));
               store(y(n), scaled ? v / 2 : v);
             });
  // end snippet
  expectTraces(axpby);
  expectTraces(axpby, {.present = {"z"}});
  expectTraces(axpby, {.present = {"z", "b"}});
  std::vector<float> x = {1, 2}, z = {10, 20}, y(2);
  CompileOptions options;
  options.trace.present = {"z"};
  options.trace.constants["scaled"] = true;
  run(axpby, {array(x), array(z), array(y), 4.0}, options);
  EXPECT_THAT(y, ElementsAre(7, 14));
}

TEST(LanguagePage, Dimensions) {
  // snippet: dimensions
  Kernel outer = kernel(
      "outer", "a, b, y",
      [](View<const Float, 1> a, View<const Float, 1> b, View<Float, 2> y) {
        Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(0));
        Tile left = load(a(m)), right = load(b(n));
        Tile product = left * right; // over m and n
        store(y(m, n), product + left);
      });
  // end snippet
  std::vector<float> a = {1, 2}, b = {10, 20, 30}, y(6);
  run(outer, {array(a), array(b), array(y, {2, 3})});
  EXPECT_THAT(y, ElementsAre(11, 21, 31, 22, 42, 62));
}

TEST(LanguagePage, Subscripts) {
  // snippet: subscripts
  Kernel blur =
      kernel("blur", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Tile left = load(x(n - 1)), right = load(x(n + 1));
        store(y(n), (left + load(x(n)) + right) / 3);
      });
  // end snippet
  std::vector<float> x = {3, 3, 6}, y(3);
  run(blur, {array(x), array(y)});
  EXPECT_THAT(y, ElementsAre(2, 4, 3));
}

TEST(LanguagePage, Gather) {
  // snippet: gather
  Kernel lookup = kernel(
      "lookup", "ids, table, y",
      [](View<const int64_t, 1> ids, View<const Float, 2> table,
         View<Float, 2> y) {
        Dim token = dim("token", ids.extent(0)), d = dim("d", table.extent(1));
        Tile id = load(ids(token));
        store(y(token, d), load(table(id, d), {.fill = -1.0, .mask = id >= 0}));
      });
  // end snippet
  std::vector<int64_t> ids = {1, -7, 5};
  std::vector<float> table = {1, 2, 3, 4}, y(6);
  run(lookup, {array(ids), array(table, {2, 2}), array(y, {3, 2})});
  EXPECT_THAT(y, ElementsAre(3, 4, -1, -1, -1, -1));
}

TEST(LanguagePage, Blocks) {
  // snippet: blocks
  Kernel tiled =
      kernel("tiled", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        for (auto b : parallel(blocks(n, 64))) {
          Tile v = load(x(b));            // 64 elements; 0 beyond the end
          Tile at = index(b);             // where they stand in n
          v = select(inside(b), v, -1.0); // which of them exist
          store(y(b), v * cast(at, v.dtype()));
        }
      });
  // end snippet
  std::vector<float> x(100, 1), y(100);
  run(tiled, {array(x), array(y)});
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(y[i], float(i));
}

TEST(LanguagePage, ReducingABlock) {
  // snippet: reduce-block
  Kernel largest =
      kernel("largest", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        double none = -std::numeric_limits<double>::infinity();
        for (auto row : parallel(rows)) {
          Tile highest = none;
          for (auto b : reduction(blocks(cols, 64)))
            highest = max(highest, max(load(x(row, b), {.fill = none}), b));
          store(y(row), highest);
        }
      });
  // end snippet
  std::vector<float> x(200, -5), y(2);
  run(largest, {array(x, {2, 100}), array(y)});
  EXPECT_THAT(y, ElementsAre(-5, -5));
}

TEST(LanguagePage, Carries) {
  // snippet: carries
  Kernel fibonacci = kernel("fibonacci", "y", [](View<int64_t, 1> y) {
    Dim n = dim("n", y.extent(0));
    Tile a = int64_t(0), b = int64_t(1);
    for (auto i : serial(n)) {
      store(y(i), a);
      Tile next = a + b;
      a = b;
      b = next;
    }
  });
  // end snippet
  std::vector<int64_t> y(8);
  run(fibonacci, {array(y)});
  EXPECT_THAT(y, ElementsAre(0, 1, 1, 2, 3, 5, 8, 13));
}

TEST(LanguagePage, ReductionLoop) {
  // snippet: reduction-loop
  Kernel norm =
      kernel("norm", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows)) {
          Tile total = 0.0, highest = 0.0;
          for (auto col : reduction(cols)) {
            Tile v = load(x(row, col));
            total += v * v;
            highest = max(highest, abs(v));
          }
          store(y(row), sqrt(total) + highest);
        }
      });
  // end snippet
  std::vector<float> x = {3, 4, 0, -5}, y(2);
  run(norm, {array(x, {2, 2}), array(y)});
  EXPECT_THAT(y, ElementsAre(9, 10));
}

TEST(LanguagePage, Pipeline) {
  // snippet: pipeline
  Kernel total =
      kernel("total", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim k = dim("k", x.extent(0)), n = dim("n", x.extent(1));
        Tile sum = full(n, 0.0);
        for (auto i : pipeline(k, 2)) {
          stage("load");
          Tile v = load(x(i, n));
          stage("add");
          sum += v;
        }
        store(y(n), sum);
      });
  // end snippet
  std::vector<float> x = {1, 2, 3, 4}, y(2);
  run(total, {array(x, {2, 2}), array(y)});
  EXPECT_THAT(y, ElementsAre(4, 6));
}

TEST(LanguagePage, Branch) {
  // snippet: branch
  Kernel clip =
      kernel("clip", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        for (auto i : parallel(dim("n", x.extent(0)))) {
          Tile v = load(x(i));
          if_(v > 1, [&] { v = 1.0; }, [&] { v = max(v, -1); });
          store(y(i), v);
        }
      });
  // end snippet
  std::vector<float> x = {5, 0.5f, -9}, y(3);
  run(clip, {array(x), array(y)});
  EXPECT_THAT(y, ElementsAre(1, 0.5f, -1));
}

TEST(LanguagePage, Reductions) {
  // snippet: reductions
  Kernel moments = kernel("moments", "x, mean, spread, place",
                          [](View<const Float, 2> x, View<Float, 1> average,
                             View<Float, 1> spread, View<int64_t, 1> place) {
                            Dim rows = dim("rows", x.extent(0)),
                                cols = dim("cols", x.extent(1));
                            for (auto row : parallel(rows)) {
                              Tile v = load(x(row, cols));
                              Statistics s = statistics(v, cols);
                              store(average(row), s.mean);
                              store(spread(row), sqrt(s.variance));
                              store(place(row), argMax(v, cols));
                            }
                          });
  // end snippet
  std::vector<float> x = {1, 3, 2, 2}, mean(2), spread(2);
  std::vector<int64_t> place(2);
  run(moments, {array(x, {2, 2}), array(mean), array(spread), array(place)});
  EXPECT_THAT(mean, ElementsAre(2, 2));
  EXPECT_THAT(spread, ElementsAre(1, 0));
  EXPECT_THAT(place, ElementsAre(1, 0));
}

TEST(LanguagePage, CustomReduction) {
  // snippet: custom-reduction
  Kernel logSum =
      kernel("log_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        double none = -std::numeric_limits<double>::infinity();
        for (auto row : parallel(rows)) {
          Tile v = load(x(row, cols));
          // (largest, sum of exp(x - largest)), of two parts of the row.
          auto parts =
              reduce({v, full(cols, 1.0)}, cols, {none, 0.0},
                     [&](std::span<const Tile> a, std::span<const Tile> b) {
                       Tile high = max(a[0], b[0]);
                       auto part = [&](const Tile &at, const Tile &sum) {
                         return select(at == none, 0, sum * exp(at - high));
                       };
                       return std::vector<Tile>{high, part(a[0], a[1]) +
                                                          part(b[0], b[1])};
                     });
          store(y(row), parts[0] + log(parts[1]));
        }
      });
  // end snippet
  std::vector<float> x = {0, 0, 0, 0, 1, 2}, y(2);
  run(logSum, {array(x, {2, 3}), array(y)});
  EXPECT_NEAR(y[0], std::log(3.0), 1e-6);
  EXPECT_NEAR(y[1], std::log(1 + std::exp(1.0) + std::exp(2.0)), 1e-6);
}

TEST(LanguagePage, OrderedSum) {
  // snippet: orders
  Kernel sums =
      kernel("sums", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Tile v = load(x(n));
        store(y(0), sum(v, n));              // any grouping
        store(y(1), sum(v, n, Order::Tree)); // fixed, and the same everywhere
        store(y(2), sum(v, n, Order::Left));
        store(y(3), sum(v, n, Order::Right));
      });
  // end snippet
  std::vector<float> x = {1e8f, 1, -1e8f, 1}, y(4);
  run(sums, {array(x), array(y)});
  EXPECT_EQ(y[1], 1.0f * 0 + ((1e8f + 1) + (-1e8f + 1)));
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_EQ(y[3], 1e8f + (1 + (-1e8f + 1)));
}

TEST(LanguagePage, ScanSortContract) {
  // snippet: contract
  Kernel gemm = kernel(
      "matmul", "a, b, c",
      [](View<const Float, 2> a, View<const Float, 2> b, View<Float, 2> c) {
        Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(1));
        Dim k = dim("k", a.extent(1));
        Blocks down = blocks(m, tunable("BM", {32, 64}));
        Blocks across = blocks(n, tunable("BN", {64, 128}));
        for (auto [i, j] : parallel(down, across))
          store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k));
      });
  // end snippet
  std::vector<float> a = {1, 2, 3, 4}, b = {1, 0, 1, 1}, c(4);
  run(gemm, {array(a, {2, 2}), array(b, {2, 2}), array(c, {2, 2})});
  EXPECT_THAT(c, ElementsAre(3, 2, 7, 4));
  Result<std::vector<TunableInfo>> tunables = gemm.tunables();
  ASSERT_TRUE(tunables.ok());
  EXPECT_EQ(tunables->size(), 2u);

  // snippet: scan-sort
  Kernel ranked = kernel("ranked", "x, running, top, where",
                         [](View<const Float, 2> x, View<Float, 2> running,
                            View<Float, 2> top, View<int64_t, 2> where) {
                           Dim rows = dim("rows", x.extent(0)),
                               cols = dim("cols", x.extent(1));
                           Dim k = dim("k", top.extent(1));
                           for (auto row : parallel(rows)) {
                             Tile v = load(x(row, cols));
                             store(running(row, cols), cumsum(v, cols));
                             Sorted best = topK(v, cols, k);
                             store(top(row, k), best.values);
                             store(where(row, k), best.indices);
                           }
                         });
  // end snippet
  std::vector<float> x = {3, 1, 2}, running(3), top(2);
  std::vector<int64_t> where(2);
  run(ranked, {array(x, {1, 3}), array(running, {1, 3}), array(top, {1, 2}),
               array(where, {1, 2})});
  EXPECT_THAT(running, ElementsAre(3, 4, 6));
  EXPECT_THAT(top, ElementsAre(3, 2));
  EXPECT_THAT(where, ElementsAre(0, 2));
}

TEST(LanguagePage, Scatter) {
  // snippet: scatter
  Kernel histogram =
      kernel("histogram", "x, counts",
             [](View<const int64_t, 1> x, View<int64_t, 1> counts) {
               Dim n = dim("n", x.extent(0));
               scatterAdd(counts(load(x(n))), 1);
             });
  // end snippet
  std::vector<int64_t> x = {0, 2, 2, 9}, counts(3);
  run(histogram, {array(x), array(counts)});
  EXPECT_THAT(counts, ElementsAre(1, 0, 2));
}

TEST(LanguagePage, StorageTypes) {
  Kernel scale =
      kernel("scale", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        // snippet: types
        Tile v = load(x(n)); // f32 when x holds bf16
        Tile rounded = roundTo(v * 3, DType::BF16);
        Tile whole = cast(rounded, DType::I32); // conversions are written
        store(y(n), rounded - cast(whole, v.dtype()));
        // end snippet
      });
  expectTraces(scale, {.storage = DType::BF16});
  expectTraces(scale, {.storage = DType::F64});
}

Kernel scaleByTwo() {
  return kernel("scale", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
    Dim n = dim("n", x.extent(0));
    for (auto b : parallel(blocks(n, 64)))
      store(y(b), load(x(b)) * 2);
  });
}

TEST(LanguagePage, Schedules) {
  Kernel scale = scaleByTwo();
  // snippet: schedule
  Kernel pinned =
      scale.schedule({.vectorAxis = "n_block", .lanes = 16, .unroll = 2});
  // end snippet
  EXPECT_THAT(planOf(pinned), HasSubstr("(n_block x16 x2)"));
  // The pins hold at every level that this machine has.
  for (const char *isa : {"x86-64", "avx2", "avx512"}) {
    std::vector<float> x(100, 3), y(100);
    CompileOptions options;
    options.isa = isa;
    Result<void> done =
        launch(pinned, std::vector<Argument>{array(x), array(y)}, options);
    if (!done && done.error().code != "unsupported.pin" &&
        done.error().family == ErrorFamily::Unsupported)
      continue;
    EXPECT_TRUE(done.ok()) << isa << ": " << done.error().str();
    EXPECT_THAT(y, Each(6));
  }
}

// snippet: prepared
Result<void> runOften(const Kernel &kernel,
                      const std::vector<Argument> &arguments, int times) {
  Result<Executable> compiled = compile(kernel, arguments);
  if (!compiled)
    return compiled.error();
  Result<PreparedLaunch> prepared = compiled->prepare(arguments);
  if (!prepared)
    return prepared.error();
  for (int i = 0; i < times; ++i)
    if (Result<void> done = prepared->run(); !done)
      return done;
  return {};
}
// end snippet

TEST(LanguagePage, Prepared) {
  std::vector<float> x = {1, 2, 3}, y(3);
  Result<void> done = runOften(scaleByTwo(), {array(x), array(y)}, 3);
  EXPECT_TRUE(done.ok()) << done.error().str();
  EXPECT_THAT(y, ElementsAre(2, 4, 6));
}

// snippet: save
Result<void> saveForCheck(const Kernel &kernel, const TensorRef &x,
                          const TensorRef &y, const std::string &folder) {
  Result<std::string> text = kernel.text();
  if (!text)
    return text.error();
  std::ofstream(folder + "/kernel.mlir") << *text;
  if (Result<void> done = writeNpy(folder + "/x.npy", x); !done)
    return done;
  return writeNpy(folder + "/y.npy", y);
}
// end snippet

/// What is saved is what was traced, and its arrays are read back.
TEST(LanguagePage, CheckMyKernel) {
  std::string folder = testing::TempDir();
  std::vector<float> x(100, 3), y(100);
  Result<void> saved = saveForCheck(scaleByTwo(), array(x), array(y), folder);
  ASSERT_TRUE(saved.ok()) << saved.error().str();
  Result<Program> program = Program::fromFile(folder + "/kernel.mlir");
  ASSERT_TRUE(program.ok()) << program.error().str();
  Result<Array> input = readNpy(folder + "/x.npy", DType::F32);
  ASSERT_TRUE(input.ok()) << input.error().str();
  EXPECT_THAT(input->extents, ElementsAre(100));
}

TEST(LanguagePage, Diagnostics) {
  // snippet: wrong
  Kernel wrong =
      kernel("wrong", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Tile v = load(x(n));
        store(y(n), v * iota(n));
      });
  for (const Error &error : wrong.diagnostics())
    std::printf("%s\n", error.str().c_str());
  // end snippet
  std::vector<Error> errors = wrong.diagnostics();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, "dsl.type");
  EXPECT_THAT(errors[0].where.file, HasSubstr("language_test.cpp"));
}

} // namespace
} // namespace tessera
