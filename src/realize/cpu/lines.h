//===- lines.h - Loops over the lines of a buffer ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_LINES_H
#define TESSERA_REALIZE_CPU_LINES_H

#include "realize/cpu/realizer.h"

namespace tessera {

/// Emits a loop for every dimension of `buffer` but `along`, and `body` inside,
/// which gets the offset, in elements, of the line's first element.
void forEachLine(Realizer &realizer, const TileBuffer &buffer,
                 mlir::StringAttr along,
                 llvm::function_ref<void(mlir::Value)> body);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_LINES_H
