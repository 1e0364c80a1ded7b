//===- tensor.cpp - Strided views and their overlap -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reach and overlap of views. Both overlap questions become one: has the
// equation sum of c[k] * x[k] = t a solution with integers 0 <= x[k] <= n[k]?
// The solver of interval_equation.h answers it exactly for every view met in
// practice.
//
//===----------------------------------------------------------------------===//

#include "tessera/tensor.h"

#include "runtime/host/interval_equation.h"

#include <cstdlib>
#include <limits>

namespace tessera {

namespace {

using runtime::Answer;
using runtime::IntervalEquation;

bool isEmpty(const TensorRef &tensor) {
  for (int64_t extent : tensor.extents)
    if (extent <= 0)
      return true;
  return false;
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value)
                   : static_cast<uint64_t>(value);
}

/// True when, from the smallest stride to the largest, each one steps over
/// everything the smaller ones reach: then no two index tuples coincide.
bool stridesAreNested(const TensorRef &tensor) {
  const size_t rank = tensor.extents.size();
  // Selects axes by growing stride; ranks are small, so no sorting is needed.
  __int128 reach = 0;
  uint64_t previous = 0;
  size_t axesLeft = 0;
  for (size_t axis = 0; axis < rank; ++axis)
    axesLeft += tensor.extents[axis] > 1;
  while (axesLeft > 0) {
    uint64_t smallest = std::numeric_limits<uint64_t>::max();
    int64_t extent = 0;
    size_t same = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const uint64_t stride = magnitude(tensor.strides[axis]);
      if (tensor.extents[axis] <= 1 || stride <= previous)
        continue;
      same = stride < smallest ? 1 : same + (stride == smallest);
      if (stride < smallest) {
        smallest = stride;
        extent = tensor.extents[axis];
      }
    }
    if (same != 1 || static_cast<__int128>(smallest) <= reach)
      return false;
    reach += static_cast<__int128>(smallest) * (extent - 1);
    previous = smallest;
    --axesLeft;
  }
  return true;
}

/// Adds the bytes that `tensor` occupies, times `sign`, to the equation: one
/// unknown per axis with its range shifted to start at 0. Returns the constant
/// that the shifts add.
__int128 addAxes(IntervalEquation &equation, const TensorRef &tensor,
                 int sign) {
  __int128 shift = 0;
  const __int128 size = sizeInBytes(tensor.dtype);
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
    const int64_t last = tensor.extents[axis] - 1;
    __int128 step = sign * size * tensor.strides[axis];
    if (step < 0) {
      shift += step * last;
      step = -step;
    }
    equation.add(step, last);
  }
  return shift;
}

} // namespace

TensorRef TensorRef::dense(void *data, DType dtype,
                           std::vector<int64_t> extents) {
  TensorRef tensor{data, dtype, std::move(extents), {}};
  tensor.strides.resize(tensor.extents.size());
  int64_t stride = 1;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    tensor.strides[axis] = stride;
    const int64_t extent = tensor.extents[axis] > 1 ? tensor.extents[axis] : 1;
    if (__builtin_mul_overflow(stride, extent, &stride))
      stride = std::numeric_limits<int64_t>::max();
  }
  return tensor;
}

int64_t TensorRef::elements() const {
  if (isEmpty(*this))
    return 0;
  int64_t count = 1;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(count, extent, &count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

std::optional<ByteRange> reachableBytes(const TensorRef &tensor) {
  if (isEmpty(tensor))
    return ByteRange{};
  const int64_t size = sizeInBytes(tensor.dtype);
  ByteRange range{0, size};
  for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
    int64_t offset = 0;
    if (__builtin_mul_overflow(tensor.extents[axis] - 1, tensor.strides[axis],
                               &offset) ||
        __builtin_mul_overflow(offset, size, &offset))
      return std::nullopt;
    int64_t &bound = offset < 0 ? range.begin : range.end;
    if (__builtin_add_overflow(bound, offset, &bound))
      return std::nullopt;
  }
  return range;
}

bool overlapsItself(const TensorRef &tensor) {
  if (isEmpty(tensor) || stridesAreNested(tensor))
    return false;
  if (!reachableBytes(tensor))
    return true; // Not a view of real memory; sums below could overflow.
  const size_t rank = tensor.extents.size();
  for (size_t axis = 0; axis < rank; ++axis)
    if (tensor.extents[axis] > 1 && tensor.strides[axis] == 0)
      return true;

  // Two index tuples that coincide differ by d with |d[k]| < extent[k] and
  // sum d[k] * stride[k] = 0. Take the last axis with d[k] != 0 and, by
  // symmetry, d[k] >= 1 there; the axes before it are free.
  for (size_t top = 0; top < rank; ++top) {
    if (tensor.extents[top] <= 1)
      continue;
    IntervalEquation equation;
    __int128 target = 0;
    for (size_t axis = 0; axis < top; ++axis) {
      const __int128 step = magnitude(tensor.strides[axis]);
      const __int128 last = tensor.extents[axis] - 1;
      if (last < 1)
        continue;
      equation.add(step, 2 * last); // d + last, in [0, 2 * last]
      target += step * last;
    }
    const __int128 step = magnitude(tensor.strides[top]);
    equation.add(step, tensor.extents[top] - 2); // d - 1
    target -= step;
    if (equation.solve(target) != Answer::No)
      return true;
  }
  return false;
}

bool mayOverlap(const TensorRef &a, const TensorRef &b) {
  if (isEmpty(a) || isEmpty(b))
    return false;
  const std::optional<ByteRange> rangeA = reachableBytes(a);
  const std::optional<ByteRange> rangeB = reachableBytes(b);
  if (!rangeA || !rangeB)
    return true;
  const auto addressA =
      static_cast<__int128>(reinterpret_cast<uintptr_t>(a.data));
  const auto addressB =
      static_cast<__int128>(reinterpret_cast<uintptr_t>(b.data));
  if (addressA + rangeA->end <= addressB + rangeB->begin ||
      addressB + rangeB->end <= addressA + rangeA->begin)
    return false;

  // A shared byte: addressA + (axes of a) + p = addressB + (axes of b) + q with
  // p and q inside one element. p - q becomes one unknown of step 1.
  IntervalEquation equation;
  const int64_t sizeA = sizeInBytes(a.dtype);
  const int64_t sizeB = sizeInBytes(b.dtype);
  __int128 target = addressB - addressA + (sizeB - 1);
  equation.add(1, sizeA + sizeB - 2);
  target -= addAxes(equation, a, 1);
  target -= addAxes(equation, b, -1);
  return equation.solve(target) != Answer::No;
}

} // namespace tessera
