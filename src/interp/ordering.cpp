//===- ordering.cpp - Arg-reductions, sorts and contractions --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/reduction.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tessera::interp {

namespace {

/// The middle values of the elements of one line, and their total order.
class Line {
public:
  Line(const Context &context, const Tile &tile, int64_t first, int64_t step,
       bool isUnsigned)
      : context(context), tile(tile), first(first), step(step),
        isUnsigned(isUnsigned) {}

  Relation order(int64_t i, int64_t j) const {
    int64_t a = first + i * step, b = first + j * step;
    if (!isFloat(tile.kind())) {
      // i1 orders false below true.
      bool asUnsigned = isUnsigned || tile.kind() == Kind::I1;
      return relation(widthOf(tile.kind()), asUnsigned, tile.ints()[a],
                      tile.ints()[b]);
    }
    if (!context.oracle)
      return totalOrder(tile.reals()[a], tile.reals()[b]);
    return boundedOrder(tile.bounds()[a].value, tile.bounds()[b].value);
  }

  /// Oracle mode: the orders that legal executions can find.
  uint8_t possible(int64_t i, int64_t j) const {
    int64_t a = first + i * step, b = first + j * step;
    if (!isFloat(tile.kind()))
      return tile.isUnknown(a) || tile.isUnknown(b) ? Less | Equal | Greater
                                                    : order(i, j);
    uint8_t found = relations(tile.bounds()[a], tile.bounds()[b]);
    if (found == Unordered)
      return order(i, j);
    return found & ~Unordered;
  }

  /// Oracle mode: every order of two elements is decided.
  bool isExact(int64_t length) const {
    for (int64_t i = 0; i < length; ++i) {
      int64_t at = first + i * step;
      if (isFloat(tile.kind())
              ? tile.bounds()[at].radius != 0 || tile.bounds()[at].leftRange
              : tile.isUnknown(at))
        return false;
    }
    return true;
  }

private:
  static Relation boundedOrder(long double a, long double b) {
    if (std::isnan(a) || std::isnan(b)) {
      if (std::isnan(a) && std::isnan(b))
        return Equal;
      return std::isnan(a) ? Greater : Less;
    }
    return a < b ? Less : a > b ? Greater : Equal;
  }

  const Context &context;
  const Tile &tile;
  int64_t first, step;
  bool isUnsigned;
};

std::vector<int64_t> lineStarts(const Tile &tile, unsigned axis) {
  Extents extents(tile.extents());
  extents[axis] = 1;
  return offsetsOf(extents, denseStrides(tile.extents()));
}

} // namespace

bool argReduce(Context &context, bool largest, bool isUnsigned,
               const Tile &input, unsigned axis, Tile &result) {
  Extents kept(input.extents());
  int64_t length = kept[axis];
  int64_t step = denseStrides(input.extents())[axis];
  kept.erase(kept.begin() + axis);
  if (!context.charge(input.count()) || !result.reset(context, Kind::I64, kept))
    return false;
  if (length == 0) {
    std::fill_n(result.ints(), result.count(), -1);
    return true;
  }
  std::vector<int64_t> starts = lineStarts(input, axis);
  Relation wins = largest ? Greater : Less;
  for (size_t line = 0; line < starts.size(); ++line) {
    Line elements(context, input, starts[line], step, isUnsigned);
    int64_t best = 0;
    for (int64_t i = 1; i < length; ++i)
      if (elements.order(i, best) == wins)
        best = i;
    result.ints()[line] = best;
    if (!context.oracle)
      continue;
    // Known if no other element can win; an earlier one wins ties as well.
    for (int64_t i = 0; i < length; ++i) {
      uint8_t beats = i < best ? wins | Equal : wins;
      if (i != best && (elements.possible(i, best) & beats) != 0) {
        result.setUnknown(line);
        break;
      }
    }
  }
  return true;
}

namespace {

/// Oracle mode: the key of position k lies among all keys that could stand
/// there, so the radius of any of them covers it; another tile's element is
/// known only where the neighbours' order is.
void blurSorted(const Line &line, llvm::ArrayRef<int64_t> order,
                llvm::ArrayRef<Tile *> results, int64_t first, int64_t step) {
  int64_t n = static_cast<int64_t>(order.size());
  // open[k]: an element at or after k may belong before k, or the reverse.
  std::vector<bool> open(n + 1, false);
  for (int64_t k = 1; k < n; ++k)
    for (int64_t i = k; i-- > 0;) {
      uint8_t possible = line.possible(order[i], order[k]);
      bool decided =
          possible == Less || possible == Greater || possible == Equal;
      if (decided)
        continue;
      for (int64_t between = i + 1; between <= k; ++between)
        open[between] = true;
    }
  Tile &keys = *results[0];
  for (int64_t k = 0; k < n;) {
    int64_t end = k + 1;
    while (end < n && open[end])
      ++end;
    if (end - k > 1) {
      long double radius = 0;
      bool leftRange = false;
      for (int64_t i = k; i < end && isFloat(keys.kind()); ++i) {
        const Bounded &key = keys.bounds()[first + i * step];
        radius = std::max(radius, key.radius);
        leftRange |= key.leftRange || !std::isfinite(key.value);
      }
      for (int64_t i = k; i < end; ++i)
        for (Tile *tile : results) {
          int64_t at = first + i * step;
          if (!isFloat(tile->kind()))
            tile->setUnknown(at);
          else if (tile == &keys)
            tile->bounds()[at] = {keys.bounds()[at].value, radius, leftRange};
          else
            tile->bounds()[at].forget();
        }
    }
    k = end;
  }
}

} // namespace

bool sortTiles(Context &context, bool descending, bool isUnsigned,
               llvm::ArrayRef<const Tile *> inputs, unsigned axis,
               llvm::ArrayRef<Tile *> results) {
  const Tile &keys = *inputs[0];
  int64_t length = keys.extents()[axis];
  int64_t step = denseStrides(keys.extents())[axis];
  if (!context.charge(keys.count() * 8))
    return false;
  for (auto [input, result] : llvm::zip(inputs, results))
    if (!result->reset(context, input->kind(), input->extents()))
      return false;
  if (keys.count() == 0)
    return true;
  std::vector<int64_t> order(length);
  for (int64_t first : lineStarts(keys, axis)) {
    Line line(context, keys, first, step, isUnsigned);
    std::iota(order.begin(), order.end(), 0);
    Relation before = descending ? Greater : Less;
    llvm::sort(order, [&](int64_t i, int64_t j) {
      Relation found = line.order(i, j);
      return found == before || (found == Equal && i < j);
    });
    for (auto [input, result] : llvm::zip(inputs, results))
      for (int64_t k = 0; k < length; ++k)
        result->copy(first + k * step, *input, first + order[k] * step);
    if (context.oracle && !line.isExact(length)) {
      if (!context.charge(length * length))
        return false;
      blurSorted(line, order, results, first, step);
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Contraction
//===----------------------------------------------------------------------===//

namespace {

struct ContractOffsets {
  std::vector<int64_t> lhsKept, rhsKept, lhsReduced, rhsReduced;

  explicit ContractOffsets(const ContractForm &form)
      : lhsKept(offsetsOf(form.result, form.lhsKept)),
        rhsKept(offsetsOf(form.result, form.rhsKept)),
        lhsReduced(offsetsOf(form.reduced, form.lhsReduced)),
        rhsReduced(offsetsOf(form.reduced, form.rhsReduced)) {}
};

int64_t contractInts(Kind kind, const int64_t *a, const int64_t *b,
                     int64_t accumulator, const ContractOffsets &offsets) {
  uint64_t sum = static_cast<uint64_t>(accumulator);
  for (size_t k = 0; k < offsets.lhsReduced.size(); ++k)
    sum += static_cast<uint64_t>(a[offsets.lhsReduced[k]]) *
           static_cast<uint64_t>(b[offsets.rhsReduced[k]]);
  return canonical(widthOf(kind), static_cast<int64_t>(sum));
}

double contractReals(Kind kind, Grouping grouping, const double *a,
                     const double *b, double accumulator,
                     const ContractOffsets &offsets) {
  size_t n = offsets.lhsReduced.size();
  if (grouping == Grouping::Tree && n > 0) {
    double sum = 0;
    reduceInOrder(
        grouping, static_cast<int64_t>(n),
        [&](int64_t k, double &out) {
          out = apply(FloatBinary::Mul, kind, a[offsets.lhsReduced[k]],
                      b[offsets.rhsReduced[k]]);
          return true;
        },
        [&](double left, double right, double &out) {
          out = apply(FloatBinary::Add, kind, left, right);
          return true;
        },
        sum);
    return apply(FloatBinary::Add, kind, accumulator, sum);
  }
  bool right = grouping == Grouping::Right;
  for (size_t k = 0; k < n; ++k) {
    size_t at = right ? n - 1 - k : k;
    accumulator = fusedMultiplyAdd(kind, a[offsets.lhsReduced[at]],
                                   b[offsets.rhsReduced[at]], accumulator);
  }
  return accumulator;
}

Bounded contractBounded(const Arithmetic &arithmetic, const Bounded *a,
                        const Bounded *b, const Bounded *accumulator,
                        const ContractOffsets &offsets) {
  bounded::Summation sum(arithmetic);
  if (accumulator)
    sum.add(*accumulator);
  for (size_t k = 0; k < offsets.lhsReduced.size(); ++k) {
    const Bounded &x = a[offsets.lhsReduced[k]];
    const Bounded &y = b[offsets.rhsReduced[k]];
    if (x.isExact() && y.isExact() && !x.leftRange && !y.leftRange)
      sum.addProduct(x.value, y.value);
    else
      sum.add(bounded::mul(x, y, arithmetic));
  }
  return sum.finishContraction();
}

} // namespace

bool contract(Context &context, const ContractForm &form, const Tile &lhs,
              const Tile &rhs, const Tile *accumulator, Tile &result) {
  Kind kind = lhs.kind();
  if (!result.reset(context, kind, form.result))
    return false;
  // Without a result nothing is summed, however many terms there are.
  if (result.count() == 0)
    return true;
  ContractOffsets offsets(form);
  int64_t terms = static_cast<int64_t>(offsets.lhsReduced.size());
  for (int64_t i = 0, count = result.count(); i < count; ++i) {
    if (!context.charge(terms))
      return false;
    // Operands without elements have no address to step from.
    int64_t left = terms > 0 ? offsets.lhsKept[i] : 0;
    int64_t right = terms > 0 ? offsets.rhsKept[i] : 0;
    if (!isFloat(kind)) {
      int64_t start = accumulator ? accumulator->ints()[i] : 0;
      result.ints()[i] = contractInts(kind, lhs.ints() + left,
                                      rhs.ints() + right, start, offsets);
      bool unknown = accumulator && accumulator->isUnknown(i);
      if (lhs.hasUnknown() || rhs.hasUnknown())
        for (int64_t k = 0; k < terms; ++k)
          unknown |= lhs.isUnknown(left + offsets.lhsReduced[k]) ||
                     rhs.isUnknown(right + offsets.rhsReduced[k]);
      if (unknown)
        result.setUnknown(i);
    } else if (context.oracle) {
      result.bounds()[i] = contractBounded(
          context.arithmetic(kind), lhs.bounds() + left, rhs.bounds() + right,
          accumulator ? accumulator->bounds() + i : nullptr, offsets);
    } else {
      double start = accumulator ? accumulator->reals()[i] : 0;
      result.reals()[i] = contractReals(kind, form.grouping, lhs.reals() + left,
                                        rhs.reals() + right, start, offsets);
    }
  }
  return true;
}

} // namespace tessera::interp
