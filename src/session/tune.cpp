//===- session/tune.cpp - The plan that measures best ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three steps. Every candidate is compiled, run and verified: a plan that
// computes something else is a defect of the compiler and is never timed. Those
// that are right race each other. The fastest of many is partly the luckiest,
// so it is compiled once more, from its saved form, and races the chosen plan
// again beside a second compilation of that, whose difference is noise.
//
//===----------------------------------------------------------------------===//

#include "driver/plan_file.h"
#include "session/state.h"
#include "support/timing.h"

#include <algorithm>
#include <cmath>

namespace tessera::session {

namespace {

/// Parts of the time after which the first and the second step end.
constexpr double verifyingEnds = 0.5;
constexpr double timingEnds = 0.75;
/// Races of the third step.
constexpr size_t confirmations = 5;

double medianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

class CompiledOperator::State::Tuning {
public:
  Tuning(State &state, const TuneOptions &options)
      : state(state), options(options), request(state.compileRequest()) {
    request.useTunedPlans = false;
    request.stageText = nullptr;
    request.machineFacts = false;
  }

  Result<TuneOutcome> run() {
    shortlist();
    if (Result<void> status = verifyAll(); !status)
      return status.error();
    if (!outcome.candidates[0].problem.empty())
      return std::move(outcome);
    if (Result<void> status = timeAll(); !status)
      return status.error();
    if (Result<void> status = confirm(); !status)
      return status.error();
    return std::move(outcome);
  }

private:
  /// The chosen plan and the candidates, by predicted time.
  void shortlist() {
    for (const PlanCandidate &candidate : state.kernel->plan->candidates)
      if (candidate.nanoseconds && candidate.code != "chosen" &&
          !candidate.code.starts_with("admission."))
        others.push_back(&candidate);
    // Equal ones as they were looked at.
    std::sort(others.begin(), others.end(),
              [](const PlanCandidate *a, const PlanCandidate *b) {
                return std::pair(*a->nanoseconds, a) <
                       std::pair(*b->nanoseconds, b);
              });
    if (options.candidates > 0 && others.size() > options.candidates)
      others.resize(options.candidates);
    TuneCandidate chosen{"chosen", "chosen", 0, {}, ""};
    for (const PlanCandidate &candidate : state.kernel->plan->candidates)
      if (candidate.code == "chosen") {
        chosen.what = candidate.what;
        chosen.predicted = 1e-9 * candidate.nanoseconds.value_or(0);
      }
    outcome.candidates.push_back(std::move(chosen));
    for (const PlanCandidate *candidate : others)
      outcome.candidates.push_back({candidate->what,
                                    candidate->code,
                                    1e-9 * *candidate->nanoseconds,
                                    {},
                                    ""});
  }

  void show(const char *step, size_t done, size_t all) const {
    if (options.progress)
      options.progress(
          {step, done, all, std::max(0.0, options.seconds - watch.seconds())});
  }

  Result<CompiledKernel> compile() const {
    return state.program.compileFor(state.arguments, request);
  }

  /// Runs a plan and says what is wrong. The kernel is the state's meanwhile,
  /// so that its results are judged by its own rounding errors.
  Result<std::string> verify(CompiledKernel &kernel) {
    std::swap(*state.kernel, kernel);
    Result<RunResult> result = state.run({.seed = options.seed});
    std::swap(*state.kernel, kernel);
    if (!result)
      return result.error();
    return result->passed() ? std::string() : result->failures();
  }

  Result<void> verifyAll() {
    Result<RunResult> first = state.run({.seed = options.seed});
    if (!first)
      return first.error();
    if (!first->passed()) {
      outcome.candidates[0].problem = first->failures();
      return {};
    }
    kernels.resize(outcome.candidates.size());
    for (size_t i = 0; i < others.size(); ++i) {
      show("verifying", i, others.size());
      if (watch.seconds() > verifyingEnds * options.seconds)
        break;
      std::string &problem = outcome.candidates[i + 1].problem;
      request.choices = std::make_shared<const PlanChoices>(others[i]->choices);
      Result<CompiledKernel> compiled = compile();
      if (!compiled) {
        // It was realized when it was looked at.
        problem = "it does not compile: " + compiled.error().str();
        continue;
      }
      Result<std::string> wrong = verify(*compiled);
      problem = wrong ? *wrong : "it does not run: " + wrong.error().str();
      if (problem.empty())
        kernels[i + 1].emplace(std::move(*compiled));
    }
    request.choices = nullptr;
    return {};
  }

  /// Races all at once, and drops those that are far behind after a part of
  /// the time.
  Result<void> timeAll() {
    std::vector<size_t> numbers{0};
    for (size_t i = 1; i < kernels.size(); ++i)
      if (kernels[i])
        numbers.push_back(i);
    const double until = timingEnds * options.seconds;
    for (double part : {0.3, 1.0}) {
      Kernels racing;
      for (size_t number : numbers)
        racing.push_back(number ? &*kernels[number] : &*state.kernel);
      double seconds =
          std::max(part * (until - watch.seconds()), 0.05 * options.seconds);
      Result<std::vector<double>> times =
          state.race(racing, seconds, [&](double) { show("timing", 0, 0); });
      if (!times)
        return times.error();
      double least = *std::min_element(times->begin(), times->end());
      std::vector<size_t> near{0};
      for (size_t i = 0; i < numbers.size(); ++i) {
        outcome.candidates[numbers[i]].seconds = (*times)[i];
        if (numbers[i] > 0 && (*times)[i] < 1.1 * least)
          near.push_back(numbers[i]);
      }
      numbers = std::move(near);
    }
    for (size_t number : numbers)
      if (*outcome.candidates[number].seconds <
          *outcome.candidates[outcome.best].seconds)
        outcome.best = number;
    return {};
  }

  /// Compiles the best plan from its saved form, and races it against the
  /// chosen plan and a second compilation of that.
  Result<void> confirm() {
    Result<CompiledKernel> control = compile();
    if (!control)
      return control.error();
    Kernels racing{&*state.kernel, &*control};
    if (outcome.best > 0) {
      const CompiledKernel &winner = *kernels[outcome.best];
      request.savedPlan = PlanText{outcome.candidates[outcome.best].what,
                                   writePlan(*winner.plan, *winner.subject)};
      Result<CompiledKernel> again = compile();
      if (!again)
        return again.error();
      outcome.kernel.emplace(std::move(*again));
      Result<std::string> wrong = verify(*outcome.kernel);
      if (!wrong)
        return wrong.error();
      outcome.candidates[outcome.best].problem = *wrong;
      if (wrong->empty())
        racing.push_back(&*outcome.kernel);
      else
        outcome.best = 0;
    }
    std::vector<double> chosen, bests, gains;
    for (size_t i = 0; i < confirmations; ++i) {
      double seconds =
          std::max(options.seconds - watch.seconds(), 0.1 * options.seconds) /
          static_cast<double>(confirmations - i);
      Result<std::vector<double>> times = state.race(
          racing, seconds, [&](double) { show("confirming", 0, 0); });
      if (!times)
        return times.error();
      chosen.push_back((*times)[0]);
      outcome.noise =
          std::max(outcome.noise, std::abs((*times)[0] / (*times)[1] - 1));
      bests.push_back(times->size() > 2 ? (*times)[2] : (*times)[0]);
      gains.push_back((*times)[0] / bests.back());
    }
    outcome.chosenSeconds = medianOf(std::move(chosen));
    outcome.bestSeconds = medianOf(std::move(bests));
    outcome.gain = medianOf(std::move(gains));
    return {};
  }

  State &state;
  const TuneOptions &options;
  CompileRequest request;
  support::Stopwatch watch;
  /// Beside the chosen plan, in the order of the outcome.
  std::vector<const PlanCandidate *> others;
  /// By number in the outcome; none for the chosen plan and for what is wrong.
  std::vector<std::optional<CompiledKernel>> kernels;
  TuneOutcome outcome;
};

Result<TuneOutcome> CompiledOperator::State::tune(const TuneOptions &options) {
  if (!kernel)
    return usage("tune", "the interpreter has no plans to choose among");
  return Tuning(*this, options).run();
}

} // namespace tessera::session
