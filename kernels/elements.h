//===- kernels/elements.h - Element access for tensors ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reading and writing the elements of a strided view in row-major order,
// whatever its type and strides. For oracles, generators and verification, not
// for speed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ELEMENTS_H
#define TESSERA_KERNELS_ELEMENTS_H

#include "tessera/tensor.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera::kernels {

/// Calls `visit(address, linearIndex)` for each element in row-major order.
void forEachElement(const TensorRef &tensor,
                    const std::function<void(void *, int64_t)> &visit);

/// The element at `address` as a number; exact for every floating type.
double loadFloatElement(DType type, const void *address);
/// The element at `address` of Bool or an integer type; U64 wraps.
int64_t loadIntegerElement(DType type, const void *address);

/// Writes a floating element, rounded once to nearest even.
void storeFloatElement(DType type, void *address, double value);
/// Writes a Bool (nonzero gives 1) or integer element; the value wraps.
void storeIntegerElement(DType type, void *address, int64_t value);

/// All elements of a floating tensor in row-major order.
std::vector<double> loadFloats(const TensorRef &tensor);
/// All elements of a Bool or integer tensor in row-major order.
std::vector<int64_t> loadIntegers(const TensorRef &tensor);

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_ELEMENTS_H
