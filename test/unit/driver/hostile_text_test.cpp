//===- hostile_text_test.cpp - Text that means harm -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever the text, Program::fromText returns: a program, or a Diagnostic (or
// Usage, for the choice of a kernel) error. It neither crashes nor hangs nor
// takes memory out of proportion to the text.
//
//===----------------------------------------------------------------------===//

#include "hostile_text.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::hostile;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Malformed and ill-typed
//===----------------------------------------------------------------------===//

TEST(HostileText, Malformed) {
  for (const char *text : {"{",
                           "}",
                           "module {",
                           "tile.kernel",
                           "tile.kernel @",
                           "%",
                           "\"",
                           "(",
                           "tile.kernel @k(",
                           "tile.kernel @k() {",
                           "module attributes {",
                           "#map = ",
                           "!t = ",
                           "// only a comment",
                           "module {} module {",
                           "^bb0:",
                           "{-#",
                           "{-# dialect_resources: {",
                           "\\",
                           "@",
                           "#",
                           "!",
                           "!tile.view<",
                           "0x",
                           "1.0e",
                           "\"abc",
                           "->",
                           "::",
                           "%%%",
                           "\xff\xfe",
                           "loc(",
                           "?"})
    diagnosed(text);
}

TEST(HostileText, EmptyTextHasNoVersion) {
  EXPECT_THAT(diagnosed("").message, HasSubstr("carries no version"));
  EXPECT_THAT(diagnosed("  \n\n").message, HasSubstr("carries no version"));
  EXPECT_THAT(diagnosed("module {}").message, HasSubstr("carries no version"));
}

TEST(HostileText, IllTyped) {
  Error error = diagnosed(inKernel("%a = arith.addf %s, %c : f32"));
  EXPECT_EQ(error.where.line, 3u);
  diagnosed(inKernel("%a = arith.addf %s, %s : i32"));
  diagnosed(inKernel("%a = arith.addf %nothing, %s : f32"));
  diagnosed(inKernel("%a = tile.load %s[] : f32 -> f32"));
  diagnosed(
      inKernel("%a = tile.load %x[%c] : !tile.view<f32, 1, read> -> f32"));
  diagnosed(inKernel("%a:2 = arith.addf %s, %s : f32"));
  diagnosed(inKernel("tile.store %s, %x[] : f32, !tile.view<f32, 0, write>"));
  diagnosed(
      inKernel("%a = arith.constant 1.0 : f32\n%a = arith.constant 2.0 : f32"));
  diagnosed(
      inKernel("%a = arith.addf %b, %s : f32\n%b = arith.addf %a, %s : f32"));
}

TEST(HostileText, UnknownOpsAndDialects) {
  diagnosed(inKernel("tile.frobnicate"));
  diagnosed(inKernel("\"tile.frobnicate\"() : () -> ()"));
  diagnosed(inKernel("nothing.op"));
  diagnosed(inKernel("\"nothing.op\"() : () -> ()"));
  diagnosed(inKernel("\"func.return\"() : () -> ()"));
  diagnosed(inKernel("\"builtin.unrealized_conversion_cast\"() : () -> ()"));
  diagnosed(inKernel("builtin.module {}"));
  diagnosed(inModule("tile.kernel @k(%x: !nothing.type) {}"));
  diagnosed(inModule("tile.kernel @k(%x: !tile.nothing) {}"));
  diagnosed(inModule("tile.kernel @k() attributes {a = #nothing.attr} {}"));
}

TEST(HostileText, GenericFormsWithMissingParts) {
  for (const char *op :
       {"tile.kernel",   "tile.parallel",   "tile.serial",   "tile.pipeline",
        "tile.fold",     "tile.if",         "tile.load",     "tile.store",
        "tile.scatter",  "tile.reduce",     "tile.scan",     "tile.sort",
        "tile.contract", "tile.gather",     "tile.iota",     "tile.dim",
        "tile.dim_size", "tile.extent",     "tile.yield",    "tile.cast",
        "tile.round_to", "tile.arg_reduce", "tile.broadcast"}) {
    std::string name = std::string("\"") + op + "\"";
    diagnosed(inKernel(name + "() : () -> ()"));
    diagnosed(inKernel(name + "() ({}) : () -> ()"));
    diagnosed(inKernel(name + "() ({}, {}, {}) : () -> ()"));
    diagnosed(inKernel(name + "(%s, %s, %s) : (f32, f32, f32) -> f32"));
    diagnosed(inKernel(name + "(%x) <{axis_dims = [1], axis_steps = array<i64: "
                              "1>, axis_has_offset = array<i1: true>, over = "
                              "[3], along = 4, dims = [5], dim = 6}> : "
                              "(!tile.view<f32, 1, read>) -> f32"));
  }
  // Segments that do not add up, attributes of other lengths.
  diagnosed(inKernel(
      "%v = \"tile.load\"(%x) <{axis_dims = [\"\", \"\"], axis_steps = "
      "array<i64>, "
      "axis_has_offset = array<i1: true>, operandSegmentSizes = array<i32: 1, "
      "0, 0, 0>}> : (!tile.view<f32, 1, read>) -> f32"));
  diagnosed(inKernel(
      "%v = \"tile.load\"(%x) <{axis_dims = [\"\"], axis_steps = array<i64: "
      "0>, "
      "axis_has_offset = array<i1: true>, operandSegmentSizes = array<i32: 1, "
      "7, -7, 0>}> : (!tile.view<f32, 1, read>) -> f32"));
  diagnosed(inModule(
      "\"tile.kernel\"() <{sym_name = \"k\", arg_names = [\"a\"], arg_defaults "
      "= [], tier = #tile<tier default>}> ({}) : () -> ()"));
}

//===----------------------------------------------------------------------===//
// Version and kernels
//===----------------------------------------------------------------------===//

TEST(HostileText, Version) {
  const std::string kernel = "tile.kernel @k() {}";
  auto with = [&](const std::string &attributes) {
    return diagnosed("module attributes {" + attributes + "} {\n" + kernel +
                     "\n}");
  };
  EXPECT_THAT(diagnosed(kernel).message, HasSubstr("carries no version"));
  EXPECT_THAT(with("other.note = 1 : i64").message, HasSubstr("no version"));
  EXPECT_THAT(with("tile.version = 2 : i64").message,
              HasSubstr("found Tile IR version 2"));
  EXPECT_THAT(with("tile.version = 0 : i64").message,
              HasSubstr("found Tile IR version 0"));
  for (const char *odd : {"\"1\"", "1.000000e+00 : f64", "true", "[1]", "unit"})
    EXPECT_THAT(with(std::string("tile.version = ") + odd).message,
                HasSubstr(std::string("found tile.version = ") + odd +
                          ", expected the integer 1"));
  EXPECT_THAT(
      with("tile.version = \"" + std::string(1000, 'x') + "\"").message.size(),
      testing::Lt(200u));
  EXPECT_THAT(with("tile.version = -1 : i64").message,
              HasSubstr("found Tile IR version -1"));
  EXPECT_THAT(with("tile.version = \"1\"").message, HasSubstr("version"));
  EXPECT_THAT(with("tile.version").message, HasSubstr("version"));
  EXPECT_THAT(with("tile.version = 1.0 : f64").message, HasSubstr("version"));
  // Wider than any machine integer.
  with("tile.version = 340282366920938463463374607431768211455 : i200");
  with("tile.version = 1 : i64, tile.version = 1 : i64");
}

TEST(HostileText, ChoiceOfAKernel) {
  const std::string two =
      inModule("tile.kernel @a() {}\ntile.kernel @b(%s: f32) {}");
  Error error = errorOf(two);
  EXPECT_EQ(error.family, ErrorFamily::Usage);
  EXPECT_THAT(error.message, HasSubstr("several kernels"));
  EXPECT_TRUE(Program::fromText(two, "t.mlir", "b").ok());
  error = errorOf(two, "c");
  EXPECT_EQ(error.family, ErrorFamily::Usage);
  EXPECT_THAT(error.message, HasSubstr("no kernel 'c'"));
  error = errorOf(inModule(""));
  EXPECT_EQ(error.family, ErrorFamily::Usage);
  EXPECT_THAT(error.message, HasSubstr("no kernel"));
  std::string many;
  for (int i = 0; i < 40; ++i)
    many += "tile.kernel @k" + std::to_string(i) + "() {}\n";
  EXPECT_THAT(errorOf(inModule(many)).message,
              HasSubstr("name one of k0, k1, k2, "));
  EXPECT_THAT(errorOf(inModule(many)).message, HasSubstr("k31 and 8 more"));
  EXPECT_THAT(errorOf(inModule(many), "z").message,
              HasSubstr("k31 and 8 more"));
  diagnosed(inModule("tile.kernel @a() {}\ntile.kernel @a() {}"));
  diagnosed(inModule("tile.kernel @a(%s: f32, %s: f32) {}"));
}

TEST(HostileText, VersionIsNamedWhereItStands) {
  Error error = diagnosed("// tile.version is 2\n\nmodule attributes {\n"
                          "  tile.version = 2 : i64} {\n}\n");
  EXPECT_THAT(error.message, HasSubstr("found Tile IR version 2"));
  EXPECT_EQ(error.where.line, 4u);
  EXPECT_EQ(error.where.column, 3u);
  EXPECT_EQ(diagnosed("// one\n// two\nmodule {}").where.line, 3u);
}

TEST(HostileText, NumbersBeyondTheirTypes) {
  auto withDefault = [](const std::string &value) {
    return inModule("tile.kernel @k(%s: f32 =\n " + value + ") {}");
  };
  EXPECT_THAT(diagnosed(withDefault("1.0e999")).message,
              HasSubstr("found the number 1.0e999, which no f64 holds"));
  Error error = diagnosed(withDefault("-1.0e39"));
  EXPECT_THAT(error.message,
              HasSubstr("default of '%s' is beyond the range of 'f32'"));
  EXPECT_EQ(error.where.line, 3u);
  EXPECT_THAT(
      diagnosed(inKernel("%a = arith.constant 12.5E+400 : f32")).message,
      HasSubstr("12.5E+400"));
  for (const char *value : {"0x7F800000", "1.0e-999", "3.0e38", "-0.0"})
    EXPECT_TRUE(Program::fromText(withDefault(value), "t.mlir").ok()) << value;
}

//===----------------------------------------------------------------------===//
// Large
//===----------------------------------------------------------------------===//

TEST(HostileText, HugeLiterals) {
  const std::string digits(1000000, '9');
  diagnosed(inKernel("%a = arith.constant " + digits + " : i64"));
  diagnosed(inKernel("%a = arith.constant " + digits + " : index"));
  diagnosed(inKernel("%a = arith.constant 0x" + digits + " : i64"));
  diagnosed(inKernel("%a = arith.constant -" + digits + " : i32"));
  diagnosed(inKernel("%n = tile.extent %x, " + digits +
                     " : !tile.view<f32, 1, read>"));
  diagnosed(
      inModule("tile.kernel @k(%x: !tile.view<f32, " + digits + ", read>) {}"));
  diagnosed(
      inModule("tile.kernel @k(%x: !tile.view<i" + digits + ", 1, read>) {}"));
  diagnosed(inModule("tile.kernel @k(%x: tensor<" + digits + "xf32>) {}"));
  diagnosed(inKernel("%a = tile.load %x[\"k\" * " + digits +
                     "] : !tile.view<f32, 1, read> -> tensor<?xf32, [\"k\"]>"));
  diagnosed("module attributes {tile.version = " + digits + " : i64} {}");
  diagnosed(inKernel("%a = arith.constant 1." + digits + " : f32"));
  diagnosed(inKernel("%a = arith.constant 1.0e" + digits + " : f32"));
  // The widest type there is, and one more.
  EXPECT_EQ(
      errorOf("module attributes {tile.version = 1 : i16777215} {}").family,
      ErrorFamily::Usage);
  diagnosed("module attributes {tile.version = 1 : i16777216} {}");
}

TEST(HostileText, HugeNames) {
  const std::string name(1000000, 'n');
  Result<Program> program = Program::fromText(
      inModule("tile.kernel @" + name + "(%" + name + ": f32) {}"), "t.mlir");
  // A kernel's name becomes part of file names and C identifiers.
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().family, ErrorFamily::Diagnostic);
  diagnosed(inModule("tile.kernel @\"a/../b\"() {}"));
  diagnosed(inModule("tile.kernel @\"\\FF\"() {}"));
  Result<Program> argument = Program::fromText(
      inModule("tile.kernel @k(%" + name + ": f32) {}"), "t.mlir");
  EXPECT_TRUE(argument.ok()) << argument.error().str();
  diagnosed(inKernel("tile.dim \"" + name + "\" = %" + name));
}

TEST(HostileText, DenseAttributes) {
  // A splat of 2^60 elements takes no memory; it is no tile either way.
  diagnosed(inKernel("%a = arith.constant dense<1.0> : "
                     "tensor<1152921504606846976xf32>"));
  diagnosed(inKernel("%a = arith.constant dense<1.0> : "
                     "tensor<4294967296x4294967296x4294967296xf32>"));
  diagnosed(inKernel("%a = arith.constant dense<\"0x00\"> : tensor<9xf32>"));
  diagnosed(
      inKernel("%a = arith.constant dense<[[1.0], 2.0]> : tensor<2xf32>"));
  diagnosed(inKernel("%a = arith.constant dense<[" +
                     repeated("1.0, ", 1000000) +
                     "1.0]> : tensor<1000001xf32>"));
  diagnosed(inKernel("%a = arith.constant sparse<[[0]], [1.0]> : "
                     "tensor<4611686018427387904xf32>"));
  diagnosed(
      inKernel("%a = arith.constant dense_resource<blob> : tensor<4xf32>"));
  diagnosed(inModule("tile.kernel @k() {}") +
            "{-# dialect_resources: { builtin: { blob: \"0xZZ\" } } #-}");
}

TEST(HostileText, ManyErrors) {
  diagnosed(inKernel(repeated("tile.nothing\n", 100000)));
  diagnosed(inKernel(repeated("%a = arith.constant 1.0 : f32\n", 100000)));
}

TEST(HostileText, ManyOps) {
  std::string body;
  for (int i = 0; i < 50000; ++i)
    body += "%v" + std::to_string(i) + " = arith.constant 1.0 : f32\n";
  Result<Program> program = Program::fromText(inKernel(body), "t.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
}

/// Runs `make` on the path of a file that is removed afterwards.
template <typename Make> Error fileError(Make make) {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("tessera_hostile_" + std::to_string(getpid())))
                         .string();
  make(path);
  Result<Program> program = Program::fromFile(path);
  std::filesystem::remove_all(path);
  if (program) {
    ADD_FAILURE() << "accepted";
    return {};
  }
  return program.error();
}

TEST(HostileText, Files) {
  // Sparse: it takes no disk, and nobody reads it.
  Error error = fileError([](const std::string &path) {
    std::ofstream(path) << "x";
    std::filesystem::resize_file(path, (uintmax_t(64) << 20) + 1);
  });
  EXPECT_EQ(error.family, ErrorFamily::Usage) << error.str();
  EXPECT_THAT(error.message, HasSubstr("at most 67108864"));
  error = fileError([](const std::string &path) {
    std::ofstream(path) << "x";
    std::filesystem::resize_file(path, uintmax_t(1) << 40);
  });
  EXPECT_EQ(error.family, ErrorFamily::Usage) << error.str();
  error = fileError(
      [](const std::string &path) { std::filesystem::create_directory(path); });
  EXPECT_EQ(error.family, ErrorFamily::Usage) << error.str();
  error = fileError([](const std::string &) {});
  EXPECT_EQ(error.family, ErrorFamily::Usage) << error.str();
  EXPECT_THAT(error.message, HasSubstr("no such file"));
  error =
      fileError([](const std::string &path) { std::ofstream(path).close(); });
  EXPECT_EQ(error.family, ErrorFamily::Diagnostic) << error.str();
}

TEST(HostileText, LongText) {
  // As long as a file may be, in one line, one comment and one string.
  constexpr size_t length = size_t(48) << 20;
  EXPECT_THAT(diagnosed(std::string(length, ' ')).message,
              HasSubstr("carries no version"));
  diagnosed("//" + std::string(length, 'x'));
  diagnosed("\"" + std::string(length, 'x'));
  diagnosed(std::string(length, 'x'));
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

TEST(HostileText, NulBytes) {
  std::string text = inKernel("%a = arith.addf %s, %s : f32");
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = '\0';
    (void)Program::fromText(changed, "t.mlir");
    changed = text;
    changed.insert(at, 1, '\0');
    (void)Program::fromText(changed, "t.mlir");
  }
  diagnosed(std::string(1000, '\0'));
  // What follows a zero byte is not silently dropped.
  std::string hidden = inKernel("");
  hidden += '\0';
  hidden += "garbage that is not Tile IR";
  EXPECT_FALSE(Program::fromText(hidden, "t.mlir").ok());
}

TEST(HostileText, InvalidUtf8) {
  for (const char *bytes : {"\x80", "\xc3\x28", "\xff\xff\xff", "\xed\xa0\x80",
                            "\xf8\x88\x80\x80\x80", "\xc0\xaf"}) {
    diagnosed(inKernel(bytes));
    diagnosed(inModule(std::string("tile.kernel @") + bytes + "() {}"));
    // In a string they are bytes like any others.
    (void)Program::fromText(
        inModule(std::string("tile.kernel @k() attributes {a = \"") + bytes +
                 "\"} {}"),
        "t.mlir");
    (void)Program::fromText(
        inKernel(std::string("%n = arith.constant 1 : index\ntile.dim \"") +
                 bytes + "\" = %n"),
        "t.mlir");
  }
}

//===----------------------------------------------------------------------===//
// Mutations of valid programs
//===----------------------------------------------------------------------===//

const char *const valid = R"(module attributes {tile.version = 1 : i64} {
tile.kernel @k(%x: !tile.view<f32, 2, read>, %ids: !tile.view<i64, 1, read>,
               %y: !tile.view<bf16, 2, write>, %eps: f32 = 1.0e-6) tier(strict) {
  %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
  %n = tile.extent %x, 1 : !tile.view<f32, 2, read>
  tile.dim "row" = %r
  tile.dim "col" = %n
  tile.parallel (%i) in ["row"] {
    %o = arith.constant 3 : index
    %z = arith.constant 0.0 : f32
    %id = tile.load %ids["col"] : !tile.view<i64, 1, read> -> tensor<?xi64, ["col"]>
    %v = tile.load %x[%i, "col" * 2 + %o] fill(%z : f32) : !tile.view<f32, 2, read> -> tensor<?xf32, ["col"]>
    %g = tile.gather %v[%id] along "col" : tensor<?xf32, ["col"]>, tensor<?xi64, ["col"]> -> tensor<?xf32, ["col"]>
    %m = arith.cmpf olt, %g, %v : tensor<?xf32, ["col"]>
    %s = tile.reduce add unordered %g over ["col"] : tensor<?xf32, ["col"]> -> f32
    %t = tile.reduce custom left %g identity(%z : f32) over ["col"] : tensor<?xf32, ["col"]> -> f32 combine {
    ^bb0(%a: f32, %b: f32):
      %c = arith.subf %a, %b : f32
      tile.yield %c : f32
    }
    %w = tile.serial %k in "col" carry(%a = %s : f32) {
      %l = tile.load %x[%i, %k] : !tile.view<f32, 2, read> -> f32
      %u = math.fma %a, %l, %t : f32
      tile.yield %u : f32
    }
    %h = tile.broadcast %w : f32 -> tensor<?xf32, ["col"]>
    %d:2 = tile.sort %h, %id along "col" descending : tensor<?xf32, ["col"]>, tensor<?xi64, ["col"]> -> tensor<?xf32, ["col"]>, tensor<?xi64, ["col"]>
    tile.store %d#0, %y[%i, "col"] mask(%m : tensor<?xi1, ["col"]>) : tensor<?xf32, ["col"]>, !tile.view<bf16, 2, write>
  }
}
}
)";

class Mutations : public testing::TestWithParam<unsigned> {};

TEST_P(Mutations, NeverCrash) {
  uint64_t state = GetParam() * 0x9E3779B97F4A7C15u + 1;
  auto random = [&](size_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<size_t>(state % below);
  };
  const std::string original = valid;
  ASSERT_TRUE(Program::fromText(original, "t.mlir").ok());
  // Words of the text, for swaps that get past the lexer.
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = 0; at < original.size();) {
    size_t end = original.find_first_of(" ,()[]{}<>\n:\"", at);
    if (end == at)
      ++end;
    if (end > original.size())
      end = original.size();
    words.push_back({at, end - at});
    at = end;
  }
  int accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text = original;
    for (size_t edits = 1 + random(3); edits > 0; --edits) {
      size_t at = random(text.size());
      auto [from, length] = words[random(words.size())];
      auto [to, replaced] = words[random(words.size())];
      switch (random(7)) {
      case 0:
        text[at] = static_cast<char>(random(256));
        break;
      case 1:
        text.erase(at, 1 + random(20));
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(random(128)));
        break;
      case 3:
        text.insert(at, original.substr(random(original.size()), random(60)));
        break;
      case 4:
        text.resize(at + 1);
        break;
      default:
        if (to + replaced <= text.size())
          text.replace(to, replaced, original.substr(from, length));
      }
    }
    Result<Program> program = Program::fromText(text, "t.mlir");
    if (program) {
      ++accepted;
      // What is accepted prints, and reads back.
      EXPECT_TRUE(Program::fromText(program->text(), "t.mlir").ok()) << text;
      continue;
    }
    EXPECT_NE(program.error().family, ErrorFamily::Internal)
        << program.error().str() << "\n"
        << text;
    EXPECT_FALSE(program.error().message.empty());
  }
  EXPECT_LT(accepted, 900);
}
INSTANTIATE_TEST_SUITE_P(Seeds, Mutations, testing::Range(1u, 5u));

/// Memory stays in proportion: all of the above ran in this process.
TEST(HostileText, ZPeakMemory) {
  rusage usage;
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 6 << 20) << "KiB";
}

} // namespace
