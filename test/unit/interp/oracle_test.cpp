//===- oracle_test.cpp - The interpreter as an oracle -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strict results, in any order that an unordered reduction allows, lie within
// the radius that Oracle mode gives: on random programs and random data,
// special values included. Undecided comparisons and addresses are handled.
//
//===----------------------------------------------------------------------===//

#include "fixture.h"

#include "support/float_convert.h"

#include <chrono>
#include <random>

using namespace tessera;
using namespace tessera::interp;
using namespace tessera::interp::test;

namespace {

InterpretOptions oracle() {
  InterpretOptions options;
  options.mode = Mode::Oracle;
  return options;
}

/// Writes programs over tiles [r, c], [r] and [c] of one float type.
class Generator {
public:
  Generator(uint64_t seed, std::string element)
      : random(seed), element(std::move(element)) {}

  /// Reductions have the order ORDER, to be replaced.
  std::string body(const std::string &storage) {
    std::string r = "!tile.view<" + storage + ", 2, read>";
    std::string w = "!tile.view<" + storage + ", 2, write>";
    text = "%er = tile.extent %x, 0 : " + r +
           "\n%ec = tile.extent %x, 1 : " + r +
           "\ntile.dim \"r\" = %er\ntile.dim \"c\" = %ec\n" +
           "%zero = arith.constant 0.0 : " + element + "\n";
    tiles = {{"%v0", both}};
    text +=
        "%v0 = tile.load %x[\"r\", \"c\"] : " + r + " -> " + type(both) + "\n";
    count = 1;
    for (int i = 0, ops = 2 + pick(7); i < ops; ++i)
      addOp();
    std::string result = as(any(), both);
    text += "tile.store " + result + ", %y[\"r\", \"c\"] : " + type(both) +
            ", " + w + "\n";
    return text;
  }

  int pick(int n) { return static_cast<int>(random() % n); }
  std::mt19937_64 random;

private:
  enum Shape { both, rows, columns };
  struct Value {
    std::string name;
    Shape shape;
  };

  std::string type(Shape shape, const std::string &of) const {
    switch (shape) {
    case both:
      return "tensor<?x?x" + of + ", [\"r\", \"c\"]>";
    case rows:
      return "tensor<?x" + of + ", [\"r\"]>";
    case columns:
      return "tensor<?x" + of + ", [\"c\"]>";
    }
    return "";
  }
  std::string type(Shape shape) const { return type(shape, element); }

  Value any() { return tiles[pick(static_cast<int>(tiles.size()))]; }
  std::string fresh() { return "%v" + std::to_string(count++); }

  /// `value` in `shape`, broadcast or reduced as needed.
  std::string as(const Value &value, Shape shape) {
    if (value.shape == shape)
      return value.name;
    if (value.shape == both) {
      std::string over = shape == rows ? "c" : "r";
      std::string name = fresh();
      text += name + " = tile.reduce max ORDER " + value.name + " over [\"" +
              over + "\"] : " + type(both) + " -> " + type(shape) + "\n";
      return name;
    }
    std::string wide = value.name;
    wide = fresh();
    text += wide + " = tile.broadcast " + value.name + " : " +
            type(value.shape) + " -> " + type(both) + "\n";
    return shape == both ? wide : as({wide, both}, shape);
  }

  void define(const std::string &expression, Shape shape) {
    std::string name = fresh();
    text += name + " = " + expression + "\n";
    tiles.push_back({name, shape});
  }

  void addOp() {
    Value a = any();
    std::string t = type(a.shape);
    switch (pick(16)) {
    case 0:
    case 1: {
      const char *const ops[] = {"math.exp",  "math.tanh",      "tile.sigmoid",
                                 "math.absf", "arith.negf",     "math.erf",
                                 "math.sqrt", "math.rsqrt",     "math.log",
                                 "math.sin",  "math.log1p",     "math.expm1",
                                 "math.cos",  "math.roundeven", "math.exp2",
                                 "math.log2", "math.floor"};
      define(std::string(ops[pick(17)]) + " " + a.name + " : " + t, a.shape);
      return;
    }
    case 2:
    case 3:
    case 4: {
      const char *const ops[] = {
          "arith.addf",     "arith.subf",     "arith.mulf",   "arith.divf",
          "arith.maximumf", "arith.minimumf", "tile.max_num", "tile.min_num"};
      std::string b = as(any(), a.shape);
      define(std::string(ops[pick(8)]) + " " + a.name + ", " + b + " : " + t,
             a.shape);
      return;
    }
    case 5: {
      std::string b = as(any(), a.shape), c = as(any(), a.shape);
      define("math.fma " + a.name + ", " + b + ", " + c + " : " + t, a.shape);
      return;
    }
    case 6: {
      std::string b = as(any(), a.shape), c = fresh();
      const char *const ops[] = {"olt", "oge", "une", "uno", "ult"};
      text += c + " = arith.cmpf " + ops[pick(5)] + ", " + a.name + ", " + b +
              " : " + t + "\n";
      define("arith.select " + c + ", " + a.name + ", " + b + " : " +
                 type(a.shape, "i1") + ", " + t,
             a.shape);
      return;
    }
    case 7:
    case 8: {
      const char *const ops[] = {"add", "add", "mul", "max", "min", "max_num"};
      Shape to = pick(2) ? rows : columns;
      std::string wide = as(a, both);
      define("tile.reduce " + std::string(ops[pick(6)]) + " ORDER " + wide +
                 " over [\"" + (to == rows ? "c" : "r") +
                 "\"] : " + type(both) + " -> " + type(to),
             to);
      return;
    }
    case 9: {
      std::string along = a.shape == rows      ? "r"
                          : a.shape == columns ? "c"
                          : pick(2)            ? "r"
                                               : "c";
      std::string flags = pick(2) ? " exclusive" : "";
      flags += pick(2) ? " reverse" : "";
      define("tile.scan add ORDER " + a.name + " along \"" + along + "\"" +
                 flags + " : " + t + " -> " + t,
             a.shape);
      return;
    }
    case 10: {
      std::string wide = as(a, both), other = as(any(), both);
      define("tile.contract " + wide + ", " + other +
                 " over [\"c\"] {order = #tile<order ORDER>} : " + type(both) +
                 ", " + type(both) + " -> " + type(rows),
             rows);
      return;
    }
    case 11: {
      std::string along = a.shape == rows ? "r" : "c";
      define("tile.sort " + a.name + " along \"" + along + "\"" +
                 (pick(2) ? " descending" : "") + " : " + t + " -> " + t,
             a.shape);
      return;
    }
    case 12: {
      std::string wide = as(a, both), at = fresh();
      text += at + " = tile.arg_reduce " + (pick(2) ? "max " : "min ") + wide +
              " along \"c\" : " + type(both) + " -> " + type(rows, "i64") +
              "\n";
      define("tile.cast " + at + " : " + type(rows, "i64") + " -> " +
                 type(rows),
             rows);
      return;
    }
    case 13: {
      std::string whole = fresh(), i = type(a.shape, "i32");
      text += whole + " = tile.cast " + a.name + " : " + t + " -> " + i + "\n";
      define("tile.cast " + whole + " : " + i + " -> " + t, a.shape);
      return;
    }
    case 14: {
      const char *const ops[] = {"bf16", "f16", "f8E4M3FN", "f8E5M2"};
      define("tile.round_to " + a.name + " to " + ops[pick(4)] + " : " + t,
             a.shape);
      return;
    }
    case 15: {
      // A recurrence over the rows of a [c] tile.
      std::string start = as(any(), columns), scale = as(any(), columns);
      std::string c = type(columns), name = fresh();
      text += name + " = tile.serial %i in \"r\" carry(%s = " + start + " : " +
              c + ") {\n%p = arith.mulf %s, " + scale + " : " + c +
              "\n%t = math.tanh %p : " + c + "\n%u = arith.addf %t, " + start +
              " : " + c + "\ntile.yield %u : " + c + "\n}\n";
      tiles.push_back({name, columns});
      return;
    }
    }
  }

  std::string element;
  std::string text;
  std::vector<Value> tiles;
  int count = 0;
};

std::string withOrder(std::string text, const std::string &order) {
  for (size_t at; (at = text.find("ORDER")) != std::string::npos;)
    text.replace(at, 5, order);
  return text;
}

struct Format {
  const char *storage;
  const char *element;
  DType dtype;
  int bytes;
};

/// How many elements the bounds decided, and did not.
struct Tally {
  int decided = 0, undecided = 0;
};

void checkRandomProgram(uint64_t seed, const Format &format, Tally &tally) {
  Generator generator(seed, format.element);
  std::string body = generator.body(format.storage);
  std::string storage = format.storage;
  std::string signature = "%x: !tile.view<" + storage +
                          ", 2, read>, %y: !tile.view<" + storage +
                          ", 2, write>";
  int64_t rows = 1 + generator.pick(3), columns = 1 + generator.pick(9);
  size_t count = rows * columns;
  std::vector<char> x(count * format.bytes), y(x.size());
  const double specials[] = {0, -0.0, Inf, -Inf, NaN, 1e-40, 3e38, 1, -1, 60};
  std::normal_distribution<double> normal(0, 2);
  bool special = generator.pick(4) == 0;
  for (size_t i = 0; i < count; ++i)
    support::storeFloat(format.dtype, &x[i * format.bytes],
                        special && generator.pick(3) == 0
                            ? specials[generator.pick(10)]
                            : normal(generator.random));
  TensorRef in, out;
  in.data = x.data();
  in.dtype = format.dtype;
  in.extents = {rows, columns};
  in.strides = {columns, 1};
  out = in;
  out.data = y.data();

  Program exact(signature, withOrder(body, "unordered"), "tier(strict)");
  exact.check({in, out}, oracle());
  ASSERT_EQ(exact.report.outputs.size(), 1u);
  const std::vector<Bounded> &bounds = exact.report.outputs[0].elements;
  ASSERT_EQ(bounds.size(), count);
  for (const char *order : {"left", "right", "tree"}) {
    Program strict(signature, withOrder(body, order), "tier(strict)");
    strict.check({in, out});
    for (size_t i = 0; i < count; ++i) {
      double actual = support::loadFloat(format.dtype, &y[i * format.bytes]);
      bounded::Verdict verdict =
          bounded::judge(bounds[i], actual, format.dtype);
      // Whatever the order, a legal result is among the known outcomes.
      ASSERT_TRUE(verdict == bounded::Verdict::Accept || bounds[i].isUnknown())
          << "seed " << seed << ", element " << i << ": found " << actual
          << ", expected " << bounds[i].value << " +- " << bounds[i].radius
          << " or outcomes " << int(bounds[i].outcomes) << "\n"
          << strict.text;
      verdict == bounded::Verdict::Accept ? ++tally.decided : ++tally.undecided;
    }
  }
}

TEST(Oracle, StrictResultsLieWithinTheRadius) {
  const Format formats[] = {{"f32", "f32", DType::F32, 4},
                            {"f64", "f64", DType::F64, 8},
                            {"bf16", "f32", DType::BF16, 2},
                            {"f16", "f32", DType::F16, 2}};
  Tally tally;
  for (uint64_t seed = 1; seed <= 400 && !HasFatalFailure(); ++seed)
    checkRandomProgram(seed, formats[seed % 4], tally);
  EXPECT_GT(tally.decided, 2 * tally.undecided)
      << tally.decided << " decided, " << tally.undecided << " undecided";
}

TEST(Oracle, NothingIsWrittenAndStoredValuesAreSeen) {
  Program program("%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, write>",
                  R"(
    %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %n
    %v = tile.load %x["n"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["n"]>
    %e = math.exp %v : tensor<?xf32, ["n"]>
    tile.store %e, %y["n"] : tensor<?xf32, ["n"]>, !tile.view<f32, 1, write>
    %w = tile.load %x["n"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["n"]>
    %s = arith.addf %w, %w : tensor<?xf32, ["n"]>
    tile.store %s, %y["n"] : tensor<?xf32, ["n"]>, !tile.view<f32, 1, write>)");
  std::vector<float> x{1, 2};
  program.check({view(x), view(x)}, oracle());
  expectSame(x, {1, 2});
  const Bounded &second = program.report.outputs[0].elements[1];
  EXPECT_NEAR(static_cast<double>(second.value), 2 * std::exp(2.0), 1e-15);
  EXPECT_GT(second.radius, 0);
  EXPECT_LT(second.radius, 1e-4);
  EXPECT_EQ(program.report.outputs[0].argument, 1u);
}

TEST(Oracle, UndecidedComparisonsBlurWhatDependsOnThem) {
  // The sum is 0 or a rounding error away from it.
  auto run = [](const std::string &ops) {
    Program program(
        "%x: !tile.view<f32, 1, read>, %y: !tile.view<i64, 1, write>", R"(
    %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %n
    %z = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %v = tile.load %x["n"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["n"]>
    %s = tile.reduce add unordered %v over ["n"] : tensor<?xf32, ["n"]> -> f32
    %c = arith.cmpf ogt, %s, %zero : f32
    )" + ops);
    std::vector<float> x{0.1f, 0.2f, -0.3f};
    std::vector<int64_t> y(2);
    program.check({view(x), view(y)}, oracle());
    return std::pair(program.report.outputs[0].elements,
                     program.report.undecidedControl);
  };
  const std::string store =
      "tile.store %r, %y[%z] : i64, !tile.view<i64, 1, write>\n";
  auto [selected, control] =
      run("%r = arith.select %c, %one, %two : i64\n" + store);
  EXPECT_TRUE(selected[0].leftRange);
  EXPECT_FALSE(selected[1].leftRange);
  EXPECT_FALSE(control);
  auto [same, control2] =
      run("%r = arith.select %c, %one, %one : i64\n" + store);
  EXPECT_FALSE(same[0].leftRange);
  EXPECT_EQ(same[0].value, 1);
  auto [branch, control3] = run("%r = tile.if %c -> (i64) {\ntile.yield %one : "
                                "i64\n} else {\ntile.yield %two : i64\n}\n" +
                                store);
  EXPECT_TRUE(control3);
  EXPECT_TRUE(branch[0].leftRange);
  auto [masked, control4] =
      run("tile.store %one, %y[%z] mask(%c : i1) : i64, !tile.view<i64, 1, "
          "write>\n");
  EXPECT_TRUE(masked[0].leftRange);
  EXPECT_FALSE(control4);
  auto [address, control5] =
      run("%a = tile.cast %c : i1 -> index\ntile.store %one, %y[%a] : i64, "
          "!tile.view<i64, 1, write>\n");
  EXPECT_TRUE(control5);
  EXPECT_TRUE(address[1].leftRange);
}

TEST(Oracle, ArgReduceKnowsWhenItIsClose) {
  auto run = [](std::vector<float> x) {
    Program program(
        "%x: !tile.view<f32, 1, read>, %y: !tile.view<i64, 1, write>", R"(
    %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %n
    %z = arith.constant 0 : index
    %v = tile.load %x["n"] : !tile.view<f32, 1, read> -> tensor<?xf32, ["n"]>
    %e = math.exp %v : tensor<?xf32, ["n"]>
    %i = tile.arg_reduce max %e along "n" : tensor<?xf32, ["n"]> -> i64
    tile.store %i, %y[%z] : i64, !tile.view<i64, 1, write>)");
    std::vector<int64_t> y(1);
    program.check({view(x), view(y)}, oracle());
    return program.report.outputs[0].elements[0];
  };
  Bounded clear = run({1, 3, 2});
  EXPECT_FALSE(clear.leftRange);
  EXPECT_EQ(clear.value, 1);
  EXPECT_TRUE(run({1, 1.0000001f, 0}).leftRange);
  EXPECT_FALSE(run({1, 1.00001f, 0}).leftRange);
}

TEST(Oracle, FoldOfSumsHoldsInAnyOrder) {
  const std::string body = R"(
    %n = tile.extent %x, 0 : !tile.view<f32, 1, read>
    tile.dim "n" = %n
    %z = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %r = tile.fold %k in "n" ORDER init(%zero : f32) {
      %v = tile.load %x[%k] : !tile.view<f32, 1, read> -> f32
      %e = arith.mulf %v, %v : f32
      tile.yield %e : f32
    } combine {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tile.yield %s : f32
    }
    tile.store %r, %y[%z] : f32, !tile.view<f32, 1, write>)";
  const std::string signature =
      "%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, write>";
  std::mt19937 random(7);
  std::vector<float> x(200), y(1);
  for (float &value : x)
    value = static_cast<float>(random() % 1000) / 7;
  Program program(signature, withOrder(body, "unordered"));
  program.check({view(x), view(y)}, oracle());
  Bounded bound = program.report.outputs[0].elements[0];
  for (const char *order : {"left", "right", "tree"}) {
    Program strict(signature, withOrder(body, order));
    strict.check({view(x), view(y)});
    EXPECT_EQ(bounded::judge(bound, y[0], DType::F32),
              bounded::Verdict::Accept);
  }
}

TEST(Oracle, OverlappingViewsOfDifferentTypesAreRefused) {
  Program program("%x: !tile.view<i32, 1, read>, %y: !tile.view<f32, 1, write>",
                  "");
  std::vector<float> y(2);
  TensorRef x = view(y);
  x.dtype = DType::I32;
  Result<void> result = program.run({x, view(y)}, oracle());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().family, ErrorFamily::Unsupported);
}

} // namespace
