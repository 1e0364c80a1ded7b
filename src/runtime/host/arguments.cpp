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

#include "runtime/host/packed.h"
#include "support/launch_errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace tessera::runtime {

namespace {

const std::string &parameterName(const Parameter &parameter) {
  if (const auto *view = std::get_if<ViewParameter>(&parameter))
    return view->name;
  return std::get<ScalarParameter>(parameter).name;
}

Error countError(const ExecutableInfo &info, size_t found) {
  std::string names;
  for (const Parameter &parameter : info.parameters)
    names += (names.empty() ? "" : ", ") + parameterName(parameter);
  return launcherror::count(info.kernel, info.parameters.size(), names, found);
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

/// Checks everything about one view except its overlap with others.
Result<void> checkView(const ViewParameter &parameter, const TensorRef &tensor,
                       AddressRange &range) {
  const auto rank = static_cast<int64_t>(parameter.extents.size());
  if (tensor.rank() != rank)
    return launcherror::rank(parameter.name, tensor.rank(), rank);
  if (static_cast<int64_t>(tensor.strides.size()) != rank)
    return launcherror::strideCount(parameter.name, tensor.strides.size(),
                                    rank);
  if (tensor.dtype != parameter.dtype)
    return launcherror::dtype(parameter.name, tensor.dtype, parameter.dtype);
  for (size_t axis = 0; axis < parameter.extents.size(); ++axis)
    if (tensor.extents[axis] != parameter.extents[axis])
      return launcherror::extent(parameter.name, axis, tensor.extents[axis],
                                 parameter.extents[axis]);

  range = {0, 0};
  if (isEmpty(parameter))
    return {};

  for (size_t axis = 0; axis < parameter.extents.size(); ++axis)
    if (axis < parameter.unitStride.size() && parameter.unitStride[axis] &&
        tensor.extents[axis] > 1 && tensor.strides[axis] != 1)
      return launcherror::unitStride(parameter.name, axis,
                                     tensor.strides[axis]);

  if (std::optional<Error> error = launcherror::memory(parameter.name, tensor))
    return *error;
  const std::optional<ByteRange> reach = reachableBytes(tensor);
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  range.begin = address + static_cast<uint64_t>(reach->begin);
  range.end = address + static_cast<uint64_t>(reach->end);

  if (parameter.writable)
    if (std::optional<Error> error =
            launcherror::selfOverlap(parameter.name, tensor))
      return *error;
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
      return launcherror::overlap(secondIsWritten ? second.name : first.name,
                                  secondIsWritten ? first.name : second.name,
                                  inPlace);
    }
  }
  return {};
}

} // namespace

Result<void> checkArray(const ViewParameter &parameter,
                        const TensorRef &tensor) {
  AddressRange range{0, 0};
  return checkView(parameter, tensor, range);
}

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
      launcherror::Number number(scalar->defaultValue);
      if (i < arguments.size()) {
        if (std::holds_alternative<TensorRef>(arguments[i]) ||
            std::holds_alternative<Packed>(arguments[i]))
          return launcherror::viewForScalar(scalar->name, scalar->dtype);
        number = launcherror::Number(arguments[i]);
      } else if (!scalar->hasDefault) {
        return countError(info, arguments.size());
      }
      uint64_t slot = 0;
      if (Result<void> result = launcherror::storeScalar(
              scalar->name, scalar->dtype, number, slot);
          !result)
        return result;
      bound.scalars.push_back(slot);
      continue;
    }

    const auto &view = std::get<ViewParameter>(parameter);
    if (i >= arguments.size())
      return countError(info, arguments.size());
    if (view.packed) {
      Result<void *> panels = bindPacked(info, i, arguments[i]);
      if (!panels)
        return panels.error();
      bound.data.push_back(*panels);
      for (size_t axis = 0; axis < view.extents.size(); ++axis)
        bound.strides.push_back(0);
      continue;
    }
    if (std::holds_alternative<Packed>(arguments[i]))
      return Error{ErrorFamily::Launch,
                   "launch.packed",
                   fmt::format("argument '{}': found a packed array, and "
                               "kernel '{}' was compiled for one as it is",
                               view.name, info.kernel),
                   {}};
    const auto *tensor = std::get_if<TensorRef>(&arguments[i]);
    if (!tensor)
      return launcherror::scalarForView(
          view.name, static_cast<int64_t>(view.extents.size()), view.dtype);
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
        line += fmt::format(" --set {}={}", parameter,
                            launcherror::Number(scalar->defaultValue).str());
    } else if (const auto *tensor = std::get_if<TensorRef>(&arguments[i])) {
      views += fmt::format(" {}={}[{}]:{}@{:#x}", parameter,
                           name(tensor->dtype), fmt::join(tensor->extents, ","),
                           fmt::join(tensor->strides, ","),
                           reinterpret_cast<uintptr_t>(tensor->data));
    } else if (const auto *packed = std::get_if<Packed>(&arguments[i])) {
      views += fmt::format(" {}=packed, {} bytes", parameter, packed->bytes());
    } else {
      line += fmt::format(" --set {}={}", parameter,
                          launcherror::Number(arguments[i]).str());
    }
  }
  if (options.threads > 0)
    line += fmt::format(" --threads {}", options.threads);
  if (!options.logOptions.empty())
    line += fmt::format(" {}", options.logOptions);
  return line + "  #" + views;
}

} // namespace tessera::runtime
