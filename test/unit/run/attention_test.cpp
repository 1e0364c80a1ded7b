//===- test/unit/run/attention_test.cpp - Attention at random -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random extents, types and options of attention against the oracle. Keys and
// values beyond a sequence's length hold NaN or infinities: whatever multiplies
// them shows. A part of the cases in the suite, many in the soak:
//
//   TESSERA_ATTENTION_CASES=n     how many a soak runs, 500
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "plan/plan_record.h"
#include "tessera/compile.h"
#include "tessera/npy.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::RunRequest;

class RandomAttention : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }

  /// Runs cases `first` to `first + count` of all; false at the first failure.
  bool run(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed)
      if (!runCase(seed)) {
        ADD_FAILURE() << "case " << seed;
        return false;
      }
    return true;
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  Array make(DType dtype, std::vector<int64_t> extents) {
    Result<Array> array = Array::allocate(dtype, std::move(extents));
    if (!array) {
      ADD_FAILURE() << array.error().str();
      std::abort();
    }
    return std::move(*array);
  }

  /// Values for [batch, heads, positions, columns] with poison in the positions
  /// from a batch's length on.
  Array poisoned(DType dtype, const std::vector<int64_t> &extents,
                 const std::vector<int64_t> &lengths) {
    Array array = make(dtype, extents);
    kernels::GenerateOptions options;
    options.seed = random();
    EXPECT_TRUE(kernels::generate(array.view(), "poisoned", options).ok());
    const int64_t row = extents[3], batch = extents[1] * extents[2] * row;
    kernels::forEachElement(array.view(), [&](void *address, int64_t i) {
      if (i / row % extents[2] < lengths[static_cast<size_t>(i / batch)])
        return;
      constexpr double infinity = std::numeric_limits<double>::infinity();
      kernels::storeFloatElement(dtype, address,
                                 i % 3 == 0
                                     ? std::numeric_limits<double>::quiet_NaN()
                                     : (i % 3 == 1 ? infinity : -infinity));
    });
    return array;
  }

  bool runCase(uint64_t seed) {
    random.seed(seed);
    const DType types[] = {DType::F32, DType::F32, DType::BF16, DType::F64,
                           DType::F16};
    const DType dtype = types[pick(0, 4)];
    if (GetParam().backend == session::Backend::Cpu &&
        addsNarrowProducts(GetParam().isa) && dtype != DType::BF16)
      return true; // The code of avx512.
    Dims dims;
    const int64_t batches = pick(1, 3), keyHeads = pick(1, 3);
    dims["b"] = batches;
    dims["hkv"] = keyHeads;
    dims["hq"] = keyHeads * pick(1, chance(20) ? 9 : 4);
    dims["q"] = chance(40) ? 1 : pick(0, chance(20) ? 150 : 40);
    const int64_t keys = pick(0, chance(30) ? 600 : 140);
    dims["k"] = keys;
    dims["d"] = chance(10) ? 512 : pick(1, 130);
    dims["dv"] = chance(50) ? dims["d"] : pick(1, chance(10) ? 512 : 130);
    const kernels::Operator &op = *kernels::findOperator("attention");
    // The oracle and the emulator are slow.
    while (kernels::Dims(dims)["q"] > 4 && work(op, dims) > 4e5)
      dims["q"] /= 2;
    RunRequest request = requestFor({&op, GetParam()}, dims, dtype);
    request.settings["causal"] = chance(50);
    if (chance(30))
      request.settings["scale"] = chance(50) ? 0.75 : -0.125;
    if (chance(50))
      request.present.push_back("lse");
    std::vector<Array> arrays;
    arrays.reserve(4);
    auto give = [&](const char *name, Array array) {
      arrays.push_back(std::move(array));
      request.inputs.emplace(name, arrays.back().view());
    };
    if (chance(40)) {
      Array mask =
          make(DType::Bool, {chance(50) ? 1 : batches,
                             chance(50) ? 1 : dims["hq"], dims["q"], keys});
      const int64_t visible = pick(0, 100);
      kernels::forEachElement(mask.view(), [&](void *address, int64_t) {
        kernels::storeIntegerElement(DType::Bool, address,
                                     pick(1, 100) <= visible);
      });
      give("mask", std::move(mask));
    }
    if (chance(60)) {
      Array lengths = make(DType::I32, {batches});
      std::vector<int64_t> inRange;
      kernels::forEachElement(lengths.view(), [&](void *address, int64_t) {
        const int64_t length = pick(-1, keys + 1);
        kernels::storeIntegerElement(DType::I32, address, length);
        inRange.push_back(std::clamp<int64_t>(length, 0, keys));
      });
      give("lengths", std::move(lengths));
      give("k", poisoned(dtype, {batches, keyHeads, keys, dims["d"]}, inRange));
      give("v",
           poisoned(dtype, {batches, keyHeads, keys, dims["dv"]}, inRange));
    }
    std::vector<ValueClass> classes = {ValueClass::Normal};
    if (chance(30))
      classes.push_back(chance(50) ? ValueClass::SprinkledNan
                                   : ValueClass::NegativeInfinity);
    // Programs that share the fold, in a part of the cases.
    if (seed % 3 == 0) {
      auto choices = std::make_shared<PlanChoices>();
      choices->splits[0] = 2 + int64_t(seed % 4);
      request.choices = choices;
    }
    return check(op, {request, classes}, GetParam());
  }

  std::mt19937_64 random;
};

class RandomAttentionSoak : public RandomAttention {};

TEST_P(RandomAttention, AgreesWithTheOracle) { run(1, 16); }

TEST_P(RandomAttentionSoak, AgreesWithTheOracle) {
  const char *given = std::getenv("TESSERA_ATTENTION_CASES");
  run(1, given ? std::strtoull(given, nullptr, 10) : 500);
}

// No access of the kernel's needs it, but it says which axes have one extent.
TEST(Attention, ExtentsThatDisagreeAreRefused) {
  auto array = [](std::vector<int64_t> extents) {
    return std::move(*Array::allocate(DType::F32, std::move(extents)));
  };
  auto codeOf = [&](std::vector<int64_t> k, std::vector<int64_t> v,
                    std::vector<int64_t> o) {
    Array q = array({1, 4, 3, 8}), keys = array(std::move(k)),
          values = array(std::move(v)), output = array(std::move(o));
    const std::vector<Argument> arguments = {q.view(), keys.view(),
                                             values.view(), output.view()};
    Result<void> done = launch(kernels::attention(), arguments);
    return done ? std::string() : done.error().code;
  };
  EXPECT_EQ(codeOf({1, 2, 9, 8}, {1, 2, 9, 5}, {1, 4, 3, 5}), "");
  EXPECT_EQ(codeOf({1, 2, 9, 8}, {1, 2, 8, 5}, {1, 4, 3, 5}), "launch.extent");
  EXPECT_EQ(codeOf({1, 2, 9, 7}, {1, 2, 9, 5}, {1, 4, 3, 5}), "launch.extent");
  EXPECT_EQ(codeOf({1, 2, 9, 8}, {1, 2, 9, 5}, {1, 4, 2, 5}), "launch.extent");
}

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, RandomAttention, testing::ValuesIn(machines()),
                         machineName);
INSTANTIATE_TEST_SUITE_P(Run, RandomAttentionSoak,
                         testing::ValuesIn(machines()), machineName);
INSTANTIATE_TEST_SUITE_P(Emulated, RandomAttention,
                         testing::ValuesIn(emulatedMachines(12)), machineName);
INSTANTIATE_TEST_SUITE_P(EmulatedSoak, RandomAttention,
                         testing::ValuesIn(emulatedMachines(1)), machineName);

} // namespace
} // namespace tessera::runtest
