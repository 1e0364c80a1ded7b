//===- plan_file_test.cpp - Saved plans are read back and applied ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "saved_plan.h"

#include "tessera/dsl.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace tessera {
namespace {

using namespace savedplan;
using testing::HasSubstr;
using testing::Not;

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
  const kernels::Dims dims = {{"m", 128}, {"n", 72}, {"k", 512}};
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
              HasSubstr("nests[0].tail: found 3, expected 'mask', 'scalar' or "
                        "'overlap'"));
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
      HasSubstr("keeping: found \"most\", expected 'all', 'expensive' or "
                "'required'"));
  EXPECT_THAT(
      damage(replaced(text, "\"passes\": \"separate\"", "\"passes\": \"one\"")),
      HasSubstr("passes: found \"one\", expected 'separate' or 'joined'"));
}

// Objects are searched field by field, and messages are read by people.
TEST(PlanFile, LargeFilesAreRefusedInShort) {
  const std::string text = softmaxPlan();
  std::string fields;
  for (int i = 0; i < 10001; ++i)
    fields += "\"d" + std::to_string(i) + "\": 1, ";
  EXPECT_THAT(
      damage(replaced(text, "\"extents\": {", "\"extents\": {" + fields)),
      HasSubstr("extents: found more than 10000 fields, expected the "
                "form of a saved plan"));
  EXPECT_THAT(damage("{" + fields + "\"x\": 1}"),
              HasSubstr("more than 10000 fields"));
  const std::string longText(1 << 20, 'x');
  auto isShort = [&](const std::string &from, const std::string &to) {
    const std::string message = errorOf(replaced(text, from, to)).message;
    EXPECT_LT(message.size(), 1000u) << message.substr(0, 200);
    return message;
  };
  isShort("\"kernel\": \"", "\"kernel\": \"" + longText);
  isShort("\"kernel_hash\": \"", "\"kernel_hash\": \"" + longText);
  isShort("\"target\": \"", "\"target\": \"" + longText);
  isShort("\"alias\": \"", "\"alias\": \"" + longText);
  isShort("\"extents\": {", "\"extents\": {\"" + longText + "\": 1, ");
  isShort("\"extents\": {",
          "\"tunables\": {\"" + longText + "\": 1}, \"extents\": {");
  isShort("\"extents\": {",
          "\"extents\": {" + fields.substr(0, fields.find("\"d5000\"")));
  isShort("\"grid\": \"", "\"grid\": \"" + longText);
  isShort("\"reduce max\"", "\"" + longText + "\"");
  isShort("\"space\": \"", "\"space\": \"" + longText);
  isShort("\"atom\": null", "\"atom\": \"" + longText + "\"");
  isShort("\"vector_dimension\": \"", "\"vector_dimension\": \"" + longText);
  isShort("\"keeping\"", "\"" + longText + "\"");
  isShort("\"keeping\"", "\"" + longText + "\": 1, \"" + longText + "\"");
  isShort("\"schema\": \"", "\"schema\": \"" + longText);
  EXPECT_THAT(isShort("\"keeping\": \"all\"", "\"keeping\": " + longText),
              HasSubstr("found no JSON"));
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

} // namespace
} // namespace tessera
