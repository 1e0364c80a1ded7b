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

/// Integers wrap; not for bool.
Tile operator+(Arg a, Arg b);
/// Integers wrap; not for bool.
Tile operator-(Arg a, Arg b);
/// Integers wrap; not for bool.
Tile operator*(Arg a, Arg b);
/// Floats: IEEE 754. Integers: truncating, x / 0 = 0, MIN / -1 = MIN.
Tile operator/(Arg a, Arg b);
/// Integers only; x % 0 = 0.
Tile operator%(Arg a, Arg b);
/// Integers only; a shift by the width or more gives 0 (or the sign).
Tile operator<<(Arg a, Arg b);
/// Arithmetic for signed integers, logical for unsigned ones.
Tile operator>>(Arg a, Arg b);
/// On bool: logic. On integers: bits.
Tile operator&(Arg a, Arg b);
/// As operator&.
Tile operator|(Arg a, Arg b);
/// As operator&.
Tile operator^(Arg a, Arg b);
/// Every bit of an integer inverted; for bool, not.
Tile operator~(Arg a);
/// Not, of bool.
Tile operator!(Arg a);
/// Integers wrap: -MIN = MIN.
Tile operator-(Arg a);
/// Comparisons give bool per element. With a NaN all are false but !=; -0 == 0.
Tile operator==(Arg a, Arg b);
/// True with a NaN.
Tile operator!=(Arg a, Arg b);
/// As operator==, by size; unsigned integers as such.
Tile operator<(Arg a, Arg b);
/// As operator<.
Tile operator<=(Arg a, Arg b);
/// As operator<.
Tile operator>(Arg a, Arg b);
/// As operator<.
Tile operator>=(Arg a, Arg b);

/// `condition ? a : b` per element; both are computed.
Tile select(Arg condition, Arg a, Arg b);
/// Propagate NaN; -0 is below +0.
Tile max(Arg a, Arg b);
/// As max().
Tile min(Arg a, Arg b);
/// Ignore a NaN.
Tile maxNum(Arg a, Arg b);
/// As maxNum().
Tile minNum(Arg a, Arg b);
/// a * b + c with one rounding.
Tile fma(Arg a, Arg b, Arg c);

// Functions of floats. Their error is bounded by the tier (docs/numerics.md);
// special arguments follow IEEE conventions in every tier.

/// e^a.
Tile exp(Arg a);
/// 2^a.
Tile exp2(Arg a);
/// e^a - 1, accurate near 0.
Tile expm1(Arg a);
/// The natural logarithm; -inf of 0, NaN below.
Tile log(Arg a);
/// The logarithm to base 2.
Tile log2(Arg a);
/// log(1 + a), accurate near 0.
Tile log1p(Arg a);
/// The hyperbolic tangent.
Tile tanh(Arg a);
/// The error function.
Tile erf(Arg a);
/// The sine of an angle in radians; NaN of an infinity.
Tile sin(Arg a);
/// The cosine of an angle in radians; NaN of an infinity.
Tile cos(Arg a);
/// The square root, correctly rounded; NaN below -0.
Tile sqrt(Arg a);
/// 1 / sqrt(a); an infinity of a zero, with its sign.
Tile rsqrt(Arg a);
/// 1 / (1 + exp(-a)).
Tile sigmoid(Arg a);
/// The magnitude, of floats and integers; abs(MIN) = MIN.
Tile abs(Arg a);
/// The largest integer not above a, as a float.
Tile floor(Arg a);
/// The smallest integer not below a, as a float.
Tile ceil(Arg a);
/// To the nearest integer, ties to even.
Tile round(Arg a);
/// Towards zero.
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
/// The same in a type that tiles compute in.
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

// Each removes the dimensions `over`, which the operand must have; the others
// stay in their order. What a reduction of no elements gives stands with it.

/// The sum; 0 of none.
Tile sum(Arg a, DimList over, Order order = Order::Unordered);
/// The product; 1 of none.
Tile prod(Arg a, DimList over, Order order = Order::Unordered);
/// NaN if any element is; -inf, or the type's smallest integer, of none.
Tile max(Arg a, DimList over, Order order = Order::Unordered);
/// NaN if any element is; inf, or the type's largest integer, of none.
Tile min(Arg a, DimList over, Order order = Order::Unordered);
/// Of floats, without regard to NaN; -inf of none.
Tile maxNum(Arg a, DimList over, Order order = Order::Unordered);
/// Of floats, without regard to NaN; inf of none.
Tile minNum(Arg a, DimList over, Order order = Order::Unordered);
/// The sum divided by the number of elements; NaN of none.
Tile mean(Arg a, DimList over, Order order = Order::Unordered);
/// On bool; false of none.
Tile any(Arg a, DimList over);
/// On bool; true of none.
Tile all(Arg a, DimList over);
/// Position of the largest (smallest) element as i64: NaN is largest, ties keep
/// the lowest position, -1 of none.
Tile argMax(Arg a, const Dim &along);
/// The same for the smallest element.
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

/// How a scan runs along its dimension.
struct ScanOptions {
  /// Element i excludes its own contribution.
  bool exclusive = false;
  /// From the end.
  bool reverse = false;
  Order order = Order::Unordered;
};
/// Running sums: element i of the result is the sum of elements 0 to i. The
/// result has the operand's dimensions.
Tile cumsum(Arg a, const Dim &along, ScanOptions options = {});
/// Running products.
Tile cumprod(Arg a, const Dim &along, ScanOptions options = {});
/// Running maxima; NaN from the first NaN on.
Tile cummax(Arg a, const Dim &along, ScanOptions options = {});
/// Running minima; NaN from the first NaN on.
Tile cummin(Arg a, const Dim &along, ScanOptions options = {});
/// Running combinations of several tiles at once; operands as in reduce().
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
/// Over the dimensions `over`; NaN of no elements.
Statistics statistics(Arg a, DimList over, Order order = Order::Unordered);

//===----------------------------------------------------------------------===//
// Contraction and order
//===----------------------------------------------------------------------===//

/// What a contraction adds to, and its order.
struct ContractOptions {
  /// Added to the result; its dimensions decide the result's axis order.
  Arg acc = {};
  Order order = Order::Unordered;
};
/// The sum over `over` of a * b. Dimensions that both operands have and that
/// are not summed are batch dimensions.
Tile contract(Arg a, Arg b, DimList over, ContractOptions options = {});

/// Sorted elements and where they came from.
struct Sorted {
  Tile values;
  /// Where each value stood, as i64.
  Tile indices;
};
/// Sorts along a dimension. Stable in both directions; NaN is largest, -0 and
/// +0 tie.
Sorted sort(Arg a, const Dim &along, bool descending = false);
/// The first elements of sort(), as many as `k` has: dimension `k` in place of
/// `along`, as the first axis.
Sorted topK(Arg a, const Dim &along, const Dim &k, bool largest = true);

} // namespace tessera

#endif // TESSERA_DSL_OPS_H
