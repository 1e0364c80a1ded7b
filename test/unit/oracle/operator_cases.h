//===- test/unit/oracle/operator_cases.h - Operators under test -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each operator with floating outputs: how its arguments are made for given
// extents and value class, and the reference kernel that computes it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_ORACLE_OPERATOR_CASES_H
#define TESSERA_TEST_UNIT_ORACLE_OPERATOR_CASES_H

#include "reference_kernels.h"

namespace tessera::oracletest {

/// One row of a dense row-major matrix, in type T.
template <typename T>
std::vector<T> rowOf(const std::vector<double> &x, int64_t row, int64_t cols) {
  return std::vector<T>(x.begin() + row * cols, x.begin() + (row + 1) * cols);
}

/// Fills the call with the arguments of `op`.
inline void makeArguments(Call &call, std::string_view op, int64_t rows,
                          int64_t cols, kernels::ValueClass valueClass) {
  using kernels::ValueClass;
  auto array = [&](const char *name, std::vector<int64_t> extents) {
    call.generated(name, std::move(extents), valueClass);
  };
  auto normal = [&](const char *name, std::vector<int64_t> extents) {
    call.generated(name, std::move(extents), ValueClass::Normal);
  };
  if (op == "add") {
    array("a", {rows, cols});
    array("b", {rows, cols});
  } else if (op == "swiglu") {
    array("gate", {rows, cols});
    array("up", {rows, cols});
  } else if (op == "cross_entropy") {
    array("logits", {rows, cols});
    std::vector<int64_t> target;
    for (int64_t row = 0; row < rows; ++row)
      target.push_back((row * 7) % cols);
    call.integers("target", DType::I64, {rows}, target);
  } else if (op == "gemm") {
    array("a", {rows, cols});
    array("b", {cols, 5});
    array("c0", {rows, 5});
    call.args.scalars["beta"] = 0.5;
  } else if (op == "gemm_epilogue") {
    array("a", {rows, cols});
    array("b", {cols, 5});
    array("bias", {5});
    array("residual", {rows, 5});
    call.args.scalars["scale"] = 0.75;
    call.args.scalars["activation"] = 3;
  } else if (op == "gemm_q4") {
    array("a", {rows, 2 * cols});
    std::vector<int64_t> bytes;
    for (int64_t i = 0; i < cols * 5; ++i)
      bytes.push_back(i * 37 % 256);
    call.integers("b", DType::U8, {cols, 5}, bytes);
    normal("scales", {2, 5});
    normal("zeros", {2, 5});
  } else if (op == "conv2d") {
    array("x", {1, 2, rows, cols});
    array("w", {3, 2, 2, 3});
    array("bias", {3});
    call.args.scalars["pad"] = 1;
    call.args.scalars["stride"] = 2;
  } else if (op == "bmm") {
    array("a", {2, rows, cols});
    array("b", {2, 5, cols});
    call.args.scalars["trans_b"] = 1;
  } else if (op == "attention") {
    array("q", {2, 4, rows, 16});
    array("k", {2, 2, cols, 16});
    array("v", {2, 2, cols, 8});
    call.integers("lengths", DType::I32, {2}, {cols, cols / 2});
    call.args.scalars["causal"] = 1;
  } else {
    array("x", {rows, cols});
    if (op == "masked_softmax") {
      TensorRef &mask = call.input("mask", DType::Bool, {rows, cols});
      kernels::GenerateOptions options;
      options.valueClass = ValueClass::Mask;
      EXPECT_TRUE(kernels::generate(mask, "mask", options).ok());
    }
    if (op == "residual_layer_norm" || op == "add_rms_norm" ||
        op == "gelu_residual")
      array("r", {rows, cols});
    if (op.ends_with("norm"))
      normal("w", {cols});
    if (op.ends_with("layer_norm"))
      normal("b", {cols});
    if (op == "rope") {
      normal("cos", {rows, cols / 2});
      normal("sin", {rows, cols / 2});
    }
  }
}

template <typename T>
std::vector<double> attentionOutput(const Call &call,
                                    const Reference<T> &kernel,
                                    std::vector<double> &lse) {
  const auto &qRef = call.args.inputs.find("q")->second;
  const auto &vRef = call.args.inputs.find("v")->second;
  int64_t batch = qRef.extents[0], heads = qRef.extents[1],
          queries = qRef.extents[2], depth = qRef.extents[3];
  int64_t keyHeads = vRef.extents[1], keys = vRef.extents[2],
          valueDepth = vRef.extents[3];
  std::vector<double> q = call.get("q"), k = call.get("k"), v = call.get("v");
  std::vector<int64_t> lengths = call.getIntegers("lengths");
  T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(depth)));
  std::vector<double> o;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        int64_t keyHead = h * keyHeads / heads;
        std::vector<T> scores;
        int64_t end =
            std::min(lengths[static_cast<size_t>(b)],
                     i + lengths[static_cast<size_t>(b)] - queries + 1);
        for (int64_t j = 0; j < end; ++j)
          scores.push_back(
              kernel.dot(
                  rowOf<T>(q, (b * heads + h) * queries + i, depth),
                  rowOf<T>(k, (b * keyHeads + keyHead) * keys + j, depth)) *
              scale);
        T maximum, total;
        std::vector<T> e = kernel.softmaxTerms(scores, maximum, total);
        for (int64_t d = 0; d < valueDepth; ++d) {
          std::vector<T> column;
          for (size_t j = 0; j < e.size(); ++j)
            column.push_back(static_cast<T>(v[static_cast<size_t>(
                ((b * keyHeads + keyHead) * keys + static_cast<int64_t>(j)) *
                    valueDepth +
                d)]));
          o.push_back(e.empty() ? T(0) : kernel.dot(e, column) / total);
        }
        lse.push_back(e.empty() ? -std::numeric_limits<T>::infinity()
                                : maximum + std::log(total));
      }
  return o;
}

/// Of stride 2 and padding 1, on windows of 2 x 3.
template <typename T>
std::vector<double> convolved(const Call &call, int64_t rows, int64_t cols,
                              const Reference<T> &kernel) {
  std::vector<double> x = call.get("x"), w = call.get("w"),
                      bias = call.get("bias"), y;
  for (int64_t f = 0; f < 3; ++f)
    for (int64_t i = 0; i < rows / 2 + 1; ++i)
      for (int64_t j = 0; j < (cols - 1) / 2 + 1; ++j) {
        std::vector<T> window;
        for (int64_t c = 0; c < 2; ++c)
          for (int64_t row = 2 * i - 1; row < 2 * i + 1; ++row)
            for (int64_t col = 2 * j - 1; col < 2 * j + 2; ++col) {
              bool inside = row >= 0 && row < rows && col >= 0 && col < cols;
              window.push_back(inside ? static_cast<T>(x[static_cast<size_t>(
                                            (c * rows + row) * cols + col)])
                                      : T(0));
            }
        y.push_back(kernel.dot(window, rowOf<T>(w, f, 12)) +
                    static_cast<T>(bias[static_cast<size_t>(f)]));
      }
  return y;
}

/// The reference kernel's outputs, before they are rounded to storage.
template <typename T>
Outputs runReference(const Call &call, std::string_view op, int64_t rows,
                     int64_t cols, const Reference<T> &kernel) {
  Outputs out;
  auto append = [&](const char *name, const std::vector<T> &values) {
    out[name].insert(out[name].end(), values.begin(), values.end());
  };
  auto vectorOf = [&](const char *name) {
    std::vector<double> values = call.get(name);
    return std::vector<T>(values.begin(), values.end());
  };
  if (op == "gemm") {
    std::vector<T> a = vectorOf("a"), b = vectorOf("b"), c0 = vectorOf("c0");
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        std::vector<T> column;
        for (int64_t k = 0; k < cols; ++k)
          column.push_back(b[static_cast<size_t>(k * 5 + j)]);
        std::vector<T> row(a.begin() + i * cols, a.begin() + (i + 1) * cols);
        out["c"].push_back(kernel.dot(row, column) +
                           T(0.5) * c0[static_cast<size_t>(i * 5 + j)]);
      }
    return out;
  }
  if (op == "gemm_epilogue") {
    std::vector<T> a = vectorOf("a"), b = vectorOf("b");
    std::vector<T> bias = vectorOf("bias"), residual = vectorOf("residual");
    for (int64_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < 5; ++j) {
        std::vector<T> column;
        for (int64_t k = 0; k < cols; ++k)
          column.push_back(b[static_cast<size_t>(k) * 5 + j]);
        std::vector<T> row(a.begin() + i * cols, a.begin() + (i + 1) * cols);
        T z = T(0.75) * kernel.dot(row, column) + bias[j];
        out["c"].push_back(z * kernel.sigmoid(z) +
                           residual[static_cast<size_t>(i) * 5 + j]);
      }
    return out;
  }
  if (op == "gemm_q4") {
    std::vector<double> a = call.get("a");
    std::vector<T> scales = vectorOf("scales"), zeros = vectorOf("zeros");
    std::vector<int64_t> bytes = call.getIntegers("b");
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        std::vector<T> column;
        for (int64_t k = 0; k < 2 * cols; ++k) {
          int64_t byte = bytes[static_cast<size_t>(k / 2 * 5 + j)];
          auto at = static_cast<size_t>(k / cols * 5 + j);
          T bits = static_cast<T>(k % 2 ? byte / 16 : byte % 16);
          column.push_back((bits - zeros[at]) * scales[at]);
        }
        out["c"].push_back(kernel.dot(rowOf<T>(a, i, 2 * cols), column));
      }
    return out;
  }
  if (op == "conv2d") {
    out["y"] = convolved(call, rows, cols, kernel);
    return out;
  }
  if (op == "bmm") {
    std::vector<double> a = call.get("a"), b = call.get("b");
    for (int64_t batch = 0; batch < 2; ++batch)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < 5; ++j)
          out["c"].push_back(kernel.dot(rowOf<T>(a, batch * rows + i, cols),
                                        rowOf<T>(b, batch * 5 + j, cols)));
    return out;
  }
  if (op == "attention") {
    std::vector<double> lse;
    out["o"] = attentionOutput<T>(call, kernel, lse);
    out["lse"] = lse;
    return out;
  }

  const char *first = op == "add"             ? "a"
                      : op == "swiglu"        ? "gate"
                      : op == "cross_entropy" ? "logits"
                                              : "x";
  std::vector<double> x = call.get(first);
  std::vector<double> second;
  for (const char *name : {"b", "up", "r"})
    if (call.args.inputs.count(name) && !op.starts_with("layer"))
      second = call.get(name);
  if (op == "col_sum") {
    for (int64_t col = 0; col < cols; ++col) {
      std::vector<T> column;
      for (int64_t row = 0; row < rows; ++row)
        column.push_back(
            static_cast<T>(x[static_cast<size_t>(row * cols + col)]));
      out["y"].push_back(kernel.sum(column));
    }
    return out;
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<T> row = rowOf<T>(x, r, cols), other, y;
    if (!second.empty())
      other = rowOf<T>(second, r, cols);
    if (op == "add_rms_norm" || op == "residual_layer_norm")
      for (size_t i = 0; i < row.size(); ++i)
        row[i] += other[i];
    if (op == "add") {
      for (size_t i = 0; i < row.size(); ++i)
        y.push_back(row[i] + other[i]);
    } else if (op == "row_sum") {
      y = {kernel.sum(row)};
    } else if (op == "row_mean") {
      y = {kernel.mean(row)};
    } else if (op == "softmax") {
      y = kernel.softmax(row);
    } else if (op == "masked_softmax") {
      std::vector<int64_t> mask = call.getIntegers("mask");
      std::vector<T> visible;
      for (int64_t i = 0; i < cols; ++i)
        if (mask[static_cast<size_t>(r * cols + i)])
          visible.push_back(row[static_cast<size_t>(i)]);
      visible = kernel.softmax(visible);
      size_t next = 0;
      for (int64_t i = 0; i < cols; ++i)
        y.push_back(mask[static_cast<size_t>(r * cols + i)] ? visible[next++]
                                                            : T(0));
    } else if (op == "rms_norm" || op == "add_rms_norm") {
      y = kernel.rmsNorm(row, vectorOf("w"), T(1e-6));
      if (op == "add_rms_norm")
        append("s", row);
    } else if (op == "layer_norm" || op == "residual_layer_norm") {
      y = kernel.layerNorm(row, vectorOf("w"), vectorOf("b"), T(1e-5));
    } else if (op == "gelu_residual") {
      for (size_t i = 0; i < row.size(); ++i)
        y.push_back(kernel.gelu(row[i]) + other[i]);
    } else if (op == "gelu_pair") {
      std::vector<T> slope;
      for (T value : row) {
        y.push_back(kernel.gelu(value));
        slope.push_back(kernel.geluSlope(value));
      }
      append("dy", slope);
    } else if (op == "sigmoid_pair") {
      std::vector<T> slope;
      for (T value : row) {
        T s = kernel.sigmoid(value);
        y.push_back(s);
        slope.push_back(s * (1 - s));
      }
      append("dy", slope);
    } else if (op == "swiglu") {
      for (size_t i = 0; i < row.size(); ++i)
        y.push_back(row[i] * kernel.sigmoid(row[i]) * other[i]);
    } else if (op == "rope") {
      int64_t half = cols / 2;
      std::vector<T> c = rowOf<T>(call.get("cos"), r, half),
                     s = rowOf<T>(call.get("sin"), r, half);
      y.resize(row.size());
      for (size_t i = 0; i < static_cast<size_t>(half); ++i) {
        size_t j = i + static_cast<size_t>(half);
        y[i] = std::fma(row[i], c[i], -(row[j] * s[i]));
        y[j] = row[j] * c[i] + row[i] * s[i];
      }
    } else if (op == "cross_entropy") {
      T maximum, total;
      kernel.softmaxTerms(row, maximum, total);
      out["loss"].push_back(maximum + std::log(total) -
                            row[static_cast<size_t>(call.getIntegers(
                                "target")[static_cast<size_t>(r)])]);
      continue;
    } else if (op == "cumsum") {
      std::vector<T> prefix;
      for (T value : row) {
        prefix.push_back(value);
        y.push_back(kernel.sum(prefix));
      }
    } else {
      ADD_FAILURE() << "no reference for " << op;
    }
    append("y", y);
  }
  return out;
}

} // namespace tessera::oracletest

#endif // TESSERA_TEST_UNIT_ORACLE_OPERATOR_CASES_H
