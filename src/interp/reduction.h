//===- interp/reduction.h - Reductions, scans, order, contraction *- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of a reduction, to the last bit (x_0 ... x_{n-1} are the elements
// in row-major order of the reduced axes, as they stand in the input):
//
//   left       acc = x_0, then acc = combine(acc, x_i) ascending
//   right      acc = x_{n-1}, then acc = combine(x_i, acc) descending
//   tree       tree(1) = x_0; tree(n) = combine(tree(first h), tree(rest)), h
//   the
//              largest power of two below n
//   unordered  as left
//
// The identity is the result without elements and otherwise takes no part. Each
// result of a scan is exactly the reduction of its window in the scan's order;
// an unordered scan runs as left, a reverse one as right. An operation returns
// false after recording an error in the context.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_REDUCTION_H
#define TESSERA_INTERP_REDUCTION_H

#include "interp/scalar_ops.h"
#include "interp/tile_value.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <vector>

namespace tessera::interp {

enum class Grouping : uint8_t { Unordered, Tree, Left, Right };

/// A named combiner on one kind.
struct Combination {
  Kind kind = Kind::F32;
  FloatBinary real = FloatBinary::Add;
  IntBinary integer = IntBinary::Add;
  Scalar identity;
};

/// combine(left, right) of one element.
Scalar combine(const Context &context, const Combination &combination,
               const Scalar &left, const Scalar &right);

/// Several values that a custom combiner takes together.
using Values = llvm::SmallVector<Scalar, 2>;
/// Runs a combining region; `result` is neither operand.
using CombineRegion = llvm::function_ref<bool(
    const Values &left, const Values &right, Values &result)>;

bool reduceNamed(Context &context, const Combination &combination,
                 Grouping grouping, const Tile &input,
                 llvm::ArrayRef<bool> reduced, Tile &result);
bool reduceCustom(Context &context, CombineRegion combine, Grouping grouping,
                  llvm::ArrayRef<const Tile *> inputs, const Values &identities,
                  llvm::ArrayRef<bool> reduced, llvm::ArrayRef<Tile *> results);

struct ScanForm {
  unsigned axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
bool scanNamed(Context &context, const Combination &combination,
               Grouping grouping, const ScanForm &form, const Tile &input,
               Tile &result);
bool scanCustom(Context &context, CombineRegion combine, Grouping grouping,
                const ScanForm &form, llvm::ArrayRef<const Tile *> inputs,
                const Values &identities, llvm::ArrayRef<Tile *> results);

bool argReduce(Context &context, bool largest, bool isUnsigned,
               const Tile &input, unsigned axis, Tile &result);
bool sortTiles(Context &context, bool descending, bool isUnsigned,
               llvm::ArrayRef<const Tile *> inputs, unsigned axis,
               llvm::ArrayRef<Tile *> results);

/// Where the operands of a contraction stand: strides of both per axis of the
/// result and per reduced dimension, 0 where an operand lacks it.
struct ContractForm {
  Extents result;
  Extents lhsKept, rhsKept;
  Extents reduced;
  Extents lhsReduced, rhsReduced;
  Grouping grouping = Grouping::Unordered;
};
/// `accumulator` may be null: then the sum starts from 0.
bool contract(Context &context, const ContractForm &form, const Tile &lhs,
              const Tile &rhs, const Tile *accumulator, Tile &result);

/// The offsets of all index tuples in row-major order.
std::vector<int64_t> offsetsOf(llvm::ArrayRef<int64_t> extents,
                               llvm::ArrayRef<int64_t> strides);

//===----------------------------------------------------------------------===//
// The orders, for any kind of value
//===----------------------------------------------------------------------===//

/// The binary counter that evaluates tree(n) on a stream of elements.
template <typename V, typename Combine> class TreeReducer {
public:
  explicit TreeReducer(Combine &combine) : combine(combine) {}

  bool push(V value) {
    unsigned level = 0;
    while (!partials.empty() && partials.back().second == level) {
      V merged;
      if (!combine(partials.back().first, value, merged))
        return false;
      partials.pop_back();
      value = std::move(merged);
      ++level;
    }
    partials.emplace_back(std::move(value), level);
    return true;
  }

  /// tree of what was pushed, at least one element.
  bool finish(V &result) {
    result = partials.back().first;
    for (size_t i = partials.size() - 1; i-- > 0;) {
      V merged;
      if (!combine(partials[i].first, result, merged))
        return false;
      result = std::move(merged);
    }
    return true;
  }

private:
  Combine &combine;
  std::vector<std::pair<V, unsigned>> partials;
};

/// Reduces n >= 1 elements. `get(i, value)` is called once per element, in
/// ascending order or, for right, descending.
template <typename V, typename Get, typename Combine>
bool reduceInOrder(Grouping grouping, int64_t n, Get &&get, Combine &&combine,
                   V &result) {
  if (grouping == Grouping::Tree) {
    TreeReducer<V, Combine> tree(combine);
    for (int64_t i = 0; i < n; ++i) {
      V value;
      if (!get(i, value) || !tree.push(std::move(value)))
        return false;
    }
    return tree.finish(result);
  }
  bool right = grouping == Grouping::Right;
  if (!get(right ? n - 1 : 0, result))
    return false;
  for (int64_t k = 1; k < n; ++k) {
    V value, combined;
    if (!get(right ? n - 1 - k : k, value) ||
        !(right ? combine(value, result, combined)
                : combine(result, value, combined)))
      return false;
    result = std::move(combined);
  }
  return true;
}

} // namespace tessera::interp

#endif // TESSERA_INTERP_REDUCTION_H
