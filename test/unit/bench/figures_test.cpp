//===- test/unit/bench/figures_test.cpp - Orders, statistics, rows, floors
//---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/ceilings/ceilings.h"
#include "bench/core/order.h"
#include "bench/core/result.h"
#include "bench/core/row.h"
#include "bench/core/statistics.h"

#include "gmock/gmock.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/resource.h>

namespace tessera::bench {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchOrder, EveryPositionAndNeighbourEquallyOften) {
  for (int arms = 1; arms <= 11; ++arms) {
    std::vector<std::vector<int>> orders = balancedOrders(arms);
    std::map<std::pair<int, int>, size_t> positions, neighbours;
    for (const std::vector<int> &order : orders) {
      ASSERT_EQ(order.size(), static_cast<size_t>(arms));
      for (int i = 0; i < arms; ++i) {
        ++positions[{order[i], i}];
        if (i > 0)
          ++neighbours[{order[i - 1], order[i]}];
      }
    }
    EXPECT_EQ(positions.size(), static_cast<size_t>(arms * arms)) << arms;
    for (const auto &[place, count] : positions)
      EXPECT_EQ(count, orders.size() / arms) << arms;
    EXPECT_EQ(neighbours.size(), static_cast<size_t>(arms * (arms - 1)));
    for (const auto &[pair, count] : neighbours)
      EXPECT_EQ(count, orders.size() / arms) << arms;
  }
  EXPECT_THAT(balancedOrders(2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(1, 0)));
  EXPECT_EQ(balancedOrders(3).size(), 6u);
  EXPECT_EQ(roundOrders(4, 9).size(), 12u);
}

TEST(BenchStatistics, ByHand) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.9), 5);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 0.1), 1);
  EXPECT_EQ(quantile({5, 1, 4, 2, 3}, 1), 5);
  EXPECT_DOUBLE_EQ(noiseOf({1, 0.9, 1.3, 1, 1, 1, 1, 1, 1, 1}), 0.3);
  Interval one = bootstrapMedian({2}, "row/arm");
  EXPECT_EQ(one.low, 2);
  EXPECT_EQ(one.high, 2);
  // The same figures as test/bench/statistics_test.py expects.
  std::vector<double> values;
  for (int i = 1; i <= 11; ++i)
    values.push_back(i);
  Interval interval = bootstrapMedian(values, "softmax/f32/x/native/1/torch");
  EXPECT_LE(interval.low, 6);
  EXPECT_GE(interval.high, 6);
  EXPECT_LT(interval.high - interval.low, 8);
  EXPECT_EQ(interval.low,
            bootstrapMedian(values, "softmax/f32/x/native/1/torch").low);
}

json arm(const char *name, const char *role, std::vector<double> medians) {
  json samples = json::array();
  for (double value : medians)
    samples.push_back({value * 2});
  return {{"name", name},
          {"role", role},
          {"status", "ok"},
          {"inner", 2},
          {"samples", samples}};
}

TEST(BenchSummary, VerdictFollowsRatioAndNoise) {
  auto verdict = [](std::vector<double> peer, std::vector<double> control) {
    json row = {
        {"id", "a/f32/x/native/1"},
        {"floor", {{"nanoseconds", 5.0}}},
        {"arms",
         {arm("tessera", "subject", {10, 10, 10}),
          arm("tessera-control", "control", control),
          arm("slow", "peer", {40, 40, 40}), arm("torch", "peer", peer)}}};
    summarizeRow(row);
    return row;
  };
  json ahead = verdict({20, 20, 20}, {10, 10, 10});
  EXPECT_EQ(ahead["verdict"]["bestPeer"], "torch");
  EXPECT_EQ(ahead["verdict"]["ratio"], 0.5);
  EXPECT_EQ(ahead["verdict"]["result"], "ahead");
  EXPECT_EQ(ahead["verdict"]["overFloor"], 2.0);
  EXPECT_EQ(ahead["arms"][0]["statistics"]["median"], 10.0);
  EXPECT_EQ(verdict({8, 8, 8}, {10, 10, 10})["verdict"]["result"], "behind");
  // Inside the noise of the control nothing is ahead or behind.
  EXPECT_EQ(verdict({9, 9, 9}, {10, 12, 8})["verdict"]["result"], "level");
}

TEST(BenchSummary, WithoutAGoodSubjectNothingIsCompared) {
  json row = {
      {"id", "a/f32/x/native/1"},
      {"status", "failed"},
      {"floor", {{"nanoseconds", 0.0}}},
      {"arms", {arm("tessera", "subject", {10}), arm("torch", "peer", {5})}}};
  row["arms"][0]["status"] = "wrong";
  summarizeRow(row);
  EXPECT_EQ(row["verdict"]["result"], "failed");
  EXPECT_TRUE(row["comparisons"].empty());
  row["status"] = "not implemented";
  summarizeRow(row);
  EXPECT_EQ(row["verdict"]["result"], "not implemented");
  row["arms"][0]["status"] = "ok";
  row["arms"][1]["status"] = "failed";
  summarizeRow(row);
  EXPECT_EQ(row["verdict"]["result"], "alone");
}

TEST(BenchFloor, NearestMixAndSizeThenTheLongerTime) {
  auto bandwidth = [](const char *name, int64_t set, int64_t read,
                      int64_t written, int64_t nanoseconds) {
    Ceiling ceiling;
    ceiling.name = name;
    ceiling.workingSetBytes = set;
    ceiling.readBytes = read;
    ceiling.writtenBytes = written;
    ceiling.nanoseconds = {nanoseconds};
    return ceiling;
  };
  Ceiling peak;
  peak.name = "fma-f32";
  peak.flops = 1000;
  peak.nanoseconds = {10};
  std::vector<Ceiling> ceilings = {bandwidth("read", 1 << 10, 1000, 0, 10),
                                   bandwidth("copy", 1 << 10, 500, 500, 20),
                                   bandwidth("copy-nt", 1 << 20, 500, 500, 80),
                                   bandwidth("copy", 1 << 20, 500, 500, 100),
                                   peak};
  Floor read = floorOf(ceilings, 1, 2000, 0, 0);
  EXPECT_EQ(read.ceiling, "read/1024/1");
  EXPECT_DOUBLE_EQ(read.nanoseconds, 20);
  // Of two kinds of store the faster one.
  Floor copy = floorOf(ceilings, 1, 400000, 400000, 1);
  EXPECT_EQ(copy.ceiling, "copy-nt/1048576/1");
  EXPECT_DOUBLE_EQ(copy.nanoseconds, 800000 * 0.08);
  Floor work = floorOf(ceilings, 1, 500, 500, 1e6);
  EXPECT_EQ(work.by, "flops");
  EXPECT_DOUBLE_EQ(work.nanoseconds, 10000);
  EXPECT_EQ(floorOf(ceilings, 2, 500, 500, 1e6).by, "none");
}

TEST(BenchCeilings, AreMeasured) {
  std::vector<std::string> told;
  std::vector<Ceiling> ceilings = measureCeilings(
      hostIsa(), {1}, [&](const std::string &what) { told.push_back(what); });
  ASSERT_FALSE(ceilings.empty());
  EXPECT_FALSE(told.empty());
  for (const Ceiling &ceiling : ceilings) {
    EXPECT_GT(ceiling.callNanoseconds(), 0) << ceiling.name;
    if (ceiling.flops > 0)
      EXPECT_GT(ceiling.flopsPerSecond(), 1e8);
    else
      EXPECT_GT(ceiling.bytesPerSecond(), 1e7) << ceiling.name;
  }
}

class BenchSuite : public testing::Test {
protected:
  std::string write(const std::string &text) {
    std::string file = testing::TempDir() + "bench_suite_test.json";
    std::ofstream(file) << text;
    return file;
  }
};

TEST_F(BenchSuite, GroupsAreProducts) {
  Result<Suite> suite = readSuite(write(R"({"summary": "s", "groups": [{
      "operators": ["softmax", "row_sum"], "dtypes": ["f32", "bf16"],
      "shapes": [{"rows": 2, "cols": 3}], "boundaries": [["native", 1], ["call", 0]]}]})"));
  ASSERT_TRUE(suite) << suite.error().str();
  ASSERT_EQ(suite->rows.size(), 8u);
  EXPECT_EQ(suite->rows[0].id(), "softmax/f32/rows=2,cols=3/native/1");
  EXPECT_EQ(suite->rows[7].id(), "row_sum/bf16/rows=2,cols=3/call/0");
}

TEST_F(BenchSuite, MistakesNameFileAndEntry) {
  auto message = [&](const std::string &text) {
    Result<Suite> suite = readSuite(write(text));
    EXPECT_FALSE(suite) << text;
    return suite ? std::string() : suite.error().message;
  };
  EXPECT_THAT(message("{"), HasSubstr("bench_suite_test.json': line 1 is not "
                                      "JSON: the file ends too early"));
  EXPECT_THAT(message("{\n\"groups\": [}"), HasSubstr("line 2 is not JSON"));
  EXPECT_THAT(message("[]"), HasSubstr("found [], expected an object"));
  EXPECT_THAT(message(R"({"groups": [{}]})"),
              HasSubstr("bench_suite_test.json': groups[0]: field 'operators' "
                        "is missing, expected a list of texts"));
  EXPECT_THAT(message(R"({"summary": 3, "groups": []})"),
              HasSubstr("field 'summary' is 3, expected a text"));
  EXPECT_THAT(message(R"({"group": []})"),
              HasSubstr("field 'groups' is missing, expected a list"));
  EXPECT_THAT(message(R"({"groups": [], "groop": []})"),
              HasSubstr("unknown field 'groop', expected some of summary, "));
  auto group = [&](const std::string &field) {
    json parsed = json::parse(R"({"operators": ["softmax"], "dtypes": ["f32"],
        "shapes": [{"rows": 1, "cols": 2}], "boundaries": [["native", 1]]})");
    parsed.update(json::parse("{" + field + "}"));
    return message(json{{"groups", {parsed}}}.dump());
  };
  EXPECT_THAT(group(R"("operators": 3)"),
              HasSubstr("field 'operators' is 3, expected a list of texts"));
  EXPECT_THAT(group(R"("present": [1])"),
              HasSubstr("field 'present' is [1], expected a list of texts"));
  for (const char *boundary :
       {"3", "[]", R"(["native"])", R"(["hot", 1])", R"(["native", -1])",
        R"(["native", 99999999999])", R"(["native", 1, 2])"})
    EXPECT_THAT(group(std::string(R"("boundaries": [)") + boundary + "]"),
                HasSubstr("groups[0]: field 'boundaries' has "))
        << boundary;
  EXPECT_THAT(group(R"("settings": {"k": "x"})"),
              HasSubstr("groups[0]: operator 'softmax': setting 'k' is \"x\", "
                        "expected a number"));
  EXPECT_THAT(group(R"("settings": {"k": 18446744073709551615})"),
              HasSubstr("setting 'k' is 18446744073709551615, expected a "
                        "number"));
  EXPECT_THAT(message(R"({"groups": 1e999})"),
              HasSubstr("has a number that is too large"));
  EXPECT_THAT(message("{\"groups\": " + std::string(100000, '[') +
                      std::string(100000, ']') + "}"),
              HasSubstr("is nested too deep"));
  EXPECT_THAT(group(R"("variants": [{"name": "control", "steps": []}])"),
              HasSubstr("variant \"control\" is named as another arm"));
  EXPECT_THAT(group(R"("variants": [{"name": "v", "steps": []},
                                    {"name": "v", "steps": []}])"),
              HasSubstr("variant \"v\" is named as another arm"));
  EXPECT_THAT(group(R"("shapes": [{"rows": 18446744073709551615}])"),
              HasSubstr("dimension 'rows' is 18446744073709551615, expected"));
  EXPECT_THAT(group(R"("variants": [{"name": "v"}])"),
              HasSubstr("a variant: field 'steps' is missing"));
  EXPECT_THAT(group(R"("variants": [{"name": "v", "steps": [{"dims": 1}]}])"),
              HasSubstr("variant 'v', steps[0]: field 'operator' is missing"));
  EXPECT_THAT(message(R"({"groups": [{"operators": ["a"], "dtypes": ["f3"],
      "shapes": [{}], "boundaries": [["native", 1]]}]})"),
              HasSubstr("unknown dtype 'f3'"));
  EXPECT_THAT(message(R"({"groups": [{"operators": ["a"], "dtypes": ["f32"],
      "shapes": [{"rows": "x"}], "boundaries": [["native", 1]]}]})"),
              HasSubstr("bench_suite_test.json"));
  EXPECT_THAT(findSuite("nothing").error().message,
              HasSubstr("unknown suite 'nothing', expected one of"));
}

TEST(BenchSuites, AllOfTheTreeAreRead) {
  std::vector<std::string> names = suiteNames();
  EXPECT_THAT(names, testing::IsSupersetOf({"attention", "ceilings", "fusion",
                                            "gemm", "pairs", "rank", "rows"}));
  for (const std::string &name : names) {
    Result<Suite> suite = findSuite(name);
    EXPECT_TRUE(suite) << suite.error().str();
    if (!suite)
      continue;
    for (const RowSpec &row : suite->rows)
      if (const kernels::Operator *op =
              kernels::findOperator(row.operatorName)) {
        Result<void> status = kernels::checkDims(*op, row.dims);
        EXPECT_TRUE(status) << row.id() << ": " << status.error().str();
      }
  }
}

class BenchPartial : public testing::Test {
protected:
  void SetUp() override { std::filesystem::remove(file + ".partial"); }
  std::string file = testing::TempDir() + "bench_partial_test.json";
  json settings = {{"run", {{"suite", "rows"}}}, {"started", "now"}};
};

TEST_F(BenchPartial, FinishedRowsSurvive) {
  {
    Result<PartialResult> partial =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_TRUE(partial) << partial.error().str();
    ASSERT_TRUE(partial->add({{"id", "a"}, {"value", 1}}));
  }
  {
    Result<PartialResult> one =
        PartialResult::open(file, settings, Resume::Continue);
    Result<PartialResult> two =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_TRUE(one);
    ASSERT_FALSE(two);
    EXPECT_THAT(two.error().message, HasSubstr("another run writes"));
  }
  // Stopped in the middle of a line.
  std::ofstream(file + ".partial", std::ios::app) << "{\"id\": \"b\", \"va";
  settings["started"] = "later";
  {
    Result<PartialResult> again =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(again->size(), 1u);
    ASSERT_NE(again->find("a"), nullptr);
    EXPECT_EQ(again->find("a")->at("value"), 1);
    EXPECT_EQ(again->find("b"), nullptr);
    EXPECT_EQ(again->settings()["started"], "now");
  }

  // Lines that are no rows, or are other than was written, are left out.
  std::ofstream(file + ".partial", std::ios::app)
      << "{\"id\": 3}\n[]\n{\"id\":\"c\"}\n{\"id\":\"c\",\"digest\":4}\n"
      << std::string(100000, '[') << "\n";
  EXPECT_EQ(PartialResult::open(file, settings, Resume::Continue)->size(), 1u);

  settings["run"]["suite"] = "gemm";
  Result<PartialResult> other =
      PartialResult::open(file, settings, Resume::Continue);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("--restart"));
  Result<PartialResult> anew =
      PartialResult::open(file, settings, Resume::Restart);
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->size(), 0u);
  anew->discard();
  EXPECT_FALSE(std::filesystem::exists(file + ".partial"));
}

TEST_F(BenchPartial, AFullDiskLosesNoRow) {
  {
    Result<PartialResult> partial =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_TRUE(partial) << partial.error().str();
    ASSERT_TRUE(partial->add({{"id", "a"}, {"value", 1}}));
  }
  std::ofstream(file + ".partial", std::ios::app) << "{\"id\": \"b\", \"va";
  // Nothing more can be written to any file.
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit none = {0, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  bool opened(PartialResult::open(file, settings, Resume::Continue));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(opened);
  Result<PartialResult> again =
      PartialResult::open(file, settings, Resume::Continue);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_NE(again->find("a"), nullptr);
}

TEST_F(BenchPartial, AnotherMachineFinishes) {
  settings["run"]["rowIds"] = {"a", "b"};
  EXPECT_FALSE(PartialResult::open(file, settings, Resume::Finish));
  {
    Result<PartialResult> partial =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_TRUE(partial) << partial.error().str();
    ASSERT_TRUE(partial->add({{"id", "a"}, {"value", 1}}));
  }
  json here = settings;
  here["environment"] = "another";
  EXPECT_FALSE(PartialResult::open(file, here, Resume::Continue));
  {
    Result<PartialResult> finished =
        PartialResult::open(file, here, Resume::Finish);
    ASSERT_TRUE(finished) << finished.error().str();
    EXPECT_FALSE(finished->settings().contains("environment"));
    EXPECT_NE(finished->find("a"), nullptr);
    EXPECT_EQ(finished->find("b"), nullptr);
  }
  here["run"]["rowIds"] = {"a", "c"};
  EXPECT_FALSE(PartialResult::open(file, here, Resume::Finish));
}

TEST_F(BenchPartial, WhatIsNoneIsToldAndKept) {
  for (const char *text : {"garbage", "[]", "{\"run\": "}) {
    std::ofstream(file + ".partial") << text;
    Result<PartialResult> partial =
        PartialResult::open(file, settings, Resume::Continue);
    ASSERT_FALSE(partial) << text;
    EXPECT_THAT(partial.error().message,
                HasSubstr("does not begin with the settings of a run"));
  }
  EXPECT_TRUE(PartialResult::open(file, settings, Resume::Restart));
}

TEST(BenchResult, DigestIsOfEverythingBeforeIt) {
  std::string file = testing::TempDir() + "bench_result_test.json";
  ASSERT_TRUE(writeResult(file, {{"schema", "tessera-bench"}, {"rows", {}}}));
  std::ifstream stream(file);
  std::string text;
  std::getline(stream, text);
  size_t at = text.find(",\"digest\":\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(text.substr(at + 11, 32), digestOf(text.substr(0, at) + "}"));
  EXPECT_FALSE(writeResult("/nowhere/at/all.json", json::object()));
}

} // namespace
} // namespace tessera::bench
