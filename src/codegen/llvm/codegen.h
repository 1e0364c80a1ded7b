//===- codegen.h - From realized loops to machine code ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers a realized module (scf, arith, math, llvm) to an object file, and
// loads object files into the process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_LLVM_CODEGEN_H
#define TESSERA_CODEGEN_LLVM_CODEGEN_H

#include "target/target.h"
#include "tessera/error.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Receives the text of a stage, if it is wanted.
using StageText = std::function<void(const char *stage, std::string text)>;

struct CodegenOptions {
  /// Position-independent code, for objects that are linked into programs.
  bool positionIndependent = true;
  /// There is very much code, or it has chains of thousands of dependent
  /// operations: what takes most of the time, or time in the square of a
  /// block's length, is left out, and the code is slower.
  bool isLong = false;
  /// Called with "llvm" (optimized IR) and "asm" when set.
  StageText stageText;
};

struct CodegenResult {
  /// An ELF object.
  std::string object;
  /// Seconds spent: lowering to LLVM IR, optimizing, emitting.
  double lowerSeconds = 0, optimizeSeconds = 0, emitSeconds = 0;
};

/// Consumes the realized module, whose math functions have been expanded: it is
/// lowered in place.
Result<CodegenResult> generateObject(mlir::ModuleOp realized,
                                     const Target &target,
                                     const CodegenOptions &options);

/// Machine code loaded from an object file; the code stays valid while this
/// lives.
class LoadedObject {
public:
  virtual ~LoadedObject() = default;
  /// The address of a symbol, null if there is none.
  virtual void *lookup(const std::string &symbol) = 0;
};

/// Functions outside of an object that it calls: symbol and address.
using ExternalFunctions = std::vector<std::pair<std::string, void *>>;

/// Loads an object under a name for messages. Its symbols are made known to
/// gdb, and to perf when TESSERA_PERF asks for it.
Result<std::shared_ptr<LoadedObject>>
loadObject(const std::string &object, const std::string &name,
           const ExternalFunctions &functions = {});

} // namespace tessera

#endif // TESSERA_CODEGEN_LLVM_CODEGEN_H
