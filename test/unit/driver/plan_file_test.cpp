//===- plan_file_test.cpp - Saved plans are read back and applied ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/plan_file.h"
#include "kernels/table.h"
#include "session/session.h"
#include "tessera/dsl.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A compilation of an operator, its plan as text and its machine code.
struct Made {
  std::string summary;
  std::string source;
  std::string text;
  std::string object;
  std::shared_ptr<const Plan> plan;
};

Result<Made> make(std::string_view op, const kernels::Dims &dims,
                  const std::string &plan = "", Isa isa = Isa::Avx2) {
  session::RunRequest request;
  request.dims = dims;
  request.isa = isa;
  // The same plans on any machine.
  request.threads = 2;
  if (!plan.empty())
    request.savedPlan = PlanText{"p.json", plan};
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator(op), request);
  if (!made)
    return made.error();
  const CompiledKernel &kernel = made->kernel;
  return Made{kernel.planSummary, kernel.planSource,
              writePlan(*kernel.plan, *kernel.subject), kernel.object,
              kernel.plan};
}

const kernels::Dims softmaxDims = {{"rows", 64}, {"cols", 100}};

const Made &softmax() {
  static const Made made = *make("softmax", softmaxDims);
  return made;
}

/// A plan of softmax.
const std::string &softmaxPlan() { return softmax().text; }

/// The number of a nest of the first stage.
int64_t idOf(const Made &made, size_t nest) {
  return made.plan->stages[0].nests[nest].id;
}

/// "\"id\": 7" for a nest of softmax.
std::string idField(size_t nest) {
  return "\"id\": " + std::to_string(idOf(softmax(), nest));
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no " << from << " in " << text;
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

Error errorOf(const std::string &plan) {
  Result<Made> made = make("softmax", softmaxDims, plan);
  if (!made)
    return made.error();
  ADD_FAILURE() << "expected an error for " << plan;
  return {};
}

/// The message for a plan of softmax that is no good at all.
std::string damage(const std::string &plan) {
  Error error = errorOf(plan);
  EXPECT_EQ(error.code, "usage.plan") << error.message;
  EXPECT_EQ(error.family, ErrorFamily::Usage);
  EXPECT_THAT(error.message, testing::StartsWith("plan 'p.json': "));
  return error.message;
}

/// The same for one that cannot be applied.
std::string refusal(const std::string &plan) {
  Error error = errorOf(plan);
  EXPECT_EQ(error.code, "unsupported.plan") << error.message;
  EXPECT_EQ(error.family, ErrorFamily::Unsupported);
  return error.message;
}

//===----------------------------------------------------------------------===//
// Round trips
//===----------------------------------------------------------------------===//

TEST(PlanFile, ReplaysToTheSameCode) {
  const std::pair<const char *, kernels::Dims> cases[] = {
      {"softmax", {{"rows", 64}, {"cols", 1000}}},
      {"layer_norm", {{"rows", 7}, {"cols", 65}}},
      {"gemm", {{"m", 128}, {"n", 64}, {"k", 512}}},
      {"transpose", {{"rows", 33}, {"cols", 65}}},
      {"arg_max", {{"rows", 9}, {"cols", 130}}},
      {"copy", {{"rows", 1}, {"cols", 1}}},
  };
  for (const auto &[op, dims] : cases)
    for (Isa isa : {Isa::X86_64, Isa::Avx2, Isa::Avx512}) {
      Result<Made> first = make(op, dims, "", isa);
      ASSERT_TRUE(first) << op << ": " << first.error().str();
      Result<Made> again = make(op, dims, first->text, isa);
      ASSERT_TRUE(again) << op << ": " << again.error().str();
      EXPECT_EQ(again->source, "file");
      EXPECT_EQ(again->summary, first->summary) << op;
      EXPECT_EQ(again->text, first->text) << op;
      EXPECT_EQ(again->object, first->object) << op;
    }
}

TEST(PlanFile, ReplaysEveryCandidate) {
  for (std::string_view op : {"softmax", "residual_layer_norm"}) {
    Result<Made> searched = make(op, softmaxDims);
    ASSERT_TRUE(searched) << searched.error().str();
    EXPECT_EQ(searched->source, "search");
    size_t replayed = 0;
    for (const PlanCandidate &candidate : searched->plan->candidates) {
      if (!candidate.nanoseconds)
        continue;
      session::RunRequest request;
      request.dims = softmaxDims;
      request.isa = Isa::Avx2;
      request.choices = std::make_shared<const PlanChoices>(candidate.choices);
      Result<session::Compilation> made =
          session::compileOperator(*kernels::findOperator(op), request);
      ASSERT_TRUE(made) << made.error().str();
      EXPECT_EQ(made->kernel.planSource, "request");
      std::string text = writePlan(*made->kernel.plan, *made->kernel.subject);
      Result<Made> again = make(op, softmaxDims, text);
      ASSERT_TRUE(again) << candidate.what << ": " << again.error().str();
      EXPECT_EQ(again->object, made->kernel.object) << candidate.what;
      ++replayed;
    }
    EXPECT_GT(replayed, 3u);
  }
}

// What a file leaves out, the planner decides, without a search.
TEST(PlanFile, MayFixAPart) {
  Result<Made> made = make("softmax", softmaxDims);
  ASSERT_TRUE(made);
  std::string head = made->text.substr(0, made->text.find("  \"keeping\""));
  Result<Made> bare = make("softmax", softmaxDims, head + "\"stages\": []}");
  ASSERT_TRUE(bare) << bare.error().str();
  EXPECT_EQ(bare->summary.find(" x2;"), std::string::npos) << bare->summary;
  Result<Made> one = make("softmax", softmaxDims,
                          head + "\"stages\": [{\"nests\": [{" + idField(0) +
                              ", "
                              "\"vectors_per_iteration\": 3}]}]}");
  ASSERT_TRUE(one) << one.error().str();
  EXPECT_THAT(one->summary, HasSubstr("reduce max over +cols (cols x8 x3)"));
}

TEST(PlanFile, EditsChangeTheCode) {
  auto edited = [](const std::string &text) {
    Result<Made> made = make("softmax", softmaxDims, text);
    EXPECT_TRUE(made) << made.error().str();
    return made ? *made : Made();
  };
  const Made original = edited(softmaxPlan());
  const std::string &text = original.text;
  std::string together =
      text.find("\"programs_together\": 4") != text.npos ? "4" : "2";
  Made fewer = edited(replaced(text, "\"programs_together\": " + together,
                               "\"programs_together\": 1"));
  EXPECT_THAT(fewer.summary, testing::StartsWith("parallel rows;"));
  EXPECT_NE(fewer.object, original.object);
  Made ahead = edited(
      replaced(text, "\"prefetch\": \"none\"", "\"prefetch\": \"inputs\""));
  EXPECT_THAT(ahead.summary, testing::EndsWith("; prefetch inputs"));
  EXPECT_NE(ahead.object, original.object);
  EXPECT_EQ(edited(ahead.text).object, ahead.object);
  Made scalar =
      edited(replaced(text, "\"tail\": \"mask\"", "\"tail\": \"scalar\""));
  EXPECT_NE(scalar.object, original.object);

  // Contractions: rows, vectors and packing.
  const kernels::Dims dims = {{"m", 128}, {"n", 64}, {"k", 512}};
  Result<Made> gemm = make("gemm", dims);
  ASSERT_TRUE(gemm);
  EXPECT_THAT(gemm->summary, HasSubstr("m_block x6, packed)"));
  Result<Made> rows = make("gemm", dims,
                           replaced(gemm->text, "\"rows_per_iteration\": 6",
                                    "\"rows_per_iteration\": 4"));
  ASSERT_TRUE(rows) << rows.error().str();
  EXPECT_THAT(rows->summary, HasSubstr("m_block x4, packed)"));
  // The copy is a nest, too, which goes with it.
  const std::vector<NestPlan> &nests = gemm->plan->stages[0].nests;
  auto contraction =
      std::find_if(nests.begin(), nests.end(), [](const NestPlan &nest) {
        return nest.packedOperand >= 0;
      });
  ASSERT_NE(contraction, nests.end());
  std::string head = gemm->text.substr(0, gemm->text.find("  \"keeping\""));
  Result<Made> unpacked = make("gemm", dims,
                               head + "\"stages\": [{\"nests\": [{\"id\": " +
                                   std::to_string(contraction->id) +
                                   ", \"packs_operand\": false}]}]}");
  ASSERT_TRUE(unpacked) << unpacked.error().str();
  EXPECT_THAT(unpacked->summary, HasSubstr("m_block x6)"));
}

// An atom that was chosen comes back, and so does that there is none.
TEST(PlanFile, AtomsAreAppliedAgain) {
  const kernels::Dims dims = {{"m", 64}, {"n", 64}, {"k", 64}};
  Result<Made> made = make("gemm_q8", dims);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->summary, HasSubstr(", maddw)"));
  Result<Made> again = make("gemm_q8", dims, made->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->summary, made->summary);
  const std::string named = "\"atom\": \"maddw\"";
  std::string text = made->text;
  const size_t at = text.find(named);
  ASSERT_NE(at, text.npos) << text;
  text.replace(at, named.size(), "\"atom\": null");
  const std::string packs = "\"packs_operand\": true";
  ASSERT_NE(text.find(packs), text.npos) << text;
  text.replace(text.find(packs), packs.size(), "\"packs_operand\": false");
  Result<Made> widened = make("gemm_q8", dims, text);
  ASSERT_TRUE(widened) << widened.error().str();
  EXPECT_THAT(widened->summary, Not(HasSubstr("maddw")));
}

// The nests of a joined plan are others: a file that leaves them out has their
// defaults.
TEST(PlanFile, JoinsReductionsWhereALawAllowsIt) {
  const kernels::Dims dims = {{"rows", 64}, {"cols", 500}};
  auto headOf = [&](const char *op, const std::string &passes) {
    Result<Made> made = make(op, dims);
    EXPECT_TRUE(made) << made.error().str();
    return made->text.substr(0, made->text.find("  \"keeping\"")) +
           "\"passes\": \"" + passes + "\", \"stages\": []}";
  };
  Result<Made> joined =
      make("layer_norm", dims, headOf("layer_norm", "joined"));
  ASSERT_TRUE(joined) << joined.error().str();
  EXPECT_THAT(joined->summary, HasSubstr(" in one pass over +cols"));
  EXPECT_THAT(joined->text, HasSubstr("\"passes\": \"joined\""));
  Result<Made> again = make("layer_norm", dims, joined->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->object, joined->object);
  Result<Made> separate =
      make("layer_norm", dims, headOf("layer_norm", "separate"));
  ASSERT_TRUE(separate) << separate.error().str();
  EXPECT_EQ(separate->summary.find("one pass"), std::string::npos);

  Result<Made> none = make("rms_norm", dims, headOf("rms_norm", "joined"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, "unsupported.plan");
  EXPECT_THAT(none.error().message,
              HasSubstr("passes: found joined, expected separate: no law"));
}

//===----------------------------------------------------------------------===//
// Plans for something else
//===----------------------------------------------------------------------===//

TEST(PlanFile, IsForOneCompilation) {
  auto messageFor = [](std::string_view op, const kernels::Dims &dims,
                       Isa isa) {
    Result<Made> made = make(op, dims, softmaxPlan(), isa);
    EXPECT_FALSE(made);
    EXPECT_EQ(made.error().code, "usage.plan");
    return made.error().message;
  };
  EXPECT_THAT(messageFor("copy", softmaxDims, Isa::Avx2),
              HasSubstr("kernel: found 'softmax', expected 'copy'"));
  EXPECT_THAT(messageFor("softmax", softmaxDims, Isa::Avx512),
              HasSubstr("target: found avx2, expected avx512"));
  EXPECT_THAT(messageFor("softmax", {{"rows", 8}, {"cols", 100}}, Isa::Avx2),
              HasSubstr("extents: found rows=64,cols=100, expected "
                        "rows=8,cols=100"));
  EXPECT_THAT(damage(replaced(softmaxPlan(), "disjoint", "in-place")),
              HasSubstr("alias: found in-place, expected disjoint"));
  EXPECT_THAT(damage(replaced(softmaxPlan(), "\"kernel_hash\": \"",
                              "\"kernel_hash\": \"0")),
              HasSubstr("kernel_hash: found 0"));
  EXPECT_THAT(damage(replaced(softmaxPlan(), "\"schema_version\": 1",
                              "\"schema_version\": 2")),
              HasSubstr("schema_version: found 2, expected 1"));
  EXPECT_THAT(damage(replaced(softmaxPlan(), "tessera-plan", "tessera-bench")),
              HasSubstr("schema: found \"tessera-bench\", expected "
                        "\"tessera-plan\""));
}

//===----------------------------------------------------------------------===//
// Damage
//===----------------------------------------------------------------------===//

TEST(PlanFile, DamageIsNamedAndPlaced) {
  const std::string text = softmaxPlan();
  EXPECT_THAT(damage("{"), HasSubstr("found no JSON, expected a saved plan: "
                                     "line 1, column 2"));
  EXPECT_THAT(damage("[]"), HasSubstr("found [], expected an object"));
  EXPECT_THAT(damage("{}"), HasSubstr("schema: found no such field"));
  EXPECT_THAT(damage("\xff"), HasSubstr("found no JSON"));
  EXPECT_THAT(damage(text + "x"), HasSubstr("found no JSON"));
  EXPECT_THAT(damage(std::string(100000, '[')),
              HasSubstr("more than 16 levels of nesting"));
  for (size_t size = 0; size + 2 < text.size(); size += 7)
    if (size > 0)
      damage(text.substr(0, size));

  EXPECT_THAT(damage(replaced(text, "\"keeping\"", "\"kept\"")),
              HasSubstr("kept: found an unknown field, expected one of "));
  EXPECT_THAT(damage(replaced(text, "\"tail\"", "\"tails\"")),
              HasSubstr("stages[0].nests[0].tails: found an unknown field"));
  EXPECT_THAT(damage(replaced(text, "\"tail\"", "\"id\"")),
              HasSubstr("stages[0].nests[0].id: found the field twice"));
  EXPECT_THAT(damage(replaced(text, idField(1), idField(0))),
              HasSubstr("stages[0].nests[1].id: found nest " +
                        std::to_string(idOf(softmax(), 0)) + " twice"));
  EXPECT_THAT(damage(replaced(text, idField(1), "\"id\": 1000")),
              HasSubstr("stages[0].nests[1].id: found 1000, expected one of " +
                        std::to_string(idOf(softmax(), 0)) +
                        " (reduce max), "));
  EXPECT_THAT(damage(replaced(text, idField(1) + ",", "")),
              HasSubstr("stages[0].nests[1].id: found no such field"));
  EXPECT_THAT(damage(replaced(text, "\"reduce max\"", "\"reduce min\"")),
              HasSubstr("stages[0].nests[0].computes: found 'reduce min', "
                        "expected 'reduce max'"));
  EXPECT_THAT(
      damage(replaced(text, "\"space\": \"+cols\"", "\"space\": \"cols\"")),
      HasSubstr("stages[0].nests[0].space: found 'cols', expected "
                "'+cols'"));
  EXPECT_THAT(damage(replaced(text, "\"grid\": \"rows\"", "\"grid\": \"\"")),
              HasSubstr("stages[0].grid: found null, expected 'rows'"));
  EXPECT_THAT(damage(replaced(text, "\"stages\": [", "\"stages\": [{}, ")),
              HasSubstr("stages: found 2, expected 1"));
  EXPECT_THAT(damage(replaced(text, "\"tail\": \"mask\"", "\"tail\": 3")),
              HasSubstr("nests[0].tail: found 3, expected mask or scalar or "
                        "overlap"));
  EXPECT_THAT(damage(replaced(text, "\"packs_operand\": false",
                              "\"packs_operand\": 0")),
              HasSubstr("packs_operand: found 0, expected true or false"));
  EXPECT_THAT(damage(replaced(text, "\"rows_per_iteration\": 1",
                              "\"rows_per_iteration\": 0")),
              HasSubstr("rows_per_iteration: found 0, expected a whole number "
                        "from 1"));
  EXPECT_THAT(damage(replaced(text, "\"rows_per_iteration\": 1",
                              "\"rows_per_iteration\": 18446744073709551615")),
              HasSubstr("expected a whole number"));
  EXPECT_THAT(damage(replaced(text, "\"rows_per_iteration\": 1",
                              "\"rows_per_iteration\": 1.5")),
              HasSubstr("found 1.5, expected a whole number"));
  EXPECT_THAT(
      damage(replaced(text, "\"keeping\": \"all\"", "\"keeping\": \"most\"")),
      HasSubstr("keeping: found \"most\", expected all or expensive or "
                "required"));
  EXPECT_THAT(
      damage(replaced(text, "\"passes\": \"separate\"", "\"passes\": \"one\"")),
      HasSubstr("passes: found \"one\", expected separate or joined"));
}

TEST(PlanFile, DamagedSubjectsAreNamed) {
  const std::string text = softmaxPlan();
  EXPECT_THAT(
      damage(replaced(text, "\"extents\": {", "\"extents\": 3, \"x\": {")),
      HasSubstr("x: found an unknown field"));
  EXPECT_THAT(damage(replaced(text, "\"rows\": 64", "\"rows\": \"64\"")),
              HasSubstr("extents.rows: found \"64\", expected a whole number"));
  EXPECT_THAT(
      damage(replaced(text, "\"keeping\"", "\"tuned\": {}, \"keeping\"")),
      HasSubstr("tuned.key: found no such field"));
}

TEST(PlanFile, AnyBytesAreAnswered) {
  const std::string text = softmaxPlan();
  uint64_t state = 1;
  for (size_t i = 0; i < 5000; ++i) {
    std::string broken = text;
    for (int change = 0; change < 2; ++change) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      broken[(state >> 33) % broken.size()] = static_cast<char>(state >> 24);
    }
    Result<SavedPlan> plan = readPlan({"p.json", broken});
    if (!plan)
      EXPECT_EQ(plan.error().code, "usage.plan");
  }
}

//===----------------------------------------------------------------------===//
// Decisions that cannot be applied
//===----------------------------------------------------------------------===//

/// The plan with every "vectors_per_iteration" replaced, and so on.
std::string withField(std::string text, const std::string &field,
                      const std::string &value) {
  std::string key = "\"" + field + "\": ";
  size_t at = text.find(key);
  EXPECT_NE(at, std::string::npos);
  size_t end = text.find_first_of(",\n", at);
  return text.replace(at, end - at, key + value);
}

TEST(PlanFile, WhatCannotBeAppliedIsNamed) {
  const std::string text = softmaxPlan();
  const std::string first =
      "nest " + std::to_string(idOf(softmax(), 0)) + " (reduce max), ";
  EXPECT_THAT(refusal(withField(text, "vectors_per_iteration", "64")),
              HasSubstr("stages[0].nests[0]: " + first +
                        "vectors_per_iteration: found 64, expected 1 to "));
  EXPECT_THAT(refusal(withField(text, "vector_dimension", "\"depth\"")),
              HasSubstr(first + "vector_dimension: found 'depth', "
                                "expected 'cols': "));
  EXPECT_THAT(refusal(withField(text, "vector_dimension", "null")),
              HasSubstr("vector_dimension: found null, expected 'cols': a nest "
                        "that can fill lanes does"));
  EXPECT_THAT(refusal(withField(text, "rows_per_iteration", "2")),
              HasSubstr("rows_per_iteration: found 2, expected 1: "));
  EXPECT_THAT(refusal(withField(text, "packs_operand", "true")),
              HasSubstr("packs_operand: found true, expected false: "));
  EXPECT_THAT(refusal(withField(text, "atom", "\"dpbusd\"")),
              HasSubstr("atom: found 'dpbusd', expected null: the target has "
                        "no such atom"));
  EXPECT_THAT(refusal(withField(text, "transposes", "true")),
              HasSubstr("transposes: found true, expected false: no other "
                        "dimension of the nest's results has accesses"));
  EXPECT_THAT(refusal(withField(text, "programs_together", "100")),
              HasSubstr("stages[0].programs_together: found 100, expected 1 to "
                        "8: there are too few programs"));
  EXPECT_THAT(damage(withField(text, "prefetch", "\"all\"")),
              HasSubstr("stages[0].prefetch: found \"all\", expected none or "
                        "inputs or inputs and outputs"));
  // Loops that nothing interrupts.
  Result<Made> copied = make("copy", softmaxDims);
  ASSERT_TRUE(copied) << copied.error().str();
  Result<Made> ahead = make("copy", softmaxDims,
                            withField(copied->text, "prefetch", "\"inputs\""));
  ASSERT_FALSE(ahead);
  EXPECT_THAT(ahead.error().message,
              HasSubstr("stages[0].prefetch: found inputs, expected none: no "
                        "reduction to wait for"));
  EXPECT_THAT(refusal(withField(text, "edges", "\"apart\"")),
              HasSubstr("stages[0].edges: found apart, expected checked: all "
                        "programs touch an edge of an array, or none does"));
}

TEST(PlanFile, SquaresAreADecision) {
  const kernels::Dims dims = {{"rows", 64}, {"cols", 96}};
  Result<Made> made = make("transpose", dims);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->text, HasSubstr("\"transposes\": true"));
  EXPECT_THAT(made->summary, HasSubstr("x8 transposed)"));
  Result<Made> flat =
      make("transpose", dims, withField(made->text, "rows_per_iteration", "4"));
  ASSERT_TRUE(flat) << flat.error().str();
  EXPECT_THAT(flat->summary, HasSubstr("x4 transposed)"));
  Result<Made> odd =
      make("transpose", dims, withField(made->text, "rows_per_iteration", "3"));
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message,
              HasSubstr("rows_per_iteration: found 3, expected 8: the rows of "
                        "a square are a power of two"));
  Result<Made> single =
      make("transpose", dims,
           withField(withField(made->text, "transposes", "false"),
                     "rows_per_iteration", "1"));
  ASSERT_TRUE(single) << single.error().str();
  EXPECT_THAT(single->summary, Not(HasSubstr("transposed")));
  EXPECT_NE(single->object, made->object);
}

TEST(PlanFile, StoresAroundTheCachesAreADecision) {
  const std::string name = "\"stores_around_caches\": ";
  std::string text = softmaxPlan();
  const size_t last = text.rfind(name + "false");
  ASSERT_NE(last, std::string::npos);
  text.replace(last, name.size() + 5, name + "true");
  Result<Made> made = make("softmax", softmaxDims, text);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->summary, HasSubstr("around the caches)"));
  EXPECT_THAT(made->text, HasSubstr(name + "true"));
  EXPECT_NE(made->object, softmax().object);
  EXPECT_THAT(
      refusal(withField(softmaxPlan(), "stores_around_caches", "true")),
      HasSubstr("stores_around_caches: found true, expected false: the nest "
                "stores no whole vectors"));
}

TEST(PlanFile, ProgramsAtEdgesAreADecision) {
  const kernels::Dims dims = {{"m", 130}, {"n", 70}, {"k", 16}};
  Result<Made> made = make("gemm", dims);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_THAT(made->text, HasSubstr("\"edges\": \"checked\""));
  Result<Made> apart = make(
      "gemm", dims,
      replaced(made->text, "\"edges\": \"checked\"", "\"edges\": \"apart\""));
  ASSERT_TRUE(apart) << apart.error().str();
  EXPECT_THAT(apart->summary, HasSubstr("edges apart"));
  EXPECT_GT(apart->object.size(), made->object.size());
  Result<Made> again = make("gemm", dims, apart->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->object, apart->object);
}

TEST(PlanFile, SharedReductionsAreADecision) {
  const kernels::Dims dims = {{"m", 9}, {"n", 40}, {"k", 500}};
  Result<Made> made = make("gemm", dims);
  ASSERT_TRUE(made) << made.error().str();
  // What follows the contraction is then a nest of its own.
  const std::string text =
      made->text.substr(0, made->text.find(",\n      \"nests\"")) + "\n}]}";
  EXPECT_THAT(text, HasSubstr("\"splits\": "));
  Result<Made> shared = make("gemm", dims, withField(text, "splits", "4"));
  ASSERT_TRUE(shared) << shared.error().str();
  EXPECT_THAT(shared->summary, HasSubstr("4 splits of k"));
  Result<Made> again = make("gemm", dims, shared->text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->object, shared->object);
  auto refusal = [&](const char *splits) {
    Result<Made> refused =
        make("gemm", dims, withField(text, "splits", splits));
    EXPECT_FALSE(refused);
    return refused ? std::string() : refused.error().message;
  };
  EXPECT_THAT(refusal("1000"),
              HasSubstr("stages[0].splits: found 1000, expected 1 to 256: not "
                        "every part of 'k' would have elements"));
  EXPECT_THAT(refusal("230"), HasSubstr("found 230, expected 1 to 256"));
  EXPECT_THAT(refusal("0"), HasSubstr("splits: found 0"));
  Result<Made> rows =
      make("softmax", softmaxDims, withField(softmaxPlan(), "splits", "2"));
  ASSERT_FALSE(rows);
  EXPECT_THAT(
      rows.error().message,
      HasSubstr("splits: found 2, expected 1: the program has no fold"));
}

TEST(PlanFile, AnOrderOfEvaluationIsNoChoice) {
  Kernel prefix =
      kernel("prefix", "x, y", [](View<const Float, 2> x, View<Float, 2> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row))
          store(y(i, col), cumsum(load(x(i, col)), col));
      });
  Result<Program> program = Program::fromKernel(prefix, {});
  ASSERT_TRUE(program) << program.error().str();
  CompileRequest request;
  request.isa = Isa::Avx2;
  request.extents = {{64, 100}, {64, 100}};
  Result<CompiledKernel> made = program->compile(request);
  ASSERT_TRUE(made) << made.error().str();
  std::string text = writePlan(*made->plan, *made->subject);
  request.savedPlan =
      PlanText{"p.json", withField(text, "programs_together", "2")};
  Result<CompiledKernel> again = program->compile(request);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message,
              HasSubstr("programs_together: found 2, expected 1: the body has "
                        "parts that run one element after another"));
}

// The author's pins come first.
TEST(PlanFile, APinIsNotOverruled) {
  Kernel rowSum =
      kernel("row_sum", "x, y", [](View<const Float, 2> x, View<Float, 1> y) {
        Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
        for (auto i : parallel(row))
          store(y(i), sum(load(x(i, col)), col));
      });
  Schedule pins;
  pins.unroll = 3;
  pins.tail = "mask";
  Result<Program> program = Program::fromKernel(rowSum.schedule(pins), {});
  ASSERT_TRUE(program) << program.error().str();
  CompileRequest request;
  request.isa = Isa::Avx2;
  request.extents = {{5, 1000}, {5}};
  Result<CompiledKernel> made = program->compile(request);
  ASSERT_TRUE(made) << made.error().str();
  const std::string text = writePlan(*made->plan, *made->subject);
  request.savedPlan = PlanText{"p.json", text};
  Result<CompiledKernel> same = program->compile(request);
  ASSERT_TRUE(same) << same.error().str();
  EXPECT_EQ(same->object, made->object);
  for (const auto &[field, value, message] :
       {std::tuple("vectors_per_iteration", "4", "found 4, expected 3"),
        {"tail", "\"scalar\"", "found scalar, expected mask"}}) {
    request.savedPlan->text = withField(text, field, value);
    Result<CompiledKernel> other = program->compile(request);
    ASSERT_FALSE(other) << field;
    EXPECT_EQ(other.error().code, "unsupported.plan");
    EXPECT_THAT(other.error().message, HasSubstr(message));
    EXPECT_THAT(other.error().message,
                HasSubstr("the kernel's schedule fixes it"));
  }
}

} // namespace
} // namespace tessera
