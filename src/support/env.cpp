//===- env.cpp - Environment variables for debugging ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table and its readers.
//
//===----------------------------------------------------------------------===//

#include "support/env.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <unistd.h>

extern char **environ;

namespace tessera::support {

namespace {

constexpr std::array<EnvEntry, 15> table = {{
    {EnvVariable::Log, "TESSERA_LOG", "0 or 1",
     "prints one line per launch to standard error, in the form of a command "
     "that repeats it; off when unset",
     EnvKind::Flag},
    {EnvVariable::Threads, "TESSERA_THREADS", "1 to 4096",
     "threads of the default task pool, the caller included; one per available "
     "core when unset",
     EnvKind::Integer, 1, 4096},
    {EnvVariable::SpinMicroseconds, "TESSERA_SPIN_US", "0 to 1000000",
     "microseconds an idle worker spins before it parks; 100 when unset, 2 "
     "when there are more threads than cores",
     EnvKind::Integer, 0, 1000000},
    {EnvVariable::DumpDir, "TESSERA_DUMP_DIR", "a directory",
     "every stage of a compilation is written there; nothing is written when "
     "unset",
     EnvKind::Folder},
    {EnvVariable::Isa, "TESSERA_ISA", "the name of an instruction-set level",
     "compiles for that level instead of the best one this machine has",
     EnvKind::Name},
    {EnvVariable::PerfMap, "TESSERA_PERF", "0 or 1",
     "writes symbols of compiled code for perf to /tmp/perf-PID.map; off when "
     "unset",
     EnvKind::Flag},
    {EnvVariable::Calibration, "TESSERA_CALIBRATION", "a file, or off",
     "the file of `tessera calibrate`, or none; "
     "tessera/calibration.json in the configuration folder when unset",
     EnvKind::Name},
    {EnvVariable::PlanDir, "TESSERA_PLAN_DIR", "a directory, or off",
     "where tessera tune keeps plans and compilations find them; off for "
     "nowhere; tessera/plans in $XDG_CACHE_HOME or ~/.cache when unset",
     EnvKind::Name},
    {EnvVariable::CacheDir, "TESSERA_CACHE_DIR", "a directory, or off",
     "where compile() and tessera run keep executables and find them; off for "
     "nowhere; tessera/executables in $XDG_CACHE_HOME or ~/.cache when unset",
     EnvKind::Name},
    {EnvVariable::CacheMiB, "TESSERA_CACHE_MIB", "1 to 1048576",
     "MiB that these executables may take, the least recently used are "
     "removed; 256 when unset",
     EnvKind::Integer, 1, 1048576},
    {EnvVariable::VendorLibrary, "TESSERA_VENDOR_LIBRARY", "a shared library",
     "the library that --vendor calls; when unset, the first that is there of "
     "OpenBLAS and BLIS, or of the versions of oneDNN",
     EnvKind::Name},
    {EnvVariable::BenchDir, "TESSERA_BENCH_DIR", "a directory",
     "where tessera bench finds suites, instead of beside the program or in "
     "the source tree",
     EnvKind::Folder},
    {EnvVariable::PeersDir, "TESSERA_PEERS_DIR", "a directory",
     "where ./dev peers installs and tessera bench looks; "
     "~/.local/share/tessera/peers when unset",
     EnvKind::Name},
    {EnvVariable::BenchReply, "TESSERA_BENCH_REPLY", "a file descriptor",
     "set by tessera bench for its worker processes: where replies go",
     EnvKind::Name},
    {EnvVariable::BenchTimer, "TESSERA_BENCH_TIMER", "a shared library",
     "the timing loop that benchmark workers in Python load, instead of the "
     "one beside the program",
     EnvKind::Name},
}};

/// -1 until the variable has been read.
std::atomic<int> cachedLog{-1};

const char *rawValue(EnvVariable variable) {
  const std::string variableName(table[static_cast<size_t>(variable)].name);
  const char *value = std::getenv(variableName.c_str());
  return value && *value ? value : nullptr;
}

} // namespace

std::span<const EnvEntry> envTable() { return table; }

std::optional<std::string> envText(EnvVariable variable) {
  const char *value = rawValue(variable);
  if (!value)
    return std::nullopt;
  return std::string(value);
}

std::optional<int64_t> envInteger(EnvVariable variable, int64_t low,
                                  int64_t high) {
  const char *value = rawValue(variable);
  if (!value)
    return std::nullopt;
  const std::string_view text(value);
  int64_t number = 0;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() ||
      number < low || number > high)
    return std::nullopt;
  return number;
}

bool envFlag(EnvVariable variable) {
  const char *value = rawValue(variable);
  return value && std::string_view(value) != "0";
}

std::vector<std::string> unknownEnvVariables() {
  std::vector<std::string> unknown;
  for (char **entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("TESSERA_"))
      continue;
    const std::string_view variable = text.substr(0, text.find('='));
    bool known = false;
    for (const EnvEntry &row : table)
      known |= row.name == variable;
    if (!known)
      unknown.emplace_back(variable);
  }
  return unknown;
}

std::vector<std::string> envProblems() {
  std::vector<std::string> problems;
  for (const std::string &unknown : unknownEnvVariables())
    problems.push_back("environment variable " + unknown +
                       " is set, but Tessera reads no such variable; see "
                       "tessera doctor");
  for (const EnvEntry &row : table) {
    const char *value = rawValue(row.variable);
    if (!value)
      continue;
    const auto expected = [&](std::string_view effect) {
      problems.push_back(std::string(row.name) + " is '" + value +
                         "', expected " + std::string(row.values) + "; " +
                         std::string(effect));
    };
    const std::string_view text(value);
    switch (row.kind) {
    case EnvKind::Flag:
      if (text != "0" && text != "1")
        expected("it is taken as 1");
      break;
    case EnvKind::Integer:
      if (!envInteger(row.variable, row.low, row.high))
        expected("it is ignored");
      break;
    case EnvKind::Folder:
      if (std::error_code code; !std::filesystem::is_directory(text, code))
        expected(row.variable == EnvVariable::DumpDir ? "nothing is written"
                                                      : "it is ignored");
      break;
    case EnvKind::Name:
      break;
    }
  }
  return problems;
}

bool launchLogEnabled() {
  int value = cachedLog.load(std::memory_order_relaxed);
  if (value < 0) {
    value = envFlag(EnvVariable::Log) ? 1 : 0;
    cachedLog.store(value, std::memory_order_relaxed);
  }
  return value != 0;
}

void reloadEnvironment() { cachedLog.store(-1, std::memory_order_relaxed); }

void logLine(std::string_view line) {
  std::string text(line);
  text += '\n';
  // Logging must not fail a launch: a closed standard error is ignored.
  [[maybe_unused]] ssize_t written =
      ::write(STDERR_FILENO, text.data(), text.size());
}

} // namespace tessera::support
