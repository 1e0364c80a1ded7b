//===- arguments.cpp - Checking and binding the arguments of a launch -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The success path touches no heap memory for ordinary kernels; texts are built
// once a check has failed.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/arguments.h"

#include "support/float_convert.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>

namespace tessera::runtime {

namespace {

const std::string &parameterName(const Parameter &parameter) {
  if (const auto *view = std::get_if<ViewParameter>(&parameter))
    return view->name;
  return std::get<ScalarParameter>(parameter).name;
}

Error launchError(std::string code, std::string message) {
  return {ErrorFamily::Launch, std::move(code), std::move(message), {}};
}

Error countError(const ExecutableInfo &info, size_t found) {
  std::string names;
  for (const Parameter &parameter : info.parameters)
    names += (names.empty() ? "" : ", ") + parameterName(parameter);
  return launchError(
      "launch.count",
      fmt::format("kernel '{}' takes {} arguments ({}), found {}", info.kernel,
                  info.parameters.size(), names, found));
}

/// The addresses a view can touch; begin == end for an empty view.
struct AddressRange {
  uintptr_t begin;
  uintptr_t end;
};

bool isEmpty(const ViewParameter &parameter) {
  for (int64_t extent : parameter.extents)
    if (extent == 0)
      return true;
  return false;
}

Error extentError(const ViewParameter &parameter, const TensorRef &tensor,
                  size_t axis) {
  return launchError("launch.extent",
                     fmt::format("argument '{}': extent {} is {}, expected {}",
                                 parameter.name, axis, tensor.extents[axis],
                                 parameter.extents[axis]));
}

/// Checks everything about one view except its overlap with others.
Result<void> checkView(const ViewParameter &parameter, const TensorRef &tensor,
                       AddressRange &range) {
  const size_t rank = parameter.extents.size();
  if (tensor.extents.size() != rank)
    return launchError("launch.rank",
                       fmt::format("argument '{}': rank is {}, expected {}",
                                   parameter.name, tensor.extents.size(),
                                   rank));
  if (tensor.strides.size() != rank)
    return launchError(
        "launch.stride",
        fmt::format("argument '{}': {} strides are given, expected {}",
                    parameter.name, tensor.strides.size(), rank));
  if (tensor.dtype != parameter.dtype)
    return launchError("launch.dtype",
                       fmt::format("argument '{}': dtype is {}, expected {}",
                                   parameter.name, name(tensor.dtype),
                                   name(parameter.dtype)));
  for (size_t axis = 0; axis < rank; ++axis)
    if (tensor.extents[axis] != parameter.extents[axis])
      return extentError(parameter, tensor, axis);

  range = {0, 0};
  if (isEmpty(parameter))
    return {};

  for (size_t axis = 0; axis < rank; ++axis)
    if (axis < parameter.unitStride.size() && parameter.unitStride[axis] &&
        tensor.extents[axis] > 1 && tensor.strides[axis] != 1)
      return launchError(
          "launch.stride",
          fmt::format("argument '{}': stride {} is {}, expected 1: the kernel "
                      "was compiled for contiguous elements on that axis, "
                      "compile it for this stride or pass a contiguous copy",
                      parameter.name, axis, tensor.strides[axis]));

  const std::optional<ByteRange> reach = reachableBytes(tensor);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  if (!tensor.data)
    return launchError(
        "launch.null",
        fmt::format("argument '{}': the data pointer is null, expected the "
                    "address of a view of {} elements",
                    parameter.name, tensor.elements()));
  if (!reach || address < 0 - static_cast<uint64_t>(reach->begin) ||
      address > std::numeric_limits<uintptr_t>::max() -
                    static_cast<uint64_t>(reach->end))
    return launchError("launch.range",
                       fmt::format("argument '{}': extents {} with strides {} "
                                   "reach beyond the address space",
                                   parameter.name,
                                   fmt::join(tensor.extents, "x"),
                                   fmt::join(tensor.strides, ",")));
  const int64_t size = sizeInBytes(tensor.dtype);
  if ((address & static_cast<uint64_t>(size - 1)) != 0)
    return launchError(
        "launch.alignment",
        fmt::format("argument '{}': address {:#x} is not a multiple of {}, the "
                    "size of {}",
                    parameter.name, address, size, name(tensor.dtype)));
  range.begin = address + static_cast<uint64_t>(reach->begin);
  range.end = address + static_cast<uint64_t>(reach->end);

  if (parameter.writable && overlapsItself(tensor))
    return launchError(
        "launch.overlap",
        fmt::format("argument '{}': extents {} with strides {} address an "
                    "element more than once, expected distinct elements in a "
                    "view that is written",
                    parameter.name, fmt::join(tensor.extents, "x"),
                    fmt::join(tensor.strides, ",")));
  return {};
}

bool isSameView(const TensorRef &a, const TensorRef &b) {
  if (a.data != b.data || a.dtype != b.dtype || a.extents != b.extents)
    return false;
  for (size_t axis = 0; axis < a.extents.size(); ++axis)
    if (a.extents[axis] > 1 && a.strides[axis] != b.strides[axis])
      return false;
  return true;
}

Result<void> checkOverlap(const ExecutableInfo &info,
                          std::span<const Argument> arguments,
                          const support::InlineVector<AddressRange, 12> &ranges,
                          const support::InlineVector<size_t, 12> &views) {
  if (info.alias == AliasMode::Overlap)
    return {};
  for (size_t i = 0; i < views.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (ranges[i].begin >= ranges[k].end || ranges[k].begin >= ranges[i].end)
        continue;
      const auto &first = std::get<ViewParameter>(info.parameters[views[k]]);
      const auto &second = std::get<ViewParameter>(info.parameters[views[i]]);
      if (!first.writable && !second.writable)
        continue;
      const auto &firstView = std::get<TensorRef>(arguments[views[k]]);
      const auto &secondView = std::get<TensorRef>(arguments[views[i]]);
      const bool inPlace =
          info.alias == AliasMode::InPlace && first.writable != second.writable;
      if ((inPlace && isSameView(firstView, secondView)) ||
          !mayOverlap(firstView, secondView))
        continue;
      const bool secondIsWritten = second.writable;
      return launchError(
          "launch.overlap",
          fmt::format("argument '{}' is written and shares memory with "
                      "argument '{}', expected {}",
                      secondIsWritten ? second.name : first.name,
                      secondIsWritten ? first.name : second.name,
                      inPlace ? "exactly the same view or separate memory"
                              : "separate memory"));
    }
  }
  return {};
}

/// A scalar argument as the caller gave it.
struct Number {
  bool isInteger;
  double real;
  int64_t integer;

  std::string str() const {
    return isInteger ? fmt::format("{}", integer) : fmt::format("{}", real);
  }
};

Error scalarError(const ScalarParameter &parameter, const Number &number,
                  std::string_view expected) {
  return launchError("launch.scalar",
                     fmt::format("argument '{}': value is {}, expected {}",
                                 parameter.name, number.str(), expected));
}

Error scalarRangeError(const ScalarParameter &parameter, const Number &number) {
  return scalarError(
      parameter, number,
      fmt::format("a value that {} can hold", name(parameter.dtype)));
}

/// Converts a scalar to its parameter's dtype, into the first bytes of `slot`.
Result<void> bindScalar(const ScalarParameter &parameter, const Number &number,
                        uint64_t &slot) {
  slot = 0;
  if (isFloat(parameter.dtype)) {
    const double value =
        number.isInteger ? static_cast<double>(number.integer) : number.real;
    support::storeFloat(parameter.dtype, &slot, value);
    if (std::isfinite(value) &&
        !std::isfinite(support::loadFloat(parameter.dtype, &slot)))
      return scalarRangeError(parameter, number);
    return {};
  }

  // Everything below works on a 65-bit integer: i64 and u64 both fit.
  __int128 value = number.integer;
  if (!number.isInteger) {
    if (!std::isfinite(number.real) || std::trunc(number.real) != number.real)
      return scalarError(
          parameter, number,
          fmt::format("an integer for dtype {}", name(parameter.dtype)));
    if (std::fabs(number.real) > 0x1p64)
      return scalarRangeError(parameter, number);
    value = static_cast<__int128>(number.real);
  }
  __int128 low = 0, high = 1; // Bool.
  if (isInteger(parameter.dtype)) {
    const int bits = static_cast<int>(8 * sizeInBytes(parameter.dtype));
    const bool isSigned = !isUnsigned(parameter.dtype);
    high = (static_cast<__int128>(1) << (isSigned ? bits - 1 : bits)) - 1;
    low = isSigned ? -high - 1 : 0;
  }
  if (value < low || value > high)
    return scalarRangeError(parameter, number);
  const auto bits = static_cast<uint64_t>(value);
  std::memcpy(&slot, &bits, static_cast<size_t>(sizeInBytes(parameter.dtype)));
  return {};
}

Number numberOf(const Argument &argument) {
  if (const auto *integer = std::get_if<int64_t>(&argument))
    return {true, 0, *integer};
  return {false, std::get<double>(argument), 0};
}

} // namespace

Result<void> bindArguments(const ExecutableInfo &info,
                           std::span<const Argument> arguments,
                           BoundArguments &bound) {
  const size_t count = info.parameters.size();
  if (arguments.size() > count)
    return countError(info, arguments.size());
  support::InlineVector<AddressRange, 12> ranges;
  support::InlineVector<size_t, 12> views;

  for (size_t i = 0; i < count; ++i) {
    const Parameter &parameter = info.parameters[i];
    if (const auto *scalar = std::get_if<ScalarParameter>(&parameter)) {
      Number number{false, scalar->defaultValue, 0};
      if (i < arguments.size()) {
        if (std::holds_alternative<TensorRef>(arguments[i]))
          return launchError(
              "launch.kind",
              fmt::format("argument '{}' is a view, expected a scalar of "
                          "dtype {}",
                          scalar->name, name(scalar->dtype)));
        number = numberOf(arguments[i]);
      } else if (!scalar->hasDefault) {
        return countError(info, arguments.size());
      }
      uint64_t slot = 0;
      if (Result<void> result = bindScalar(*scalar, number, slot); !result)
        return result;
      bound.scalars.push_back(slot);
      continue;
    }

    const auto &view = std::get<ViewParameter>(parameter);
    if (i >= arguments.size())
      return countError(info, arguments.size());
    const auto *tensor = std::get_if<TensorRef>(&arguments[i]);
    if (!tensor)
      return launchError(
          "launch.kind",
          fmt::format("argument '{}' is a scalar, expected a view of rank {} "
                      "and dtype {}",
                      view.name, view.extents.size(), name(view.dtype)));
    AddressRange range{0, 0};
    if (Result<void> result = checkView(view, *tensor, range); !result)
      return result;
    ranges.push_back(range);
    views.push_back(i);
    bound.data.push_back(tensor->data);
    for (int64_t stride : tensor->strides)
      bound.strides.push_back(stride);
  }
  return checkOverlap(info, arguments, ranges, views);
}

std::string describeLaunch(const ExecutableInfo &info,
                           std::span<const Argument> arguments,
                           const LaunchOptions &options) {
  std::string line =
      info.command.empty() ? "tessera run " + info.kernel : info.command;
  std::string views;
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const std::string &parameter = parameterName(info.parameters[i]);
    if (i >= arguments.size()) {
      const auto *scalar = std::get_if<ScalarParameter>(&info.parameters[i]);
      if (scalar && scalar->hasDefault)
        line += fmt::format(" --set {}={}", parameter, scalar->defaultValue);
    } else if (const auto *tensor = std::get_if<TensorRef>(&arguments[i])) {
      views += fmt::format(" {}={}[{}]:{}@{:#x}", parameter,
                           name(tensor->dtype), fmt::join(tensor->extents, ","),
                           fmt::join(tensor->strides, ","),
                           reinterpret_cast<uintptr_t>(tensor->data));
    } else {
      line +=
          fmt::format(" --set {}={}", parameter, numberOf(arguments[i]).str());
    }
  }
  if (options.threads > 0)
    line += fmt::format(" --threads {}", options.threads);
  if (!options.logOptions.empty())
    line += fmt::format(" {}", options.logOptions);
  return line + "  #" + views;
}

} // namespace tessera::runtime
