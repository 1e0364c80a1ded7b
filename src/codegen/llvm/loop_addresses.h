//===- loop_addresses.h - Addresses in loops that carry sums ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CODEGEN_LLVM_LOOP_ADDRESSES_H
#define TESSERA_CODEGEN_LLVM_LOOP_ADDRESSES_H

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace tessera {

/// Inner loops that carry several vectors, as those of a contraction's tile do,
/// read many rows that lie one stride apart. With an address for each row these
/// need more registers than there are, which are then read from the stack in
/// every iteration. Here all accesses that move together share one pointer that
/// moves; what lies between it and a row is an odd multiple of the stride in a
/// register, doubled by the access as often as the target's addresses can.
/// Stands after the passes that move code out of loops, which would take the
/// doubling out, too.
void shareLoopPointers(llvm::Function &function,
                       llvm::FunctionAnalysisManager &analyses);

} // namespace tessera

#endif // TESSERA_CODEGEN_LLVM_LOOP_ADDRESSES_H
