//===- kernels/oracle/products.h - Many sums of products --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The sums over k of x[k] y[k, j] for all columns j, as bounded::Summation
// makes them of single products, with the same radii: only the roundings that
// radii themselves are made with differ. Values are pairs of doubles on the
// way, which is more than a long double holds. Vector loops add up what is
// regular: finite factors away from the ends of the range of double whose sum
// cannot leave the range of the compute type. Single products that are not (an
// infinity, a factor that left the range) are added one by one, and a NaN
// decides its sum alone. Without fused multiply-adds every product is added on
// its own.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_PRODUCTS_H
#define TESSERA_KERNELS_ORACLE_PRODUCTS_H

#include "kernels/oracle/oracle.h"

#include <algorithm>
#include <vector>

namespace tessera::oracle {

/// Columns that a loop takes at once.
inline constexpr int64_t panelColumns = 16;

/// The left factors: exact ones, whose products may be fused into the sum, or
/// bounded ones, whose products are rounded first.
class Row {
public:
  /// `x` with `terms` elements `stride` apart, which must outlive this.
  void setExact(const double *x, int64_t stride, int64_t terms);
  void setBounded(const std::vector<Bounded> &x);

  int64_t terms() const { return static_cast<int64_t>(high.size()); }
  void addTerm(bounded::Summation &sum, int64_t k, double y,
               const Arithmetic &rules) const;

  bool isExact = true;
  /// The factors as sums of two doubles, and their radii; zeros where
  /// irregular.
  std::vector<double> high, low, radius;
  std::vector<int64_t> irregular;
  /// The bounds of the regular factors that are not zero.
  double largest = 0;
  double smallest = 0;
  bool hasNan = false, hasUnknown = false;

private:
  void clear(int64_t terms);
  void note(int64_t k, double size);

  const double *exactFactors = nullptr;
  int64_t exactStride = 1;
  const Bounded *boundedFactors = nullptr;
};

/// The right factors, packed in panels of columns. All are exact.
class Factors {
public:
  /// Element (k, j) lies at data[k * termStride + j * columnStride].
  Factors(const double *data, int64_t terms, int64_t columns,
          int64_t termStride, int64_t columnStride);

  int64_t columns() const { return columnCount; }
  int64_t panels() const {
    return (columnCount + panelColumns - 1) / panelColumns;
  }
  const double *panel(int64_t index) const {
    return packed.data() + index * termCount * panelColumns;
  }
  double at(int64_t k, int64_t j) const {
    return data[k * termStride + j * columnStride];
  }

  struct Column {
    double largest = 0;
    double smallest = 0;
    /// The first term that is NaN, or the number of terms.
    int64_t firstNan = 0;
    /// Where the column's entries of `irregular` begin and end.
    size_t begin = 0, end = 0;
  };
  const Column &column(int64_t j) const {
    return facts[static_cast<size_t>(j)];
  }
  /// The terms of a column that are no regular factors, in ascending order.
  std::vector<int64_t> irregular;

private:
  const double *data;
  int64_t termCount, columnCount, termStride, columnStride;
  std::vector<double> packed;
  std::vector<Column> facts;
};

/// What the loops give for the columns of a panel.
struct PanelTotals {
  double high[panelColumns], low[panelColumns], magnitude[panelColumns],
      radius[panelColumns], largest[panelColumns];

  void copy(const PanelTotals &part, int64_t at, int64_t count);
};

/// What the loops need of the arithmetic.
struct LoopRules {
  bool wide;
  /// The unit roundoffs of the compute type and of long double.
  double unit, ownError;
  double smallestNormal, smallestSubnormal;
  /// Half a unit in the last place of 1.
  double halfUlp;

  explicit LoopRules(const Arithmetic &rules);
};

/// Makes the sums of a row times factors.
class Products {
public:
  Products(const Arithmetic &rules, ProductLoops loops);

  /// Calls visit(column, sum) for each column of a panel; the row may have
  /// fewer terms than the factors, which then are the first ones.
  template <typename Visit>
  void sums(const Row &row, const Factors &y, int64_t panel,
            Visit visit) const {
    PanelTotals totals;
    bool made = makeTotals(row, y, panel, totals);
    int64_t begin = panel * panelColumns;
    int64_t end = std::min(begin + panelColumns, y.columns());
    for (int64_t column = begin; column < end; ++column)
      visit(column, sum(row, y, column, made ? &totals : nullptr));
  }

  /// All panels.
  template <typename Visit>
  void sums(const Row &row, const Factors &y, Visit visit) const {
    for (int64_t panel = 0; panel < y.panels(); ++panel)
      sums(row, y, panel, visit);
  }

private:
  bool makeTotals(const Row &row, const Factors &y, int64_t panel,
                  PanelTotals &totals) const;
  bounded::Summation sum(const Row &row, const Factors &y, int64_t column,
                         const PanelTotals *totals) const;

  const Arithmetic &rules;
  ProductLoops loops;
  LoopRules loopRules;
};

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_PRODUCTS_H
