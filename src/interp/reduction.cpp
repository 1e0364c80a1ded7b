//===- reduction.cpp - Reductions and scans -------------------------------===//
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

namespace tessera::interp {

std::vector<int64_t> offsetsOf(llvm::ArrayRef<int64_t> extents,
                               llvm::ArrayRef<int64_t> strides) {
  int64_t count = elementCount(extents).value_or(0);
  std::vector<int64_t> offsets(count);
  Walk walk(extents);
  unsigned cursor = walk.add(strides);
  for (int64_t i = 0; i < count; ++i, walk.next())
    offsets[i] = walk[cursor];
  return offsets;
}

Scalar combine(const Context &context, const Combination &combination,
               const Scalar &left, const Scalar &right) {
  Scalar result;
  Kind kind = combination.kind;
  if (!isFloat(kind)) {
    OracleInt value =
        apply(combination.integer, widthOf(kind), {left.integer, left.unknown},
              {right.integer, right.unknown});
    result.integer = value.value;
    result.unknown = value.unknown;
  } else if (context.oracle) {
    result.bounded = apply(combination.real, context.arithmetic(kind),
                           left.bounded, right.bounded);
  } else {
    result.real = apply(combination.real, kind, left.real, right.real);
  }
  return result;
}

namespace {

/// Splits the axes of a tile into kept and reduced ones.
struct Split {
  Extents keptExtents, keptStrides, reducedExtents, reducedStrides;
  /// Empty until `tabulate`.
  std::vector<int64_t> kept, reduced;

  Split(const Tile &input, llvm::ArrayRef<bool> isReduced) {
    Extents strides = denseStrides(input.extents());
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      int64_t extent = input.extents()[axis];
      (isReduced[axis] ? reducedExtents : keptExtents).push_back(extent);
      (isReduced[axis] ? reducedStrides : keptStrides).push_back(strides[axis]);
    }
  }

  /// Lists the offsets, once there is memory for the result. Without a result
  /// there is nothing to reduce, however many reduced positions there are.
  void tabulate() {
    kept = offsetsOf(keptExtents, keptStrides);
    if (!kept.empty())
      reduced = offsetsOf(reducedExtents, reducedStrides);
  }
};

/// A product in any order: each of the n - 1 multiplications rounds once, in
/// whatever order; undecided where another order's partial products could leave
/// the normal range.
Bounded productInAnyOrder(const Context &context, Kind kind,
                          llvm::ArrayRef<Bounded> terms) {
  const Arithmetic &arithmetic = context.arithmetic(kind);
  const FloatFormat &format = arithmetic.format();
  Bounded result = terms[0];
  long double largest = 1, smallest = 1, reach = 1;
  bool integral = true, plain = true, finite = true, left = false;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Bounded &term = terms[i];
    if (i > 0)
      result = bounded::mul(result, term, arithmetic);
    long double size = std::fabs(term.value);
    integral &= term.radius == 0 && std::trunc(size) == size;
    reach *= size + term.radius;
    plain &= !term.mayBeZero();
    left |= term.leftRange;
    finite &= std::isfinite(size);
    if (!std::isfinite(size))
      continue;
    largest *= std::max(1.0L, size + term.radius);
    if (!(term.value == 0 && term.radius == 0))
      smallest *= std::min(1.0L, std::max(size - term.radius, 0.0L));
  }
  // A partial product past the range is an infinity that the other factors, all
  // of known sign, cannot bring back.
  bool overflows = !(largest <= format.maxFinite);
  bool underflows = smallest < std::ldexp(1.0L, format.minExponent);
  bool undecided = left || underflows || (overflows && !(plain && finite));
  // Products of integers that the significand holds are exact in any order.
  if (!finite || (integral && largest <= std::ldexp(1.0L, format.precision))) {
    if (undecided)
      result.forget();
    return result;
  }
  long double middle = 1;
  for (const Bounded &term : terms)
    middle *= term.value;
  auto n = static_cast<long double>(terms.size());
  long double own = n * std::numeric_limits<long double>::epsilon();
  long double growth = (n - 1) * format.unitRoundoff() + 2 * own;
  long double radius = (reach - std::fabs(middle)) + 2 * reach * own +
                       reach * growth / (1 - growth);
  result = {middle, radius, false};
  if (overflows) {
    result.leftRange = true;
    result.outcomes =
        middle > 0 ? bounded::PlusInfinity : bounded::MinusInfinity;
  }
  if (undecided || !(growth < 1) || !std::isfinite(radius))
    result.forget();
  return result;
}

/// The reduction of `terms` (at least one) under a named float combiner.
Bounded reduceBounded(const Context &context, const Combination &combination,
                      Grouping grouping, llvm::ArrayRef<Bounded> terms) {
  const Arithmetic &arithmetic = context.arithmetic(combination.kind);
  if (grouping == Grouping::Unordered && terms.size() > 1) {
    if (combination.real == FloatBinary::Add) {
      bounded::Summation sum(arithmetic);
      for (const Bounded &term : terms)
        sum.add(term);
      return sum.finish();
    }
    if (combination.real == FloatBinary::Mul)
      return productInAnyOrder(context, combination.kind, terms);
  }
  Bounded result;
  reduceInOrder(
      grouping, static_cast<int64_t>(terms.size()),
      [&](int64_t i, Bounded &value) {
        value = terms[i];
        return true;
      },
      [&](const Bounded &left, const Bounded &right, Bounded &out) {
        out = apply(combination.real, arithmetic, left, right);
        return true;
      },
      result);
  return result;
}

double reduceReal(const Combination &combination, Grouping grouping,
                  const double *from, llvm::ArrayRef<int64_t> offsets) {
  double result = 0;
  reduceInOrder(
      // Any order will do for an unordered sum; a tree is the most accurate.
      grouping == Grouping::Unordered ? Grouping::Tree : grouping,
      static_cast<int64_t>(offsets.size()),
      [&](int64_t i, double &value) {
        value = from[offsets[i]];
        return true;
      },
      [&](double left, double right, double &out) {
        out = apply(combination.real, combination.kind, left, right);
        return true;
      },
      result);
  return result;
}

OracleInt reduceInt(const Combination &combination, Grouping grouping,
                    const Tile &input, int64_t base,
                    llvm::ArrayRef<int64_t> offsets) {
  int width = widthOf(combination.kind);
  OracleInt result;
  reduceInOrder(
      grouping, static_cast<int64_t>(offsets.size()),
      [&](int64_t i, OracleInt &value) {
        int64_t at = base + offsets[i];
        value = {input.ints()[at], input.isUnknown(at)};
        return true;
      },
      [&](const OracleInt &left, const OracleInt &right, OracleInt &out) {
        out = apply(combination.integer, width, left, right);
        return true;
      },
      result);
  return result;
}

/// Widens the radius of a custom reduction to what other orders give. A custom
/// region has no closed form for "any order"; left, right and tree stand for
/// the rest.
void widen(Values &result, const Values &other) {
  for (size_t k = 0; k < result.size(); ++k)
    result[k].bounded = bounded::either(result[k].bounded, other[k].bounded);
}

template <typename Get>
bool reduceValues(Context &context, CombineRegion combine, Grouping grouping,
                  int64_t n, Get get, Values &result) {
  if (!context.charge(n) || !reduceInOrder(grouping, n, get, combine, result))
    return false;
  if (!context.oracle || grouping != Grouping::Unordered || n < 3)
    return true;
  for (Grouping other : {Grouping::Tree, Grouping::Right}) {
    Values value;
    if (!reduceInOrder(other, n, get, combine, value))
      return false;
    widen(result, value);
  }
  return true;
}

} // namespace

bool reduceNamed(Context &context, const Combination &combination,
                 Grouping grouping, const Tile &input,
                 llvm::ArrayRef<bool> reduced, Tile &result) {
  Split split(input, reduced);
  if (!context.charge(input.count()) ||
      !result.reset(context, input.kind(), split.keptExtents))
    return false;
  split.tabulate();
  std::vector<Bounded> terms;
  for (size_t i = 0; i < split.kept.size(); ++i) {
    int64_t base = split.kept[i];
    if (split.reduced.empty()) {
      result.set(i, combination.identity);
    } else if (!isFloat(input.kind())) {
      OracleInt value =
          reduceInt(combination, grouping, input, base, split.reduced);
      result.ints()[i] = value.value;
      if (value.unknown)
        result.setUnknown(i);
    } else if (!context.oracle) {
      result.reals()[i] = reduceReal(combination, grouping,
                                     input.reals() + base, split.reduced);
    } else {
      terms.clear();
      for (int64_t offset : split.reduced)
        terms.push_back(input.bounds()[base + offset]);
      result.bounds()[i] = reduceBounded(context, combination, grouping, terms);
    }
  }
  return true;
}

bool reduceCustom(Context &context, CombineRegion combine, Grouping grouping,
                  llvm::ArrayRef<const Tile *> inputs, const Values &identities,
                  llvm::ArrayRef<bool> reduced,
                  llvm::ArrayRef<Tile *> results) {
  Split split(*inputs[0], reduced);
  for (auto [input, result] : llvm::zip(inputs, results))
    if (!result->reset(context, input->kind(), split.keptExtents))
      return false;
  split.tabulate();
  for (size_t i = 0; i < split.kept.size(); ++i) {
    auto get = [&](int64_t k, Values &value) {
      value.clear();
      for (const Tile *input : inputs)
        value.push_back(input->get(split.kept[i] + split.reduced[k]));
      return true;
    };
    Values value = identities;
    int64_t n = static_cast<int64_t>(split.reduced.size());
    if (n > 0 && !reduceValues(context, combine, grouping, n, get, value))
      return false;
    for (size_t k = 0; k < results.size(); ++k)
      results[k]->set(i, value[k]);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

namespace {

/// Gives every window's reduction to `put(position, value)`, position being the
/// last element of the window, or the first of a reverse one.
template <typename V, typename Get, typename Combine, typename Put>
bool scanLine(Context &context, Grouping grouping, bool reverse, int64_t n,
              Get get, Combine combine, Put put) {
  if (grouping == Grouping::Unordered)
    grouping = reverse ? Grouping::Right : Grouping::Left;
  bool streams =
      reverse ? grouping == Grouping::Right : grouping != Grouping::Right;
  if (!context.charge(n))
    return false;
  if (!streams) {
    for (int64_t i = 0; i < n; ++i) {
      V value;
      int64_t first = reverse ? i : 0;
      int64_t length = reverse ? n - i : i + 1;
      auto window = [&](int64_t k, V &out) { return get(first + k, out); };
      if (!context.charge(length) ||
          !reduceInOrder(grouping, length, window, combine, value) ||
          !put(i, value))
        return false;
    }
    return true;
  }
  if (grouping == Grouping::Tree) {
    TreeReducer<V, Combine> tree(combine);
    for (int64_t i = 0; i < n; ++i) {
      V value, total;
      if (!get(i, value) || !tree.push(std::move(value)) ||
          !tree.finish(total) || !put(i, total))
        return false;
    }
    return true;
  }
  V running;
  for (int64_t k = 0; k < n; ++k) {
    int64_t i = reverse ? n - 1 - k : k;
    V value, combined;
    if (!get(i, value))
      return false;
    if (k == 0)
      combined = std::move(value);
    else if (!(reverse ? combine(value, running, combined)
                       : combine(running, value, combined)))
      return false;
    running = std::move(combined);
    if (!put(i, running))
      return false;
  }
  return true;
}

/// The lines of a scan: the first element of each, and the step within.
struct Lines {
  std::vector<int64_t> first;
  int64_t step = 1;
  int64_t length = 0;

  Lines(const Tile &input, unsigned axis) {
    Extents strides = denseStrides(input.extents());
    Extents extents(input.extents());
    step = strides[axis];
    length = extents[axis];
    extents[axis] = 1;
    if (length > 0)
      first = offsetsOf(extents, strides);
  }
};

/// Where the window that ends at i puts its value; -1 for nowhere.
int64_t target(const ScanForm &form, int64_t i, int64_t n) {
  if (!form.exclusive)
    return i;
  int64_t to = form.reverse ? i - 1 : i + 1;
  return to < n ? to : -1;
}

int64_t emptyWindow(const ScanForm &form, int64_t n) {
  return form.reverse ? n - 1 : 0;
}

/// An unordered prefix sum in Oracle mode.
void sumLine(const Context &context, const ScanForm &form, const Tile &input,
             int64_t first, const Lines &lines, Tile &result) {
  bounded::Summation sum(context.arithmetic(input.kind()));
  for (int64_t k = 0; k < lines.length; ++k) {
    int64_t i = form.reverse ? lines.length - 1 - k : k;
    sum.add(input.bounds()[first + i * lines.step]);
    int64_t to = target(form, i, lines.length);
    if (to >= 0)
      result.bounds()[first + to * lines.step] = sum.finish();
  }
}

} // namespace

bool scanNamed(Context &context, const Combination &combination,
               Grouping grouping, const ScanForm &form, const Tile &input,
               Tile &result) {
  if (!result.reset(context, input.kind(), input.extents()))
    return false;
  Lines lines(input, form.axis);
  bool sums = context.oracle && isFloat(input.kind()) &&
              combination.real == FloatBinary::Add &&
              grouping == Grouping::Unordered;
  for (int64_t first : lines.first) {
    if (form.exclusive)
      result.set(first + emptyWindow(form, lines.length) * lines.step,
                 combination.identity);
    if (sums) {
      sumLine(context, form, input, first, lines, result);
      continue;
    }
    auto get = [&](int64_t i, Scalar &value) {
      value = input.get(first + i * lines.step);
      return true;
    };
    auto join = [&](const Scalar &left, const Scalar &right, Scalar &out) {
      out = combine(context, combination, left, right);
      return true;
    };
    auto put = [&](int64_t i, const Scalar &value) {
      int64_t to = target(form, i, lines.length);
      if (to >= 0)
        result.set(first + to * lines.step, value);
      return true;
    };
    if (!scanLine<Scalar>(context, grouping, form.reverse, lines.length, get,
                          join, put))
      return false;
  }
  return true;
}

bool scanCustom(Context &context, CombineRegion combine, Grouping grouping,
                const ScanForm &form, llvm::ArrayRef<const Tile *> inputs,
                const Values &identities, llvm::ArrayRef<Tile *> results) {
  for (auto [input, result] : llvm::zip(inputs, results))
    if (!result->reset(context, input->kind(), input->extents()))
      return false;
  Lines lines(*inputs[0], form.axis);
  for (int64_t first : lines.first) {
    auto get = [&](int64_t i, Values &value) {
      value.clear();
      for (const Tile *input : inputs)
        value.push_back(input->get(first + i * lines.step));
      return true;
    };
    auto put = [&](int64_t i, const Values &value) {
      int64_t to = target(form, i, lines.length);
      for (size_t k = 0; to >= 0 && k < results.size(); ++k)
        results[k]->set(first + to * lines.step, value[k]);
      return true;
    };
    for (size_t k = 0; form.exclusive && k < results.size(); ++k)
      results[k]->set(first + emptyWindow(form, lines.length) * lines.step,
                      identities[k]);
    if (!scanLine<Values>(context, grouping, form.reverse, lines.length, get,
                          combine, put))
      return false;
  }
  return true;
}

} // namespace tessera::interp
