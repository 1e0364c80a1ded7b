//===- kernels/oracle/products.cpp - Many sums of products ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/products.h"

#include "support/special.h"

#include <cmath>
#include <limits>

namespace tessera::oracle {
namespace {

// Products of regular factors, and the errors of their roundings, are normal
// numbers; sums of them do not overflow.
constexpr double smallestRegular = 0x1p-400, largestRegular = 0x1p400;

bool isRegular(double size) {
  return size == 0 || (size >= smallestRegular && size <= largestRegular);
}

#if defined(__x86_64__)

#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
namespace width256 {
constexpr int lanes = 4;
#include "kernels/oracle/product_loops.h"
} // namespace width256
#pragma clang attribute pop

#pragma clang attribute push(                                                  \
    __attribute__((target("avx512f,avx512vl,avx512dq,fma"))),                  \
    apply_to = function)
namespace width512 {
constexpr int lanes = 8;
#include "kernels/oracle/product_loops.h"
} // namespace width512
#pragma clang attribute pop

#endif

/// The loops that are there: this host may lack the wider ones.
ProductLoops available([[maybe_unused]] ProductLoops wanted) {
#if defined(__x86_64__)
  static const bool has512 = __builtin_cpu_supports("x86-64-v4");
  static const bool has256 = __builtin_cpu_supports("x86-64-v3");
  if (wanted == ProductLoops::Widest && has512)
    return ProductLoops::Widest;
  if (wanted != ProductLoops::OneByOne && has256)
    return ProductLoops::Narrow;
#endif
  return ProductLoops::OneByOne;
}

} // namespace

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

void Row::clear(int64_t terms) {
  auto count = static_cast<size_t>(terms);
  high.assign(count, 0);
  low.assign(isExact ? 0 : count, 0);
  radius.assign(isExact ? 0 : count, 0);
  irregular.clear();
  largest = smallest = 0;
  hasNan = hasUnknown = false;
}

void Row::note(int64_t k, double size) {
  if (!isRegular(size)) {
    irregular.push_back(k);
    return;
  }
  if (size == 0)
    return;
  largest = std::max(largest, size);
  smallest = smallest == 0 ? size : std::min(smallest, size);
}

void Row::setExact(const double *x, int64_t stride, int64_t terms) {
  isExact = true;
  exactFactors = x;
  exactStride = stride;
  clear(terms);
  for (int64_t k = 0; k < terms; ++k) {
    double value = x[k * stride];
    hasNan |= std::isnan(value);
    double size = std::fabs(value);
    note(k, size);
    if (isRegular(size))
      high[static_cast<size_t>(k)] = value;
  }
}

void Row::setBounded(const std::vector<Bounded> &x) {
  isExact = false;
  boundedFactors = x.data();
  clear(static_cast<int64_t>(x.size()));
  for (size_t k = 0; k < x.size(); ++k) {
    const Bounded &factor = x[k];
    hasUnknown |= factor.isUnknown();
    if (factor.leftRange || !isFinite(factor.value)) {
      hasNan |= isNan(factor.value) && !factor.leftRange;
      irregular.push_back(static_cast<int64_t>(k));
      continue;
    }
    auto top = static_cast<double>(factor.value);
    auto reach = static_cast<double>(factor.radius) * (1 + 0x1p-51);
    long double rest = factor.value - top;
    // An exponential far below the compute type's smallest number: its radius
    // covers that number, against which it is nothing.
    if (factor.radius > 0x1p-200L &&
        std::fabs(factor.value) < smallestRegular) {
      top = 0;
      rest = 0;
      reach += smallestRegular;
    }
    double size = std::fabs(top) + reach;
    bool regular =
        isRegular(size) && isRegular(std::fabs(top)) && isRegular(reach);
    note(static_cast<int64_t>(k), regular ? size : largestRegular * 2);
    if (!regular)
      continue;
    high[k] = top;
    low[k] = static_cast<double>(rest);
    radius[k] = reach;
  }
}

void Row::addTerm(bounded::Summation &sum, int64_t k, double y,
                  const Arithmetic &rules) const {
  if (isExact)
    sum.addProduct(exactFactors[k * exactStride], y);
  else
    sum.add(mul(boundedFactors[k], Bounded::exact(y), rules));
}

Factors::Factors(const double *data, int64_t terms, int64_t columns,
                 int64_t termStride, int64_t columnStride)
    : data(data), termCount(terms), columnCount(columns),
      termStride(termStride), columnStride(columnStride),
      // Never without a panel, whose address the loops add to.
      packed(static_cast<size_t>(std::max<int64_t>(panels() * terms, 1) *
                                 panelColumns),
             0.0),
      facts(static_cast<size_t>(columns)) {
  for (int64_t j = 0; j < columns; ++j) {
    Column &column = facts[static_cast<size_t>(j)];
    column.firstNan = terms;
    column.begin = irregular.size();
    auto place = static_cast<size_t>(j / panelColumns * terms * panelColumns +
                                     j % panelColumns);
    for (int64_t k = 0; k < terms; ++k, place += panelColumns) {
      double value = at(k, j), size = std::fabs(value);
      if (!isRegular(size)) {
        irregular.push_back(k);
        if (std::isnan(value))
          column.firstNan = std::min(column.firstNan, k);
        continue;
      }
      packed[place] = value;
      if (size == 0)
        continue;
      column.largest = std::max(column.largest, size);
      column.smallest =
          column.smallest == 0 ? size : std::min(column.smallest, size);
    }
    column.end = irregular.size();
  }
}

void PanelTotals::copy(const PanelTotals &part, int64_t at, int64_t count) {
  std::copy_n(part.high, count, high + at);
  std::copy_n(part.low, count, low + at);
  std::copy_n(part.magnitude, count, magnitude + at);
  std::copy_n(part.radius, count, radius + at);
  std::copy_n(part.largest, count, largest + at);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

LoopRules::LoopRules(const Arithmetic &rules)
    : wide(rules.compute == DType::F64),
      ownError(
          static_cast<double>(std::numeric_limits<long double>::epsilon())),
      smallestNormal(std::ldexp(1.0, rules.format().minExponent)),
      smallestSubnormal(static_cast<double>(rules.format().minSubnormal())),
      halfUlp(static_cast<double>(rules.format().unitRoundoff())) {
  unit = (halfUlp + ownError) * (1 + 0x1p-52);
}

Products::Products(const Arithmetic &rules, ProductLoops loops)
    : rules(rules), loops(available(loops)), loopRules(rules) {}

bool Products::makeTotals(const Row &row, [[maybe_unused]] const Factors &y,
                          [[maybe_unused]] int64_t panel,
                          [[maybe_unused]] PanelTotals &totals) const {
  if (loops == ProductLoops::OneByOne || row.hasNan)
    return false;
#if defined(__x86_64__)
  int64_t begin = panel * panelColumns;
  int64_t columns = std::min(panelColumns, y.columns() - begin);
  bool tiny = false;
  // Subnormal factors and products are looked at one by one.
  if (rules.flushesContractions) {
    double least = row.smallest;
    for (int64_t j = 0; j < columns; ++j) {
      double smallest = y.column(begin + j).smallest;
      least = std::min({least, smallest == 0 ? 1 : smallest,
                        smallest == 0 ? 1 : row.smallest * smallest});
    }
    if (row.smallest != 0 && least < loopRules.smallestNormal)
      return false;
  }
  for (int64_t j = 0; j < columns; ++j)
    tiny |=
        row.smallest * y.column(begin + j).smallest < loopRules.smallestNormal;
  (loops == ProductLoops::Widest ? width512::panelProducts
                                 : width256::panelProducts)(
      row, row.terms(), columns, y.panel(panel), loopRules, tiny, totals);
  return true;
#else
  return false;
#endif
}

bounded::Summation Products::sum(const Row &row, const Factors &y,
                                 int64_t column,
                                 const PanelTotals *totals) const {
  bounded::Summation sum(rules);
  const Factors::Column &facts = y.column(column);
  int64_t terms = row.terms();
  if (row.hasNan || facts.firstNan < terms) {
    sum.add(Bounded::nan());
    if (row.hasUnknown)
      sum.add(Bounded::undecided(0));
    return sum;
  }
  // Far enough from the range's end that not even all of one sign reach it.
  bool fits = 16.0 * static_cast<double>(terms) * row.largest * facts.largest <=
              static_cast<double>(rules.format().maxFinite);
  if (!totals || !fits) {
    for (int64_t k = 0; k < terms; ++k)
      row.addTerm(sum, k, y.at(k, column), rules);
    return sum;
  }
  auto irregular = row.irregular.begin();
  auto place = static_cast<size_t>(column % panelColumns);
  int64_t single = 0;
  auto addSingle = [&](int64_t k) {
    row.addTerm(sum, k, y.at(k, column), rules);
    ++single;
  };
  for (size_t i = facts.begin; i < facts.end && y.irregular[i] < terms; ++i) {
    for (; irregular != row.irregular.end() && *irregular < y.irregular[i];
         ++irregular)
      addSingle(*irregular);
    if (irregular != row.irregular.end() && *irregular == y.irregular[i])
      ++irregular;
    addSingle(y.irregular[i]);
  }
  for (; irregular != row.irregular.end(); ++irregular)
    addSingle(*irregular);

  bounded::Summation::Totals all;
  all.terms = terms - single;
  auto count = static_cast<double>(terms);
  // The roundings of the sums themselves, and of what compensates them.
  double slack = 1 + (count + 16) * 0x1p-52;
  all.high = totals->high[place];
  all.low = totals->low[place];
  all.magnitude = totals->magnitude[place] * slack;
  all.radius = totals->radius[place] * slack;
  if (terms > 1)
    all.radius += count * count * 0x1p-104 * all.magnitude;
  all.largest = totals->largest[place] * (row.isExact ? 1.001 : slack);
  sum.add(all);
  return sum;
}

} // namespace tessera::oracle
