//===- no_tuned_plans.cpp - Tests see no tuned plans ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a user has tuned is no part of what is tested.
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

class NoTunedPlans : public testing::Environment {
public:
  void SetUp() override { ::setenv("TESSERA_PLAN_DIR", "off", 1); }
};

[[maybe_unused]] const testing::Environment *const environment =
    testing::AddGlobalTestEnvironment(new NoTunedPlans);

} // namespace
