//===- kernels/oracle/arguments.h - Reading an oracle's inputs --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs as dense row-major copies, with their extents checked. The first
// problem is kept; an oracle asks for all its inputs, then for error() once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_ARGUMENTS_H
#define TESSERA_KERNELS_ORACLE_ARGUMENTS_H

#include "kernels/in_parallel.h"
#include "kernels/oracle/oracle.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tessera::oracle {

struct Floats {
  std::vector<int64_t> extents;
  std::vector<double> data;

  long double at(int64_t i) const { return data[static_cast<size_t>(i)]; }
  long double at(int64_t i, int64_t j) const { return at(i * extents[1] + j); }
  Bounded bounded(int64_t i) const { return Bounded::exact(at(i)); }
  Bounded bounded(int64_t i, int64_t j) const {
    return Bounded::exact(at(i, j));
  }
};

struct Integers {
  std::vector<int64_t> extents;
  std::vector<int64_t> data;

  int64_t at(int64_t i) const { return data[static_cast<size_t>(i)]; }
};

class Inputs {
public:
  explicit Inputs(const OracleArgs &args) : args(args) {}

  bool has(std::string_view name) const {
    return args.inputs.find(name) != args.inputs.end();
  }
  /// A floating input of the given rank.
  Floats floats(std::string_view name, int64_t rank);
  /// A floating input of exactly these extents.
  Floats floatsOf(std::string_view name, const std::vector<int64_t> &extents);
  /// A Bool or integer input of the given rank.
  Integers integers(std::string_view name, int64_t rank);
  /// A Bool or integer input of exactly these extents.
  Integers integersOf(std::string_view name,
                      const std::vector<int64_t> &extents);

  double scalar(std::string_view name, double otherwise) const;
  bool flag(std::string_view name) const { return scalar(name, 0) != 0; }
  /// The extent of a dimension that no input has.
  int64_t dim(std::string_view name);

  /// Notes a problem of an argument unless there is one already.
  void fail(std::string_view name, std::string_view problem);
  const std::optional<Error> &error() const { return firstError; }

private:
  /// The tensor if it is there and fits; notes the problem otherwise.
  const TensorRef *find(std::string_view name, bool floating, int64_t rank,
                        const std::vector<int64_t> *extents);

  const OracleArgs &args;
  std::optional<Error> firstError;
};

/// The product of the extents.
int64_t elementCount(const std::vector<int64_t> &extents);

/// Calls run(i) for each i in [0, count) on the threads that the caller allows.
template <typename Run>
void inParallel(const OracleArgs &args, int64_t count, const Run &run) {
  kernels::inParallel(args.pool, args.threads, count, run);
}

/// Calls run(i) as inParallel does, several at a time: for short ones.
template <typename Run>
void perElement(const OracleArgs &args, int64_t count, const Run &run) {
  constexpr int64_t block = 1024;
  inParallel(args, (count + block - 1) / block, [&](int64_t number) {
    int64_t end = std::min(count, (number + 1) * block);
    for (int64_t i = number * block; i < end; ++i)
      run(i);
  });
}

/// A floating output of the storage type, zeros until its elements are placed,
/// in any order and from any thread; each value is rounded to that type.
class FloatOutput {
public:
  FloatOutput(const OracleArgs &args, std::vector<int64_t> extents);

  void place(int64_t index, const Bounded &value) {
    output.values[static_cast<size_t>(index)] =
        bounded::roundTo(value, args.dtype, args.arithmetic);
  }
  OracleOutput take() { return std::move(output); }

private:
  const OracleArgs &args;
  OracleOutput output;
};

/// A result of one output or two, moved in.
OracleResult resultOf(std::string name, OracleOutput output);
OracleResult resultOf(std::string first, OracleOutput firstOutput,
                      std::string second, OracleOutput secondOutput);

/// z = scale x + shift, then the larger of z and slope z, by the scalars of
/// affine_leaky.
class AffineLeaky {
public:
  AffineLeaky(const Inputs &inputs, const Arithmetic &rules)
      : scale(bounded::parameter(inputs.scalar("scale", 0.375), rules)),
        shift(bounded::parameter(inputs.scalar("shift", -0.25), rules)),
        slope(bounded::parameter(inputs.scalar("slope", 0.1), rules)),
        rules(rules) {}

  Bounded operator()(const Bounded &x) const {
    Bounded z = fma(x, scale, shift, rules);
    return max(z, mul(slope, z, rules));
  }

private:
  Bounded scale, shift, slope;
  const Arithmetic &rules;
};

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_ARGUMENTS_H
