//===- kernels/oracle/product_loops.h - Sums of products ---------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included once per vector width by products.cpp, inside a namespace and with
// `lanes` doubles per vector defined; needs fused multiply-adds. No include
// guard.
//
// A product of two doubles is its rounded value and the error of that, which a
// fused multiply-add gives exactly; sums are compensated by an error-free
// two-sum. What is lost is of the order of n^2 2^-106 of the sum of magnitudes.
//
//===----------------------------------------------------------------------===//

using Vector __attribute__((vector_size(lanes * 8))) = double;
using Packed __attribute__((vector_size(lanes * 8), aligned(8), may_alias)) =
    double;
using Bits __attribute__((vector_size(lanes * 8))) = int64_t;
using Singles __attribute__((vector_size(lanes * 4))) = float;

inline Vector magnitudeOf(Vector v) {
  return (Vector)((Bits)v & INT64_C(0x7fffffffffffffff));
}
/// `v` where the mask is set, zero elsewhere.
inline Vector where(Bits mask, Vector v) { return (Vector)((Bits)v & mask); }
inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }

/// What is known of the products of `lanes` columns so far.
struct Sums {
  Vector high = {}, low = {}, magnitude = {}, radius = {}, largest = {};

  void add(Vector product) {
    Vector sum = high + product;
    Vector fromProduct = sum - high;
    low += (high - (sum - fromProduct)) + (product - fromProduct);
    high = sum;
  }
  void store(PanelTotals &totals, int64_t at) const {
    *reinterpret_cast<Packed *>(totals.high + at) = high;
    *reinterpret_cast<Packed *>(totals.low + at) = low;
    *reinterpret_cast<Packed *>(totals.magnitude + at) = magnitude;
    *reinterpret_cast<Packed *>(totals.radius + at) = radius;
    *reinterpret_cast<Packed *>(totals.largest + at) = largest;
  }
};

/// Exact left factors, whose products are rounded once or fused into the sum.
/// With `tiny`, products may be below the smallest normal number.
template <int vectors, bool wide, bool tiny>
void exactProducts(const Row &row, int64_t terms, const double *y,
                   const LoopRules &rules, PanelTotals &totals) {
  Sums sums[vectors];
  for (int64_t k = 0; k < terms; ++k, y += panelColumns) {
    Vector x = row.high[k] - (Vector){};
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      Vector factor = *reinterpret_cast<const Packed *>(y + v * lanes);
      Vector product = x * factor;
      sums[v].add(product);
      if constexpr (wide)
        sums[v].low += __builtin_elementwise_fma(x, factor, -product);
      Vector size = magnitudeOf(product);
      sums[v].magnitude += size;
      sums[v].largest = larger(size, sums[v].largest);
      if constexpr (tiny) {
        Vector rounding = size < rules.smallestNormal
                              ? rules.smallestSubnormal - (Vector){}
                              : size * rules.unit;
        sums[v].radius += where(size > 0, rounding);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; ++v) {
    if constexpr (!tiny)
      sums[v].radius = sums[v].magnitude * rules.unit;
    sums[v].store(totals, v * lanes);
  }
}

/// Left factors with radii; each product is rounded and then added.
template <int vectors, bool wide>
void boundedProducts(const Row &row, int64_t terms, const double *y,
                     const LoopRules &rules, PanelTotals &totals) {
  Sums sums[vectors];
  for (int64_t k = 0; k < terms; ++k, y += panelColumns) {
    double high = row.high[k], radius = row.radius[k];
    // An exact zero gives exact zeros.
    if (high == 0 && radius == 0)
      continue;
    bool exact = radius == 0 && row.low[k] == 0;
    Vector x = high - (Vector){}, xLow = row.low[k] - (Vector){};
#pragma clang loop unroll(full)
    for (int v = 0; v < vectors; ++v) {
      Vector factor = *reinterpret_cast<const Packed *>(y + v * lanes);
      Vector product = x * factor;
      Vector error = __builtin_elementwise_fma(x, factor, -product);
      Vector size = magnitudeOf(product);
      Vector propagated = magnitudeOf(factor) * radius;
      // Half a unit in the last place of anything up to here, which is rounded
      // up so that it does not lose a binade.
      Vector reach = (size + propagated) * (1 + 0x1p-51);
      Vector binade = (Vector)((Bits)reach & INT64_C(0x7ff0000000000000));
      Vector rounding =
          larger(binade, rules.smallestNormal - (Vector){}) * rules.halfUlp;
      Vector own = propagated + rounding + size * rules.ownError;
      Bits counts = factor != 0;
      if (exact) {
        // A number of the compute type is no rounding.
        Bits loses = error != 0;
        if constexpr (!wide)
          loses |=
              __builtin_convertvector(__builtin_convertvector(product, Singles),
                                      Vector) != product;
        counts &= loses;
      }
      own = where(counts, own);
      sums[v].add(product);
      sums[v].low += __builtin_elementwise_fma(xLow, factor, error);
      sums[v].magnitude += size;
      sums[v].radius += own;
      sums[v].largest = larger(size + own, sums[v].largest);
    }
  }
#pragma clang loop unroll(full)
  for (int v = 0; v < vectors; ++v)
    sums[v].store(totals, v * lanes);
}

template <int vectors>
void blockProducts(const Row &row, int64_t terms, const double *y,
                   const LoopRules &rules, bool tiny, PanelTotals &totals) {
  if (!row.isExact)
    rules.wide ? boundedProducts<vectors, true>(row, terms, y, rules, totals)
               : boundedProducts<vectors, false>(row, terms, y, rules, totals);
  else if (rules.wide)
    exactProducts<vectors, true, false>(row, terms, y, rules, totals);
  else if (tiny)
    exactProducts<vectors, false, true>(row, terms, y, rules, totals);
  else
    exactProducts<vectors, false, false>(row, terms, y, rules, totals);
}

/// The first `columns` columns of a panel.
inline void panelProducts(const Row &row, int64_t terms, int64_t columns,
                          const double *y, const LoopRules &rules, bool tiny,
                          PanelTotals &totals) {
  constexpr int64_t block = 2 * lanes;
  for (int64_t at = 0; at < columns; at += block) {
    PanelTotals part;
    if (columns - at <= lanes)
      blockProducts<1>(row, terms, y + at, rules, tiny, part);
    else
      blockProducts<2>(row, terms, y + at, rules, tiny, part);
    totals.copy(part, at, std::min<int64_t>(block, columns - at));
  }
}
