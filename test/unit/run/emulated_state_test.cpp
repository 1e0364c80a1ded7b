//===- test/unit/run/emulated_state_test.cpp - States of AArch64 ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On an emulated machine, too, the bits of compiled operators do not depend on
// the caller's floating-point state, which the caller gets back.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "test/unit/emulation/emulator.h"

#include <algorithm>

namespace tessera::runtest {
namespace {

using kernels::ValueClass;

class EmulatedState : public testing::TestWithParam<Subject> {};

/// FPCR: rounding, flush to zero, NaNs replaced by the default one, f16 without
/// infinities.
constexpr uint64_t roundUp = 1 << 22, towardZero = 3 << 22, flush = 1 << 24,
                   defaultNan = 1 << 25, alternativeHalf = 1 << 26;

TEST_P(EmulatedState, CallersFloatingPointStateIsKeptAndUnused) {
  TESSERA_SKIP_UNLESS_RUNNABLE(GetParam().machine);
  const kernels::Operator &op = *GetParam().op;
  kernels::Dims dims = smallDims(op);
  dims.find(op.dims.back())->second = 2 * GetParam().machine.lanes() + 4;
  bool hasHalf = std::find(op.dtypes.begin(), op.dtypes.end(), DType::F16) !=
                 op.dtypes.end();
  auto compiled = session::CompiledOperator::create(
      op, requestFor(GetParam(), admissible(op, dims),
                     hasHalf ? DType::F16 : DType::F32));
  ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  uint64_t control = 0;
  session::RunValues values;
  values.verify = false;
  values.launcher = [&](const CompiledKernel &kernel,
                        std::span<const Argument> arguments) {
    return emulation::launchEmulated(kernel, arguments, &control);
  };
  auto bits = [&] {
    std::vector<std::vector<unsigned char>> result;
    auto run = compiled->run(values);
    EXPECT_TRUE(run.ok()) << run.error().str();
    for (const session::ArrayParameter &array : compiled->arrays())
      if (array.isOutput)
        result.push_back(bytesOf(*compiled->array(array.name)));
    return result;
  };
  for (ValueClass valueClass :
       {ValueClass::Normal, ValueClass::Subnormal, ValueClass::HugeOffset}) {
    values.valueClass = valueClass;
    control = 0;
    const auto expected = bits();
    for (uint64_t state : {flush | roundUp, towardZero | defaultNan,
                           alternativeHalf | flush | defaultNan}) {
      control = state;
      EXPECT_EQ(bits(), expected)
          << kernels::name(valueClass) << " values under FPCR " << state;
      EXPECT_EQ(control, state);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, EmulatedState,
                         testing::ValuesIn(subjects(emulatedMachines(1))),
                         [](const auto &info) { return info.param.name(); });

} // namespace
} // namespace tessera::runtest
