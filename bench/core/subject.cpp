//===- bench/core/subject.cpp - Tessera as an arm -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/subject.h"

#include "bench/core/row.h"
#include "fmt/format.h"
#include "kernels/table.h"
#include "runtime/cpu/dispatch.h"
#include "runtime/host/arguments.h"
#include "session/session.h"
#include "support/hash.h"
#include "support/timing.h"

#include <cstdlib>

namespace tessera::bench {

using nlohmann::json;

namespace {

/// What all boundaries share: the kernel and its arguments.
class SubjectProblem : public Problem {
public:
  SubjectProblem(session::Compilation compilation,
                 std::vector<Argument> arguments, int threads)
      : compilation(std::move(compilation)), arguments(std::move(arguments)) {
    options.threads = threads;
  }

  void describe(json &reply) const override {
    const CompiledKernel &kernel = compilation.kernel;
    reply["identity"] = {
        {"object", support::hashBytes(kernel.object).hex()},
        {"ir", support::hashBytes(compilation.program.text()).hex()}};
    json cold = json::object();
    for (const StageTime &time : kernel.times)
      cold[time.stage] = static_cast<int64_t>(time.seconds * 1e9);
    reply["cold"] = cold;
    reply["detail"] = {{"plan", kernel.planSummary},
                       {"objectBytes", kernel.object.size()}};
    reply["work"] = {{"bytesRead", kernel.work.bytesRead},
                     {"bytesWritten", kernel.work.bytesWritten},
                     {"flops", kernel.work.flops}};
    reply["report"] = json::parse(kernel.report, nullptr, false);
  }

protected:
  const Executable &executable() const { return compilation.kernel.executable; }

  session::Compilation compilation;
  std::vector<Argument> arguments;
  LaunchOptions options;
};

/// The stages' entries, one after another, on the calling thread.
class NativeProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;

  Result<void> bind() {
    if (Result<void> status =
            runtime::bindArguments(executable().info(), arguments, bound);
        !status)
      return status.error();
    int64_t bytes = 0;
    for (const Stage &stage : executable().info().stages)
      bytes = std::max(bytes, stage.scratchBytes);
    scratch.reset(static_cast<unsigned char *>(
        std::aligned_alloc(64, (static_cast<size_t>(bytes) + 64) / 64 * 64)));
    if (!scratch)
      return Error{ErrorFamily::Unsupported,
                   "bench.memory",
                   fmt::format("no {} bytes of scratch", bytes),
                   {}};
    return {};
  }

  int run() override {
    for (const Stage &stage : executable().info().stages)
      if (int32_t status = stage.entry(bound.data.data(), bound.strides.data(),
                                       bound.scalars.data(), 0, stage.programs,
                                       scratch.get()))
        return status;
    return 0;
  }

private:
  struct Free {
    void operator()(unsigned char *memory) const { std::free(memory); }
  };
  runtime::BoundArguments bound;
  std::unique_ptr<unsigned char, Free> scratch;
};

/// The same on all threads, through the pool.
class PreparedProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;

  Result<void> bind() {
    Result<PreparedLaunch> made = executable().prepare(arguments, options);
    if (!made)
      return made.error();
    launch.emplace(std::move(*made));
    return {};
  }

  int run() override { return launch->run().ok() ? 0 : 1; }

private:
  std::optional<PreparedLaunch> launch;
};

/// One checked launch.
class CallProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;
  Result<void> bind() { return {}; }
  int run() override {
    return executable().launch(arguments, options).ok() ? 0 : 1;
  }
};

/// Trace, plan, compile, load and the first call.
class ColdProblem : public SubjectProblem {
public:
  ColdProblem(session::Compilation compilation, std::vector<Argument> arguments,
              int threads, const kernels::Operator &op,
              session::RunRequest request)
      : SubjectProblem(std::move(compilation), std::move(arguments), threads),
        op(op), request(std::move(request)) {}
  Result<void> bind() { return {}; }
  int run() override {
    Result<session::Compilation> made = compileOperator(op, request);
    return made.ok() && made->kernel.executable.launch(arguments, options).ok()
               ? 0
               : 1;
  }

private:
  const kernels::Operator &op;
  session::RunRequest request;
};

template <typename Made, typename... Args>
Result<std::unique_ptr<Problem>> make(Args &&...args) {
  auto problem = std::make_unique<Made>(std::forward<Args>(args)...);
  if (Result<void> status = problem->bind(); !status)
    return status.error();
  return std::unique_ptr<Problem>(std::move(problem));
}

class Subject : public Arm {
public:
  json describe() override {
    return {{"name", "tessera"},
            {"version", TESSERA_VERSION},
            {"mathMode", "default tier: fused multiply-add, free order of "
                         "unordered sums, subnormals kept"},
            {"boundaries", {"native", "call", "batch", "cold"}},
            {"details", {{"isa", name(hostIsa())}}}};
  }

  Result<std::unique_ptr<Problem>>
  prepare(const json &request, const SharedMemory &memory) override {
    Result<RowSpec> row = RowSpec::fromJson(request);
    if (!row)
      return row.error();
    const kernels::Operator *op = kernels::findOperator(row->operatorName);
    if (!op)
      return Error{ErrorFamily::Unsupported,
                   "bench.operator",
                   fmt::format("there is no operator '{}'", row->operatorName),
                   {}};
    Result<std::vector<SharedArray>> arrays = requestArrays(request, memory);
    if (!arrays)
      return arrays.error();
    session::RunRequest wanted = row->runRequest();
    for (const SharedArray &array : *arrays)
      if (!array.isOutput)
        wanted.inputs.emplace(array.name, memory.view(array));
    Result<session::Compilation> compiled = compileOperator(*op, wanted);
    if (!compiled)
      return compiled.error();
    Result<std::vector<Argument>> arguments =
        bindRow(compiled->program, *row, *arrays, memory);
    if (!arguments)
      return arguments.error();
    if (row->boundary == "native" && row->threads == 1)
      return make<NativeProblem>(std::move(*compiled), std::move(*arguments),
                                 row->threads);
    if (row->boundary == "native")
      return make<PreparedProblem>(std::move(*compiled), std::move(*arguments),
                                   row->threads);
    if (row->boundary == "cold")
      return make<ColdProblem>(std::move(*compiled), std::move(*arguments),
                               row->threads, *op, wanted);
    if (row->boundary == "call" || row->boundary == "batch")
      return make<CallProblem>(std::move(*compiled), std::move(*arguments),
                               row->threads);
    return Error{ErrorFamily::Unsupported,
                 "bench.boundary",
                 fmt::format("no boundary '{}' on the CPU", row->boundary),
                 {}};
  }

private:
  static Result<std::vector<Argument>>
  bindRow(const Program &program, const RowSpec &row,
          const std::vector<SharedArray> &arrays, const SharedMemory &memory) {
    std::vector<Argument> arguments;
    for (const ProgramParameter &parameter : program.parameters()) {
      if (!parameter.isView) {
        auto set = row.settings.find(parameter.name);
        if (set == row.settings.end())
          arguments.emplace_back(parameter.defaultValue);
        else
          std::visit(
              [&](auto value) {
                arguments.emplace_back(static_cast<double>(value));
              },
              set->second);
        continue;
      }
      auto found = std::find_if(arrays.begin(), arrays.end(),
                                [&](const SharedArray &array) {
                                  return array.name == parameter.name;
                                });
      if (found == arrays.end())
        return Error{
            ErrorFamily::Usage,
            "bench.worker",
            fmt::format("the request lacks array '{}'", parameter.name),
            {}};
      arguments.emplace_back(memory.view(*found));
    }
    return arguments;
  }
};

} // namespace

std::unique_ptr<Arm> makeSubject() { return std::make_unique<Subject>(); }

} // namespace tessera::bench
