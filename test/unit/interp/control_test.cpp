//===- control_test.cpp - Regions and shapes in the interpreter ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops, branches, folds, races between instances, shape ops, limits.
//
//===----------------------------------------------------------------------===//

#include "fixture.h"

using namespace tessera;
using namespace tessera::interp;
using namespace tessera::interp::test;

namespace {

const std::string readView = "!tile.view<f32, 1, read>";
const std::string writeView = "!tile.view<f32, 1, write>";
const std::string dimN = "%e = tile.extent %x, 0 : !tile.view<f32, 1, read>\n"
                         "tile.dim \"n\" = %e\n";

TEST(Control, CarriesUpdateSimultaneously) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0 : index
    %o = arith.constant 1 : index
    %a0 = arith.constant 1.0 : f32
    %b0 = arith.constant 2.0 : f32
    %r:2 = tile.serial %k in "n" carry(%a = %a0 : f32, %b = %b0 : f32) {
      tile.yield %b, %a : f32, f32
    }
    tile.store %r#0, %y[%z] : f32, !tile.view<f32, 1, write>
    tile.store %r#1, %y[%o] : f32, !tile.view<f32, 1, write>)");
  std::vector<float> x(3), y(2);
  program.check({view(x), view(y)});
  expectSame(y, {2, 1});
  x.clear(); // No trips: the initial values.
  program.check({view(x), view(y)});
  expectSame(y, {1, 2});
}

TEST(Control, PipelineIsASerialLoop) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0 : index
    %s0 = arith.constant 0.0 : f32
    %r = tile.pipeline %k in "n" carry(%a = %s0 : f32) {
      tile.stage "fetch"
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      tile.stage "sum"
      %s = arith.addf %a, %v : f32
      tile.yield %s : f32
    }
    tile.store %r, %y[%z] : f32, !tile.view<f32, 1, write>)");
  std::vector<float> x{1, 2, 3}, y(1);
  program.check({view(x), view(y)});
  expectSame(y, {6});
}

TEST(Control, Branches) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0.0 : f32
    tile.parallel (%k) in ["n"] {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      %c = arith.cmpf olt, %v, %z : f32
      %r = tile.if %c -> (f32) {
        %neg = arith.negf %v : f32
        tile.yield %neg : f32
      } else {
        tile.yield %v : f32
      }
      tile.if %c {
        tile.store %z, %y[%k] : f32, !tile.view<f32, 1, write>
      } else {
        tile.store %r, %y[%k] : f32, !tile.view<f32, 1, write>
      }
    })");
  std::vector<float> x{-1, 2}, y(2, 9);
  program.check({view(x), view(y)});
  expectSame(y, {0, 2});
}

/// Folds x with combine(a, b) = 2a + b, which shows the order, from 1.
float fold(const std::string &order, std::vector<float> x) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %r = tile.fold %k in "n" )" + order + R"( init(%one : f32) {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      tile.yield %v : f32
    } combine {
    ^bb0(%a: f32, %b: f32):
      %d = arith.addf %a, %a : f32
      %s = arith.addf %d, %b : f32
      tile.yield %s : f32
    }
    tile.store %r, %y[%z] : f32, !tile.view<f32, 1, write>)");
  std::vector<float> y(1);
  program.check({view(x), view(y)});
  return y[0];
}

TEST(Control, FoldOrders) {
  auto c = [](float a, float b) { return 2 * a + b; };
  std::vector<float> x{3, 5, 7, 11, 13};
  EXPECT_EQ(fold("left", x), c(c(c(c(c(1, 3), 5), 7), 11), 13));
  EXPECT_EQ(fold("unordered", x), c(c(c(c(c(1, 3), 5), 7), 11), 13));
  EXPECT_EQ(fold("right", x), c(3, c(5, c(7, c(11, c(13, 1))))));
  EXPECT_EQ(fold("tree", x), c(1, c(c(c(3, 5), c(7, 11)), 13)));
  for (const char *order : {"left", "right", "tree", "unordered"})
    EXPECT_EQ(fold(order, {}), 1);
}

TEST(Control, FoldOfTiles) {
  Program program("%x: !tile.view<f32, 2, read>, %y: " + writeView, R"(
    %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
    %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
    tile.dim "r" = %r
    tile.dim "c" = %c
    %z = arith.constant 0.0 : f32
    %zz = tile.broadcast %z : f32 -> tensor<?xf32, ["c"]>
    %s = tile.fold %k in "r" tree init(%zz : tensor<?xf32, ["c"]>) {
      %v = tile.load %x[%k, "c"] : !tile.view<f32, 2, read>
             -> tensor<?xf32, ["c"]>
      tile.yield %v : tensor<?xf32, ["c"]>
    } combine {
    ^bb0(%a: tensor<?xf32, ["c"]>, %b: tensor<?xf32, ["c"]>):
      %t = arith.addf %a, %b : tensor<?xf32, ["c"]>
      tile.yield %t : tensor<?xf32, ["c"]>
    }
    tile.store %s, %y["c"] : tensor<?xf32, ["c"]>, !tile.view<f32, 1, write>)");
  std::vector<float> x{1, 2, 3, 4, 5, 6}, y(2);
  program.check({view(x, {3, 2}), view(y)});
  expectSame(y, {9, 12});
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

InterpretOptions races() {
  InterpretOptions options;
  options.checkRaces = true;
  return options;
}

TEST(Race, WriteWriteIsFound) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0 : index
    tile.parallel (%k) in ["n"] {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      tile.store %v, %y[%z] : f32, !tile.view<f32, 1, write>
    })");
  std::vector<float> x{1, 2, 3}, y(1);
  program.check({view(x), view(y)}, races());
  ASSERT_EQ(program.report.conflicts.size(), 1u);
  const Conflict &found = program.report.conflicts[0];
  EXPECT_TRUE(found.firstWrites && found.secondWrites);
  EXPECT_EQ(found.view, "y");
  EXPECT_EQ(found.element, std::vector<int64_t>{0});
  EXPECT_EQ(found.first.line, 9u);
  EXPECT_EQ(found.second.line, 9u);
  EXPECT_EQ(found.firstInstance, "n=0");
  EXPECT_EQ(found.secondInstance, "n=1");
  EXPECT_EQ(program.report.firstFinding()->code, "program.race");
  x.resize(1); // One instance has nobody to race with.
  program.check({view(x), view(y)}, races());
  EXPECT_TRUE(program.report.conflicts.empty());
}

TEST(Race, ReadOfANeighbourInPlaceIsFound) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %one = arith.constant 1 : index
    tile.parallel (%k) in ["n"] {
      %o = arith.addi %k, %one : index
      %v = tile.load %x[%o] : !tile.view<f32, 1, read> -> f32
      tile.store %v, %y[%k] : f32, !tile.view<f32, 1, write>
    })");
  std::vector<float> x{1, 2, 3}, y(3);
  program.check({view(x), view(y)}, races());
  EXPECT_TRUE(program.report.conflicts.empty());
  program.check({view(x), view(x)}, races());
  ASSERT_EQ(program.report.conflicts.size(), 1u);
  EXPECT_FALSE(program.report.conflicts[0].firstWrites);
  EXPECT_TRUE(program.report.conflicts[0].secondWrites);
  EXPECT_EQ(program.report.conflicts[0].first.line, 9u);
  EXPECT_EQ(program.report.conflicts[0].second.line, 10u);
}

TEST(Race, ExactInPlaceUseIsClean) {
  Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    tile.parallel (%k) in ["n"] {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      %w = arith.addf %v, %v : f32
      tile.store %w, %y[%k] : f32, !tile.view<f32, 1, write>
    }
    tile.parallel (%k) in ["n"] {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      tile.store %v, %y[%k] : f32, !tile.view<f32, 1, write>
    })");
  std::vector<float> x{1, 2, 3};
  program.check({view(x), view(x)}, races());
  EXPECT_TRUE(program.report.conflicts.empty());
  expectSame(x, {2, 4, 6});
}

TEST(Race, NestedRegions) {
  // Each instance of the outer region owns a row; inner instances share a cell
  // of it only in the second program.
  auto body = [](const std::string &column) {
    return R"(
    %r = tile.extent %y, 0 : !tile.view<f32, 2, write>
    %c = tile.extent %y, 1 : !tile.view<f32, 2, write>
    tile.dim "r" = %r
    tile.dim "c" = %c
    %z = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    tile.parallel (%i) in ["r"] {
      tile.store %v, %y[%i, %z] : f32, !tile.view<f32, 2, write>
      tile.parallel (%k) in ["c"] {
        tile.store %v, %y[%i, )" +
           column + R"(] : f32, !tile.view<f32, 2, write>
      }
      tile.serial %s in "c" {
        tile.store %v, %y[%i, %z] : f32, !tile.view<f32, 2, write>
      }
    })";
  };
  std::vector<float> y(6);
  Program clean("%y: !tile.view<f32, 2, write>", body("%k"));
  clean.check({view(y, {2, 3})}, races());
  EXPECT_TRUE(clean.report.conflicts.empty());
  Program racy("%y: !tile.view<f32, 2, write>", body("%z"));
  racy.check({view(y, {2, 3})}, races());
  ASSERT_EQ(racy.report.conflicts.size(), 1u);
  EXPECT_EQ(racy.report.conflicts[0].first.line, 13u);
}

TEST(Race, OuterInstancesConflictThroughInnerOnes) {
  Program program("%y: " + writeView, R"(
    %n = tile.extent %y, 0 : !tile.view<f32, 1, write>
    tile.dim "n" = %n
    tile.dim "outer" = %n
    %v = arith.constant 1.0 : f32
    tile.parallel (%i) in ["outer"] {
      tile.parallel (%k) in ["n"] {
        tile.store %v, %y[%k] : f32, !tile.view<f32, 1, write>
      }
    })");
  std::vector<float> y(3);
  program.check({view(y)}, races());
  ASSERT_EQ(program.report.conflicts.size(), 1u);
  EXPECT_EQ(program.report.conflicts[0].element, std::vector<int64_t>{0});
}

TEST(Race, ElementsOfDifferentSizeThatOverlap) {
  Program program("%b: !tile.view<i8, 1, write>, %w: !tile.view<i32, 1, write>",
                  R"(
    %two = arith.constant 2 : index
    tile.dim "n" = %two
    %z = arith.constant 0 : index
    %five = arith.constant 5 : index
    %a = arith.constant 1 : i8
    %v = arith.constant 1 : i32
    tile.parallel (%k) in ["n"] {
      %first = arith.cmpi eq, %k, %z : index
      tile.if %first {
        tile.store %a, %b[%five] : i8, !tile.view<i8, 1, write>
      } else {
        tile.store %v, %w[%k] : i32, !tile.view<i32, 1, write>
      }
    })");
  std::vector<int32_t> words(2);
  TensorRef bytes = view(words);
  bytes.dtype = DType::I8;
  bytes.extents = {8};
  program.check({bytes, view(words)}, races());
  ASSERT_EQ(program.report.conflicts.size(), 1u) << "byte 5 is in word 1";
  bytes.extents = {5};
  program.check({bytes, view(words)}, races());
  EXPECT_TRUE(program.report.conflicts.empty());
}

TEST(Race, ContributionsWithoutAnOrder) {
  auto run = [](const std::string &order) {
    Program program("%x: " + readView + ", %y: " + writeView, dimN + R"(
    %z = arith.constant 0 : index
    %s = arith.constant 0.0 : f32
    %r = tile.fold %k in "n" )" + order + R"( init(%s : f32) {
      tile.store %s, %y[%z] : f32, !tile.view<f32, 1, write>
      tile.yield %s : f32
    } combine {
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tile.yield %t : f32
    })");
    std::vector<float> x(3), y(1);
    program.check({view(x), view(y)}, races());
    return program.report.conflicts.size();
  };
  EXPECT_EQ(run("unordered"), 1u);
  EXPECT_EQ(run("tree"), 1u);
  EXPECT_EQ(run("left"), 0u);
  EXPECT_EQ(run("right"), 0u);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

TEST(Shape, BroadcastTransposeReshapeIota) {
  Program program(
      "%x: !tile.view<f32, 2, read>, %t: !tile.view<f32, 2, write>,"
      "%b: !tile.view<f32, 2, write>, %f: !tile.view<f32, 1, write>,"
      "%n: i64",
      R"(
    %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
    %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
    %flat = arith.index_cast %n : i64 to index
    tile.dim "r" = %r
    tile.dim "c" = %c
    tile.dim "flat" = %flat
    %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read>
           -> tensor<?x?xf32, ["r", "c"]>
    %tr = tile.transpose %v : tensor<?x?xf32, ["r", "c"]>
            -> tensor<?x?xf32, ["c", "r"]>
    tile.store %tr, %t["c", "r"] : tensor<?x?xf32, ["c", "r"]>,
                                   !tile.view<f32, 2, write>
    %i = tile.iota "c" : tensor<?xi64, ["c"]>
    %if = tile.cast %i : tensor<?xi64, ["c"]> -> tensor<?xf32, ["c"]>
    %br = tile.broadcast %if : tensor<?xf32, ["c"]>
            -> tensor<?x?xf32, ["r", "c"]>
    tile.store %br, %b["r", "c"] : tensor<?x?xf32, ["r", "c"]>,
                                   !tile.view<f32, 2, write>
    %fl = tile.reshape %tr : tensor<?x?xf32, ["c", "r"]>
            -> tensor<?xf32, ["flat"]>
    tile.store %fl, %f["flat"] : tensor<?xf32, ["flat"]>,
                                 !tile.view<f32, 1, write>)");
  std::vector<float> x{1, 2, 3, 4, 5, 6}, t(6), b(6), f(6);
  program.check(
      {view(x, {2, 3}), view(t, {3, 2}), view(b, {2, 3}), view(f), int64_t(6)});
  expectSame(t, {1, 4, 2, 5, 3, 6});
  expectSame(b, {0, 1, 2, 0, 1, 2});
  expectSame(f, t);
  std::vector<float> shorter(5);
  Result<void> result =
      program.run({view(x, {2, 3}), view(t, {3, 2}), view(b, {2, 3}),
                   view(shorter), int64_t(5)});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "launch.reshape");
}

TEST(Shape, ReshapeToMoreThanCanBeCounted) {
  Program program("%x: !tile.view<f32, 1, read>, %n: i64", R"(
    %c = tile.extent %x, 0 : !tile.view<f32, 1, read>
    %long = arith.index_cast %n : i64 to index
    tile.dim "c" = %c
    tile.dim "p" = %long
    tile.dim "q" = %long
    %v = tile.load %x["c"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["c"]>
    %w = tile.reshape %v : tensor<?xf32, ["c"]>
           -> tensor<?x?xf32, ["p", "q"]>)");
  std::vector<float> nothing;
  Result<void> result = program.run({view(nothing), int64_t{1} << 32});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "launch.reshape");
  EXPECT_EQ(result.error().message,
            "a reshape of 0 elements to extents 4294967296x4294967296, whose "
            "product does not fit 63 bits, expected equal numbers of elements");
}

TEST(Shape, Gather) {
  Program program("%x: !tile.view<f32, 2, read>, %i: !tile.view<i64, 1, read>,"
                  "%y: !tile.view<f32, 2, write>",
                  R"(
    %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
    %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
    %k = tile.extent %i, 0 : !tile.view<i64, 1, read>
    tile.dim "r" = %r
    tile.dim "c" = %c
    tile.dim "k" = %k
    %fill = arith.constant -1.0 : f32
    %v = tile.load %x["r", "c"] : !tile.view<f32, 2, read>
           -> tensor<?x?xf32, ["r", "c"]>
    %at = tile.load %i["k"] : !tile.view<i64, 1, read> -> tensor<?xi64, ["k"]>
    %g = tile.gather %v[%at] along "r" fill(%fill : f32)
           : tensor<?x?xf32, ["r", "c"]>, tensor<?xi64, ["k"]>
           -> tensor<?x?xf32, ["k", "c"]>
    tile.store %g, %y["k", "c"] : tensor<?x?xf32, ["k", "c"]>,
                                  !tile.view<f32, 2, write>)");
  std::vector<float> x{1, 2, 3, 4, 5, 6}, y(6);
  std::vector<int64_t> at{2, -1, 0};
  program.check({view(x, {3, 2}), view(at), view(y, {3, 2})});
  expectSame(y, {5, 6, -1, -1, 1, 2});
  InterpretOptions options;
  options.validateIndices = true;
  EXPECT_EQ(program.run({view(x, {3, 2}), view(at), view(y, {3, 2})}, options)
                .error()
                .code,
            "launch.index");
}

TEST(Limits, StepsAndMemory) {
  Program program("%n: i64", R"(
    %e = arith.index_cast %n : i64 to index
    tile.dim "n" = %e
    tile.dim "m" = %e
    tile.serial %i in "n" {
      tile.serial %k in "m" {
      }
    })");
  InterpretOptions options;
  options.stepLimit = 100000;
  Result<void> result = program.run({int64_t(1) << 40}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "interpreter.step-limit");
  result = program.run({int64_t(-1)}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "launch.extent");

  Program large("%n: i64", R"(
    %e = arith.index_cast %n : i64 to index
    tile.dim "n" = %e
    tile.dim "m" = %e
    %z = arith.constant 0.0 : f32
    %t = tile.broadcast %z : f32 -> tensor<?x?xf32, ["n", "m"]>)");
  for (int shift : {20, 40, 62}) {
    result = large.run({int64_t(1) << shift});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, "interpreter.memory-limit");
  }
}

} // namespace
