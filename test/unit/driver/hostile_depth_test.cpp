//===- hostile_depth_test.cpp - Text that nests without end ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hostile_text.h"

#include <gmock/gmock.h>

using namespace tessera;
using namespace tessera::hostile;
using testing::HasSubstr;

namespace {

TEST(HostileText, DeepBrackets) {
  constexpr size_t deep = 100000;
  for (const char *bracket : {"(", "[", "{", "<", "({", "[[", "<(", "{a = ["}) {
    std::string text = repeated(bracket, deep);
    EXPECT_THAT(diagnosed(text).message, HasSubstr("nest deeper"));
    EXPECT_THAT(diagnosed(inKernel(text)).message, HasSubstr("nest deeper"));
    EXPECT_THAT(
        diagnosed(inModule("tile.kernel @k() attributes {a = " + text)).message,
        HasSubstr("nest deeper"));
  }
}

TEST(HostileText, DeepConstructs) {
  constexpr size_t deep = 100000;
  diagnosed(inKernel(repeated("tile.if %c {\n", deep) + repeated("}\n", deep)));
  diagnosed(repeated("module {\n", deep) + repeated("}\n", deep));
  diagnosed(inModule("tile.kernel @k(%x: " + repeated("tuple<", deep) + "f32" +
                     repeated(">", deep) + ") {}"));
  diagnosed(inModule("tile.kernel @k(%x: " + repeated("(f32) -> ", deep) +
                     "f32) {}"));
  diagnosed(inModule("tile.kernel @k(%x: " + repeated("() -> (", deep) +
                     repeated(")", deep) + ") {}"));
  diagnosed(inModule("tile.kernel @k() attributes {a = " + repeated("[", deep) +
                     repeated("]", deep) + "} {}"));
  diagnosed(
      inModule("tile.kernel @k() attributes {a = " + repeated("{b = ", deep) +
               "1" + repeated("}", deep) + "} {}"));
  diagnosed(inModule("tile.kernel @k() attributes {a = affine_map<(d0) -> (" +
                     repeated("(", deep) + "d0" + repeated(")", deep) +
                     ")>} {}"));
  diagnosed(inModule("tile.kernel @k() {} loc(" + repeated("fused[", deep) +
                     "unknown" + repeated("]", deep) + ")"));
}

/// Constructs that recurse without brackets of their own, or that hide brackets
/// from a reader that takes strings, comments or arrows wrongly.
TEST(HostileText, DeepWithoutBrackets) {
  constexpr size_t deep = 100000;
  // "-" recurses in affine expressions.
  diagnosed(inModule("tile.kernel @k() attributes {a = affine_map<(d0) -> (" +
                     repeated("-", deep) + "d0)>} {}"));
  diagnosed(inModule("tile.kernel @k() attributes {a = affine_map<(d0) -> (" +
                     repeated("d0 + ", deep) + "* )>} {}"));
  diagnosed(inModule("tile.kernel @k() attributes {a = " +
                     repeated("f32 -> ", deep) + "} {}"));
  // Brackets that close what was never opened must not buy depth.
  diagnosed(repeated(")", deep) + repeated("(", deep));
  diagnosed("// " + repeated(")", deep) + "\n" + repeated("(", deep));
  diagnosed("\"" + repeated("]", deep) + "\" " + repeated("[", deep));
  diagnosed(inModule(
      repeated("tile.kernel @k() attributes {a = \"\\\"\"} {\n", deep)));
  diagnosed(repeated("->", deep) + repeated("<", deep));
  diagnosed(repeated(">", deep) + repeated("<", deep));
  // A comparison-like closer inside an attribute.
  diagnosed(inModule("tile.kernel @k() attributes {a = #tile<" +
                     repeated(">", deep) + repeated("<", deep) + "} {}"));
  // A location that calls itself.
  diagnosed("#a = loc(#a)\n" + inKernel("") + "loc(#a)");
  // Aliases of aliases: each level doubles what it stands for.
  std::string doubling = "#a0 = [1]\n";
  for (int i = 1; i < 64; ++i) {
    std::string last = "#a" + std::to_string(i - 1);
    doubling += "#a" + std::to_string(i) + " = [" + last + ", " + last + "]\n";
  }
  EXPECT_THAT(diagnosed(doubling +
                        inModule("tile.kernel @k() attributes {a = #a63} {}"))
                  .message,
              HasSubstr("stands for more than"));
  std::string doublingTypes = "!a0 = f32\n";
  for (int i = 1; i < 60; ++i) {
    std::string last = "!a" + std::to_string(i - 1);
    doublingTypes +=
        "!a" + std::to_string(i) + " = tuple<" + last + ", " + last + ">\n";
  }
  EXPECT_THAT(diagnosed(doublingTypes + inModule("tile.kernel @k(%x: !a59) {}"))
                  .message,
              HasSubstr("stands for more than"));
  // Long by the number of uses.
  std::string uses;
  for (int i = 0; i < 3000; ++i)
    uses += "tile.kernel @k" + std::to_string(i) + "() attributes {a = #a0}\n";
  EXPECT_THAT(
      diagnosed("#a0 = [" + repeated("1, ", 15000) + "1]\n" + inModule(uses))
          .message,
      HasSubstr("where its aliases are written out"));
  // Deep by aliases alone.
  for (const char *form : {" = [#b", " =\n[\n#b", "\n=#b", " = [[], {c = #b"}) {
    std::string chain = "#b0 = [1]\n";
    std::string close = std::string(form).ends_with("{c = #b") ? "}]"
                        : std::string(form).find('[') != std::string::npos ? "]"
                                                                           : "";
    for (size_t i = 1; i < 20000; ++i)
      chain += "#b" + std::to_string(i) + form + std::to_string(i - 1) + close +
               "\n";
    diagnosed(chain + inModule("tile.kernel @k() attributes {a = #b19999} {}"));
  }
  std::string types = "!b0 = f32\n";
  for (size_t i = 1; i < 20000; ++i)
    types += "!b" + std::to_string(i) + " = () ->\n !b" +
             std::to_string(i - 1) + "\n";
  diagnosed(types + inModule("tile.kernel @k(%x: !b19999) {}"));
}

TEST(HostileText, AliasesAreFine) {
  std::string text =
      "!in = !tile.view<f32, 1, read>\n"
      "!out = !tile.view<f32, 1, write>\n"
      "#note = [\"a\", [1, 2]]\n" +
      inModule("tile.kernel @k(%x: !in, %y: !out) attributes "
               "{a.n = #note, a.m = #note} {\n" +
               repeated("  %a = tile.extent %x, 0 : !in\n", 1) + "}");
  Result<Program> program = Program::fromText(text, "t.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
}

TEST(HostileText, ModerateNestingIsFine) {
  constexpr size_t levels = 100;
  Result<Program> program = Program::fromText(
      inKernel(repeated("tile.if %c {\n", levels) + repeated("}\n", levels)),
      "t.mlir");
  EXPECT_TRUE(program.ok()) << program.error().str();
}

} // namespace
