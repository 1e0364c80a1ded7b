//===- heap.cpp - Memory for tiles whose extents nothing bounds -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scratch memory has a size that is known before the launch. A tile over a
// dimension whose extent is read from data, and that nothing bounds, is kept in
// memory that the stage asks of the heap: where the dimension is declared, so
// that the address is known wherever the dimension is.
//
//   if (needed > cell.bytes) { free(cell.address); cell = request(needed); }
//   extent = every request for tiles over it succeeded ? extent : 0
//
// A cell in scratch keeps each piece for the next program or iteration; the
// stage frees them before it returns. A request that fails is an error of the
// launch: with an extent of 0 the rest of the stage does nothing over the
// dimension, and the stage returns the number of the check.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/realizer.h"
#include "support/launch_errors.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace tessera {

/// The C function `name`, declared in the module that is being emitted.
static LLVM::LLVMFuncOp library(OpBuilder &b, Location loc, StringRef name,
                                Type result, ArrayRef<Type> arguments) {
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(module.getBody());
  return b.create<LLVM::LLVMFuncOp>(
      loc, name, LLVM::LLVMFunctionType::get(result, arguments));
}

/// Where a cell keeps the bytes of its piece.
static Value bytesOf(VectorEmitter &emit, Value cell) {
  return emit.offsetPointer(cell, emit.b.getI64Type(), emit.index(1));
}

void Realizer::declareExtent(tile::DimOp dim) {
  Value size = scalar(dim.getExtent());
  if (checksOnly && !constantIndex(dim.getExtent()))
    emitCheck(emit.compare(arith::CmpIPredicate::slt, size, emit.index(0)),
              launchError(dim, launcherror::negativeDimension(dim.getName(),
                                                              std::nullopt)));
  if (!analysis.dims.extentBound(dim.getNameAttr())) {
    auto use = b.create<arith::SelectOp>(emit.loc, emit.boolean(1, true), size,
                                         emit.index(0));
    unbounded[dim.getName()] = {use, int64_t(unbounded.size())};
    size = use;
  }
  extents[dim.getName()] = size;
}

void Realizer::allocateOnHeap(TileBuffer &buffer, StringRef what, Operation *op,
                              int64_t copies) {
  buffer.pointer = safePointer();
  // The dimension that is declared last: the others are known there.
  UnboundedDim *last = nullptr;
  StringRef name;
  int64_t fixedElements = 1;
  for (StringAttr dim : buffer.dims) {
    if (std::optional<int64_t> bound = analysis.dims.extentBound(dim)) {
      if (__builtin_mul_overflow(fixedElements, std::max<int64_t>(*bound, 1),
                                 &fixedElements))
        fixedElements = largestTile + 1;
      continue;
    }
    auto it = unbounded.find(dim.getValue());
    if (it == unbounded.end())
      return fail(op, "internal.extent",
                  "the extent of '" + dim.getValue() + "' is not available");
    if (!last || it->second.number > last->number) {
      last = &it->second;
      name = dim.getValue();
    }
  }
  int64_t fixedBytes = 0, fixedTotal = 0;
  if (__builtin_mul_overflow(fixedElements, storageBytes(buffer.element),
                             &fixedBytes) ||
      __builtin_mul_overflow(fixedBytes, copies, &fixedTotal) ||
      fixedTotal > largestTile)
    return fail(op, "unsupported.scratch",
                "a tile over '" + name +
                    "' does not fit the memory of one program (8 GiB); split "
                    "its other dimensions into blocks");

  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  Value cell = allocateBytes(16, "heap");
  // What is read of an empty tile, and of one there is no memory for.
  Value spare = allocateBytes(fixedBytes + (copies - 1) * 128, what);
  atEntry([&] {
    if (heapCells.empty())
      b.create<LLVM::StoreOp>(emit.loc, emit.integer(b.getI32Type(), 0),
                              checkPointer());
    b.create<LLVM::StoreOp>(emit.loc, b.create<LLVM::ZeroOp>(emit.loc, ptr),
                            cell);
    b.create<LLVM::StoreOp>(emit.loc, emit.integer(i64, 0),
                            bytesOf(emit, cell));
    return cell;
  });
  heapCells.push_back(cell);

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(last->use);
  auto extentBefore = [&](StringAttr dim) {
    std::optional<int64_t> bound = analysis.dims.extentBound(dim);
    Value value = bound                    ? emit.index(*bound)
                  : dim.getValue() == name ? last->use.getTrueValue()
                                           : extent(dim);
    return b.createOrFold<arith::MaxSIOp>(emit.loc, emit.toI64(value),
                                          emit.integer(i64, 1));
  };
  Value fits = emit.boolean(1, true), elements = emit.integer(i64, 1);
  Value limit = emit.integer(i64, largestTile);
  for (StringAttr dim : buffer.dims) {
    Value factor = extentBefore(dim);
    Value most = b.create<arith::DivUIOp>(emit.loc, limit, elements);
    Value inRange = emit.compare(arith::CmpIPredicate::ule, factor, most);
    fits = emit.logicalAnd(fits, inRange);
    elements =
        emit.mul(elements, emit.select(inRange, factor, emit.integer(i64, 1)));
  }
  buffer.dynamicBytes =
      emit.mul(elements, emit.integer(i64, storageBytes(buffer.element)));
  Value needed = emit.mul(buffer.spacing(emit), emit.integer(i64, copies));
  fits = emit.logicalAnd(
      fits, emit.compare(arith::CmpIPredicate::ule, needed, limit));

  Value has = b.create<LLVM::LoadOp>(emit.loc, i64, bytesOf(emit, cell));
  Value grows = emit.logicalAnd(
      fits, emit.compare(arith::CmpIPredicate::ugt, needed, has));
  auto ifOp = b.create<scf::IfOp>(emit.loc, grows, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
    Value old = b.create<LLVM::LoadOp>(emit.loc, ptr, cell);
    Type none = LLVM::LLVMVoidType::get(b.getContext());
    b.create<LLVM::CallOp>(emit.loc, library(b, emit.loc, "free", none, {ptr}),
                           ValueRange{old});
    Value fresh =
        b.create<LLVM::CallOp>(
             emit.loc, library(b, emit.loc, "aligned_alloc", ptr, {i64, i64}),
             ValueRange{emit.integer(i64, 64), needed})
            .getResult();
    Value failed =
        b.create<LLVM::ICmpOp>(emit.loc, LLVM::ICmpPredicate::eq, fresh,
                               b.create<LLVM::ZeroOp>(emit.loc, ptr));
    b.create<LLVM::StoreOp>(emit.loc, fresh, cell);
    b.create<LLVM::StoreOp>(emit.loc,
                            emit.select(failed, emit.integer(i64, 0), needed),
                            bytesOf(emit, cell));
  }
  Value holds = b.create<LLVM::LoadOp>(emit.loc, i64, bytesOf(emit, cell));
  Value isThere = emit.logicalAnd(
      fits, emit.compare(arith::CmpIPredicate::uge, holds, needed));
  buffer.pointer =
      emit.select(isThere, b.create<LLVM::LoadOp>(emit.loc, ptr, cell), spare);
  emitCheck(emit.logicalNot(isThere),
            launchError(op, {ErrorFamily::Unsupported,
                             "memory.exhausted",
                             "a tile over '" + name.str() +
                                 "', whose extent depends on data, needs more "
                                 "memory than there is or one tile may take "
                                 "(8 GiB); the outputs are incomplete; bound "
                                 "the extent by a minimum with a constant",
                             {}}));
  last->use.getConditionMutable().assign(
      emit.logicalAnd(last->use.getCondition(), isThere));

  // The layout follows the extents that the stage goes on with.
  b.setInsertionPointAfter(last->use);
  elements = emit.integer(i64, 1);
  Value isEmpty = emit.boolean(1, false);
  for (int64_t axis = int64_t(buffer.dims.size()) - 1; axis >= 0; --axis) {
    if (axis + 1 < int64_t(buffer.dims.size())) {
      buffer.strides[axis] = ShapedType::kDynamic;
      buffer.dynamicStrides[axis] = b.createOrFold<arith::IndexCastOp>(
          emit.loc, b.getIndexType(), elements);
    }
    StringAttr dim = buffer.dims[axis];
    std::optional<int64_t> bound = analysis.dims.extentBound(dim);
    Value size = emit.toI64(bound ? emit.index(*bound) : extent(dim));
    isEmpty = emit.logicalOr(isEmpty, emit.compare(arith::CmpIPredicate::sle,
                                                   size, emit.integer(i64, 0)));
    elements = emit.mul(elements, b.createOrFold<arith::MaxSIOp>(
                                      emit.loc, size, emit.integer(i64, 1)));
  }
  buffer.dynamicBytes = emit.select(
      isEmpty, emit.integer(i64, 0),
      emit.mul(elements, emit.integer(i64, storageBytes(buffer.element))));
}

bool Realizer::releaseHeap() {
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  Type none = LLVM::LLVMVoidType::get(b.getContext());
  for (Value cell : heapCells)
    b.create<LLVM::CallOp>(
        emit.loc, library(b, emit.loc, "free", none, {ptr}),
        ValueRange{b.create<LLVM::LoadOp>(emit.loc, ptr, cell).getResult()});
  return !heapCells.empty();
}

} // namespace tessera
