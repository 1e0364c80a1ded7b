//===- docs/new_pass_test.cpp - The pass of docs/howto/new-pass.md --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page's code, verbatim, run through the entry that tessera-opt uses and by
// itself.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;

namespace tessera {

// snippet: header
/// Purpose: removes transposes that keep the order of the axes. Precondition: a
/// verified kernel. Postcondition: a verified kernel that computes the same and
/// has no such tile.transpose. Returns how many were removed.
int64_t removeIdleTransposes(tile::KernelOp kernel);
// end snippet

// snippet: source
int64_t removeIdleTransposes(tile::KernelOp kernel) {
  int64_t removed = 0;
  kernel.walk([&](tile::TransposeOp transpose) {
    if (transpose.getInput().getType() != transpose.getResult().getType())
      return;
    transpose.getResult().replaceAllUsesWith(transpose.getInput());
    transpose.erase();
    ++removed;
  });
  return removed;
}
// end snippet

// snippet: registration
namespace {

struct RemoveIdleTransposes
    : PassWrapper<RemoveIdleTransposes, OperationPass<tile::KernelOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RemoveIdleTransposes)

  StringRef getArgument() const override { return "remove-idle-transposes"; }
  StringRef getDescription() const override {
    return "remove transposes that keep the order of the axes";
  }
  void runOnOperation() override { removeIdleTransposes(getOperation()); }
};

} // namespace

void registerRemoveIdleTransposes() {
  PassRegistration<RemoveIdleTransposes>();
}
// end snippet

namespace {

constexpr const char *text = R"(
module attributes {tile.version = 1 : i64} {
  tile.kernel @k(%x: !tile.view<f32, 2, read>, %y: !tile.view<f32, 2, write>) {
    %r = tile.extent %x, 0 : !tile.view<f32, 2, read>
    tile.dim "row" = %r
    %c = tile.extent %x, 1 : !tile.view<f32, 2, read>
    tile.dim "col" = %c
    %v = tile.load %x["row", "col"] : !tile.view<f32, 2, read> -> tensor<?x?xf32, ["row", "col"]>
    %t = tile.transpose %v : tensor<?x?xf32, ["row", "col"]> -> tensor<?x?xf32, ["row", "col"]>
    %u = tile.transpose %t : tensor<?x?xf32, ["row", "col"]> -> tensor<?x?xf32, ["col", "row"]>
    tile.store %u, %y["col", "row"] : tensor<?x?xf32, ["col", "row"]>, !tile.view<f32, 2, write>
  }
}
)";

int countTransposes(const std::string &printed) {
  int count = 0;
  for (size_t at = printed.find("tile.transpose"); at != std::string::npos;
       at = printed.find("tile.transpose", at + 1))
    ++count;
  return count;
}

TEST(NewPass, ByItself) {
  MLIRContext context;
  tile::loadTileDialects(context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  auto step = [](const char *name, auto run) {
    EXPECT_STREQ(name, "remove-idle-transposes");
    EXPECT_EQ(run(), 1);
  };
  // snippet: step
  // No loop nest is planned around a transpose that does nothing.
  step("remove-idle-transposes", [&] { return removeIdleTransposes(kernel); });
  // end snippet
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(removeIdleTransposes(kernel), 0);
}

TEST(NewPass, ThroughTheEntryOfTesseraOpt) {
  registerRemoveIdleTransposes();
  // The command line asks for these; the entry does not work without.
  registerPassManagerCLOptions();
  DialectRegistry registry;
  registry.insert<tile::TileDialect, arith::ArithDialect, math::MathDialect>();
  MlirOptMainConfig config;
  config.setPassPipelineSetupFn([](PassManager &passes) {
    return parsePassPipeline("tile.kernel(remove-idle-transposes)", passes);
  });
  std::string printed;
  llvm::raw_string_ostream output(printed);
  ASSERT_TRUE(succeeded(
      MlirOptMain(output, llvm::MemoryBuffer::getMemBuffer(text, "k.mlir"),
                  registry, config)));
  EXPECT_EQ(countTransposes(text), 2);
  EXPECT_EQ(countTransposes(printed), 1) << printed;
}

} // namespace
} // namespace tessera
