//===- tools/tessera/tune.cpp - tessera tune ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_record.h"
#include "tools/tessera/command_line.h"
#include "tools/tessera/render.h"

#include <algorithm>

namespace tessera::cli {

namespace {

struct TuneOptions {
  CommonOptions common;
  std::string seconds = "10";
};

Result<int> tune(const TuneOptions &options) {
  Result<double> seconds = parseDecimal("--time", options.seconds, 0.01, 1e5);
  if (!seconds)
    return seconds.error();
  Result<Subject> subject = makeSubject(options.common);
  if (!subject)
    return subject.error();
  Result<session::CompiledOperator> chosen = subject->prepare();
  if (!chosen)
    return chosen.error();
  Result<session::RunResult> first = chosen->run();
  if (!first)
    return first.error();
  const Plan &plan = *chosen->compiled()->plan;
  std::vector<const PlanCandidate *> candidates;
  std::vector<CompiledKernel> kernels;
  for (const PlanCandidate &candidate : plan.candidates) {
    if (candidate.code == "chosen" || !candidate.nanoseconds)
      continue;
    subject->request.choices =
        std::make_shared<const PlanChoices>(candidate.choices);
    Result<session::Compilation> compiled =
        subject->compile(session::Assume::Dense);
    if (!compiled)
      return compiled.error();
    candidates.push_back(&candidate);
    kernels.push_back(std::move(compiled->kernel));
  }
  Result<std::vector<double>> times = chosen->race(kernels, *seconds);
  if (!times)
    return times.error();
  auto predicted = [](const PlanCandidate &candidate) {
    return timeText(1e-9 * candidate.nanoseconds.value_or(0));
  };
  double best = *std::min_element(times->begin(), times->end());
  for (const PlanCandidate &candidate : plan.candidates)
    if (candidate.code == "chosen")
      fmt::print("{:<44} {:>9} predicted {:>9} measured  chosen\n",
                 candidate.what, predicted(candidate), timeText((*times)[0]));
  for (size_t i = 0; i < candidates.size(); ++i)
    fmt::print("{:<44} {:>9} predicted {:>9} measured  {}\n",
               candidates[i]->what, predicted(*candidates[i]),
               timeText((*times)[i + 1]), candidates[i]->code);
  fmt::print("the plan takes {:.3f} of the best candidate's time\n",
             (*times)[0] / best);
  return 0;
}

} // namespace

Action addTune(CLI::App &app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App *verb = app.add_subcommand(
      "tune", "measure the plans that were looked at against the chosen one");
  addCommonOptions(*verb, options->common);
  verb->add_option("--time", options->seconds, "seconds to spend on timing")
      ->capture_default_str();
  verb->footer("Example:\n  tessera tune softmax --dims rows=64,cols=1000");
  return [options] {
    Result<int> status = tune(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
