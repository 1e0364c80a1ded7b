//===- target_test.cpp - Levels and what this machine runs ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace tessera;
using testing::HasSubstr;

namespace {

constexpr Isa allIsas[] = {Isa::X86_64,     Isa::Avx2,       Isa::Avx512,
                           Isa::Avx512Vnni, Isa::Avx512Bf16, Isa::Avx512Amx,
                           Isa::Neon};

TEST(Target, RowsAreFoundByTheirLevel) {
  for (Isa isa : allIsas) {
    EXPECT_EQ(getTarget(isa).isa, isa) << name(isa);
    Result<Isa> parsed = parseIsa(name(isa), /*forOtherHost=*/true);
    ASSERT_TRUE(parsed.ok()) << parsed.error().str();
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(Target, AHostRunsTheLevelsOfItsArchitectureAlone) {
  const Target &host = getTarget(hostIsa());
  std::vector<Isa> run = hostIsas();
  ASSERT_FALSE(run.empty());
  EXPECT_EQ(run.front(), host.architecture == Architecture::AArch64
                             ? Isa::Neon
                             : Isa::X86_64);
  EXPECT_EQ(run.back(), hostIsa());
  for (Isa isa : allIsas) {
    const Target &target = getTarget(isa);
    EXPECT_EQ(hostRuns(isa),
              std::find(run.begin(), run.end(), isa) != run.end())
        << name(isa);
    if (target.architecture != host.architecture) {
      EXPECT_FALSE(hostRuns(isa)) << name(isa);
      Result<Isa> parsed = parseIsa(name(isa));
      ASSERT_FALSE(parsed.ok()) << name(isa);
      EXPECT_EQ(parsed.error().family, ErrorFamily::Unsupported);
      EXPECT_THAT(parsed.error().message,
                  HasSubstr("cannot run " + std::string(name(isa))));
    }
  }
}

TEST(Target, UnknownLevelsAreAnsweredWithTheKnownOnes) {
  Result<Isa> parsed = parseIsa("sse9");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().family, ErrorFamily::Usage);
  EXPECT_THAT(
      parsed.error().message,
      HasSubstr("native, x86-64, avx2, avx512, avx512-vnni, avx512-bf16, "
                "avx512-amx, neon"));
}

} // namespace
