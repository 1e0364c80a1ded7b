//===- conversions.cpp - Between types in memory and in registers ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/vector_emitter.h"

#include "target/contraction_atoms.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace tessera {

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

/// Whether no lane of a number can be subnormal, by what computes it: an atom
/// that makes zeros of them, running results of such atoms, the larger or
/// smaller of such numbers.
static bool isNeverSubnormal(Value value, unsigned depth = 0) {
  constexpr unsigned deepest = 8;
  if (depth == deepest)
    return false;
  DenseElementsAttr elements;
  FloatAttr element;
  auto isNormal = [](const APFloat &number) { return !number.isDenormal(); };
  if (matchPattern(value, m_Constant(&elements)))
    return llvm::all_of(elements.getValues<APFloat>(), isNormal);
  if (matchPattern(value, m_Constant(&element)))
    return isNormal(element.getValue());
  Operation *op = value.getDefiningOp();
  if (auto call = dyn_cast_or_null<LLVM::CallIntrinsicOp>(op)) {
    const ContractionAtom *atom = findAtomOf(call.getIntrin());
    return atom && atom->flushesSubnormals;
  }
  if (auto loop = dyn_cast_or_null<scf::ForOp>(op)) {
    const unsigned number = cast<OpResult>(value).getResultNumber();
    return isNeverSubnormal(loop.getInits()[number], depth + 1) &&
           isNeverSubnormal(loop.getBody()->getTerminator()->getOperand(number),
                            depth + 1);
  }
  auto choice = dyn_cast_or_null<arith::SelectOp>(op);
  return choice && isNeverSubnormal(choice.getTrueValue(), depth + 1) &&
         isNeverSubnormal(choice.getFalseValue(), depth + 1);
}

/// A vector's conversion as one instruction; null where there is none.
Value VectorEmitter::convertToBf16(Value value) {
  const int64_t lanes = lanesOf(value);
  const char *intrinsic = lanes == 16  ? "llvm.x86.avx512bf16.cvtneps2bf16.512"
                          : lanes == 8 ? "llvm.x86.avx512bf16.cvtneps2bf16.256"
                                       : nullptr;
  if (!target.hasBf16Conversion || !intrinsic || !isNeverSubnormal(value))
    return {};
  auto call = b.create<LLVM::CallIntrinsicOp>(
      loc, TypeRange{VectorType::get({lanes}, b.getBF16Type())},
      b.getStringAttr(intrinsic), ValueRange{value});
  return b.create<LLVM::BitcastOp>(loc, laneType(b.getI16Type(), lanes),
                                   call->getResult(0));
}

Value VectorEmitter::narrowBf16(Value value) {
  if (Value converted = convertToBf16(value))
    return converted;
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
