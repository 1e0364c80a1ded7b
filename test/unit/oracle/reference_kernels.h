//===- test/unit/oracle/reference_kernels.h - Plain kernels -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Straightforward kernels in the compute type, as a compiler may legally
// produce them, with a choice of summation order and, to prove that the oracles
// notice, of deliberate mistakes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_ORACLE_REFERENCE_KERNELS_H
#define TESSERA_TEST_UNIT_ORACLE_REFERENCE_KERNELS_H

#include "kernels/elements.h"
#include "kernels/generate.h"
#include "kernels/oracle/oracle.h"
#include "support/float_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <vector>

namespace tessera::oracletest {

enum class SumOrder { Left, Pairwise, Lanes };

enum class Fault {
  None,
  /// The last element of a sum is forgotten.
  DropTail,
  /// Sums are rounded to bf16 after each addition.
  Bf16Accumulation,
  /// The variance is E[x^2] - E[x]^2.
  SquareDifference,
  /// The mean is rounded and not corrected by mean(x - m).
  UncorrectedMean,
  /// exp is off by 100 units in the last place.
  InaccurateExp,
  /// tanh and sigmoid are off by 1e-4.
  InaccurateTanh,
};

/// Owns the arrays of one call.
class Call {
public:
  explicit Call(DType dtype, int64_t partials = 1) {
    args.dtype = dtype;
    args.arithmetic = Arithmetic::forTier(dtype);
    args.arithmetic.partials = partials;
  }

  TensorRef &input(const std::string &name, DType dtype,
                   std::vector<int64_t> extents) {
    int64_t count = 1;
    for (int64_t extent : extents)
      count *= extent;
    buffers.emplace_back(
        static_cast<size_t>(std::max<int64_t>(count, 1) * sizeInBytes(dtype)));
    return args.inputs[name] = TensorRef::dense(buffers.back().data(), dtype,
                                                std::move(extents));
  }
  TensorRef &generated(const std::string &name, std::vector<int64_t> extents,
                       kernels::ValueClass valueClass, uint64_t seed = 1) {
    TensorRef &tensor = input(name, args.dtype, std::move(extents));
    kernels::GenerateOptions options;
    options.seed = seed;
    options.valueClass = valueClass;
    EXPECT_TRUE(kernels::generate(tensor, name, options).ok());
    return tensor;
  }
  TensorRef &integers(const std::string &name, DType dtype,
                      std::vector<int64_t> extents,
                      const std::vector<int64_t> &values) {
    TensorRef &tensor = input(name, dtype, std::move(extents));
    kernels::forEachElement(tensor, [&](void *address, int64_t i) {
      kernels::storeIntegerElement(dtype, address,
                                   values[static_cast<size_t>(i)]);
    });
    return tensor;
  }
  TensorRef &floats(const std::string &name, std::vector<int64_t> extents,
                    const std::vector<double> &values) {
    TensorRef &tensor = input(name, args.dtype, std::move(extents));
    kernels::forEachElement(tensor, [&](void *address, int64_t i) {
      kernels::storeFloatElement(args.dtype, address,
                                 values[static_cast<size_t>(i)]);
    });
    return tensor;
  }

  std::vector<double> get(std::string_view name) const {
    return kernels::loadFloats(args.inputs.find(name)->second);
  }
  std::vector<int64_t> getIntegers(std::string_view name) const {
    return kernels::loadIntegers(args.inputs.find(name)->second);
  }
  double scalar(std::string_view name, double otherwise) const {
    auto found = args.scalars.find(name);
    return found == args.scalars.end() ? otherwise : found->second;
  }

  oracle::OracleResult expected(std::string_view op) const {
    oracle::OracleFunction function = oracle::findOracle(op);
    EXPECT_NE(function, nullptr) << op;
    if (!function)
      return {};
    Result<oracle::OracleResult> result = function(args);
    EXPECT_TRUE(result.ok())
        << op << ": " << (result.ok() ? "" : result.error().str());
    return result.ok() ? *result : oracle::OracleResult{};
  }

  oracle::OracleArgs args;

private:
  std::deque<std::vector<char>> buffers;
};

struct Counts {
  int64_t accepted = 0;
  int64_t rejected = 0;
  int64_t undecided = 0;
  std::string firstRejection;
};

using Outputs = std::map<std::string, std::vector<double>>;

/// Judges outputs that are not yet rounded to storage.
inline Counts judgeAll(const oracle::OracleResult &expected,
                       const Outputs &actual, DType storage) {
  Counts counts;
  for (const auto &[name, values] : actual) {
    auto found = expected.find(name);
    if (found == expected.end() ||
        found->second.values.size() != values.size()) {
      ADD_FAILURE() << "output " << name << " is missing or has another size";
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const Bounded &want = found->second.values[i];
      auto stored = static_cast<double>(floatFormat(storage).round(values[i]));
      switch (bounded::judge(want, stored, storage)) {
      case bounded::Verdict::Accept:
        ++counts.accepted;
        break;
      case bounded::Verdict::Undecided:
        ++counts.undecided;
        break;
      case bounded::Verdict::Reject:
        if (counts.rejected++ == 0)
          counts.firstRejection =
              name + "[" + std::to_string(i) + "]: got " +
              testing::PrintToString(stored) + ", expected " +
              testing::PrintToString(static_cast<double>(want.value)) +
              " within " +
              testing::PrintToString(static_cast<double>(want.radius));
      }
    }
  }
  return counts;
}

/// The kernels, in compute type T.
template <typename T> class Reference {
public:
  explicit Reference(SumOrder order, Fault fault = Fault::None)
      : order(order), fault(fault) {}

  T sum(std::vector<T> x) const {
    if (fault == Fault::DropTail && x.size() > 1)
      x.pop_back();
    if (order == SumOrder::Left)
      return left(x, 0, 1);
    if (order == SumOrder::Pairwise)
      return pairwise(x, 0, x.size());
    std::vector<T> partial;
    for (size_t lane = 0; lane < 64; ++lane)
      partial.push_back(left(x, lane, 64));
    return pairwise(partial, 0, partial.size());
  }
  T dot(const std::vector<T> &a, const std::vector<T> &b) const {
    if (order == SumOrder::Left && fault == Fault::None) {
      T total = 0;
      for (size_t i = 0; i < a.size(); ++i)
        total = std::fma(a[i], b[i], total);
      return total;
    }
    std::vector<T> products;
    for (size_t i = 0; i < a.size(); ++i)
      products.push_back(a[i] * b[i]);
    return sum(std::move(products));
  }
  T mean(const std::vector<T> &x) const {
    T n = static_cast<T>(x.size());
    return order == SumOrder::Left ? sum(x) / n : sum(x) * (T(1) / n);
  }
  T exp(T x) const {
    T value = std::exp(x);
    // The sign varies, since a common factor would cancel in a softmax.
    if (fault == Fault::InaccurateExp)
      value += (static_cast<int>(x * 16) % 2 ? 100 : -100) *
               std::numeric_limits<T>::epsilon() * value;
    return value;
  }
  T sigmoid(T x) const {
    if (fault == Fault::InaccurateTanh)
      return T(0.5) + T(0.5) * tanh(x / 2);
    T e = std::exp(-std::fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
  }
  T tanh(T x) const {
    T value = std::tanh(x);
    return fault == Fault::InaccurateTanh ? value + T(1e-4) : value;
  }

  std::vector<T> softmaxTerms(const std::vector<T> &x, T &maximum,
                              T &total) const {
    maximum = -std::numeric_limits<T>::infinity();
    for (T value : x)
      maximum = std::isnan(value) || std::isnan(maximum)
                    ? std::numeric_limits<T>::quiet_NaN()
                    : std::max(maximum, value);
    std::vector<T> e;
    for (T value : x)
      e.push_back(exp(value - maximum));
    total = sum(e);
    return e;
  }
  std::vector<T> softmax(const std::vector<T> &x) const {
    T maximum, total;
    std::vector<T> y = softmaxTerms(x, maximum, total);
    for (T &value : y)
      value = order == SumOrder::Left ? value / total : value * (1 / total);
    return y;
  }
  /// One pass, as an online algorithm sums: returns the sum.
  T onlineSum(const std::vector<T> &x, T &maximum) const {
    maximum = -std::numeric_limits<T>::infinity();
    T total = 0;
    for (T value : x) {
      T next = std::max(maximum, value);
      total =
          total * (total == 0 ? T(0) : exp(maximum - next)) + exp(value - next);
      maximum = next;
    }
    return total;
  }
  std::vector<T> rmsNorm(const std::vector<T> &x, const std::vector<T> &w,
                         T eps) const {
    T meanSquare = dot(x, x) / static_cast<T>(x.size());
    T inverse = 1 / std::sqrt(meanSquare + eps);
    std::vector<T> y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back(order == SumOrder::Pairwise ? x[i] * w[i] * inverse
                                              : x[i] * inverse * w[i]);
    return y;
  }
  std::vector<T> layerNorm(const std::vector<T> &x, const std::vector<T> &w,
                           const std::vector<T> &b, T eps) const {
    T m = mean(x), n = static_cast<T>(x.size());
    std::vector<T> c;
    for (T value : x)
      c.push_back(value - m);
    T d = fault == Fault::UncorrectedMean ? T(0) : mean(c);
    T variance = std::max(dot(c, c) / n - d * d, T(0));
    if (fault == Fault::SquareDifference) {
      variance = std::max(dot(x, x) / n - m * m, T(0));
      d = 0;
    }
    T inverse = 1 / std::sqrt(variance + eps);
    std::vector<T> y;
    for (size_t i = 0; i < x.size(); ++i) {
      T normal = (c[i] - d) * inverse;
      y.push_back(order == SumOrder::Left ? std::fma(normal, w[i], b[i])
                                          : normal * w[i] + b[i]);
    }
    return y;
  }
  T gelu(T x) const {
    T k = T(0.7978845608028654), c = T(0.044715);
    if (order == SumOrder::Left)
      return T(0.5) * x * (1 + tanh(k * (x + c * (x * x * x))));
    return x * sigmoid(2 * k * std::fma(c * x * x, x, x));
  }
  T geluSlope(T x) const {
    T k = T(0.7978845608028654), c = T(0.044715);
    T t = tanh(k * (x + c * x * x * x));
    T near = std::clamp(x, T(-32), T(32));
    return T(0.5) * (1 + t) +
           T(0.5) * x * (1 - t * t) * k * (1 + 3 * c * near * near);
  }

private:
  T add(T a, T b) const {
    T total = a + b;
    if (fault == Fault::Bf16Accumulation)
      total = static_cast<T>(floatFormat(DType::BF16).round(total));
    return total;
  }
  T left(const std::vector<T> &x, size_t begin, size_t step) const {
    T total = 0;
    for (size_t i = begin; i < x.size(); i += step)
      total = add(total, x[i]);
    return total;
  }
  T pairwise(const std::vector<T> &x, size_t begin, size_t end) const {
    if (end - begin == 0)
      return 0;
    if (end - begin == 1)
      return x[begin];
    size_t middle = begin + (end - begin) / 2;
    return add(pairwise(x, begin, middle), pairwise(x, middle, end));
  }

  SumOrder order;
  Fault fault;
};

} // namespace tessera::oracletest

#endif // TESSERA_TEST_UNIT_ORACLE_REFERENCE_KERNELS_H
