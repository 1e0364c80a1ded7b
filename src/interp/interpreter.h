//===- interp/interpreter.h - Reference interpreter -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a kernel as docs/semantics.md says, for tests, for `tessera run --target
// interp` and as the second opinion of every back end. Speed is not its aim;
// being right in every corner is.
//
// In Strict mode each operation is done in its compute type and rounded once.
// In Oracle mode every floating element is a Bounded: the real number that the
// program denotes and how far a legal execution may lie from it.
//
// When interpret() returns an error, the memory of the arguments holds what it
// held before the call.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_INTERPRETER_H
#define TESSERA_INTERP_INTERPRETER_H

#include "dialect/tile_dialect.h"
#include "interp/options.h"
#include "tessera/executable.h"

#include "llvm/ADT/ArrayRef.h"

namespace tessera::interp {

/// Runs `kernel` on `arguments`, in parameter order; trailing scalars that have
/// a default may be left out. In Oracle mode nothing is written: the results
/// are in `report`, which is required then.
///
/// Launch errors: number, rank, dtype, extents or strides of the arguments; a
/// dimension whose extent disagrees with a view indexed by it, or is negative;
/// reshapes of unequal counts; with validateIndices, an index out of range.
/// Unsupported: a limit of `options` was reached.
Result<void> interpret(tile::KernelOp kernel,
                       llvm::ArrayRef<Argument> arguments,
                       const InterpretOptions &options = {},
                       InterpretReport *report = nullptr);

} // namespace tessera::interp

namespace tessera {
using interp::interpret;
} // namespace tessera

#endif // TESSERA_INTERP_INTERPRETER_H
