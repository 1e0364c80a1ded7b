//===- tessera/dsl/ops.h - Operations on tiles ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tiles can be computed with. Operands of elementwise operations are
// broadcast by the identity of their dimensions and must have one element type:
// conversions are written with cast(). Edge cases are in docs/semantics.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_OPS_H
#define TESSERA_DSL_OPS_H

#include "tessera/dsl/dim.h"
#include "tessera/dsl/options.h"

#include <functional>
#include <span>

namespace tessera {

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Tile operator+(Arg a, Arg b);
Tile operator-(Arg a, Arg b);
Tile operator*(Arg a, Arg b);
/// Integers: truncating, x / 0 = 0.
Tile operator/(Arg a, Arg b);
/// Integers only; x % 0 = 0.
Tile operator%(Arg a, Arg b);
/// Integers only; a shift by the width or more gives 0 (or the sign).
Tile operator<<(Arg a, Arg b);
Tile operator>>(Arg a, Arg b);
/// On bool: logic. On integers: bits.
Tile operator&(Arg a, Arg b);
Tile operator|(Arg a, Arg b);
Tile operator^(Arg a, Arg b);
Tile operator~(Arg a);
Tile operator!(Arg a);
Tile operator-(Arg a);
Tile operator==(Arg a, Arg b);
Tile operator!=(Arg a, Arg b);
Tile operator<(Arg a, Arg b);
Tile operator<=(Arg a, Arg b);
Tile operator>(Arg a, Arg b);
Tile operator>=(Arg a, Arg b);

/// `condition ? a : b` per element; both are computed.
Tile select(Arg condition, Arg a, Arg b);
/// Propagate NaN; -0 is below +0.
Tile max(Arg a, Arg b);
Tile min(Arg a, Arg b);
/// Ignore a NaN.
Tile maxNum(Arg a, Arg b);
Tile minNum(Arg a, Arg b);
/// a * b + c with one rounding.
Tile fma(Arg a, Arg b, Arg c);

Tile exp(Arg a);
Tile exp2(Arg a);
Tile expm1(Arg a);
Tile log(Arg a);
Tile log2(Arg a);
Tile log1p(Arg a);
Tile tanh(Arg a);
Tile erf(Arg a);
Tile sin(Arg a);
Tile cos(Arg a);
Tile sqrt(Arg a);
Tile rsqrt(Arg a);
/// 1 / (1 + exp(-a)).
Tile sigmoid(Arg a);
Tile abs(Arg a);
Tile floor(Arg a);
Tile ceil(Arg a);
/// To the nearest integer, ties to even.
Tile round(Arg a);
Tile trunc(Arg a);

/// Conversion to a type that tiles compute in (bool, an integer type, f32,
/// f64).
Tile cast(Arg a, DType type);
/// Rounds to the nearest value of a narrower floating type; the element type
/// stays. No optimization removes the rounding.
Tile roundTo(Arg a, DType type);
/// a / b rounded up, for integers of which b is positive.
Tile ceilDiv(Arg a, Arg b);

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// A tile of `value` over `dims`; without a type, `value` decides it as in
/// Tile's constructor.
Tile full(DimList dims, Arg value);
Tile full(DimList dims, Arg value, DType type);
/// Repeats `a` along the dimensions of `dims` it does not have; the result has
/// exactly `dims`, in that order.
Tile broadcast(Arg a, DimList dims);
/// The same tile with its axes in the order of `dims`.
Tile transpose(Arg a, DimList dims);
/// The same elements in row-major order under other dimensions.
Tile reshape(Arg a, DimList dims);
/// source[..., along = indices], or the fill (0) outside the dimension. The
/// result has the dimensions of `indices`, then those of `source` but `along`.
Tile gather(Arg source, Arg indices, const Dim &along, Arg fill = {});

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

Tile sum(Arg a, DimList over, Order order = Order::Unordered);
Tile prod(Arg a, DimList over, Order order = Order::Unordered);
Tile max(Arg a, DimList over, Order order = Order::Unordered);
Tile min(Arg a, DimList over, Order order = Order::Unordered);
Tile maxNum(Arg a, DimList over, Order order = Order::Unordered);
Tile minNum(Arg a, DimList over, Order order = Order::Unordered);
/// The sum divided by the number of elements; NaN of none.
Tile mean(Arg a, DimList over, Order order = Order::Unordered);
/// On bool.
Tile any(Arg a, DimList over);
Tile all(Arg a, DimList over);
/// Position of the largest (smallest) element as i64: NaN is largest, ties keep
/// the lowest position, -1 of none.
Tile argMax(Arg a, const Dim &along);
Tile argMin(Arg a, const Dim &along);

/// Combines (left values, right values) into as many values; scalars.
using Combiner = std::function<std::vector<Tile>(std::span<const Tile> left,
                                                 std::span<const Tile> right)>;
/// Reduces several tiles of the same dimensions at once. `identities` has one
/// number or scalar tile per input. For Order::Unordered the combination must
/// be associative and commutative.
std::vector<Tile> reduce(std::vector<Arg> inputs, DimList over,
                         std::vector<Arg> identities, const Combiner &combine,
                         Order order = Order::Unordered);
/// The same for one tile.
Tile reduce(Arg a, DimList over, Arg identity,
            const std::function<Tile(Tile, Tile)> &combine,
            Order order = Order::Unordered);

struct ScanOptions {
  /// Element i excludes its own contribution.
  bool exclusive = false;
  /// From the end.
  bool reverse = false;
  Order order = Order::Unordered;
};
Tile cumsum(Arg a, const Dim &along, ScanOptions options = {});
Tile cumprod(Arg a, const Dim &along, ScanOptions options = {});
Tile cummax(Arg a, const Dim &along, ScanOptions options = {});
Tile cummin(Arg a, const Dim &along, ScanOptions options = {});
std::vector<Tile> scan(std::vector<Arg> inputs, const Dim &along,
                       std::vector<Arg> identities, const Combiner &combine,
                       ScanOptions options = {});

/// A tile's mean, its deviations from the mean and their mean square. Accurate
/// whatever the offset of the data: the deviations are taken from a first mean
/// and then corrected by their own mean (docs/semantics.md, layer_norm).
struct Statistics {
  Tile mean;
  Tile deviation;
  Tile variance;
};
Statistics statistics(Arg a, DimList over, Order order = Order::Unordered);

//===----------------------------------------------------------------------===//
// Contraction and order
//===----------------------------------------------------------------------===//

struct ContractOptions {
  /// Added to the result; its dimensions decide the result's axis order.
  Arg acc = {};
  Order order = Order::Unordered;
};
/// The sum over `over` of a * b. Dimensions that both operands have and that
/// are not summed are batch dimensions.
Tile contract(Arg a, Arg b, DimList over, ContractOptions options = {});

struct Sorted {
  Tile values;
  /// Where each value stood, as i64.
  Tile indices;
};
/// Stable; NaN is largest.
Sorted sort(Arg a, const Dim &along, bool descending = false);
/// The first elements of sort(), as many as `k` has: dimension `k` in place of
/// `along`, as the first axis.
Sorted topK(Arg a, const Dim &along, const Dim &k, bool largest = true);

} // namespace tessera

#endif // TESSERA_DSL_OPS_H
