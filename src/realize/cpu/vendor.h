//===- vendor.h - A kernel as a call to a library ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_VENDOR_H
#define TESSERA_REALIZE_CPU_VENDOR_H

#include "plan/plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Fills the body of a stage function with the planned call, and declares the
/// function that is called in the module. Strides that the call cannot express
/// are refused before anything is written: what the body returns is the number
/// of an error in `checks`.
void emitVendorCall(mlir::ModuleOp module, mlir::func::FuncOp body,
                    const VendorCall &call, tile::KernelOp kernel,
                    const Target &target, std::vector<Error> &checks);

/// Looks at what was emitted, knowing nothing of the proof: interprets the
/// stage function for sampled strides and iterations, and compares which
/// elements the call multiplies, sums and stores with those that the kernel's
/// own subscripts name. Fails with an Internal error if they differ, if there
/// is not exactly one call, or if there is any other access of memory than
/// reading addresses and strides.
Result<void> checkVendorCall(mlir::ModuleOp module, llvm::StringRef symbol,
                             const KernelAnalysis &analysis);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_VENDOR_H
