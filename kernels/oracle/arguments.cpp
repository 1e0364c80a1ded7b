//===- kernels/oracle/arguments.cpp - Reading an oracle's inputs ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"

#include "kernels/elements.h"

namespace tessera::oracle {
namespace {

std::string describe(const std::vector<int64_t> &extents) {
  std::string text = "[";
  for (size_t i = 0; i < extents.size(); ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

} // namespace

int64_t elementCount(const std::vector<int64_t> &extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

void Inputs::fail(std::string_view name, std::string_view problem) {
  if (firstError)
    return;
  firstError =
      Error{ErrorFamily::Launch,
            "oracle.bad-input",
            "input '" + std::string(name) + "' " + std::string(problem),
            {}};
}

const TensorRef *Inputs::find(std::string_view name, bool floating,
                              int64_t rank,
                              const std::vector<int64_t> *extents) {
  auto found = args.inputs.find(name);
  if (found == args.inputs.end()) {
    fail(name, "is missing; the operator needs it");
    return nullptr;
  }
  const TensorRef &tensor = found->second;
  if (isFloat(tensor.dtype) != floating) {
    fail(name, "has type " + std::string(tessera::name(tensor.dtype)) +
                   ", expected " +
                   (floating ? "a floating type" : "bool or an integer type"));
    return nullptr;
  }
  if (tensor.rank() != rank) {
    fail(name, "has rank " + std::to_string(tensor.rank()) + ", expected " +
                   std::to_string(rank));
    return nullptr;
  }
  if (extents && tensor.extents != *extents) {
    fail(name, "has extents " + describe(tensor.extents) + ", expected " +
                   describe(*extents));
    return nullptr;
  }
  return &tensor;
}

Floats Inputs::floats(std::string_view name, int64_t rank) {
  const TensorRef *tensor = find(name, /*floating=*/true, rank, nullptr);
  if (!tensor)
    return {std::vector<int64_t>(static_cast<size_t>(rank), 0), {}};
  return {tensor->extents, kernels::loadFloats(*tensor)};
}

Floats Inputs::floatsOf(std::string_view name,
                        const std::vector<int64_t> &extents) {
  const TensorRef *tensor = find(
      name, /*floating=*/true, static_cast<int64_t>(extents.size()), &extents);
  if (!tensor)
    return {std::vector<int64_t>(extents.size(), 0), {}};
  return {tensor->extents, kernels::loadFloats(*tensor)};
}

Integers Inputs::integers(std::string_view name, int64_t rank) {
  const TensorRef *tensor = find(name, /*floating=*/false, rank, nullptr);
  if (!tensor)
    return {std::vector<int64_t>(static_cast<size_t>(rank), 0), {}};
  return {tensor->extents, kernels::loadIntegers(*tensor)};
}

Integers Inputs::integersOf(std::string_view name,
                            const std::vector<int64_t> &extents) {
  const TensorRef *tensor = find(
      name, /*floating=*/false, static_cast<int64_t>(extents.size()), &extents);
  if (!tensor)
    return {std::vector<int64_t>(extents.size(), 0), {}};
  return {tensor->extents, kernels::loadIntegers(*tensor)};
}

double Inputs::scalar(std::string_view name, double otherwise) const {
  auto found = args.scalars.find(name);
  return found == args.scalars.end() ? otherwise : found->second;
}

int64_t Inputs::dim(std::string_view name) {
  auto found = args.dims.find(name);
  if (found != args.dims.end())
    return found->second;
  if (!firstError)
    firstError = Error{ErrorFamily::Launch,
                       "oracle.bad-input",
                       "dimension '" + std::string(name) +
                           "' is missing; the operator needs it",
                       {}};
  return 0;
}

OracleResult resultOf(std::string name, OracleOutput output) {
  OracleResult result;
  result.emplace(std::move(name), std::move(output));
  return result;
}

OracleResult resultOf(std::string first, OracleOutput firstOutput,
                      std::string second, OracleOutput secondOutput) {
  OracleResult result = resultOf(std::move(first), std::move(firstOutput));
  result.emplace(std::move(second), std::move(secondOutput));
  return result;
}

FloatOutput::FloatOutput(const OracleArgs &args, std::vector<int64_t> extents)
    : args(args) {
  output.dtype = args.dtype;
  output.values.resize(static_cast<size_t>(elementCount(extents)));
  output.extents = std::move(extents);
}

} // namespace tessera::oracle
