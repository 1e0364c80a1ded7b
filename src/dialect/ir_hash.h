//===- dialect/ir_hash.h - The content of an operation ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: names what an operation says, in a process, on a machine and in a
// run like in any other. Unlike printed text it leaves out nothing, whatever a
// custom form elides, and takes little time.
//
// Names of values are no part of it, their positions are.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_IR_HASH_H
#define TESSERA_DIALECT_IR_HASH_H

#include "support/hash.h"

#include "mlir/IR/Operation.h"

namespace tessera::tile {

struct IrHash {
  /// Operations, operands, types, attributes and regions.
  support::Hash128 content;
  /// Where these come from: the author's files and lines, which messages name.
  support::Hash128 locations;
};

/// The hash of an operation and all inside. It uses no value from outside.
IrHash hashIr(mlir::Operation *op);

} // namespace tessera::tile

#endif // TESSERA_DIALECT_IR_HASH_H
