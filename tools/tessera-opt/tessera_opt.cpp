//===- tessera_opt.cpp - Parses, verifies and transforms Tile IR text -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module within the bounds of Tile IR text, verifies it, runs the
// passes named on the command line and prints the result. The test suite drives
// single passes with it.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_dialect.h"
#include "driver/text.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// The parser and the printer of MLIR have no bounds of their own.
static LogicalResult run(int argc, char **argv, DialectRegistry &registry) {
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "Tessera: one pass over Tile IR", registry);
  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> input =
      openInputFile(inputName, &problem);
  if (!input) {
    llvm::errs() << "tessera-opt: error: " << problem << "\n";
    return failure();
  }
  if (tessera::Result<void> status =
          tessera::checkTextLimits(input->getBuffer().str(), inputName);
      !status) {
    llvm::errs() << "tessera-opt: " << status.error().str() << "\n";
    return failure();
  }
  auto output = openOutputFile(outputName, &problem);
  if (!output) {
    llvm::errs() << "tessera-opt: error: " << problem << "\n";
    return failure();
  }
  if (failed(MlirOptMain(output->os(), std::move(input), registry,
                         MlirOptMainConfig::createFromCLOptions())))
    return failure();
  output->keep();
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registry.insert<tessera::tile::TileDialect, arith::ArithDialect,
                  math::MathDialect>();
  registerCSEPass();
  return asMainReturnCode(run(argc, argv, registry));
}
