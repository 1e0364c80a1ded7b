//===- tools/tessera/tune.cpp - tessera tune ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measures the plans that the search looked at and keeps the fastest for this
// machine (docs/howto/tune.md); lists and removes what was kept.
//
//===----------------------------------------------------------------------===//

#include "driver/plan_store.h"
#include "tools/tessera/command_line.h"
#include "tools/tessera/progress_line.h"
#include "tools/tessera/render.h"

#include "nlohmann/json.hpp"

#include <limits>

using Json = nlohmann::ordered_json;

namespace tessera::cli {

namespace {

struct TuneOptions {
  CommonOptions common;
  std::string secondsText = "10";
  std::string candidatesText;
  std::string seedText = "0";
  bool dryRun = false;
  bool list = false;
  bool clear = false;
};

Error usage(std::string message) {
  return {ErrorFamily::Usage, "usage.tune", std::move(message), {}};
}

std::string extentsText(const PlanSubject &subject) {
  std::string text;
  for (const auto &[dim, extent] : subject.extents)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", dim, extent);
  return text;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

Result<std::string> storeFolder() {
  if (std::optional<std::string> folder = planStoreFolder())
    return *folder;
  return usage("there is no folder of tuned plans: TESSERA_PLAN_DIR is off, or "
               "there is no home");
}

Result<int> listEntries() {
  Result<std::string> folder = storeFolder();
  if (!folder)
    return folder.error();
  std::vector<StoredPlan> plans = listTunedPlans();
  for (const StoredPlan &entry : plans) {
    if (!entry.plan || !entry.plan->tuned) {
      fmt::print("{}: damaged: {}\n", entry.path,
                 entry.plan ? "found no record of its tuning"
                            : entry.plan.error().message);
      continue;
    }
    const PlanSubject &subject = entry.plan->subject;
    const TuneRecord &record = *entry.plan->tuned;
    const std::string why = whyNotUsedHere(*entry.plan, entry.path);
    fmt::print("{} {} {} {}: {} instead of {}, noise {:.1f} %{}\n",
               subject.kernel, extentsText(subject), subject.target,
               name(subject.alias), timeText(record.seconds),
               timeText(record.chosenSeconds), 100 * record.noise,
               why.empty() ? "" : "; not used here: " + why);
  }
  fmt::print("{} tuned plans in {}\n", plans.size(), *folder);
  return 0;
}

Result<int> clearEntries() {
  Result<std::string> folder = storeFolder();
  if (!folder)
    return folder.error();
  Result<int64_t> count = clearTunedPlans();
  if (!count)
    return count.error();
  fmt::print("{} tuned plans removed from {}\n", *count, *folder);
  return 0;
}

//===----------------------------------------------------------------------===//
// Tuning
//===----------------------------------------------------------------------===//

void printCandidates(const session::TuneOutcome &outcome) {
  size_t width = 4;
  for (const session::TuneCandidate &candidate : outcome.candidates)
    width = std::max(width, candidate.what.size());
  width = std::min<size_t>(width, 60);
  fmt::print("{:<{}}  {:>9}  {:>9}\n", "plan", width, "predicted", "measured");
  for (size_t i = 0; i < outcome.candidates.size(); ++i) {
    const session::TuneCandidate &candidate = outcome.candidates[i];
    std::string remark;
    if (!candidate.problem.empty())
      remark = "  WRONG, not timed";
    else if (i == 0)
      remark = "  chosen by the search";
    else if (!candidate.seconds)
      remark = "  not timed: the time was spent";
    fmt::print("{:<{}}  {:>9}  {:>9}{}\n", candidate.what, width,
               timeText(candidate.predicted),
               candidate.seconds ? timeText(*candidate.seconds) : "-", remark);
  }
  for (const session::TuneCandidate &candidate : outcome.candidates)
    if (!candidate.problem.empty())
      fmt::print("FAIL: {}: {}\n", candidate.what, candidate.problem);
}

Json candidatesJson(const session::TuneOutcome &outcome) {
  Json list = Json::array();
  for (const session::TuneCandidate &candidate : outcome.candidates) {
    Json entry{{"what", candidate.what},
               {"code", candidate.code},
               {"predicted_seconds", candidate.predicted},
               {"measured_seconds", nullptr},
               {"problem", nullptr}};
    if (candidate.seconds)
      entry["measured_seconds"] = *candidate.seconds;
    if (!candidate.problem.empty())
      entry["problem"] = candidate.problem;
    list.push_back(std::move(entry));
  }
  return list;
}

class Tune {
public:
  explicit Tune(const TuneOptions &options) : options(options) {}

  Result<int> run() {
    if (Result<void> status = readNumbers(); !status)
      return status.error();
    Result<Subject> subject =
        makeSubject(options.common, {.writesArrays = false});
    if (!subject)
      return subject.error();
    // Without a folder nothing could be kept at the end.
    if (!options.dryRun)
      if (Result<std::string> folder = storeFolder(); !folder)
        return usage(folder.error().message + "; expected one, or --dry-run");
    subject->request.useTunedPlans = false;
    Result<session::CompiledOperator> compiled = subject->prepare();
    if (!compiled)
      return compiled.error();
    ProgressLine progress;
    how.progress = [&](const session::TuneProgress &now) {
      progress.show(fmt::format(
          "{}{}, {}", now.step,
          now.all ? fmt::format(" {} of {} plans", now.done + 1, now.all) : "",
          leftText(now.secondsLeft)));
    };
    Result<session::TuneOutcome> outcome = compiled->tune(how);
    progress.clear();
    if (!outcome)
      return outcome.error();
    return finish(*compiled->compiled(), *outcome);
  }

private:
  Result<void> readNumbers() {
    Result<double> seconds =
        parseDecimal("--time", options.secondsText, 0.01, 1e5);
    if (!seconds)
      return seconds.error();
    how.seconds = *seconds;
    Result<uint64_t> seed = parseWhole("--seed", options.seedText, 0,
                                       std::numeric_limits<uint64_t>::max());
    if (!seed)
      return seed.error();
    how.seed = *seed;
    if (options.candidatesText.empty())
      return {};
    Result<uint64_t> candidates =
        parseWhole("--candidates", options.candidatesText, 1, 1000);
    if (!candidates)
      return candidates.error();
    how.candidates = *candidates;
    return {};
  }

  /// Says what was measured, and keeps the best plan if it is better.
  Result<int> finish(const CompiledKernel &chosen,
                     const session::TuneOutcome &outcome) {
    const bool quiet =
        options.common.json == "-" || options.common.savePlan == "-";
    const bool isMeasured = outcome.chosenSeconds > 0;
    const CompiledKernel &best = outcome.isFaster() ? *outcome.kernel : chosen;
    if (!quiet)
      printCandidates(outcome);
    std::string path;
    if (isMeasured && outcome.isFaster() && !options.dryRun) {
      TuneRecord record{chosen.subject->key, tuningCpu(),
                        tuningCompiler(),    outcome.chosenSeconds,
                        outcome.bestSeconds, outcome.noise};
      Result<std::string> stored =
          storeTunedPlan(*best.plan, *chosen.subject, record);
      if (!stored)
        return stored.error();
      path = *stored;
    }
    if (!quiet && isMeasured)
      printVerdict(outcome, path);
    if (!options.common.json.empty())
      if (Result<void> status = writeReport(
              options.common, toJson(chosen, outcome, path)
                                  .dump(2, ' ', /*ensure_ascii=*/false,
                                        Json::error_handler_t::replace));
          !status)
        return status.error();
    if (Result<void> status = writePlanFile(options.common, best); !status)
      return status.error();
    return outcome.passed() ? 0 : 1;
  }

  void printVerdict(const session::TuneOutcome &outcome,
                    const std::string &path) const {
    fmt::print("noise {:.1f} %, between two compilations of the chosen plan\n",
               100 * outcome.noise);
    const std::string &what = outcome.candidates[outcome.best].what;
    if (outcome.best == 0)
      fmt::print("the chosen plan is the fastest; nothing is stored\n");
    else if (!outcome.isFaster())
      fmt::print("'{}' was the fastest, but {:.3f} times as fast as the chosen "
                 "plan when it raced again: no gain beyond the noise; nothing "
                 "is stored\n",
                 what, outcome.gain);
    else
      fmt::print("'{}' is {:.3f} times as fast as the chosen plan, {} instead "
                 "of {}; {}\n",
                 what, outcome.gain, timeText(outcome.bestSeconds),
                 timeText(outcome.chosenSeconds),
                 path.empty() ? "nothing is stored (--dry-run)"
                              : "stored in " + path);
  }

  Json toJson(const CompiledKernel &chosen, const session::TuneOutcome &outcome,
              const std::string &path) const {
    Json json{{"schema", 1},
              {"kernel", chosen.subject->kernel},
              {"target", chosen.subject->target},
              {"extents", Json::object()},
              {"cpu", tuningCpu()},
              {"compiler", tuningCompiler()},
              {"candidates", candidatesJson(outcome)},
              {"chosen_seconds", nullptr},
              {"best", outcome.candidates[outcome.best].what},
              {"best_seconds", nullptr},
              {"gain", nullptr},
              {"noise", nullptr},
              {"faster", outcome.isFaster()},
              {"stored", nullptr}};
    for (const auto &[dim, extent] : chosen.subject->extents)
      json["extents"][dim] = extent;
    if (outcome.chosenSeconds > 0) {
      json["chosen_seconds"] = outcome.chosenSeconds;
      json["best_seconds"] = outcome.bestSeconds;
      json["gain"] = outcome.gain;
      json["noise"] = outcome.noise;
    }
    if (!path.empty())
      json["stored"] = path;
    return json;
  }

  const TuneOptions &options;
  session::TuneOptions how;
};

Result<int> tune(const TuneOptions &options) {
  const bool hasSubject = !options.common.what.empty();
  if (options.list || options.clear) {
    if (hasSubject || (options.list && options.clear))
      return usage("found --list or --clear beside something else, expected "
                   "it alone");
    return options.list ? listEntries() : clearEntries();
  }
  if (!hasSubject)
    return usage("expected an operator or a file, --list or --clear");
  if (!options.common.vendor.empty() && options.common.vendor != "none")
    return usage("--vendor: a call of a library has no plans to choose among; "
                 "`tessera bench OPERATOR --vendor NAME` times it beside the "
                 "default plan");
  if (!options.common.prepacked.empty())
    return usage("--prepacked: stored plans are for arrays as they are; leave "
                 "it out, and save the plan that you want with `tessera "
                 "explain --prepacked NAME --save-plan FILE`");
  return Tune(options).run();
}

} // namespace

Action addTune(CLI::App &app) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App *verb = app.add_subcommand(
      "tune", "measure the plans that were looked at, keep the fastest");
  addCompileOnlyOptions(*verb, options->common,
                        "check indices that depend on data before anything is "
                        "written (on)");
  addThreadsOption(*verb, options->common,
                   "threads to plan for and to measure with");
  options->common.validate = true;
  verb->get_option("what")->required(false);
  verb->remove_option(verb->get_option("--json"));
  verb->add_option("--json", options->common.json,
                   "write all plans with predicted and measured times; - for "
                   "standard output")
      ->type_name("FILE");
  addSavePlanOption(*verb, options->common);
  verb->add_option("--time", options->secondsText,
                   "seconds to spend, 0.01 to 1e5")
      ->type_name("SECONDS")
      ->capture_default_str();
  verb->add_option("--candidates", options->candidatesText,
                   "measure this many plans beside the chosen one, those with "
                   "the shortest predicted times (default: all)")
      ->type_name("N");
  verb->add_option("--seed", options->seedText,
                   "seed of the inputs that are not given")
      ->type_name("N")
      ->capture_default_str();
  // Not offered, and answered with what to do instead.
  verb->add_option("--vendor", options->common.vendor)->group("");
  verb->add_option("--prepacked", options->common.prepacked)->group("");
  verb->add_flag("--dry-run", options->dryRun, "store nothing");
  verb->add_flag("--list", options->list, "show the plans that are stored");
  verb->add_flag("--clear", options->clear, "remove the plans that are stored");
  verb->footer("Examples:\n"
               "  tessera tune softmax --dims rows=64,cols=1000\n"
               "  tessera tune gemm --candidates 5 --time 30 --save-plan "
               "gemm.json\n"
               "  tessera tune --list");
  return [options] {
    Result<int> status = tune(*options);
    return status ? *status : report(status.error(), options->common.what);
  };
}

} // namespace tessera::cli
