//===- squares.cpp - Values with lanes along either of two levels ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose plan transposes runs over squares: `tileRows` coordinates of the
// tiled level by the lanes of one vector along the vector level. Such a square
// has two sides. On the plain one, a copy is one row, with lanes along the
// vector level; on the turned one, a copy is one coordinate of the vector
// level, with lanes along the tiled one. All that is known of "the current
// coordinates" is the same for both: turn() exchanges what differs.
//
// A value that varies along both levels belongs to one side: a load and a
// buffer to that on which its elements are adjacent in memory, what is computed
// to that of its operands, and to the plain one where these differ; a computed
// mask to either. It is evaluated there, for the whole square, and transposed
// if the other side asks for it. So loads and stores of either orientation are
// vectors, and what lies between two of the same orientation is never moved.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/transpose.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <utility>

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// The side of a value
//===----------------------------------------------------------------------===//

/// Whether the lanes of a value lie along the tiled level by nature;
/// std::nullopt if it does not vary along both levels, or can be had with lanes
/// along either.
std::optional<bool> NestEmitter::sideOf(Value tile) {
  StringAttr rowDim = levels[tileLevel].dim;
  SmallVector<StringAttr> dims = tile::getDims(tile.getType());
  if (!llvm::is_contained(dims, vectorDim) || !llvm::is_contained(dims, rowDim))
    return std::nullopt;
  if (!evaluatedHere.contains(tile))
    if (const TileBuffer *buffer = r.findBuffer(tile))
      return buffer->innermost() == rowDim;
  Operation *op = tile.getDefiningOp();
  if (!op || !isDeferred(op) || isa<tile::GatherOp, tile::ReshapeOp>(op))
    return false;
  // Lanes of masks are hard to move.
  if (!isa<tile::LoadOp>(op) && tile::getElement(tile.getType()).isInteger(1))
    return std::nullopt;
  if (isa<tile::LoadOp>(op))
    return adjacentDim(*getAccess(op), r.analysis.strides) == rowDim;
  std::optional<bool> side;
  for (Value operand : op->getOperands()) {
    auto found = turnedByNature.find(operand);
    if (found == turnedByNature.end())
      continue;
    if (side && *side != found->second)
      return false;
    side = found->second;
  }
  return side;
}

/// Decides it for all that the nest evaluates, operands first.
void NestEmitter::orientValues() {
  llvm::SetVector<Value> cone;
  for (const Root &root : phase->roots)
    for (Value value : r.analysis.phases.cone(root))
      cone.insert(value);
  SmallVector<Value> values = cone.takeVector();
  auto place = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op ? r.analysis.numbers.lookup(op) : -1;
  };
  llvm::sort(values, [&](Value x, Value y) { return place(x) < place(y); });
  for (Value value : values)
    if (std::optional<bool> side = sideOf(value))
      turnedByNature[value] = *side;
}

bool NestEmitter::isOnOtherSide(Value tile) const {
  // Single elements have no sides.
  if (lanes == 1)
    return false;
  auto found = turnedByNature.find(tile);
  return found != turnedByNature.end() && found->second != isTurned;
}

/// Whether what a root writes is adjacent in memory along the tiled level.
bool NestEmitter::storesAcross(const Root &root) {
  if (root.kind == Root::Kind::Store)
    return adjacentDim(*getAccess(root.op), r.analysis.strides) ==
           levels[tileLevel].dim;
  const TileBuffer *buffer = r.findBuffer(root.value);
  return buffer && buffer->innermost() == levels[tileLevel].dim;
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

void NestEmitter::turn() {
  std::swap(vectorDim, other.vectorDim);
  std::swap(vectorLevel, other.vectorLevel);
  std::swap(tileLevel, other.tileLevel);
  std::swap(lanes, other.lanes);
  std::swap(vectors, other.vectors);
  std::swap(rows, other.rows);
  std::swap(mask, other.mask);
  std::swap(isWhole, other.isWhole);
  isTurned = !isTurned;
}

/// The lanes that a mask of the first ones leaves; null: all.
static int64_t liveLanes(Value mask, int64_t lanes) {
  DenseElementsAttr bits;
  if (!mask || !matchPattern(mask, m_Constant(&bits)))
    return lanes;
  return llvm::count(bits.getValues<bool>(), true);
}

/// The copies of the current side that the square is made of.
SmallVector<int64_t> NestEmitter::squareCopies() const {
  SmallVector<int64_t> list;
  if (isTurned) {
    const int64_t live = liveLanes(other.mask, other.lanes);
    for (int64_t lane = 0; lane < live; ++lane)
      list.push_back(square * other.lanes + lane);
  } else {
    for (int64_t row = 0; row < rows; ++row)
      list.push_back(row * vectors + square);
  }
  return list;
}

/// Evaluates the tile on the other side, and keeps the whole square for this
/// one.
void NestEmitter::transposeFromOtherSide(Value tile) {
  const int64_t here = copy;
  const int level = levelOf(tile);
  SmallVector<Value> found;
  // Nothing is stored while values are evaluated.
  bool isNew = true;
  turn();
  for (int64_t number : squareCopies()) {
    copy = number;
    isNew &= !cached(tile, level);
    found.push_back(emit.splat(value(tile), lanes));
  }
  turn();
  // Rows and lanes beyond the end are not there.
  while (int64_t(found.size()) < lanes)
    found.push_back(emit.zero(found[0].getType()));
  if (isNew)
    for (Value row : found)
      if (auto load = row.getDefiningOp<LLVM::LoadOp>())
        loadedAgain.insert(load);
  SmallVector<Value> turned = transposeVectors(emit, found, isNew);
  for (auto [number, vector] : llvm::zip(squareCopies(), turned)) {
    copy = number;
    levels[level].cache[slotOf(tile)][tile] = vector;
  }
  copy = here;
}

/// Prefetches the lines that the square is stored to, the last of a vector that
/// crosses one included. Stores leave the core one after another: each line
/// that is not near would hold up all that follow.
void NestEmitter::askForLines() {
  for (const Root &root : phase->roots) {
    if (root.kind != Root::Kind::Store)
      continue;
    const Access access = *getAccess(root.op);
    const Type storage = access.viewType().getElementType();
    const bool isAcross = storesAcross(root);
    if (isAcross)
      turn();
    for (int64_t number : squareCopies()) {
      copy = number;
      Value first = storedAddress(access);
      if (!first)
        break;
      emit.prefetch(first, /*isStored=*/true);
      emit.prefetch(emit.offsetPointer(first, storage, emit.index(lanes - 1)),
                    /*isStored=*/true);
    }
    if (isAcross)
      turn();
  }
}

void NestEmitter::emitSquares() {
  other = {.vectorDim = levels[tileLevel].dim,
           .vectorLevel = tileLevel,
           .tileLevel = vectorLevel,
           .lanes = plan.tileRows,
           .vectors = 1,
           .rows = vectors * lanes,
           .mask = rowMask,
           .isWhole = false};
  for (square = 0; square < vectors; ++square) {
    if (plan.asksForLines && !r.checksOnly)
      askForLines();
    // Root by root: what conflicts does so at the same coordinates.
    for (const Root &root : phase->roots) {
      const bool isAcross = storesAcross(root);
      if (isAcross)
        turn();
      for (int64_t number : squareCopies()) {
        copy = number;
        emitRoot(root);
      }
      if (isAcross)
        turn();
    }
    if (prefetches)
      for (int64_t number : squareCopies()) {
        copy = number;
        for (Operation *store : prefetches->stores)
          prefetchStored(*getAccess(store));
      }
  }
  copy = 0;
}

} // namespace tessera
