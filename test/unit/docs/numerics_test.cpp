//===- docs/numerics_test.cpp - The table of docs/numerics.md -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page's accuracy table is the one that the sweep wrote into
// math_accuracy.inc; that of proved
// bounds has the record's, which are those of all functions.
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "codegen/cpu/math_accuracy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace tessera {
namespace {

using vmath::Accuracy;
using vmath::Function;
using vmath::MathIsa;

/// "1.87 + \|x\|".
std::string boundText(const vmath::StatedBound &bound) {
  std::string text = fmt::format("{:g}", bound.constant);
  if (bound.perX != 0)
    text += " + \\|x\\|";
  return text;
}

/// One text for the levels where they agree.
std::string levels(const std::vector<std::string> &bounds) {
  if (bounds[0] == bounds[1] && bounds[1] == bounds[2])
    return bounds[0];
  if (bounds[0] == bounds[1])
    return bounds[0] + "; " + bounds[2];
  return fmt::format("{}; {}; {}", bounds[0], bounds[1], bounds[2]);
}

/// The bound of every level.
std::string cell(Function function, bool isF64, Accuracy tier) {
  std::vector<std::string> bounds;
  for (MathIsa isa : {MathIsa::Avx512, MathIsa::Avx2, MathIsa::Baseline})
    bounds.push_back(boundText(vmath::statedBound(function, isF64, tier, isa)));
  return levels(bounds);
}

std::string table() {
  std::string text =
      "| function | f32 strict | f32 default | f64 strict | f64 default |\n"
      "|---|---|---|---|---|\n";
  for (unsigned i = 0; i < vmath::functionCount; ++i) {
    auto function = Function(i);
    text += fmt::format("| `{}` |", vmath::name(function));
    for (bool isF64 : {false, true})
      for (Accuracy tier : {Accuracy::Strict, Accuracy::Default})
        text += fmt::format(" {} |", cell(function, isF64, tier));
    text += "\n";
  }
  return text;
}

TEST(NumericsPage, ShowsTheMeasuredAccuracy) {
  EXPECT_NE(docs::readSource("docs/numerics.md").find(table()),
            std::string::npos)
      << "docs/numerics.md should have this table:\n"
      << table();
}

TEST(NumericsPage, TheRecordBelongsToTheTable) {
  std::string record = docs::readSource("bench/results/math/sweep.json");
  EXPECT_NE(record.substr(0, 200).find(vmath::statedSourceHash()),
            std::string::npos);
}

nlohmann::json proof() {
  return nlohmann::json::parse(
      docs::readSource("bench/results/math/proof.json"), nullptr,
      /*allow_exceptions=*/false);
}

TEST(NumericsPage, TheProofBelongsToTheSources) {
  EXPECT_EQ(proof().value("hash", ""), vmath::statedSourceHash())
      << "run ./dev prove";
}

/// Every function, tier and level has a bound for all arguments, within the
/// tier's.
TEST(NumericsPage, TheProofIsWholeAndWithinTheTiers) {
  nlohmann::json rows = proof()["results"];
  EXPECT_EQ(rows.size(), vmath::functionCount * 2 * 3);
  for (const nlohmann::json &row : rows) {
    std::string name = fmt::format(
        "{} {} {}", row["function"].get<std::string>(),
        row["tier"].get<std::string>(), row["isa"].get<std::string>());
    EXPECT_TRUE(row["unproved"].empty()) << name;
    EXPECT_FALSE(row["checks"].empty()) << name;
    EXPECT_GT(row["proved"].get<double>(), 0) << name;
    if (!row["tier_bound"].is_null()) {
      EXPECT_LE(row["proved"].get<double>(), row["tier_bound"].get<double>())
          << name;
    }
    if (row.contains("tier_absolute") && !row["tier_bound"].is_null()) {
      EXPECT_LE(row["proved_absolute"].get<double>(),
                row["tier_absolute"].get<double>())
          << name;
    }
  }
}

TEST(NumericsPage, ShowsTheProvedBounds) {
  nlohmann::json rows = proof()["results"];
  std::string text = "| function | strict | default |\n|---|---|---|\n";
  for (unsigned i = 0; i < vmath::functionCount; ++i) {
    text += fmt::format("| `{}` |", vmath::name(Function(i)));
    for (const char *tier : {"strict", "default"}) {
      std::vector<std::string> bounds;
      for (const nlohmann::json &row : rows) {
        if (row["function"] != vmath::name(Function(i)) || row["tier"] != tier)
          continue;
        double proved = std::ceil(row["proved"].get<double>() * 1000) / 1000;
        bounds.push_back(boundText({proved, row["per_x"].get<double>(), 0}));
      }
      ASSERT_EQ(bounds.size(), 3u) << vmath::name(Function(i));
      text += fmt::format(" {} |", levels(bounds));
    }
    text += "\n";
  }
  EXPECT_NE(docs::readSource("docs/numerics.md").find(text), std::string::npos)
      << "docs/numerics.md should have this table:\n"
      << text;
}

} // namespace
} // namespace tessera
