//===- tile_dialect.cpp - Dialect, types and shared questions -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "tile_dialect.cpp.inc"
#include "tile_enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "tile_attributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "tile_types.cpp.inc"

namespace tessera::tile {

void TileDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tile_attributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "tile_types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tile_ops.cpp.inc"
      >();
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               Type elementType, int64_t rank, Access) {
  bool known = elementType.isF16() || elementType.isBF16() ||
               elementType.isF32() || elementType.isF64() ||
               llvm::isa<Float8E4M3FNType, Float8E5M2Type>(elementType);
  if (auto integer = llvm::dyn_cast<IntegerType>(elementType)) {
    unsigned width = integer.getWidth();
    known = (width == 1 && integer.isSignless()) ||
            ((width == 8 || width == 16 || width == 32 || width == 64) &&
             !integer.isSigned());
  }
  if (!known)
    return emitError() << "view element type " << elementType
                       << " is not a storage type; expected i1, i8 to i64, ui8 "
                          "to ui64, f16, bf16, f8E4M3FN, f8E5M2, f32 or f64";
  if (rank < 0 || rank > maxRank)
    return emitError() << "view rank " << rank << " is outside 0 to "
                       << maxRank;
  return success();
}

Type ViewType::getComputeType() const {
  Type type = getElementType();
  if (auto integer = llvm::dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  if (type.isF64())
    return type;
  return Float32Type::get(type.getContext());
}

SmallVector<StringAttr> getDims(Type tile) {
  SmallVector<StringAttr> dims;
  if (auto tensor = dyn_cast<RankedTensorType>(tile))
    if (auto names = dyn_cast_or_null<ArrayAttr>(tensor.getEncoding()))
      for (Attribute name : names)
        if (auto text = dyn_cast<StringAttr>(name))
          dims.push_back(text);
  return dims;
}

Type getElement(Type tile) {
  if (auto tensor = dyn_cast<RankedTensorType>(tile))
    return tensor.getElementType();
  return tile;
}

Type getTileType(Type element, ArrayRef<StringAttr> dims) {
  if (dims.empty())
    return element;
  SmallVector<Attribute> names(dims.begin(), dims.end());
  SmallVector<int64_t> shape(dims.size(), ShapedType::kDynamic);
  return RankedTensorType::get(shape, element,
                               ArrayAttr::get(element.getContext(), names));
}

Type withElement(Type tile, Type element) {
  return getTileType(element, getDims(tile));
}

int64_t indexOf(ArrayRef<StringAttr> dims, StringAttr dim) {
  const auto *it = llvm::find(dims, dim);
  return it == dims.end() ? -1 : it - dims.begin();
}

DimOp findDim(Operation *op, StringRef name) {
  Operation *kernel = op;
  while (kernel && !isa<KernelOp>(kernel))
    kernel = kernel->getParentOp();
  DimOp found;
  if (kernel)
    kernel->walk([&](DimOp dim) {
      if (dim.getName() != name)
        return WalkResult::advance();
      found = dim;
      return WalkResult::interrupt();
    });
  return found;
}

void loadTileDialects(MLIRContext &context) {
  context.loadDialect<TileDialect, arith::ArithDialect, math::MathDialect>();
}

} // namespace tessera::tile
