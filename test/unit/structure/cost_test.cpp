//===- test/unit/structure/cost_test.cpp - What a compile and a call cost -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory of a compile, threads that small work must not wake, and times
// that are printed but tested by nobody's clock.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace tessera::structuretest {
namespace {

using kernels::Operator;
using session::CompiledOperator;

/// Runs everything on the caller and counts the jobs.
class CountingPool : public TaskPool {
public:
  int threads() const override { return 16; }
  void run(int64_t count, int, Task task, void *context) override {
    ++jobs;
    for (int64_t i = 0; i < count; ++i)
      task(context, i, 0);
  }
  int jobs = 0;
};

TEST(Cost, SmallWorkStaysOnTheCaller) {
  for (const Operator *op : rowOperators())
    for (Isa isa : hostIsas()) {
      int64_t cols = op->evenDim.empty() ? 65 : 66;
      auto compiled =
          CompiledOperator::create(*op, {.dims = rowsOf(17, cols), .isa = isa});
      ASSERT_TRUE(compiled.ok()) << compiled.error().str();
      CountingPool pool;
      session::RunValues values;
      values.pool = &pool;
      // The oracle's threads are not the kernel's.
      values.verify = false;
      for (int i = 0; i < 3; ++i) {
        auto result = compiled->run(values);
        ASSERT_TRUE(result.ok()) << result.error().str();
      }
      EXPECT_EQ(pool.jobs, 0) << op->name << " " << name(isa);
    }
}

TEST(Cost, LargeWorkIsShared) {
  for (const Operator *op : rowOperators()) {
    auto compiled = CompiledOperator::create(*op, {.dims = rowsOf(256, 1026)});
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    CountingPool pool;
    session::RunValues values;
    values.pool = &pool;
    values.verify = false;
    auto result = compiled->run(values);
    ASSERT_TRUE(result.ok()) << result.error().str();
    EXPECT_GT(pool.jobs, 0) << op->name;
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The most memory this process has had, in bytes.
int64_t peakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::atoll(line.c_str() + 6) * 1024;
  return -1;
}

constexpr const char *peakFile = "TESSERA_TEST_PEAK_FILE";

// Runs in a process of its own, started by the test below.
TEST(Cost, DISABLED_CompileAlone) {
  const char *path = std::getenv(peakFile);
  ASSERT_TRUE(path) << "started without a file for its answer";
  for (const char *operatorName :
       {"layer_norm", "cross_entropy", "attention"}) {
    const Operator &op = *kernels::findOperator(operatorName);
    session::RunRequest request;
    for (size_t i = 0; i < op.dims.size(); ++i)
      request.dims.emplace(op.dims[i], op.defaultExtents[i]);
    if (request.dims.count("cols"))
      request.dims["cols"] = 1'000'000;
    auto compiled = session::compileOperator(op, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
  }
  std::ofstream(path) << peakBytes();
}

TEST(Cost, CompilesIn300Megabytes) {
  char path[] = "/tmp/tessera_peak_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  close(file);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv(peakFile, path, 1);
    for (const char *name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX",
                             "GTEST_SHARD_STATUS_FILE", "GTEST_OUTPUT"})
      unsetenv(name);
    // Its report would look like this program's own.
    if (!std::freopen("/dev/null", "w", stdout))
      _exit(126);
    execl("/proc/self/exe", "tessera_unit_tests",
          "--gtest_filter=Cost.DISABLED_CompileAlone",
          "--gtest_also_run_disabled_tests", static_cast<char *>(nullptr));
    _exit(127);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  int64_t bytes = -1;
  std::ifstream(path) >> bytes;
  unlink(path);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_GT(bytes, 0);
  std::printf("peak memory of three compiles in one process: %lld MB\n",
              static_cast<long long>(bytes >> 20));
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) &&     \
    !__has_feature(thread_sanitizer)
  EXPECT_LT(bytes, int64_t{300} << 20);
#endif
}

//===----------------------------------------------------------------------===//
// Time, for the reader
//===----------------------------------------------------------------------===//

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

TEST(Cost, TimesForTheReader) {
  std::vector<double> compiles;
  double whole = 0;
  for (const Operator *op : rowOperators()) {
    auto start = std::chrono::steady_clock::now();
    auto compiled = session::compileOperator(
        *op, {.dims = rowsOf(16, op->evenDim.empty() ? 4097 : 4098)});
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    compiles.push_back(since(start));
    start = std::chrono::steady_clock::now();
    auto result = session::runOperator(
        *op, {.dims = rowsOf(17, op->evenDim.empty() ? 65 : 66)});
    ASSERT_TRUE(result.ok()) << result.error().str();
    EXPECT_TRUE(result->passed()) << op->name << ": " << result->failures();
    whole = std::max(whole, since(start));
  }
  std::sort(compiles.begin(), compiles.end());
  std::printf("compile of a row operator: median %.0f ms, longest %.0f ms; "
              "17x65 compiled, run and verified: at most %.0f ms\n",
              compiles[compiles.size() / 2] * 1e3, compiles.back() * 1e3,
              whole * 1e3);
}

} // namespace
} // namespace tessera::structuretest
