//===- support/launch_errors.cpp - What can be wrong with a call ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/launch_errors.h"

#include "support/float_convert.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace tessera::launcherror {

namespace {

Error error(std::string code, std::string message) {
  return {ErrorFamily::Launch, "launch." + code, std::move(message), {}};
}

std::string foundText(std::optional<int64_t> found) {
  return found ? fmt::format(": found {}", *found) : std::string();
}

} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

Error count(Text kernel, size_t expected, Text names, size_t found) {
  return error("count", fmt::format("kernel '{}' takes {} arguments ({}), "
                                    "found {}",
                                    kernel, expected, names, found));
}

Error scalarForView(Text argument, int64_t rank, DType dtype) {
  return error("kind", fmt::format("argument '{}' is a scalar, expected a view "
                                   "of rank {} and dtype {}",
                                   argument, rank, name(dtype)));
}

Error viewForScalar(Text argument, DType dtype) {
  return error("kind", fmt::format("argument '{}' is a view, expected a scalar "
                                   "of dtype {}",
                                   argument, name(dtype)));
}

Error rank(Text argument, int64_t found, int64_t expected) {
  return error("rank", fmt::format("argument '{}': rank is {}, expected {}",
                                   argument, found, expected));
}

Error strideCount(Text argument, size_t found, int64_t expected) {
  return error("stride",
               fmt::format("argument '{}': {} strides are given, expected {}",
                           argument, found, expected));
}

Error unitStride(Text argument, size_t axis, int64_t found) {
  return error(
      "stride",
      fmt::format("argument '{}': stride {} is {}, expected 1: the kernel "
                  "was compiled for contiguous elements on that axis, "
                  "compile it for this stride or pass a contiguous copy",
                  argument, axis, found));
}

Error dtype(Text argument, DType found, DType expected) {
  return error("dtype", fmt::format("argument '{}': dtype is {}, expected {}",
                                    argument, name(found), name(expected)));
}

Error extent(Text argument, size_t axis, int64_t found, int64_t expected) {
  return error("extent",
               fmt::format("argument '{}': extent {} is {}, expected {}",
                           argument, axis, found, expected));
}

Error negativeExtent(Text argument, size_t axis, int64_t found) {
  return error("extent", fmt::format("argument '{}': extent {} is {}, expected "
                                     "at least 0",
                                     argument, axis, found));
}

Error boundExtent(Text argument, size_t axis, int64_t found, Text dim,
                  int64_t expected) {
  return error("extent", fmt::format("argument '{}': extent {} is {}, "
                                     "dimension '{}' is {}",
                                     argument, axis, found, dim, expected));
}

Error negativeDimension(Text dim, std::optional<int64_t> found) {
  if (!found)
    return error("extent", fmt::format("dimension '{}' has a negative extent, "
                                       "expected at least 0; nothing was "
                                       "written",
                                       dim));
  return error("extent", fmt::format("dimension '{}' has extent {}, expected "
                                     "at least 0",
                                     dim, *found));
}

std::optional<Error> memory(Text argument, const TensorRef &tensor) {
  for (int64_t extent : tensor.extents)
    if (extent == 0)
      return std::nullopt;
  if (!tensor.data)
    return error("null",
                 fmt::format("argument '{}': the data pointer is null, "
                             "expected the address of a view of {} elements",
                             argument, tensor.elements()));
  const std::optional<ByteRange> reach = reachableBytes(tensor);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  if (!reach || address < 0 - static_cast<uint64_t>(reach->begin) ||
      address > std::numeric_limits<uintptr_t>::max() -
                    static_cast<uint64_t>(reach->end))
    return error("range", fmt::format("argument '{}': extents {} with strides "
                                      "{} reach beyond the address space",
                                      argument, fmt::join(tensor.extents, "x"),
                                      fmt::join(tensor.strides, ",")));
  const int64_t size = sizeInBytes(tensor.dtype);
  if ((address & static_cast<uint64_t>(size - 1)) != 0)
    return error("alignment",
                 fmt::format("argument '{}': address {:#x} is not a multiple "
                             "of {}, the size of {}",
                             argument, address, size, name(tensor.dtype)));
  return std::nullopt;
}

std::optional<Error> selfOverlap(Text argument, const TensorRef &tensor) {
  if (!overlapsItself(tensor))
    return std::nullopt;
  return error("overlap",
               fmt::format("argument '{}': extents {} with strides {} address "
                           "an element more than once, expected distinct "
                           "elements in a view that is written",
                           argument, fmt::join(tensor.extents, "x"),
                           fmt::join(tensor.strides, ",")));
}

Error overlap(Text written, Text other, bool sameViewAllowed) {
  return error("overlap",
               fmt::format("argument '{}' is written and shares memory with "
                           "argument '{}', expected {}",
                           written, other,
                           sameViewAllowed
                               ? "exactly the same view or separate memory"
                               : "separate memory"));
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Number::Number(const Argument &argument) {
  if (const auto *value = std::get_if<int64_t>(&argument)) {
    isInteger = true;
    integer = *value;
  } else if (const auto *value = std::get_if<double>(&argument)) {
    real = *value;
  }
}

Number::Number(const std::variant<double, int64_t> &value)
    : Number(std::visit([](auto number) { return Argument(number); }, value)) {}

std::string Number::str() const {
  return isInteger ? fmt::format("{}", integer) : fmt::format("{}", real);
}

namespace {

Error scalarError(Text argument, const Number &number, Text expected) {
  return error("scalar", fmt::format("argument '{}': value is {}, expected {}",
                                     argument, number.str(), expected));
}

Error rangeError(Text argument, const Number &number, DType dtype) {
  return scalarError(argument, number,
                     fmt::format("a value that {} can hold", name(dtype)));
}

} // namespace

Result<void> storeScalar(Text argument, DType dtype, const Number &number,
                         uint64_t &slot) {
  slot = 0;
  if (isFloat(dtype)) {
    double value = number.real;
    // An integer is rounded once, not to f64 first.
    if (number.isInteger)
      value = dtype == DType::F32 ? static_cast<float>(number.integer)
                                  : static_cast<double>(number.integer);
    support::storeFloat(dtype, &slot, value);
    if (std::isfinite(value) &&
        !std::isfinite(support::loadFloat(dtype, &slot)))
      return rangeError(argument, number, dtype);
    return {};
  }

  // Everything below works on a 65-bit integer: i64 and u64 both fit.
  __int128 value = number.integer;
  if (!number.isInteger) {
    if (!std::isfinite(number.real) || std::trunc(number.real) != number.real)
      return scalarError(argument, number,
                         fmt::format("an integer for dtype {}", name(dtype)));
    if (std::fabs(number.real) > 0x1p64)
      return rangeError(argument, number, dtype);
    value = static_cast<__int128>(number.real);
  }
  __int128 low = 0, high = 1; // Bool.
  if (isInteger(dtype)) {
    const int bits = static_cast<int>(8 * sizeInBytes(dtype));
    const bool isSigned = !isUnsigned(dtype);
    high = (static_cast<__int128>(1) << (isSigned ? bits - 1 : bits)) - 1;
    low = isSigned ? -high - 1 : 0;
  }
  if (value < low || value > high)
    return rangeError(argument, number, dtype);
  const auto bits = static_cast<uint64_t>(value);
  std::memcpy(&slot, &bits, static_cast<size_t>(sizeInBytes(dtype)));
  return {};
}

//===----------------------------------------------------------------------===//
// What only the data tell
//===----------------------------------------------------------------------===//

Error index(Text view, int64_t axis, int64_t extent,
            std::optional<int64_t> found) {
  return error("index", fmt::format("an index into axis {} of '{}' is outside "
                                    "[0, {}){}; nothing was written",
                                    axis, view, extent, foundText(found)));
}

Error gatherIndex(Text dim, int64_t extent, std::optional<int64_t> found) {
  return error("index", fmt::format("an index into dimension '{}' of a tile is "
                                    "outside [0, {}){}; nothing was written",
                                    dim, extent, foundText(found)));
}

Error reshape(std::optional<int64_t> from, std::optional<int64_t> to) {
  std::string what = from && to
                         ? fmt::format("of {} elements to {}", *from, *to)
                         : "to another number of elements";
  return error("reshape", fmt::format("a reshape {}, expected equal numbers of "
                                      "elements",
                                      what));
}

Error reshapeOverflow(int64_t from, std::span<const int64_t> to) {
  return error("reshape",
               fmt::format("a reshape of {} elements to extents {}, whose "
                           "product does not fit 63 bits, expected equal "
                           "numbers of elements",
                           from, fmt::join(to, "x")));
}

} // namespace tessera::launcherror
