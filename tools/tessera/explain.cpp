//===- explain.cpp - tessera explain --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace tessera::cli {

namespace {

struct ExplainOptions {
  CommonOptions common;
  std::string stage = "plan";
  bool measure = false;
};

/// The report with the time of prepared calls on one thread, as the prediction
/// is for one.
Result<std::string> measure(session::CompiledOperator &compiled) {
  session::RunValues values;
  values.threads = 1;
  values.verify = false;
  values.timeSeconds = 0.2;
  Result<session::RunResult> result = compiled.run(values);
  if (!result)
    return result.error();
  if (!result->problems.empty())
    return Error{ErrorFamily::Internal,
                 "internal.memory",
                 fmt::format("the measured run of '{}' is wrong: {}",
                             compiled.program().name(),
                             result->problems.front()),
                 {}};
  const CompiledKernel &kernel = *compiled.compiled();
  auto report = nlohmann::ordered_json::parse(kernel.report);
  report["measured"] = measuredJson(*result, kernel.work);
  return report.dump(2, ' ', /*ensure_ascii=*/false,
                     nlohmann::ordered_json::error_handler_t::replace);
}

Result<int> explain(const ExplainOptions &options) {
  const std::string &stage = options.stage;
  if (stage != "tile" && stage != "plan" && stage != "loops" &&
      stage != "llvm" && stage != "asm")
    return Error{ErrorFamily::Usage,
                 "usage.stage",
                 fmt::format("--stage {}: expected tile, plan, loops, llvm or "
                             "asm",
                             stage),
                 {}};
  Result<Subject> subject = makeSubject(
      options.common, {.compileOnly = !options.measure, .writesArrays = false});
  if (!subject)
    return subject.error();
  std::string text;
  subject->request.machineFacts = true;
  if (stage != "plan")
    subject->request.stageText = [&](const char *name, std::string content) {
      if (stage == name)
        text += content;
    };
  std::optional<session::Compilation> compilation;
  std::optional<session::CompiledOperator> measured;
  const CompiledKernel *kernel = nullptr;
  std::string report;
  if (options.measure) {
    Result<session::CompiledOperator> made = subject->prepare();
    if (!made)
      return made.error();
    kernel = measured.emplace(std::move(*made)).compiled();
    Result<std::string> with = measure(*measured);
    if (!with)
      return with.error();
    report = std::move(*with);
  } else {
    Result<session::Compilation> made =
        subject->compile(session::Assume::Dense);
    if (!made)
      return made.error();
    kernel = &compilation.emplace(std::move(*made)).kernel;
    report = kernel->report;
  }
  if (stage == "plan")
    text = renderReport(report);
  if (options.common.json != "-" && options.common.savePlan != "-")
    fmt::print("{}", text);
  if (Result<void> status = writeReport(options.common, report); !status)
    return status.error();
  if (Result<void> status = writePlanFile(options.common, *kernel); !status)
    return status.error();
  return 0;
}

} // namespace

Action addExplain(CLI::App &app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App *verb = app.add_subcommand(
      "explain",
      "show what was decided and emitted; nothing is run without --measure");
  addCompileOnlyOptions(*verb, options->common,
                        "with the checks of data-dependent indices (off)");
  verb->add_option("--stage", options->stage,
                   "tile: specialized Tile IR; plan: plan and report; loops: "
                   "realized loops; llvm: optimized LLVM IR; asm: assembly")
      ->type_name("tile|plan|loops|llvm|asm")
      ->capture_default_str();
  verb->add_flag("--measure", options->measure,
                 "run it, too, on one thread, and show its time beside the "
                 "predicted one");
  addThreadsOption(*verb, options->common, "threads to plan for");
  addPlanOption(*verb, options->common);
  addPrepackedOption(*verb, options->common);
  addVendorOption(*verb, options->common);
  addSavePlanOption(*verb, options->common);
  verb->footer(
      "Examples:\n"
      "  tessera explain softmax --dims rows=64,cols=1000\n"
      "  tessera explain softmax --stage asm --isa avx2\n"
      "  tessera explain examples/my_kernel.mlir --dims rows=4,cols=64 "
      "--json report.json");
  return [options, verb] {
    // Indices that are used are checked, unless the user says otherwise.
    if (options->measure && verb->count("--validate") == 0)
      options->common.validate = true;
    Result<int> status = explain(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
