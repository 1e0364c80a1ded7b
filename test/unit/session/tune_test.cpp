//===- test/unit/session/tune_test.cpp - Tuned plans ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_store.h"
#include "session/session.h"
#include "tessera/dsl.h"

#include "gmock/gmock.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace tessera::session {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const kernels::Operator &softmax() { return *kernels::findOperator("softmax"); }

RunRequest requestFor(int64_t rows, int64_t cols) {
  RunRequest request;
  request.dims = {{"rows", rows}, {"cols", cols}};
  return request;
}

/// A folder of tuned plans for one test.
class TunedPlans : public ::testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(::testing::TempDir()) /
             ("tuned-plans-" + std::to_string(getpid()));
    fs::remove_all(folder);
    ::setenv("TESSERA_PLAN_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("TESSERA_PLAN_DIR", "off", 1);
    fs::remove_all(folder);
  }

  static Compilation compiled(const RunRequest &request) {
    Result<Compilation> made = compileOperator(softmax(), request);
    EXPECT_TRUE(made) << made.error().str();
    return std::move(*made);
  }

  /// Stores a plan that the search does not choose: one vector per iteration
  /// and one program at a time.
  static std::string storeOther(const RunRequest &request) {
    RunRequest other = request;
    PlanChoices choices;
    const Compilation searched = compiled(other);
    for (const NestPlan &nest : searched.kernel.plan->stages[0].nests)
      choices.nests[nest.id].unroll = 1;
    other.useTunedPlans = false;
    other.choices = std::make_shared<const PlanChoices>(choices);
    Compilation made = compiled(other);
    Result<std::string> path =
        storeTunedPlan(*made.kernel.plan, *made.kernel.subject,
                       {made.kernel.subject->key, tuningCpu(), tuningCompiler(),
                        2e-6, 1e-6, 0.01});
    EXPECT_TRUE(path) << path.error().str();
    return path ? *path : "";
  }

  fs::path folder;
};

TEST_F(TunedPlans, AreUsedForTheirCompilationAlone) {
  RunRequest request = requestFor(64, 1000);
  Compilation before = compiled(request);
  EXPECT_EQ(before.kernel.planSource, "search");
  storeOther(request);
  Compilation after = compiled(request);
  EXPECT_EQ(after.kernel.planSource, "tuned");
  EXPECT_NE(after.kernel.planSummary, before.kernel.planSummary);
  Result<RunResult> run = runOperator(softmax(), request);
  ASSERT_TRUE(run) << run.error().str();
  EXPECT_TRUE(run->passed()) << run->failures();

  EXPECT_EQ(compiled(requestFor(64, 1001)).kernel.planSource, "search");
  RunRequest plain = request;
  plain.useTunedPlans = false;
  EXPECT_EQ(compiled(plain).kernel.planSource, "search");
  ::setenv("TESSERA_PLAN_DIR", "off", 1);
  EXPECT_EQ(compiled(request).kernel.planSource, "search");
}

TEST_F(TunedPlans, KeysDifferWhereMeasurementsWould) {
  PlanSubject subject{"k", "hash", "avx2", AliasMode::Disjoint, {}, "", {}};
  const std::string key = planKey(subject, {{4, 8}}, {{false, true}});
  EXPECT_EQ(key.size(), 32u);
  EXPECT_EQ(key, planKey(subject, {{4, 8}}, {{false, true}}));
  EXPECT_NE(key, planKey(subject, {{8, 4}}, {{false, true}}));
  EXPECT_NE(key, planKey(subject, {{4}, {8}}, {{false, true}}));
  EXPECT_NE(key, planKey(subject, {{4, 8}}, {{true, true}}));
  for (auto change : {+[](PlanSubject &s) { s.hash = "other"; },
                      +[](PlanSubject &s) { s.target = "avx512"; },
                      +[](PlanSubject &s) { s.alias = AliasMode::InPlace; }}) {
    PlanSubject other = subject;
    change(other);
    EXPECT_NE(key, planKey(other, {{4, 8}}, {{false, true}}));
  }
}

TEST_F(TunedPlans, DamagedAndForeignOnesAreIgnored) {
  RunRequest request = requestFor(64, 1000);
  std::string path = storeOther(request);
  auto text = [&] {
    std::ifstream file(path);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  };
  const std::string whole = text();
  auto sourceWith = [&](const std::string &content) {
    std::ofstream(path) << content;
    return compiled(request).kernel.planSource;
  };
  auto changed = [&](const std::string &from, const std::string &to) {
    std::string content = whole;
    size_t at = content.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return content.replace(at, from.size(), to);
  };
  EXPECT_EQ(sourceWith(whole), "tuned");
  EXPECT_EQ(sourceWith(""), "search");
  EXPECT_EQ(sourceWith(whole.substr(0, whole.size() / 2)), "search");
  EXPECT_EQ(sourceWith(changed("\"rows\": 64", "\"rows\": 65")), "search");
  // The list of entries says so, too.
  auto isNotUsed = [&](const std::string &content, const std::string &why) {
    EXPECT_EQ(sourceWith(content), "search") << why;
    std::vector<StoredPlan> plans = listTunedPlans();
    ASSERT_EQ(plans.size(), 1u);
    ASSERT_TRUE(plans[0].plan) << plans[0].plan.error().str();
    EXPECT_THAT(whyNotUsedHere(*plans[0].plan, plans[0].path), HasSubstr(why));
  };
  isNotUsed(changed("\"key\": \"", "\"key\": \"0"), "another key");
  isNotUsed(changed("\"cpu\": \"", "\"cpu\": \"not "), "for not ");
  isNotUsed(changed("\"compiler\": \"tessera ", "\"compiler\": \"tessera 9"),
            "tessera 9");
  isNotUsed(changed("\"keeping\"", "\"vendor\": \"cblas\", \"keeping\""),
            "vendor: found cblas");
  isNotUsed(changed("\"keeping\"", "\"prepacked\": [\"x\"], \"keeping\""),
            "prepacked: found 'x'");
  EXPECT_EQ(sourceWith(changed("\"vectors_per_iteration\": 1",
                               "\"vectors_per_iteration\": 1000")),
            "search");
  // An entry under a name that is not its own.
  fs::path other =
      fs::path(path).parent_path() /
      (compiled(requestFor(64, 999)).kernel.subject->key + ".json");
  std::ofstream(other) << whole;
  EXPECT_EQ(compiled(requestFor(64, 999)).kernel.planSource, "search");
}

TEST_F(TunedPlans, AreListedAndCleared) {
  EXPECT_TRUE(listTunedPlans().empty());
  storeOther(requestFor(64, 1000));
  std::string path = storeOther(requestFor(64, 500));
  std::ofstream(folder / "notes.txt") << "mine";
  EXPECT_EQ(listTunedPlans().size(), 2u);
  for (const StoredPlan &entry : listTunedPlans()) {
    ASSERT_TRUE(entry.plan) << entry.plan.error().str();
    ASSERT_TRUE(entry.plan->tuned);
    EXPECT_EQ(entry.plan->tuned->seconds, 1e-6);
  }
  std::ofstream(path) << "{";
  size_t damaged = 0;
  for (const StoredPlan &entry : listTunedPlans())
    damaged += !entry.plan;
  EXPECT_EQ(damaged, 1u);
  Result<int64_t> cleared = clearTunedPlans();
  ASSERT_TRUE(cleared) << cleared.error().str();
  EXPECT_EQ(*cleared, 2);
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

TEST_F(TunedPlans, CannotBeStoredWhereThereIsNoFolder) {
  Compilation made = compiled(requestFor(4, 100));
  ::setenv("TESSERA_PLAN_DIR", "/dev/null/plans", 1);
  Result<std::string> path =
      storeTunedPlan(*made.kernel.plan, *made.kernel.subject, {});
  ASSERT_FALSE(path);
  EXPECT_THAT(path.error().message, HasSubstr("/dev/null/plans"));
  EXPECT_TRUE(listTunedPlans().empty());
}

/// Where a benchmark says that its plans are from.
std::string benchSource(const fs::path &folder) {
  fs::path file = folder / "bench.json";
  std::string command =
      "\"" TESSERA_BINARY_DIR "/bin/tessera\" bench softmax --dims "
      "rows=64,cols=1000 --threads 1 --rounds 1 --samples 1 --row-seconds 0.01 "
      "--json \"" +
      file.string() + "\" > /dev/null";
  if (std::system(command.c_str()) != 0)
    return "failed";
  std::ifstream stream(file);
  std::stringstream content;
  content << stream.rdbuf();
  fs::remove(file);
  const std::string text = content.str();
  size_t at = text.find("\"source\":\"");
  return at == std::string::npos ? "none" : text.substr(at + 10, 5);
}

// Rows are about the plans that everybody gets.
TEST_F(TunedPlans, ABenchmarkIgnoresThem) {
  if (!fs::exists(TESSERA_BINARY_DIR "/bin/tessera"))
    GTEST_SKIP() << "the command is not built";
  storeOther(requestFor(64, 1000));
  EXPECT_EQ(benchSource(folder), "searc");
}

TEST(Tune, MeasuresVerifiedCandidates) {
  RunRequest request = requestFor(16, 300);
  Result<CompiledOperator> compiled =
      CompiledOperator::create(softmax(), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  const std::string object = compiled->compiled()->object;
  TuneOptions options;
  options.seconds = 1.5;
  options.candidates = 3;
  size_t calls = 0;
  options.progress = [&](const TuneProgress &) { ++calls; };
  Result<TuneOutcome> outcome = compiled->tune(options);
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(outcome->passed());
  EXPECT_GT(calls, 5u);
  ASSERT_EQ(outcome->candidates.size(), 4u);
  EXPECT_EQ(outcome->candidates[0].code, "chosen");
  EXPECT_TRUE(outcome->candidates[0].seconds);
  for (size_t i = 2; i < outcome->candidates.size(); ++i)
    EXPECT_GE(outcome->candidates[i].predicted,
              outcome->candidates[i - 1].predicted);
  EXPECT_GT(outcome->chosenSeconds, 0);
  EXPECT_GT(outcome->bestSeconds, 0);
  EXPECT_LT(outcome->best, outcome->candidates.size());
  EXPECT_EQ(outcome->best > 0, outcome->kernel.has_value());
  // The compilation is what it was.
  EXPECT_EQ(compiled->compiled()->object, object);
  Result<RunResult> run = compiled->run();
  ASSERT_TRUE(run) << run.error().str();
  EXPECT_TRUE(run->passed()) << run->failures();
}

TEST(Tune, KernelsWithoutElements) {
  for (auto [name, dims] :
       {std::pair{"gemm", kernels::Dims{{"m", 3}, {"n", 0}, {"k", 3}}},
        std::pair{"gemm", kernels::Dims{{"m", 3}, {"n", 3}, {"k", 0}}},
        std::pair{"softmax", kernels::Dims{{"rows", 0}, {"cols", 5}}}}) {
    RunRequest request;
    request.dims = dims;
    Result<CompiledOperator> compiled =
        CompiledOperator::create(*kernels::findOperator(name), request);
    ASSERT_TRUE(compiled) << compiled.error().str();
    TuneOptions options;
    options.seconds = 0.05;
    options.candidates = 2;
    Result<TuneOutcome> outcome = compiled->tune(options);
    ASSERT_TRUE(outcome) << outcome.error().str();
    EXPECT_TRUE(outcome->passed());
    for (const TuneCandidate &candidate : outcome->candidates)
      EXPECT_TRUE(std::isfinite(candidate.predicted)) << candidate.what;
  }
}

// A second launch would read outside `x`: each begins with what was given.
TEST(Race, LaunchesBeginWithTheGivenElements) {
  Kernel next =
      kernel("next", "at, x, y",
             [](View<int64_t, 1> at, View<const float, 1> x, View<float, 1> y) {
               Dim n = dim("n", at.extent(0));
               Tile index = load(at(n));
               store(y(n), load(x(index)));
               store(at(n), index + 1);
             });
  std::vector<int64_t> at(3, 0);
  std::vector<float> x(1, 2.0f);
  RunRequest request;
  request.inputs.emplace("at", TensorRef::dense(at.data(), DType::I64, {3}));
  request.inputs.emplace("x", TensorRef::dense(x.data(), DType::F32, {1}));
  Result<Program> program = Program::fromKernel(next, {});
  ASSERT_TRUE(program) << program.error().str();
  Result<CompiledOperator> compiled =
      CompiledOperator::create(std::move(*program), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  Result<RunResult> run = compiled->run();
  ASSERT_TRUE(run) << run.error().str();
  EXPECT_TRUE(run->passed()) << run->failures();
  Result<std::vector<double>> times = compiled->race({}, 0.01);
  ASSERT_TRUE(times) << times.error().str();
  EXPECT_GT((*times)[0], 0);
}

TEST(Tune, TheInterpreterHasNoPlans) {
  RunRequest request = requestFor(4, 10);
  request.backend = Backend::Interpreter;
  Result<CompiledOperator> compiled =
      CompiledOperator::create(softmax(), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  EXPECT_FALSE(compiled->tune({}));
}

} // namespace
} // namespace tessera::session
