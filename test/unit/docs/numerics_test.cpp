//===- docs/numerics_test.cpp - The table of docs/numerics.md -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page's accuracy table is the one that the sweep wrote into
// math_accuracy.inc.
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "codegen/cpu/math_accuracy.h"

#include <fmt/format.h>

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

/// The bound of every level, or one where they agree.
std::string cell(Function function, bool isF64, Accuracy tier) {
  std::vector<std::string> bounds;
  for (MathIsa isa : {MathIsa::Avx512, MathIsa::Avx2, MathIsa::Baseline})
    bounds.push_back(boundText(vmath::statedBound(function, isF64, tier, isa)));
  if (bounds[0] == bounds[1] && bounds[1] == bounds[2])
    return bounds[0];
  if (bounds[0] == bounds[1])
    return bounds[0] + "; " + bounds[2];
  return fmt::format("{}; {}; {}", bounds[0], bounds[1], bounds[2]);
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

TEST(NumericsPage, TheProofBelongsToTheTable) {
  std::string record = docs::readSource("bench/results/math/proof.json");
  EXPECT_NE(record.substr(0, 200).find(vmath::statedSourceHash()),
            std::string::npos)
      << "run ./dev prove";
}

} // namespace
} // namespace tessera
