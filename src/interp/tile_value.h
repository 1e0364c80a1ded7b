//===- interp/tile_value.h - Values of the interpreter ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Tile holds the elements of one SSA value in row-major order; a scalar is a
// tile without axes. Integers of every width are kept as sign-extended int64_t
// (i1 as 0 or 1), floats as double (an f32 is a double that f32 can hold) or,
// in Oracle mode, as Bounded. In Oracle mode an integer may be unknown: it then
// depends on something that the bounds do not decide.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_TILE_VALUE_H
#define TESSERA_INTERP_TILE_VALUE_H

#include "support/bounded.h"
#include "tessera/dtype.h"
#include "tessera/error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tessera::interp {

/// The compute types; `index` is I64.
enum class Kind : uint8_t { I1, I8, I16, I32, I64, F32, F64 };

inline bool isFloat(Kind kind) { return kind >= Kind::F32; }
/// The number of bits of an integer kind.
int widthOf(Kind kind);

using Extents = llvm::SmallVector<int64_t, 4>;

/// Product of the extents, std::nullopt when it does not fit.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> extents);

/// Row-major strides.
Extents denseStrides(llvm::ArrayRef<int64_t> extents);

/// What all parts of one run share: its mode, its limits and its first error.
class Context {
public:
  Context(bool oracle, int64_t stepLimit, int64_t memoryLimit)
      : oracle(oracle), stepLimit(stepLimit), memoryLimit(memoryLimit) {}

  const bool oracle;
  Arithmetic arithmeticF32;
  Arithmetic arithmeticF64;
  /// Where the running operation stands.
  const SourcePosition *where = nullptr;
  /// Oracle mode: control flow depended on an undecided value.
  bool undecidedControl = false;

  const Arithmetic &arithmetic(Kind kind) const {
    return kind == Kind::F64 ? arithmeticF64 : arithmeticF32;
  }

  /// Records the first error at `where`; returns false.
  bool fail(ErrorFamily family, std::string code, std::string message);
  /// The same for an error without a position.
  bool fail(Error error);
  const std::optional<Error> &error() const { return failure; }

  /// Counts work; false when the limit is passed.
  bool charge(int64_t units) {
    steps += units;
    return stepLimit == 0 || steps <= stepLimit || failSteps();
  }
  int64_t stepsDone() const { return steps; }

  /// Counts memory; false (and nothing counted) when the limit is passed.
  bool allocate(int64_t bytes);
  void release(int64_t bytes) { live -= bytes; }

private:
  bool failSteps();

  int64_t stepLimit;
  int64_t memoryLimit;
  int64_t steps = 0;
  int64_t live = 0;
  std::optional<Error> failure;
};

/// One element of any kind.
struct Scalar {
  int64_t integer = 0;
  double real = 0;
  Bounded bounded;
  bool unknown = false;
};

class Tile {
public:
  Tile() = default;

  Kind kind() const { return elementKind; }
  llvm::ArrayRef<int64_t> extents() const { return shape; }
  int64_t count() const { return elements; }

  /// Makes this a tile of new, unspecified elements that no other Tile shares.
  bool reset(Context &context, Kind kind, llvm::ArrayRef<int64_t> extents);
  /// The same elements under other extents of the same product.
  void reshape(llvm::ArrayRef<int64_t> extents) {
    shape.assign(extents.begin(), extents.end());
  }

  int64_t *ints() { return storage->ints.data(); }
  const int64_t *ints() const { return storage->ints.data(); }
  double *reals() { return storage->reals.data(); }
  const double *reals() const { return storage->reals.data(); }
  Bounded *bounds() { return storage->bounds.data(); }
  const Bounded *bounds() const { return storage->bounds.data(); }

  bool hasUnknown() const { return !storage->unknown.empty(); }
  bool isUnknown(int64_t i) const {
    return hasUnknown() && storage->unknown[i] != 0;
  }
  void setUnknown(int64_t i, bool value = true);

  Scalar get(int64_t i) const;
  void set(int64_t i, const Scalar &value);
  /// Copies element `j` of a tile of the same kind.
  void copy(int64_t i, const Tile &from, int64_t j);

private:
  struct Storage {
    std::vector<int64_t> ints;
    std::vector<double> reals;
    std::vector<Bounded> bounds;
    /// Empty when every element is known.
    std::vector<uint8_t> unknown;
    Context *context = nullptr;
    int64_t charged = 0;

    Storage() = default;
    Storage(const Storage &) = delete;
    Storage &operator=(const Storage &) = delete;
    ~Storage() {
      if (context)
        context->release(charged);
    }
  };

  Kind elementKind = Kind::I64;
  bool boundedReals = false;
  int64_t elements = 0;
  Extents shape;
  std::shared_ptr<Storage> storage;
};

/// The value that every element of the reduction or load starts from.
Scalar integerScalar(int64_t value);
Scalar realScalar(double value);

/// Walks index tuples in row-major order and keeps one offset per cursor, each
/// with its own stride per axis.
class Walk {
public:
  explicit Walk(llvm::ArrayRef<int64_t> extents) : extents(extents) {
    position.assign(extents.size(), 0);
  }
  /// Adds a cursor and returns its number.
  unsigned add(llvm::ArrayRef<int64_t> cursorStrides) {
    strides.emplace_back(cursorStrides.begin(), cursorStrides.end());
    offsets.push_back(0);
    return offsets.size() - 1;
  }
  int64_t operator[](unsigned cursor) const { return offsets[cursor]; }
  void next() {
    for (size_t axis = extents.size(); axis-- > 0;) {
      if (++position[axis] < extents[axis]) {
        for (size_t c = 0; c < offsets.size(); ++c)
          offsets[c] += strides[c][axis];
        return;
      }
      for (size_t c = 0; c < offsets.size(); ++c)
        offsets[c] -= strides[c][axis] * (extents[axis] - 1);
      position[axis] = 0;
    }
  }

private:
  llvm::ArrayRef<int64_t> extents;
  Extents position;
  llvm::SmallVector<Extents, 4> strides;
  llvm::SmallVector<int64_t, 8> offsets;
};

} // namespace tessera::interp

#endif // TESSERA_INTERP_TILE_VALUE_H
