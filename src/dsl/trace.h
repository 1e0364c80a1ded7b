//===- dsl/trace.h - From a kernel to Tile IR -------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler's entrance to the front end.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_TRACE_H
#define TESSERA_DSL_TRACE_H

#include "tessera/dsl/kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tessera {

/// Runs the author's function once and returns a verified module that holds one
/// tile.kernel, with the attributes
///   - on the module, `tile.version`;
///   - on the kernel, `tile.schedule` (the pins) and `tile.tunables` (value and
///     candidates by name), where there are any.
/// The Tile dialects are loaded into `context`. On failure the first diagnostic
/// is returned, with the number of further ones in its message; all of them go
/// to `diagnostics` if given. Several threads may trace at once, each with a
/// context of its own.
Result<mlir::OwningOpRef<mlir::ModuleOp>>
trace(const Kernel &kernel, mlir::MLIRContext &context,
      const TraceOptions &options, std::vector<Error> *diagnostics = nullptr,
      std::vector<TunableInfo> *tunables = nullptr);

/// The file of the author's call of kernel(), as the compiler of that code
/// spelled it: a text in the program or shared library that holds the code.
const char *sourceFile(const Kernel &kernel);

} // namespace tessera

#endif // TESSERA_DSL_TRACE_H
