//===- launch_test.cpp - Tests of launching -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels written by hand as StageEntry functions stand in for compiled code.
//
//===----------------------------------------------------------------------===//

#include "support/env.h"
#include "support/float_convert.h"
#include "tessera/executable.h"

#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <thread>
#include <xmmintrin.h>

using namespace tessera;

namespace {

constexpr int64_t columns = 17;

/// y[row, :] = x[row, :] + w[:] + eps through scratch; one program per row.
int32_t addRows(void *const *data, const int64_t *strides, const void *scalars,
                int64_t begin, int64_t end, void *scratch) {
  const auto *x = static_cast<const float *>(data[0]);
  const auto *w = static_cast<const float *>(data[1]);
  auto *y = static_cast<float *>(data[2]);
  float eps;
  std::memcpy(&eps, scalars, sizeof eps);
  auto *row = static_cast<float *>(scratch);
  if (reinterpret_cast<uintptr_t>(scratch) % 64 != 0)
    return 99;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      row[c] = x[r * strides[0] + c * strides[1]] + w[c * strides[2]];
    for (int64_t c = 0; c < columns; ++c)
      y[r * strides[3] + c * strides[4]] = row[c] + eps;
  }
  return 0;
}

ExecutableInfo addRowsInfo(int64_t rows, double nanoseconds = 500) {
  ExecutableInfo info;
  info.kernel = "add_rows";
  info.parameters = {
      ViewParameter{"x", DType::F32, false, {rows, columns}, {}},
      ViewParameter{"w", DType::F32, false, {columns}, {}},
      ViewParameter{"y", DType::F32, true, {rows, columns}, {false, true}},
      ScalarParameter{"eps", DType::F32, true, 0.5}};
  info.stages = {{addRows, "add_rows_0", rows, columns * 4, nanoseconds}};
  return info;
}

/// Arrays for addRows.
struct AddRows {
  explicit AddRows(int64_t rows) : rows(rows) {
    x.resize(static_cast<size_t>(rows * columns));
    y.assign(x.size(), -1);
    w.resize(columns);
    std::iota(x.begin(), x.end(), 0.0f);
    std::iota(w.begin(), w.end(), 100.0f);
  }

  std::vector<Argument> arguments() {
    return {TensorRef::dense(x.data(), DType::F32, {rows, columns}),
            TensorRef::dense(w.data(), DType::F32, {columns}),
            TensorRef::dense(y.data(), DType::F32, {rows, columns})};
  }

  bool right(float eps) const {
    for (size_t i = 0; i < x.size(); ++i)
      if (y[i] != x[i] + w[i % columns] + eps)
        return false;
    return true;
  }
  bool untouched() const {
    for (float value : y)
      if (value != -1)
        return false;
    return true;
  }

  int64_t rows;
  std::vector<float> x, w, y;
};

/// Expects a launch to fail with this code and a message with this text.
void expectError(const Executable &executable,
                 const std::vector<Argument> &arguments, std::string_view code,
                 std::string_view text,
                 ErrorFamily family = ErrorFamily::Launch,
                 const LaunchOptions &options = {}) {
  const Result<void> result = executable.launch(arguments, options);
  ASSERT_FALSE(result.ok()) << code;
  EXPECT_EQ(result.error().code, code);
  EXPECT_EQ(result.error().family, family);
  EXPECT_NE(result.error().message.find(text), std::string::npos)
      << result.error().message;
  const auto prepared = executable.prepare(arguments, options);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message, result.error().message);
}

TensorRef &viewOf(std::vector<Argument> &arguments, size_t index) {
  return std::get<TensorRef>(arguments[index]);
}

} // namespace

TEST(Launch, RunsOnAnyNumberOfThreads) {
  for (int64_t rows : {1, 2, 5, 100, 1000}) {
    const Executable executable(addRowsInfo(rows));
    for (int threads : {0, 1, 2, 3, 100}) {
      AddRows arrays(rows);
      ASSERT_TRUE(executable.launch(arrays.arguments(), {threads, nullptr}));
      EXPECT_TRUE(arrays.right(0.5f));
      AddRows again(rows);
      auto arguments = again.arguments();
      arguments.emplace_back(int64_t{3});
      auto prepared = executable.prepare(arguments, {threads, nullptr});
      ASSERT_TRUE(prepared.ok());
      for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(prepared->run());
      EXPECT_TRUE(again.right(3.0f));
    }
  }
}

TEST(Launch, StridedViews) {
  const Executable executable(addRowsInfo(6));
  AddRows arrays(6);
  auto arguments = arrays.arguments();
  // x reversed in both axes, w broadcast from one element.
  viewOf(arguments, 0).data = &arrays.x.back();
  viewOf(arguments, 0).strides = {-columns, -1};
  viewOf(arguments, 1).strides = {0};
  ASSERT_TRUE(executable.launch(arguments));
  for (size_t i = 0; i < arrays.x.size(); ++i)
    EXPECT_EQ(arrays.y[i], arrays.x[arrays.x.size() - 1 - i] + 100.5f);
}

TEST(Launch, UsesTheGivenPool) {
  struct HostPool : TaskPool {
    int calls = 0;
    int threads() const override { return 3; }
    void run(int64_t count, int threads, Task task, void *context) override {
      ++calls;
      for (int64_t index = count; index-- > 0;)
        task(context, index, static_cast<int>(index % threads));
    }
  } pool;
  const Executable executable(addRowsInfo(100));
  AddRows arrays(100);
  ASSERT_TRUE(executable.launch(arrays.arguments(), {0, &pool}));
  EXPECT_TRUE(arrays.right(0.5f));
  EXPECT_EQ(pool.calls, 1);
  // Small work and a budget of one thread stay on the caller.
  ASSERT_TRUE(executable.launch(arrays.arguments(), {1, &pool}));
  ASSERT_TRUE(
      Executable(addRowsInfo(100, 5)).launch(arrays.arguments(), {0, &pool}));
  EXPECT_EQ(pool.calls, 1);
}

TEST(Launch, CountAndKind) {
  const Executable executable(addRowsInfo(4));
  AddRows arrays(4);
  auto arguments = arrays.arguments();
  arguments.pop_back();
  expectError(executable, arguments, "launch.count",
              "takes 4 arguments (x, w, y, eps), found 2");
  arguments = arrays.arguments();
  arguments.emplace_back(1.0);
  arguments.emplace_back(1.0);
  expectError(executable, arguments, "launch.count", "found 5");
  arguments = arrays.arguments();
  arguments[1] = 2.0;
  expectError(executable, arguments, "launch.kind", "argument 'w' is a scalar");
  arguments = arrays.arguments();
  arguments.push_back(arguments[1]);
  expectError(executable, arguments, "launch.kind", "argument 'eps' is a view");
  ExecutableInfo info = addRowsInfo(4);
  std::get<ScalarParameter>(info.parameters[3]).hasDefault = false;
  expectError(Executable(info), arrays.arguments(), "launch.count", "found 3");
  expectError(executable, arrays.arguments(), "launch.threads", "-1 threads",
              ErrorFamily::Launch, {-1, nullptr});
  EXPECT_TRUE(arrays.untouched());
}

TEST(Launch, ViewChecksNameTheParameter) {
  const Executable executable(addRowsInfo(4));
  AddRows arrays(4);
  const auto expectWith = [&](auto change, const char *code, const char *text) {
    auto arguments = arrays.arguments();
    change(arguments);
    expectError(executable, arguments, code, text);
  };
  expectWith([](auto &a) { viewOf(a, 0).extents = {4}; }, "launch.rank",
             "argument 'x': rank is 1, expected 2");
  expectWith([](auto &a) { viewOf(a, 0).strides = {1}; }, "launch.stride",
             "argument 'x': 1 strides are given, expected 2");
  expectWith([](auto &a) { viewOf(a, 1).dtype = DType::F16; }, "launch.dtype",
             "argument 'w': dtype is f16, expected f32");
  expectWith([](auto &a) { viewOf(a, 1).extents = {16}; }, "launch.extent",
             "argument 'w': extent 0 is 16, expected 17");
  expectWith([](auto &a) { viewOf(a, 2).extents = {4, -17}; }, "launch.extent",
             "argument 'y': extent 1 is -17, expected 17");
  expectWith([](auto &a) { viewOf(a, 2).strides = {40, 2}; }, "launch.stride",
             "argument 'y': stride 1 is 2, expected 1");
  expectWith([](auto &a) { viewOf(a, 1).data = nullptr; }, "launch.null",
             "argument 'w'");
  expectWith(
      [](auto &a) {
        viewOf(a, 0).data = static_cast<char *>(viewOf(a, 0).data) + 2;
      },
      "launch.alignment", "is not a multiple of 4, the size of f32");
  expectWith(
      [](auto &a) {
        viewOf(a, 0).strides = {std::numeric_limits<int64_t>::max(), 1};
      },
      "launch.range", "argument 'x': extents 4x17 with strides");
  // In range as an offset, but past the end of the address space.
  expectWith([](auto &a) { viewOf(a, 0).strides = {-(int64_t{1} << 58), 1}; },
             "launch.range", "argument 'x'");
  expectWith([](auto &a) { viewOf(a, 2).strides = {16, 1}; }, "launch.overlap",
             "argument 'y': extents 4x17 with strides 16,1 address an element "
             "more than once");
  EXPECT_TRUE(arrays.untouched());
}

TEST(Launch, EmptyViewsAndGrids) {
  const Executable executable(addRowsInfo(0));
  float w[columns] = {};
  const std::vector<Argument> arguments = {
      TensorRef{nullptr, DType::F32, {0, columns}, {columns, 1}},
      TensorRef::dense(w, DType::F32, {columns}),
      TensorRef{nullptr, DType::F32, {0, columns}, {0, 5}}};
  EXPECT_TRUE(executable.launch(arguments));
  auto prepared = executable.prepare(arguments);
  ASSERT_TRUE(prepared.ok());
  EXPECT_TRUE(prepared->run());
  ExecutableInfo nothing;
  nothing.kernel = "nothing";
  EXPECT_TRUE(Executable(nothing).launch({}));
}

TEST(Launch, StrideOfAnAxisOfOneElementIsFree) {
  ExecutableInfo info = addRowsInfo(1);
  info.stages.clear();
  std::get<ViewParameter>(info.parameters[2]).unitStride = {true, false};
  AddRows arrays(1);
  auto arguments = arrays.arguments();
  viewOf(arguments, 2).strides = {1000, 1};
  EXPECT_TRUE(Executable(info).launch(arguments));
}

TEST(Launch, AliasModes) {
  ExecutableInfo info = addRowsInfo(4);
  AddRows arrays(4);
  auto same = arrays.arguments();
  viewOf(same, 2) = viewOf(same, 0);
  auto shifted = same;
  arrays.x.resize(arrays.x.size() + 1);
  viewOf(same, 0).data = viewOf(same, 2).data = arrays.x.data();
  viewOf(shifted, 0).data = arrays.x.data();
  viewOf(shifted, 2).data = arrays.x.data() + 1;

  info.alias = AliasMode::Disjoint;
  expectError(Executable(info), same, "launch.overlap",
              "argument 'y' is written and shares memory with argument 'x', "
              "expected separate memory");
  info.alias = AliasMode::InPlace;
  expectError(Executable(info), shifted, "launch.overlap",
              "expected exactly the same view or separate memory");
  EXPECT_TRUE(Executable(info).launch(same));
  info.alias = AliasMode::Overlap;
  EXPECT_TRUE(Executable(info).launch(shifted));
  auto selfOverlapping = same;
  viewOf(selfOverlapping, 2).strides = {0, 1};
  expectError(Executable(info), selfOverlapping, "launch.overlap",
              "more than once");

  // Interleaved rows share no byte.
  std::vector<float> both(8 * columns);
  info.alias = AliasMode::Disjoint;
  auto woven = arrays.arguments();
  viewOf(woven, 0) = {both.data(), DType::F32, {4, columns}, {2 * columns, 1}};
  viewOf(woven, 2) = {
      both.data() + columns, DType::F32, {4, columns}, {2 * columns, 1}};
  EXPECT_TRUE(Executable(info).launch(woven));

  // Two outputs may not be one view, even in place; two inputs may.
  std::get<ViewParameter>(info.parameters[0]).writable = true;
  info.alias = AliasMode::InPlace;
  expectError(Executable(info), same, "launch.overlap",
              "expected separate memory");
}

namespace {

/// Copies the scalar slots to the view.
int32_t copyScalars(void *const *data, const int64_t *, const void *scalars,
                    int64_t, int64_t, void *) {
  std::memcpy(data[0], scalars, 16);
  return 0;
}

/// The slot for one scalar, or the error code.
std::string bindOne(DType dtype, Argument value, uint64_t &slot) {
  uint64_t slots[2] = {};
  ExecutableInfo info;
  info.kernel = "scalars";
  info.parameters = {ViewParameter{"out", DType::U64, true, {2}, {}},
                     ScalarParameter{"a", dtype, false, 0},
                     ScalarParameter{"b", DType::I64, true, 77}};
  info.stages = {{copyScalars, "s", 1, 0, 1}};
  const std::vector<Argument> arguments = {
      TensorRef::dense(slots, DType::U64, {2}), value};
  const Result<void> result = Executable(info).launch(arguments);
  if (!result.ok()) {
    EXPECT_NE(result.error().message.find("argument 'a': value is"),
              std::string::npos);
    return result.error().code;
  }
  EXPECT_EQ(slots[1], 77u);
  slot = slots[0];
  return "";
}

} // namespace

TEST(Launch, ScalarConversions) {
  uint64_t slot = 0;
  EXPECT_EQ(bindOne(DType::F32, 1.5, slot), "");
  EXPECT_EQ(slot, 0x3fc00000u);
  EXPECT_EQ(bindOne(DType::F32, int64_t{2}, slot), "");
  EXPECT_EQ(slot, 0x40000000u);
  EXPECT_EQ(bindOne(DType::BF16, 1.0, slot), "");
  EXPECT_EQ(slot, 0x3f80u);
  EXPECT_EQ(bindOne(DType::F64, -0.0, slot), "");
  EXPECT_EQ(slot, uint64_t{1} << 63);
  EXPECT_EQ(bindOne(DType::F16, std::numeric_limits<double>::infinity(), slot),
            "");
  EXPECT_EQ(slot, 0x7c00u);
  EXPECT_EQ(bindOne(DType::F16, 1e6, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::F32, 1e300, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::F32, NAN, slot), "");
  EXPECT_EQ(bindOne(DType::F8E4M3, 448.0, slot), "");
  EXPECT_EQ(bindOne(DType::I32, -3.0, slot), "");
  EXPECT_EQ(slot, 0xfffffffdu);
  EXPECT_EQ(bindOne(DType::I32, -3.5, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::I32, NAN, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::I8, int64_t{128}, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::I8, int64_t{-128}, slot), "");
  EXPECT_EQ(slot, 0x80u);
  EXPECT_EQ(bindOne(DType::U8, int64_t{255}, slot), "");
  EXPECT_EQ(bindOne(DType::U8, int64_t{-1}, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::I64, std::numeric_limits<int64_t>::min(), slot), "");
  EXPECT_EQ(slot, uint64_t{1} << 63);
  EXPECT_EQ(bindOne(DType::I64, 0x1p63, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::U64, 0x1p63, slot), "");
  EXPECT_EQ(slot, uint64_t{1} << 63);
  EXPECT_EQ(bindOne(DType::U64, 0x1p64, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::I64, 1e300, slot), "launch.scalar");
  EXPECT_EQ(bindOne(DType::Bool, int64_t{1}, slot), "");
  EXPECT_EQ(slot, 1u);
  EXPECT_EQ(bindOne(DType::Bool, int64_t{2}, slot), "launch.scalar");
}

namespace {

/// Fails check 2 in programs 700 and up, check 1 from 40 to 49.
int32_t failSometimes(void *const *data, const int64_t *, const void *,
                      int64_t begin, int64_t end, void *) {
  for (int64_t i = begin; i < end; ++i) {
    if (i >= 700)
      return 2;
    if (i >= 40 && i < 50)
      return 1;
  }
  (void)data;
  return 0;
}

int32_t markDone(void *const *data, const int64_t *, const void *, int64_t,
                 int64_t, void *) {
  *static_cast<int32_t *>(data[0]) = 1;
  return 0;
}

int32_t returnSeven(void *const *, const int64_t *, const void *, int64_t,
                    int64_t, void *) {
  return 7;
}

} // namespace

TEST(Launch, ReportsTheFirstFailedCheckAndStops) {
  int32_t done = 0;
  ExecutableInfo info;
  info.kernel = "checked";
  info.parameters = {ViewParameter{"out", DType::I32, true, {}, {}}};
  info.stages = {{failSometimes, "a", 1000, 0, 100},
                 {markDone, "b", 1, 0, 100}};
  info.checks = {{ErrorFamily::Launch, "launch.index", "first", {}},
                 {ErrorFamily::Launch, "launch.index", "second", {}}};
  const std::vector<Argument> arguments = {
      TensorRef::dense(&done, DType::I32, {})};
  const auto pool = makeTaskPool(4);
  for (int threads : {1, 2, 3, 4})
    for (int round = 0; round < 50; ++round) {
      const Result<void> result =
          Executable(info).launch(arguments, {threads, pool.get()});
      ASSERT_FALSE(result.ok());
      ASSERT_EQ(result.error().message, "first");
    }
  EXPECT_EQ(done, 0);
  info.stages[0].entry = returnSeven;
  const Result<void> unknown = Executable(info).launch(arguments);
  EXPECT_EQ(unknown.error().family, ErrorFamily::Internal);
  info.stages[0].entry = nullptr;
  EXPECT_EQ(Executable(info).launch(arguments).error().code, "launch.no-code");
  info.stages.erase(info.stages.begin());
  EXPECT_TRUE(Executable(info).launch(arguments));
  EXPECT_EQ(done, 1);
}

TEST(Launch, ScratchThatCannotBeHadIsAnError) {
  ExecutableInfo info = addRowsInfo(1000);
  AddRows arrays(1000);
  info.stages[0].scratchBytes = std::numeric_limits<int64_t>::max() - 10;
  const Result<void> result =
      Executable(info).launch(arrays.arguments(), {2, nullptr});
  EXPECT_EQ(result.error().code, "memory.exhausted");
  EXPECT_EQ(result.error().family, ErrorFamily::Unsupported);
  EXPECT_TRUE(arrays.untouched());
}

TEST(Launch, ManyThreadsAtOnce) {
  const Executable executable(addRowsInfo(64));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        AddRows arrays(64);
        const Result<void> result = executable.launch(arrays.arguments());
        if (!result.ok() || !arrays.right(0.5f))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Launch, InsideATaskOfThePool) {
  const Executable executable(addRowsInfo(64));
  struct Context {
    const Executable &executable;
    std::atomic<int> wrong{0};
  } context{executable};
  defaultTaskPool().run(
      20, 0,
      [](void *data, int64_t, int) {
        auto &context = *static_cast<Context *>(data);
        AddRows arrays(64);
        if (!context.executable.launch(arrays.arguments()).ok() ||
            !arrays.right(0.5f))
          ++context.wrong;
      },
      &context);
  EXPECT_EQ(context.wrong.load(), 0);
}

namespace {

/// A kernel that launches another one while it holds its scratch.
int32_t launchInner(void *const *data, const int64_t *, const void *,
                    int64_t begin, int64_t end, void *scratch) {
  std::memset(scratch, 0x5a, 4096);
  const auto &inner = *static_cast<const Executable *>(data[0]);
  for (int64_t i = begin; i < end; ++i) {
    AddRows arrays(8);
    if (!inner.launch(arrays.arguments()).ok() || !arrays.right(0.5f))
      return 1;
  }
  for (int i = 0; i < 4096; ++i)
    if (static_cast<unsigned char *>(scratch)[i] != 0x5a)
      return 2;
  return 0;
}

} // namespace

TEST(Launch, NestedLaunchesHaveTheirOwnScratch) {
  const Executable inner(addRowsInfo(8));
  ExecutableInfo info;
  info.kernel = "outer";
  info.parameters = {ViewParameter{"handle", DType::U8, false, {1}, {}}};
  info.stages = {{launchInner, "outer", 64, 4096, 1000}};
  const std::vector<Argument> arguments = {
      TensorRef::dense(const_cast<Executable *>(&inner), DType::U8, {1})};
  for (int round = 0; round < 10; ++round)
    EXPECT_TRUE(Executable(info).launch(arguments, {4, nullptr}));
}

TEST(Launch, KeepsTheCallersFloatingPointState) {
  const Executable executable(addRowsInfo(500));
  AddRows arrays(500);
  const unsigned before = _mm_getcsr();
  const unsigned odd = (before | 0x8040) & ~0x3fu; // Flush, no flags raised.
  _mm_setcsr(odd);
  const bool good = executable.launch(arrays.arguments()).ok();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_TRUE(good);
  EXPECT_EQ(after & ~0x3fu, odd & ~0x3fu);
}

TEST(Launch, LogIsACommandLine) {
  ExecutableInfo info = addRowsInfo(4);
  AddRows arrays(4);
  ::setenv("TESSERA_LOG", "1", 1);
  support::reloadEnvironment();
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Executable(info).launch(arrays.arguments(), {2, nullptr}));
  info.command = "tessera run add_rows --dims row=4,col=17 --dtype f32";
  auto arguments = arrays.arguments();
  arguments.emplace_back(0.25);
  auto prepared = Executable(info).prepare(arguments);
  EXPECT_TRUE(prepared.ok() && prepared->run().ok());
  arguments[1] = 1.0;
  EXPECT_FALSE(Executable(info).launch(arguments));
  const std::string text = testing::internal::GetCapturedStderr();
  ::unsetenv("TESSERA_LOG");
  support::reloadEnvironment();
  EXPECT_NE(text.find("tessera run add_rows --set eps=0.5 --threads 2  # "
                      "x=f32[4,17]:17,1@0x"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--dims row=4,col=17 --dtype f32 --set eps=0.25  #"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" us\n"), std::string::npos);
  EXPECT_NE(text.find("failed: error: argument 'w' is a scalar"),
            std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

TEST(Launch, ManyParameters) {
  // More views, axes and scalars than a launch keeps on the stack.
  ExecutableInfo info;
  info.kernel = "wide";
  std::vector<Argument> arguments;
  static uint64_t cells[40][2];
  for (int i = 0; i < 40; ++i) {
    info.parameters.push_back(ViewParameter{
        "v" + std::to_string(i), DType::U64, i == 0, {1, 1, 2}, {}});
    arguments.push_back(TensorRef::dense(cells[i], DType::U64, {1, 1, 2}));
  }
  for (int i = 0; i < 40; ++i) {
    info.parameters.push_back(
        ScalarParameter{"s" + std::to_string(i), DType::I64, false, 0});
    arguments.push_back(int64_t{i});
  }
  info.stages = {
      {[](void *const *data, const int64_t *strides, const void *scalars,
          int64_t, int64_t, void *) -> int32_t {
         for (int i = 0; i < 40; ++i) {
           int64_t value;
           std::memcpy(&value, static_cast<const char *>(scalars) + 8 * i, 8);
           if (data[i] != cells[i] || strides[3 * i + 2] != 1 || value != i)
             return 1;
         }
         return 0;
       },
       "wide", 1, 0, 1}};
  EXPECT_TRUE(Executable(info).launch(arguments));
  auto prepared = Executable(info).prepare(arguments);
  ASSERT_TRUE(prepared.ok());
  PreparedLaunch moved = std::move(*prepared);
  EXPECT_TRUE(moved.run());
}
