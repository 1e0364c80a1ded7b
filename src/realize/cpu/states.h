//===- states.h - The values that loops of a nest carry ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_STATES_H
#define TESSERA_REALIZE_CPU_STATES_H

#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera {

/// The states of all copies one after another, as a loop carries them, and
/// back.
inline void
flatten(const llvm::SmallVector<llvm::SmallVector<mlir::Value>, 4> &states,
        llvm::SmallVectorImpl<mlir::Value> &flat) {
  for (const llvm::SmallVector<mlir::Value> &state : states)
    llvm::append_range(flat, state);
}

inline void
unflatten(mlir::ValueRange flat,
          llvm::SmallVector<llvm::SmallVector<mlir::Value>, 4> &states) {
  for (llvm::SmallVector<mlir::Value> &state : states)
    for (mlir::Value &value : state) {
      value = flat.front();
      flat = flat.drop_front();
    }
}

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_STATES_H
