//===- sort_network.h - Sorting records in memory ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bitonic merge sort of records that are all different: one i64 that holds a
// key and a position, or a key and a position in an i64 each. Vectors of
// records are compared with others lane by lane, so no comparison decides a
// branch. All exchanges put the smaller record at the lower place:
//
//   blocks of a few vectors are sorted in registers;
//   for (half = block; half < n; half *= 2)
//     in every run of 2 half: exchange i with 2 half - 1 - i
//     for (j = half / 2; j >= block; j /= 2)
//       in every run of 2 j: exchange i with i + j
//     blocks are merged in registers
//
// What would lie beyond the end counts as larger than all, so it never moves
// and is left out. Chunks that fit a near cache are sorted first, and each goes
// through all exchanges within it before the next.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_SORT_NETWORK_H
#define TESSERA_REALIZE_CPU_SORT_NETWORK_H

#include "realize/cpu/vector_emitter.h"

#include <optional>

namespace tessera {

/// A vector of records: one value, or keys and positions.
using Records = llvm::SmallVector<mlir::Value, 2>;

/// The vectors of a block, for at most `length` records (std::nullopt: of any
/// number) of so many i64.
int64_t sortBlockVectors(const Target &target, int64_t components,
                         std::optional<int64_t> length);

class SortNetwork {
public:
  /// `arrays` are pointers to i64, one for each component of a record.
  /// About `expected` records are sorted, for what the loops say of themselves.
  SortNetwork(VectorEmitter &emit, llvm::ArrayRef<mlir::Value> arrays,
              int64_t blockVectors, int64_t expected)
      : emit(emit), b(emit.b), arrays(arrays), vectors(blockVectors),
        lanes(emit.target.vectorBits / 64), expected(double(expected)) {}

  /// The records of a block.
  int64_t block() const { return vectors * lanes; }

  /// Sorts the records [0, count); `count` is a multiple of block().
  void sort(mlir::Value count);

  /// Whether `a` comes before `b`, lane by lane.
  mlir::Value before(const Records &a, const Records &b);

  /// `count` records from a place on.
  Records load(mlir::Value at, int64_t count);
  void store(const Records &records, mlir::Value at);
  /// Stores the records under the mask from a place on, without gaps; the place
  /// behind them.
  mlir::Value append(const Records &records, mlir::Value at, mlir::Value mask);

private:
  using Block = llvm::SmallVector<Records, 8>;

  std::pair<Records, Records> exchange(const Records &a, const Records &b);
  Records reversed(const Records &records);
  void exchangeLanes(Block &block, int64_t mask);
  void exchangeVectors(Block &block, int64_t mask, bool isMirrored);
  void mergeBlock(Block &block, int64_t distance);
  void sortBlock(Block &block);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value smaller(mlir::Value x, mlir::Value y);
  mlir::Value halved(mlir::Value x);
  double expectedBlocks() const;
  void forEachBlock(mlir::Value begin, mlir::Value end,
                    llvm::function_ref<void(Block &block)> body);
  void exchangeMirrored(mlir::Value half, mlir::Value begin, mlir::Value end);
  void exchangeApart(mlir::Value distance, int64_t least, mlir::Value begin,
                     mlir::Value end);
  void mergeFrom(mlir::Value distance, mlir::Value begin, mlir::Value end);
  void sortRange(mlir::Value begin, mlir::Value end);
  void exchangePlaces(mlir::Value low, mlir::Value high,
                      llvm::function_ref<mlir::Value(mlir::Value)> partner,
                      bool isMirrored);

  VectorEmitter &emit;
  mlir::OpBuilder &b;
  llvm::SmallVector<mlir::Value, 2> arrays;
  int64_t vectors, lanes;
  /// Records in the range that is being sorted.
  double expected;
};

/// A loop over [low, high) by `step`, of about so many iterations.
void emitLoop(VectorEmitter &emit, mlir::Value low, mlir::Value high,
              mlir::Value step, double trips,
              llvm::function_ref<void(mlir::Value)> body);

/// while (test(state)) state = body(state); the last state, after about so many
/// iterations.
llvm::SmallVector<mlir::Value> emitWhile(
    VectorEmitter &emit, mlir::ValueRange initial, double trips,
    llvm::function_ref<mlir::Value(mlir::ValueRange)> test,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_SORT_NETWORK_H
