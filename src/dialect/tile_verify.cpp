//===- tile_verify.cpp - What a valid Tile program is ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The invariants, each checked under its number, here or (from I13 on) in
// tile_verify_values.cpp:
//
//  I1   A tile type is a scalar, or a tensor with dynamic extents whose
//  encoding
//       is a list of distinct, non-empty dimension names, one per axis.
//  I2   Every dimension that a kernel names is declared by exactly one
//  tile.dim,
//       earlier, in the same or an enclosing region.
//  I3   A kernel's name is an identifier. Its parameters are views or scalars
//       other than index, with distinct non-empty names; a default belongs to a
//       scalar and has its type.
//  I4   A kernel contains only ops of the Tile dialect and of the allow-list.
//  I5   tile.parallel has one index argument per dimension, dimensions
//  distinct. I6   A loop's block takes the index coordinate and then the
//  carried values;
//       initial values, block arguments, yielded values and results agree.
//  I7   tile.fold: as I6 for the body's yield; `combine` takes left and right
//       values and yields as many, without memory effects.
//  I8   tile.if: both branches yield the results; results need an else branch.
//  I9   An access has one subscript per axis of the view; a step is nonzero
//       exactly where there is a dimension; the dimensions of different axes
//       differ; offsets are index scalars or integer or index tiles.
//  I10  The tile of an access has the access's dimensions, in order, and the
//       view's compute type.
//  I11  A write needs a writable view.
//  I12  A mask is an i1 tile of the access's dimensions; a fill is a scalar of
//       the compute type.
//  I13  Shape ops: broadcast keeps the input's dimensions in order, transpose
//       permutes them, all keep the element type; iota is i64 or index along
//       its own dimension; gather's result is the indices' dimensions and then
//       the source's without `along`.
//  I14  Own elementwise ops take the class of types they are defined for.
//  I15  reduce and scan: `over` and `along` are dimensions of the inputs;
//  result
//       dimensions follow; the combiner fits the element type; a region and
//       identities are present exactly for `custom`, and fit.
//  I16  arg_reduce: max or min; the result is i64 without `along`.
//  I17  sort: all tiles have the same dimensions, `along` among them; results
//       repeat the input types.
//  I18  contract: reduced dimensions are in both operands, the result's are the
//       remaining ones of the operands; one element type throughout.
//  I19  tile.extent's axis lies within the view's rank.
//  I20  A module has the attribute tile.version, a kernel may have
//       tile.schedule and tile.tunables, dictionaries of which the latter's
//       entries have candidates and a value. No other attribute's name begins
//       with 'tile.'; those of kernels have a prefix, and are not these two
//       misspelt.
//
// Not checked: independence of parallel instances, promised bounds, equal
// element counts of reshape, and values of extents. Those depend on the call;
// the interpreter reports them.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_verify.h"
#include "dialect/tile_dialect.h"
#include "dialect/tile_op_lists.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::tile;

namespace {

bool isTileElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isIndex() || type.isF32() || type.isF64();
}

/// I1.
LogicalResult verifyTileType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    if (isa<ViewType>(type) || isTileElement(type))
      return success();
    return op->emitOpError() << "has type " << type << ", which is not a tile";
  }
  if (!isTileElement(tensor.getElementType()))
    return op->emitOpError() << "has element type " << tensor.getElementType()
                             << ", which is not a compute type";
  SmallVector<StringAttr> dims = getDims(tensor);
  auto encoding = dyn_cast_or_null<ArrayAttr>(tensor.getEncoding());
  if (tensor.getRank() == 0 || !encoding ||
      int64_t(dims.size()) != tensor.getRank() ||
      encoding.size() != dims.size())
    return op->emitOpError()
           << "has type " << type << "; expected one dimension name per axis";
  llvm::StringSet<> seen;
  for (auto [dim, extent] : llvm::zip(dims, tensor.getShape())) {
    if (dim.getValue().empty() || !seen.insert(dim.getValue()).second)
      return op->emitOpError()
             << "has type " << type
             << "; expected distinct, non-empty dimension names";
    if (!ShapedType::isDynamic(extent))
      return op->emitOpError() << "has type " << type
                               << "; extents are given by tile.dim, expected "
                                  "'?' for every axis";
  }
  return success();
}

/// The names an op mentions beside its types.
void collectNames(Operation *op, SmallVectorImpl<StringAttr> &names) {
  auto addAll = [&](ArrayAttr list) {
    for (Attribute name : list)
      if (auto text = cast<StringAttr>(name); !text.getValue().empty())
        names.push_back(text);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<ParallelOp>([&](auto op) { addAll(op.getDims()); })
      .Case<SerialOp, PipelineOp, FoldOp, IotaOp, DimSizeOp>(
          [&](auto op) { names.push_back(op.getDimAttr()); })
      .Case<LoadOp, StoreOp, ScatterOp>(
          [&](auto op) { addAll(op.getAxisDims()); })
      .Case<ReduceOp, ContractOp>([&](auto op) { addAll(op.getOver()); })
      .Case<ScanOp, ArgReduceOp, SortOp, GatherOp>(
          [&](auto op) { names.push_back(op.getAlongAttr()); });
}

/// Walks a kernel checking I1, I2 and I4.
class ScopeChecker {
public:
  LogicalResult check(Region &region) {
    size_t depth = inScope.size();
    for (Block &block : region)
      for (Operation &op : block)
        if (failed(check(op)))
          return failure();
    while (inScope.size() > depth) {
      visible.erase(inScope.back());
      inScope.pop_back();
    }
    return success();
  }

private:
  LogicalResult check(Operation &op) {
    if (!isAllowedOp(&op) || isa<KernelOp>(op))
      return op.emitOpError("is not allowed in a kernel");
    SmallVector<StringAttr> names;
    collectNames(&op, names);
    auto addType = [&](Type type) {
      llvm::append_range(names, getDims(type));
      return verifyTileType(&op, type);
    };
    for (Type type : op.getResultTypes())
      if (failed(addType(type)))
        return failure();
    for (Region &region : op.getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (failed(addType(type)))
            return failure();
    for (StringAttr name : names)
      if (!visible.contains(name.getValue()))
        return op.emitOpError() << "names dimension '" << name.getValue()
                                << "', which no tile.dim declares before";
    if (auto dim = dyn_cast<DimOp>(op)) {
      if (dim.getName().empty() || !declared.insert(dim.getName()).second)
        return op.emitOpError() << "declares dimension '" << dim.getName()
                                << "' again or without a name";
      visible.insert(dim.getName());
      inScope.push_back(dim.getName());
    }
    for (Region &region : op.getRegions())
      if (failed(check(region)))
        return failure();
    return success();
  }

  llvm::StringSet<> declared, visible;
  SmallVector<StringRef> inScope;
};

} // namespace

//===----------------------------------------------------------------------===//
// Kernel and structure
//===----------------------------------------------------------------------===//

/// A name that can be part of a symbol, a file name and a C identifier.
static bool isIdentifier(StringRef name) {
  return !name.empty() && name.size() <= 128 && !llvm::isDigit(name.front()) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Whether the attribute is a number of at most 64 bits.
static bool isWhole(Attribute attribute) {
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  return number && number.getValue().getSignificantBits() <= 64;
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  const bool isPart = name == "tile.schedule" || name == "tile.tunables"; // I20
  if (isa<ModuleOp>(op) && name == "tile.version")
    return success();
  if (!isa<KernelOp>(op) || !isPart)
    return op->emitOpError()
           << "has no attribute '" << name
           << "'; expected tile.version on a module, tile.schedule or "
              "tile.tunables on a tile.kernel";
  auto entries = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (!entries)
    return op->emitOpError()
           << "attribute '" << name << "' is " << attribute.getValue()
           << ", expected a dictionary, such as "
           << (name == "tile.schedule"
                   ? "{lanes = 16 : i64}"
                   : "{block = {candidates = array<i64: 64>, value = 64 : "
                     "i64}}");
  if (name == "tile.schedule")
    return success();
  for (NamedAttribute entry : entries) {
    auto tunable = dyn_cast<DictionaryAttr>(entry.getValue());
    if (!tunable || !tunable.getAs<DenseI64ArrayAttr>("candidates") ||
        !isWhole(tunable.get("value")))
      return op->emitOpError()
             << "tunable " << entry.getName() << " is " << entry.getValue()
             << ", expected {candidates = array<i64: ...>, value = ... : i64}";
  }
  return success();
}

LogicalResult KernelOp::verify() {
  for (NamedAttribute attribute :
       getOperation()->getDiscardableAttrs()) { // I20
    StringRef name = attribute.getName().getValue();
    constexpr unsigned misspelt = 2;
    const bool isNear = name.edit_distance("tile.schedule") <= misspelt ||
                        name.edit_distance("tile.tunables") <= misspelt;
    if (!name.starts_with("tile.") && (!name.contains('.') || isNear))
      return emitOpError() << "has no attribute " << attribute.getName()
                           << "; expected tile.schedule, tile.tunables, or a "
                              "name of another dialect";
  }
  if (!isIdentifier(getSymName()))
    return emitOpError("needs a name of at most 128 letters, digits and "
                       "underscores that does not start with a digit");
  if (getBody().empty())
    return emitOpError("has no body");
  if (getArgNames().size() != getBody().getNumArguments() ||
      getArgDefaults().size() != getBody().getNumArguments())
    return emitOpError() << "names " << getArgNames().size()
                         << " parameters, the body takes "
                         << getBody().getNumArguments();
  llvm::StringSet<> seen; // I3
  for (auto [argument, name, value] :
       llvm::zip(getBody().getArguments(), getArgNames(), getArgDefaults())) {
    StringRef text = cast<StringAttr>(name).getValue();
    if (text.empty() || !seen.insert(text).second)
      return emitOpError() << "has two parameters named '" << text
                           << "' or one without a name";
    Type type = argument.getType();
    if (isa<ViewType>(type)) {
      if (!isa<UnitAttr>(value))
        return emitOpError() << "gives view '" << text << "' a default";
      continue;
    }
    if (!isTileElement(type) || type.isIndex())
      return emitOpError() << "parameter '" << text << "' has type " << type
                           << "; expected a view or a scalar";
    auto typed = dyn_cast<TypedAttr>(value);
    if (!isa<UnitAttr>(value) && (!typed || typed.getType() != type))
      return emitOpError() << "default of '" << text << "' is " << value
                           << ", expected a value of type " << type;
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  return ScopeChecker().check(getBody());
}

LogicalResult ExtentOp::verify() {
  int64_t axis = getAxis(); // I19
  int64_t rank = cast<ViewType>(getView().getType()).getRank();
  if (axis < 0 || axis >= rank)
    return emitOpError() << "axis " << axis << " of a view of rank " << rank;
  return success();
}

LogicalResult ParallelOp::verifyRegions() {
  llvm::StringSet<> seen; // I5
  for (Attribute dim : getDims())
    if (!seen.insert(cast<StringAttr>(dim).getValue()).second)
      return emitOpError() << "names dimension " << dim << " twice";
  if (getBody().getNumArguments() != getDims().size() ||
      !llvm::all_of(getBody().getArgumentTypes(),
                    [](Type type) { return type.isIndex(); }))
    return emitOpError("needs one index argument per dimension");
  return success();
}

template <typename Loop> static LogicalResult verifyLoop(Loop op) {
  Block &block = op.getBody().front(); // I6
  TypeRange carried = op.getInits().getTypes();
  if (block.getNumArguments() != carried.size() + 1 ||
      !block.getArgument(0).getType().isIndex() ||
      TypeRange(block.getArgumentTypes()).drop_front() != carried)
    return op.emitOpError("needs the index coordinate and one block argument "
                          "per carried value, of its type");
  if (op.getResults().getTypes() != carried)
    return op.emitOpError("needs one result per carried value, of its type");
  return verifyYield(op, block, carried);
}

LogicalResult SerialOp::verifyRegions() { return verifyLoop(*this); }
LogicalResult PipelineOp::verifyRegions() { return verifyLoop(*this); }

LogicalResult FoldOp::verifyRegions() {
  TypeRange types = getInits().getTypes(); // I7
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("needs the index coordinate as its block argument");
  if (getResults().getTypes() != types)
    return emitOpError("needs one result per initial value, of its type");
  if (failed(verifyYield(*this, block, types)))
    return failure();
  return verifyCombine(*this, getCombine(), types);
}

LogicalResult IfOp::verify() {
  if (getNumResults() > 0 && getElseRegion().empty()) // I8
    return emitOpError("has results and no else branch");
  return success();
}

LogicalResult IfOp::verifyRegions() {
  for (Region *region : {&getThenRegion(), &getElseRegion()}) // I8
    if (!region->empty() &&
        failed(verifyYield(*this, region->front(), getResultTypes())))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

template <typename Access> static Value axisOffset(Access op, unsigned axis) {
  ArrayRef<bool> has = op.getAxisHasOffset();
  if (!has[axis])
    return {};
  return op.getOffsets()[llvm::count(has.take_front(axis), true)];
}

template <typename Access>
static SmallVector<StringAttr> accessDims(Access op) {
  SmallVector<StringAttr> dims;
  auto add = [&](StringAttr dim) {
    if (!llvm::is_contained(dims, dim))
      dims.push_back(dim);
  };
  for (unsigned axis = 0, end = op.getAxisDims().size(); axis < end; ++axis) {
    if (auto dim = cast<StringAttr>(op.getAxisDims()[axis]);
        !dim.getValue().empty())
      add(dim);
    if (Value offset = axisOffset(op, axis))
      llvm::for_each(getDims(offset.getType()), add);
  }
  return dims;
}

/// The dimension whose coordinate `value` is, null when it is computed.
static StringAttr coordinateDim(Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  if (!argument)
    return {};
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto parallel = dyn_cast<ParallelOp>(parent))
    return cast<StringAttr>(parallel.getDims()[argument.getArgNumber()]);
  if (argument.getArgNumber() != 0)
    return {};
  if (auto serial = dyn_cast<SerialOp>(parent))
    return serial.getDimAttr();
  if (auto pipeline = dyn_cast<PipelineOp>(parent))
    return pipeline.getDimAttr();
  if (auto fold = dyn_cast<FoldOp>(parent))
    return fold.getDimAttr();
  return {};
}

template <typename Access>
static StringAttr boundDim(Access op, unsigned axis) {
  Value offset = axisOffset(op, axis);
  if (op.getAxisDim(axis).empty())
    return coordinateDim(offset);
  if (offset || op.getAxisStep(axis) != 1)
    return {};
  return cast<StringAttr>(op.getAxisDims()[axis]);
}

#define TESSERA_ACCESS_METHODS(Op)                                             \
  Value Op::getAxisOffset(unsigned axis) { return axisOffset(*this, axis); }   \
  SmallVector<StringAttr> Op::getAccessDims() { return accessDims(*this); }    \
  StringAttr Op::getBoundDim(unsigned axis) { return boundDim(*this, axis); }
TESSERA_ACCESS_METHODS(LoadOp)
TESSERA_ACCESS_METHODS(StoreOp)
TESSERA_ACCESS_METHODS(ScatterOp)
#undef TESSERA_ACCESS_METHODS

template <typename Access>
static LogicalResult verifyAccess(Access op, Type tile, Value mask) {
  auto view = cast<ViewType>(op.getView().getType());
  size_t rank = view.getRank(); // I9
  if (op.getAxisDims().size() != rank || op.getAxisSteps().size() != rank ||
      op.getAxisHasOffset().size() != rank)
    return op.emitOpError() << "has " << op.getAxisDims().size()
                            << " subscripts for a view of rank " << rank;
  if (size_t(llvm::count(op.getAxisHasOffset(), true)) !=
      op.getOffsets().size())
    return op.emitOpError("has another number of offsets than its subscripts "
                          "use");
  llvm::StringSet<> seen;
  for (unsigned axis = 0; axis < rank; ++axis) {
    StringRef dim = op.getAxisDim(axis);
    if (dim.empty() != (op.getAxisStep(axis) == 0) ||
        (dim.empty() && !op.getAxisHasOffset()[axis]))
      return op.emitOpError() << "subscript " << axis
                              << " needs a dimension with a nonzero step, or "
                                 "an offset";
    if (!dim.empty() && !seen.insert(dim).second)
      return op.emitOpError()
             << "indexes two axes by dimension '" << dim << "'";
  }
  for (Value offset : op.getOffsets()) {
    Type type = offset.getType();
    if (!type.isIndex() &&
        !(isa<RankedTensorType>(type) &&
          (getElement(type).isIndex() || getElement(type).isInteger(64))))
      return op.emitOpError() << "has an offset of type " << type
                              << "; expected index or a tile of i64 or index";
  }
  SmallVector<StringAttr> dims = op.getAccessDims(); // I10
  if (getDims(tile) != dims)
    return op.emitOpError() << "spans " << joined(dims) << ", the tile has "
                            << joined(getDims(tile));
  if (getElement(tile) != view.getComputeType())
    return op.emitOpError()
           << "has element type " << getElement(tile)
           << "; the view computes in " << view.getComputeType();
  if (mask && (!getElement(mask.getType()).isInteger(1) || // I12
               getDims(mask.getType()) != dims))
    return op.emitOpError() << "has a mask of type " << mask.getType()
                            << "; expected i1 over " << joined(dims);
  return success();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this, getResult().getType(), getMask())))
    return failure();
  if (getFill() && getFill().getType() != getViewType().getComputeType())
    return emitOpError() << "has a fill of type " << getFill().getType()
                         << "; the view computes in "
                         << getViewType().getComputeType(); // I12
  return success();
}

void LoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
}

template <typename Write> static LogicalResult verifyWrite(Write op) {
  if (!op.getViewType().isWritable()) // I11
    return op.emitOpError("writes to a read-only view");
  return verifyAccess(op, op.getValue().getType(), op.getMask());
}

LogicalResult StoreOp::verify() { return verifyWrite(*this); }

void StoreOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult ScatterOp::verify() {
  if (getCombiner() == Combiner::Custom ||
      !combines(getCombiner(), getElement(getValue().getType())))
    return emitOpError() << "combiner " << stringifyCombiner(getCombiner())
                         << " does not fit "
                         << getElement(getValue().getType());
  return verifyWrite(*this);
}

void ScatterOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}
