//===- memory_test.cpp - Views, loads and stores in the interpreter -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Snapshots, fills, masks, strides, storage types, launch errors, bounds
// reports, validated indices, roll-back.
//
//===----------------------------------------------------------------------===//

#include "fixture.h"

#include "support/float_convert.h"

using namespace tessera;
using namespace tessera::interp;
using namespace tessera::interp::test;

namespace {

const char *const readView = "!tile.view<f32, 1, read>";
const char *const writeView = "!tile.view<f32, 1, write>";
const char *const tileN = "tensor<?xf32, [\"n\"]>";

/// Ops that declare "n" as the extent of `%view`.
std::string dimOf(const std::string &view, const std::string &type) {
  return "%e = tile.extent " + view + ", 0 : " + type +
         "\ntile.dim \"n\" = %e\n";
}

TEST(Memory, LoadIsASnapshot) {
  std::string w = writeView, t = tileN;
  Program program("%x: " + w,
                  dimOf("%x", w) + "%a = tile.load %x[\"n\"] : " + w + " -> " +
                      t + "\n%s = arith.addf %a, %a : " + t +
                      "\ntile.store %s, %x[\"n\"] : " + t + ", " + w +
                      "\ntile.store %a, %x[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3};
  program.check({view(x)});
  expectSame(x, {1, 2, 3});
}

TEST(Memory, LoadOfAnOverlappingStore) {
  // y is x shifted by one: the load of x must not see the stores to y.
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w,
                  dimOf("%x", r) + "%a = tile.load %x[\"n\"] : " + r + " -> " +
                      t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3, 4};
  TensorRef from = view(x), to = view(x);
  from.extents = to.extents = {3};
  to.data = x.data() + 1;
  program.check({from, to});
  expectSame(x, {1, 1, 2, 3});
}

TEST(Memory, OutsideReadsTheFillAndDropsTheStore) {
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w + ", %s: i64, %f: f32",
                  dimOf("%y", w) + "%o = arith.index_cast %s : i64 to index\n" +
                      "%a = tile.load %x[\"n\" + %o] fill(%f : f32) : " + r +
                      " -> " + t + "\ntile.store %a, %y[\"n\" + %o] : " + t +
                      ", " + w);
  std::vector<float> x{1, 2, 3}, y{9, 9, 9};
  program.check({view(x), view(y), int64_t(1), 7.0});
  expectSame(y, {9, 2, 3});
  program.check({view(x), view(y), int64_t(-2), 7.0});
  expectSame(y, {1, 2, 3});
  y = {9, 9, 9};
  program.check({view(x), view(y), std::numeric_limits<int64_t>::max(), 7.0});
  expectSame(y, {9, 9, 9});
}

TEST(Memory, StepsAndZeroFill) {
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w,
                  dimOf("%y", w) + "%a = tile.load %x[\"n\" * -2] : " + r +
                      " -> " + t + "\n%two = arith.constant 4 : index\n" +
                      "%b = tile.load %x[\"n\" * -2 + %two] : " + r + " -> " +
                      t + "\n%s = arith.addf %a, %b : " + t +
                      "\ntile.store %s, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3, 4, 5}, y(4);
  program.check({view(x), view(y)});
  expectSame(y, {6, 3, 1, 0});
}

TEST(Memory, NegativeAndZeroStrides) {
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w,
                  dimOf("%y", w) + "%a = tile.load %x[\"n\"] : " + r + " -> " +
                      t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3}, y(3);
  TensorRef reversed = view(x);
  reversed.data = &x[2];
  reversed.strides = {-1};
  program.check({reversed, view(y)});
  expectSame(y, {3, 2, 1});
  TensorRef repeated = view(x);
  repeated.strides = {0};
  program.check({repeated, view(y)});
  expectSame(y, {1, 1, 1});
  // A writable view must not overlap itself.
  TensorRef bad = view(y);
  bad.strides = {0};
  Result<void> result = program.run({view(x), bad});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "launch.overlap");
}

TEST(Memory, MaskedAccess) {
  std::string r = readView, w = writeView, t = tileN;
  std::string mask = "tensor<?xi1, [\"n\"]>";
  Program program(
      "%x: " + r + ", %y: " + w,
      dimOf("%y", w) + "%z = arith.constant 0.0 : f32\n" +
          "%f = arith.constant -1.0 : f32\n" + "%v = tile.load %x[\"n\"] : " +
          r + " -> " + t + "\n%zz = tile.broadcast %z : f32 -> " + t +
          "\n%m = arith.cmpf ogt, %v, %zz : " + t +
          "\n%a = tile.load %x[\"n\"] fill(%f : f32) mask(%m : " + mask +
          ") : " + r + " -> " + t + "\n%d = arith.addf %a, %a : " + t +
          "\n%nf = arith.cmpf ole, %v, %zz : " + t +
          "\ntile.store %d, %y[\"n\"] mask(%nf : " + mask + ") : " + t + ", " +
          w);
  std::vector<float> x{-5, 5, 0}, y{9, 9, 9};
  program.check({view(x), view(y)});
  expectSame(y, {-2, 9, -2});
}

TEST(Memory, GatherOffsets) {
  std::string idx = "!tile.view<i64, 1, read>", w = writeView, t = tileN;
  Program program(
      "%x: !tile.view<f32, 1, read>, %i: " + idx + ", %y: " + w,
      dimOf("%i", idx) + "%at = tile.load %i[\"n\"] : " + idx +
          " -> tensor<?xi64, [\"n\"]>\n%a = tile.load %x[%at] "
          "at(tensor<?xi64, [\"n\"]>) : !tile.view<f32, 1, read> -> " +
          t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3}, y(4, 9);
  std::vector<int64_t> at{2, 0, -1, 3};
  program.check({view(x), view(at), view(y)});
  expectSame(y, {3, 1, 0, 0});
  y.assign(4, 9);
  InterpretOptions options;
  options.validateIndices = true;
  Result<void> result = program.run({view(x), view(at), view(y)}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().family, ErrorFamily::Launch);
  EXPECT_EQ(result.error().code, "launch.index");
  EXPECT_EQ(result.error().where.line, 6u);
  EXPECT_EQ(result.error().message,
            "an index into axis 0 of 'x' is outside [0, 3): found -1; nothing "
            "was written");
  expectSame(y, {9, 9, 9, 9});
  at = {2, 0, 1, 1};
  program.check({view(x), view(at), view(y)}, options);
  expectSame(y, {3, 1, 2, 2});
}

TEST(Memory, ErrorsLeaveMemoryAsItWas) {
  std::string idx = "!tile.view<i64, 1, read>", w = writeView;
  Program program(
      "%i: " + idx + ", %y: " + w,
      dimOf("%i", idx) + "%one = arith.constant 1.0 : f32\n" +
          "tile.parallel (%k) in [\"n\"] {\n%a = tile.load %i[%k] : " + idx +
          " -> i64\n%o = arith.index_cast %a : i64 to index\n" +
          "tile.store %one, %y[%o] : f32, " + w + "\n}");
  std::vector<int64_t> at{0, 1, 7};
  std::vector<float> y{5, 6, 7};
  InterpretOptions options;
  options.validateIndices = true;
  EXPECT_FALSE(program.run({view(at), view(y)}, options).ok());
  expectSame(y, {5, 6, 7});
  options.validateIndices = false;
  options.stepLimit = 18;
  Result<void> result = program.run({view(at), view(y)}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "interpreter.step-limit");
  expectSame(y, {5, 6, 7});
  options.stepLimit = 0;
  program.check({view(at), view(y)}, options);
  expectSame(y, {1, 1, 7});
}

TEST(Memory, IndicesThroughLoopsAndBranchesAreValidated) {
  // The offset comes from a carry that a loaded value reaches.
  std::string idx = "!tile.view<i64, 1, read>", w = writeView;
  Program program("%i: " + idx + ", %y: " + w, dimOf("%i", idx) + R"(
    %one = arith.constant 1.0 : f32
    %z = arith.constant 0 : i64
    %last = tile.serial %k in "n" carry(%a = %z : i64) {
      %v = tile.load %i[%k] : !tile.view<i64, 1, read> -> i64
      %c = arith.cmpi sgt, %v, %a : i64
      %m = tile.if %c -> (i64) {
        tile.yield %v : i64
      } else {
        tile.yield %a : i64
      }
      tile.yield %m : i64
    }
    %o = arith.index_cast %last : i64 to index
    tile.store %one, %y[%o] : f32, !tile.view<f32, 1, write>)");
  InterpretOptions options;
  options.validateIndices = true;
  std::vector<int64_t> at{0, 2, 1};
  std::vector<float> y(3);
  program.check({view(at), view(y)}, options);
  expectSame(y, {0, 0, 1});
  at[1] = 3;
  EXPECT_EQ(program.run({view(at), view(y)}, options).error().code,
            "launch.index");
}

TEST(Memory, MaskedIndicesAreNotValidated) {
  std::string idx = "!tile.view<i64, 1, read>";
  std::string i64s = "tensor<?xi64, [\"n\"]>", mask = "tensor<?xi1, [\"n\"]>";
  Program program(
      "%i: " + idx + ", %x: " + readView + ", %y: " + writeView,
      dimOf("%i", idx) + "%at = tile.load %i[\"n\"] : " + idx + " -> " + i64s +
          "\n%z = arith.constant 0 : i64\n%zz = tile.broadcast %z : i64 -> " +
          i64s + "\n%m = arith.cmpi sge, %at, %zz : " + i64s +
          "\n%v = tile.load %x[%at] at(" + i64s + ") mask(%m : " + mask +
          ") : " + readView + " -> " + tileN +
          "\ntile.store %v, %y[\"n\"] : " + tileN + ", " + writeView);
  std::vector<int64_t> at{-100, 1};
  std::vector<float> x{5, 6}, y(2, 9);
  InterpretOptions options;
  options.validateIndices = true;
  program.check({view(at), view(x), view(y)}, options);
  expectSame(y, {0, 6});
}

/// Copies through a storage type and back.
template <typename T>
std::vector<T> copyThrough(const std::string &element, const std::string &tile,
                           DType dtype, std::vector<T> x) {
  std::string r = "!tile.view<" + element + ", 1, read>";
  std::string w = "!tile.view<" + element + ", 1, write>";
  std::string t = "tensor<?x" + tile + ", [\"n\"]>";
  Program program("%x: " + r + ", %y: " + w,
                  dimOf("%x", r) + "%a = tile.load %x[\"n\"] : " + r + " -> " +
                      t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<T> y(x.size(), 99);
  program.check({view(x, dtype), view(y, dtype)});
  return y;
}

TEST(Memory, EveryStorageTypeRoundTrips) {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 256; ++i)
    bytes.push_back(static_cast<uint8_t>(i));
  expectSame(copyThrough("i8", "i8", DType::I8, bytes), bytes);
  expectSame(copyThrough("ui8", "i8", DType::U8, bytes), bytes);
  std::vector<uint8_t> truth = copyThrough("i1", "i1", DType::Bool, bytes);
  EXPECT_EQ(truth[0], 0);
  for (int i = 1; i < 256; ++i)
    EXPECT_EQ(truth[i], 1) << "any byte but zero is true";
  for (auto [text, type] :
       {std::pair{"f8E4M3FN", DType::F8E4M3}, {"f8E5M2", DType::F8E5M2}}) {
    std::vector<uint8_t> copied = copyThrough(text, "f32", type, bytes);
    for (int i = 0; i < 256; ++i) {
      float value = static_cast<float>(support::loadFloat(type, &bytes[i]));
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(support::loadFloat(type, &copied[i])));
      else
        EXPECT_EQ(copied[i], bytes[i]);
    }
  }
  std::vector<uint16_t> halves{0, 1, 0x8000, 0x3c00, 0x7c00, 0x0400, 0x7bff};
  expectSame(copyThrough("f16", "f32", DType::F16, halves), halves);
  expectSame(copyThrough("bf16", "f32", DType::BF16, halves), halves);
  std::vector<double> wide{0.1, -0.0, 1e308, 5e-324};
  expectSame(copyThrough("f64", "f64", DType::F64, wide), wide);
}

TEST(Memory, StoresNarrowOnceAfterF32Arithmetic) {
  std::string r = "!tile.view<bf16, 1, read>", w = "!tile.view<bf16, 1, write>";
  std::string t = tileN;
  Program program("%x: " + r + ", %y: " + w,
                  dimOf("%x", r) + "%a = tile.load %x[\"n\"] : " + r + " -> " +
                      t + "\n%s = arith.mulf %a, %a : " + t +
                      "\n%d = arith.subf %s, %a : " + t +
                      "\ntile.store %d, %y[\"n\"] : " + t + ", " + w);
  std::vector<uint16_t> x{support::f32ToBF16(1.1f)}, y(1);
  program.check({view(x, DType::BF16), view(y, DType::BF16)});
  float a = support::bf16ToF32(x[0]);
  EXPECT_EQ(y[0], support::f32ToBF16(a * a - a));
}

TEST(Memory, LaunchErrors) {
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w + ", %s: i32 = 3",
                  dimOf("%x", r) + "%a = tile.load %x[\"n\"] : " + r + " -> " +
                      t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2}, y{8, 9, 7};
  auto code = [&](std::vector<Argument> arguments) {
    Result<void> result = program.run(std::move(arguments));
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(result.error().family, ErrorFamily::Launch);
    return result.ok() ? "" : result.error().code;
  };
  EXPECT_EQ(code({view(x), view(y)}), "launch.extent");
  EXPECT_EQ(code({view(x)}), "launch.count");
  EXPECT_EQ(code({view(x), 1.0}), "launch.kind");
  EXPECT_EQ(code({view(x, {1, 2}), view(y)}), "launch.rank");
  std::vector<double> wide{1, 2};
  EXPECT_EQ(code({view(wide), view(y)}), "launch.dtype");
  TensorRef negative = view(x);
  negative.extents = {-1};
  EXPECT_EQ(code({negative, view(y)}), "launch.extent");
  TensorRef null = view(x);
  null.data = nullptr;
  EXPECT_EQ(code({null, view(y)}), "launch.null");
  y.resize(2);
  EXPECT_EQ(code({view(x), view(y), 2.5}), "launch.scalar");
  EXPECT_EQ(code({view(x), view(y), int64_t(1) << 40}), "launch.scalar");
  EXPECT_EQ(code({view(x), view(y), int64_t(1), 2.0}), "launch.count");
  expectSame(y, {8, 9});
  program.check({view(x), view(y)});
  expectSame(y, {1, 2});
}

TEST(Memory, ExtentMismatchNamesBoth) {
  std::string r = readView, w = writeView;
  // Checked although no instance runs.
  Program program(
      "%x: " + r + ", %y: " + w,
      dimOf("%x", r) + "%z = arith.constant 0 : index\n" +
          "tile.dim \"none\" = %z\n" + "tile.parallel (%i) in [\"none\"] {\n" +
          "tile.serial %k in \"n\" {\n%a = tile.load %x[%k] : " + r +
          " -> f32\ntile.store %a, %y[%k] : f32, " + w + "\n}\n}");
  std::vector<float> x{1, 2}, y{8, 9, 7};
  Result<void> result = program.run({view(x), view(y)});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message,
            "argument 'y': extent 0 is 3, dimension 'n' is 2");
  EXPECT_EQ(result.error().where.line, 10u);
}

TEST(Memory, PromisedBoundsAreReported) {
  std::string r = readView, w = writeView, t = tileN;
  Program program("%x: " + r + ", %y: " + w + ", %s: i64",
                  dimOf("%y", w) + "%o = arith.index_cast %s : i64 to index\n" +
                      "%a = tile.load %x[\"n\" + %o] promised : " + r + " -> " +
                      t + "\ntile.store %a, %y[\"n\"] : " + t + ", " + w);
  std::vector<float> x{1, 2, 3}, y{9, 9, 9};
  InterpretOptions options;
  options.checkBounds = true;
  program.check({view(x), view(y), int64_t(0)}, options);
  EXPECT_TRUE(program.report.boundsViolations.empty());
  EXPECT_FALSE(program.report.firstFinding());
  program.check({view(x), view(y), int64_t(1)}, options);
  ASSERT_EQ(program.report.boundsViolations.size(), 1u);
  const BoundsViolation &found = program.report.boundsViolations[0];
  EXPECT_EQ(found.view, "x");
  EXPECT_EQ(found.index, 3);
  EXPECT_EQ(found.extent, 3);
  EXPECT_EQ(found.where.line, 6u);
  EXPECT_EQ(program.report.firstFinding()->code, "program.out-of-bounds");
}

TEST(Memory, Scatter) {
  std::string idx = "!tile.view<i64, 1, read>", r = readView, w = writeView;
  auto run = [&](const std::string &combiner, std::vector<float> y) {
    Program program(
        "%i: " + idx + ", %x: " + r + ", %y: " + w,
        dimOf("%i", idx) + "%at = tile.load %i[\"n\"] : " + idx +
            " -> tensor<?xi64, [\"n\"]>\n%a = tile.load %x[\"n\"] : " + r +
            " -> " + tileN + "\ntile.scatter " + combiner +
            " %a, %y[%at] at(tensor<?xi64, [\"n\"]>) : " + tileN + ", " + w);
    std::vector<int64_t> at{0, 1, 0, 5, -1, 0};
    std::vector<float> x{1, 2, 3, 4, 5, 10};
    program.check({view(at), view(x), view(y)});
    return y;
  };
  expectSame(run("add", {100, 200}), {114, 202});
  expectSame(run("mul", {1, 1}), {30, 2});
  expectSame(run("max", {2, 3}), {10, 3});
  expectSame(run("min_num", {NaN, NaN}), {1, 2});
}

} // namespace
