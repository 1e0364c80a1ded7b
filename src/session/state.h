//===- session/state.h - What a compiled operator holds ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inside of CompiledOperator. prepare.cpp makes it from a request, run.cpp
// runs it and judge.cpp finds out what its outputs should be.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_STATE_H
#define TESSERA_SESSION_STATE_H

#include "kernels/oracle/oracle.h"
#include "session/arrays.h"
#include "session/session.h"

namespace tessera::session {

inline Error usage(std::string code, std::string message) {
  return {ErrorFamily::Usage, "usage." + code, std::move(message), {}};
}

/// A view parameter and its memory.
struct Slot {
  /// Position among the program's parameters.
  size_t parameter = 0;
  std::string name;
  /// Null for programs read from text.
  const kernels::ArrayInfo *info = nullptr;
  bool isOutput = false;
  /// The slot whose memory this one shares; itself if it has its own.
  size_t memory = 0;
  /// Holds what the user gave or what was generated before the run.
  bool isInput() const { return !isOutput; }
};

struct CompiledOperator::State {
  explicit State(Program program) : program(std::move(program)) {}

  const kernels::Operator *op = nullptr;
  RunRequest request;
  Program program;
  kernels::Dims dims;
  std::vector<Slot> slots;
  /// One per slot that has memory of its own.
  std::vector<std::optional<GuardedArray>> arrays;
  std::vector<Argument> arguments;
  std::optional<CompiledKernel> kernel;

  Result<void> prepare(const kernels::Operator *given,
                       const RunRequest &wanted);
  Result<CompileRequest> unseenRequest(const kernels::Operator *given,
                                       const RunRequest &wanted, Assume assume);
  Result<std::vector<std::vector<int64_t>>>
  compileUnseen(const kernels::Operator *given, const RunRequest &wanted,
                Assume assume);
  CompileRequest compileRequest() const;
  std::string command() const;
  Result<std::vector<std::vector<int64_t>>>
  resolve(const kernels::Operator *given, const RunRequest &wanted);
  Result<void> checkNames() const;
  Result<void> checkStored() const;
  Result<void> makeArrays(const std::vector<std::vector<int64_t>> &extents);
  Result<void> makeArguments();
  Result<void> compile();
  Result<RunResult> run(const RunValues &values);
  Result<void> fill(const RunValues &values);
  Result<std::vector<OutputResult>> judge(const Arrays &outputs, double factor);
  using Kernels = std::vector<const CompiledKernel *>;
  /// Calls `tick` with the seconds that are left, from time to time.
  Result<std::vector<double>>
  race(const Kernels &kernels, double seconds,
       const std::function<void(double)> &tick = {});
  Result<TuneOutcome> tune(const TuneOptions &options);

  const TensorRef &viewOf(const Slot &slot) const {
    return arrays[slot.memory]->view();
  }
  const Slot *findSlot(std::string_view name) const {
    for (const Slot &slot : slots)
      if (slot.name == name)
        return &slot;
    return nullptr;
  }

private:
  class Tuning;

  const TensorRef *givenArray(const Slot &slot, const RunValues &values) const;
  kernels::GenerateOptions generation(const Slot &slot,
                                      const RunValues &values) const;
  Result<void> launch(const RunValues &values);
  Result<std::string> checkAccesses() const;
  /// The first race or broken promise as an error that names the kernel.
  Result<void> judgeFindings(const InterpretReport &report) const;
  Result<void> time(const RunValues &values, RunResult &result);
  /// Gives written arrays the elements that they had before the launch.
  void restoreWritten(const std::vector<Argument> &views) const;
  Result<void> verify(RunResult &result);
  Arithmetic arithmetic(DType storage) const;
  Result<oracle::OracleResult> runOracle() const;
  Result<std::map<std::string, Expected>> expectations();
  Result<TensorRef> strictOutput(const Slot &slot);
  std::vector<Argument> initialArguments() const;

  /// The elements of all arrays before the launch, by slot; inputs that nothing
  /// may write stay in their own memory.
  std::vector<std::optional<Array>> initial;
  /// Whether one of those that are written began with elements of the user: a
  /// second launch would begin with others.
  bool changesItsInputs = false;
  /// The threads of the last filling, on which the oracle runs as well.
  TaskPool *pool = nullptr;
  int threads = 0;
  /// What the outputs should be, made when it is first asked for.
  std::optional<std::map<std::string, Expected>> expected;
  /// What the strict interpreter makes of them, filled when it is needed.
  std::vector<std::optional<Array>> strict;
};

} // namespace tessera::session

#endif // TESSERA_SESSION_STATE_H
