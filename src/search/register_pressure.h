//===- register_pressure.h - What finds no register -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_REGISTER_PRESSURE_H
#define TESSERA_SEARCH_REGISTER_PRESSURE_H

#include "target/target.h"

#include "mlir/IR/Block.h"

namespace tessera {

/// What one iteration of an innermost loop loads and stores because registers
/// do not hold everything.
struct RegisterPressure {
  /// Constants that are loaded where they are used: instructions of their own,
  /// but for targets that take an element from memory into all lanes.
  double constants = 0;
  /// Values that are stored, and loaded again.
  double spills = 0;
  /// Chains of the iteration that take turns.
  double together = 1;
};

/// Of loops whose arithmetic takes constants. Running results and what does not
/// change stay in registers, then chains of arithmetic as they are mixed
/// (codegen/llvm/interleave.h), then the constants that are used most.
RegisterPressure pressureOf(mlir::Block &body, const Target &target);

} // namespace tessera

#endif // TESSERA_SEARCH_REGISTER_PRESSURE_H
