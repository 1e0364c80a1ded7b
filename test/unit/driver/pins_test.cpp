//===- pins_test.cpp - A schedule's pins are contracts --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"
#include "tessera/dsl.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

Kernel rowSum() {
  return kernel(
      "row_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row))
          store(y(i), sum(load(x(i, col)), col));
      });
}

/// The plan in one line, or the error.
std::string planOf(const Schedule &pins) {
  Result<Program> program = Program::fromKernel(rowSum().schedule(pins), {});
  if (!program)
    return program.error().str();
  CompileRequest request;
  request.isa = hostIsa();
  request.extents = {{5, 1000}, {5}};
  Result<CompiledKernel> compiled = program->compile(request);
  if (!compiled) {
    EXPECT_EQ(compiled.error().family, ErrorFamily::Unsupported);
    EXPECT_EQ(compiled.error().code, "unsupported.pin");
    return compiled.error().message;
  }
  return compiled->planSummary;
}

TEST(Pins, AreApplied) {
  Schedule pins;
  pins.vectorAxis = "col";
  pins.lanes = 32;
  pins.unroll = 3;
  EXPECT_NE(planOf(pins).find("(col x32 x3)"), std::string::npos)
      << planOf(pins);
}

TEST(Pins, ThatCannotBeMetFail) {
  auto fails = [](const Schedule &pins, const std::string &part) {
    std::string message = planOf(pins);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  Schedule axis;
  axis.vectorAxis = "depth";
  fails(axis, "no dimension 'depth'");
  // The text's name and the author's.
  fails(axis, "'vector_axis' (vectorAxis in C++)");
  axis.vectorAxis = "row";
  fails(axis, "no loop nest vectorizes 'row'");
  fails(axis, "'vector_axis' (vectorAxis in C++)");
  Schedule lanes;
  lanes.lanes = 12;
  fails(lanes, "power of two");
  Schedule unroll;
  unroll.unroll = 99;
  fails(unroll, "expected 1 to 16");
  unroll.unroll = 2;
  unroll.partials = 4;
  fails(unroll, "must agree");
  Schedule tail;
  tail.tail = "overlap";
  // A sum would count elements twice.
  fails(tail, "no loop nest has a tail whose elements may be done twice");
  tail.tail = "wrap";
  fails(tail, "found 'wrap', expected 'mask', 'scalar' or 'overlap'");
  Schedule sizes;
  sizes.tileSizes = {{"col", 64}};
  fails(sizes, "'tile_sizes' (tileSizes in C++)");
  Schedule threads;
  threads.threads = 3;
  fails(threads, "does not decide it");
}

/// A kernel's text with these attributes.
std::string textWith(const std::string &attributes) {
  return "module attributes {tile.version = 1 : i64} {\n"
         "tile.kernel @k(%x: !tile.view<f32, 1, read>, %y: !tile.view<f32, 1, "
         "write>) attributes {" +
         attributes +
         "} {\n"
         "%n = tile.extent %x, 0 : !tile.view<f32, 1, read>\n"
         "tile.dim \"n\" = %n\n"
         "%v = tile.load %x[\"n\"] : !tile.view<f32, 1, read> -> "
         "tensor<?xf32, [\"n\"]>\n"
         "tile.store %v, %y[\"n\"] : tensor<?xf32, [\"n\"]>, "
         "!tile.view<f32, 1, write>\n"
         "}\n}\n";
}

/// The error of such text, when it is read or compiled; empty for none.
std::string refusalOf(const std::string &attributes) {
  Result<Program> program = Program::fromText(textWith(attributes), "k.mlir");
  if (!program) {
    EXPECT_EQ(program.error().family, ErrorFamily::Diagnostic);
    return program.error().message;
  }
  CompileRequest request;
  request.isa = hostIsa();
  request.extents = {{100}, {100}};
  Result<CompiledKernel> compiled = program->compile(request);
  if (compiled)
    return "";
  EXPECT_EQ(compiled.error().code, "unsupported.pin");
  return compiled.error().message;
}

// What a text pins is met or refused, never passed over.
TEST(Pins, OfTextAreReadWhole) {
  auto fails = [](const std::string &attributes, const std::string &part) {
    const std::string message = refusalOf(attributes);
    EXPECT_NE(message.find(part), std::string::npos)
        << attributes << ": '" << message << "'";
  };
  EXPECT_EQ(refusalOf("tile.schedule = {lanes = 16 : i64}"), "");
  EXPECT_EQ(refusalOf("tile.schedule = {lanes = 16 : i128, unroll = 1 : i8, "
                      "vector_axis = \"n\", tail = \"scalar\"}"),
            "");
  for (const char *schedule : {"[1]", "\"x\"", "1 : i64", "unit"})
    fails(std::string("tile.schedule = ") + schedule,
          "attribute 'tile.schedule' is ");
  fails("tile.shedule = {lanes = 16 : i64}",
        "has no attribute 'tile.shedule'; expected tile.version on a module, "
        "tile.schedule or tile.tunables on a tile.kernel");
  fails("schedule = {lanes = 16 : i64}", "has no attribute \"schedule\"");
  fails("tiles.schedule = {lanes = 16 : i64}",
        "has no attribute \"tiles.schedule\"");
  EXPECT_EQ(refusalOf("author.schedule_of_work = \"monday\""), "");
  fails("tile.version = 1 : i64", "has no attribute 'tile.version'");
  fails("tile.tunables = [1]", "expected a dictionary");
  fails("tile.tunables = {b = 3 : i64}",
        "tunable \"b\" is 3 : i64, expected {candidates");
  fails("tile.tunables = {b = {candidates = array<i64: 3>, value = \"3\"}}",
        "tunable \"b\" is ");

  fails("tile.schedule = {lane = 16 : i64}", "does not decide it");
  fails("tile.schedule = {lanes = 18446744073709551632 : i128}",
        "'lanes' cannot be honoured: found 18446744073709551632 : i128, "
        "expected an integer");
  fails("tile.schedule = {lanes = \"16\"}",
        "found \"16\", expected an integer, such as 16 : i64");
  fails("tile.schedule = {lanes = 16.0 : f32}",
        "found 1.600000e+01 : f32, expected an integer");
  fails("tile.schedule = {unroll = true}", "found true, expected an integer");
  fails("tile.schedule = {vector_axis = 1 : i64}",
        "found 1 : i64, expected a string");
  fails("tile.schedule = {tail = unit}", "expected a string");
}

} // namespace
