//===- test/unit/run/edges_test.cpp - Blocks that hang over ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels in blocks at extents around those of blocks, rows of a tile and
// vectors: compiled code gives the interpreter's elements, in guarded memory of
// either end, with programs at the edges apart or not. The suite takes a share
// of the levels and forms of each case, the soak all of them.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "driver/program.h"
#include "plan/plan_record.h"
#include "support/guarded_buffer.h"
#include "tessera/dsl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace tessera {
namespace {

using support::GuardedBuffer;
using Edge = GuardedBuffer::Edge;

/// An array of small whole numbers, so that sums are exact in any order.
struct Array {
  std::vector<int64_t> extents;
  bool isReversed = false;
  DType dtype = DType::F32;
  /// Elements are below this.
  int64_t limit = 17;
};

struct Memory {
  std::vector<GuardedBuffer> buffers;
  std::vector<Argument> arguments;
};

Memory makeMemory(const std::vector<Array> &arrays, Edge edge) {
  Memory memory;
  for (const Array &array : arrays) {
    int64_t count = 1;
    TensorRef tensor;
    tensor.dtype = array.dtype;
    tensor.extents = array.extents;
    tensor.strides.resize(array.extents.size());
    int64_t origin = 0;
    for (size_t axis = array.extents.size(); axis-- > 0;) {
      tensor.strides[axis] = array.isReversed ? -count : count;
      if (array.isReversed && array.extents[axis] > 0)
        origin += (array.extents[axis] - 1) * count;
      count *= array.extents[axis];
    }
    const int64_t size = sizeInBytes(array.dtype);
    Result<GuardedBuffer> buffer = GuardedBuffer::create(count * size, edge);
    EXPECT_TRUE(buffer.ok()) << buffer.error().str();
    for (int64_t i = 0; i < count; ++i) {
      int64_t value = (i * 7919 + 13) % array.limit;
      if (array.dtype == DType::I64)
        buffer->as<int64_t>()[i] = value;
      else
        buffer->as<float>()[i] = float(value - 5);
    }
    tensor.data = buffer->as<char>() + (count > 0 ? origin * size : 0);
    memory.arguments.push_back(tensor);
    memory.buffers.push_back(std::move(*buffer));
  }
  return memory;
}

/// The parameter is the share of levels and forms that is run: one in so many.
class EdgesOfBlocks : public testing::TestWithParam<uint64_t> {
protected:
  void agree(const Result<Program> &program, const std::vector<Array> &arrays,
             const std::string &what);
};

/// Runs the kernel on arrays, the last of which it writes, at one in `share` of
/// the levels and forms of edges.
void EdgesOfBlocks::agree(const Result<Program> &program,
                          const std::vector<Array> &arrays,
                          const std::string &what) {
  ASSERT_TRUE(program.ok()) << program.error().str();
  std::vector<Memory> expected;
  for (Edge edge : {Edge::End, Edge::Begin}) {
    expected.push_back(makeMemory(arrays, edge));
    Result<void> strict = program->interpret(expected.back().arguments, {});
    ASSERT_TRUE(strict.ok()) << what << ": " << strict.error().str();
  }
  uint64_t number = runtest::stableHash(what);
  for (Isa isa : hostIsas()) {
    // These differ from avx512 in products of narrow elements alone.
    if (isa == Isa::Avx512Vnni || isa == Isa::Avx512Bf16 ||
        isa == Isa::Avx512Amx)
      continue;
    for (Edges edges : {Edges::Apart, Edges::Checked}) {
      if (number++ % GetParam() != 0)
        continue;
      auto choices = std::make_shared<PlanChoices>();
      choices->edges[0] = edges;
      CompileRequest request;
      request.isa = isa;
      request.choices = choices;
      auto compiled = program->compileFor(expected[0].arguments, request);
      ASSERT_TRUE(compiled.ok()) << what << ": " << compiled.error().str();
      // Where no program is apart it is the same code.
      if (edges == Edges::Apart &&
          compiled->plan->stages[0].order.edges != Edges::Apart)
        continue;
      for (Edge edge : {Edge::End, Edge::Begin}) {
        Memory actual = makeMemory(arrays, edge);
        auto run = compiled->executable.launch(actual.arguments);
        ASSERT_TRUE(run.ok()) << what << ": " << run.error().str();
        for (size_t i = 0; i < arrays.size(); ++i) {
          const GuardedBuffer &a = actual.buffers[i],
                              &e = expected[edge == Edge::Begin].buffers[i];
          EXPECT_TRUE(a.slackIntact()) << what << ": array " << i;
          ASSERT_EQ(std::memcmp(a.data(), e.data(), size_t(a.size())), 0)
              << what << ": array " << i << " on " << name(isa) << ", edges "
              << name(edges);
        }
      }
    }
  }
}

/// Extents around vectors, groups of them and blocks of 64.
constexpr int64_t lengths[] = {0,  1,  15, 16,  17,  63,  64,
                               65, 79, 80, 127, 128, 129, 200};

TEST_P(EdgesOfBlocks, ElementsInBlocks) {
  for (int64_t size : {64, 40}) {
    const bool isReversed = size == 40;
    Kernel scaled =
        kernel("scaled", "x, y", [&](View<const float, 1> x, View<float, 1> y) {
          Dim n = dim("n", x.extent(0));
          for (auto b : parallel(blocks(n, size)))
            store(y(b), load(x(b)) * 2.0f + 1.0f);
        });
    for (int64_t n : lengths)
      agree(Program::fromKernel(scaled, {}),
            {{{n}, isReversed}, {{n}, isReversed}},
            "n = " + std::to_string(n) + " in blocks of " +
                std::to_string(size));
  }
}

const char *const neighbours = R"(
!in = !tile.view<f32, 1, read>
!out = !tile.view<f32, 1, write>
!block = tensor<?xf32, ["block"]>
module attributes {tile.version = 1 : i64} {
tile.kernel @neighbours(%x: !in, %z: !in, %y: !out) {
  %n = tile.extent %y, 0 : !out
  %one = arith.constant 1 : index
  %size = arith.constant 64 : index
  %most = arith.constant 63 : index
  %more = arith.addi %n, %most : index
  %count = tile.div %more, %size : index
  tile.dim "blocks" = %count
  tile.dim "block" = %size
  tile.parallel (%p) in ["blocks"] {
    %o = arith.muli %p, %size : index
    %before = arith.subi %o, %one : index
    %after = arith.addi %o, %one : index
    %a = tile.load %x["block" + %before] : !in -> !block
    %b = tile.load %x["block" + %after] : !in -> !block
    %c = tile.load %z["block" + %o] : !in -> !block
    %d = arith.addf %a, %b : !block
    %e = arith.subf %d, %c : !block
    tile.store %e, %y["block" + %o] : !block, !out
  }
}
}
)";

// Neighbours lie outside at both ends, and another array is shorter.
TEST_P(EdgesOfBlocks, NeighboursAndShorterArrays) {
  for (int64_t n : lengths)
    for (int64_t shorter : {n, std::max<int64_t>(n - 70, 0)})
      agree(Program::fromText(neighbours, "k.mlir"),
            {{{n}}, {{shorter}}, {{n}}},
            "n = " + std::to_string(n) + ", z of " + std::to_string(shorter));
}

// Where data decides which element is read, every program checks it.
TEST_P(EdgesOfBlocks, IndicesFromData) {
  Kernel taken = kernel(
      "taken", "x, ids, y",
      [](View<const float, 1> x, View<const int64_t, 1> ids, View<float, 1> y) {
        Dim n = dim("n", ids.extent(0));
        for (auto b : parallel(blocks(n, 64)))
          store(y(b), load(x(load(ids(b)))));
      });
  for (int64_t n : {1, 63, 64, 65, 200})
    agree(Program::fromKernel(taken, {}),
          {{{9}}, {{n}, false, DType::I64, 14}, {{n}}},
          "n = " + std::to_string(n));
}

Result<Program> product(Order order) {
  return Program::fromKernel(
      kernel("product", "a, b, c",
             [order](View<const float, 2> a, View<const float, 2> b,
                     View<float, 2> c) {
               Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
               Dim k = dim("k", a.extent(1));
               for (auto [i, j] : parallel(blocks(m, 64), blocks(n, 64)))
                 store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k,
                                         {.order = order}) *
                                    2.0f);
             }),
      {});
}

TEST_P(EdgesOfBlocks, Products) {
  int number = 0;
  for (int64_t m : {0, 1, 2, 5, 6, 7, 63, 64, 65, 66, 71, 129})
    for (int64_t n : lengths) {
      // A third of the pairs; every row and column is met.
      if (number++ % 3 != m % 3)
        continue;
      const int64_t k = number % 5 == 0 ? 0 : number % 5 == 1 ? 1 : 19;
      agree(product(number % 4 == 0 ? Order::Left : Order::Unordered),
            {{{m, k}}, {{k, n}}, {{m, n}}},
            "m = " + std::to_string(m) + ", n = " + std::to_string(n) +
                ", k = " + std::to_string(k));
    }
}

TEST_P(EdgesOfBlocks, ProductsOfReversedArrays) {
  for (int64_t m : {65, 127})
    for (int64_t n : {17, 65, 200})
      agree(product(Order::Unordered),
            {{{m, 21}, true}, {{21, n}, true}, {{m, n}, true}},
            "m = " + std::to_string(m) + ", n = " + std::to_string(n));
}

// Long enough that an operand is copied first.
TEST_P(EdgesOfBlocks, PackedProducts) {
  for (int64_t m : {65, 130})
    for (int64_t n : {1, 65, 81, 130})
      agree(product(Order::Unordered), {{{m, 400}}, {{400, n}}, {{m, n}}},
            "m = " + std::to_string(m) + ", n = " + std::to_string(n));
}

INSTANTIATE_TEST_SUITE_P(Share, EdgesOfBlocks, testing::Values(3));
INSTANTIATE_TEST_SUITE_P(Soak, EdgesOfBlocks, testing::Values(1));

} // namespace
} // namespace tessera
