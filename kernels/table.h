//===- kernels/table.h - The operator table ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One row per library operator. The command line, the tests and the benchmarks
// know operators only through this table: a new operator is one kernel, one
// oracle and one row.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_TABLE_H
#define TESSERA_KERNELS_TABLE_H

#include "kernels/generate.h"
#include "tessera/dsl/kernel.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::kernels {

/// Extents by dimension name.
using Dims = std::map<std::string, int64_t, std::less<>>;
/// Values of scalars and constants by name.
using Settings = std::map<std::string, Constant, std::less<>>;

/// What the elements of an input mean, and so how to make some.
enum class Content : uint8_t {
  /// Any values of the type.
  Values,
  /// Which elements count.
  Mask,
  /// Positions below the extent of `limit`.
  Index,
  /// Numbers of elements up to the extent of `limit`.
  Length,
};

struct ArrayInfo {
  std::string_view name;
  /// The extent of each axis: a dimension, "1", "dimension/2",
  /// "dimension/other dimension", or "oh" and "ow", "ph" and "pw": those of an
  /// image on which windows were laid, of kh x kw or to pool.
  std::vector<std::string_view> axes;
  Content content = Content::Values;
  std::string_view limit = {};
  /// The constant that, when true, swaps the last two axes; empty for none.
  std::string_view swappedBy = {};
};

/// What a constant that is an integer may be.
struct ConstantRange {
  std::string_view name;
  int64_t low = 0, high = 0;
  /// Where the values have names, those of low, low + 1 and so on.
  std::vector<std::string_view> names = {};
};

struct Operator {
  std::string_view name;
  /// What it computes, in one line.
  std::string_view summary;
  /// Dimensions in the order of the command line, and extents to show it with.
  std::vector<std::string_view> dims;
  std::vector<int64_t> defaultExtents;
  /// One entry per view parameter of the kernel, in its order.
  std::vector<ArrayInfo> arrays;
  Kernel (*kernel)() = nullptr;
  /// The storage types of `Float` parameters it is made for.
  std::span<const DType> dtypes;
  /// The name under which oracle::findOracle knows it.
  std::string_view oracle;
  /// A dimension whose extent must be even; empty for none.
  std::string_view evenDim = {};
  /// A dimension whose extent must be a multiple of another's.
  std::string_view multipleDim = {}, multipleOf = {};
  /// Constants whose values have names or limits.
  std::vector<ConstantRange> ranges = {};
};

/// A constant's range; null for one that has none.
const ConstantRange *findRange(const Operator &op, std::string_view constant);

/// The value of a constant that a word names; std::nullopt for none.
std::optional<int64_t> namedValue(const Operator &op, std::string_view constant,
                                  std::string_view word);

/// Fails (family Usage) when a constant has a value out of its range.
Result<void> checkSettings(const Operator &op, const Settings &settings);

/// All operators, in the order in which they are listed to users.
std::span<const Operator> operators();

/// The operator of that name; null for an unknown one.
const Operator *findOperator(std::string_view name);

/// The array of that name; null for an unknown one.
const ArrayInfo *findArray(const Operator &op, std::string_view name);

/// Fails (family Usage) when a dimension is missing, unknown, negative, or
/// breaks one of the operator's conditions.
Result<void> checkDims(const Operator &op, const Dims &dims);

/// The extents of an array under these dimensions and constants. The dimensions
/// must have passed checkDims.
std::vector<int64_t> arrayExtents(const ArrayInfo &array, const Dims &dims,
                                  const Settings &constants = {});

/// How generate() makes an array's elements by default.
GenerateOptions generation(const ArrayInfo &array, DType dtype,
                           const Dims &dims, uint64_t seed);

} // namespace tessera::kernels

#endif // TESSERA_KERNELS_TABLE_H
