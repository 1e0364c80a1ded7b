//===- executable.cpp - Launching compiled kernels ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// launch() binds its arguments on the stack and borrows the thread's scratch
// block; a prepared launch owns both. The stages then run one after another.
//
//===----------------------------------------------------------------------===//

#include "tessera/executable.h"

#include "runtime/cpu/dispatch.h"
#include "runtime/host/arguments.h"
#include "runtime/host/vendor_library.h"
#include "support/env.h"
#include "support/inline_vector.h"
#include "support/timing.h"
#include "tessera/buffer.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace tessera {

namespace {

using runtime::BoundArguments;
using runtime::Grain;

/// Scratch blocks of different threads start on different pairs of cache lines,
/// which is what the hardware prefetcher fetches.
constexpr int64_t scratchSpacing = 128;

/// A thread keeps at most this much scratch between launches.
constexpr int64_t keptScratchBytes = int64_t{64} << 20;

/// Everything about a launch that does not depend on its arguments.
struct LaunchPlan {
  TaskPool *pool = nullptr;
  int threads = 1;
  /// Those of a vendor's library.
  int vendorThreads = 1;
  support::InlineVector<Grain, 8> grains;
  int64_t scratchStride = 0;
  /// Of all threads, and the workspace behind.
  int64_t scratchBytes = 0;
  int64_t workspaceBytes = 0;
};

Result<void> planLaunch(const ExecutableInfo &info,
                        const LaunchOptions &options, LaunchPlan &plan) {
  if (options.threads < 0)
    return Error{
        ErrorFamily::Launch,
        "launch.threads",
        fmt::format("{} threads are asked for, expected at least 1, or "
                    "0 for all",
                    options.threads),
        {}};
  // A kernel of small stages never makes the default pool start.
  bool small = options.threads == 1;
  if (!small)
    small =
        std::all_of(info.stages.begin(), info.stages.end(), runtime::isSmall);
  int available = 1;
  if (!small) {
    plan.pool = options.pool ? options.pool : &defaultTaskPool();
    available = plan.pool->threads();
    if (options.threads > 0)
      available = std::min(available, options.threads);
  }
  if (info.vendor && options.threads != 1) {
    plan.vendorThreads =
        (options.pool ? *options.pool : defaultTaskPool()).threads();
    if (options.threads > 0)
      plan.vendorThreads = std::min(plan.vendorThreads, options.threads);
  }
  for (const Stage &stage : info.stages) {
    if (!stage.entry && stage.programs > 0)
      return Error{ErrorFamily::Unsupported,
                   "launch.no-code",
                   fmt::format("stage '{}' of kernel '{}' has no machine code "
                               "that this machine can run; compile the kernel "
                               "for a level of this machine",
                               stage.symbol, info.kernel),
                   {}};
    const Grain grain = runtime::chooseGrain(stage, available);
    plan.grains.push_back(grain);
    plan.threads = std::max(plan.threads, grain.threads);
    plan.scratchStride = std::max(plan.scratchStride, stage.scratchBytes);
    plan.workspaceBytes = std::max(plan.workspaceBytes, stage.workspaceBytes);
  }
  int64_t stride = 0;
  if (__builtin_add_overflow(plan.scratchStride, scratchSpacing - 1, &stride) ||
      __builtin_mul_overflow(stride / scratchSpacing * scratchSpacing,
                             int64_t{plan.threads}, &plan.scratchBytes) ||
      __builtin_add_overflow(plan.scratchBytes, plan.workspaceBytes,
                             &plan.scratchBytes))
    return Error{ErrorFamily::Unsupported,
                 "memory.exhausted",
                 fmt::format("kernel '{}' needs {} bytes of scratch on each of "
                             "{} threads",
                             info.kernel, plan.scratchStride, plan.threads),
                 {}};
  plan.scratchStride = stride / scratchSpacing * scratchSpacing;
  return {};
}

/// What a stage's nonzero return value means.
Error checkError(const ExecutableInfo &info, const Stage &stage,
                 int32_t status) {
  if (status >= 1 && static_cast<size_t>(status) <= info.checks.size())
    return info.checks[static_cast<size_t>(status) - 1];
  return {ErrorFamily::Internal,
          "launch.unknown-check",
          fmt::format("stage '{}' of kernel '{}' reported check {}, but the "
                      "kernel has {}; repeat with TESSERA_LOG=1 and report the "
                      "printed command",
                      stage.symbol, info.kernel, status, info.checks.size()),
          {}};
}

/// What StageEntry calls the end of `data`.
void bindWorkspace(const LaunchPlan &plan, void *scratch,
                   BoundArguments &bound) {
  if (plan.workspaceBytes > 0)
    bound.data.push_back(static_cast<unsigned char *>(scratch) +
                         plan.scratchBytes - plan.workspaceBytes);
}

Result<void> runStages(const ExecutableInfo &info, const LaunchPlan &plan,
                       const BoundArguments &bound, void *scratch) {
  runtime::StageArguments arguments;
  arguments.data = bound.data.data();
  arguments.strides = bound.strides.data();
  arguments.scalars = bound.scalars.data();
  arguments.scratch = static_cast<unsigned char *>(scratch);
  arguments.scratchStride = plan.scratchStride;
  for (size_t i = 0; i < info.stages.size(); ++i) {
    // What another kernel or stage has left there.
    if (const int64_t bytes = info.stages[i].workspaceZeroBytes; bytes > 0)
      std::memset(bound.data[bound.data.size() - 1], 0,
                  static_cast<size_t>(bytes));
    auto run = [&] {
      return runtime::runStage(info.stages[i], arguments, plan.grains[i],
                               plan.pool);
    };
    const int32_t status =
        info.vendor ? info.vendor->run(plan.vendorThreads, run) : run();
    if (status != 0)
      return checkError(info, info.stages[i], status);
  }
  return {};
}

void logLaunch(const std::string &description, double microseconds,
               const Result<void> &result) {
  if (result.ok())
    support::logLine(fmt::format("{} {:.2f} us", description, microseconds));
  else
    support::logLine(
        fmt::format("{} failed: {}", description, result.error().str()));
}

/// The calling thread's scratch block. A launch takes it out and puts it back,
/// so a launch inside a task of another finds none and gets its own.
class BorrowedScratch {
public:
  Result<void *> borrow(int64_t bytes) {
    if (bytes == 0)
      return static_cast<void *>(nullptr);
    block = std::move(kept());
    if (block.size() < bytes) {
      block = Buffer(); // Frees first: the peak is the larger of the two.
      Result<Buffer> fresh = Buffer::allocate(bytes);
      if (!fresh)
        return fresh.error();
      block = std::move(*fresh);
    }
    return block.data();
  }
  ~BorrowedScratch() {
    if (block.size() > kept().size() && block.size() <= keptScratchBytes)
      kept() = std::move(block);
  }

private:
  static Buffer &kept() {
    thread_local Buffer buffer;
    return buffer;
  }
  Buffer block;
};

Result<void> launchChecked(const ExecutableInfo &info,
                           std::span<const Argument> arguments,
                           const LaunchOptions &options) {
  BoundArguments bound;
  if (Result<void> result = runtime::bindArguments(info, arguments, bound);
      !result)
    return result;
  LaunchPlan plan;
  if (Result<void> result = planLaunch(info, options, plan); !result)
    return result;
  BorrowedScratch scratch;
  Result<void *> memory = scratch.borrow(plan.scratchBytes);
  if (!memory)
    return memory.error();
  bindWorkspace(plan, *memory, bound);
  return runStages(info, plan, bound, *memory);
}

} // namespace

Executable::Executable(ExecutableInfo info)
    : shared(std::make_shared<const ExecutableInfo>(std::move(info))) {}

Result<void> Executable::launch(std::span<const Argument> arguments,
                                const LaunchOptions &options) const {
  if (!support::launchLogEnabled())
    return launchChecked(*shared, arguments, options);
  const support::Stopwatch watch;
  Result<void> result = launchChecked(*shared, arguments, options);
  const double microseconds = watch.microseconds();
  logLaunch(runtime::describeLaunch(*shared, arguments, options), microseconds,
            result);
  return result;
}

struct PreparedLaunch::State {
  std::shared_ptr<const ExecutableInfo> info;
  BoundArguments bound;
  LaunchPlan plan;
  Buffer scratch;
  /// Keeps packed arrays while the launch may run.
  std::vector<Packed> packed;
  /// Filled only when launches are logged.
  std::string description;
};

Result<PreparedLaunch> Executable::prepare(std::span<const Argument> arguments,
                                           const LaunchOptions &options) const {
  auto state = std::make_unique<PreparedLaunch::State>();
  state->info = shared;
  if (Result<void> result =
          runtime::bindArguments(*shared, arguments, state->bound);
      !result)
    return result.error();
  if (Result<void> result = planLaunch(*shared, options, state->plan); !result)
    return result.error();
  Result<Buffer> scratch = Buffer::allocate(state->plan.scratchBytes);
  if (!scratch)
    return scratch.error();
  state->scratch = std::move(*scratch);
  for (const Argument &argument : arguments)
    if (const auto *packed = std::get_if<Packed>(&argument))
      state->packed.push_back(*packed);
  bindWorkspace(state->plan, state->scratch.data(), state->bound);
  if (support::launchLogEnabled())
    state->description = runtime::describeLaunch(*shared, arguments, options);
  return PreparedLaunch(std::move(state));
}

PreparedLaunch::PreparedLaunch(std::unique_ptr<State> state)
    : state(std::move(state)) {}
PreparedLaunch::PreparedLaunch(PreparedLaunch &&) noexcept = default;
PreparedLaunch &PreparedLaunch::operator=(PreparedLaunch &&) noexcept = default;
PreparedLaunch::~PreparedLaunch() = default;

Result<void> PreparedLaunch::run() {
  if (state->description.empty())
    return runStages(*state->info, state->plan, state->bound,
                     state->scratch.data());
  const support::Stopwatch watch;
  Result<void> result =
      runStages(*state->info, state->plan, state->bound, state->scratch.data());
  logLaunch(state->description, watch.microseconds(), result);
  return result;
}

} // namespace tessera
