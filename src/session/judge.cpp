//===- session/judge.cpp - What the outputs should be ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/state.h"

#include "fmt/format.h"

namespace tessera::session {

Arithmetic CompiledOperator::State::arithmetic(DType storage) const {
  Arithmetic rules = Arithmetic::forTier(storage, program.tier() == Tier::Strict
                                                      ? bounded::Tier::Strict
                                                      : bounded::Tier::Default);
  if (kernel) {
    rules.partials = kernel->summation.partials;
    rules.extraDepth = kernel->summation.extraDepth;
    rules.aboutReference = kernel->summation.aboutReference;
    rules.flushesContractions = kernel->summation.flushesContractions;
    if (kernel->summation.shifted)
      rules.allowShift();
  }
  return rules;
}

/// The arguments as they were before the launch; outputs in scratch memory.
std::vector<Argument> CompiledOperator::State::initialArguments() const {
  std::vector<Argument> result = arguments;
  for (size_t i = 0; i < slots.size(); ++i)
    result[slots[i].parameter] =
        initial[i] ? initial[i]->view() : viewOf(slots[i]);
  return result;
}

Result<oracle::OracleResult> CompiledOperator::State::runOracle() const {
  oracle::OracleFunction function = oracle::findOracle(op->oracle);
  if (!function)
    return Error{
        ErrorFamily::Internal,
        "verify.oracle",
        fmt::format("operator '{}' has no oracle '{}'", op->name, op->oracle),
        {}};
  oracle::OracleArgs args;
  args.dtype = request.dtype;
  args.arithmetic = arithmetic(request.dtype);
  args.dims = dims;
  args.pool = pool;
  args.threads = threads;
  std::vector<Argument> views = initialArguments();
  for (const Slot &slot : slots)
    if (slot.isInput())
      args.inputs[slot.name] = std::get<TensorRef>(views[slot.parameter]);
  for (const auto &[name, value] : request.settings)
    args.scalars[name] =
        std::visit([](auto v) { return static_cast<double>(v); }, value);
  return function(args);
}

Result<std::map<std::string, Expected>>
CompiledOperator::State::expectations() {
  std::map<std::string, Expected> expected;
  if (op) {
    Result<oracle::OracleResult> result = runOracle();
    if (!result)
      return result.error();
    for (auto &[name, output] : *result)
      expected[name] = {std::move(output.values), std::move(output.integers)};
    return expected;
  }
  InterpretOptions options;
  options.mode = interp::Mode::Oracle;
  options.arithmeticF32 = arithmetic(DType::F32);
  options.arithmeticF64 = arithmetic(DType::F64);
  InterpretReport report;
  if (Result<void> status =
          program.interpret(initialArguments(), options, &report);
      !status)
    return status.error();
  for (interp::OracleOutput &output : report.outputs)
    expected[output.name] = {std::move(output.elements), {}};
  return expected;
}

/// The output as the strict interpreter makes it.
Result<TensorRef> CompiledOperator::State::strictOutput(const Slot &slot) {
  if (strict.empty()) {
    strict.resize(slots.size());
    std::vector<Argument> fresh = initialArguments();
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].isOutput)
        continue;
      Result<Array> array =
          Array::allocate(initial[i]->dtype, initial[i]->extents);
      if (!array)
        return array.error();
      copyElements(initial[i]->view(), array->view());
      strict[i].emplace(std::move(*array));
      fresh[slots[i].parameter] = strict[i]->view();
    }
    if (Result<void> status = program.interpret(fresh, InterpretOptions());
        !status)
      return status.error();
  }
  return strict[static_cast<size_t>(&slot - slots.data())]->view();
}

Result<std::vector<OutputResult>>
CompiledOperator::State::judge(const Arrays &outputs, double factor) {
  if (!expected) {
    Result<std::map<std::string, Expected>> made = expectations();
    if (!made)
      return made.error();
    expected = std::move(*made);
  }
  std::vector<OutputResult> results;
  for (const Slot &slot : slots) {
    if (!slot.isOutput)
      continue;
    auto found = expected->find(slot.name);
    auto given = outputs.find(slot.name);
    if (found == expected->end() || given == outputs.end())
      return Error{ErrorFamily::Internal,
                   "verify.oracle",
                   fmt::format("output '{}' of '{}' has no {}", slot.name,
                               program.name(),
                               found == expected->end() ? "oracle" : "array"),
                   {}};
    auto strictly = [&] { return strictOutput(slot); };
    Result<OutputResult> judged =
        judgeOutput(slot.name, given->second, found->second, strictly, factor);
    if (!judged)
      return judged.error();
    results.push_back(std::move(*judged));
  }
  return results;
}

Result<void> CompiledOperator::State::verify(RunResult &result) {
  Arrays outputs;
  for (const Slot &slot : slots)
    if (slot.isOutput)
      outputs.emplace(slot.name, viewOf(slot));
  Result<std::vector<OutputResult>> judged = judge(outputs, 1);
  if (!judged)
    return judged.error();
  result.outputs = std::move(*judged);
  result.verified = true;
  return {};
}

} // namespace tessera::session
