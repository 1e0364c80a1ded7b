//===- support/env.h - Environment variables for debugging ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that reads TESSERA_* variables. They exist for debugging alone:
// nothing a user needs for correct or fast results is behind one. The table is
// what the documentation and `tessera doctor` print.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_ENV_H
#define TESSERA_SUPPORT_ENV_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::support {

/// The values a variable takes.
enum class EnvKind { Flag, Integer, Folder, Name };

enum class EnvVariable {
  Log,
  Threads,
  SpinMicroseconds,
  DumpDir,
  Isa,
  PerfMap,
  Calibration,
  PlanDir,
  CacheDir,
  CacheMiB,
  VendorLibrary,
  BenchDir,
  PeersDir,
  BenchReply,
  BenchTimer,
};

struct EnvEntry {
  EnvVariable variable;
  /// The variable's full name, "TESSERA_...".
  std::string_view name;
  /// The values it takes, for people: "0 or 1", "a directory".
  std::string_view values;
  /// One sentence: what it does and what holds when it is not set.
  std::string_view meaning;
  EnvKind kind;
  /// For integers.
  int64_t low = 0;
  int64_t high = 0;
};

/// All variables, in the order of the enumeration.
std::span<const EnvEntry> envTable();

/// The value of a variable; std::nullopt when it is unset or empty.
std::optional<std::string> envText(EnvVariable variable);

/// The value as a decimal integer in [low, high]; std::nullopt when it is
/// unset or anything else.
std::optional<int64_t> envInteger(EnvVariable variable, int64_t low,
                                  int64_t high);

/// True when the variable is set to something other than "0".
bool envFlag(EnvVariable variable);

/// Names in the environment that begin with TESSERA_ and are not in the table:
/// most likely misspelled.
std::vector<std::string> unknownEnvVariables();

/// One line for each variable that is unknown or holds a value it does not
/// take: what was found, what was expected, what follows. Names are for their
/// readers to judge.
std::vector<std::string> envProblems();

/// True when every launch is to be logged. Read once, then cheap.
bool launchLogEnabled();

/// Reads the cached values again. For tests that change the environment.
void reloadEnvironment();

/// Writes one line to standard error in a single system call, so that lines of
/// several threads do not mix. A newline is added.
void logLine(std::string_view line);

} // namespace tessera::support

#endif // TESSERA_SUPPORT_ENV_H
