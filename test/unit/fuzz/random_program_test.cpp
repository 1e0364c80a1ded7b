//===- fuzz/random_program_test.cpp - Interpreter against back end -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random programs, eight hundred and more on request, each at one or two of the
// machine's instruction-set levels, and some at the levels that it only
// emulates. A failure prints the seed and a reduced program.
//
// Environment (of this test alone):
//   TESSERA_FUZZ_SEED=n      runs the program of seed n at every level,
//                            emulated ones included
//   TESSERA_FUZZ_PLANS=n     with n random plans beside the chosen one
//   TESSERA_FUZZ_COUNT=n     programs that a soak runs
//   TESSERA_FUZZ_FIRST=n     a soak's first seed
//   TESSERA_FUZZ_FAILURES=n  RandomProgramsSoak stops at this many failures, 3
//                            unless given
//   TESSERA_FUZZ_REDUCE=n    seconds to spend on reducing a failure, 20 unless
//                            given
//
// RandomProgramsSoak.DISABLED_Many and RandomPlansSoak.DISABLED_Many run with
// --gtest_also_run_disabled_tests.
//
//===----------------------------------------------------------------------===//

#include "differential.h"

#include "test/unit/emulation/emulator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

using namespace tessera;
using namespace tessera::fuzz;

namespace {

struct Totals {
  int64_t programs = 0, exact = 0, unsupported = 0, invalid = 0, failed = 0;
  int64_t compared = 0, undecided = 0, plans = 0;
  std::map<std::string, int64_t> reasons;
};

std::optional<uint64_t> fromEnvironment(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::optional<uint64_t>(std::strtoull(text, nullptr, 10))
              : std::nullopt;
}

/// The levels a program runs at: one, or for every third program two.
std::vector<Isa> levelsFor(uint64_t seed) {
  std::vector<Isa> host = hostIsas();
  // The next level has what this one has.
  std::erase(host, Isa::Avx512Vnni);
  std::vector<Isa> levels{host[seed % host.size()]};
  if (seed % 3 == 0 && host.size() > 1)
    levels.push_back(host[(seed / 3 + 1) % host.size()]);
  return levels;
}

void reportFailure(const RandomProgram &program, const std::vector<Isa> &levels,
                   const Outcome &outcome) {
  uint64_t seconds = fromEnvironment("TESSERA_FUZZ_REDUCE").value_or(20);
  RandomProgram small = reduce(program, levels, double(seconds));
  Outcome now = runInChild(small, levels);
  ADD_FAILURE() << "seed " << program.seed << ": " << outcome.message
                << "\nreduced: " << now.message << "\n"
                << small.describeArguments() << small.text();
}

/// `isolated` runs the program in a child process, where a crash ends nothing
/// else.
void runSeed(uint64_t seed, const std::vector<Isa> &levels, bool isolated,
             Totals &totals, int64_t plans = 0) {
  RandomProgram program = generate(seed);
  program.plans = plans;
  Outcome outcome;
  if (isolated) {
    outcome = runInChild(program, levels);
  } else {
    announce("seed " + std::to_string(seed) + "\n" +
             program.describeArguments() + program.text());
    outcome = runOnce(program, levels);
    announce("");
  }
  ++totals.programs;
  totals.exact += outcome.exact;
  totals.compared += outcome.compared;
  totals.undecided += outcome.undecided;
  totals.plans += outcome.plans;
  switch (outcome.status) {
  case Status::Agrees:
    return;
  case Status::Unsupported:
    ++totals.unsupported;
    ++totals.reasons[outcome.message.substr(outcome.message.rfind('['))];
    return;
  case Status::Invalid:
  case Status::Races:
    ++totals.invalid;
    if (totals.invalid < 4)
      std::cout << "seed " << seed << ": invalid: " << outcome.message << "\n";
    return;
  case Status::Differs:
    ++totals.failed;
    reportFailure(program, levels, outcome);
  }
}

void finish(const Totals &totals) {
  std::cout << totals.programs << " programs, " << totals.exact
            << " compared to the bit, " << totals.unsupported
            << " unsupported, " << totals.invalid << " invalid, "
            << totals.plans << " random plans, " << totals.failed << " failed; "
            << totals.compared << " elements, " << totals.undecided
            << " undecided\n";
  for (const auto &[reason, count] : totals.reasons)
    std::cout << "  " << count << " x " << reason << "\n";
  EXPECT_LE(totals.unsupported * 50, totals.programs) << "more than 2 %";
  EXPECT_LE(totals.invalid * 50, totals.programs) << "more than 2 %";
  EXPECT_LE(totals.undecided * 20, totals.compared) << "more than 5 %";
}

void runMany(uint64_t first, uint64_t count, bool isolated,
             int64_t failures = 3) {
  Totals totals;
  for (uint64_t seed = first; seed < first + count && totals.failed < failures;
       ++seed)
    runSeed(seed, levelsFor(seed), isolated, totals);
  finish(totals);
}

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, InterpreterAndBackEndAgree) {
  if (std::optional<uint64_t> seed = fromEnvironment("TESSERA_FUZZ_SEED")) {
    Totals totals;
    if (GetParam() == 0) {
      RandomProgram program = generate(*seed);
      std::cout << program.describeArguments() << program.text();
      runSeed(*seed, emulation::runnableIsas(), /*isolated=*/true, totals,
              int64_t(fromEnvironment("TESSERA_FUZZ_PLANS").value_or(0)));
    }
    return;
  }
  runMany(1 + uint64_t(GetParam()) * 100, 100, /*isolated=*/false);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, 8));
INSTANTIATE_TEST_SUITE_P(SeedsSoak, RandomPrograms, testing::Range(8, 40));

void runEmulated(uint64_t first, uint64_t count) {
  for (Isa isa : emulation::emulatedIsas()) {
    if (std::string why = emulation::whyNotRunnable(isa); !why.empty())
      GTEST_SKIP() << why;
    Totals totals;
    for (uint64_t seed = first; seed < first + count && totals.failed < 3;
         ++seed)
      runSeed(seed, {isa}, /*isolated=*/false, totals);
    finish(totals);
  }
}

TEST(EmulatedRandomPrograms, InterpreterAndBackEndAgree) {
  runEmulated(5000, 70);
}

TEST(EmulatedRandomProgramsSoak, InterpreterAndBackEndAgree) {
  runEmulated(fromEnvironment("TESSERA_FUZZ_FIRST").value_or(2000000),
              fromEnvironment("TESSERA_FUZZ_COUNT").value_or(5000));
}

TEST(RandomProgramsSoak, DISABLED_Many) {
  runMany(fromEnvironment("TESSERA_FUZZ_FIRST").value_or(1000000),
          fromEnvironment("TESSERA_FUZZ_COUNT").value_or(20000),
          /*isolated=*/true,
          int64_t(fromEnvironment("TESSERA_FUZZ_FAILURES").value_or(3)));
}

/// One to eight random plans of each program, at one level.
void runPlans(uint64_t first, uint64_t count, bool isolated) {
  constexpr int64_t mostPlans = 8;
  std::vector<Isa> host = hostIsas();
  Totals totals;
  for (uint64_t seed = first; seed < first + count && totals.failed < 3; ++seed)
    runSeed(seed, {host[seed % host.size()]}, isolated, totals,
            1 + static_cast<int64_t>(seed * 5 % mostPlans));
  finish(totals);
  EXPECT_GT(totals.plans, static_cast<int64_t>(count));
}

class RandomPlans : public testing::TestWithParam<int> {};

TEST_P(RandomPlans, AgreeWithTheInterpreter) {
  runPlans(500001 + uint64_t(GetParam()) * 14, 14, /*isolated=*/false);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, testing::Range(0, 3));

TEST(RandomPlansSoak, DISABLED_Many) {
  runPlans(fromEnvironment("TESSERA_FUZZ_FIRST").value_or(600000),
           fromEnvironment("TESSERA_FUZZ_COUNT").value_or(300),
           /*isolated=*/true);
}

} // namespace
