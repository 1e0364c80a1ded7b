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

#include <cmath>

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

//===----------------------------------------------------------------------===//
// Storage conversions
//===----------------------------------------------------------------------===//

Value VectorEmitter::widen(Value loaded, Type storage) {
  int64_t lanes = lanesOf(loaded);
  if (storage.isInteger(1))
    return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, loaded,
                                   zero(loaded.getType()));
  if (storage.isIndex())
    return b.create<arith::IndexCastOp>(loc, laneType(storage, lanes), loaded);
  if (isa<IntegerType>(storage) || storage.isF32() || storage.isF64())
    return loaded;
  Type f32 = laneType(b.getF32Type(), lanes);
  if (isa<FloatType>(elementOf(loaded)))
    return b.create<arith::ExtFOp>(loc, f32, loaded);
  Type i32 = laneType(b.getI32Type(), lanes);
  Value bits = b.create<arith::ExtUIOp>(loc, i32, loaded);
  if (storage.isBF16())
    return bitcast(b.create<arith::ShLIOp>(loc, bits, integer(i32, 16)),
                   b.getF32Type());
  if (storage.isF16())
    return widenSmallFloat(bits, 5, 10, /*hasInfinity=*/true);
  if (isa<Float8E5M2Type>(storage))
    return widenSmallFloat(bits, 5, 2, /*hasInfinity=*/true);
  return widenSmallFloat(bits, 4, 3, /*hasInfinity=*/false);
}

Value VectorEmitter::narrow(Value value, Type storage) {
  int64_t lanes = lanesOf(value);
  if (storage.isInteger(1))
    return b.create<arith::ExtUIOp>(loc, laneType(b.getI8Type(), lanes), value);
  if (storage.isIndex())
    return toI64(value);
  if (isa<IntegerType>(storage) || storage.isF32() || storage.isF64())
    return value;
  if (storage.isBF16())
    return narrowBf16(value);
  if (storage.isF16())
    return target.hasF16c
               ? b.create<arith::TruncFOp>(loc, laneType(storage, lanes), value)
               : narrowSmallFloat(value, 5, 10, true);
  if (isa<Float8E5M2Type>(storage))
    return narrowSmallFloat(value, 5, 2, true);
  return narrowSmallFloat(value, 4, 3, false);
}

Value VectorEmitter::narrowBf16(Value value) {
  // Adding 0x7fff plus the lowest kept bit rounds the dropped half to nearest
  // even; a NaN keeps its upper bits and is made quiet.
  int64_t lanes = lanesOf(value);
  Type i32 = laneType(b.getI32Type(), lanes);
  Value bits = bitcast(value, b.getI32Type());
  Value sixteen = integer(i32, 16);
  Value upper = b.create<arith::ShRUIOp>(loc, bits, sixteen);
  Value odd = b.create<arith::AndIOp>(loc, upper, integer(i32, 1));
  Value bias = b.create<arith::AddIOp>(loc, odd, integer(i32, 0x7fff));
  Value rounded = b.create<arith::ShRUIOp>(
      loc, b.create<arith::AddIOp>(loc, bits, bias), sixteen);
  Value quiet = b.create<arith::OrIOp>(loc, upper, integer(i32, 0x40));
  Value result = select(isNaN(value), quiet, rounded);
  return b.create<arith::TruncIOp>(loc, laneType(b.getI16Type(), lanes),
                                   result);
}

Value VectorEmitter::widenSmallFloat(Value bits, unsigned exponentBits,
                                     unsigned mantissaBits, bool hasInfinity) {
  // The magnitude, moved to f32's mantissa position, is the value scaled by a
  // power of two; one exact multiplication restores the scale and makes
  // subnormals normal.
  int64_t lanes = lanesOf(bits);
  Type i32 = bits.getType();
  unsigned width = 1 + exponentBits + mantissaBits;
  int64_t magnitudeMask = (1 << (width - 1)) - 1;
  unsigned shift = 23 - mantissaBits;
  int64_t bias = (1 << (exponentBits - 1)) - 1;
  Value magnitude =
      b.create<arith::AndIOp>(loc, bits, integer(i32, magnitudeMask));
  Value moved = b.create<arith::ShLIOp>(loc, magnitude, integer(i32, shift));
  Type f32 = laneType(b.getF32Type(), lanes);
  Value scaled =
      b.create<arith::MulFOp>(loc, bitcast(moved, b.getF32Type()),
                              floating(f32, std::ldexp(1.0, 127 - bias)));
  Value result = bitcast(scaled, b.getI32Type());
  if (hasInfinity) {
    int64_t infinity = ((1 << exponentBits) - 1) << mantissaBits;
    Value special = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge,
                                            magnitude, integer(i32, infinity));
    Value full = b.create<arith::OrIOp>(loc, moved, integer(i32, 0x7f800000));
    Value isNan = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ugt,
                                          magnitude, integer(i32, infinity));
    full = select(
        isNan, b.create<arith::OrIOp>(loc, full, integer(i32, 0x400000)), full);
    result = select(special, full, result);
  } else {
    Value isNan = b.create<arith::CmpIOp>(
        loc, arith::CmpIPredicate::eq, magnitude, integer(i32, magnitudeMask));
    result = select(isNan, integer(i32, 0x7fc00000), result);
  }
  Value sign = b.create<arith::ShLIOp>(
      loc, b.create<arith::ShRUIOp>(loc, bits, integer(i32, width - 1)),
      integer(i32, 31));
  return bitcast(b.create<arith::OrIOp>(loc, result, sign), b.getF32Type());
}

Value VectorEmitter::narrowSmallFloat(Value value, unsigned exponentBits,
                                      unsigned mantissaBits, bool hasInfinity) {
  int64_t lanes = lanesOf(value);
  Type i32 = laneType(b.getI32Type(), lanes);
  unsigned width = 1 + exponentBits + mantissaBits;
  unsigned shift = 23 - mantissaBits;
  int64_t bias = (1 << (exponentBits - 1)) - 1;
  Value bits = bitcast(value, b.getI32Type());
  Value sign = b.create<arith::AndIOp>(loc, bits, integer(i32, INT32_MIN));
  Value magnitude =
      b.create<arith::AndIOp>(loc, bits, integer(i32, 0x7fffffff));

  // Normal results: round the dropped bits to nearest even, then rebase the
  // exponent. A carry out of the mantissa moves to the exponent by itself.
  Value odd = b.create<arith::AndIOp>(
      loc, b.create<arith::ShRUIOp>(loc, magnitude, integer(i32, shift)),
      integer(i32, 1));
  Value rounded = b.create<arith::AddIOp>(
      loc,
      b.create<arith::AddIOp>(loc, magnitude,
                              integer(i32, (1 << (shift - 1)) - 1)),
      odd);
  Value normal = b.create<arith::SubIOp>(
      loc, b.create<arith::ShRUIOp>(loc, rounded, integer(i32, shift)),
      integer(i32, (127 - bias) << mantissaBits));

  // Subnormal results: adding a number whose unit in the last place is the
  // target's smallest subnormal makes the addition itself round.
  int64_t magicExponent = 127 - bias + 1 + (23 - mantissaBits);
  Value magic = integer(i32, magicExponent << 23);
  Value sum = b.create<arith::AddFOp>(loc, bitcast(magnitude, b.getF32Type()),
                                      bitcast(magic, b.getF32Type()));
  Value subnormal =
      b.create<arith::SubIOp>(loc, bitcast(sum, b.getI32Type()), magic);
  Value isSmall =
      b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, magnitude,
                              integer(i32, int64_t(127 - bias + 1) << 23));
  Value result = select(isSmall, subnormal, normal);

  int64_t top = hasInfinity ? ((1 << exponentBits) - 1) << mantissaBits
                            : (1 << (width - 1)) - 1;
  // Beyond the largest finite value: infinity, or NaN where there is none.
  Value isHuge = logicalOr(
      b.create<arith::CmpIOp>(
          loc, arith::CmpIPredicate::uge, magnitude,
          integer(i32, int64_t(127 + (1 << exponentBits) - bias) << 23)),
      b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, result,
                              integer(i32, top)));
  result = select(isHuge, integer(i32, top), result);
  int64_t quietNan = hasInfinity ? top | (1 << (mantissaBits - 1)) : top;
  result = select(isNaN(value), integer(i32, quietNan), result);
  Value narrowSign =
      b.create<arith::ShRUIOp>(loc, sign, integer(i32, 32 - width));
  Value packed = b.create<arith::OrIOp>(loc, result, narrowSign);
  return b.create<arith::TruncIOp>(
      loc, laneType(b.getIntegerType(width), lanes), packed);
}

} // namespace tessera
