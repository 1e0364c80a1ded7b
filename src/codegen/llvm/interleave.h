//===- interleave.h - Mixing independent chains of arithmetic ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_LLVM_INTERLEAVE_H
#define TESSERA_CODEGEN_LLVM_INTERLEAVE_H

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace tessera {

/// More chains at once gain nothing.
inline constexpr unsigned mostChainsTogether = 4;
/// Registers for constants that are loaded where they are used.
inline constexpr unsigned registersForLoaded = 2;

/// The vectors of an iteration come one after another, each a chain of
/// dependent arithmetic that may be dozens of instructions long. A core that
/// looks ahead over fewer instructions than two chains have waits for the end
/// of the first. Here the instructions of chains between two writes to memory
/// take turns: as many chains at once as registers hold. LLVM's scheduler keeps
/// the order.
void interleaveChains(llvm::Function &function,
                      llvm::FunctionAnalysisManager &analyses);

} // namespace tessera

#endif // TESSERA_CODEGEN_LLVM_INTERLEAVE_H
