//===- buffers.cpp - Memory, scalars and checks of a program --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the steps of a block share: the pointers, strides, scalars and extents
// that a program is called with, its scratch memory, and the checks that it
// reports.
//
//===----------------------------------------------------------------------===//

#include "analysis/window_region.h"
#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

void Realizer::begin(Value dataArray, Value strides, Value scalarSlots,
                     Value scratchMemory) {
  data = dataArray;
  strideArray = strides;
  scalarArray = scalarSlots;
  scratch = scratchMemory;
  // A marker that entry code is inserted before; it folds away.
  entryEnd = b.create<arith::ConstantOp>(emit.loc, b.getI64IntegerAttr(0));
}

Value Realizer::viewPointer(BlockArgument view) {
  Value &pointer = viewPointers[view];
  if (!pointer)
    pointer = atEntry([&] {
      int64_t number = 0;
      for (BlockArgument other : view.getOwner()->getArguments()) {
        if (other == view)
          break;
        number += isa<tile::ViewType>(other.getType());
      }
      Type ptr = LLVM::LLVMPointerType::get(b.getContext());
      Value slot = emit.offsetPointer(data, b.getI64Type(), emit.index(number));
      return b.create<LLVM::LoadOp>(emit.loc, ptr, slot).getResult();
    });
  return pointer;
}

Value Realizer::stride(const Access &access, unsigned axis) {
  if (analysis.strides.isUnit(access, axis))
    return emit.index(1);
  Value &stride = viewStrides[{access.view.getArgNumber(), axis}];
  if (!stride)
    stride = atEntry([&] {
      int64_t number = axis;
      for (BlockArgument other : access.view.getOwner()->getArguments()) {
        if (other == access.view)
          break;
        if (auto type = dyn_cast<tile::ViewType>(other.getType()))
          number += type.getRank();
      }
      Value slot =
          emit.offsetPointer(strideArray, b.getI64Type(), emit.index(number));
      Value loaded = b.create<LLVM::LoadOp>(emit.loc, b.getI64Type(), slot);
      return b.create<arith::IndexCastOp>(emit.loc, b.getIndexType(), loaded)
          .getResult();
    });
  return stride;
}

Value Realizer::scalar(Value tileScalar) {
  auto it = scalars.find(tileScalar);
  if (it != scalars.end())
    return it->second;
  auto argument = dyn_cast<BlockArgument>(tileScalar);
  if (argument && isa<tile::KernelOp>(argument.getOwner()->getParentOp())) {
    Value loaded = atEntry([&] {
      int64_t number = 0;
      for (BlockArgument other : argument.getOwner()->getArguments()) {
        if (other == argument)
          break;
        number += !isa<tile::ViewType>(other.getType());
      }
      Value slot =
          emit.offsetPointer(scalarArray, b.getI64Type(), emit.index(number));
      return emit.load(slot, argument.getType(), 1, Value());
    });
    scalars[tileScalar] = loaded;
    return loaded;
  }
  fail(tileScalar.getDefiningOp(), "internal.scalar",
       "a scalar was used before it was computed");
  return emit.zero(tileScalar.getType());
}

Value Realizer::extent(StringAttr dim) {
  if (std::optional<int64_t> constant = constantExtent(dim))
    return emit.index(*constant);
  auto it = extents.find(dim.getValue());
  if (it != extents.end())
    return it->second;
  fail(nullptr, "internal.extent",
       "the extent of '" + dim.getValue() + "' is not available");
  return emit.index(0);
}

void Realizer::fail(Operation *op, StringRef code, const Twine &why) {
  if (failure)
    return;
  Error error;
  error.family = code.starts_with("unsupported") || code.starts_with("prepack.")
                     ? ErrorFamily::Unsupported
                     : ErrorFamily::Internal;
  error.code = code.str();
  error.message = why.str();
  if (op)
    if (auto loc = dyn_cast<FileLineColLoc>(op->getLoc()))
      error.where = {loc.getFilename().str(), loc.getLine(), loc.getColumn()};
  failure = std::move(error);
}

/// Whole vectors may be read past the end of a buffer.
static constexpr int64_t padding = 128;

Value Realizer::allocateBytes(int64_t bytes, StringRef what) {
  int64_t offset = scratchSize;
  constexpr int64_t limit = int64_t(1) << 40;
  scratchSize += (std::min(bytes, limit) + padding + 63) / 64 * 64;
  bufferSizes.push_back({what.str(), bytes});
  return atEntry([&] {
    return emit.offsetPointer(scratch, b.getI8Type(), emit.index(offset));
  });
}

StringAttr TileBuffer::innermost() const {
  size_t axis = dims.size() - 1;
  if (strides[axis] != 1)
    for (size_t other = 0; other < dims.size(); ++other)
      if (strides[other] == 1)
        axis = other;
  return dims[axis];
}

Value TileBuffer::stride(VectorEmitter &emit, int64_t axis) const {
  return ShapedType::isDynamic(strides[axis]) ? dynamicStrides[axis]
                                              : emit.index(strides[axis]);
}

Value TileBuffer::size(VectorEmitter &emit) const {
  return dynamicBytes ? dynamicBytes : emit.integer(emit.b.getI64Type(), bytes);
}

int64_t TileBuffer::constantSpacing() const {
  return (bytes + padding + 63) / 64 * 64;
}

Value TileBuffer::spacing(VectorEmitter &emit) const {
  Type i64 = emit.b.getI64Type();
  if (!dynamicBytes)
    return emit.integer(i64, constantSpacing());
  Value padded = emit.add(dynamicBytes, emit.integer(i64, padding + 63));
  return emit.b.create<arith::AndIOp>(emit.loc, padded, emit.integer(i64, -64));
}

TileBuffer Realizer::allocateFor(Value tile, StringRef what, Operation *op) {
  if (auto found = wanted.find(tile); found != wanted.end())
    return found->second;
  StringAttr innermost = layouts.lookup(tile);
  if (!innermost)
    innermost = layoutFor(tile, analysis.phases, layouts);
  if (innermost)
    layouts[tile] = innermost;
  return allocate(tile.getType(), what, op, /*copies=*/1, innermost);
}

TileBuffer Realizer::allocate(Type tileType, StringRef what, Operation *op,
                              int64_t copies, StringAttr innermost) {
  TileBuffer buffer;
  buffer.element = tile::getElement(tileType);
  buffer.dims = tile::getDims(tileType);
  buffer.strides.assign(buffer.dims.size(), 1);
  buffer.dynamicStrides.resize(buffer.dims.size());
  if (llvm::any_of(buffer.dims, [&](StringAttr dim) {
        return !analysis.dims.extentBound(dim);
      })) {
    allocateOnHeap(buffer, what, op, copies);
    return buffer;
  }
  buffer = layOut(tileType, op, copies, innermost);
  buffer.pointer = allocateBytes(
      buffer.bytes + (copies - 1) * buffer.constantSpacing(), what);
  return buffer;
}

TileBuffer Realizer::allocateRegion(Value operand, const WindowRegion &region) {
  TileBuffer buffer;
  buffer.element = tile::getElement(operand.getType());
  buffer.dims = region.dims;
  buffer.strides = region.strides;
  buffer.dynamicStrides.resize(buffer.dims.size());
  buffer.bytes = region.elements * storageBytes(buffer.element);
  buffer.pointer = allocateBytes(buffer.bytes, "packed region");
  return buffer;
}

TileBuffer Realizer::layOut(Type tileType, Operation *op, int64_t copies,
                            StringAttr innermost) {
  TileBuffer buffer;
  buffer.element = tile::getElement(tileType);
  buffer.dims = tile::getDims(tileType);
  buffer.strides.assign(buffer.dims.size(), 1);
  buffer.dynamicStrides.resize(buffer.dims.size());
  int64_t elements = 1;
  auto place = [&](int64_t axis) {
    buffer.strides[axis] = elements;
    int64_t extent = *analysis.dims.extentBound(buffer.dims[axis]);
    if (__builtin_mul_overflow(elements, extent, &elements))
      elements = int64_t(1) << 40;
  };
  if (innermost)
    place(tile::indexOf(buffer.dims, innermost));
  for (int64_t axis = int64_t(buffer.dims.size()) - 1; axis >= 0; --axis)
    if (buffer.dims[axis] != innermost)
      place(axis);
  int64_t bytes = 0, total = 0;
  if (__builtin_mul_overflow(elements, storageBytes(buffer.element), &bytes) ||
      __builtin_mul_overflow(bytes, copies, &total) || total > largestTile) {
    fail(op, "unsupported.scratch",
         "a tile of " + Twine(elements) +
             " elements does not fit the scratch memory of one program "
             "(8 GiB); split the dimension into blocks");
    bytes = 0;
  }
  buffer.bytes = bytes;
  return buffer;
}

void Realizer::emitCheck(Value wrong, Error error) {
  if (int64_t count = lanesOf(wrong); count > 1) {
    Value bits =
        b.create<LLVM::BitcastOp>(emit.loc, b.getIntegerType(count), wrong);
    wrong =
        emit.compare(arith::CmpIPredicate::ne, bits, emit.zero(bits.getType()));
  }
  checks.push_back(std::move(error));
  auto ifOp = b.create<scf::IfOp>(emit.loc, wrong, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  b.create<LLVM::StoreOp>(emit.loc,
                          emit.integer(b.getI32Type(), int64_t(checks.size())),
                          checkPointer());
}

} // namespace tessera
