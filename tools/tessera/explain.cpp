//===- explain.cpp - tessera explain --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include "fmt/format.h"

namespace tessera::cli {

namespace {

struct ExplainOptions {
  CommonOptions common;
  std::string stage = "plan";
};

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
  Result<Subject> subject = makeSubject(options.common, {.compileOnly = true});
  if (!subject)
    return subject.error();
  std::string text;
  subject->request.machineFacts = true;
  if (stage != "plan")
    subject->request.stageText = [&](const char *name, std::string content) {
      if (stage == name)
        text += content;
    };
  Result<session::Compilation> compiled =
      subject->compile(session::Assume::Dense);
  if (!compiled)
    return compiled.error();
  if (stage == "plan")
    text = renderReport(compiled->kernel.report);
  if (options.common.json != "-")
    fmt::print("{}", text);
  if (Result<void> status =
          writeReport(options.common, compiled->kernel.report);
      !status)
    return status.error();
  return 0;
}

} // namespace

Action addExplain(CLI::App &app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App *verb = app.add_subcommand(
      "explain", "show what was decided and emitted, without running");
  addCompileOnlyOptions(*verb, options->common,
                        "with the checks of data-dependent indices (off)");
  verb->add_option("--stage", options->stage,
                   "tile: specialized Tile IR; plan: plan and report; loops: "
                   "realized loops; llvm: optimized LLVM IR; asm: assembly")
      ->type_name("tile|plan|loops|llvm|asm")
      ->capture_default_str();
  verb->footer(
      "Examples:\n"
      "  tessera explain softmax --dims rows=64,cols=1000\n"
      "  tessera explain softmax --stage asm --isa avx2\n"
      "  tessera explain examples/my_kernel.mlir --dims rows=4,cols=64 "
      "--json report.json");
  return [options] {
    Result<int> status = explain(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
