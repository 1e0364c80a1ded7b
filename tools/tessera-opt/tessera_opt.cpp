//===- tessera_opt.cpp - Parses, verifies and transforms Tile IR text -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module, verifies it, runs the passes named on the command line and
// prints the result. The test suite drives single passes with it.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<tessera::tile::TileDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect>();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Tessera: one pass over Tile IR\n", registry));
}
