//===- elementwise.cpp - Elementwise operations on tiles ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/elementwise.h"

#include <cmath>

namespace tessera::interp {

namespace {

OracleInt oracleInt(const Tile &tile, int64_t i) {
  return {tile.ints()[i], tile.isUnknown(i)};
}

void setInt(Tile &tile, int64_t i, OracleInt value) {
  tile.ints()[i] = value.value;
  if (value.unknown)
    tile.setUnknown(i);
}

/// The truth value of a comparison whose outcome may be open; the value of an
/// unknown one is what the middles of the intervals give.
OracleInt truth(uint8_t comparison, uint8_t possible, Relation middle) {
  bounded::Tri result = holds(comparison, possible);
  if (result == bounded::Tri::Unknown)
    return {(comparison & middle) != 0, true};
  return {result == bounded::Tri::True, false};
}

OracleInt compare(uint8_t comparison, const Bounded &a, const Bounded &b) {
  return truth(
      comparison, relations(a, b),
      relation(static_cast<double>(a.value), static_cast<double>(b.value)));
}

} // namespace

bool mapUnary(Context &context, FloatUnary op, const Tile &x, Tile &result) {
  if (!result.reset(context, x.kind(), x.extents()))
    return false;
  int64_t count = x.count();
  if (context.oracle) {
    const Arithmetic &arithmetic = context.arithmetic(x.kind());
    for (int64_t i = 0; i < count; ++i)
      result.bounds()[i] = apply(op, arithmetic, x.bounds()[i]);
    return true;
  }
  const double *from = x.reals();
  double *to = result.reals();
  for (int64_t i = 0; i < count; ++i)
    to[i] = apply(op, x.kind(), from[i]);
  return true;
}

bool mapBinary(Context &context, FloatBinary op, const Tile &a, const Tile &b,
               Tile &result) {
  if (!result.reset(context, a.kind(), a.extents()))
    return false;
  int64_t count = a.count();
  if (context.oracle) {
    const Arithmetic &arithmetic = context.arithmetic(a.kind());
    for (int64_t i = 0; i < count; ++i)
      result.bounds()[i] = apply(op, arithmetic, a.bounds()[i], b.bounds()[i]);
    return true;
  }
  const double *left = a.reals(), *right = b.reals();
  double *to = result.reals();
  for (int64_t i = 0; i < count; ++i)
    to[i] = apply(op, a.kind(), left[i], right[i]);
  return true;
}

bool mapBinary(Context &context, IntBinary op, const Tile &a, const Tile &b,
               Tile &result) {
  if (!result.reset(context, a.kind(), a.extents()))
    return false;
  int width = widthOf(a.kind());
  bool known = !a.hasUnknown() && !b.hasUnknown();
  for (int64_t i = 0, count = a.count(); i < count; ++i) {
    if (known)
      result.ints()[i] = apply(op, width, a.ints()[i], b.ints()[i]);
    else
      setInt(result, i, apply(op, width, oracleInt(a, i), oracleInt(b, i)));
  }
  return true;
}

bool mapFusedMultiplyAdd(Context &context, const Tile &a, const Tile &b,
                         const Tile &c, Tile &result) {
  if (!result.reset(context, a.kind(), a.extents()))
    return false;
  for (int64_t i = 0, count = a.count(); i < count; ++i) {
    if (context.oracle)
      result.bounds()[i] =
          bounded::fma(a.bounds()[i], b.bounds()[i], c.bounds()[i],
                       context.arithmetic(a.kind()));
    else
      result.reals()[i] =
          fusedMultiplyAdd(a.kind(), a.reals()[i], b.reals()[i], c.reals()[i]);
  }
  return true;
}

bool mapAbsInt(Context &context, const Tile &x, Tile &result) {
  if (!result.reset(context, x.kind(), x.extents()))
    return false;
  int width = widthOf(x.kind());
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    OracleInt value = oracleInt(x, i);
    // The smallest number has no positive counterpart and wraps to itself.
    if (signedValue(width, value.value) < 0)
      value.value = apply(IntBinary::Sub, width, 0, value.value);
    setInt(result, i, value);
  }
  return true;
}

bool compareFloats(Context &context, uint8_t comparison, const Tile &a,
                   const Tile &b, Tile &result) {
  if (!result.reset(context, Kind::I1, a.extents()))
    return false;
  for (int64_t i = 0, count = a.count(); i < count; ++i) {
    if (context.oracle)
      setInt(result, i, compare(comparison, a.bounds()[i], b.bounds()[i]));
    else
      result.ints()[i] =
          (comparison & relation(a.reals()[i], b.reals()[i])) != 0;
  }
  return true;
}

bool compareInts(Context &context, uint8_t comparison, bool isUnsigned,
                 const Tile &a, const Tile &b, Tile &result) {
  if (!result.reset(context, Kind::I1, a.extents()))
    return false;
  int width = widthOf(a.kind());
  for (int64_t i = 0, count = a.count(); i < count; ++i) {
    Relation found = relation(width, isUnsigned, a.ints()[i], b.ints()[i]);
    setInt(result, i,
           {(comparison & found) != 0, a.isUnknown(i) || b.isUnknown(i)});
  }
  return true;
}

bool selectTiles(Context &context, const Tile &condition, const Tile &ifTrue,
                 const Tile &ifFalse, Tile &result) {
  if (!result.reset(context, ifTrue.kind(), ifTrue.extents()))
    return false;
  bool uniform = condition.extents().size() != ifTrue.extents().size();
  for (int64_t i = 0, count = ifTrue.count(); i < count; ++i) {
    int64_t at = uniform ? 0 : i;
    bool chosen = condition.ints()[at] != 0;
    result.copy(i, chosen ? ifTrue : ifFalse, i);
    if (!condition.isUnknown(at))
      continue;
    if (isFloat(ifTrue.kind()))
      result.bounds()[i] = bounded::select(
          bounded::Tri::Unknown, ifTrue.bounds()[i], ifFalse.bounds()[i]);
    else if (ifTrue.ints()[i] != ifFalse.ints()[i] || ifTrue.isUnknown(i) ||
             ifFalse.isUnknown(i))
      result.setUnknown(i);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static OracleInt boundedToInt(const Bounded &x, int width, bool isUnsigned) {
  if (width == 1)
    return compare(Less | Greater | Unordered, x, Bounded::exact(0));
  std::optional<long double> whole = bounded::truncated(x);
  return {saturate(width, isUnsigned, whole ? *whole : x.value), !whole};
}

static void castFromFloat(const Context &context, const Tile &x, Kind kind,
                          bool unsignedTo, Tile &result) {
  int width = widthOf(kind);
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    if (context.oracle && isFloat(kind))
      result.bounds()[i] =
          kind == Kind::F32 && x.kind() == Kind::F64
              ? roundBounded(x.bounds()[i], DType::F32, context.arithmeticF64)
              : x.bounds()[i];
    else if (context.oracle)
      setInt(result, i, boundedToInt(x.bounds()[i], width, unsignedTo));
    else if (isFloat(kind))
      result.reals()[i] =
          kind == Kind::F32 ? static_cast<float>(x.reals()[i]) : x.reals()[i];
    else if (kind == Kind::I1)
      result.ints()[i] = x.reals()[i] != 0;
    else
      result.ints()[i] = saturate(width, unsignedTo, x.reals()[i]);
  }
}

/// An integer in a float type: one rounding.
static double intToFloat(Kind kind, bool isUnsigned, uint64_t bits) {
  if (isUnsigned)
    return kind == Kind::F32 ? static_cast<float>(bits)
                             : static_cast<double>(bits);
  int64_t value = static_cast<int64_t>(bits);
  return kind == Kind::F32 ? static_cast<float>(value)
                           : static_cast<double>(value);
}

static void castFromInt(const Context &context, const Tile &x, Kind kind,
                        bool unsignedFrom, Tile &result) {
  int from = widthOf(x.kind());
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    // i1 is a truth value, 0 or 1, whatever the signs say.
    uint64_t bits = unsignedFrom ? unsignedValue(from, x.ints()[i])
                                 : static_cast<uint64_t>(x.ints()[i]);
    if (isFloat(kind)) {
      double value = intToFloat(kind, unsignedFrom, bits);
      if (!context.oracle)
        result.reals()[i] = value;
      else
        result.bounds()[i] =
            x.isUnknown(i) ? Bounded::undecided(value) : Bounded::exact(value);
      continue;
    }
    int64_t value = kind == Kind::I1
                        ? bits != 0
                        : canonical(widthOf(kind), static_cast<int64_t>(bits));
    setInt(result, i, {value, x.isUnknown(i)});
  }
}

bool castTile(Context &context, const Tile &x, Kind kind, bool unsignedFrom,
              bool unsignedTo, Tile &result) {
  if (!result.reset(context, kind, x.extents()))
    return false;
  if (isFloat(x.kind()))
    castFromFloat(context, x, kind, unsignedTo, result);
  else
    castFromInt(context, x, kind, unsignedFrom, result);
  return true;
}

bool indexCast(Context &context, const Tile &x, Kind kind, Tile &result) {
  if (!result.reset(context, kind, x.extents()))
    return false;
  for (int64_t i = 0, count = x.count(); i < count; ++i)
    setInt(
        result, i,
        {canonical(widthOf(kind), signedValue(widthOf(x.kind()), x.ints()[i])),
         x.isUnknown(i)});
  return true;
}

bool roundTile(Context &context, const Tile &x, DType type, Tile &result) {
  if (!result.reset(context, x.kind(), x.extents()))
    return false;
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    if (context.oracle)
      result.bounds()[i] =
          roundBounded(x.bounds()[i], type, context.arithmetic(x.kind()));
    else
      result.reals()[i] = roundTo(type, x.reals()[i]);
  }
  return true;
}

} // namespace tessera::interp
