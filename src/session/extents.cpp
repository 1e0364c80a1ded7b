//===- session/extents.cpp - Dimensions from what the user gave -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/extents.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace tessera::session {

std::string describeExtents(const std::vector<int64_t> &extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

namespace {

Error usage(std::string message) {
  return {ErrorFamily::Usage, "usage.extents", std::move(message), {}};
}

/// Collects the extents of an operator's dimensions from several sources.
class DimCollector {
public:
  DimCollector(const kernels::Operator &op, const RunRequest &request)
      : op(op), request(request), dims(request.dims) {}

  Result<kernels::Dims> run() {
    // Masks may broadcast, so they speak last.
    for (bool masks : {false, true})
      for (const auto &[name, tensor] : request.inputs) {
        const kernels::ArrayInfo *array = kernels::findArray(op, name);
        if (!array || (array->content == kernels::Content::Mask) != masks)
          continue;
        if (Result<void> status = take(*array, tensor); !status)
          return status.error();
      }
    if (request.dims.empty())
      for (size_t i = 0; i < op.dims.size(); ++i)
        dims.emplace(op.dims[i], op.defaultExtents[i]);
    return dims;
  }

private:
  Result<void> take(const kernels::ArrayInfo &array, const TensorRef &tensor) {
    std::vector<std::string_view> axes = array.axes;
    auto swap = request.settings.find(array.swappedBy);
    if (swap != request.settings.end() && axes.size() >= 2 &&
        std::visit([](auto value) { return value != 0; }, swap->second))
      std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    if (axes.size() != tensor.extents.size())
      return usage(fmt::format(
          "input '{}': found rank {} {}, expected rank {}: [{}]", array.name,
          tensor.extents.size(), describeExtents(tensor.extents), axes.size(),
          fmt::join(axes, ", ")));
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      int64_t found = tensor.extents[axis];
      std::string_view dim = axes[axis];
      if (dim == "1") {
        if (found != 1)
          return disagree(array, axis, found, 1, dim, "1");
        continue;
      }
      int64_t factor = 1;
      if (size_t slash = dim.find('/'); slash != dim.npos) {
        std::string_view by = dim.substr(slash + 1);
        dim = dim.substr(0, slash);
        auto divisor = dims.find(by);
        if (by == "2")
          factor = 2;
        else if (divisor != dims.end() && divisor->second > 0)
          factor = divisor->second;
        else
          continue; // The other arrays say more.
      }
      auto known = dims.find(dim);
      if (known == dims.end()) {
        dims.emplace(dim, found * factor);
        from.emplace(dim, array.name);
        continue;
      }
      bool broadcasts = array.content == kernels::Content::Mask && found == 1;
      if (known->second / factor != found && !broadcasts)
        return disagree(array, axis, found, known->second / factor, axes[axis],
                        fmt::format("{} = {}", dim, known->second));
    }
    return {};
  }

  Error disagree(const kernels::ArrayInfo &array, size_t axis, int64_t found,
                 int64_t expected, std::string_view dim,
                 const std::string &because) const {
    auto source = from.find(dim);
    return usage(
        fmt::format("input '{}': axis {} has extent {}, expected {} ({}{})",
                    array.name, axis, found, expected, because,
                    source == from.end()
                        ? ""
                        : fmt::format(", from input '{}'", source->second)));
  }

  const kernels::Operator &op;
  const RunRequest &request;
  kernels::Dims dims;
  std::map<std::string, std::string, std::less<>> from;
};

} // namespace

Result<kernels::Dims> operatorDims(const kernels::Operator &op,
                                   const RunRequest &request) {
  Result<kernels::Dims> dims = DimCollector(op, request).run();
  if (!dims)
    return dims.error();
  if (Result<void> status = kernels::checkDims(op, *dims); !status)
    return status.error();
  return dims;
}

Result<std::vector<std::vector<int64_t>>>
programExtents(const Program &program, const RunRequest &request) {
  std::vector<std::optional<std::vector<int64_t>>> known;
  for (const ProgramParameter &parameter : program.parameters()) {
    auto &extents = known.emplace_back();
    auto given = request.inputs.find(parameter.name);
    if (!parameter.isView || given == request.inputs.end())
      continue;
    extents = given->second.extents;
    if (static_cast<int64_t>(extents->size()) != parameter.rank)
      return usage(fmt::format("input '{}': found rank {} {}, expected rank {}",
                               parameter.name, extents->size(),
                               describeExtents(*extents), parameter.rank));
  }
  return program.deriveExtents({request.dims.begin(), request.dims.end()},
                               known);
}

} // namespace tessera::session
