//===- tessera/dsl/options.h - What a kernel is traced for ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain data around a kernel: what its parameters are, what a trace decides
// (storage type, constants, optional parameters, tunables, tier) and which
// parts of the plan the author pins.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_OPTIONS_H
#define TESSERA_DSL_OPTIONS_H

#include "tessera/dtype.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tessera {

/// How the contributions of a reduction may be grouped (docs/semantics.md,
/// "Reductions and scans").
enum class Order : uint8_t {
  /// Any grouping and permutation.
  Unordered,
  /// A balanced tree over the elements in order.
  Tree,
  /// ((init, x0), x1), ...
  Left,
  /// x0, (x1, (..., init)).
  Right,
};

/// The numeric tier of a kernel (docs/semantics.md, "Tiers").
enum class Tier : uint8_t { Strict, Default, Fast };

/// A compile-time constant or the default of a scalar: bool, integer or float.
using Constant = std::variant<bool, int64_t, double>;

/// The parts of a plan that the author fixes. A pin is a contract: where it
/// cannot be met, compilation fails with the reason. Absent fields are the
/// planner's choice.
struct Schedule {
  /// The dimension that is vectorized, by name.
  std::optional<std::string> vectorAxis = {};
  /// Elements per vector.
  std::optional<int64_t> lanes = {};
  /// Vectors per iteration of a loop over the vector axis.
  std::optional<int64_t> unroll = {};
  /// Independent partial results of an unordered reduction.
  std::optional<int64_t> partials = {};
  /// Block extents by dimension name.
  std::map<std::string, int64_t> tileSizes = {};
  /// Where a value that crosses a phase lives: "registers", "scratch",
  /// "reread", "recompute" or "shared".
  std::optional<std::string> staging = {};
  /// Iterations of a pipeline in flight.
  std::optional<int64_t> stages = {};
  /// How a tail is handled: "mask", "overlap" or "scalar".
  std::optional<std::string> tail = {};
  /// Threads the plan may use.
  std::optional<int64_t> threads = {};
  /// Program instances per task.
  std::optional<int64_t> grain = {};

  bool empty() const {
    return !vectorAxis && !lanes && !unroll && !partials && tileSizes.empty() &&
           !staging && !stages && !tail && !threads && !grain;
  }
};

/// What one trace of a kernel fixes.
struct TraceOptions {
  /// The storage type of `Float` parameters; a floating type.
  DType storage = DType::F32;
  /// Values of Const<T> parameters by name; absent ones take their default.
  std::map<std::string, Constant> constants = {};
  /// Names of the optional parameters that the call gives.
  std::vector<std::string> present = {};
  /// Values of tunables by name; absent ones take their first candidate.
  std::map<std::string, int64_t> tunables = {};
  Tier tier = Tier::Default;
};

/// What a kernel says about one of its parameters.
struct ParameterInfo {
  enum class Kind : uint8_t {
    /// An array of the caller.
    View,
    /// A number given at launch.
    Scalar,
    /// A number given when the kernel is traced.
    Constant,
  };
  std::string name;
  Kind kind = Kind::View;
  /// The element type; std::nullopt for `Float`, which the trace chooses (a
  /// scalar of type `Float` has its compute type).
  std::optional<DType> dtype;
  /// Number of axes of a view.
  int rank = 0;
  /// A view the kernel may store to.
  bool writable = false;
  /// May be absent: then it is no parameter of the traced kernel.
  bool optional = false;
  /// The value used where the caller gives none (scalars and constants).
  std::optional<Constant> defaultValue;
};

/// A tunable that a trace came across.
struct TunableInfo {
  std::string name;
  std::vector<int64_t> candidates;
  /// The value this trace used.
  int64_t value = 0;
};

} // namespace tessera

#endif // TESSERA_DSL_OPTIONS_H
