//===- test/unit/run/windows_test.cpp - Windows that are copied once ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions with either operand in vectors, from a copy of the region that
// the windows cover: with every step between windows and between their
// elements, inside and beyond the edges of the image.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "plan/plan_record.h"

#include <algorithm>
#include <memory>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::RunRequest;

/// What the plans that were run had.
struct Seen {
  int regionsOfRows = 0, regionsOfVectors = 0, transposed = 0;
};

/// Runs the convolution with the contraction's lanes along `dim`, if they may
/// lie there, and the operand with the vectors copied.
void runAlong(const char *dim, RunRequest request, Isa isa, Seen &seen) {
  const kernels::Operator &op = *kernels::findOperator("conv2d");
  request.isa = isa;
  request.choices = std::make_shared<PlanChoices>();
  auto compiled = [&]() -> Plan {
    Result<session::Compilation> result = session::compileOperator(op, request);
    EXPECT_TRUE(result.ok()) << result.error().str();
    return result ? *result->kernel.plan : Plan();
  };
  auto choices = std::make_shared<PlanChoices>();
  for (const StagePlan &stage : compiled().stages)
    for (const NestPlan &nest : stage.nests) {
      const std::vector<std::string> &dims = nest.alternatives.vectorDims;
      if (!nest.roots.starts_with("contract") ||
          std::count(dims.begin(), dims.end(), dim) == 0)
        continue;
      choices->nests[nest.id].vectorDim = dim;
      choices->nests[nest.id].packs = true;
    }
  if (choices->nests.empty())
    return;
  request.choices = choices;
  for (const StagePlan &stage : compiled().stages)
    for (const NestPlan &nest : stage.nests) {
      const bool isRegion = nest.regionOperand >= 0;
      const bool isOfVectors = nest.regionOperand == nest.packedOperand;
      seen.regionsOfRows += isRegion && !isOfVectors;
      seen.regionsOfVectors += isRegion && isOfVectors;
      seen.transposed += nest.transposes && nest.roots.starts_with("store");
    }
  check(op,
        {request,
         {ValueClass::Normal, ValueClass::SprinkledNan,
          ValueClass::SprinkledInfinity}},
        {session::Backend::Cpu, isa});
}

TEST(Windows, RegionsAreRight) {
  Seen seen;
  for (Isa isa : hostIsas()) {
    if (addsNarrowProducts(isa))
      continue;
    const int64_t lanes = Machine{session::Backend::Cpu, isa}.lanes();
    for (int64_t stride : {1, 2})
      for (int64_t pad : {0, 1, 4})
        for (int64_t dilation : {1, 3})
          for (int64_t width : {lanes + 5, 2 * lanes + 7}) {
            RunRequest conv = requestFor(
                {kernels::findOperator("conv2d"), {session::Backend::Cpu, isa}},
                {{"n", 1},
                 {"c", 3},
                 {"h", 5},
                 {"w", stride * width},
                 {"f", lanes + 3},
                 {"kh", 2},
                 {"kw", 3}},
                pad == 4 ? DType::BF16 : DType::F32);
            conv.settings["stride"] = stride;
            conv.settings["pad"] = pad;
            conv.settings["dilation"] = dilation;
            if (pad == 1)
              conv.present = {"bias"};
            for (const char *dim : {"ow", "f_block"})
              runAlong(dim, conv, isa, seen);
          }
  }
  // All of it was there.
  EXPECT_GT(seen.regionsOfRows, 0);
  EXPECT_GT(seen.regionsOfVectors, 0);
  EXPECT_GT(seen.transposed, 0);
}

} // namespace
} // namespace tessera::runtest
