//===- test/unit/run/splits_test.cpp - Reductions that programs share -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folds and contractions that several programs share are right, and have the
// same bits on any number of threads, launch after launch and in launches side
// by side.
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "plan/plan_record.h"
#include "tessera/dsl.h"
#include "tessera/npy.h"
#include "tessera/pool.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::CompiledOperator;
using session::RunRequest;
using session::RunValues;
using testing::HasSubstr;

/// With all else that programs which share nothing may do beside it.
std::shared_ptr<const PlanChoices> splitsOf(int64_t splits) {
  auto choices = std::make_shared<PlanChoices>();
  choices->splits[0] = splits;
  choices->together[0] = 4;
  choices->prefetch[0] = Prefetch::InputsAndOutputs;
  choices->edges[0] = Edges::Apart;
  return choices;
}

struct SharedCase {
  const char *op;
  Dims dims;
  int64_t splits;
  std::vector<std::string> present = {};
  kernels::Settings settings = {};
  DType dtype = DType::F32;
  /// Whether the reduction has so many parts.
  bool isSplit = true;
};

const std::vector<SharedCase> &sharedCases() {
  static const std::vector<SharedCase> cases = {
      {"gemm", {{"m", 7}, {"n", 33}, {"k", 1000}}, 4},
      {"gemm", {{"m", 7}, {"n", 33}, {"k", 1000}}, 3, {"c0"}},
      {"gemm", {{"m", 70}, {"n", 40}, {"k", 130}}, 2, {"c0"}, {{"beta", 0.5}}},
      {"gemm", {{"m", 5}, {"n", 9}, {"k", 7}}, 7},
      {"gemm", {{"m", 5}, {"n", 9}, {"k", 5}}, 4, {}, {}, DType::F32, false},
      {"gemm", {{"m", 5}, {"n", 9}, {"k", 0}}, 4, {}, {}, DType::F32, false},
      {"gemm", {{"m", 5}, {"n", 9}, {"k", 1}}, 2, {}, {}, DType::F32, false},
      {"gemm", {{"m", 1}, {"n", 3}, {"k", 777}}, 5, {}, {{"trans_b", true}}},
      {"gemm", {{"m", 33}, {"n", 65}, {"k", 300}}, 3, {}, {{"trans_b", true}}},
      {"gemm", {{"m", 33}, {"n", 65}, {"k", 300}}, 3, {}, {{"trans_a", true}}},
      {"gemm", {{"m", 9}, {"n", 40}, {"k", 500}}, 4, {}, {}, DType::BF16},
      {"gemm", {{"m", 9}, {"n", 40}, {"k", 500}}, 4, {}, {}, DType::F64},
      {"gemm_epilogue",
       {{"m", 13}, {"n", 33}, {"k", 200}},
       3,
       {"bias", "residual"},
       {{"scale", 0.5}, {"activation", int64_t(2)}}},
      {"bmm", {{"batch", 2}, {"m", 3}, {"n", 17}, {"k", 100}}, 2},
      {"gemm_q8", {{"m", 5}, {"n", 33}, {"k", 300}}, 4},
      {"attention",
       {{"b", 1},
        {"hq", 4},
        {"hkv", 2},
        {"q", 1},
        {"k", 2100},
        {"d", 16},
        {"dv", 24}},
       5,
       {"lse"}},
      {"attention",
       {{"b", 2},
        {"hq", 2},
        {"hkv", 1},
        {"q", 3},
        {"k", 1100},
        {"d", 16},
        {"dv", 8}},
       2,
       {"lengths", "lse"},
       {{"causal", true}}},
      {"attention",
       {{"b", 2},
        {"hq", 2},
        {"hkv", 1},
        {"q", 5},
        {"k", 600},
        {"d", 8},
        {"dv", 8}},
       3,
       {"mask"}},
      // Sums, extrema and tiles of sums; what follows reads the row again.
      {"row_sum", {{"rows", 1}, {"cols", 1000}}, 4},
      {"row_sum", {{"rows", 3}, {"cols", 20007}}, 5},
      {"row_sum", {{"rows", 2}, {"cols", 777}}, 3, {}, {}, DType::BF16},
      {"row_sum", {{"rows", 2}, {"cols", 3}}, 2},
      {"row_sum", {{"rows", 2}, {"cols", 3}}, 4, {}, {}, DType::F32, false},
      {"row_max", {{"rows", 2}, {"cols", 515}}, 4},
      {"row_mean", {{"rows", 1}, {"cols", 640}}, 2, {}, {}, DType::F64},
      {"col_sum", {{"rows", 1003}, {"cols", 150}}, 4},
      {"rms_norm", {{"rows", 2}, {"cols", 1030}}, 3},
      {"softmax", {{"rows", 2}, {"cols", 900}}, 4},
      {"cross_entropy", {{"rows", 2}, {"cols", 900}}, 3},
      // As many programs as could advance together.
      {"row_mean", {{"rows", 19}, {"cols", 255}}, 4},
      {"layer_norm", {{"rows", 9}, {"cols", 700}}, 2},
      {"masked_softmax", {{"rows", 32}, {"cols", 300}}, 3},
  };
  return cases;
}

RunRequest requestOf(const SharedCase &one, const Machine &machine) {
  RunRequest request =
      requestFor({kernels::findOperator(one.op), machine}, one.dims, one.dtype);
  request.present = one.present;
  request.settings = one.settings;
  request.choices = splitsOf(one.splits);
  request.threads = 4;
  return request;
}

std::string textOf(const SharedCase &one) {
  return describe(*kernels::findOperator(one.op),
                  requestOf(one, cpuMachines().back()));
}

class Splits : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }
};

TEST_P(Splits, AgreeWithTheOracle) {
  for (const SharedCase &one : sharedCases()) {
    const kernels::Operator &op = *kernels::findOperator(one.op);
    const RunRequest request = requestOf(one, GetParam());
    check(op, {request, {ValueClass::Normal, ValueClass::SprinkledNan}},
          GetParam());
    if (GetParam().backend != session::Backend::Cpu)
      continue;
    Result<session::Compilation> made = session::compileOperator(op, request);
    ASSERT_TRUE(made) << made.error().str();
    EXPECT_EQ(made->kernel.plan->stages[0].order.splits,
              one.isSplit ? one.splits : 1)
        << textOf(one);
  }
}

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Splits, testing::ValuesIn(cpuMachines()),
                         machineName);
INSTANTIATE_TEST_SUITE_P(Emulated, Splits,
                         testing::ValuesIn(emulatedMachines(4)), machineName);

/// The bytes of the outputs of a run.
std::vector<std::vector<unsigned char>> outputsOf(CompiledOperator &compiled,
                                                  const RunValues &values) {
  Result<session::RunResult> run = compiled.run(values);
  EXPECT_TRUE(run.ok() && (!values.verify || run->passed()))
      << (run.ok() ? run->failures() : run.error().str());
  std::vector<std::vector<unsigned char>> bytes;
  for (const session::ArrayParameter &array : compiled.arrays())
    if (array.isOutput)
      bytes.push_back(bytesOf(*compiled.array(array.name)));
  return bytes;
}

TEST(SplitRuns, HaveTheSameBitsOnAnyThreads) {
  std::unique_ptr<TaskPool> pool = makeTaskPool(7);
  for (const SharedCase &one : sharedCases()) {
    RunRequest request = requestOf(one, cpuMachines().back());
    Result<CompiledOperator> compiled =
        CompiledOperator::create(*kernels::findOperator(one.op), request);
    ASSERT_TRUE(compiled) << compiled.error().str();
    RunValues values;
    values.pool = pool.get();
    values.threads = 1;
    const auto expected = outputsOf(*compiled, values);
    values.verify = false;
    for (int threads : {2, 3, 7})
      for (int time = 0; time < 20; ++time) {
        values.threads = threads;
        ASSERT_EQ(outputsOf(*compiled, values), expected)
            << textOf(one) << " on " << threads << " threads";
      }
  }
}

/// Rows of a times columns of b in whole numbers, exact in any order.
Array wholeNumbers(std::vector<int64_t> extents, int64_t seed) {
  Array array = std::move(*Array::allocate(DType::F32, std::move(extents)));
  for (int64_t i = 0; i < array.view().elements(); ++i)
    static_cast<float *>(array.view().data)[i] =
        float((i * 7919 + seed) % 13 - 6);
  return array;
}

TEST(SplitRuns, DoNotMeetInLaunchesSideBySide) {
  RunRequest request = requestOf(
      {"gemm", {{"m", 4}, {"n", 20}, {"k", 4000}}, 8}, cpuMachines().back());
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator("gemm"), request);
  ASSERT_TRUE(made) << made.error().str();
  const Executable &executable = made->kernel.executable;
  ASSERT_GT(executable.info().stages.back().workspaceBytes, 0);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int64_t caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      Array a = wholeNumbers({4, 4000}, caller),
            b = wholeNumbers({4000, 20}, 3 * caller + 1),
            c = wholeNumbers({4, 20}, 0);
      auto at = [](const Array &array, int64_t i) {
        return static_cast<const float *>(array.view().data)[i];
      };
      std::vector<float> sums(80);
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t k = 0; k < 4000; ++k)
          for (int64_t j = 0; j < 20; ++j)
            sums[size_t(i * 20 + j)] += at(a, i * 4000 + k) * at(b, k * 20 + j);
      for (int time = 0; time < 100; ++time) {
        const std::vector<Argument> arguments = {a.view(), b.view(), c.view()};
        wrong += !executable.launch(arguments).ok();
        for (size_t i = 0; i < sums.size(); ++i)
          wrong += at(c, int64_t(i)) != sums[i];
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

/// What the search chooses for some threads.
GridPlan chosen(const char *op, const Dims &dims, int threads) {
  RunRequest request;
  request.dims = dims;
  request.isa = Isa::Avx512;
  request.machine = plannedMachine();
  request.threads = threads;
  request.useTunedPlans = false;
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator(op), request);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return made ? made->kernel.plan->stages[0].order : GridPlan();
}

TEST(SplitPlans, AreForFewProgramsOnManyThreads) {
  const Dims decode = {{"b", 1},    {"hq", 8}, {"hkv", 2}, {"q", 1},
                       {"k", 8192}, {"d", 64}, {"dv", 64}};
  EXPECT_EQ(chosen("attention", decode, 1).splits, 1);
  GridPlan many = chosen("attention", decode, 16);
  EXPECT_GE(many.splits, 2);
  bool isExplained = false;
  for (const Reason &reason : many.reasons)
    isExplained |= reason.code == "grid.splits";
  EXPECT_TRUE(isExplained);
  EXPECT_GE(chosen("gemm", {{"m", 32}, {"n", 32}, {"k", 8192}}, 16).splits, 4);
  EXPECT_GE(chosen("row_sum", {{"rows", 1}, {"cols", 10000000}}, 16).splits, 8);
  EXPECT_GE(chosen("rms_norm", {{"rows", 1}, {"cols", 8000000}}, 16).splits, 4);
  // As many programs as threads, and work that is not worth it.
  EXPECT_EQ(chosen("gemm", {{"m", 512}, {"n", 512}, {"k", 512}}, 16).splits, 1);
  EXPECT_EQ(chosen("gemm", {{"m", 8}, {"n", 8}, {"k", 64}}, 16).splits, 1);
}

// Some rows for more threads: several at once on each thread, or shares of
// them.
TEST(SplitPlans, RunAsChosen) {
  int64_t shared = 0;
  for (const char *op : {"row_sum", "row_max", "rms_norm", "layer_norm",
                         "softmax", "masked_softmax", "cross_entropy"})
    for (int64_t rows : {1, 4, 5})
      for (int64_t cols : {4096, 100001}) {
        RunRequest request;
        request.dims = {{"rows", rows}, {"cols", cols}};
        request.threads = 16;
        request.useTunedPlans = false;
        Result<CompiledOperator> compiled =
            CompiledOperator::create(*kernels::findOperator(op), request);
        ASSERT_TRUE(compiled) << compiled.error().str();
        const GridPlan &grid = compiled->compiled()->plan->stages[0].order;
        shared += grid.splits > 1;
        EXPECT_TRUE(grid.splits == 1 || grid.together == 1);
        RunValues values;
        values.threads = 4;
        outputsOf(*compiled, values);
      }
  EXPECT_GE(shared, 4);
}

/// The plan of a kernel of the arrays x, of `extent` elements, and y, of one.
GridPlan planOf(const Kernel &kernel, int64_t extent, int64_t splits) {
  Result<Program> program = Program::fromKernel(kernel, TraceOptions());
  EXPECT_TRUE(program.ok()) << program.error().str();
  if (!program)
    return {};
  CompileRequest request;
  request.extents = {{extent}, {1}};
  request.choices = splitsOf(splits);
  Result<CompiledKernel> compiled = program->compile(request);
  EXPECT_TRUE(compiled.ok()) << compiled.error().str();
  return compiled ? compiled->plan->stages[0].order : GridPlan();
}

TEST(SplitPlans, NothingIsWrittenBefore) {
  auto product = [](bool writesFirst) {
    return kernel(
        "sums", "x, y",
        [writesFirst](View<const float, 1> x, View<float, 1> y) {
          Dim n = dim("n", x.extent(0)), one = dim("one", 1);
          for (auto p : parallel(one)) {
            if (writesFirst)
              store(y(p), 1.0);
            Tile first = full({}, 0.0, DType::F32);
            Tile total = fold(
                n, {first}, Order::Unordered,
                [&](Coord i) { return std::vector<Tile>{load(x(i))}; },
                [](std::span<const Tile> a, std::span<const Tile> b) {
                  return std::vector<Tile>{a[0] + b[0]};
                })[0];
            store(y(p), total);
          }
        });
  };
  EXPECT_EQ(planOf(product(false), 100, 4).splits, 4);
  GridPlan refused = planOf(product(true), 100, 4);
  EXPECT_EQ(refused.splits, 1);
  EXPECT_THAT(refused.unsplit, HasSubstr("nothing is written before"));
}

} // namespace
} // namespace tessera::runtest
