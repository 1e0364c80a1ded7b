//===- test/unit/run/squares_test.cpp - Transposing in registers ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose arrays are adjacent along different dimensions: compiled code
// gives the interpreter's elements over odd extents, types, layouts and plans,
// in guarded memory of either end. The suite takes a share of the levels and
// plans of each case, the soak all of them.
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "test/unit/emulation/emulator.h"

#include "driver/program.h"
#include "kernels/elements.h"
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

/// In which order the axes lie in memory, and which way.
enum class Layout { RowMajor, ColumnMajor, Reversed, Padded };

/// An array of small whole numbers.
struct Array {
  std::vector<int64_t> extents;
  DType dtype = DType::F32;
  Layout layout = Layout::RowMajor;
  /// The array whose memory it shares; -1 for its own.
  int sameAs = -1;
};

struct Memory {
  std::vector<GuardedBuffer> buffers;
  std::vector<Argument> arguments;
};

Memory makeMemory(const std::vector<Array> &arrays, Edge edge) {
  Memory memory;
  for (const Array &array : arrays) {
    TensorRef tensor;
    tensor.dtype = array.dtype;
    tensor.extents = array.extents;
    const size_t rank = array.extents.size();
    tensor.strides.resize(rank);
    int64_t next = 1, origin = 0, count = 1;
    for (size_t i = 0; i < rank; ++i) {
      const size_t axis =
          array.layout == Layout::ColumnMajor ? i : rank - 1 - i;
      const bool isReversed = array.layout == Layout::Reversed;
      const int64_t extent = array.extents[axis];
      tensor.strides[axis] = isReversed ? -next : next;
      origin += isReversed ? (extent - 1) * next : 0;
      count += (extent - 1) * next;
      next *= extent;
      next += array.layout == Layout::Padded ? 3 : 0;
    }
    const int64_t size = sizeInBytes(array.dtype);
    Result<GuardedBuffer> buffer = GuardedBuffer::create(count * size, edge);
    EXPECT_TRUE(buffer.ok()) << buffer.error().str();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t value = (i * 7919 + 13) % 23;
      char *element = buffer->as<char>() + i * size;
      if (isFloat(array.dtype))
        kernels::storeFloatElement(array.dtype, element, double(value - 5));
      else
        kernels::storeIntegerElement(array.dtype, element,
                                     array.dtype == DType::Bool ? value % 2
                                                                : value);
    }
    tensor.data = buffer->as<char>() + origin * size;
    if (array.sameAs >= 0)
      tensor.data = std::get<TensorRef>(memory.arguments[array.sameAs]).data;
    memory.arguments.push_back(tensor);
    memory.buffers.push_back(std::move(*buffer));
  }
  return memory;
}

/// How often a plan among those that were run transposes.
struct Seen {
  int transposed = 0, others = 0;
};

/// The parameter is the share of levels and plans that is run: one in so many.
class Squares : public testing::TestWithParam<uint64_t> {
protected:
  void agree(const Result<Program> &program, const std::vector<Array> &arrays,
             const std::string &what, Seen *seen = nullptr,
             std::vector<PlanChoices> choices = {});
  template <typename T> void everyLayout(DType dtype, DType storage);
};

/// Runs the kernel on arrays at levels of this host, with the plan of a search,
/// the default one and others: one in `share` of these pairs.
void Squares::agree(const Result<Program> &program,
                    const std::vector<Array> &arrays, const std::string &what,
                    Seen *seen, std::vector<PlanChoices> choices) {
  ASSERT_TRUE(program.ok()) << program.error().str();
  choices.emplace_back();
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
    for (size_t plan = 0; plan <= choices.size(); ++plan) {
      if (number++ % GetParam() != 0)
        continue;
      CompileRequest request;
      request.isa = isa;
      request.validate = true;
      if (plan > 0)
        request.choices =
            std::make_shared<const PlanChoices>(choices[plan - 1]);
      auto compiled = program->compileFor(expected[0].arguments, request);
      ASSERT_TRUE(compiled.ok()) << what << ": " << compiled.error().str();
      const bool isTransposed =
          compiled->planSummary.find("transposed") != std::string::npos;
      if (seen)
        ++(isTransposed ? seen->transposed : seen->others);
      for (Edge edge : {Edge::End, Edge::Begin}) {
        Memory actual = makeMemory(arrays, edge);
        auto run = compiled->executable.launch(actual.arguments);
        ASSERT_TRUE(run.ok()) << what << ": " << run.error().str();
        for (size_t i = 0; i < arrays.size(); ++i) {
          const GuardedBuffer &a = actual.buffers[i],
                              &e = expected[edge == Edge::Begin].buffers[i];
          EXPECT_TRUE(a.slackIntact()) << what << ": array " << i;
          ASSERT_EQ(std::memcmp(a.data(), e.data(), size_t(a.size())), 0)
              << what << ": array " << i << " on " << name(isa) << ", "
              << compiled->planSummary;
        }
      }
    }
  }
}

template <typename T> Kernel turned() {
  return kernel("turned", "x, y", [](View<const T, 2> x, View<T, 2> y) {
    Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
    store(y(cols, rows), load(x(rows, cols)));
  });
}

std::string text(int64_t rows, int64_t cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

TEST_P(Squares, EveryExtent) {
  auto program = Program::fromKernel(turned<float>(), {});
  Seen seen;
  auto run = [&](int64_t rows, int64_t cols) {
    agree(program, {{{rows, cols}}, {{cols, rows}}}, text(rows, cols), &seen);
  };
  for (int64_t rows = 1; rows <= 40; ++rows)
    for (int64_t cols : {rows * 7 % 40 + 1, (rows * 17 + 5) % 40 + 1})
      run(rows, cols);
  run(17, 65);
  run(65, 17);
  run(16, 16);
  run(33, 5);
  run(5, 33);
  run(64, 2);
  EXPECT_GT(seen.transposed, 3 * seen.others);
}

template <typename T> void Squares::everyLayout(DType dtype, DType storage) {
  auto program = Program::fromKernel(turned<T>(), {.storage = storage});
  constexpr Layout layouts[] = {Layout::RowMajor, Layout::ColumnMajor,
                                Layout::Reversed, Layout::Padded};
  for (size_t x = 0; x < 4; ++x)
    for (size_t y : {x, (x + 1) % 4}) {
      const int64_t rows = x == y ? 33 : 8, cols = x == y ? 19 : 48;
      agree(program,
            {{{rows, cols}, dtype, layouts[x]},
             {{cols, rows}, dtype, layouts[y]}},
            text(rows, cols) + " of " + std::string(name(dtype)));
    }
}

TEST_P(Squares, EveryTypeAndLayout) {
  everyLayout<int8_t>(DType::I8, DType::F32);
  everyLayout<int16_t>(DType::I16, DType::F32);
  everyLayout<int32_t>(DType::I32, DType::F32);
  everyLayout<int64_t>(DType::I64, DType::F32);
  everyLayout<bool>(DType::Bool, DType::F32);
  for (DType dtype : {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2,
                      DType::F32, DType::F64})
    everyLayout<Float>(dtype, dtype);
}

// Loads and stores of either orientation, values that vary along one dimension,
// masks and fills, and a second result of the first kind.
TEST_P(Squares, ConesOfBothOrientations) {
  Kernel cone = kernel(
      "cone", "x, w, b, c, y, z",
      [](View<const float, 2> x, View<const float, 2> w, View<const float, 1> b,
         View<const float, 1> c, View<float, 2> y, View<float, 2> z) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        Tile plain = load(x(rows, cols)), across = load(w(cols, rows));
        Tile inner = plain * load(b(rows)) + load(c(cols));
        Tile picked = load(x(rows, cols), {.fill = 9, .mask = across > 2});
        store(y(cols, rows), inner + across);
        store(z(rows, cols), max(picked, across * 2),
              {.mask = iota(rows) < iota(cols) + 7});
      });
  auto program = Program::fromKernel(cone, {});
  Seen seen;
  for (auto [rows, cols] :
       {std::pair(16, 16), std::pair(17, 65), std::pair(33, 5),
        std::pair(5, 33), std::pair(40, 40), std::pair(3, 70)})
    agree(program,
          {{{rows, cols}},
           {{cols, rows}},
           {{rows}},
           {{cols}},
           {{cols, rows}},
           {{rows, cols}}},
          text(rows, cols), &seen);
  EXPECT_GT(seen.transposed, seen.others);
}

// Rows that are looked up lie side by side, whichever they are; what is kept
// between loops is read along the other dimension.
TEST_P(Squares, LookedUpRowsAndKeptValues) {
  Kernel lookup = kernel(
      "lookup", "at, x, y",
      [](View<const int64_t, 1> at, View<const float, 2> x, View<float, 2> y) {
        Dim rows = dim("rows", at.extent(0)), cols = dim("cols", x.extent(1));
        (void)dim("table", x.extent(0));
        store(y(cols, rows), load(x(load(at(rows)), cols)));
      });
  Kernel keptTwice =
      kernel("kept", "x, y, z",
             [](View<const float, 2> x, View<float, 2> y, View<float, 1> z) {
               Dim rows = dim("rows", x.extent(0));
               Dim cols = dim("cols", x.extent(1));
               Tile root = round(sqrt(abs(load(x(rows, cols)))));
               store(z(rows), sum(root, cols));
               store(y(cols, rows), root);
             });
  for (auto [rows, cols] :
       {std::pair(16, 16), std::pair(37, 21), std::pair(4, 50)}) {
    agree(Program::fromKernel(lookup, {}),
          {{{rows}, DType::I64}, {{23, cols}}, {{cols, rows}}},
          text(rows, cols));
    agree(Program::fromKernel(keptTwice, {}),
          {{{rows, cols}}, {{cols, rows}}, {{rows}}}, text(rows, cols));
  }
}

// A store may overwrite what the square is loaded from.
TEST_P(Squares, InPlace) {
  Kernel sum = kernel("sum", "x, w, y, z",
                      [](View<const float, 2> x, View<const float, 2> w,
                         View<float, 2> y, View<float, 2> z) {
                        Dim rows = dim("rows", x.extent(0));
                        Dim cols = dim("cols", x.extent(1));
                        Tile a = load(x(rows, cols)), b = load(w(cols, rows));
                        store(y(rows, cols), a * 2 + b);
                        store(z(cols, rows), a - load(w(cols, rows)));
                      });
  auto turnedOnto = Program::fromKernel(turned<float>(), {});
  auto summed = Program::fromKernel(sum, {});
  for (int64_t size : {5, 16, 33, 40}) {
    agree(turnedOnto,
          {{{size, size}},
           {{size, size}, DType::F32, Layout::RowMajor, /*sameAs=*/0}},
          text(size, size) + " onto itself");
    const int64_t cols = size + 3;
    const Array plain{{size, cols}}, across{{cols, size}};
    for (auto [y, z] : {std::pair(0, 1), std::pair(0, -1), std::pair(-1, 1)}) {
      std::vector<Array> arrays{plain, across, plain, across};
      arrays[2].sameAs = y;
      arrays[3].sameAs = z;
      agree(summed, arrays, text(size, cols) + " in place");
    }
  }
}

TEST_P(Squares, PinnedLanes) {
  for (int64_t lanes : {2, 4, 16, 32, 64}) {
    if (lanes < getTarget(hostIsa()).lanes32() && hostRuns(Isa::Avx512))
      continue; // Fewer lanes than that level takes.
    auto program = Program::fromKernel(
        turned<float>().schedule({.vectorAxis = "rows", .lanes = lanes}), {});
    for (auto [rows, cols] : {std::pair(70, 33), std::pair(130, 16)})
      agree(program, {{{rows, cols}}, {{cols, rows}}},
            std::to_string(lanes) + " lanes, " + text(rows, cols));
  }
}

TEST_P(Squares, BlocksThatHangOver) {
  Kernel blocked =
      kernel("blocked", "x, y", [](View<const float, 2> x, View<float, 2> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto [r, c] : parallel(blocks(rows, 32), blocks(cols, 24)))
          store(y(c, r), load(x(r, c)));
      });
  auto program = Program::fromKernel(blocked, {});
  std::vector<PlanChoices> choices(2);
  choices[0].edges[0] = Edges::Apart;
  choices[1].edges[0] = Edges::Checked;
  for (int64_t rows : {1, 31, 33, 65, 96})
    for (int64_t cols : {5, 24, 25, 47})
      agree(program, {{{rows, cols}}, {{cols, rows}}}, text(rows, cols),
            nullptr, choices);
}

// In place, and with a dimension between the two.
TEST_P(Squares, ThreeDimensions) {
  Kernel swapped =
      kernel("swapped", "x, y", [](View<const float, 3> x, View<float, 3> y) {
        Dim a = dim("a", x.extent(0)), b = dim("b", x.extent(1)),
            c = dim("c", x.extent(2));
        store(y(c, b, a), load(x(a, b, c)));
      });
  for (auto [a, c] : {std::pair(16, 16), std::pair(19, 35), std::pair(3, 20)})
    agree(Program::fromKernel(swapped, {}), {{{a, 3, c}}, {{c, 3, a}}},
          text(a, c));
}

// Every form that a plan may have.
TEST_P(Squares, AnyPlan) {
  auto program = Program::fromKernel(turned<float>(), {});
  for (auto [rows, cols] : {std::pair(37, 70), std::pair(6, 130)}) {
    CompileRequest request;
    request.extents = {{rows, cols}, {cols, rows}};
    auto compiled = program->compile(request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    const int64_t nest = compiled->plan->stages[0].nests[0].id;
    std::vector<PlanChoices> choices;
    for (const char *dim : {"rows", "cols"})
      for (bool transposes : {false, true})
        for (int64_t unroll : {1, 2, 4})
          for (int64_t rowsTogether : {2, 4, 8, 16})
            for (TailForm tail :
                 {TailForm::Mask, TailForm::Scalar, TailForm::Overlap}) {
              if (!transposes && rowsTogether > 2)
                continue;
              NestChoice &choice = choices.emplace_back().nests[nest];
              choice.vectorDim = dim;
              choice.transposes = transposes;
              choice.unroll = unroll;
              choice.tileRows = rowsTogether;
              choice.tail = tail;
            }
    agree(program, {{{rows, cols}}, {{cols, rows}}}, text(rows, cols), nullptr,
          choices);
  }
}

INSTANTIATE_TEST_SUITE_P(Share, Squares, testing::Values(3));
INSTANTIATE_TEST_SUITE_P(Soak, Squares, testing::Values(1));

} // namespace

namespace runtest {
namespace {

class SquaresEmulated : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }
};

TEST_P(SquaresEmulated, Transpose) {
  const kernels::Operator &op = *kernels::findOperator("transpose");
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::F16})
    for (auto [rows, cols] :
         {std::pair(16, 16), std::pair(17, 65), std::pair(33, 5),
          std::pair(3, 40), std::pair(100, 37)})
      check(op,
            {requestFor({&op, GetParam()}, {{"rows", rows}, {"cols", cols}},
                        dtype),
             {kernels::ValueClass::Normal, kernels::ValueClass::SprinkledNan}},
            GetParam());
}

INSTANTIATE_TEST_SUITE_P(Emulated, SquaresEmulated,
                         testing::ValuesIn(emulatedMachines(1)),
                         [](const testing::TestParamInfo<Machine> &info) {
                           return info.param.name();
                         });

} // namespace
} // namespace runtest
} // namespace tessera
