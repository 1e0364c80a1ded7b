//===- bench/core/result.h - Result files -----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_RESULT_H
#define TESSERA_BENCH_CORE_RESULT_H

#include "tessera/error.h"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>

namespace tessera::bench {

/// The version of the layout that docs/benchmarking.md describes.
inline constexpr int schemaVersion = 1;

/// The first 32 hexadecimal digits of the SHA-256 of a text.
std::string digestOf(const std::string &text);

/// Fills "statistics", "comparisons", "noise" and "verdict" of a row from its
/// raw samples.
void summarizeRow(nlohmann::json &row);

/// Writes the document with its digest as the last member, under a temporary
/// name that is then renamed. Fails with Usage where the file cannot be
/// written.
Result<void> writeResult(const std::string &file,
                         const nlohmann::json &document);

/// What becomes of the rows of an interrupted run.
enum class Resume {
  /// They are kept, if the settings and the machine are the same.
  Continue,
  /// They are dropped.
  Restart,
  /// They are kept and nothing is run, so that this may be another machine: the
  /// settings stay those of the file, only the list of rows has to be the same.
  Finish
};

/// Rows finished so far, in FILE.partial: its first line holds the settings of
/// the run, every other a row with its digest. Lines that are not as they were
/// written are left out.
class PartialResult {
public:
  /// Reads what is there. Rows of a run with other settings are refused
  /// (Usage), unless they are dropped.
  static Result<PartialResult> open(const std::string &file,
                                    const nlohmann::json &settings, Resume how);
  /// The finished row of that id; null when it has to be run.
  const nlohmann::json *find(const std::string &id) const;
  /// Adds a row; it is on disk when this returns.
  Result<void> add(const nlohmann::json &row);
  /// The settings line of the run that began the file.
  const nlohmann::json &settings() const { return first; }
  size_t size() const { return rows.size(); }
  /// Removes the file.
  void discard();

private:
  /// Held while the run lasts: two runs on one file would lose rows.
  std::shared_ptr<void> lock;
  std::string file;
  nlohmann::json first;
  std::map<std::string, nlohmann::json> rows;
};

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_RESULT_H
