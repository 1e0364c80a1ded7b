//===- bench_options.h - What `tessera bench` is told -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_BENCH_OPTIONS_H
#define TESSERA_TOOLS_TESSERA_BENCH_OPTIONS_H

#include "bench/core/row.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::cli {

struct BenchOptions {
  std::string op;
  std::string suite;
  std::vector<std::string> dims;
  /// Empty: f32 and native, or what the suite says.
  std::string dtype;
  std::string boundary;
  std::string plan;
  std::string vendor;
  std::string isa = "native";
  std::string peers = "none";
  std::string filter;
  std::string json;
  std::string html;
  std::string machine;
  /// Numbers as typed, and read; no threads are what the suite says.
  std::string threadsText;
  std::string roundsText = "12";
  std::string samplesText = "5";
  std::string rowSecondsText = "20";
  std::string answerSecondsText = "180";
  std::string seedText = "1";
  int threads = -1;
  int rounds = 0;
  int samples = 0;
  double rowSeconds = 0;
  double answerSeconds = 0;
  uint64_t seed = 0;
  bool tuned = false;
  bool restart = false;
  bool finish = false;

  /// A command that makes the same rows again.
  std::string command() const;
};

/// Whether a result file can hold the text.
bool isUtf8(const std::string &text);

/// Reads the numbers that were typed.
Result<void> readNumbers(BenchOptions &options);

/// The suite that is asked for, or one of the one row.
Result<bench::Suite> chooseSuite(const BenchOptions &options);

/// The rows that are asked for, with their numbers of threads and the arms of
/// libraries, none twice.
Result<std::vector<bench::RowSpec>> chooseRows(const bench::Suite &suite,
                                               const BenchOptions &options);

/// Fails where the plan that is given cannot be applied to its row here.
Result<void> checkPlan(const std::vector<bench::RowSpec> &rows);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_BENCH_OPTIONS_H
