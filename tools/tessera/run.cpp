//===- run.cpp - tessera run ----------------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include <limits>
#include <optional>

using Json = nlohmann::ordered_json;

namespace tessera::cli {

namespace {

struct RunOptions {
  CommonOptions common;
  /// As typed; empty for all cores.
  std::string seedText = "0";
  int threads = 0;
  uint64_t seed = 0;
  bool verify = false;
  std::string format = "text";
};

/// What was run and how it went.
struct Outcome {
  const RunOptions &options;
  const session::CompiledOperator &compiled;
  const session::RunResult &result;

  Isa isa;

  std::string_view target() const {
    return compiled.compiled() ? name(isa) : "interp";
  }
  int64_t bytes() const {
    const CompiledKernel *kernel = compiled.compiled();
    return kernel ? kernel->work.bytesRead + kernel->work.bytesWritten : 0;
  }
  double gigabytesPerSecond() const {
    return result.seconds > 0
               ? static_cast<double>(bytes()) / result.seconds / 1e9
               : 0;
  }
  std::string plan() const {
    return compiled.compiled() ? compiled.compiled()->planSummary
                               : "reference interpreter";
  }
  std::string shape() const {
    if (!compiled.dims().empty()) {
      std::string text;
      for (std::string_view dim :
           kernels::findOperator(options.common.what)->dims)
        text += (text.empty() ? "" : "x") +
                std::to_string(compiled.dims().find(dim)->second);
      return text;
    }
    std::vector<session::ArrayParameter> arrays = compiled.arrays();
    return arrays.empty() ? "" : shapeText(arrays.front().extents);
  }
  std::string verdict() const {
    if (!result.problems.empty())
      return "FAIL";
    return !result.verified ? "-" : result.passed() ? "PASS" : "FAIL";
  }
};

void printText(const Outcome &outcome) {
  const session::RunResult &result = outcome.result;
  fmt::print("{}  {}  {}\n", outcome.compiled.program().name(), outcome.shape(),
             outcome.target());
  for (const session::ArrayParameter &array : outcome.compiled.arrays()) {
    if (!array.isOutput)
      continue;
    std::string line = fmt::format("  {:<8} {} {}", array.name,
                                   shapeText(array.extents), name(array.dtype));
    for (const session::OutputResult &output : result.outputs) {
      if (output.name != array.name)
        continue;
      line +=
          fmt::format("  max error {:.3g}, bound {:.3g}  {}", output.maxError,
                      output.bound, output.passed() ? "PASS" : "FAIL");
      if (output.comparedWithInterpreter > 0)
        line += fmt::format("\n           {} of {} elements are not decided by "
                            "the oracle and were compared with the interpreter",
                            output.comparedWithInterpreter, output.elements);
      if (!output.passed())
        line += fmt::format(
            "\n           {} of {} elements are wrong, first {}", output.wrong,
            output.elements, output.firstWrong->str());
    }
    fmt::print("{}\n", line);
  }
  if (!result.raceCheck.empty() && result.raceCheck != "passed")
    fmt::print("  race check: {}\n", result.raceCheck);
  for (const std::string &problem : result.problems)
    fmt::print("  FAIL: {}\n", problem);
  fmt::print("plan: {}\n", outcome.plan());
  if (result.timedRuns > 0)
    fmt::print("time: {} (median of {}), {:.3g} GB/s, {} effective bytes\n",
               timeText(result.seconds), result.timedRuns,
               outcome.gigabytesPerSecond(), outcome.bytes());
}

/// One row of a table; scripts/run_examples.sh prints the head.
void printLine(const Outcome &outcome) {
  double error = 0, bound = 0;
  for (const session::OutputResult &output : outcome.result.outputs)
    if (output.maxError >= error) {
      error = output.maxError;
      bound = output.bound;
    }
  bool timed = outcome.result.timedRuns > 0;
  fmt::print("{:<20} {:<12} {:>9} {:>9}  {:<4} {:>9} {:>6}  {}\n",
             outcome.compiled.program().name(), outcome.shape(),
             outcome.result.verified ? fmt::format("{:.2e}", error) : "-",
             outcome.result.verified ? fmt::format("{:.2e}", bound) : "-",
             outcome.verdict(), timed ? timeText(outcome.result.seconds) : "-",
             timed ? fmt::format("{:.1f}", outcome.gigabytesPerSecond()) : "-",
             shortened(outcome.plan(), 60));
}

Json textOrNull(const std::string &text) {
  return text.empty() ? Json() : Json(text);
}

/// The report of the compilation with what this run measured.
Json makeJson(const Outcome &outcome) {
  const session::RunResult &result = outcome.result;
  Json json;
  const CompiledKernel *kernel = outcome.compiled.compiled();
  if (kernel)
    json = Json::parse(kernel->report);
  else
    json = {{"schema", 1}, {"kernel", outcome.compiled.program().name()}};
  Json run;
  run["target"] = outcome.target();
  run["seed"] = outcome.options.seed;
  run["threads"] = outcome.options.threads;
  run["verified"] = result.verified;
  run["passed"] = result.verified ? Json(result.passed()) : Json();
  run["race_check"] =
      result.raceCheck.empty() ? Json() : Json(result.raceCheck);
  run["problems"] = result.problems;
  run["outputs"] = Json::array();
  for (const session::OutputResult &output : result.outputs) {
    Json entry{{"name", output.name},
               {"dtype", name(output.dtype)},
               {"extents", output.extents},
               {"max_error", output.maxError},
               {"bound", output.bound},
               {"bound_used", output.boundUsed},
               {"elements", output.elements},
               {"wrong", output.wrong},
               {"compared_with_interpreter", output.comparedWithInterpreter},
               {"verdict", output.passed() ? "PASS" : "FAIL"}};
    entry["first_wrong"] =
        output.firstWrong ? Json(output.firstWrong->str()) : Json();
    run["outputs"].push_back(entry);
  }
  if (kernel) {
    json["origin"] = name(kernel->cache.origin);
    run["cache"] = {{"key", textOrNull(kernel->cache.key)},
                    {"why_compiled", textOrNull(kernel->cache.whyCompiled)},
                    {"why_not_kept", textOrNull(kernel->cache.whyNotKept)}};
  }
  json["run"] = run;
  json["measured"] = kernel ? measuredJson(result, kernel->work) : Json();
  return json;
}

Result<void> readNumbers(RunOptions &options) {
  Result<uint64_t> seed = parseWhole("--seed", options.seedText, 0,
                                     std::numeric_limits<uint64_t>::max());
  if (!seed)
    return seed.error();
  options.seed = *seed;
  return {};
}

Result<int> run(RunOptions options) {
  if (Result<void> status = readNumbers(options); !status)
    return status.error();
  if (options.format != "text" && options.format != "line")
    return Error{
        ErrorFamily::Usage,
        "usage.format",
        fmt::format("--format {}: expected text or line", options.format),
        {}};
  Result<Subject> subject = makeSubject(options.common);
  if (!subject)
    return subject.error();
  subject->request.machineFacts = !options.common.json.empty();
  // A kernel from disk has no plan to save.
  subject->request.useDiskCache = options.common.savePlan.empty();
  options.threads = subject->request.threads;
  Result<session::CompiledOperator> compiled = subject->prepare();
  if (!compiled)
    return compiled.error();
  session::RunValues values;
  values.seed = options.seed;
  values.threads = options.threads;
  values.verify = values.checkAccesses = options.verify;
  values.timeSeconds = 0.02;
  Result<session::RunResult> result = compiled->run(values);
  if (!result)
    return result.error();

  bool failed =
      !result->problems.empty() || (options.verify && !result->passed());
  Outcome outcome{options, *compiled, *result, subject->request.isa};
  bool jsonOnly = options.common.json == "-" || options.common.savePlan == "-";
  if (!jsonOnly)
    options.format == "line" ? printLine(outcome) : printText(outcome);
  // Wrong results are shown, not kept.
  if (!failed)
    for (const auto &[output, file] : subject->outputFiles)
      if (Result<void> status = writeNpy(file, *compiled->array(output));
          !status) {
        Error error = status.error();
        error.message = fmt::format("--output {}: {}", output, error.message);
        return error;
      }
  if (failed && !subject->outputFiles.empty())
    printError("tessera: verification failed, no output was written\n");
  if (!options.common.json.empty())
    if (Result<void> status =
            writeReport(options.common,
                        makeJson(outcome).dump(2, ' ', /*ensure_ascii=*/false,
                                               Json::error_handler_t::replace));
        !status)
      return status.error();
  if (compiled->compiled() && !failed)
    if (Result<void> status =
            writePlanFile(options.common, *compiled->compiled());
        !status)
      return status.error();
  return failed ? 1 : 0;
}

} // namespace

Action addRun(CLI::App &app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *verb =
      app.add_subcommand("run", "compile, run and, with --verify, prove right");
  addCommonOptions(*verb, options->common);
  verb->add_option("--target", options->common.target,
                   "cpu, or interp for the reference interpreter")
      ->type_name("cpu|interp")
      ->capture_default_str();
  addThreadsOption(*verb, options->common, "threads that may take part");
  verb->add_option("--seed", options->seedText,
                   "seed of the inputs that are not given")
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--verify", options->verify,
                 "compare every output element with the float64 oracle (with "
                 "the interpreter's, for a file) and, before a small enough "
                 "launch, look for races and broken promises");
  options->common.validate = true;
  verb->add_flag("--validate,!--no-validate", options->common.validate,
                 "check indices that depend on data before anything is written "
                 "(on)");
  verb->add_option("--format", options->format,
                   "text, or line for one row of a table")
      ->type_name("text|line")
      ->capture_default_str();
  addPlanOption(*verb, options->common);
  addPrepackedOption(*verb, options->common);
  addVendorOption(*verb, options->common);
  addSavePlanOption(*verb, options->common);
  verb->footer("Examples:\n"
               "  tessera run softmax --dims rows=17,cols=65 --verify\n"
               "  tessera run rms_norm --input x=x.npy --input w=w.npy "
               "--output y=y.npy --set eps=1e-5\n"
               "  tessera run gemm --dims m=64,n=64,k=64 --input c0 --set "
               "beta=0.5 --verify\n"
               "  tessera run examples/my_kernel.mlir --input x=x.npy --output "
               "y=y.npy --verify");
  return [options] {
    Result<int> status = run(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
