//===- bench/regret/regret.cpp - How good the search for plans is ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each row of a suite: compiles every combination of vectors per iteration,
// programs together, tail and prefetching, times them against the default plan
// in one race, and reports the default's regret, its time over the best one's.
// The best of many is partly the luckiest, so both times are those of a second
// race, of the default plan and the winner of the first.
// With --fit also what the regret would be under other coefficients of the cost
// model: on the operators that it may be fitted to, and on the others. With
// --replay nothing is timed: the times are those of a former run's file, and
// the regret is that of the candidate which the present cost model would
// choose.
//
//===----------------------------------------------------------------------===//

#include "bench/core/row.h"
#include "plan/plan_record.h"
#include "target/machine.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

using namespace tessera;
using nlohmann::json;

namespace {

struct Options {
  std::string suite = "rows";
  std::string filter;
  std::string output;
  std::string isa = "native";
  std::string replay;
  /// What --replay names.
  json former;
  double seconds = 1;
  bool fit = false;
};

struct Row {
  std::string id;
  std::string operatorName;
  /// Seconds of the default plan in the second race, of a second compilation
  /// of it (the noise of the race), and of the winner of the first.
  double chosen = 0;
  double again = 0;
  double winner = 0;
  /// Of each candidate in the first race.
  std::vector<double> measured;
  /// "u4 t2 mask p1": vectors per iteration, programs together, tail, and with
  /// prefetches what (Prefetch).
  std::vector<std::string> labels;
  /// Whether the search looks at plans like it.
  std::vector<bool> searched;
  std::string chosenLabel;
  /// By machine, then candidate.
  std::vector<std::vector<double>> predicted;
  double defaultPredicted = 0;

  double best() const {
    return *std::min_element(measured.begin(), measured.end());
  }
  size_t bestCandidate() const {
    return size_t(std::min_element(measured.begin(), measured.end()) -
                  measured.begin());
  }
  /// At least 1, though the noise of the second race may go either way.
  double regret() const { return std::max(1.0, chosen / winner); }
  /// The candidate that a machine's figures would choose.
  size_t choiceOn(size_t machine) const {
    constexpr double margin = 0.98;
    size_t choice = size_t(std::find(searched.begin(), searched.end(), true) -
                           searched.begin());
    for (size_t i = choice + 1; i < measured.size(); ++i)
      if (searched[i] &&
          predicted[machine][i] < margin * predicted[machine][choice])
        choice = i;
    return choice;
  }
  /// In the first race.
  double regretOn(size_t machine) const {
    return measured[choiceOn(machine)] / best();
  }
};

/// The host's description with other coefficients.
struct Variation {
  std::string what;
  Machine machine;
};

std::vector<Variation> variations() {
  std::vector<Variation> all;
  for (double window : {64., 96., 128., 192., 256., 384., 512.})
    for (double exposed : {0., 0.25, 0.5})
      for (double clock : {1., 1.3}) {
        Machine machine = hostMachine();
        for (CoreCosts &costs : machine.core) {
          costs.reorderWindow = window;
          costs.gigahertz *= clock;
        }
        machine.notOverlapped = exposed;
        all.push_back({fmt::format("window {}, exposed {}, clock x{}", window,
                                   exposed, clock),
                       std::move(machine)});
      }
  return all;
}

std::string labelOf(Prefetch prefetch) {
  return prefetch == Prefetch::None
             ? ""
             : fmt::format(" p{}", static_cast<int>(prefetch));
}

std::string labelOf(const PlanChoices &choices) {
  int64_t unroll = 1, together = 1;
  TailForm tail = TailForm::Mask;
  Prefetch prefetch = Prefetch::None;
  for (const auto &[id, nest] : choices.nests) {
    unroll = std::max(unroll, nest.unroll.value_or(1));
    tail = nest.tail.value_or(tail);
  }
  for (const auto &[stage, count] : choices.together)
    together = std::max(together, count);
  for (const auto &[stage, what] : choices.prefetch)
    prefetch = std::max(prefetch, what);
  return fmt::format("u{} t{} {}{}", unroll, together, name(tail),
                     labelOf(prefetch));
}

/// The plan as applied, in the same form.
std::string labelOf(const Plan &plan) {
  std::string unrolls, tail;
  int64_t together = 1;
  Prefetch prefetch = Prefetch::None;
  for (const StagePlan &stage : plan.stages) {
    together = std::max(together, stage.order.together);
    prefetch = std::max(prefetch, stage.order.prefetch);
    for (const NestPlan &nest : stage.nests) {
      unrolls += fmt::format("{}{}", unrolls.empty() ? "u" : "/", nest.unroll);
      tail = name(nest.tail);
    }
  }
  return fmt::format("{} t{} {}{}", unrolls, together, tail, labelOf(prefetch));
}

Error damaged(const std::string &what) {
  return {ErrorFamily::Usage,
          "regret.replay",
          fmt::format("the file of --replay {}", what),
          {}};
}

/// The seconds of each candidate of a row in a former run, by label.
Result<std::map<std::string, double>> formerTimes(const json &former,
                                                  const std::string &row) {
  std::map<std::string, double> times;
  try {
    for (const json &entry : former.at("rows")) {
      if (entry.at("row") != row)
        continue;
      const json &labels = entry.at("candidates"),
                 &seconds = entry.at("candidate_seconds");
      if (labels.size() != seconds.size())
        return damaged("has not as many times as candidates in a row");
      for (size_t i = 0; i < labels.size(); ++i) {
        const double time = seconds.at(i).get<double>();
        if (!(time > 0) || !std::isfinite(time))
          return damaged(fmt::format("has the time {} for '{}'", time, row));
        times[labels.at(i).get<std::string>()] = time;
      }
    }
  } catch (const json::exception &problem) {
    return damaged(fmt::format("is damaged: {}", problem.what()));
  }
  if (times.empty())
    return damaged(fmt::format("has no candidates of row '{}'", row));
  return times;
}

/// The row with the times of a former run, of the candidates that it had.
Result<Row> replayed(const Row &row, const json &former) {
  Result<std::map<std::string, double>> times = formerTimes(former, row.id);
  if (!times)
    return times.error();
  Row known = row;
  known.labels.clear();
  known.searched.clear();
  known.predicted.assign(row.predicted.size(), {});
  for (size_t i = 0; i < row.labels.size(); ++i) {
    auto found = times->find(row.labels[i]);
    if (found == times->end())
      continue;
    known.labels.push_back(row.labels[i]);
    known.searched.push_back(row.searched[i]);
    known.measured.push_back(found->second);
    for (size_t machine = 0; machine < row.predicted.size(); ++machine)
      known.predicted[machine].push_back(row.predicted[machine][i]);
  }
  if (std::find(known.searched.begin(), known.searched.end(), true) ==
      known.searched.end())
    return damaged(fmt::format("has no plan of '{}' that is searched", row.id));
  const size_t choice = known.choiceOn(0);
  known.chosen = known.again = known.measured[choice];
  known.winner = known.best();
  known.chosenLabel = known.labels[choice];
  return known;
}

Result<Row> measure(const bench::RowSpec &spec, const Options &options,
                    const std::vector<Machine> &machines) {
  const kernels::Operator *op = kernels::findOperator(spec.operatorName);
  session::RunRequest request = spec.runRequest();
  Result<Isa> isa = parseIsa(options.isa);
  if (!isa)
    return isa.error();
  request.isa = *isa;
  request.validate = false;
  request.useTunedPlans = false;
  Result<session::CompiledOperator> chosen =
      session::CompiledOperator::create(*op, request);
  if (!chosen)
    return chosen.error();
  Result<session::RunResult> ran = chosen->run();
  if (!ran)
    return ran.error();
  Row row;
  row.id = spec.id();
  row.operatorName = spec.operatorName;
  const Plan &plan = *chosen->compiled()->plan;
  for (const PlanCandidate &candidate : plan.candidates)
    if (candidate.code == "chosen")
      row.defaultPredicted = candidate.nanoseconds.value_or(0) * 1e-9;
  row.chosenLabel = labelOf(plan);
  std::vector<CompiledKernel> kernels;
  Result<session::Compilation> again = session::compileOperator(*op, request);
  if (!again)
    return again.error();
  kernels.push_back(std::move(again->kernel));
  row.predicted.resize(machines.size());
  std::set<std::string> objects;
  for (const PlanChoices &choices : everyCombination(plan)) {
    request.choices = std::make_shared<const PlanChoices>(choices);
    Result<session::Compilation> made = session::compileOperator(*op, request);
    if (!made)
      return made.error();
    // Plans that lead to the same code are one candidate.
    if (!objects.insert(made->kernel.object).second)
      continue;
    CompileRequest compile;
    compile.extents = made->extents;
    compile.isa = *isa;
    Result<std::vector<double>> predicted =
        made->program.predict(compile, choices, machines);
    if (!predicted)
      return predicted.error();
    for (size_t i = 0; i < machines.size(); ++i)
      row.predicted[i].push_back((*predicted)[i]);
    row.labels.push_back(labelOf(choices));
    row.searched.push_back(std::none_of(
        choices.prefetch.begin(), choices.prefetch.end(), [](const auto &one) {
          return one.second == Prefetch::InputsAndOutputs;
        }));
    kernels.push_back(std::move(made->kernel));
  }
  if (!options.replay.empty())
    return replayed(row, options.former);
  Result<std::vector<double>> times = chosen->race(kernels, options.seconds);
  if (!times)
    return times.error();
  row.measured.assign(times->begin() + 2, times->end());
  std::vector<CompiledKernel> finalists;
  finalists.push_back(std::move(kernels[0]));
  finalists.push_back(std::move(kernels[1 + row.bestCandidate()]));
  times = chosen->race(finalists, options.seconds);
  if (!times)
    return times.error();
  row.chosen = (*times)[0];
  row.again = (*times)[1];
  row.winner = (*times)[2];
  return row;
}

struct Summary {
  double mean = 1, worst = 1;
};

template <typename Regret>
Summary summarize(const std::vector<Row> &rows, Regret regret) {
  double logs = 0;
  Summary summary;
  for (const Row &row : rows) {
    double value = regret(row);
    logs += std::log(value);
    summary.worst = std::max(summary.worst, value);
  }
  if (!rows.empty())
    summary.mean = std::exp(logs / double(rows.size()));
  return summary;
}

void printFit(const std::vector<Row> &rows,
              const std::vector<Variation> &variations) {
  // Every second operator of the suite.
  std::vector<std::string> operators;
  for (const Row &row : rows)
    if (std::find(operators.begin(), operators.end(), row.operatorName) ==
        operators.end())
      operators.push_back(row.operatorName);
  std::vector<Row> fitted, others;
  for (const Row &row : rows) {
    auto place =
        std::find(operators.begin(), operators.end(), row.operatorName);
    ((place - operators.begin()) % 2 == 0 ? fitted : others).push_back(row);
  }
  fmt::print(
      "\nregret: mean and worst on {} rows to fit to, and on {} others\n",
      fitted.size(), others.size());
  for (size_t i = 0; i < variations.size(); ++i) {
    auto on = [&](const Row &row) { return row.regretOn(i); };
    Summary a = summarize(fitted, on), b = summarize(others, on);
    fmt::print("{:<40} {:.3f} {:.3f}   {:.3f} {:.3f}\n", variations[i].what,
               a.mean, a.worst, b.mean, b.worst);
  }
}

int run(const Options &options) {
  Result<bench::Suite> suite = bench::findSuite(options.suite);
  if (!suite) {
    std::fputs((suite.error().str() + "\n").c_str(), stderr);
    return 2;
  }
  std::vector<Variation> varied = {{"as described", hostMachine()}};
  if (options.fit)
    for (Variation &variation : variations())
      varied.push_back(std::move(variation));
  std::vector<Machine> machines;
  for (const Variation &variation : varied)
    machines.push_back(variation.machine);
  std::vector<Row> rows;
  json list = json::array();
  bool failed = false;
  for (const bench::RowSpec &spec : suite->rows) {
    if (spec.boundary != "native" ||
        spec.id().find(options.filter) == std::string::npos ||
        !kernels::findOperator(spec.operatorName))
      continue;
    Result<Row> row = measure(spec, options, machines);
    if (!row) {
      fmt::print("{}: {}\n", spec.id(), row.error().str());
      failed = true;
      continue;
    }
    fmt::print("{:<56} {:>2} candidates, {:9.3g} s, predicted {:.2f} of it, "
               "regret {:.3f}, A/A {:.3f}, {} for {}\n",
               row->id, row->measured.size(), row->chosen,
               row->defaultPredicted / row->chosen, row->regret(),
               std::max(row->chosen, row->again) /
                   std::min(row->chosen, row->again),
               row->chosenLabel, row->labels[row->bestCandidate()]);
    std::fflush(stdout);
    list.push_back({{"row", row->id},
                    {"chosen_seconds", row->chosen},
                    {"again_seconds", row->again},
                    {"winner_seconds", row->winner},
                    {"predicted_seconds", row->defaultPredicted},
                    {"chosen", row->chosenLabel},
                    {"candidates", row->labels},
                    {"candidate_seconds", row->measured},
                    {"candidate_predicted_seconds", row->predicted[0]},
                    {"regret", row->regret()}});
    rows.push_back(std::move(*row));
  }
  if (rows.empty()) {
    fmt::print(stderr, "no row of suite '{}' was measured{}\n", options.suite,
               options.filter.empty()
                   ? ""
                   : ", of those whose name contains '" + options.filter + "'");
    return failed ? 1 : 2;
  }
  Summary all = summarize(rows, [](const Row &row) { return row.regret(); });
  fmt::print("{} rows, regret of the default plan: mean {:.3f}, worst {:.3f}\n",
             rows.size(), all.mean, all.worst);
  if (options.fit)
    printFit(rows, varied);
  if (!options.output.empty()) {
    std::ofstream file(options.output);
    file << json{{"schema", 2},
                 {"suite", options.suite},
                 {"isa", options.isa},
                 {"machine", hostMachine().name},
                 {"rows", list},
                 {"mean_regret", all.mean},
                 {"worst_regret", all.worst}}
                .dump(1)
         << "\n";
    if (!file.flush()) {
      fmt::print(stderr, "cannot write '{}'\n", options.output);
      return 2;
    }
  }
  return failed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Measures the regret of default plans.", "tessera-regret");
  app.add_option("--suite", options.suite, "rows of this suite at `native`")
      ->capture_default_str();
  app.add_option("--filter", options.filter, "rows whose name contains this");
  app.add_option("--isa", options.isa, "instruction-set level")
      ->capture_default_str();
  app.add_option("--time", options.seconds,
                 "seconds of each of a row's two races")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  app.add_option("--json", options.output, "the file to write");
  app.add_option("--replay", options.replay,
                 "a file of --json: its times instead of a race")
      ->check(CLI::ExistingFile);
  app.add_flag("--fit", options.fit,
               "regret under other coefficients of the cost model");
  CLI11_PARSE(app, argc, argv);
  if (Result<Isa> isa = parseIsa(options.isa); !isa) {
    fmt::print(stderr, "{}\n", isa.error().str());
    return 2;
  }
  if (!options.output.empty() &&
      !std::ofstream(options.output, std::ios::app)) {
    fmt::print(stderr, "cannot write '{}'\n", options.output);
    return 2;
  }
  if (!options.replay.empty()) {
    options.former = json::parse(std::ifstream(options.replay), nullptr,
                                 /*allow_exceptions=*/false);
    if (!options.former.is_object() || !options.former.contains("rows") ||
        !options.former["rows"].is_array()) {
      fmt::print(stderr, "'{}' is not a file of --json\n", options.replay);
      return 2;
    }
    if (options.former.value("isa", json()) != options.isa) {
      fmt::print(stderr, "'{}' is not of --isa {}\n", options.replay,
                 options.isa);
      return 2;
    }
  }
  return run(options);
}
