//===- sort.h - Stable sorting along a dimension ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_SORT_H
#define TESSERA_REALIZE_CPU_SORT_H

#include "realize/cpu/realizer.h"

namespace tessera {

/// Whether `a` comes strictly before `b` in the total order of
/// docs/semantics.md (NaN above +inf, -0 and +0 tie), or after it when
/// `descending`. Scalars or vectors.
mlir::Value emitBefore(VectorEmitter &emit, mlir::Value a, mlir::Value b,
                       bool descending, bool isUnsigned);

/// Sorts into the buffers of the op's results.
void emitSort(Realizer &realizer, tile::SortOp op);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_SORT_H
