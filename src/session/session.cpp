//===- session/session.cpp - Compile, run and check a kernel --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/session.h"

#include "session/state.h"

#include "fmt/format.h"

#include <algorithm>

namespace tessera::session {

CompiledOperator::CompiledOperator(std::unique_ptr<State> state)
    : state(std::move(state)) {}
CompiledOperator::CompiledOperator(CompiledOperator &&) noexcept = default;
CompiledOperator &
CompiledOperator::operator=(CompiledOperator &&) noexcept = default;
CompiledOperator::~CompiledOperator() = default;

Result<CompiledOperator> CompiledOperator::create(const kernels::Operator &op,
                                                  const RunRequest &request) {
  Result<Program> program = traceOperator(op, request);
  if (!program)
    return program.error();
  auto state = std::make_unique<State>(std::move(*program));
  if (Result<void> status = state->prepare(&op, request); !status)
    return status.error();
  return CompiledOperator(std::move(state));
}

Result<CompiledOperator> CompiledOperator::create(Program program,
                                                  const RunRequest &request) {
  auto state = std::make_unique<State>(std::move(program));
  if (Result<void> status = state->prepare(nullptr, request); !status)
    return status.error();
  return CompiledOperator(std::move(state));
}

Result<Compilation> CompiledOperator::compileOnly(Program program,
                                                  const kernels::Operator *op,
                                                  const RunRequest &request,
                                                  Assume assume) {
  State state(std::move(program));
  Result<std::vector<std::vector<int64_t>>> extents =
      state.compileUnseen(op, request, assume);
  if (!extents)
    return extents.error();
  return Compilation{std::move(state.program), std::move(*state.kernel),
                     std::move(state.dims), std::move(*extents)};
}

Result<Compilation> compileOperator(const kernels::Operator &op,
                                    const RunRequest &request, Assume assume) {
  Result<Program> program = traceOperator(op, request);
  if (!program)
    return program.error();
  return CompiledOperator::compileOnly(std::move(*program), &op, request,
                                       assume);
}

Result<Compilation> compileProgram(Program program, const RunRequest &request,
                                   Assume assume) {
  return CompiledOperator::compileOnly(std::move(program), nullptr, request,
                                       assume);
}

Result<CacheState> CompiledOperator::cacheState(Program program,
                                                const kernels::Operator *op,
                                                const RunRequest &request) {
  State state(std::move(program));
  Result<CompileRequest> compile =
      state.unseenRequest(op, request, Assume::Dense);
  if (!compile)
    return compile.error();
  return state.program.cacheState(*compile);
}

Result<CacheState> cacheStateOfOperator(const kernels::Operator &op,
                                        const RunRequest &request) {
  Result<Program> program = traceOperator(op, request);
  if (!program)
    return program.error();
  return CompiledOperator::cacheState(std::move(*program), &op, request);
}

Result<CacheState> cacheStateOfProgram(Program program,
                                       const RunRequest &request) {
  return CompiledOperator::cacheState(std::move(program), nullptr, request);
}

Result<RunResult> CompiledOperator::run(const RunValues &values) {
  return state->run(values);
}

Result<void> CompiledOperator::fill(const RunValues &values) {
  return state->fill(values);
}

Result<std::vector<OutputResult>> CompiledOperator::judge(const Arrays &outputs,
                                                          double factor) {
  return state->judge(outputs, factor);
}

Result<std::vector<double>>
CompiledOperator::race(std::span<const CompiledKernel> others, double seconds) {
  State::Kernels kernels{&*state->kernel};
  for (const CompiledKernel &other : others)
    kernels.push_back(&other);
  return state->race(kernels, seconds);
}

Result<TuneOutcome> CompiledOperator::tune(const TuneOptions &options) {
  return state->tune(options);
}

bool TuneOutcome::passed() const {
  return std::all_of(
      candidates.begin(), candidates.end(),
      [](const TuneCandidate &candidate) { return candidate.problem.empty(); });
}

const Program &CompiledOperator::program() const { return state->program; }

const CompiledKernel *CompiledOperator::compiled() const {
  return state->kernel ? &*state->kernel : nullptr;
}

std::vector<ArrayParameter> CompiledOperator::arrays() const {
  std::vector<ArrayParameter> result;
  for (const Slot &slot : state->slots)
    result.push_back({slot.name,
                      state->program.parameters()[slot.parameter].dtype,
                      slot.isOutput, state->viewOf(slot).extents});
  return result;
}

const TensorRef *CompiledOperator::array(std::string_view name) const {
  const Slot *slot = state->findSlot(name);
  return slot ? &state->viewOf(*slot) : nullptr;
}

const kernels::Dims &CompiledOperator::dims() const { return state->dims; }

bool RunResult::passed() const {
  return verified && problems.empty() &&
         std::all_of(
             outputs.begin(), outputs.end(),
             [](const OutputResult &output) { return output.passed(); });
}

std::string RunResult::failures() const {
  std::string text;
  for (const std::string &problem : problems)
    text += problem + "\n";
  for (const OutputResult &output : outputs)
    if (!output.passed())
      text += fmt::format(
          "output '{}': {} of {} elements are wrong, first {}\n", output.name,
          output.wrong, output.elements, output.firstWrong->str());
  if (!verified)
    text += "the outputs were not compared\n";
  return text;
}

Result<RunResult> runOperator(const kernels::Operator &op,
                              const RunRequest &request,
                              const RunValues &values) {
  Result<CompiledOperator> compiled = CompiledOperator::create(op, request);
  if (!compiled)
    return compiled.error();
  return compiled->run(values);
}

Result<RunResult> runProgram(Program program, const RunRequest &request,
                             const RunValues &values) {
  Result<CompiledOperator> compiled =
      CompiledOperator::create(std::move(program), request);
  if (!compiled)
    return compiled.error();
  return compiled->run(values);
}

} // namespace tessera::session
