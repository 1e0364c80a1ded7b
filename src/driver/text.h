//===- text.h - Reading Tile IR text ----------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_TEXT_H
#define TESSERA_DRIVER_TEXT_H

#include "dialect/tile_dialect.h"
#include "tessera/error.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace tessera {

/// A file's contents. Fails with a Usage error for a missing, unreadable or
/// unreasonably large file.
Result<std::string> readTextFile(const std::string &path);

/// Fails with a Diagnostic error where the parser or the printer would recurse
/// too deeply or take too long for the text: nesting, aliases that stand for
/// ever longer text, numbers of very many digits, affine maps.
Result<void> checkTextLimits(const std::string &text,
                             const std::string &fileName);

/// Parses and verifies; the text must carry a version this build reads. Every
/// problem is a Diagnostic error at its position.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
parseTileText(const std::string &text, const std::string &fileName,
              mlir::MLIRContext &context);

/// The kernel called `name`, or the only one when `name` is empty.
Result<tile::KernelOp> findKernel(mlir::ModuleOp module,
                                  const std::string &fileName,
                                  const std::string &name);

} // namespace tessera

#endif // TESSERA_DRIVER_TEXT_H
