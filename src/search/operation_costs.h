//===- operation_costs.h - What one operation costs -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SEARCH_OPERATION_COSTS_H
#define TESSERA_SEARCH_OPERATION_COSTS_H

#include "target/machine.h"

#include "mlir/IR/Operation.h"

namespace tessera {

/// What one program of a stage executes. Vectors count by full registers.
struct Counts {
  double loads = 0;
  double stores = 0;
  double loadedBytes = 0;
  double storedBytes = 0;
  /// Of what is stored past the caches.
  double aroundBytes = 0;
  /// Of the lines that are prefetched to be loaded.
  double prefetchedBytes = 0;
  /// Lines that loaded vectors cross into.
  double crossings = 0;
  double maskedLoads = 0;
  double maskedStores = 0;
  /// Lanes of gathers and scatters.
  double gatheredLanes = 0;
  /// Arithmetic, comparisons, selections, shuffles and conversions of vectors.
  double operations = 0;
  /// Those of them that multiply floating numbers or integers in groups, that
  /// add, compare or convert floating numbers, and that bring lanes of two
  /// vectors together.
  double multiplies = 0;
  double additions = 0;
  double shuffles = 0;
  double divisions = 0;
  double squareRoots = 0;
  /// Instructions of any kind.
  double instructions = 0;
  /// Loops whose end a core cannot foresee, and all loops.
  double mispredictions = 0;
  double bubbles = 0;

  void add(const Counts &other, double times = 1);
};

/// Cycles in which nothing is started around a loop of few iterations: setting
/// it up, and taken branches.
inline constexpr double loopCycles = 4;

/// What operations of realized code, without regions, take on a machine.
class OperationCosts {
public:
  OperationCosts(const Target &target, const Machine &machine)
      : target(target), machine(machine), costs(machine.costs(target)),
        narrow(machine.core[0]) {}

  /// Whether the operation is part of an address, of a loop's control or of an
  /// instruction that uses its result, and takes nothing by itself.
  static bool isFree(mlir::Operation *op);

  /// Of an operation that is not free.
  Counts countsOf(mlir::Operation *op) const;
  /// Cycles from its operands to its result.
  double latencyOf(mlir::Operation *op) const;
  /// Cycles that operations keep the core busy.
  double throughput(const Counts &counts) const;

private:
  double registersOf(mlir::Type type) const;
  const CoreCosts &costsOf(mlir::Type type) const;
  bool countTiles(mlir::Operation *op, Counts &counts) const;
  void countArithmetic(mlir::Operation *op, Counts &counts) const;

  const Target &target;
  const Machine &machine;
  const CoreCosts &costs;
  /// Of the narrowest vectors.
  const CoreCosts &narrow;
};

} // namespace tessera

#endif // TESSERA_SEARCH_OPERATION_COSTS_H
