//===- pin_check.h - Whether loops are as a schedule pins them --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_PIN_CHECK_H
#define TESSERA_REALIZE_CPU_PIN_CHECK_H

#include "plan/plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace tessera {

/// Reads off the realized loops whether they are what the pins of the kernel's
/// schedule ask for, whatever planning and realization believe: the lanes of
/// vectors, the vectors per iteration of the main loops, the form of the tails.
/// Fails with an Internal error that names the pin and the nest.
///
/// Of nests without vectors, of extents that are shorter than a vector or a
/// group of them, and of loops without accesses to memory it says nothing.
/// An overlapping tail is looked for where its elements may be done twice.
Result<void> checkPins(mlir::ModuleOp module, const Plan &plan,
                       const Pins &pins, const KernelAnalysis &analysis,
                       const Target &target);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_PIN_CHECK_H
