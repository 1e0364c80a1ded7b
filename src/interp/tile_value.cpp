//===- tile_value.cpp - Values of the interpreter -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/tile_value.h"

#include <utility>

namespace tessera::interp {

int widthOf(Kind kind) {
  switch (kind) {
  case Kind::I1:
    return 1;
  case Kind::I8:
    return 8;
  case Kind::I16:
    return 16;
  case Kind::I32:
  case Kind::F32:
    return 32;
  case Kind::I64:
  case Kind::F64:
    return 64;
  }
  return 64;
}

std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    if (extent == 0)
      return 0;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(count, extent, &count))
      return std::nullopt;
  return count;
}

Extents denseStrides(llvm::ArrayRef<int64_t> extents) {
  Extents strides(extents.size(), 1);
  // A product that does not fit is that of a tile without elements, whose
  // strides lead nowhere.
  for (size_t axis = extents.size(); axis-- > 1;)
    if (__builtin_mul_overflow(strides[axis], extents[axis],
                               &strides[axis - 1]))
      strides[axis - 1] = 0;
  return strides;
}

bool Context::fail(ErrorFamily family, std::string code, std::string message) {
  if (!failure)
    failure = Error{family, std::move(code), std::move(message),
                    where ? *where : SourcePosition{}};
  return false;
}

bool Context::fail(Error error) {
  return fail(error.family, std::move(error.code), std::move(error.message));
}

bool Context::failSteps() {
  return fail(ErrorFamily::Unsupported, "interpreter.step-limit",
              "the program runs for more than " + std::to_string(stepLimit) +
                  " steps; raise the limit of the interpreter or use smaller "
                  "extents");
}

bool Context::allocate(int64_t bytes) {
  int64_t sum;
  if (__builtin_add_overflow(live, bytes, &sum) ||
      (memoryLimit != 0 && sum > memoryLimit))
    return fail(ErrorFamily::Unsupported, "interpreter.memory-limit",
                "the program needs more than " + std::to_string(memoryLimit) +
                    " bytes; raise the limit of the interpreter or use "
                    "smaller extents");
  live = sum;
  return true;
}

bool Tile::reset(Context &context, Kind kind, llvm::ArrayRef<int64_t> extents) {
  std::optional<int64_t> product = elementCount(extents);
  bool bounded = isFloat(kind) && context.oracle;
  int64_t size = bounded ? sizeof(Bounded) : 8;
  int64_t bytes;
  if (!product || __builtin_mul_overflow(*product, size, &bytes))
    return context.fail(ErrorFamily::Unsupported, "interpreter.memory-limit",
                        "a tile has more elements than memory can hold");
  if (!storage || storage.use_count() != 1) {
    storage = std::make_shared<Storage>();
    storage->context = &context;
  }
  if (bytes > storage->charged) {
    if (!context.allocate(bytes - storage->charged))
      return false;
    storage->charged = bytes;
  }
  shape.assign(extents.begin(), extents.end());
  elements = *product;
  elementKind = kind;
  boundedReals = bounded;
  storage->unknown.clear();
  if (bounded)
    storage->bounds.resize(elements);
  else if (isFloat(kind))
    storage->reals.resize(elements);
  else
    storage->ints.resize(elements);
  return true;
}

void Tile::setUnknown(int64_t i, bool value) {
  if (!value && !hasUnknown())
    return;
  if (!hasUnknown())
    storage->unknown.assign(elements, 0);
  storage->unknown[i] = value;
}

Scalar Tile::get(int64_t i) const {
  Scalar result;
  if (boundedReals)
    result.bounded = bounds()[i];
  else if (isFloat(elementKind))
    result.real = reals()[i];
  else
    result.integer = ints()[i];
  result.unknown = isUnknown(i);
  return result;
}

void Tile::set(int64_t i, const Scalar &value) {
  if (boundedReals)
    bounds()[i] = value.bounded;
  else if (isFloat(elementKind))
    reals()[i] = value.real;
  else {
    ints()[i] = value.integer;
    setUnknown(i, value.unknown);
  }
}

void Tile::copy(int64_t i, const Tile &from, int64_t j) {
  if (boundedReals) {
    bounds()[i] = from.bounds()[j];
  } else if (isFloat(elementKind)) {
    reals()[i] = from.reals()[j];
  } else {
    ints()[i] = from.ints()[j];
    if (from.hasUnknown() || hasUnknown())
      setUnknown(i, from.isUnknown(j));
  }
}

Scalar integerScalar(int64_t value) {
  Scalar result;
  result.integer = value;
  return result;
}

Scalar realScalar(double value) {
  Scalar result;
  result.real = value;
  result.bounded = Bounded::exact(value);
  return result;
}

} // namespace tessera::interp
