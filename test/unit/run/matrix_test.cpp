//===- test/unit/run/matrix_test.cpp - Every operator on every machine ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operator, in the interpreter and at each level of this host, over edge
// extents and value classes, agrees with its oracle within the executable's
// bound, and touches nothing beside its outputs. The suite takes a selection
// that covers every extent of every axis, and a part of it for levels that this
// host only emulates; MatrixSoak takes the full product.
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "test/unit/planned_machine.h"

#include <algorithm>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;

/// A subject that is wrong everywhere says so a few times only.
constexpr int maxWrongCases = 4;

class Matrix : public testing::TestWithParam<Subject> {
protected:
  const kernels::Operator &op() const { return *GetParam().op; }
  bool isInterpreter() const {
    return GetParam().machine.backend == session::Backend::Interpreter;
  }
  int64_t lanes() const { return GetParam().machine.lanes(); }

  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam().machine); }

  /// Runs a case; false when enough were wrong.
  bool run(const Dims &dims, DType dtype, std::vector<ValueClass> classes) {
    Case theCase{requestFor(GetParam(), dims, dtype), std::move(classes)};
    // Some arrays begin at the guard page instead of ending there.
    if (stableHash(describe(op(), theCase.request)) % 4 == 0)
      theCase.request.edge = session::Edge::Begin;
    if (!GetParam().machine.takes(describe(op(), theCase.request)))
      return true;
    ++cases;
    runs += theCase.classes.size();
    wrong += check(op(), theCase, GetParam().machine) ? 0 : 1;
    return wrong < maxWrongCases;
  }

  void TearDown() override {
    RecordProperty("cases", cases);
    RecordProperty("runs", static_cast<int>(runs));
  }

  /// A number for this subject and some extents that no other test shares.
  uint64_t hashOf(const Dims &dims) const {
    std::string text = GetParam().name();
    for (const auto &[name, extent] : dims)
      text += name + std::to_string(extent);
    return stableHash(text);
  }

  /// The types of this case: f32 or bf16 alternately, each fourth case f64 or
  /// f16.
  DType dtypeFor(const Dims &dims) const {
    constexpr DType rotation[] = {DType::F32,  DType::BF16, DType::F32,
                                  DType::BF16, DType::F32,  DType::BF16,
                                  DType::F64,  DType::F16};
    DType dtype = rotation[hashOf(dims) % std::size(rotation)];
    bool isMade = std::find(op().dtypes.begin(), op().dtypes.end(), dtype) !=
                  op().dtypes.end();
    return isMade ? dtype : op().dtypes.front();
  }

  int cases = 0;
  size_t runs = 0;
  int wrong = 0;
};

class MatrixSoak : public Matrix {};

TEST_P(Matrix, AgreesWithTheOracle) {
  std::vector<ValueClass> all = acceptanceClasses();
  const double small = isInterpreter() ? 2e3 : 2e4;
  auto classesFor = [&](const Dims &dims) -> std::vector<ValueClass> {
    if (work(op(), dims) <= small)
      return all;
    if (isInterpreter())
      return {all[hashOf(dims) % all.size()]};
    return {ValueClass::Normal, all[1 + hashOf(dims) % (all.size() - 1)]};
  };
  for (const Dims &dims : singleSweeps(op(), lanes()))
    if (!run(dims, dtypeFor(dims), classesFor(dims)))
      return;
  // A few of the pairs, others for every subject.
  std::vector<Dims> pairs =
      pairSweeps(op(), lanes(), static_cast<int64_t>(small));
  for (size_t i = 0; i < pairs.size(); ++i)
    if (hashOf(pairs[i]) % pairs.size() < 4 &&
        !run(pairs[i], dtypeFor(pairs[i]), classesFor(pairs[i])))
      return;
}

TEST_P(MatrixSoak, AgreesWithTheOracle) {
  std::vector<ValueClass> all = acceptanceClasses();
  all.push_back(ValueClass::SprinkledInfinity);
  std::vector<Dims> extents = singleSweeps(op(), lanes());
  for (Dims &dims : pairSweeps(op(), lanes(), isInterpreter() ? 20000 : 300000))
    extents.push_back(std::move(dims));
  // Long enough for several levels of partial sums.
  if (!isInterpreter() &&
      op().dims == std::vector<std::string_view>{"rows", "cols"})
    extents.push_back({{"rows", 2}, {"cols", 1'000'000}});
  for (const Dims &dims : extents)
    for (DType dtype : op().dtypes)
      if (!run(dims, dtype, all))
        return;
}

// What subjects() leaves out is run at avx512.
TEST(MatrixLevels, NarrowProductsChangeNoOtherCode) {
  int left = 0;
  for (const kernels::Operator &op : kernels::operators()) {
    if (sumsProducts(op))
      continue;
    ++left;
    for (DType dtype : {DType::F32, DType::BF16}) {
      if (std::find(op.dtypes.begin(), op.dtypes.end(), dtype) ==
          op.dtypes.end())
        continue;
      auto objectAt = [&](Isa isa) {
        session::RunRequest request = requestFor(
            {&op, {session::Backend::Cpu, isa}}, smallDims(op), dtype);
        request.machine = plannedMachine();
        auto compiled = session::compileOperator(op, request);
        EXPECT_TRUE(compiled.ok()) << compiled.error().str();
        return compiled ? compiled->kernel.object : std::string();
      };
      EXPECT_TRUE(objectAt(Isa::Avx512) == objectAt(Isa::Avx512Amx))
          << op.name << " of " << name(dtype);
    }
  }
  EXPECT_GT(left, 20);
}

std::string subjectName(const testing::TestParamInfo<Subject> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Matrix, testing::ValuesIn(subjects(machines())),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(Run, MatrixSoak,
                         testing::ValuesIn(subjects(machines())), subjectName);
INSTANTIATE_TEST_SUITE_P(Emulated, Matrix,
                         testing::ValuesIn(subjects(emulatedMachines(6))),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(Emulated, MatrixSoak,
                         testing::ValuesIn(subjects(emulatedMachines(1))),
                         subjectName);

} // namespace
} // namespace tessera::runtest
