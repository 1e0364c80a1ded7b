//===- kernels/table.cpp - The operator table -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/table.h"

#include "kernels/kernels.h"

#include <algorithm>
#include <cmath>

namespace tessera::kernels {

namespace {

constexpr DType floats[] = {DType::F32, DType::F64, DType::F16, DType::BF16};

using Names = std::vector<std::string_view>;

const Names matrix = {"rows", "cols"};

/// An operator on rows and columns.
Operator rowOperator(std::string_view name, std::string_view summary,
                     Kernel (*kernel)(), std::vector<ArrayInfo> arrays) {
  Operator op;
  op.name = op.oracle = name;
  op.summary = summary;
  op.dims = matrix;
  op.defaultExtents = {1024, 4096};
  op.arrays = std::move(arrays);
  op.kernel = kernel;
  op.dtypes = floats;
  return op;
}

/// An operator on dimensions of its own.
Operator otherOperator(std::string_view name, std::string_view summary,
                       Kernel (*kernel)(), Names dims,
                       std::vector<int64_t> extents,
                       std::vector<ArrayInfo> arrays) {
  Operator op = rowOperator(name, summary, kernel, std::move(arrays));
  op.dims = std::move(dims);
  op.defaultExtents = std::move(extents);
  return op;
}

std::vector<Operator> makeTable() {
  const Names rows = {"rows"}, cols = {"cols"}, half = {"rows", "cols/2"};
  std::vector<Operator> table = {
      rowOperator("copy", "y = x", copy, {{"x", matrix}, {"y", matrix}}),
      rowOperator("add", "y = a + b", add,
                  {{"a", matrix}, {"b", matrix}, {"y", matrix}}),
      rowOperator("transpose", "y[j, i] = x[i, j]", transpose,
                  {{"x", matrix}, {"y", {"cols", "rows"}}}),
      rowOperator("row_sum", "sum along cols", rowSum,
                  {{"x", matrix}, {"y", rows}}),
      rowOperator("row_max", "maximum along cols", rowMax,
                  {{"x", matrix}, {"y", rows}}),
      rowOperator("row_mean", "mean along cols", rowMean,
                  {{"x", matrix}, {"y", rows}}),
      rowOperator("col_sum", "sum along rows", colSum,
                  {{"x", matrix}, {"y", cols}}),
      rowOperator("arg_max", "lowest position of the maximum along cols",
                  argMax, {{"x", matrix}, {"index", rows}}),
      rowOperator("softmax", "exp(x) / sum(exp(x)) along cols", softmax,
                  {{"x", matrix}, {"y", matrix}}),
      rowOperator(
          "masked_softmax", "softmax of the visible elements, 0 elsewhere",
          maskedSoftmax,
          {{"x", matrix}, {"mask", matrix, Content::Mask}, {"y", matrix}}),
      rowOperator("rms_norm", "x / sqrt(mean(x^2) + eps) * w", rmsNorm,
                  {{"x", matrix}, {"w", cols}, {"y", matrix}}),
      rowOperator("layer_norm", "(x - mean(x)) / sqrt(var(x) + eps) * w + b",
                  layerNorm,
                  {{"x", matrix}, {"w", cols}, {"b", cols}, {"y", matrix}}),
      rowOperator("residual_layer_norm", "layer_norm(x + r)", residualLayerNorm,
                  {{"x", matrix},
                   {"r", matrix},
                   {"w", cols},
                   {"b", cols},
                   {"y", matrix}}),
      rowOperator("add_rms_norm", "s = x + r, y = rms_norm(s)", addRmsNorm,
                  {{"x", matrix},
                   {"r", matrix},
                   {"w", cols},
                   {"y", matrix},
                   {"s", matrix}}),
      rowOperator("gelu_residual", "gelu(x) + r, tanh form", geluResidual,
                  {{"x", matrix}, {"r", matrix}, {"y", matrix}}),
      rowOperator("swiglu", "gate * sigmoid(gate) * up", swiglu,
                  {{"gate", matrix}, {"up", matrix}, {"y", matrix}}),
      rowOperator("affine_leaky", "z = scale x + shift, y = max(z, slope z)",
                  affineLeaky, {{"x", matrix}, {"y", matrix}}),
      rowOperator("rope", "rotary embedding of pairs", rope,
                  {{"x", matrix}, {"cos", half}, {"sin", half}, {"y", matrix}}),
      rowOperator("sigmoid_pair", "sigmoid(x) and its derivative", sigmoidPair,
                  {{"x", matrix}, {"y", matrix}, {"dy", matrix}}),
      rowOperator("gelu_pair", "gelu(x), tanh form, and its derivative",
                  geluPair, {{"x", matrix}, {"y", matrix}, {"dy", matrix}}),
      rowOperator("cross_entropy", "log(sum(exp(logits))) - logits[target]",
                  crossEntropy,
                  {{"logits", matrix},
                   {"target", rows, Content::Index, "cols"},
                   {"loss", rows}}),
      rowOperator("cumsum", "running sum along cols", cumsum,
                  {{"x", matrix}, {"y", matrix}}),
      rowOperator("sort", "elements along cols in order, and where they stood",
                  sort,
                  {{"x", matrix}, {"values", matrix}, {"indices", matrix}}),
      otherOperator("top_k", "the first k of sort, the largest first", topK,
                    {"rows", "cols", "k"}, {1024, 4096, 32},
                    {{"x", matrix},
                     {"values", {"rows", "k"}},
                     {"indices", {"rows", "k"}}}),
      otherOperator("embedding", "y[t] = table[ids[t]]", embedding,
                    {"tokens", "vocab", "cols"}, {1024, 32000, 1024},
                    {{"ids", {"tokens"}, Content::Index, "vocab"},
                     {"table", {"vocab", "cols"}},
                     {"y", {"tokens", "cols"}}}),
      otherOperator("gemm", "c = a b + beta c0", gemm, {"m", "n", "k"},
                    {256, 256, 256},
                    {{"a", {"m", "k"}, Content::Values, {}, "trans_a"},
                     {"b", {"k", "n"}, Content::Values, {}, "trans_b"},
                     {"c0", {"m", "n"}},
                     {"c", {"m", "n"}}}),
      otherOperator("gemm_affine_leaky", "affine_leaky(a b)", gemmAffineLeaky,
                    {"m", "n", "k"}, {256, 256, 256},
                    {{"a", {"m", "k"}}, {"b", {"k", "n"}}, {"c", {"m", "n"}}}),
      otherOperator("gemm_epilogue", "activation(scale a b + bias) + residual",
                    gemmEpilogue, {"m", "n", "k"}, {256, 256, 256},
                    {{"a", {"m", "k"}},
                     {"b", {"k", "n"}},
                     {"bias", {"n"}},
                     {"residual", {"m", "n"}},
                     {"c", {"m", "n"}}}),
      otherOperator("bmm", "c = a b for each batch", bmm,
                    {"batch", "m", "n", "k"}, {8, 64, 64, 64},
                    {{"a", {"batch", "m", "k"}, Content::Values, {}, "trans_a"},
                     {"b", {"batch", "k", "n"}, Content::Values, {}, "trans_b"},
                     {"c", {"batch", "m", "n"}}}),
      otherOperator("gemm_q8", "c = scale_a scale_b a b, i32 sums of i8",
                    gemmQ8, {"m", "n", "k"}, {256, 256, 256},
                    {{"a", {"m", "k"}},
                     {"b", {"k", "n"}},
                     {"scale_a", {"m"}},
                     {"scale_b", {"n"}},
                     {"c", {"m", "n"}}}),
      otherOperator("gemm_q4",
                    "c = a ((b - zeros) scales), 4 bits and groups along k",
                    gemmQ4, {"m", "n", "k", "group"}, {256, 256, 256, 64},
                    {{"a", {"m", "k"}},
                     {"b", {"k/2", "n"}},
                     {"scales", {"k/group", "n"}},
                     {"zeros", {"k/group", "n"}},
                     {"c", {"m", "n"}}}),
      otherOperator("conv2d", "sums of windows of an image times filters",
                    conv2d, {"n", "c", "h", "w", "f", "kh", "kw"},
                    {1, 32, 56, 56, 64, 3, 3},
                    {{"x", {"n", "c", "h", "w"}},
                     {"w", {"f", "c", "kh", "kw"}},
                     {"bias", {"f"}},
                     {"y", {"n", "f", "oh", "ow"}}}),
      otherOperator("depthwise_conv2d", "conv2d of each channel by itself",
                    depthwiseConv2d, {"n", "c", "h", "w", "kh", "kw"},
                    {1, 64, 56, 56, 3, 3},
                    {{"x", {"n", "c", "h", "w"}},
                     {"w", {"c", "kh", "kw"}},
                     {"bias", {"c"}},
                     {"y", {"n", "c", "oh", "ow"}}}),
      otherOperator(
          "max_pool2d", "the largest element of each window", maxPool2d,
          {"n", "c", "h", "w"}, {1, 64, 112, 112},
          {{"x", {"n", "c", "h", "w"}}, {"y", {"n", "c", "ph", "pw"}}}),
      otherOperator("sobel", "magnitude of the gradient by Sobel's filters",
                    sobel, {"n", "c", "h", "w"}, {1, 3, 512, 512},
                    {{"x", {"n", "c", "h", "w"}}, {"y", {"n", "c", "h", "w"}}}),
      otherOperator("median3", "median of the 3 x 3 elements around each",
                    median3, {"n", "c", "h", "w"}, {1, 3, 512, 512},
                    {{"x", {"n", "c", "h", "w"}}, {"y", {"n", "c", "h", "w"}}}),
      otherOperator("attention",
                    "softmax(scale q k^T) v; grouped heads, causal, masked",
                    attention, {"b", "hq", "hkv", "q", "k", "d", "dv"},
                    {1, 8, 2, 64, 64, 64, 64},
                    {{"q", {"b", "hq", "q", "d"}},
                     {"k", {"b", "hkv", "k", "d"}},
                     {"v", {"b", "hkv", "k", "dv"}},
                     {"lengths", {"b"}, Content::Length, "k"},
                     {"mask", {"b", "hq", "q", "k"}, Content::Mask},
                     {"o", {"b", "hq", "q", "dv"}},
                     {"lse", {"b", "hq", "q"}}}),
  };
  constexpr int64_t farthest = 1 << 20;
  for (Operator &op : table) {
    if (op.name == "rope")
      op.evenDim = "cols";
    if (op.name == "gemm_epilogue")
      op.ranges = {{"activation", 0, 3, {"none", "relu", "gelu", "silu"}}};
    if (op.name == "gemm_q4") {
      op.evenDim = "group";
      op.multipleDim = "k";
      op.multipleOf = "group";
    }
    if (op.name == "max_pool2d")
      op.ranges = {
          {"window", 1, 16}, {"stride", 1, farthest}, {"pad", 0, farthest}};
    if (op.name.ends_with("conv2d"))
      op.ranges = {{"stride", 1, farthest},
                   {"pad", 0, farthest},
                   {"dilation", 1, farthest}};
    if (op.name == "attention") {
      op.multipleDim = "hq";
      op.multipleOf = "hkv";
    }
  }
  return table;
}

Error usage(const Operator &op, std::string problem) {
  return {ErrorFamily::Usage,
          "usage.dims",
          "operator '" + std::string(op.name) + "': " + problem,
          {}};
}

int64_t extentOf(const Dims &dims, std::string_view name) {
  auto found = dims.find(name);
  return found == dims.end() ? 0 : found->second;
}

int64_t integerOf(const Settings &constants, std::string_view name,
                  int64_t otherwise) {
  auto found = constants.find(name);
  if (found == constants.end())
    return otherwise;
  return std::visit([](auto value) { return static_cast<int64_t>(value); },
                    found->second);
}

/// How many places a window has on an axis of an image.
int64_t windowPlaces(int64_t extent, int64_t window, const Settings &constants,
                     int64_t stride) {
  if (window == 0)
    return 0;
  int64_t reach = (window - 1) * integerOf(constants, "dilation", 1) + 1;
  int64_t room = extent + 2 * integerOf(constants, "pad", 0) - reach;
  return room < 0 ? 0 : room / integerOf(constants, "stride", stride) + 1;
}

int64_t axisExtent(const Dims &dims, const Settings &constants,
                   std::string_view axis) {
  if (axis == "1")
    return 1;
  if (axis == "oh")
    return windowPlaces(extentOf(dims, "h"), extentOf(dims, "kh"), constants,
                        1);
  if (axis == "ow")
    return windowPlaces(extentOf(dims, "w"), extentOf(dims, "kw"), constants,
                        1);
  if (axis == "ph" || axis == "pw")
    return windowPlaces(extentOf(dims, axis == "ph" ? "h" : "w"),
                        integerOf(constants, "window", 2), constants, 2);
  size_t slash = axis.find('/');
  if (slash == axis.npos)
    return extentOf(dims, axis);
  std::string_view by = axis.substr(slash + 1);
  int64_t divisor = by == "2" ? 2 : extentOf(dims, by);
  return divisor == 0 ? 0 : extentOf(dims, axis.substr(0, slash)) / divisor;
}

} // namespace

std::span<const Operator> operators() {
  static const std::vector<Operator> table = makeTable();
  return table;
}

const Operator *findOperator(std::string_view name) {
  for (const Operator &op : operators())
    if (op.name == name)
      return &op;
  return nullptr;
}

const ArrayInfo *findArray(const Operator &op, std::string_view name) {
  for (const ArrayInfo &array : op.arrays)
    if (array.name == name)
      return &array;
  return nullptr;
}

const ConstantRange *findRange(const Operator &op, std::string_view constant) {
  for (const ConstantRange &range : op.ranges)
    if (range.name == constant)
      return &range;
  return nullptr;
}

std::optional<int64_t> namedValue(const Operator &op, std::string_view constant,
                                  std::string_view word) {
  const ConstantRange *range = findRange(op, constant);
  if (!range)
    return std::nullopt;
  auto found = std::find(range->names.begin(), range->names.end(), word);
  if (found == range->names.end())
    return std::nullopt;
  return range->low + (found - range->names.begin());
}

Result<void> checkSettings(const Operator &op, const Settings &settings) {
  for (const auto &[name, value] : settings) {
    const ConstantRange *range = findRange(op, name);
    if (!range)
      continue;
    double number = std::visit(
        [](auto given) { return static_cast<double>(given); }, value);
    if (number == std::floor(number) &&
        number >= static_cast<double>(range->low) &&
        number <= static_cast<double>(range->high))
      continue;
    std::string expected = "a whole number from " + std::to_string(range->low) +
                           " to " + std::to_string(range->high);
    for (std::string_view word : range->names)
      expected +=
          (word == range->names.front() ? ": " : ", ") + std::string(word);
    return Error{
        ErrorFamily::Usage,
        "usage.set",
        "operator '" + std::string(op.name) + "': '" + name + "' is " +
            std::visit([](auto given) { return std::to_string(given); },
                       value) +
            ", expected " + expected,
        {}};
  }
  return {};
}

Result<void> checkDims(const Operator &op, const Dims &dims) {
  std::string expected;
  for (std::string_view name : op.dims)
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  for (const auto &[name, extent] : dims) {
    if (std::find(op.dims.begin(), op.dims.end(), name) == op.dims.end())
      return usage(op, "there is no dimension '" + name + "', expected " +
                           expected);
    if (extent < 0)
      return usage(op, "dimension '" + name + "' is " + std::to_string(extent) +
                           ", expected at least 0");
  }
  for (std::string_view name : op.dims)
    if (!dims.count(name))
      return usage(op, "dimension '" + std::string(name) +
                           "' is not given, expected " + expected);
  if (!op.evenDim.empty() && extentOf(dims, op.evenDim) % 2 != 0)
    return usage(op, "dimension '" + std::string(op.evenDim) + "' is " +
                         std::to_string(extentOf(dims, op.evenDim)) +
                         ", expected an even number");
  if (!op.multipleDim.empty()) {
    int64_t whole = extentOf(dims, op.multipleDim);
    int64_t part = extentOf(dims, op.multipleOf);
    if (part == 0 ? whole != 0 : whole % part != 0)
      return usage(op, "dimension '" + std::string(op.multipleDim) + "' is " +
                           std::to_string(whole) +
                           ", expected a multiple of '" +
                           std::string(op.multipleOf) + "', which is " +
                           std::to_string(part));
  }
  return {};
}

std::vector<int64_t> arrayExtents(const ArrayInfo &array, const Dims &dims,
                                  const Settings &constants) {
  std::vector<int64_t> extents;
  for (std::string_view axis : array.axes)
    extents.push_back(axisExtent(dims, constants, axis));
  auto swap = constants.find(array.swappedBy);
  if (swap != constants.end() && extents.size() >= 2 &&
      std::visit([](auto value) { return value != 0; }, swap->second))
    std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
  return extents;
}

GenerateOptions generation(const ArrayInfo &array, DType dtype,
                           const Dims &dims, uint64_t seed) {
  GenerateOptions options;
  options.seed = seed;
  options.valueClass = defaultValueClass(dtype);
  switch (array.content) {
  case Content::Values:
    break;
  case Content::Mask:
    options.valueClass = ValueClass::Mask;
    break;
  case Content::Index:
    options.valueClass = ValueClass::Integers;
    // Of no position every index is out of range; 0 is as good as any.
    options.high = std::max<int64_t>(extentOf(dims, array.limit), 1);
    break;
  case Content::Length:
    options.valueClass = ValueClass::Integers;
    options.high = extentOf(dims, array.limit) + 1;
    break;
  }
  return options;
}

} // namespace tessera::kernels
