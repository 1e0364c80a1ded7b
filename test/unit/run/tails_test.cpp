//===- test/unit/run/tails_test.cpp - Narrower last vectors ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products whose last vectors are narrower, planned for a machine that starts
// more of those, around every width, with blocks that hang over and without,
// between guard pages: the oracle accepts them.
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "plan/plan_record.h"
#include "target/machine.h"
#include "target/target.h"

#include "fmt/format.h"

#include <gtest/gtest.h>

namespace tessera::runtest {
namespace {

using kernels::ValueClass;
using session::RunRequest;

/// The machine of this test, for a level that this host has.
tessera::Machine machineOfHalves(Isa isa) {
  tessera::Machine machine = genericMachine(isa);
  for (size_t width : {0, 1, 2}) {
    machine.core[width].operationsPerCycle = width == 0   ? 8
                                             : width == 1 ? 4
                                                          : 2;
    machine.core[width].multipliesPerCycle = width == 0   ? 4
                                             : width == 1 ? 2
                                                          : 1;
    machine.core[width].dotCycles = width == 0 ? 0.25 : width == 1 ? 0.5 : 1;
  }
  return machine;
}

/// Runs an operator; whether its plan has narrow tails.
bool runs(const char *name, RunRequest request) {
  const kernels::Operator &op = *kernels::findOperator(name);
  const tessera::Machine machine = machineOfHalves(request.isa);
  request.machine = &machine;
  check(op, {request, {ValueClass::Normal, ValueClass::SprinkledNan}},
        {session::Backend::Cpu, request.isa});
  Result<session::Compilation> compiled = session::compileOperator(op, request);
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  bool isNarrow = false;
  if (compiled)
    for (const StagePlan &stage : compiled->kernel.plan->stages)
      for (const NestPlan &nest : stage.nests)
        isNarrow |= nest.tailLanes > 0;
  return isNarrow;
}

TEST(NarrowTails, AgreeWithTheOracle) {
  int narrow = 0, cases = 0;
  for (Isa isa : hostIsas()) {
    const int64_t lanes = getTarget(isa).lanes32();
    if (lanes < 8)
      continue;
    for (int64_t m : {2, 13, 67})
      for (int64_t n : {1, 3, 4, 5, 8, 9, 15, 17, 65, 68, 135, 193}) {
        const std::string what = fmt::format("{} {} {}", m, n, name(isa));
        if (stableHash(what) % 3 != 0)
          continue;
        const kernels::Dims dims = {{"m", m}, {"n", n}, {"k", 13}};
        for (auto edge : {session::Edge::End, session::Edge::Begin})
          for (DType dtype : {DType::F32, DType::BF16, DType::F64}) {
            narrow +=
                runs("gemm",
                     {.dims = dims, .dtype = dtype, .isa = isa, .edge = edge});
            ++cases;
          }
        narrow += runs("gemm_q8", {.dims = dims, .isa = isa});
        narrow +=
            runs("gemm_epilogue",
                 {.dims = dims, .settings = {{"activation", 1}}, .isa = isa});
        cases += 2;
      }
  }
  EXPECT_GT(4 * narrow, cases);
}

} // namespace
} // namespace tessera::runtest
