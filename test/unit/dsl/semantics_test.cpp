//===- dsl/semantics_test.cpp - What traced kernels compute ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small kernels run in the reference interpreter: that carries, reductions,
// branches and subscripts mean what the language says.
//
//===----------------------------------------------------------------------===//

#include "trace_text.h"

#include "dsl/trace.h"
#include "interp/interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using In = View<const Float, 1>;
using Out = View<Float, 1>;

/// Runs a kernel of x and y on x, with `count` elements of y.
template <typename Body>
std::vector<float> run(std::vector<float> x, int64_t count, Body body) {
  std::vector<float> y(count, -99);
  Kernel k = kernel("k", "x, y", [body](In x, Out y) { body(x, y); });
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = trace(k, context, {});
  if (!module) {
    ADD_FAILURE() << module.error().str();
    return y;
  }
  std::vector<Argument> arguments{
      TensorRef::dense(x.data(), DType::F32, {int64_t(x.size())}),
      TensorRef::dense(y.data(), DType::F32, {count})};
  auto op = mlir::cast<tile::KernelOp>((*module)->getBody()->front());
  Result<void> result = interp::interpret(op, arguments);
  if (!result)
    ADD_FAILURE() << result.error().str();
  return y;
}

TEST(Semantics, CarriesUpdateSimultaneously) {
  // Fibonacci: b takes the old a, whatever the order of the assignments.
  auto body = [](In x, Out y) {
    Tile a = 0.0, b = 1.0;
    for (auto i : serial(dim("k", x.extent(0)))) {
      (void)i;
      Tile sum = a + b;
      a = b;
      b = sum;
    }
    store(y(0), a);
    store(y(1), b);
  };
  EXPECT_THAT(run(std::vector<float>(10, 0), 2, body), ElementsAre(55, 89));
  EXPECT_THAT(run({}, 2, body), ElementsAre(0, 1));
}

TEST(Semantics, SwapInALoop) {
  auto body = [](In x, Out y) {
    Tile a = 1.0, b = 2.0;
    for (auto i : serial(dim("k", x.extent(0)))) {
      (void)i;
      std::swap(a, b);
    }
    store(y(0), a);
    store(y(1), b);
  };
  EXPECT_THAT(run({0, 0, 0}, 2, body), ElementsAre(2, 1));
  EXPECT_THAT(run({0, 0}, 2, body), ElementsAre(1, 2));
}

TEST(Semantics, NestedLoopsWithZeroTrips) {
  auto body = [](In x, Out y) {
    Dim n = dim("n", x.extent(0));
    Tile total = 1.0;
    for (auto i : serial(n)) {
      Tile inner = 0.0;
      // The inner loop runs x[i] times.
      for (auto j : serial(dim("j", cast(load(x(i)), DType::I64))))
        inner += cast(index(j), DType::F32);
      total = total * 10 + inner;
    }
    store(y(0), total);
  };
  EXPECT_THAT(run({3, 0, 4}, 1, body), ElementsAre(1306));
  EXPECT_THAT(run({}, 1, body), ElementsAre(1));
}

TEST(Semantics, ReductionRegion) {
  auto body = [](In x, Out y) {
    Tile total = 100.0, product = 1.0, highest = -5.0;
    for (auto i : reduction(dim("k", x.extent(0)))) {
      Tile v = load(x(i));
      total += v;
      product = v * product;
      highest = max(highest, v);
    }
    store(y(0), total);
    store(y(1), product);
    store(y(2), highest);
  };
  EXPECT_THAT(run({1, 2, 3}, 3, body), ElementsAre(106, 6, 3));
  EXPECT_THAT(run({}, 3, body), ElementsAre(100, 1, -5));
}

TEST(Semantics, OrderedFold) {
  auto fold2 = [](Order order) {
    return [order](In x, Out y) {
      auto result = fold(
          dim("k", x.extent(0)), {1.0}, order,
          [&](Coord i) { return std::vector<Tile>{load(x(i))}; },
          [](std::span<const Tile> a, std::span<const Tile> b) {
            return std::vector<Tile>{a[0] - b[0]};
          });
      store(y(0), result[0]);
    };
  };
  EXPECT_THAT(run({2, 3, 4}, 1, fold2(Order::Left)), ElementsAre(-8));
  EXPECT_THAT(run({2, 3, 4}, 1, fold2(Order::Right)), ElementsAre(2));
}

TEST(Semantics, Branches) {
  auto body = [](In x, Out y) {
    for (auto i : parallel(dim("k", x.extent(0)))) {
      Tile v = load(x(i)), result = 0.0;
      if_(
          v > 0,
          [&] {
            result = v;
            if_(v > 10, [&] { result = 10.0; });
          },
          [&] { result = -v; });
      store(y(i), result);
    }
  };
  EXPECT_THAT(run({-3, 4, 40}, 3, body), ElementsAre(3, 4, 10));
}

TEST(Semantics, SubscriptsAndBlocks) {
  EXPECT_THAT(run({1, 2, 3, 4, 5, 6}, 6,
                  [](In x, Out y) {
                    Dim half = dim("half", x.extent(0) / 2);
                    store(y(2 * half + 0), load(x(half + half.size())));
                    store(y(2 * half + 1), load(x(-1 * half + 2)));
                  }),
              ElementsAre(4, 3, 5, 2, 6, 1));
  EXPECT_THAT(run({1, 2, 3, 4, 5}, 2,
                  [](In x, Out y) {
                    Blocks b = blocks(dim("n", x.extent(0)), 3);
                    for (auto i : parallel(b)) {
                      Tile v = load(x(i), {.fill = 7.0});
                      store(y(i.dim() * 5 + 9), v); // Outside: dropped.
                      store(y(0), load(x(0)));
                    }
                    Tile sums = 0.0;
                    for (auto i : serial(b))
                      sums = sums * 100 + sum(load(x(i), {.fill = 7.0}), i);
                    store(y(1), sums);
                  }),
              ElementsAre(1, 616));
}

TEST(Semantics, StatisticsOfALargeOffset) {
  std::vector<float> y =
      run({1e6f + 1, 1e6f + 2, 1e6f + 3, 1e6f + 6}, 2, [](In x, Out y) {
        Dim n = dim("n", x.extent(0));
        Statistics s = statistics(load(x(n)), n);
        store(y(0), s.variance);
        store(y(1), s.mean);
      });
  EXPECT_NEAR(y[0], 3.5, 1e-6);
  EXPECT_EQ(y[1], 1000003);
}

TEST(Semantics, SortAndTopK) {
  EXPECT_THAT(run({2, 9, 4, 9}, 4,
                  [](In x, Out y) {
                    Dim n = dim("n", x.extent(0)), k = dim("k", 2);
                    Sorted best = topK(load(x(n)), n, k);
                    store(y(k + 0), best.values);
                    store(y(k + 2), cast(best.indices, DType::F32));
                  }),
              ElementsAre(9, 9, 1, 3));
}

} // namespace
} // namespace tessera
