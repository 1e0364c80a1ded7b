//===- vector_emitter.cpp - Scalar and vector ops in one form -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/vector_emitter.h"

#include "realize/cpu/realize.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera {

int64_t lanesOf(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? vector.getNumElements() : 1;
}

Type laneType(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get({lanes}, element);
}

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

int64_t storageBytes(Type storage) {
  if (storage.isIndex())
    return 8;
  return std::max<int64_t>(1, storage.getIntOrFloatBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value VectorEmitter::constant(TypedAttr attribute) {
  Value &known = constants[attribute];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  known = b.create<arith::ConstantOp>(loc, attribute);
  return known;
}

Value VectorEmitter::constant(Type type, Attribute element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return constant(
        DenseElementsAttr::get(vector, ArrayRef<Attribute>(element)));
  return constant(cast<TypedAttr>(element));
}

Value VectorEmitter::integer(Type type, int64_t value) {
  Value &known = integers[{type, value}];
  if (!known)
    known = constant(type, b.getIntegerAttr(getElementTypeOrSelf(type), value));
  return known;
}

Value VectorEmitter::floating(Type type, double value) {
  return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
}

Value VectorEmitter::zero(Type type) {
  return constant(type, b.getZeroAttr(getElementTypeOrSelf(type)));
}

Value VectorEmitter::index(int64_t value) {
  return integer(b.getIndexType(), value);
}

Value VectorEmitter::boolean(int64_t lanes, bool value) {
  return integer(laneType(b.getI1Type(), lanes), value);
}

Value VectorEmitter::laneNumbers(int64_t lanes) {
  if (lanes == 1)
    return integer(b.getI64Type(), 0);
  SmallVector<int64_t> numbers(lanes);
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers[lane] = lane;
  return constant(
      DenseElementsAttr::get(cast<VectorType>(laneType(b.getI64Type(), lanes)),
                             ArrayRef<int64_t>(numbers)));
}

Value VectorEmitter::prefixMask(Value count, int64_t lanes) {
  APInt known;
  if (matchPattern(count, m_ConstantInt(&known))) {
    SmallVector<bool> bits(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane)
      bits[lane] = lane < known.getSExtValue();
    return constant(DenseElementsAttr::get(
        VectorType::get({lanes}, b.getI1Type()), ArrayRef<bool>(bits)));
  }
  return compare(arith::CmpIPredicate::slt, laneNumbers(lanes),
                 splat(toI64(count), lanes));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Value VectorEmitter::splat(Value value, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  if (value.getType().isIndex())
    value = toI64(value);
  Attribute scalar;
  if (matchPattern(value, m_Constant(&scalar)))
    return constant(laneType(value.getType(), lanes), scalar);
  Type type = laneType(value.getType(), lanes);
  Value poison = b.create<LLVM::PoisonOp>(loc, type);
  Value first = b.create<LLVM::InsertElementOp>(loc, poison, value,
                                                integer(b.getI32Type(), 0));
  return shuffle(first, SmallVector<int32_t>(lanes, 0));
}

void VectorEmitter::unify(SmallVectorImpl<Value> &values) {
  int64_t lanes = 1;
  for (Value value : values)
    lanes = std::max(lanes, lanesOf(value));
  for (Value &value : values)
    value = splat(value, lanes);
}

Value VectorEmitter::shuffle(Value value, ArrayRef<int32_t> lanes) {
  Value poison = b.create<LLVM::PoisonOp>(loc, value.getType());
  return b.create<LLVM::ShuffleVectorOp>(loc, value, poison, lanes);
}

Value VectorEmitter::shuffle(Value first, Value second,
                             ArrayRef<int32_t> lanes) {
  return b.create<LLVM::ShuffleVectorOp>(loc, first, second, lanes);
}

Value VectorEmitter::extract(Value vector, int64_t lane) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  return b.create<LLVM::ExtractElementOp>(loc, vector,
                                          integer(b.getI32Type(), lane));
}

Value VectorEmitter::bitcast(Value value, Type element) {
  Type type = laneType(element, lanesOf(value));
  return type == value.getType() ? value
                                 : b.create<arith::BitcastOp>(loc, type, value);
}

//===----------------------------------------------------------------------===//
// Logic and arithmetic
//===----------------------------------------------------------------------===//

Value VectorEmitter::select(Value condition, Value x, Value y) {
  SmallVector<Value> values{condition, x, y};
  unify(values);
  return b.createOrFold<arith::SelectOp>(loc, values[0], values[1], values[2]);
}

Value VectorEmitter::logicalAnd(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  SmallVector<Value> values{x, y};
  unify(values);
  return b.createOrFold<arith::AndIOp>(loc, values[0], values[1]);
}

Value VectorEmitter::logicalOr(Value x, Value y) {
  SmallVector<Value> values{x, y};
  unify(values);
  return b.createOrFold<arith::OrIOp>(loc, values[0], values[1]);
}

Value VectorEmitter::logicalNot(Value x) {
  return b.createOrFold<arith::XOrIOp>(loc, x, boolean(lanesOf(x), true));
}

Value VectorEmitter::compare(arith::CmpFPredicate predicate, Value x, Value y) {
  SmallVector<Value> values{x, y};
  unify(values);
  return b.createOrFold<arith::CmpFOp>(loc, predicate, values[0], values[1]);
}

Value VectorEmitter::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  SmallVector<Value> values{x, y};
  if (lanesOf(x) != lanesOf(y))
    unify(values);
  return b.createOrFold<arith::CmpIOp>(loc, predicate, values[0], values[1]);
}

Value VectorEmitter::isNaN(Value x) {
  return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
}

Value VectorEmitter::settled(Value number) {
  const char *anywhere =
      target.architecture == Architecture::X86_64 ? "=x,0" : "=w,0";
  return b
      .create<LLVM::InlineAsmOp>(loc, number.getType(), ValueRange{number},
                                 /*asm_string=*/"", anywhere,
                                 /*has_side_effects=*/true,
                                 /*is_align_stack=*/false,
                                 LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value VectorEmitter::toI64(Value index) {
  if (!elementOf(index).isIndex())
    return index;
  return b.createOrFold<arith::IndexCastOp>(
      loc, laneType(b.getI64Type(), lanesOf(index)), index);
}

/// The number that a scalar constant is. Where it is asked before an operation
/// is made, most sums and products of addresses need none.
static std::optional<int64_t> numberOf(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto number =
      constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  if (!number || number.getValue().getBitWidth() > 64)
    return std::nullopt;
  return number.getValue().getSExtValue();
}

Value VectorEmitter::add(Value x, Value y) {
  if (isa<VectorType>(x.getType()))
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  std::optional<int64_t> left = numberOf(x), right = numberOf(y);
  if (left && right)
    return integer(x.getType(), int64_t(uint64_t(*left) + uint64_t(*right)));
  if (left == 0)
    return y;
  if (right == 0)
    return x;
  return b.create<arith::AddIOp>(loc, x, y);
}

Value VectorEmitter::mul(Value x, Value y) {
  if (isa<VectorType>(x.getType()))
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  std::optional<int64_t> left = numberOf(x), right = numberOf(y);
  if ((left && right) || left == 0 || right == 0)
    return integer(x.getType(), int64_t(uint64_t(left.value_or(0)) *
                                        uint64_t(right.value_or(0))));
  if (left == 1)
    return y;
  if (right == 1)
    return x;
  return b.create<arith::MulIOp>(loc, x, y);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Type VectorEmitter::memoryType(Type storage) {
  if (storage.isIndex())
    return b.getI64Type();
  if (auto integer = dyn_cast<IntegerType>(storage))
    return b.getIntegerType(std::max(8u, integer.getWidth()));
  if (storage.isF32() || storage.isF64())
    return storage;
  if (storage.isF16() && target.hasF16c)
    return storage;
  return b.getIntegerType(storage.getIntOrFloatBitWidth());
}

Type VectorEmitter::computeType(Type storage) {
  if (storage.isIndex() || storage.isF64())
    return storage;
  if (auto integer = dyn_cast<IntegerType>(storage))
    return b.getIntegerType(integer.getWidth());
  return b.getF32Type();
}

Value VectorEmitter::offsetPointer(Value pointer, Type storage, Value index) {
  return b.create<LLVM::GEPOp>(loc, pointer.getType(), memoryType(storage),
                               pointer, ValueRange{toI64(index)});
}

static unsigned alignmentOf(Type storage) { return storageBytes(storage); }

// LLVM splits a masked access that is wider than a register wrongly where one
// half of the mask is known to be false (it then reads the whole half), so the
// parts are made here.

int64_t VectorEmitter::registerLanes(Type element) const {
  return std::max<int64_t>(1,
                           target.vectorBits / element.getIntOrFloatBitWidth());
}

Value VectorEmitter::slice(Value vector, int64_t first, int64_t count) {
  // What is known about the lanes must stay visible.
  DenseElementsAttr constant;
  if (matchPattern(vector, m_Constant(&constant))) {
    SmallVector<Attribute> lanes;
    for (Attribute lane :
         llvm::make_range(constant.value_begin<Attribute>() + first,
                          constant.value_begin<Attribute>() + first + count))
      lanes.push_back(lane);
    auto type = VectorType::get({count}, elementOf(vector));
    return this->constant(DenseElementsAttr::get(type, lanes));
  }
  if (auto both = vector.getDefiningOp<arith::AndIOp>())
    return b.createOrFold<arith::AndIOp>(loc,
                                         slice(both.getLhs(), first, count),
                                         slice(both.getRhs(), first, count));
  if (auto splatted = vector.getDefiningOp<LLVM::ShuffleVectorOp>();
      splatted &&
      llvm::all_of(splatted.getMask(), [](int32_t lane) { return lane == 0; }))
    return shuffle(splatted.getV1(), SmallVector<int32_t>(count, 0));
  SmallVector<int32_t> order(count);
  for (int64_t lane = 0; lane < count; ++lane)
    order[lane] = first + lane;
  return shuffle(vector, order);
}

Value VectorEmitter::maskedLoad(Value pointer, Type type, Value mask,
                                unsigned alignment) {
  auto vector = cast<VectorType>(type);
  int64_t lanes = vector.getNumElements();
  int64_t part = registerLanes(vector.getElementType());
  if (matchPattern(mask, m_Zero()))
    return zero(type);
  if (matchPattern(mask, m_One()))
    return b.create<LLVM::LoadOp>(loc, type, pointer, alignment);
  if (lanes <= part)
    return b.create<LLVM::MaskedLoadOp>(loc, type, pointer, mask,
                                        ValueRange{zero(type)}, alignment);
  int64_t half = lanes / 2;
  Type halfType = laneType(vector.getElementType(), half);
  Value upper =
      b.create<LLVM::GEPOp>(loc, pointer.getType(), vector.getElementType(),
                            pointer, ArrayRef<LLVM::GEPArg>{int32_t(half)});
  Value low = maskedLoad(pointer, halfType, slice(mask, 0, half), alignment);
  Value high = maskedLoad(upper, halfType, slice(mask, half, half), alignment);
  SmallVector<int32_t> all(lanes);
  for (int64_t lane = 0; lane < lanes; ++lane)
    all[lane] = lane;
  return shuffle(low, high, all);
}

Operation *VectorEmitter::maskedStore(Value value, Value pointer, Value mask,
                                      unsigned alignment) {
  auto vector = cast<VectorType>(value.getType());
  int64_t lanes = vector.getNumElements();
  if (matchPattern(mask, m_Zero()))
    return nullptr;
  if (lanes <= registerLanes(vector.getElementType()))
    return b.create<LLVM::MaskedStoreOp>(loc, value, pointer, mask, alignment);
  int64_t half = lanes / 2;
  Value upper =
      b.create<LLVM::GEPOp>(loc, pointer.getType(), vector.getElementType(),
                            pointer, ArrayRef<LLVM::GEPArg>{int32_t(half)});
  maskedStore(slice(value, 0, half), pointer, slice(mask, 0, half), alignment);
  maskedStore(slice(value, half, half), upper, slice(mask, half, half),
              alignment);
  return nullptr;
}

Operation *VectorEmitter::prefetch(Value pointer, bool isStored) {
  // Into the nearest of the caches for data.
  constexpr int nearest = 3, ofData = 1;
  return b.create<LLVM::Prefetch>(loc, pointer, b.getI32IntegerAttr(isStored),
                                  b.getI32IntegerAttr(nearest),
                                  b.getI32IntegerAttr(ofData));
}

Value VectorEmitter::load(Value pointer, Type storage, int64_t lanes,
                          Value mask) {
  Type type = laneType(memoryType(storage), lanes);
  unsigned alignment = alignmentOf(storage);
  Value loaded;
  if (mask && lanes > 1)
    loaded = maskedLoad(pointer, type, mask, alignment);
  else
    loaded = b.create<LLVM::LoadOp>(loc, type, pointer, alignment);
  return widen(loaded, storage);
}

/// The addresses of lanes at element offsets.
static Value lanePointers(OpBuilder &b, Location loc, Value pointer,
                          Type element, Value offsets) {
  auto type = LLVM::getFixedVectorType(pointer.getType(), lanesOf(offsets));
  return b.create<LLVM::GEPOp>(loc, type, element, pointer,
                               ValueRange{offsets});
}

Value VectorEmitter::gather(Value pointer, Type storage, Value offsets,
                            Value mask) {
  int64_t lanes = lanesOf(offsets);
  Type type = laneType(memoryType(storage), lanes);
  Value pointers =
      lanePointers(b, loc, pointer, memoryType(storage), toI64(offsets));
  Value loaded = b.create<LLVM::masked_gather>(
      loc, type, pointers, mask ? mask : boolean(lanes, true),
      ValueRange{zero(type)}, alignmentOf(storage));
  return widen(loaded, storage);
}

Operation *VectorEmitter::store(Value value, Value pointer, Type storage,
                                Value mask) {
  Value narrowed = narrow(value, storage);
  unsigned alignment = alignmentOf(storage);
  if (mask && lanesOf(value) > 1)
    return maskedStore(narrowed, pointer, mask, alignment);
  return b.create<LLVM::StoreOp>(loc, narrowed, pointer, alignment);
}

void VectorEmitter::storeAround(Value value, Value pointer, Type storage,
                                double share) {
  Value narrowed = narrow(value, storage);
  const int64_t bytes = lanesOf(value) * storageBytes(storage);
  Value address = b.create<LLVM::PtrToIntOp>(loc, b.getI64Type(), pointer);
  Value beyond =
      b.create<arith::AndIOp>(loc, address, integer(b.getI64Type(), bytes - 1));
  Value isAligned = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                            beyond, integer(b.getI64Type(), 0));
  auto choice = b.create<scf::IfOp>(loc, isAligned, /*withElseRegion=*/true);
  choice->setAttr(usualAttr, b.getUnitAttr());
  if (share < 1)
    choice->setAttr(takenAttribute, b.getF64FloatAttr(share));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(choice.thenBlock()->getTerminator());
  b.create<LLVM::StoreOp>(loc, narrowed, pointer, unsigned(bytes),
                          /*isVolatile=*/false, /*isNonTemporal=*/true);
  b.setInsertionPoint(choice.elseBlock()->getTerminator());
  b.create<LLVM::StoreOp>(loc, narrowed, pointer, alignmentOf(storage));
}

void VectorEmitter::finishStoresAround() {
  // Other processors store the rest in order.
  if (target.architecture == Architecture::X86_64)
    b.create<LLVM::CallIntrinsicOp>(
        loc, TypeRange(), b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
}

void VectorEmitter::scatter(Value value, Value pointer, Type storage,
                            Value offsets, Value mask) {
  Value narrowed = narrow(value, storage);
  Value pointers =
      lanePointers(b, loc, pointer, memoryType(storage), toI64(offsets));
  b.create<LLVM::masked_scatter>(loc, narrowed, pointers,
                                 mask ? mask : boolean(lanesOf(value), true),
                                 alignmentOf(storage));
}

} // namespace tessera
