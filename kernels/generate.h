//===- kernels/generate.h - Arguments from a seed ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills arrays for runs, tests and benchmarks. Element i of the argument
// `name` depends on (seed, name, i) alone, i being its row-major index: not on
// the other arguments, the strides or the order in which elements are filled.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_GENERATE_H
#define TESSERA_KERNELS_GENERATE_H

#include "tessera/error.h"
#include "tessera/pool.h"
#include "tessera/tensor.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::kernels {

enum class ValueClass : uint8_t {
  /// Mean 0, standard deviation 1 (floating types).
  Normal,
  /// Uniform in [low, high) (any type).
  Integers,
  /// False in one element of five (Bool; integers and floats get 0 or 1).
  Mask,
  /// Every element -inf.
  NegativeInfinity,
  /// Normal, one element of 16 (at least one of the array) NaN.
  SprinkledNan,
  /// Normal, one element of 16 (at least one) an infinity of either sign.
  SprinkledInfinity,
  /// Subnormal numbers of the type, of both signs.
  Subnormal,
  /// Normal around a mean of 1e4 to 1e7 per row (at most a quarter of the
  /// type's range).
  HugeOffset,
  /// Zeros of both signs.
  SignedZeros,
  /// Within a factor of 256 of the type's largest number, of both signs.
  LargeMagnitude,
};

/// "normal", "integers", "mask", "negative-infinity", "nan", "infinity",
/// "subnormal", "huge-offset", "signed-zeros", "large-magnitude".
std::string_view name(ValueClass valueClass);
/// The inverse of name().
std::optional<ValueClass> parseValueClass(std::string_view text);

struct GenerateOptions {
  uint64_t seed = 0;
  ValueClass valueClass = ValueClass::Normal;
  /// The range of Integers.
  int64_t low = 0;
  int64_t high = 256;
  /// Where long arguments are filled, on at most so many threads (0: all of
  /// them); null for the caller alone. The elements do not depend on it.
  TaskPool *pool = nullptr;
  int threads = 0;
};

/// The class that bare extents imply: Normal for floats, Integers for integers,
/// Mask for Bool.
ValueClass defaultValueClass(DType type);

/// Fills `tensor`. Fails where the type cannot hold the class (a NaN among
/// integers, an infinity in F8E4M3) or the range is empty.
Result<void> generate(const TensorRef &tensor, std::string_view argument,
                      const GenerateOptions &options);

/// The 64 random bits of element `index` of an argument; `stream` tells several
/// draws for the same element apart.
uint64_t randomBits(uint64_t seed, std::string_view argument, uint64_t index,
                    uint64_t stream = 0);

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_GENERATE_H
