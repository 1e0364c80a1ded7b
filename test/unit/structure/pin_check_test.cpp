//===- test/unit/structure/pin_check_test.cpp - Loops as they are pinned --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of realized loops against the pins of a schedule accepts what is
// realized for them and finds what is realized for others.
//
//===----------------------------------------------------------------------===//

#include "dialect/specialize.h"
#include "dialect/tile_dialect.h"
#include "driver/program.h"
#include "driver/text.h"
#include "realize/cpu/pin_check.h"
#include "realize/cpu/realize.h"
#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <gtest/gtest.h>

#include <memory>

using namespace mlir;

namespace tessera {
namespace {

constexpr int64_t rows = 205, cols = 1003;

/// A sum and an elementwise loop over odd extents, and where `isWhole` one over
/// both dimensions instead.
std::string textOf(bool isWhole) {
  Kernel whole =
      kernel("both", "x, y, z",
             [](View<const float, 2> x, View<float, 1> y, View<float, 2> z) {
               Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
               store(y(row), full(row, 1.0));
               store(z(row, col), load(x(row, col)) + 1);
             });
  Kernel both =
      kernel("both", "x, y, z",
             [](View<const float, 2> x, View<float, 1> y, View<float, 2> z) {
               Dim row = dim("row", x.extent(0));
               Dim col = dim("col", x.extent(1));
               for (auto i : parallel(row)) {
                 Tile value = load(x(i, col));
                 store(y(i), sum(value, col));
                 store(z(i, col), value + 1);
               }
             });
  auto program = Program::fromKernel(isWhole ? whole : both, {});
  EXPECT_TRUE(program.ok()) << program.error().str();
  return program ? program->text() : "";
}

/// What the kernel was realized as, under some pins.
struct Realized {
  Realized(const Pins &pins, Isa isa, bool isWhole = false)
      : target(getTarget(isa)) {
    tile::loadTileDialects(context);
    loadRealizationDialects(context);
    auto parsed = parseTileText(textOf(isWhole), "both.mlir", context);
    EXPECT_TRUE(parsed.ok()) << parsed.error().str();
    source = std::move(*parsed);
    tile::KernelOp kernel = *source->getOps<tile::KernelOp>().begin();
    const std::vector<std::vector<int64_t>> extents = {
        {rows, cols}, {rows}, {rows, cols}};
    auto specialized = specialize(kernel, extents);
    EXPECT_TRUE(specialized.ok()) << specialized.error().str();
    analysis = std::make_unique<KernelAnalysis>(
        kernel, AliasMode::Disjoint, extents,
        StrideFacts{{{false, true}, {true}, {false, true}}});
    PlanChoices choices;
    auto made = realizeForCpu(
        {*analysis, target, *plannedMachine(), pins, choices}, {});
    EXPECT_TRUE(made.ok()) << made.error().str();
    realized = std::move(*made);
  }

  /// The message of the check against other pins; empty if they are met.
  std::string against(const Pins &pins) const {
    Result<void> checked = checkPins(realized.module.get(), realized.plan, pins,
                                     *analysis, target);
    if (checked)
      return "";
    EXPECT_EQ(checked.error().family, ErrorFamily::Internal);
    EXPECT_EQ(checked.error().code, "realize.pin");
    return checked.error().message;
  }

  const Target &target;
  MLIRContext context;
  OwningOpRef<ModuleOp> source;
  std::unique_ptr<KernelAnalysis> analysis;
  RealizedKernel realized;
};

Pins pinsOf(int64_t lanes, int64_t unroll, const char *tail) {
  Pins pins;
  pins.vectorAxis = "col";
  pins.lanes = lanes;
  pins.unroll = unroll;
  pins.tail = tail;
  return pins;
}

class PinCheck : public testing::TestWithParam<Isa> {};

TEST_P(PinCheck, AcceptsWhatIsPinned) {
  for (int64_t lanes : {16, 32})
    for (int64_t unroll : {1, 3, 4})
      for (const char *tail : {"mask", "scalar"}) {
        const Pins pins = pinsOf(lanes, unroll, tail);
        EXPECT_EQ(Realized(pins, GetParam()).against(pins), "");
      }
}

TEST_P(PinCheck, FindsWhatIsNot) {
  const Realized realized(pinsOf(16, 2, "scalar"), GetParam());
  auto finds = [&](const Pins &pins, const std::string &pin) {
    const std::string message = realized.against(pins);
    EXPECT_NE(message.find("schedule pin '" + pin + "'"), std::string::npos)
        << message;
    EXPECT_NE(message.find("nest "), std::string::npos) << message;
  };
  finds(pinsOf(32, 2, "scalar"), "lanes");
  finds(pinsOf(8, 2, "scalar"), "lanes");
  finds(pinsOf(16, 3, "scalar"), "unroll");
  finds(pinsOf(16, 1, "scalar"), "unroll");
  if (realized.target.hasMaskedByteAccess)
    finds(pinsOf(16, 2, "mask"), "tail");
  const Realized masked(pinsOf(16, 2, "mask"), GetParam());
  if (masked.target.hasMaskedAccess) {
    const std::string message = masked.against(pinsOf(16, 2, "scalar"));
    EXPECT_NE(message.find("schedule pin 'tail'"), std::string::npos)
        << message;
  }
}

TEST_P(PinCheck, FindsAnotherAxis) {
  Pins pins = pinsOf(16, 2, "scalar");
  const Realized realized(pins, GetParam(), /*isWhole=*/true);
  EXPECT_EQ(realized.against(pins), "");
  pins.vectorAxis = "row";
  const std::string message = realized.against(pins);
  EXPECT_NE(message.find("schedule pin 'vector_axis'"), std::string::npos)
      << message;
}

// The loop that may do elements twice does; the sum has another tail.
TEST_P(PinCheck, OverlappingTails) {
  const Pins pins = pinsOf(16, 2, "overlap");
  EXPECT_EQ(Realized(pins, GetParam()).against(pins), "");
}

// A plan whose code was changed afterwards.
TEST_P(PinCheck, FindsChangedLoops) {
  const Pins pins = pinsOf(16, 2, "scalar");
  Realized realized(pins, GetParam());
  int changed = 0;
  realized.realized.module->walk([&](scf::ForOp loop) {
    if (std::optional<int64_t> step = getConstantIntValue(loop.getStep());
        step == 32) {
      OpBuilder builder(loop);
      loop.setStep(builder.create<arith::ConstantIndexOp>(loop.getLoc(), 64));
      ++changed;
    }
  });
  ASSERT_GT(changed, 0);
  EXPECT_NE(realized.against(pins), "");
}

INSTANTIATE_TEST_SUITE_P(Structure, PinCheck,
                         testing::Values(Isa::X86_64, Isa::Avx2, Isa::Neon),
                         [](const testing::TestParamInfo<Isa> &info) {
                           std::string text(name(info.param));
                           for (char &c : text)
                             c = c == '-' ? '_' : c;
                           return text;
                         });

} // namespace
} // namespace tessera
