//===- command_line.h - What the verbs of `tessera` share -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options that run, explain and compile have in common, and how their text
// becomes a request. Each verb adds itself to the application and returns its
// exit status (docs/cli.md).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_COMMAND_LINE_H
#define TESSERA_TOOLS_TESSERA_COMMAND_LINE_H

#include "session/session.h"
#include "tessera/npy.h"
#include "tools/tessera/files.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::cli {

/// Prints to standard error. What cannot be written there is lost: there is no
/// better place to say so.
template <typename... Args>
void printError(fmt::format_string<Args...> format, Args &&...args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

/// What the user typed, before it is understood.
struct CommonOptions {
  std::string what;
  std::string kernel;
  std::vector<std::string> dims;
  std::string dtype;
  std::string target = "cpu";
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> settings;
  std::string tier;
  std::string isa = "native";
  std::string json;
  /// Files of a saved plan to apply, and to write.
  std::string plan;
  std::string savePlan;
  std::string threads;
  std::string vendor;
  std::vector<std::string> prepacked;
  bool validate = false;
};

/// The kernel named on the command line and the request for it.
struct Subject {
  /// Null for a file.
  const kernels::Operator *op = nullptr;
  /// Empty for an operator, which is traced when it is compiled.
  std::optional<Program> program;
  session::RunRequest request;
  /// The memory of the arrays in `request`.
  std::vector<std::unique_ptr<Array>> arrays;
  /// Output name to file, for those that are to be written.
  std::vector<std::pair<std::string, std::string>> outputFiles;

  /// Compiled and with arrays to run on.
  Result<session::CompiledOperator> prepare();
  /// Compiled only.
  Result<session::Compilation> compile(session::Assume assume);
};

/// Adds OP|FILE and the common options to a verb.
void addCommonOptions(CLI::App &verb, CommonOptions &options);
/// The same for a verb that compiles and does not run: it writes no arrays.
void addCompileOnlyOptions(CLI::App &verb, CommonOptions &options,
                           const std::string &validateHelp);

/// Adds --plan to a verb, and --save-plan.
void addPlanOption(CLI::App &verb, CommonOptions &options);
void addSavePlanOption(CLI::App &verb, CommonOptions &options);
/// Adds --prepacked to a verb.
void addPrepackedOption(CLI::App &verb, CommonOptions &options);
/// Adds --vendor to a verb.
void addVendorOption(CLI::App &verb, CommonOptions &options);

/// Adds --threads to a verb.
void addThreadsOption(CLI::App &verb, CommonOptions &options,
                      const std::string &help);

struct SubjectOptions {
  /// Nothing is run: accept instruction sets that this machine cannot run.
  bool compileOnly = false;
  /// Arrays are not written, and nothing is interpreted.
  bool writesArrays = true;
  /// Files that the verb writes besides arrays and the report: path and option.
  std::vector<std::pair<std::string, std::string>> files = {};
};
/// Reads files and turns text into a request. Every error names the option it
/// is about.
Result<Subject> makeSubject(const CommonOptions &options,
                            const SubjectOptions &how = {});

/// The one form of whole numbers in options: decimal digits, within bounds.
Result<uint64_t> parseWhole(std::string_view option, const std::string &text,
                            uint64_t low, uint64_t high);

/// The same for numbers with a fraction or an exponent, "0.5" or "1e3".
Result<double> parseDecimal(std::string_view option, const std::string &text,
                            double low, double high);

/// The entries of an option that takes "A,B" and may be repeated.
Result<std::vector<std::string>>
splitList(std::string_view option, const std::vector<std::string> &texts);

/// "unknown operator 'what'", with the one that may be meant.
std::string describeUnknownOperator(const std::string &what);

/// What --dims says.
Result<kernels::Dims> parseDims(const std::vector<std::string> &texts);

/// Writes the execution report where --json wants it.
Result<void> writeReport(const CommonOptions &options, const std::string &text);

/// Writes the plan where --save-plan wants it.
Result<void> writePlanFile(const CommonOptions &options,
                           const CompiledKernel &kernel);

/// Prints the error and returns its exit status. `file` is the user's text, if
/// any: positions in it are shown.
int report(const Error &error, const std::string &file = "");

/// "17x65".
std::string shapeText(const std::vector<int64_t> &extents);

/// A verb's action: runs after parsing, returns the exit status.
using Action = std::function<int()>;

Action addList(CLI::App &app);
Action addRun(CLI::App &app);
Action addExplain(CLI::App &app);
Action addCompile(CLI::App &app);
Action addTune(CLI::App &app);
Action addBench(CLI::App &app);
/// Hidden: the process of one arm of a benchmark.
Action addBenchWorker(CLI::App &app);
Action addCalibrate(CLI::App &app);
Action addCache(CLI::App &app);
Action addDoctor(CLI::App &app);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_COMMAND_LINE_H
