//===- run/stores_test.cpp - Results that go past the caches --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops that begin where stores are aligned write every element once, wherever
// the rows of an array begin and end.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "plan/plan_record.h"

namespace tessera::runtest {
namespace {

using kernels::ValueClass;
using session::Edge;
using session::RunRequest;

class Stores : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }
};

/// The choices under which all nests that can write past the caches do; the
/// number of those whose loops then begin at an aligned element.
std::shared_ptr<const PlanChoices> aroundCaches(const kernels::Operator &op,
                                                RunRequest request,
                                                int64_t &aligned) {
  auto choices = std::make_shared<PlanChoices>();
  auto planned = [&] {
    request.choices = choices;
    Result<session::Compilation> made = session::compileOperator(op, request);
    EXPECT_TRUE(made.ok()) << made.error().str();
    return made ? *made->kernel.plan : Plan();
  };
  const Plan before = planned();
  choices = std::make_shared<PlanChoices>();
  for (const StagePlan &stage : before.stages)
    for (const NestPlan &nest : stage.nests)
      if (nest.alternatives.storesAround)
        choices->nests[nest.id].storesAround = true;
  for (const StagePlan &stage : planned().stages)
    for (const NestPlan &nest : stage.nests)
      aligned += nest.alignsStores;
  return choices;
}

TEST_P(Stores, WriteEveryElementWhereverRowsBegin) {
  const int64_t lanes = GetParam().lanes();
  for (const char *name : {"gelu_residual", "softmax", "add_rms_norm"})
    for (DType dtype : {DType::F32, DType::BF16, DType::F64})
      for (int64_t cols : {2 * lanes - 1, 2 * lanes + 1, 3 * lanes + lanes / 2,
                           9 * lanes + 5}) {
        const kernels::Operator &op = *kernels::findOperator(name);
        RunRequest request =
            requestFor({&op, GetParam()}, {{"rows", 7}, {"cols", cols}}, dtype);
        int64_t aligned = 0;
        request.choices = aroundCaches(op, request, aligned);
        EXPECT_EQ(aligned > 0, cols >= 2 * lanes) << describe(op, request);
        for (Edge edge : {Edge::Begin, Edge::End}) {
          request.edge = edge;
          check(op, {request, {ValueClass::Normal}}, GetParam());
        }
      }
}

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Stores, testing::ValuesIn(cpuMachines()),
                         machineName);
INSTANTIATE_TEST_SUITE_P(Emulated, Stores,
                         testing::ValuesIn(emulatedMachines(4)), machineName);

} // namespace
} // namespace tessera::runtest
