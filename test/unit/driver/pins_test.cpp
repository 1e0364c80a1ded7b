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
  fails(tail, "found 'wrap', expected 'mask', 'peel' or 'overlap'");
  Schedule sizes;
  sizes.tileSizes = {{"col", 64}};
  fails(sizes, "'tile_sizes' (tileSizes in C++)");
  Schedule threads;
  threads.threads = 3;
  fails(threads, "does not decide it");
}

} // namespace
