//===- to_llvm.h - From MLIR to LLVM IR -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_LLVM_TO_LLVM_H
#define TESSERA_CODEGEN_LLVM_TO_LLVM_H

#include "tessera/error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"

#include <memory>

namespace tessera {

/// Lowers scf, arith and math to the LLVM dialect in place and translates the
/// module.
Result<std::unique_ptr<llvm::Module>> toLLVM(mlir::ModuleOp module,
                                             llvm::LLVMContext &context);

/// A copy of a module in its own context.
Result<std::unique_ptr<llvm::Module>> copyModule(const llvm::Module &module);

} // namespace tessera

#endif // TESSERA_CODEGEN_LLVM_TO_LLVM_H
