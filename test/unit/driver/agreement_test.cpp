//===- agreement_test.cpp - Rare forms: interpreter and code agree --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folds of tiles in tree order, reshapes between extents that are read from
// data, tiles whose extents nothing bounds, steps past 64 bits, conversions of
// large integers, and long chains of operations: the code of every level gives
// the bits of the interpreter.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"
#include "tessera/dsl.h"
#include "test/unit/emulation/emulator.h"
#include "test/unit/run/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

using namespace tessera;
using testing::HasSubstr;

namespace {

const char *const viewTypes = R"(
!in1 = !tile.view<f32, 1, read>
!in2 = !tile.view<f32, 2, read>
!ids = !tile.view<i64, 1, read>
!out = !tile.view<f32, 1, write>
!out2 = !tile.view<f32, 2, write>
!c = tensor<?xf32, ["c"]>
!d = tensor<?xf32, ["d"]>
!e = tensor<?xf32, ["e"]>
!cd = tensor<?x?xf32, ["c", "d"]>
!dc = tensor<?x?xf32, ["d", "c"]>
!de = tensor<?x?xf32, ["d", "e"]>
!ed = tensor<?x?xf32, ["e", "d"]>
!p = tensor<?xf32, ["p"]>
)";

Program parse(const std::string &text) {
  Result<Program> program = Program::fromText(
      viewTypes + ("module attributes {tile.version = 1 : i64} {\n" + text) +
          "\n}\n",
      "k.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
  return std::move(*program);
}

template <typename T>
TensorRef dense(std::vector<T> &data, DType type,
                std::vector<int64_t> extents) {
  TensorRef tensor;
  tensor.data = data.data();
  tensor.dtype = type;
  tensor.strides.assign(extents.size(), 1);
  for (size_t axis = extents.size(); axis-- > 1;)
    tensor.strides[axis - 1] = tensor.strides[axis] * extents[axis];
  tensor.extents = std::move(extents);
  return tensor;
}

/// Numbers whose sums and products show the order in which they were made.
std::vector<float> numbers(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(float((i * 7919 + 13) % 1009) * 0.37f - 150.0f);
  return values;
}

/// The levels that can be run, without those that differ from avx512 in
/// products of narrow elements alone.
std::vector<Isa> distinctIsas() {
  std::vector<Isa> isas = emulation::runnableIsas();
  std::erase_if(isas, runtest::addsNarrowProducts);
  return isas;
}

/// Runs the kernel with `x`, `ids` if there are any, and an output; on the
/// interpreter and on every level, emulated ones included.
void agree(const Program &program, std::vector<float> x,
           std::vector<int64_t> extents, std::vector<int64_t> ids,
           std::vector<int64_t> outputExtents,
           const std::vector<Isa> &isas = distinctIsas(),
           const std::vector<bool> &validations = {false, true}) {
  int64_t count = 1;
  for (int64_t extent : outputExtents)
    count *= extent;
  std::vector<float> expected(size_t(count), -1.0f);
  auto arguments = [&](std::vector<float> &output) {
    std::vector<Argument> list{dense(x, DType::F32, extents)};
    if (!ids.empty())
      list.push_back(dense(ids, DType::I64, {int64_t(ids.size())}));
    list.push_back(dense(output, DType::F32, outputExtents));
    return list;
  };
  Result<void> strict = program.interpret(arguments(expected), {});
  ASSERT_TRUE(strict.ok()) << strict.error().str();
  for (Isa isa : isas)
    for (bool validate : validations) {
      std::vector<float> actual(expected.size(), -1.0f);
      CompileRequest request;
      request.isa = isa;
      request.validate = validate;
      Result<CompiledKernel> compiled =
          program.compileFor(arguments(actual), request);
      ASSERT_TRUE(compiled.ok()) << compiled.error().str();
      Result<void> run = emulation::launch(isa, *compiled, arguments(actual));
      ASSERT_TRUE(run.ok()) << run.error().str();
      for (size_t i = 0; i < actual.size(); ++i)
        ASSERT_EQ(std::memcmp(&actual[i], &expected[i], sizeof(float)), 0)
            << name(isa) << " at " << i << ": interpreter " << expected[i]
            << ", compiled " << actual[i];
    }
}

/// A launch fails with `code` when it validates, and runs when it does not.
void refusedWhenValidated(const Program &program,
                          std::span<const Argument> arguments,
                          const std::string &code) {
  for (bool validate : {true, false}) {
    CompileRequest request;
    request.validate = validate;
    Result<CompiledKernel> compiled = program.compileFor(arguments, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    Result<void> run = compiled->executable.launch(arguments);
    EXPECT_EQ(run.ok(), !validate);
    if (!run)
      EXPECT_EQ(run.error().code, code) << run.error().str();
  }
}

//===----------------------------------------------------------------------===//
// Steps that leave 64 bits
//===----------------------------------------------------------------------===//

TEST(LargeSteps, WhatOverflowsIsOutside) {
  const int64_t low = std::numeric_limits<int64_t>::min(), high = ~low;
  const int64_t half = int64_t(1) << 62;
  for (int64_t step : {half, high / 3 * 2 + 2, high, -half, -high, -half - half,
                       int64_t(-3), int64_t(1000000007)}) {
    Kernel kernel =
        tessera::kernel("k", "x, ids, y",
                        [step](View<const float, 1> x,
                               View<const int64_t, 1> ids, View<float, 2> y) {
                          Dim c = dim("c", y.extent(0)),
                              d = dim("d", y.extent(1));
                          for (auto i : parallel(c))
                            store(y(i, d), load(x(step * d + load(ids(i)))));
                        });
    Result<Program> program = Program::fromKernel(kernel, {});
    ASSERT_TRUE(program.ok()) << program.error().str();
    std::vector<int64_t> ids = {0,    3,        -1,        half,
                                low,  low + 1,  low + 9,   -half,
                                high, high - 1, -half + 5, half + 7};
    agree(*program, numbers(40), {40}, ids, {int64_t(ids.size()), 37},
          distinctIsas(), {false});
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Through f64 these would be rounded twice: half a unit of f32 and a little.
TEST(Conversions, LargeIntegersAreRoundedOnce) {
  std::vector<int64_t> ids;
  for (int shift : {53, 54, 60, 62})
    for (int64_t odd : {0, 1})
      for (int64_t little : {-1025, -1, 0, 1, 511, 513, 1023, 1024, 1025}) {
        int64_t unit = int64_t(1) << (shift - 23);
        int64_t value = (int64_t(1) << shift) + odd * unit + unit / 2 + little;
        ids.insert(ids.end(), {value, -value});
      }
  ids.insert(ids.end(), {std::numeric_limits<int64_t>::min(),
                         std::numeric_limits<int64_t>::max(), 3, -3, 0});
  for (const char *sign : {"", "unsigned_from "})
    agree(parse(std::string(R"(
tile.kernel @k(%x: !in1, %ids: !ids, %y: !out) tier(strict) {
  %n = tile.extent %ids, 0 : !ids
  tile.dim "c" = %n
  %v = tile.load %ids["c"] : !ids -> tensor<?xi64, ["c"]>
  %w = tile.cast %v )") +
                sign + R"(: tensor<?xi64, ["c"]> -> !c
  tile.store %w, %y["c"] : !c, !out
})"),
          {0}, {1}, ids, {int64_t(ids.size())});
}

//===----------------------------------------------------------------------===//
// Folds of tiles in tree order
//===----------------------------------------------------------------------===//

/// A combination that is neither associative nor commutative, and that reads
/// its operands at other positions than the one it writes.
const char *const treeFold = R"(
tile.kernel @k(%x: !in2, %y: !out) tier(strict) {
  %r = tile.extent %x, 0 : !in2
  %n = tile.extent %x, 1 : !in2
  tile.dim "r" = %r
  tile.dim "c" = %n
  %o = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1 : i64
  %init = tile.broadcast %half : f32 -> !c
  %f:2 = tile.fold %i in "r" tree init(%init, %half : !c, f32) {
    %v = tile.load %x[%i, "c"] : !in2 -> !c
    %s = tile.reduce add left %v over ["c"] : !c -> f32
    tile.yield %v, %s : !c, f32
  } combine {
  ^bb0(%a: !c, %as: f32, %b: !c, %bs: f32):
    %h = tile.broadcast %half : f32 -> !c
    %k = arith.mulf %b, %h : !c
    %d = arith.subf %a, %k : !c
    %mb = tile.sort %b along "c" : !c -> !c
    %t = arith.addf %d, %mb : !c
    %q = tile.iota "c" : tensor<?xi64, ["c"]>
    %w = tile.broadcast %one : i64 -> tensor<?xi64, ["c"]>
    %g = arith.xori %q, %w : tensor<?xi64, ["c"]>
    %u = tile.gather %a[%g] along "c" : !c, tensor<?xi64, ["c"]> -> !c
    %z = arith.subf %t, %u : !c
    %e = arith.mulf %bs, %half : f32
    %es = arith.subf %as, %e : f32
    tile.yield %z, %es : !c, f32
  }
  %sb = tile.broadcast %f#1 : f32 -> !c
  %total = arith.addf %f#0, %sb : !c
  tile.store %total, %y["c"] : !c, !out
})";

/// At every level with checks and without, or at the levels in turn with one of
/// these.
void treeFoldsAtEdges(bool atAll) {
  Program program = parse(treeFold);
  const std::vector<Isa> all = distinctIsas();
  size_t number = 0;
  auto one = [&](int64_t rows, int64_t cols) {
    std::vector<Isa> isas = all;
    std::vector<bool> validations = {false, true};
    if (!atAll) {
      isas = {all[number % all.size()]};
      validations = {number / all.size() % 2 == 0};
    }
    ++number;
    agree(program, numbers(rows * cols), {rows, cols}, {}, {cols}, isas,
          validations);
  };
  for (int64_t rows : {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33})
    one(rows, 17);
  for (int64_t cols : {0, 1, 3, 16, 40})
    one(7, cols);
}

TEST(TreeFoldOfTiles, AgreesAtEdges) { treeFoldsAtEdges(/*atAll=*/false); }

TEST(TreeFoldOfTilesSoak, AgreesAtEdges) { treeFoldsAtEdges(/*atAll=*/true); }

/// Two tiles that change places, and a fold whose extent is read from data.
TEST(TreeFoldOfTiles, SwapsAndUnboundedExtents) {
  Program program = parse(R"(
tile.kernel @k(%x: !in2, %ids: !ids, %y: !out2) tier(strict) {
  %n = tile.extent %x, 1 : !in2
  %p = tile.extent %y, 0 : !out2
  tile.dim "c" = %n
  tile.dim "p" = %p
  %o = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %init = tile.broadcast %half : f32 -> !c
  tile.parallel (%j) in ["p"] {
    %len = tile.load %ids[%j] : !ids -> i64
    %ext = tile.cast %len : i64 -> index
    tile.dim "d" = %ext
    %f:2 = tile.fold %i in "d" tree init(%init, %init : !c, !c) {
      %at = arith.addi %i, %o : index
      %v = tile.load %x[%at, "c" + %o] : !in2 -> !c
      %w = arith.mulf %v, %v : !c
      tile.yield %v, %w : !c, !c
    } combine {
    ^bb0(%a: !c, %as: !c, %b: !c, %bs: !c):
      %d = arith.subf %a, %bs : !c
      tile.yield %b, %d : !c, !c
    }
    %total = arith.addf %f#0, %f#1 : !c
    tile.store %total, %y[%j, "c" + %o] : !c, !out2
  }
})");
  for (int64_t cols : {1, 3, 17})
    agree(program, numbers(40 * cols), {40, cols},
          {0, 1, 2, 3, 5, 8, 13, 16, 31, 40}, {10, cols});
}

//===----------------------------------------------------------------------===//
// Reshapes between extents that are read from data
//===----------------------------------------------------------------------===//

/// "d" and "p" depend on data; bounded, so that tiles over them are spread out
/// in memory.
std::string reshapes(bool bounded) {
  std::string bound = bounded ? "%most = arith.constant 9 : i64\n"
                                "    %len = arith.minsi %given, %most : i64\n"
                              : "%zero = arith.constant 0 : i64\n"
                                "    %len = arith.addi %given, %zero : i64\n";
  return R"(
tile.kernel @k(%x: !in1, %ids: !ids, %y: !out2) tier(strict) {
  %n = tile.extent %ids, 0 : !ids
  tile.dim "r" = %n
  %c = arith.constant )" +
         std::string("17") + R"( : index
  tile.dim "c" = %c
  %o = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  tile.parallel (%j) in ["r"] {
    %given = tile.load %ids[%j] : !ids -> i64
    )" + bound +
         R"(
    %ext = tile.cast %len : i64 -> index
    tile.dim "d" = %ext
    %area = arith.muli %ext, %c : index
    tile.dim "p" = %area
    %v = tile.load %x["p" + %o] : !in1 -> !p
    %v1 = tile.reshape %v : !p -> !dc
    %s1 = tile.scan add left %v1 along "c" : !dc -> !dc
    %v2 = tile.reshape %s1 : !dc -> !cd
    %s2 = tile.scan add left %v2 along "c" : !cd -> !cd
    %v3 = tile.reshape %s2 : !cd -> !p
    %v4 = tile.sort %v3 along "p" : !p -> !p
    tile.store %v3, %y[%j, "p" + %o] : !p, !out2
    %v5 = tile.reshape %v4 : !p -> !cd
    %sum = tile.reduce add left %v5 over ["d", "c"] : !cd -> f32
    %at = arith.constant 3000 : index
    tile.store %sum, %y[%j, %at] : f32, !out2
  }
})";
}

TEST(DynamicReshape, AgreesAtEdges) {
  for (bool bounded : {true, false})
    agree(parse(reshapes(bounded)), numbers(4000), {4000},
          {0, 1, 2, 3, 5, 8, 9, 0, 4}, {9, 3001});
  agree(parse(reshapes(false)), numbers(4000), {4000}, {16, 0, 33, 100},
        {4, 3001});
}

/// Numbers of elements that disagree are an error of a validating launch, and
/// touch nothing beside the tile in any other.
TEST(DynamicReshape, UnequalCounts) {
  Program program = parse(R"(
tile.kernel @k(%x: !in1, %ids: !ids, %y: !out) {
  %o = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %one = arith.constant 1 : index
  tile.dim "one" = %one
  tile.parallel (%j) in ["one"] {
    %a = tile.load %ids[%o] : !ids -> i64
    %b = tile.load %ids[%i1] : !ids -> i64
    %ae = tile.cast %a : i64 -> index
    %be = tile.cast %b : i64 -> index
    tile.dim "d" = %ae
    tile.dim "e" = %be
    %v = tile.load %x["d" + %o] : !in1 -> !d
    %w = tile.reshape %v : !d -> !e
    tile.store %w, %y["e" + %o] : !e, !out
  }
})");
  for (std::vector<int64_t> ids :
       {std::vector<int64_t>{3, 5}, {5, 3}, {0, 4}, {4, 0}, {0, 70000}}) {
    std::vector<float> x = numbers(8), y(8, -1.0f);
    std::vector<Argument> arguments{dense(x, DType::F32, {8}),
                                    dense(ids, DType::I64, {2}),
                                    dense(y, DType::F32, {8})};
    Result<void> strict = program.interpret(arguments, {});
    ASSERT_FALSE(strict.ok());
    EXPECT_EQ(strict.error().code, "launch.reshape");
    refusedWhenValidated(program, arguments, "launch.reshape");
  }
}

//===----------------------------------------------------------------------===//
// Tiles whose extents nothing bounds
//===----------------------------------------------------------------------===//

/// Sorted, kept across iterations and branches, over two such dimensions.
const char *const unbounded = R"(
tile.kernel @k(%x: !in1, %ids: !ids, %y: !out2) tier(strict) {
  %n = tile.extent %ids, 0 : !ids
  tile.dim "r" = %n
  %three = arith.constant 3 : index
  tile.dim "three" = %three
  %o = arith.constant 0 : index
  %two = arith.constant 2 : i64
  %limit = arith.constant 0.0 : f32
  tile.parallel (%j) in ["r"] {
    %len = tile.load %ids[%j] : !ids -> i64
    %ext = tile.cast %len : i64 -> index
    tile.dim "d" = %ext
    %v = tile.load %x["d" + %o] : !in1 -> !d
    %s = tile.sort %v along "d" : !d -> !d
    %t = tile.serial %k in "three" carry(%a = %s : !d) {
      %z = tile.scan add left %a along "d" : !d -> !d
      %m = tile.reduce max left %z over ["d"] : !d -> f32
      %b = arith.cmpf olt, %m, %limit : f32
      %q = tile.if %b -> (!d) {
        tile.yield %z : !d
      } else {
        %g = arith.subf %a, %z : !d
        tile.yield %g : !d
      }
      tile.yield %q : !d
    }
    tile.serial %k in "three" {
      %ki = tile.cast %k : index -> i64
      %more = arith.muli %ki, %two : i64
      %le = arith.addi %len, %more : i64
      %ee = tile.cast %le : i64 -> index
      tile.dim "e" = %ee
      %u = tile.load %x["e" + %k] : !in1 -> !e
      %ub = tile.broadcast %u : !e -> !de
      %tb = tile.broadcast %t : !d -> !de
      %w = arith.addf %ub, %tb : !de
      %sc = tile.scan add left %w along "e" : !de -> !de
      %sd = tile.scan add right %sc along "d" : !de -> !de
      %c = tile.reduce add left %sd over ["d", "e"] : !de -> f32
      %at = tile.cast %more : i64 -> index
      tile.store %c, %y[%j, %at] : f32, !out2
    }
    %at = arith.constant 10 : index
    tile.store %t, %y[%j, "d" + %at] : !d, !out2
  }
})";

TEST(UnboundedTiles, AgreeAtEdges) {
  Program program = parse(unbounded);
  agree(program, numbers(600), {600}, {0, 1, 2, 3, 16, 17, 33, 100, 4, 0, 250},
        {11, 300});
  agree(program, numbers(5), {5}, {0}, {1, 20});
}

/// Far more than there is, and products that overflow: an error, no crash.
TEST(UnboundedTiles, MoreThanThereIs) {
  Program program = parse(unbounded);
  for (int64_t extent : {int64_t{1} << 33, int64_t{1} << 45, int64_t{1} << 62,
                         INT64_MAX - 10, int64_t{1} << 20}) {
    std::vector<float> x = numbers(8), y(40, -1.0f);
    std::vector<int64_t> ids{2, extent};
    std::vector<Argument> arguments{dense(x, DType::F32, {8}),
                                    dense(ids, DType::I64, {2}),
                                    dense(y, DType::F32, {2, 20})};
    CompileRequest request;
    Result<CompiledKernel> compiled = program.compileFor(arguments, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    // The next launch is none the worse for it.
    for (int round = 0; round < 2; ++round) {
      Result<void> run = compiled->executable.launch(arguments);
      ASSERT_FALSE(run.ok()) << extent;
      EXPECT_EQ(run.error().code, "memory.exhausted");
      EXPECT_EQ(run.error().family, ErrorFamily::Unsupported);
      EXPECT_THAT(run.error().message, HasSubstr("depends on data"));
    }
    ids = {2, 3};
    EXPECT_TRUE(compiled->executable.launch(arguments).ok());
  }
}

TEST(UnboundedTiles, NegativeExtents) {
  Program program = parse(unbounded);
  std::vector<float> x = numbers(8), y(40, -1.0f);
  std::vector<int64_t> ids{2, -5};
  std::vector<Argument> arguments{dense(x, DType::F32, {8}),
                                  dense(ids, DType::I64, {2}),
                                  dense(y, DType::F32, {2, 20})};
  refusedWhenValidated(program, arguments, "launch.extent");
}

//===----------------------------------------------------------------------===//
// Long chains
//===----------------------------------------------------------------------===//

constexpr int64_t longChain = 20000;

/// `ops` steps, each on the result of the one before.
std::string chain(int64_t ops, const std::string &start,
                  const std::string &step, const std::string &end) {
  std::string text = R"(
tile.kernel @k(%x: !in1, %ids: !ids, %y: !out) tier(strict) {
  %n = tile.extent %x, 0 : !in1
  tile.dim "c" = %n
  %o = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %v = tile.load %x["c"] : !in1 -> !c
  %s = tile.load %x[%o] : !in1 -> f32
  %b = tile.broadcast %s : f32 -> !c
  )" + start + "\n";
  auto put = [&](std::string line, int64_t i) {
    for (size_t at; (at = line.find("NEXT")) != line.npos;)
      line.replace(at, 4, "%w" + std::to_string(i + 1));
    for (size_t at; (at = line.find("LAST")) != line.npos;)
      line.replace(at, 4, "%w" + std::to_string(i));
    text += line + "\n";
  };
  for (int64_t i = 0; i < ops; ++i)
    put(step, i);
  put(end, ops);
  return text + "}";
}

void agreeOnChain(const std::string &text, bool validate = true) {
  std::vector<float> x;
  for (int i = 0; i < 19; ++i)
    x.push_back(float(i) * 0.001f);
  // One level of each architecture.
  std::vector<Isa> isas = {hostIsa()};
  for (Isa isa : distinctIsas())
    if (!hostRuns(isa))
      isas.push_back(isa);
  agree(parse(text), x, {19}, {0, 1, 2}, {19}, isas, {validate});
}

const std::string storeTile = "tile.store LAST, %y[\"c\"] : !c, !out";

TEST(LongChain, OfTiles) {
  agreeOnChain(chain(longChain, "%w0 = arith.addf %v, %b : !c",
                     "NEXT = arith.addf LAST, %b : !c", storeTile));
}

/// Every value is used twice, and evaluated once.
TEST(LongChain, OfSharedTiles) {
  agreeOnChain(chain(longChain, "%w0 = arith.addf %v, %b : !c",
                     "NEXT = arith.subf LAST, LAST : !c", storeTile));
}

/// Scalars are evaluated where they stand.
TEST(LongChain, OfScalars) {
  agreeOnChain(chain(longChain, "%w0 = arith.addf %s, %s : f32",
                     "NEXT = arith.addf LAST, %s : f32",
                     "tile.store LAST, %y[%i1] : f32, !out"));
}

TEST(LongChain, OfIndices) {
  agreeOnChain(chain(longChain, "%w0 = arith.addi %o, %o : index",
                     "NEXT = arith.minsi LAST, %i1 : index",
                     "tile.store %s, %y[LAST] : f32, !out"));
}

TEST(LongChain, OfExtents) {
  agreeOnChain(chain(longChain,
                     "%a0 = tile.load %ids[%i1] : !ids -> i64\n"
                     "%w0 = tile.cast %a0 : i64 -> index",
                     "NEXT = arith.addi LAST, %o : index",
                     R"(tile.dim "d" = LAST
  %u = tile.load %x["d" + %o] : !in1 -> !d
  %r = tile.sort %u along "d" : !d -> !d
  tile.store %r, %y["d" + %o] : !d, !out)"));
}

TEST(LongChain, OfDependentLoads) {
  agreeOnChain(chain(longChain / 8, "%w0 = arith.addi %i1, %o : index",
                     "NEXTi = tile.load %ids[LAST] : !ids -> i64\n"
                     "NEXT = tile.cast NEXTi : i64 -> index",
                     "tile.store %s, %y[LAST] : f32, !out"),
               /*validate=*/false);
}

TEST(LongChain, BeyondAllBounds) {
  Program program = parse(chain(100001, "%w0 = arith.addf %s, %s : f32",
                                "NEXT = arith.addf LAST, %s : f32",
                                "tile.store LAST, %y[%i1] : f32, !out"));
  std::vector<float> x(3), y(3);
  std::vector<int64_t> ids(3);
  std::vector<Argument> arguments{dense(x, DType::F32, {3}),
                                  dense(ids, DType::I64, {3}),
                                  dense(y, DType::F32, {3})};
  Result<CompiledKernel> compiled = program.compileFor(arguments, {});
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.error().code, "unsupported.size");
}

} // namespace
