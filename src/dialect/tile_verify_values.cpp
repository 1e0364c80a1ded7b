//===- tile_verify_values.cpp - Valid ops on tiles ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The second half of the verifier: ops that compute tiles from tiles. The
// invariants are listed in tile_verify.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialect/tile_verify.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera::tile;

std::string tessera::tile::joined(ArrayRef<StringAttr> dims) {
  std::string text = "[";
  for (StringAttr dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim.getValue().str();
  return text + "]";
}

bool tessera::tile::combines(Combiner combiner, Type element) {
  bool isFloat = isa<FloatType>(element);
  switch (combiner) {
  case Combiner::Add:
  case Combiner::Mul:
  case Combiner::Max:
  case Combiner::Min:
    return !element.isInteger(1);
  case Combiner::MaxNum:
  case Combiner::MinNum:
    return isFloat;
  case Combiner::UMax:
  case Combiner::UMin:
    return !isFloat && !element.isInteger(1);
  case Combiner::And:
  case Combiner::Or:
  case Combiner::Xor:
    return !isFloat;
  case Combiner::Custom:
    return true;
  }
  return false;
}

bool tessera::tile::isStored(Value view) {
  return llvm::any_of(view.getUsers(), [](Operation *op) {
    return isa<StoreOp, ScatterOp>(op);
  });
}

LogicalResult tessera::tile::verifyYield(Operation *op, Block &block,
                                         TypeRange expected) {
  auto yield = block.empty() ? nullptr : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError("has a region without tile.yield");
  if (yield.getValues().getTypes() != expected)
    return yield.emitOpError() << "yields (" << yield.getValues().getTypes()
                               << "), expected (" << expected << ")";
  return success();
}

LogicalResult tessera::tile::verifyCombine(Operation *op, Region &region,
                                           TypeRange types) {
  if (region.empty())
    return op->emitOpError("needs a combining region");
  Block &block = region.front();
  SmallVector<Type> expected(types.begin(), types.end());
  expected.append(types.begin(), types.end());
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected))
    return op->emitOpError()
           << "combining region takes (" << block.getArgumentTypes()
           << "), expected (" << TypeRange(expected) << ")";
  for (Operation &inner : block)
    if (!isMemoryEffectFree(&inner) || inner.getNumRegions() > 0)
      return inner.emitOpError("is not allowed in a combining region; expected "
                               "ops without regions or memory effects");
  return verifyYield(op, block, types);
}

//===----------------------------------------------------------------------===//
// Shape (I13)
//===----------------------------------------------------------------------===//

static LogicalResult verifySameElement(Operation *op) {
  Type from = getElement(op->getOperand(0).getType());
  Type to = getElement(op->getResult(0).getType());
  if (from != to)
    return op->emitOpError()
           << "changes the element type from " << from << " to " << to;
  return success();
}

LogicalResult BroadcastOp::verify() {
  SmallVector<StringAttr> from = getDims(getInput().getType());
  SmallVector<StringAttr> kept;
  for (StringAttr dim : getDims(getResult().getType()))
    if (llvm::is_contained(from, dim))
      kept.push_back(dim);
  if (kept != from)
    return emitOpError() << "from " << joined(from) << " to "
                         << joined(getDims(getResult().getType()))
                         << " does not keep the input's dimensions in order";
  return verifySameElement(*this);
}

LogicalResult TransposeOp::verify() {
  SmallVector<StringAttr> from = getDims(getInput().getType());
  SmallVector<StringAttr> to = getDims(getResult().getType());
  if (from.size() != to.size() ||
      !std::is_permutation(from.begin(), from.end(), to.begin()))
    return emitOpError() << "from " << joined(from) << " to " << joined(to)
                         << " is not a permutation";
  return verifySameElement(*this);
}

LogicalResult ReshapeOp::verify() { return verifySameElement(*this); }

LogicalResult IotaOp::verify() {
  SmallVector<StringAttr> dims = getDims(getResult().getType());
  Type element = getElement(getResult().getType());
  if (dims.size() != 1 || dims[0] != getDimAttr() ||
      !(element.isInteger(64) || element.isIndex()))
    return emitOpError() << "has type " << getResult().getType()
                         << "; expected i64 or index along '" << getDim()
                         << "'";
  return success();
}

LogicalResult GatherOp::verify() {
  SmallVector<StringAttr> source = getDims(getSource().getType());
  if (indexOf(source, getAlongAttr()) < 0)
    return emitOpError() << "gathers along '" << getAlong()
                         << "', which is not a dimension of the source";
  Type index = getElement(getIndices().getType());
  if (!index.isInteger(64) && !index.isIndex())
    return emitOpError() << "has indices of type " << index
                         << "; expected i64 or index";
  SmallVector<StringAttr> dims = getDims(getIndices().getType());
  for (StringAttr dim : source) {
    if (dim == getAlongAttr())
      continue;
    if (llvm::is_contained(dims, dim))
      return emitOpError() << "has dimension '" << dim.getValue()
                           << "' in both source and indices";
    dims.push_back(dim);
  }
  if (getDims(getResult().getType()) != dims)
    return emitOpError() << "has result dimensions "
                         << joined(getDims(getResult().getType()))
                         << ", expected " << joined(dims);
  if (getFill() && getFill().getType() != getElement(getResult().getType()))
    return emitOpError() << "has a fill of type " << getFill().getType();
  return verifySameElement(*this);
}

//===----------------------------------------------------------------------===//
// Elementwise (I14)
//===----------------------------------------------------------------------===//

template <typename Predicate>
static LogicalResult verifyClass(Operation *op, Predicate fits,
                                 StringRef expected) {
  Type element = getElement(op->getResult(0).getType());
  if (fits(element))
    return success();
  return op->emitOpError() << "is defined on " << expected << ", found "
                           << element;
}
static bool isInt(Type type) {
  return type.isIndex() || (isa<IntegerType>(type) && !type.isInteger(1));
}
static bool isFloatType(Type type) { return isa<FloatType>(type); }

LogicalResult DivOp::verify() { return verifyClass(*this, isInt, "integers"); }
LogicalResult RemOp::verify() { return verifyClass(*this, isInt, "integers"); }
LogicalResult ShlOp::verify() { return verifyClass(*this, isInt, "integers"); }
LogicalResult ShrOp::verify() { return verifyClass(*this, isInt, "integers"); }
LogicalResult MaxNumOp::verify() {
  return verifyClass(*this, isFloatType, "floats");
}
LogicalResult MinNumOp::verify() {
  return verifyClass(*this, isFloatType, "floats");
}
LogicalResult SigmoidOp::verify() {
  return verifyClass(*this, isFloatType, "floats");
}

LogicalResult RoundToOp::verify() {
  Type type = getType();
  if (!(type.isF16() || type.isBF16() || type.isF32() ||
        isa<Float8E4M3FNType, Float8E5M2Type>(type)))
    return emitOpError() << "rounds to " << type
                         << "; expected f16, bf16, f8E4M3FN, f8E5M2 or f32";
  return verifyClass(*this, isFloatType, "floats");
}

LogicalResult CastOp::verify() {
  if (getDims(getInput().getType()) != getDims(getResult().getType()))
    return emitOpError() << "changes dimensions from "
                         << joined(getDims(getInput().getType())) << " to "
                         << joined(getDims(getResult().getType()));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions, scans, contraction, order
//===----------------------------------------------------------------------===//

/// I15, what reduce and scan share; `reduced` are the dimensions combined.
template <typename Op>
static LogicalResult verifyCombination(Op op, ArrayRef<StringAttr> reduced,
                                       bool keepsDims) {
  if (op.getInputs().empty() || op.getInputs().size() != op.getResults().size())
    return op.emitOpError("needs inputs, and as many results");
  SmallVector<StringAttr> dims = getDims(op.getInputs()[0].getType());
  SmallVector<StringAttr> rest;
  for (StringAttr dim : dims)
    if (keepsDims || !llvm::is_contained(reduced, dim))
      rest.push_back(dim);
  llvm::StringSet<> seen;
  for (StringAttr dim : reduced)
    if (!llvm::is_contained(dims, dim) || !seen.insert(dim.getValue()).second)
      return op.emitOpError() << "combines along '" << dim.getValue()
                              << "', which is not a dimension of "
                              << joined(dims) << " or is named twice";
  for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
    if (getDims(input.getType()) != dims)
      return op.emitOpError("needs inputs of the same dimensions");
    if (getDims(result.getType()) != rest ||
        getElement(result.getType()) != getElement(input.getType()))
      return op.emitOpError()
             << "has result type " << result.getType() << ", expected "
             << getTileType(getElement(input.getType()), rest);
  }
  bool custom = op.getCombiner() == Combiner::Custom;
  if (custom != !op.getRegion().empty() ||
      op.getIdentities().size() != (custom ? op.getInputs().size() : 0))
    return op.emitOpError("needs identities and a region exactly for the "
                          "custom combiner");
  if (!custom && op.getInputs().size() != 1)
    return op.emitOpError("takes one input with a named combiner");
  Type element = getElement(op.getInputs()[0].getType());
  if (!combines(op.getCombiner(), element))
    return op.emitOpError()
           << "combiner " << stringifyCombiner(op.getCombiner())
           << " does not fit " << element;
  for (auto [input, identity] : llvm::zip(op.getInputs(), op.getIdentities()))
    if (identity.getType() != getElement(input.getType()))
      return op.emitOpError()
             << "has an identity of type " << identity.getType()
             << " for elements of type " << getElement(input.getType());
  return success();
}

template <typename Op> static LogicalResult verifyCombinationRegion(Op op) {
  if (op.getRegion().empty())
    return success();
  SmallVector<Type> elements;
  for (Value input : op.getInputs())
    elements.push_back(getElement(input.getType()));
  return verifyCombine(op, op.getRegion(), elements);
}

LogicalResult ReduceOp::verify() {
  SmallVector<StringAttr> over;
  for (Attribute dim : getOver())
    over.push_back(cast<StringAttr>(dim));
  if (over.empty())
    return emitOpError("reduces over no dimension");
  return verifyCombination(*this, over, /*keepsDims=*/false);
}
LogicalResult ReduceOp::verifyRegions() {
  return verifyCombinationRegion(*this);
}

LogicalResult ScanOp::verify() {
  return verifyCombination(*this, {getAlongAttr()}, /*keepsDims=*/true);
}
LogicalResult ScanOp::verifyRegions() { return verifyCombinationRegion(*this); }

LogicalResult ArgReduceOp::verify() {
  if (!llvm::is_contained(
          {Combiner::Max, Combiner::Min, Combiner::UMax, Combiner::UMin},
          getCombiner()) ||
      !combines(getCombiner(), getElement(getInput().getType())))
    return emitOpError() << "combiner " << stringifyCombiner(getCombiner())
                         << " is not an order on "
                         << getElement(getInput().getType()); // I16
  SmallVector<StringAttr> dims = getDims(getInput().getType());
  int64_t position = indexOf(dims, getAlongAttr());
  if (position < 0)
    return emitOpError() << "searches along '" << getAlong()
                         << "', which is not a dimension of " << joined(dims);
  dims.erase(dims.begin() + position);
  Type expected = getTileType(IntegerType::get(getContext(), 64), dims);
  if (getResult().getType() != expected)
    return emitOpError() << "has result type " << getResult().getType()
                         << ", expected " << expected;
  return success();
}

LogicalResult SortOp::verify() {
  if (getInputs().empty() || getInputs().getTypes() != getResults().getTypes())
    return emitOpError("needs inputs, and results of their types"); // I17
  SmallVector<StringAttr> dims = getDims(getInputs()[0].getType());
  if (indexOf(dims, getAlongAttr()) < 0)
    return emitOpError() << "sorts along '" << getAlong()
                         << "', which is not a dimension of " << joined(dims);
  for (Value input : getInputs())
    if (getDims(input.getType()) != dims)
      return emitOpError("needs inputs of the same dimensions");
  return success();
}

LogicalResult ContractOp::verify() {
  SmallVector<StringAttr> lhs = getDims(getLhs().getType()); // I18
  SmallVector<StringAttr> rhs = getDims(getRhs().getType());
  SmallVector<StringAttr> result = getDims(getResult().getType());
  Type element = getElement(getLhs().getType());
  if (getElement(getRhs().getType()) != element ||
      getElement(getResult().getType()) != element || element.isInteger(1))
    return emitOpError() << "multiplies " << element << " by "
                         << getElement(getRhs().getType()) << " into "
                         << getElement(getResult().getType())
                         << "; expected one numeric element type";
  if (getAcc() && getAcc().getType() != getResult().getType())
    return emitOpError() << "has an accumulator of type " << getAcc().getType()
                         << ", expected " << getResult().getType();
  llvm::StringSet<> reduced;
  for (Attribute name : getOver()) {
    auto dim = cast<StringAttr>(name);
    if (!llvm::is_contained(lhs, dim) || !llvm::is_contained(rhs, dim) ||
        !reduced.insert(dim.getValue()).second)
      return emitOpError() << "sums over '" << dim.getValue()
                           << "', which both operands must have once";
    if (llvm::is_contained(result, dim))
      return emitOpError() << "keeps '" << dim.getValue()
                           << "', over which it sums";
  }
  llvm::StringSet<> kept;
  for (StringAttr dim : llvm::concat<StringAttr>(lhs, rhs))
    if (!reduced.contains(dim.getValue())) {
      kept.insert(dim.getValue());
      if (!llvm::is_contained(result, dim))
        return emitOpError() << "drops dimension '" << dim.getValue() << "'";
    }
  for (StringAttr dim : result)
    if (!kept.contains(dim.getValue()))
      return emitOpError() << "has dimension '" << dim.getValue()
                           << "', which neither operand has";
  return success();
}
