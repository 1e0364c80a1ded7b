//===- combination.h - Combining elements exactly ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_COMBINATION_H
#define TESSERA_REALIZE_CPU_COMBINATION_H

#include "realize/cpu/elementwise.h"
#include "realize/cpu/nest.h"

#include "mlir/IR/IRMapping.h"

#include <functional>

namespace tessera {

/// How the exact reductions and scans combine: by name or by region.
template <typename Op> class Combination {
public:
  explicit Combination(Op op) : op(op) {}

  llvm::SmallVector<mlir::Type> types(int64_t lanes) {
    llvm::SmallVector<mlir::Type> list;
    for (mlir::Value input : op.getInputs())
      list.push_back(laneType(tile::getElement(input.getType()), lanes));
    return list;
  }

  llvm::SmallVector<mlir::Value> inputs(NestEmitter &nest) {
    llvm::SmallVector<mlir::Value> list;
    for (mlir::Value input : op.getInputs())
      list.push_back(nest.emit.splat(nest.value(input), nest.lanes));
    return list;
  }

  llvm::SmallVector<mlir::Value> empty(NestEmitter &nest, int64_t lanes) {
    llvm::SmallVector<mlir::Value> list;
    if (op.getCombiner() == tile::Combiner::Custom) {
      for (mlir::Value identity : op.getIdentities())
        list.push_back(nest.emit.splat(nest.r.scalar(identity), lanes));
      return list;
    }
    list.push_back(emitEmpty(nest.emit, op.getCombiner(),
                             tile::getElement(op.getInputs()[0].getType()),
                             lanes));
    return list;
  }

  llvm::SmallVector<mlir::Value> combine(NestEmitter &nest, mlir::ValueRange a,
                                         mlir::ValueRange b) {
    if (op.getCombiner() != tile::Combiner::Custom)
      return {emitOrderedCombine(nest.emit, op.getCombiner(), a[0], b[0])};
    mlir::Block &block = op.getRegion().front();
    mlir::IRMapping map;
    for (auto [argument, value] : llvm::zip(
             block.getArguments(),
             llvm::concat<mlir::Value>(llvm::SmallVector<mlir::Value>(a),
                                       llvm::SmallVector<mlir::Value>(b))))
      map.map(argument, value);
    for (mlir::Operation &inner : block.without_terminator()) {
      llvm::SmallVector<mlir::Value> operands;
      for (mlir::Value operand : inner.getOperands())
        operands.push_back(map.contains(operand) ? map.lookup(operand)
                                                 : nest.r.scalar(operand));
      mlir::Value result = emitElementwise(nest.emit, &inner, operands);
      if (!result) {
        nest.r.fail(&inner, "realize.combiner",
                    "op '" + inner.getName().getStringRef() +
                        "' is not supported in a combining region");
        return llvm::SmallVector<mlir::Value>(a);
      }
      map.map(inner.getResult(0), result);
    }
    llvm::SmallVector<mlir::Value> results;
    for (mlir::Value yielded : block.getTerminator()->getOperands())
      results.push_back(nest.emit.splat(
          map.contains(yielded) ? map.lookup(yielded) : nest.r.scalar(yielded),
          lanesOf(a[0])));
    return results;
  }

private:
  Op op;
};

/// tree(n) = combine(tree(h), tree(n - h)), h the largest power of two below n.
/// Complete subtrees wait on a stack in scratch memory, at most one per power
/// of two; the count of elements so far says which are there. An element is a
/// list of scalars or vectors, and of tiles, which are given by their address.
class TreeStack {
public:
  using Combine = std::function<llvm::SmallVector<mlir::Value>(
      mlir::ValueRange, mlir::ValueRange)>;

  TreeStack(Realizer &realizer, llvm::SmallVector<mlir::Type> types);

  /// For elements of tiles and scalars, at most `most` of them. `combine` must
  /// not write where its operands are.
  TreeStack(Realizer &realizer, mlir::TypeRange tileTypes, int64_t most,
            mlir::Operation *op);

  /// Adds an element to the `count` (i64) there are; returns the new count.
  mlir::Value push(mlir::Value count, llvm::SmallVector<mlir::Value> element,
                   const Combine &combine);

  /// The tree over all elements, `empty` if there is none.
  llvm::SmallVector<mlir::Value> total(mlir::Value count,
                                       llvm::SmallVector<mlir::Value> empty,
                                       const Combine &combine);

private:
  mlir::Value slot(size_t part, mlir::Value level);
  llvm::SmallVector<mlir::Value> read(mlir::Value level);
  void write(mlir::Value level, mlir::ValueRange values);
  mlir::Value hasLevel(mlir::Value count, mlir::Value level);

  Realizer &r;
  /// Pointers stand for tiles.
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<TileBuffer> memory;
  int64_t levels = 64;
};

/// A scan whose every element is a reduction of its own: the orders that no
/// running value serves. Takes time in the square of the extent.
void emitWindowScan(Realizer &realizer, tile::ScanOp op);

/// Whether a scan needs emitWindowScan.
bool isWindowScan(tile::ScanOp op);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_COMBINATION_H
