//===- test/unit/session/report_test.cpp - The execution report -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/object_facts.h"
#include "plan/plan_record.h"
#include "session/session.h"
#include "tessera/dsl.h"

#include "nlohmann/json.hpp"
#include "gmock/gmock.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace tessera::session {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Result<Compilation> compiled(std::string_view name, kernels::Dims dims,
                             Isa isa = Isa::Avx2) {
  return compileOperator(
      *kernels::findOperator(name),
      {.dims = std::move(dims), .isa = isa, .machineFacts = true});
}

Json reportOf(std::string_view name, kernels::Dims dims, Isa isa = Isa::Avx2) {
  Result<Compilation> result = compiled(name, std::move(dims), isa);
  EXPECT_TRUE(result) << result.error().str();
  return result ? Json::parse(result->kernel.report) : Json();
}

TEST(Report, HasEverySection) {
  Json report = reportOf("softmax", {{"rows", 17}, {"cols", 1000}});
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["kernel"], "softmax");
  for (const char *section :
       {"parameters", "plan", "passes", "loops", "allocations",
        "vectorized_loads", "vectorized_stores", "masked_accesses",
        "epilogue_regions", "numerics", "machine", "work", "measured", "notes"})
    EXPECT_TRUE(report.contains(section)) << section;
  EXPECT_EQ(report["plan"]["source"], "search");
  for (const char *field :
       {"backend", "target", "summary", "source", "alias", "tile_shape",
        "threadgroup_size", "simdgroup_grid", "staging", "vector_width",
        "double_buffer", "cooperative_layout", "outer_bounds_proven", "reasons",
        "rejected_alternatives", "stages"})
    EXPECT_TRUE(report["plan"].contains(field)) << field;
}

TEST(Report, DescribesWhatWasEmitted) {
  Json report = reportOf("softmax", {{"rows", 17}, {"cols", 1000}});
  EXPECT_EQ(report["plan"]["backend"], "cpu");
  EXPECT_EQ(report["plan"]["target"], "avx2");
  EXPECT_EQ(report["plan"]["tile_shape"][0]["cols"], 1000);
  EXPECT_TRUE(report["plan"]["outer_bounds_proven"]);
  EXPECT_FALSE(report["plan"]["reasons"].empty());
  EXPECT_GT(report["vectorized_loads"]["vector"], 0);
  // Pointers and strides of the launch are loaded too, and are no elements.
  Json whole = reportOf("softmax", {{"rows", 17}, {"cols", 1024}});
  EXPECT_EQ(whole["vectorized_loads"]["scalar"], 0);
  EXPECT_EQ(whole["vectorized_loads"]["total"],
            whole["vectorized_loads"]["vector"]);
  EXPECT_FALSE(report["loops"].empty());
  bool exponential = false;
  for (const Json &function : report["numerics"]["functions"])
    exponential |= function["name"] == "exp" && function["ulps"] > 0;
  EXPECT_TRUE(exponential);
  EXPECT_EQ(report["work"]["bytes_read"], 17 * 1000 * 4);
  EXPECT_EQ(report["work"]["bytes_written"], 17 * 1000 * 4);
  EXPECT_GT(report["work"]["flops"], 17 * 1000);
  EXPECT_GT(report["work"]["predicted_seconds"], 0);
}

/// The predictions that are no numbers, which JSON has as null.
std::vector<std::string> missingFigures(const CompiledKernel &kernel) {
  std::vector<std::string> missing;
  const Json work = Json::parse(kernel.report)["work"];
  if (!work["predicted_seconds"].is_number())
    missing.push_back("predicted_seconds");
  for (const Json &term : work["predicted_terms"])
    if (!term["seconds"].is_number())
      missing.push_back(term.dump());
  for (const PlanCandidate &candidate : kernel.plan->candidates)
    if (candidate.nanoseconds && !std::isfinite(*candidate.nanoseconds))
      missing.push_back(candidate.what);
  return missing;
}

TEST(Report, PredictsWithoutElements) {
  for (const kernels::Operator &op : kernels::operators()) {
    auto check = [&](const kernels::Dims &dims) {
      std::string what(op.name);
      for (const auto &[dim, extent] : dims)
        what += " " + dim + "=" + std::to_string(extent);
      SCOPED_TRACE(what);
      Result<Compilation> made =
          compileOperator(op, {.dims = dims, .isa = Isa::Avx2});
      if (!made) {
        EXPECT_NE(made.error().family, ErrorFamily::Internal)
            << made.error().str();
        return;
      }
      EXPECT_THAT(missingFigures(made->kernel), ::testing::IsEmpty());
    };
    kernels::Dims none;
    for (std::string_view zero : op.dims) {
      kernels::Dims dims;
      for (std::string_view dim : op.dims)
        dims[std::string(dim)] = dim == zero ? 0 : 4;
      check(dims);
      none[std::string(zero)] = 0;
    }
    check(none);
  }
}

// Nothing of their sizes could be told.
TEST(Report, ArraysBeyondAllMemoryAreRefused) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const kernels::Dims &dims :
       {kernels::Dims{{"rows", most}, {"cols", most}},
        kernels::Dims{{"rows", most}, {"cols", 1}},
        kernels::Dims{{"rows", 1}, {"cols", most / 8 + 1}},
        kernels::Dims{{"rows", 1 << 30}, {"cols", int64_t{1} << 30}}}) {
    Result<Compilation> made = compiled("softmax", dims);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "usage.extents") << made.error().str();
    EXPECT_THAT(made.error().message, HasSubstr("have more than 2^63 bytes"));
  }
}

TEST(Report, MachineFactsComeFromTheObject) {
  Json report = reportOf("rms_norm", {{"rows", 3}, {"cols", 333}});
  const Json &machine = report["machine"];
  EXPECT_GT(machine["code_bytes"], 100);
  ASSERT_FALSE(machine["symbols"].empty());
  int64_t wide = 0, widest = 0;
  for (const Json &symbol : machine["symbols"]) {
    wide += symbol["vector_instructions"]["256"].get<int64_t>();
    widest += symbol["vector_instructions"]["512"].get<int64_t>();
  }
  EXPECT_GT(wide, 0);
  EXPECT_EQ(widest, 0);
}

TEST(Report, MachineFactsOfAnotherArchitecture) {
  Json report = reportOf("rope", {{"rows", 3}, {"cols", 334}}, Isa::Neon);
  const Json &machine = report["machine"];
  EXPECT_EQ(machine["isa"], "neon");
  EXPECT_GT(machine["code_bytes"], 100);
  ASSERT_EQ(machine["symbols"].size(), 2u);
  int64_t stack = 0;
  for (const Json &symbol : machine["symbols"]) {
    EXPECT_EQ(symbol["vector_instructions"]["256"], 0);
    EXPECT_GE(symbol["instructions"], symbol["vector_instructions"]["128"]);
    // Every instruction has four bytes; those that do nothing are left out.
    EXPECT_LE(symbol["instructions"].get<int64_t>() * 4, symbol["code_bytes"]);
    stack += symbol["stack_bytes"].get<int64_t>();
  }
  EXPECT_GT(machine["symbols"][0]["vector_instructions"]["128"], 10);
  EXPECT_GT(machine["symbols"][0]["vector_registers_used"], 2);
  // The entry saves at least the address that it returns to.
  EXPECT_GE(stack, 16);
}

TEST(Report, GathersCountOnlyTheRowsTheyTouch) {
  Json report =
      reportOf("embedding", {{"tokens", 2}, {"vocab", 1000}, {"cols", 8}});
  EXPECT_EQ(report["work"]["bytes_read"], 2 * 8 + 2 * 8 * 4);
  EXPECT_FALSE(report["plan"]["outer_bounds_proven"]);
}

TEST(Report, CountsTheOperationsOfAContraction) {
  Json report = reportOf("gemm", {{"m", 8}, {"n", 16}, {"k", 32}});
  EXPECT_GE(report["work"]["flops"], 2 * 8 * 16 * 32);
}

TEST(Report, PartialSumsAreOfThePlan) {
  Result<Compilation> rows = compiled("row_sum", {{"rows", 3}, {"cols", 1000}});
  ASSERT_TRUE(rows);
  EXPECT_GE(rows->kernel.summation.partials, 8);
  Result<Compilation> scan = compiled("cumsum", {{"rows", 3}, {"cols", 100}});
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->kernel.summation.partials, 1);
}

std::vector<std::string> remarksOf(const Json &report) {
  std::vector<std::string> codes;
  for (const Json &remark : report["remarks"]) {
    EXPECT_FALSE(remark["text"].get<std::string>().empty());
    codes.push_back(remark["code"]);
  }
  return codes;
}

TEST(Report, RemarksSayWhatTheAuthorCouldChange) {
  using ::testing::Contains;
  using ::testing::IsEmpty;
  // Nothing is in the way of these.
  EXPECT_THAT(remarksOf(reportOf("softmax", {{"rows", 17}, {"cols", 1000}})),
              IsEmpty());
  EXPECT_THAT(remarksOf(reportOf("gemm", {{"m", 64}, {"n", 64}, {"k", 64}})),
              IsEmpty());
  // Blocks that hang over.
  EXPECT_THAT(remarksOf(reportOf("gemm", {{"m", 65}, {"n", 64}, {"k", 64}})),
              Contains("remark.bounds"));
  // One program, in a fixed order.
  Kernel total =
      kernel("total", "x, y", [](View<const float, 1> x, View<float, 1> y) {
        Dim i = dim("i", x.extent(0));
        store(y(0), sum(load(x(i)), i, Order::Left));
      });
  Result<Program> program = Program::fromKernel(total, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  CompileRequest request;
  request.extents = {{1000000}, {1}};
  request.isa = Isa::Avx2;
  Result<CompiledKernel> made = program->compile(request);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_THAT(
      remarksOf(Json::parse(made->report)),
      testing::UnorderedElementsAre("remark.ordered", "remark.threads"));
  // Rows that are chosen by an array.
  EXPECT_THAT(remarksOf(reportOf(
                  "embedding", {{"tokens", 2}, {"vocab", 1000}, {"cols", 8}})),
              Contains("remark.bounds"));
  // Values beyond the first-level cache.
  EXPECT_THAT(remarksOf(reportOf("softmax", {{"rows", 4}, {"cols", 100000}})),
              Contains("remark.buffer"));
}

/// docs/report.md documents every field that a report has.
void expectDocumented(const Json &value, const std::string &text,
                      const std::string &path) {
  if (value.is_array())
    for (const Json &entry : value)
      expectDocumented(entry, text, path);
  if (!value.is_object())
    return;
  for (const auto &[key, entry] : value.items()) {
    std::string name = path.empty() ? key : path + "." + key;
    // Below these, keys are dimensions and tunables.
    if (path == "plan.tile_shape" || path == "plan.tunables.values")
      continue;
    EXPECT_THAT(text, HasSubstr("`" + key + "`")) << name;
    expectDocumented(entry, text, name);
  }
}

TEST(Report, EveryFieldIsDocumented) {
  std::ifstream file(TESSERA_SOURCE_DIR "/docs/report.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  for (const char *name : {"softmax", "layer_norm", "masked_softmax", "cumsum"})
    expectDocumented(reportOf(name, {{"rows", 3}, {"cols", 1001}}), text.str(),
                     "");
  expectDocumented(reportOf("gemm", {{"m", 5}, {"n", 7}, {"k", 9}}), text.str(),
                   "");
}

TEST(ObjectFacts, RejectsWhatIsNoObject) {
  Result<std::vector<FunctionFact>> facts =
      readFunctions("no object", getTarget(Isa::Avx2));
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().family, ErrorFamily::Internal);
}

} // namespace
} // namespace tessera::session
