//===- program_state.h - What a program holds -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PROGRAM_STATE_H
#define TESSERA_DRIVER_PROGRAM_STATE_H

#include "dialect/tile_dialect.h"
#include "driver/program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <mutex>

namespace tessera {

struct Program::State {
  State() : context(mlir::MLIRContext::Threading::DISABLED) {
    tile::loadTileDialects(context);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  tile::KernelOp kernel;
  std::string name;
  std::string fileName;
  std::vector<ProgramParameter> parameters;
  /// For a kernel that was traced: by what, and the tunables it came across.
  std::optional<Kernel> source;
  TraceOptions options;
  std::vector<TunableInfo> tunables;
  /// The context is used by one thread at a time.
  mutable std::mutex mutex;
};

} // namespace tessera

#endif // TESSERA_DRIVER_PROGRAM_STATE_H
