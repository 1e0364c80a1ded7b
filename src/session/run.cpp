//===- session/run.cpp - One run and its checks ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/extents.h"
#include "session/placement.h"
#include "session/state.h"

#include "fmt/format.h"

#include <algorithm>
#include <chrono>

namespace tessera::session {

const TensorRef *
CompiledOperator::State::givenArray(const Slot &slot,
                                    const RunValues &values) const {
  for (const Arrays *arrays : {&values.inputs, &request.inputs})
    if (auto found = arrays->find(slot.name); found != arrays->end())
      return &found->second;
  return nullptr;
}

kernels::GenerateOptions
CompiledOperator::State::generation(const Slot &slot,
                                    const RunValues &values) const {
  DType dtype = program.parameters()[slot.parameter].dtype;
  if (slot.info) {
    kernels::GenerateOptions options =
        kernels::generation(*slot.info, dtype, dims, values.seed);
    if (values.valueClass && slot.info->content == kernels::Content::Values &&
        isFloat(dtype))
      options.valueClass = *values.valueClass;
    return options;
  }
  kernels::GenerateOptions options;
  options.seed = values.seed;
  options.valueClass = kernels::defaultValueClass(dtype);
  if (values.valueClass && isFloat(dtype))
    options.valueClass = *values.valueClass;
  // Integers of an unknown kernel may be positions along any axis.
  for (const Slot &other : slots)
    for (int64_t extent : viewOf(other).extents)
      if (extent > 0)
        options.high = std::min(options.high, extent);
  return options;
}

Result<void> CompiledOperator::State::fill(const RunValues &values) {
  initial.clear();
  initial.resize(slots.size());
  strict.clear();
  expected.reset();
  pool = values.pool ? values.pool : &defaultTaskPool();
  threads = values.threads;
  for (std::optional<GuardedArray> &array : arrays)
    if (array)
      array->poison();
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot &slot = slots[i];
    const TensorRef *given = givenArray(slot, values);
    if (given) {
      const TensorRef &view = viewOf(slot);
      if (given->dtype != view.dtype || given->extents != view.extents)
        return usage("input",
                     fmt::format("input '{}': found {} {}, compiled for {} {}",
                                 slot.name, name(given->dtype),
                                 describeExtents(given->extents),
                                 name(view.dtype),
                                 describeExtents(view.extents)));
      arrays[slot.memory]->assign(*given);
    } else if (slot.isInput()) {
      kernels::GenerateOptions options = generation(slot, values);
      options.pool = pool;
      options.threads = threads;
      if (Result<void> status =
              kernels::generate(viewOf(slot), slot.name, options);
          !status)
        return status.error();
    }
  }
  // What a launch may overwrite is kept for the oracle.
  changesItsInputs = false;
  for (size_t i = 0; i < slots.size(); ++i) {
    bool isWritten = slots[i].isOutput;
    for (const Slot &other : slots)
      isWritten |= other.isOutput && other.memory == slots[i].memory;
    if (!isWritten)
      continue;
    changesItsInputs |= slots[i].isInput() || givenArray(slots[i], values);
    Result<Array> copy = arrays[slots[i].memory]->copy();
    if (!copy)
      return copy.error();
    initial[i].emplace(std::move(*copy));
  }
  return {};
}

Result<void> CompiledOperator::State::launch(const RunValues &values) {
  if (kernel && values.launcher)
    return values.launcher(*kernel, arguments);
  if (kernel) {
    LaunchOptions options;
    options.threads = values.threads;
    options.pool = values.pool;
    std::string seed = fmt::format("--seed {}", values.seed);
    options.logOptions = seed;
    Result<std::vector<Argument>> given =
        packedArguments(kernel->executable, arguments, options);
    if (!given)
      return given.error();
    return kernel->executable.launch(*given, options);
  }
  InterpretOptions options;
  options.validateIndices = request.validate;
  options.checkRaces = options.checkBounds =
      request.validate || values.checkAccesses;
  InterpretReport report;
  if (Result<void> status = program.interpret(arguments, options, &report);
      !status)
    return status.error();
  return judgeFindings(report);
}

Result<void>
CompiledOperator::State::judgeFindings(const InterpretReport &report) const {
  std::optional<Error> finding = report.firstFinding();
  if (!finding)
    return {};
  finding->message =
      fmt::format("kernel '{}': {}", program.name(), finding->message);
  return *finding;
}

/// Interprets the program on copies that share memory as the arrays do.
Result<std::string> CompiledOperator::State::checkAccesses() const {
  const std::string tooLarge = "skipped, too large";
  int64_t elements = 0;
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].memory == i)
      elements += viewOf(slots[i]).elements();
  if (elements > maxCheckedElements)
    return tooLarge;
  std::vector<std::optional<Array>> copies(slots.size());
  std::vector<Argument> views = arguments;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!initial[i])
      continue;
    std::optional<Array> &copy = copies[slots[i].memory];
    if (!copy) {
      Result<Array> array =
          Array::allocate(initial[i]->dtype, initial[i]->extents);
      if (!array)
        return array.error();
      copyElements(initial[i]->view(), array->view());
      copy.emplace(std::move(*array));
    }
    views[slots[i].parameter] = copy->view();
  }
  InterpretOptions options;
  options.validateIndices = request.validate;
  options.checkRaces = options.checkBounds = true;
  options.stepLimit = maxCheckedSteps;
  InterpretReport report;
  Result<void> status = program.interpret(views, options, &report);
  // What was found before the limit was reached is found all the same.
  if (Result<void> clean = judgeFindings(report); !clean)
    return clean.error();
  if (!status && status.error().family == ErrorFamily::Unsupported)
    return tooLarge;
  if (!status)
    return status.error();
  return std::string("passed");
}

void CompiledOperator::State::restoreWritten(
    const std::vector<Argument> &views) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (initial[i])
      copyElements(initial[i]->view(),
                   std::get<TensorRef>(views[slots[i].parameter]));
}

Result<void> CompiledOperator::State::time(const RunValues &values,
                                           RunResult &result) {
  Placement placed(arguments);
  LaunchOptions options;
  options.threads = values.threads;
  options.pool = values.pool;
  std::string seed = fmt::format("--seed {}", values.seed);
  options.logOptions = seed;
  Result<std::vector<Argument>> given =
      packedArguments(kernel->executable, placed.arguments(), options);
  if (!given)
    return given.error();
  Result<PreparedLaunch> prepared = kernel->executable.prepare(*given, options);
  if (!prepared)
    return prepared.error();
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  double spent = 0;
  // Slow kernels are not run many times for a better median.
  while (seconds.empty() ||
         (spent < values.timeSeconds && seconds.size() < 1000) ||
         (spent < 20 * values.timeSeconds && seconds.size() < 3)) {
    // Every run does the same work, whatever the kernel adds to its arrays.
    if (changesItsInputs)
      restoreWritten(placed.arguments());
    Clock::time_point start = Clock::now();
    if (Result<void> status = prepared->run(); !status)
      return status.error();
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
    spent += seconds.back();
  }
  size_t middle = seconds.size() / 2;
  std::nth_element(seconds.begin(), seconds.begin() + middle, seconds.end());
  result.seconds = seconds[middle];
  result.timedRuns = static_cast<int>(seconds.size());
  return {};
}

Result<RunResult> CompiledOperator::State::run(const RunValues &values) {
  for (const auto &[name, tensor] : values.inputs)
    if (!findSlot(name))
      return usage("input",
                   fmt::format("'{}' has no array '{}'", program.name(), name));
  if (Result<void> status = fill(values); !status)
    return status.error();
  std::vector<support::Hash128> before(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    if (!initial[i])
      before[i] = arrays[slots[i].memory]->hash();

  RunResult result;
  if (kernel && values.checkAccesses) {
    Result<std::string> checked = checkAccesses();
    if (!checked)
      return checked.error();
    result.raceCheck = *checked;
  }
  if (Result<void> status = launch(values); !status)
    return status.error();
  if (!kernel && (request.validate || values.checkAccesses))
    result.raceCheck = "passed";

  for (size_t i = 0; i < slots.size(); ++i) {
    const GuardedArray &array = *arrays[slots[i].memory];
    if (!array.surroundingsIntact())
      result.problems.push_back(fmt::format(
          "bytes around array '{}' were overwritten", slots[i].name));
    if (!initial[i] && array.hash() != before[i])
      result.problems.push_back(
          fmt::format("input '{}' was changed", slots[i].name));
  }
  if (values.verify) {
    if (Result<void> status = verify(result); !status)
      return status.error();
  }
  // In place, every further run would begin with other values.
  if (kernel && values.timeSeconds > 0 && request.inPlace.empty()) {
    // On copies: the arrays keep the results that were checked.
    if (Result<void> status = time(values, result); !status)
      return status.error();
  }
  return result;
}

} // namespace tessera::session
