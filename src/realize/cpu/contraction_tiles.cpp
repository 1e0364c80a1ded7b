//===- contraction_tiles.cpp - Contractions in tile registers -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The nest of an atom whose operands are tile registers: 16 rows of 16 words. A
// block of the result is two tiles by two, which stay in registers along the
// reduced dimension; two tiles of rows and two of vectors are multiplied with
// each other. Results go to memory, where what follows finds them.
//
// The shapes of the tiles are a state of the processor: loaded before the first
// block, and again where a block at the end of a dimension is smaller, released
// after the last one. Loading it makes all tiles zero.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"

#include "llvm/Support/MathExtras.h"

#include <array>

using namespace mlir;

namespace tessera {

namespace {

/// Tiles of a block in either direction, and what a tile has of rows and words.
constexpr int64_t perBlock = 2, tileRows = 16, tileWords = 16;
/// The numbers of the registers: results by row and column, rows, vectors.
constexpr int64_t firstOfRows = 4, firstOfVectors = 6;

/// Rows, or columns, of tile `number` of a block that has `count` of them.
int64_t partOf(int64_t count, int64_t number) {
  return std::clamp<int64_t>(count - number * tileRows, 0, tileRows);
}

} // namespace

void NestEmitter::tileIntrinsic(StringRef name, ValueRange operands) {
  b.create<LLVM::CallIntrinsicOp>(
      emit.loc, TypeRange{}, b.getStringAttr("llvm.x86." + name), operands);
}

Value NestEmitter::tileNumber(int64_t number) {
  return emit.integer(b.getI8Type(), number);
}

/// The configuration for blocks of so many rows and columns.
void NestEmitter::loadTileShapes(int64_t rowCount, int64_t columnCount) {
  std::array<int8_t, 64> bytes{};
  bytes[0] = 1;
  auto set = [&](int64_t number, int64_t rows, int64_t words) {
    // A tile that no block uses is as small as can be.
    bytes[16 + 2 * number] = int8_t(4 * std::max<int64_t>(words, 1));
    bytes[48 + number] = int8_t(std::max<int64_t>(rows, 1));
  };
  for (int64_t i = 0; i < perBlock; ++i) {
    for (int64_t j = 0; j < perBlock; ++j)
      set(i * perBlock + j, partOf(rowCount, i), partOf(columnCount, j));
    set(firstOfRows + i, partOf(rowCount, i), tileWords);
    set(firstOfVectors + i, tileRows, partOf(columnCount, i));
  }
  auto type = VectorType::get({64}, b.getI8Type());
  Value shapes = b.create<arith::ConstantOp>(
      emit.loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  emit.store(shapes, tileShapes, b.getI8Type(), Value());
  tileIntrinsic("ldtilecfg", tileShapes);
}

/// Where the rows' elements begin at the current coordinates and the first of
/// the reduced ones, and the bytes from one row to the next.
std::pair<Value, Value> NestEmitter::tileRowsAt(Value operand) {
  const StringAttr rowDim = levels[tileLevel].dim;
  const int64_t bytes = atom->elementBits() / 8;
  Value outer = std::exchange(levels[groupLevel].coordinate, emit.index(0));
  std::pair<Value, Value> result;
  if (const WordBuffer *buffer = r.findWords(operand)) {
    const TileBuffer &memory = buffer->memory;
    result = {
        wordAddress(memory),
        emit.index(bytes * memory.strides[tile::indexOf(memory.dims, rowDim)])};
  } else {
    Access access = *getAccess(loadOf(atoms->rows.source, r.analysis.phases));
    Value apart = emit.index(0);
    for (unsigned axis = 0; axis < access.axes.size(); ++axis)
      if (access.axes[axis].dim == rowDim)
        apart = emit.add(apart,
                         emit.mul(r.stride(access, axis),
                                  emit.index(bytes * access.axes[axis].step)));
    result = {address(access).pointer, apart};
  }
  levels[groupLevel].coordinate = outer;
  return {result.first, emit.toI64(result.second)};
}

/// One block at the current coordinates.
void NestEmitter::emitTileBlock(int64_t rowCount, int64_t columnCount) {
  auto contract = cast<tile::ContractOp>(phase->roots[0].op);
  Type i8 = b.getI8Type();
  if (changesTileShapes)
    loadTileShapes(rowCount, columnCount);
  auto forEach = [&](auto visit) {
    for (int64_t i = 0; partOf(rowCount, i) > 0; ++i)
      for (int64_t j = 0; partOf(columnCount, j) > 0; ++j)
        visit(i, j);
  };
  auto at = [&](Value pointer, Value bytes) {
    return emit.offsetPointer(pointer, i8, bytes);
  };

  // The results: rows and columns of four bytes.
  const TileBuffer &result = *r.findBuffer(contract.getResult());
  Value results = wordAddress(result);
  Value resultRow = emit.integer(
      b.getI64Type(),
      4 * result.strides[tile::indexOf(result.dims, levels[tileLevel].dim)]);
  auto resultAt = [&](int64_t i, int64_t j) {
    Value rows =
        emit.mul(resultRow, emit.integer(b.getI64Type(), i * tileRows));
    return at(results,
              emit.add(rows, emit.integer(b.getI64Type(), j * 4 * tileWords)));
  };
  forEach([&](int64_t i, int64_t j) {
    Value number = tileNumber(i * perBlock + j);
    if (contract.getAcc())
      tileIntrinsic("tileloadd64", {number, resultAt(i, j), resultRow});
    else
      tileIntrinsic("tilezero", number);
  });

  auto [rowsBegin, rowsApart] =
      tileRowsAt(contract->getOperand(1 - plan.vectorOperand));
  const TileBuffer &vectors =
      r.findWords(contract->getOperand(plan.vectorOperand))->memory;
  Value outer = std::exchange(levels[groupLevel].coordinate, emit.index(0));
  Value vectorsBegin = wordAddress(vectors);
  levels[groupLevel].coordinate = outer;
  const int64_t elementBytes = atom->elementBits() / 8;
  const int64_t step = atom->wholeElements();
  const int64_t vectorBytes =
      elementBytes *
      vectors.strides[tile::indexOf(vectors.dims, levels[groupLevel].dim)];
  Value vectorsApart = emit.integer(b.getI64Type(), vectorBytes * atom->group);
  const int64_t extent =
      llvm::alignTo(*r.constantExtent(levels[groupLevel].dim), step);
  auto loop = b.create<scf::ForOp>(emit.loc, emit.index(0), emit.index(extent),
                                   emit.index(step));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    Value k = loop.getInductionVar();
    Value rows = at(rowsBegin, emit.mul(k, emit.index(elementBytes)));
    Value columns = at(vectorsBegin, emit.mul(k, emit.index(vectorBytes)));
    for (int64_t i = 0; partOf(rowCount, i) > 0; ++i)
      tileIntrinsic("tileloadd64",
                    {tileNumber(firstOfRows + i),
                     at(rows, emit.mul(rowsApart, emit.integer(b.getI64Type(),
                                                               i * tileRows))),
                     rowsApart});
    for (int64_t j = 0; partOf(columnCount, j) > 0; ++j)
      tileIntrinsic("tileloadd64",
                    {tileNumber(firstOfVectors + j),
                     at(columns, emit.index(j * 4 * tileWords)), vectorsApart});
    forEach([&](int64_t i, int64_t j) {
      b.create<LLVM::CallIntrinsicOp>(
          emit.loc, TypeRange{},
          b.getStringAttr(atom->tileIntrinsic(atoms->rows.isUnsigned,
                                              atoms->vectors.isUnsigned)),
          ValueRange{tileNumber(i * perBlock + j), tileNumber(firstOfRows + i),
                     tileNumber(firstOfVectors + j)});
    });
  }
  forEach([&](int64_t i, int64_t j) {
    tileIntrinsic("tilestored64",
                  {tileNumber(i * perBlock + j), resultAt(i, j), resultRow});
  });
}

/// The blocks along the kept levels from `level` on; so many rows and columns
/// have been decided by those before.
void NestEmitter::emitTileLevels(unsigned level, int64_t rowCount,
                                 int64_t columnCount) {
  if (level == keptLevels)
    return emitTileBlock(rowCount, columnCount);
  levels[level].anchor = nullptr;
  const int64_t extent = *levels[level].extent;
  if (int(level) != tileLevel && int(level) != vectorLevel)
    return loop(level, 0, extent, 1, 1, nullptr,
                [&] { emitTileLevels(level + 1, rowCount, columnCount); });
  const int64_t most = perBlock * tileRows, rest = extent % most;
  auto inner = [&](int64_t count) {
    return [=, this] {
      if (int(level) == tileLevel)
        emitTileLevels(level + 1, count, columnCount);
      else
        emitTileLevels(level + 1, rowCount, count);
    };
  };
  loop(level, 0, extent / most, most, 1, nullptr, inner(most));
  loop(level, extent - rest, rest > 0, most, 1, nullptr, inner(rest));
}

void NestEmitter::emitTiles() {
  auto contract = cast<tile::ContractOp>(phase->roots[0].op);
  const TileBuffer result = *r.findBuffer(contract.getResult());
  const int64_t across = tile::indexOf(result.dims, vectorDim);
  if (result.strides[across] != 1 ||
      llvm::is_contained(result.strides, ShapedType::kDynamic)) {
    r.fail(contract, "unsupported.atom",
           "the results of '" + plan.atom +
               "' do not lie side by side along its vectors");
    return;
  }
  if (contract.getAcc())
    r.materializeInto(contract.getAcc(), result);
  const int64_t most = perBlock * tileRows;
  const int64_t rowExtent = *levels[tileLevel].extent,
                columnExtent = *levels[vectorLevel].extent;
  changesTileShapes = rowExtent % most != 0 || columnExtent % most != 0;
  tileShapes = r.allocateBytes(64, "shapes of tiles");
  if (!changesTileShapes)
    loadTileShapes(most, most);
  emitTileLevels(0, 0, 0);
  tileIntrinsic("tilerelease", {});
}

} // namespace tessera
