//===- transpose.h - Transposing vectors in registers -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_TRANSPOSE_H
#define TESSERA_REALIZE_CPU_TRANSPOSE_H

#include "realize/cpu/vector_emitter.h"

namespace tessera {

/// From n vectors of m lanes, m vectors of n lanes: lane i of vector j is lane
/// j of rows[i]. Both are powers of two from 2 on. `areLoadedAnew` tells that
/// rows which are loads may as well be loaded here, in other pieces.
llvm::SmallVector<mlir::Value>
transposeVectors(VectorEmitter &emit, llvm::ArrayRef<mlir::Value> rows,
                 bool areLoadedAnew);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_TRANSPOSE_H
