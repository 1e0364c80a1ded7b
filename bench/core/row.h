//===- bench/core/row.h - One row of a benchmark ----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_ROW_H
#define TESSERA_BENCH_CORE_ROW_H

#include "session/session.h"

#include <nlohmann/json.hpp>

#include <string>

namespace tessera::bench {

/// Another way to compute a row: a second arm.
struct Variant {
  std::string name;
  /// Tessera's operators one after another: {"operator", "dims": {own: row's},
  /// "arrays": {own: row's, or "$NAME" for one between steps}}. Null where a
  /// library computes the row.
  nlohmann::json steps;
  /// The library that the row's kernel is handed to (docs/howto/vendor.md).
  Vendor vendor = Vendor::None;
};

/// Where the clock stands (docs/benchmarking.md); "device" is an interval that
/// the device's own clock measured.
inline constexpr const char *boundaries[] = {
    "native", "prepared", "call", "batch", "cold", "disk", "device"};

/// An operator at certain extents, measured at one boundary.
struct RowSpec {
  std::string operatorName;
  DType dtype = DType::F32;
  kernels::Dims dims = {};
  kernels::Settings settings = {};
  /// Optional arrays that take part.
  std::vector<std::string> present = {};
  /// One of `boundaries`.
  std::string boundary = "native";
  /// 0 for all.
  int threads = 1;
  std::vector<Variant> variants = {};
  /// A saved plan to apply instead of the default one.
  std::optional<PlanText> plan = {};
  /// The library that the kernel is handed to, in what a worker is asked for.
  Vendor vendor = Vendor::None;

  /// "softmax/f32/rows=17,cols=65/native/1".
  std::string id() const;
  nlohmann::json toJson() const;
  /// Fails with Usage where a field is missing or of the wrong kind.
  static Result<RowSpec> fromJson(const nlohmann::json &json);
  session::RunRequest runRequest() const;
};

/// A suite: rows, and a text that says what they are for.
struct Suite {
  std::string name;
  std::string summary;
  std::vector<RowSpec> rows;
  /// Whether it is about the ceilings, which every run measures: it needs no
  /// rows.
  bool ceilings = false;
};

/// Reads a suite file (docs/benchmarking.md). Fails with Usage, naming the file
/// and the entry.
Result<Suite> readSuite(const std::string &file);

/// Where the suites are: TESSERA_BENCH_DIR, the source tree, or share/tessera
/// beside the program. Empty when there are none.
std::string benchFolder();
/// The names of all suites, sorted.
std::vector<std::string> suiteNames();
/// The suite of that name. Fails with Usage for an unknown one.
Result<Suite> findSuite(const std::string &name);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_ROW_H
