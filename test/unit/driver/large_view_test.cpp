//===- large_view_test.cpp - Offsets past 2^31 and 2^32, shared memory ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Views whose furthest element lies gigabytes away, in sparse mappings that
// take no memory; and views that share memory, exactly or partly. The
// interpreter and the code of every level must agree to the bit.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sys/mman.h>

using namespace tessera;

namespace {

/// Address space without memory behind it until it is touched.
class Sparse {
public:
  explicit Sparse(int64_t bytes) : bytes(bytes) {
    data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  Sparse(const Sparse &) = delete;
  Sparse &operator=(const Sparse &) = delete;
  ~Sparse() {
    if (valid())
      munmap(data, static_cast<size_t>(bytes));
  }
  bool valid() const { return data != MAP_FAILED; }
  char *at(int64_t offset) const { return static_cast<char *>(data) + offset; }

private:
  int64_t bytes;
  void *data;
};

std::string module(const std::string &text) {
  return "module attributes {tile.version = 1 : i64} {\n" + text + "\n}\n";
}

Program parse(const std::string &text) {
  Result<Program> program = Program::fromText(module(text), "k.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
  return std::move(*program);
}

TensorRef view(void *data, DType type, std::vector<int64_t> extents,
               std::vector<int64_t> strides) {
  TensorRef tensor;
  tensor.data = data;
  tensor.dtype = type;
  tensor.extents = std::move(extents);
  tensor.strides = std::move(strides);
  return tensor;
}

const char *const doubleRows = R"(
tile.kernel @k(%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 2, write>) {
  %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
  %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
  tile.dim "r" = %r
  tile.dim "c" = %c
  tile.parallel (%i) in ["r"] {
    %v = tile.load %x[%i, "c"] : !tile.view<f32, 2, read> -> tensor<?xf32, ["c"]>
    %w = arith.addf %v, %v : tensor<?xf32, ["c"]>
    tile.store %w, %y[%i, "c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 2, write>
  }
})";

/// The whole matrix as one tile, transposed on the way.
const char *const transposed = R"(
tile.kernel @k(%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 2, write>) {
  %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
  %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
  tile.dim "r" = %r
  tile.dim "c" = %c
  %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["r", "c"]>
  %w = arith.addf %v, %v : tensor<?x?xf32, ["r", "c"]>
  %t = tile.transpose %w : tensor<?x?xf32, ["r", "c"]> -> tensor<?x?xf32, ["c", "r"]>
  %u = tile.transpose %t : tensor<?x?xf32, ["c", "r"]> -> tensor<?x?xf32, ["r", "c"]>
  tile.store %u, %y["r", "c"] : tensor<?x?xf32, ["r", "c"]>, !tile.view<f32, 2, write>
})";

/// Rows by index, and added up by index.
const char *const gathered = R"(
tile.kernel @k(%x: !tile.view<f32, 2, read>, %ids: !tile.view<i64, 1, read>,
               %y: !tile.view<f32, 2, write>) {
  %r = tile.extent %ids, 0 : !tile.view<i64, 1, read>
  %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
  tile.dim "r" = %r
  tile.dim "c" = %c
  %id = tile.load %ids["r"] : !tile.view<i64, 1, read> -> tensor<?xi64, ["r"]>
  %v = tile.load %x[%id, "c"] at(tensor<?xi64, ["r"]>) : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["r", "c"]>
  tile.scatter add %v, %y[%id, "c"] at(tensor<?xi64, ["r"]>) : tensor<?x?xf32, ["r", "c"]>, !tile.view<f32, 2, write>
})";

class LargeStrides
    : public testing::TestWithParam<std::tuple<int64_t, int, int>> {};

TEST_P(LargeStrides, AgreeWithTheInterpreter) {
  auto [large, form, sign] = GetParam();
  const int64_t rows = 5, columns = 19;
  // Form 0: rows far apart; form 1: columns far apart, rows next to each other.
  std::vector<int64_t> strides = {large, 1};
  int64_t r = rows, c = columns;
  if (form == 1) {
    strides = {1, large};
    std::swap(r, c);
  }
  int64_t span = (rows + 1) * large * 4 + 4096;
  int64_t origin = 0;
  if (sign < 0) {
    int axis = form == 1 ? 1 : 0;
    origin = (rows - 1) * large * 4;
    strides[axis] = -large;
  }
  Sparse x(span), expected(span), actual(span);
  if (!x.valid() || !expected.valid() || !actual.valid())
    GTEST_SKIP() << "no address space for " << span << " bytes";
  auto element = [&](const Sparse &memory, int64_t i, int64_t j) {
    return reinterpret_cast<float *>(
        memory.at(origin + (i * strides[0] + j * strides[1]) * 4));
  };
  for (int64_t i = 0; i < r; ++i)
    for (int64_t j = 0; j < c; ++j)
      *element(x, i, j) = static_cast<float>(100 * i + j + 1);
  auto ref = [&](const Sparse &memory) {
    return view(memory.at(origin), DType::F32, {r, c}, strides);
  };
  for (Isa isa : hostIsas()) {
    CompileRequest request;
    request.isa = isa;
    for (const char *text : {doubleRows, transposed}) {
      Program program = parse(text);
      std::vector<Argument> arguments{ref(x), ref(expected)};
      ASSERT_TRUE(program.interpret(arguments, {}).ok());
      arguments[1] = ref(actual);
      Result<CompiledKernel> compiled = program.compileFor(arguments, request);
      ASSERT_TRUE(compiled.ok()) << compiled.error().str();
      Result<void> run = compiled->executable.launch(arguments);
      ASSERT_TRUE(run.ok()) << run.error().str();
      for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j < c; ++j) {
          EXPECT_EQ(*element(actual, i, j), *element(expected, i, j));
          EXPECT_EQ(*element(actual, i, j), 2 * *element(x, i, j));
          *element(actual, i, j) = *element(expected, i, j) = 0;
        }
    }
    Program program = parse(gathered);
    std::vector<int64_t> ids = {r - 1, 0, r - 1, 2, -1, r, int64_t(1) << 40};
    TensorRef indices =
        view(ids.data(), DType::I64, {int64_t(ids.size())}, {1});
    std::vector<Argument> arguments{ref(x), indices, ref(expected)};
    ASSERT_TRUE(program.interpret(arguments, {}).ok());
    arguments[2] = ref(actual);
    Result<CompiledKernel> compiled = program.compileFor(arguments, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    ASSERT_TRUE(compiled->executable.launch(arguments).ok());
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < c; ++j) {
        EXPECT_EQ(*element(actual, i, j), *element(expected, i, j));
        *element(actual, i, j) = *element(expected, i, j) = 0;
      }
  }
}
// Row distances of 2^31 and 2^32 bytes, a little more, and 2^35.
INSTANTIATE_TEST_SUITE_P(
    Strides, LargeStrides,
    testing::Combine(testing::Values((int64_t(1) << 29) - 1, int64_t(1) << 29,
                                     (int64_t(1) << 30) + 3, int64_t(1) << 33),
                     testing::Values(0, 1), testing::Values(1, -1)));

/// A window that lies past 2^31 and 2^32 in an axis of so many elements.
TEST(LargeExtents, Windows) {
  const int64_t extent = (int64_t(1) << 32) + 5000;
  Sparse x(extent);
  if (!x.valid())
    GTEST_SKIP() << "no address space";
  Program program = parse(R"(
tile.kernel @k(%x: !tile.view<ui8, 1, read>, %y: !tile.view<ui8, 1, write>, %at: i64) {
  %n = tile.extent %y, 0 : !tile.view<ui8, 1, write>
  tile.dim "c" = %n
  %o = tile.cast %at : i64 -> index
  %v = tile.load %x["c" + %o] : !tile.view<ui8, 1, read> -> tensor<?xi8, ["c"]>
  tile.store %v, %y["c"] : tensor<?xi8, ["c"]>, !tile.view<ui8, 1, write>
})");
  for (Isa isa : hostIsas()) {
    for (int64_t at : {(int64_t(1) << 31) - 40, (int64_t(1) << 32) - 40,
                       extent - 50, extent + 3, int64_t(-20), int64_t(-1) << 32,
                       (int64_t(1) << 33) + 7}) {
      for (int64_t i = 0; i < 77; ++i)
        if (at + i >= 0 && at + i < extent)
          *x.at(at + i) = static_cast<char>(i + 1);
      std::vector<uint8_t> expected(77, 99), actual(77, 99);
      TensorRef source = view(x.at(0), DType::U8, {extent}, {1});
      std::vector<Argument> arguments{
          source, view(expected.data(), DType::U8, {77}, {1}), at};
      ASSERT_TRUE(program.interpret(arguments, {}).ok());
      arguments[1] = view(actual.data(), DType::U8, {77}, {1});
      CompileRequest request;
      request.isa = isa;
      Result<CompiledKernel> compiled = program.compileFor(arguments, request);
      ASSERT_TRUE(compiled.ok()) << compiled.error().str();
      Result<void> run = compiled->executable.launch(arguments);
      ASSERT_TRUE(run.ok()) << run.error().str();
      EXPECT_EQ(actual, expected) << at;
      for (int64_t i = 0; i < 77; ++i)
        EXPECT_EQ(actual[i], at + i >= 0 && at + i < extent ? i + 1 : 0);
    }
  }
}

/// A loop of more than 2^31 trips.
TEST(LargeExtents, Reduction) {
  const int64_t extent = (int64_t(1) << 31) + 77;
  Sparse x(extent);
  if (!x.valid())
    GTEST_SKIP() << "no address space";
  *x.at(extent - 1) = 7;
  Program program = parse(R"(
tile.kernel @k(%x: !tile.view<i8, 1, read>, %y: !tile.view<i8, 0, write>) {
  %n = tile.extent %x, 0 : !tile.view<i8, 1, read>
  tile.dim "c" = %n
  %v = tile.load %x["c"] : !tile.view<i8, 1, read> -> tensor<?xi8, ["c"]>
  %m = tile.reduce max unordered %v over ["c"] : tensor<?xi8, ["c"]> -> i8
  tile.store %m, %y[] : i8, !tile.view<i8, 0, write>
})");
  int8_t result = 0;
  std::vector<Argument> arguments{view(x.at(0), DType::I8, {extent}, {1}),
                                  view(&result, DType::I8, {}, {})};
  CompileRequest request;
  request.isa = hostIsa();
  Result<CompiledKernel> compiled = program.compileFor(arguments, request);
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  ASSERT_TRUE(compiled->executable.launch(arguments).ok());
  EXPECT_EQ(result, 7);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Within one program instance, loads are snapshots and stores come in order.
const std::pair<const char *, const char *> bodies[] = {
    {"copy", R"(
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  tile.store %v, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"reverse", R"(
  %one = arith.constant 1 : index
  %last = arith.subi %n, %one : index
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  tile.store %v, %y["c" * -1 + %last] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"twice", R"(
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  %w = arith.addf %v, %v : tensor<?xf32, ["c"]>
  tile.store %w, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
  %u = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  %z = arith.subf %u, %v : tensor<?xf32, ["c"]>
  tile.store %z, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"snapshot kept across a store", R"(
  %f = arith.constant 5.0 : f32
  %g = tile.broadcast %f : f32 -> tensor<?xf32, ["c"]>
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  tile.store %g, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
  %w = arith.addf %v, %g : tensor<?xf32, ["c"]>
  tile.store %w, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"sum", R"(
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  %s = tile.reduce add left %v over ["c"] : tensor<?xf32, ["c"]> -> f32
  %b = tile.broadcast %s : f32 -> tensor<?xf32, ["c"]>
  %w = arith.subf %b, %v : tensor<?xf32, ["c"]>
  tile.store %w, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"running", R"(
  tile.serial %k in "c" {
    %a = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
    %b = tile.load %y[%k] : !tile.view<f32, 1, write> -> f32
    %s = arith.addf %a, %b : f32
    tile.store %s, %y[%k] : f32, !tile.view<f32, 1, write>
  })"},
    {"scan", R"(
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  %s = tile.scan add left %v along "c" : tensor<?xf32, ["c"]> -> tensor<?xf32, ["c"]>
  tile.store %s, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
    {"scatter", R"(
  %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  tile.scatter add %v, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>
  %w = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
  tile.scatter add %w, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)"},
};

TEST(SharedMemory, AgreesWithTheInterpreter) {
  const int64_t n = 41;
  std::vector<int64_t> shifts = {0, 1, -1, 3, -3, 8, -8, 16, -16, 40, -40, 41};
  const std::vector<Isa> levels = hostIsas();
  size_t count = 0;
  for (const auto &[name, body] : bodies) {
    Program program = parse(
        "tile.kernel @k(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, "
        "write>) tier(strict) {\n  %n = tile.extent %x, 0 : !tile.view<f32, 1, "
        "read>\n  tile.dim \"c\" = %n" +
        std::string(body) + "\n}");
    for (int64_t shift : shifts)
      for (int64_t stride : {1, 2, -1}) {
        // One level each, in turn.
        Isa isa = levels[count++ % levels.size()];
        std::vector<float> memory(400), other(400);
        for (size_t i = 0; i < memory.size(); ++i)
          memory[i] = other[i] = static_cast<float>((i * 37) % 101);
        auto arguments = [&](std::vector<float> &at) {
          return std::vector<Argument>{
              view(&at[200], DType::F32, {n}, {1}),
              view(&at[200 + shift], DType::F32, {n}, {stride})};
        };
        ASSERT_TRUE(program.interpret(arguments(other), {}).ok());
        CompileRequest request;
        request.isa = isa;
        std::vector<Argument> launched = arguments(memory);
        Result<CompiledKernel> compiled = program.compileFor(launched, request);
        ASSERT_TRUE(compiled.ok()) << compiled.error().str();
        Result<void> run = compiled->executable.launch(launched);
        ASSERT_TRUE(run.ok()) << run.error().str();
        EXPECT_EQ(memory, other) << name << ", shift " << shift << ", stride "
                                 << stride << ", " << tessera::name(isa);
      }
  }
}

/// Code for separate memory refuses shared memory before it writes anything.
TEST(SharedMemory, RefusedByCodeForSeparateMemory) {
  Program program = parse(doubleRows);
  std::vector<float> memory(60, 1), before = memory;
  std::vector<Argument> apart{view(&memory[0], DType::F32, {3, 5}, {5, 1}),
                              view(&memory[20], DType::F32, {3, 5}, {5, 1})};
  CompileRequest request;
  request.isa = hostIsa();
  Result<CompiledKernel> compiled = program.compileFor(apart, request);
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  for (int64_t shift : {0, 1, 14}) {
    std::vector<Argument> shared{
        view(&memory[0], DType::F32, {3, 5}, {5, 1}),
        view(&memory[shift], DType::F32, {3, 5}, {5, 1})};
    Result<void> run = compiled->executable.launch(shared);
    ASSERT_FALSE(run.ok()) << shift;
    EXPECT_EQ(run.error().family, ErrorFamily::Launch);
    EXPECT_EQ(memory, before);
  }
  // A written view that overlaps itself.
  std::vector<Argument> folded{view(&memory[0], DType::F32, {3, 5}, {5, 1}),
                               view(&memory[20], DType::F32, {3, 5}, {4, 1})};
  Result<void> run = compiled->executable.launch(folded);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().family, ErrorFamily::Launch);
  EXPECT_EQ(memory, before);
}

} // namespace
