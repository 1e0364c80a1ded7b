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
#include "tessera/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

namespace tessera::bench {

using nlohmann::json;

namespace {

/// One kernel of a row and its arguments.
struct Step {
  session::Compilation compilation;
  std::vector<Argument> arguments;

  const Executable &executable() const { return compilation.kernel.executable; }
};

/// An empty folder that is gone with this.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code code;
    if (!name.empty())
      std::filesystem::remove_all(name, code);
  }

  Result<void> create() {
    std::error_code code;
    std::string pattern =
        (std::filesystem::temp_directory_path(code) / "tessera-bench-XXXXXX")
            .string();
    if (!::mkdtemp(pattern.data()))
      return Error{ErrorFamily::Unsupported,
                   "bench.folder",
                   fmt::format("cannot make the folder '{}': {}", pattern,
                               std::strerror(errno)),
                   {}};
    name = pattern;
    return {};
  }
  const std::string &path() const { return name; }

private:
  std::string name;
};

/// What all boundaries share: kernels that run one after another, mostly one,
/// and the arrays between them.
struct Steps {
  std::vector<Step> list;
  std::vector<std::unique_ptr<Array>> temporaries;
  LaunchOptions options;
};

class SubjectProblem : public Problem {
public:
  explicit SubjectProblem(Steps steps) : steps(std::move(steps)) {}

  void describe(json &reply) const override {
    support::Hasher objects, texts;
    json cold = json::object(), plans = json::array(), reports = json::array();
    WorkEstimate work;
    size_t bytes = 0;
    for (const Step &step : steps.list) {
      const CompiledKernel &kernel = step.compilation.kernel;
      objects.text(kernel.object);
      texts.text(step.compilation.program.text());
      for (const StageTime &time : kernel.times)
        cold[time.stage] = cold.value(time.stage, int64_t{0}) +
                           static_cast<int64_t>(time.seconds * 1e9);
      plans.push_back(kernel.planSummary);
      reports.push_back(json::parse(kernel.report, nullptr, false));
      work.bytesRead += kernel.work.bytesRead;
      work.bytesWritten += kernel.work.bytesWritten;
      work.flops += kernel.work.flops;
      bytes += kernel.object.size();
    }
    reply["identity"] = {{"object", objects.finish().hex()},
                         {"ir", texts.finish().hex()}};
    reply["cold"] = cold;
    reply["detail"] = {{"plans", plans}, {"objectBytes", bytes}};
    reply["work"] = {{"bytesRead", work.bytesRead},
                     {"bytesWritten", work.bytesWritten},
                     {"flops", work.flops}};
    reply["report"] = reports;
  }

protected:
  Steps steps;
};

/// The stages' entries, one after another, on the calling thread.
class NativeProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;

  Result<void> bind() {
    size_t bytes = 0;
    for (const Step &step : steps.list) {
      const ExecutableInfo &info = step.executable().info();
      bound.push_back(std::make_unique<runtime::BoundArguments>());
      if (Result<void> status =
              runtime::bindArguments(info, step.arguments, *bound.back());
          !status)
        return status.error();
      size_t shared = 0;
      for (const Stage &stage : info.stages) {
        bytes = std::max(bytes, static_cast<size_t>(stage.scratchBytes));
        shared = std::max(shared, static_cast<size_t>(stage.workspaceBytes));
        entries.push_back({stage.entry, stage.programs, bound.back().get(),
                           static_cast<size_t>(stage.workspaceZeroBytes)});
      }
      if (shared == 0)
        continue;
      workspaces.emplace_back(static_cast<unsigned char *>(
          std::aligned_alloc(64, (shared + 64) / 64 * 64)));
      if (!workspaces.back())
        return Error{ErrorFamily::Unsupported,
                     "bench.memory",
                     fmt::format("no {} bytes of workspace", shared),
                     {}};
      bound.back()->data.push_back(workspaces.back().get());
    }
    scratch.reset(static_cast<unsigned char *>(
        std::aligned_alloc(64, (bytes + 64) / 64 * 64)));
    if (!scratch)
      return Error{ErrorFamily::Unsupported,
                   "bench.memory",
                   fmt::format("no {} bytes of scratch", bytes),
                   {}};
    return {};
  }

  int run() override {
    for (const Entry &entry : entries) {
      if (entry.zeroBytes > 0)
        std::memset(entry.bound->data[entry.bound->data.size() - 1], 0,
                    entry.zeroBytes);
      if (int32_t status = entry.function(
              entry.bound->data.data(), entry.bound->strides.data(),
              entry.bound->scalars.data(), 0, entry.programs, scratch.get()))
        return status;
    }
    return 0;
  }

private:
  struct Entry {
    StageEntry function;
    int64_t programs;
    const runtime::BoundArguments *bound;
    /// Of the workspace, which is last among the addresses.
    size_t zeroBytes;
  };
  struct Free {
    void operator()(unsigned char *memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<runtime::BoundArguments>> bound;
  std::vector<Entry> entries;
  std::unique_ptr<unsigned char, Free> scratch;
  std::vector<std::unique_ptr<unsigned char, Free>> workspaces;
};

/// Prepared launches, through the pool where there are several threads.
class PreparedProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;

  Result<void> bind() {
    for (const Step &step : steps.list) {
      Result<PreparedLaunch> made =
          step.executable().prepare(step.arguments, steps.options);
      if (!made)
        return made.error();
      launches.push_back(std::move(*made));
    }
    return {};
  }

  int run() override {
    for (PreparedLaunch &launch : launches)
      if (!launch.run().ok())
        return 1;
    return 0;
  }

private:
  std::vector<PreparedLaunch> launches;
};

/// One checked launch per kernel.
class CallProblem : public SubjectProblem {
public:
  using SubjectProblem::SubjectProblem;
  Result<void> bind() { return {}; }
  int run() override {
    for (const Step &step : steps.list)
      if (!step.executable().launch(step.arguments, steps.options).ok())
        return 1;
    return 0;
  }
};

/// Trace, plan, compile, load and the first call; or trace, the look for the
/// executable on disk, load and the first call.
class ColdProblem : public SubjectProblem {
public:
  ColdProblem(Steps steps, const kernels::Operator &op,
              session::RunRequest request, ExecutableOrigin origin)
      : SubjectProblem(std::move(steps)), op(op), request(std::move(request)),
        origin(origin) {
    this->request.useDiskCache = origin == ExecutableOrigin::Disk;
  }

  /// One untimed call tells how the time is split.
  Result<void> bind() {
    if (origin == ExecutableOrigin::Disk) {
      // Of its own: what another process left there is another measurement.
      if (Result<void> status = folder.create(); !status)
        return status.error();
      ::setenv("TESSERA_CACHE_DIR", folder.path().c_str(), /*overwrite=*/1);
      if (Result<session::Compilation> made = compileOperator(op, request);
          !made)
        return made.error();
    }
    if (int status = run())
      return Error{ErrorFamily::Internal,
                   "bench.cold",
                   fmt::format("the first call returned {}", status),
                   {}};
    return {};
  }

  int run() override {
    const int status = get();
    return status ? status : launch();
  }

  // What is found on disk is timed up to what can be called: at large extents a
  // call takes longer than that.
  int timed() override {
    return origin == ExecutableOrigin::Disk ? get() : run();
  }
  int complete() override {
    return origin == ExecutableOrigin::Disk ? launch() : 0;
  }

  void describe(json &reply) const override {
    SubjectProblem::describe(reply);
    json parts{{"trace", split.trace},
               {"load", split.load},
               {"firstCall", split.firstCall}};
    if (origin == ExecutableOrigin::Disk) {
      parts["lookup"] = split.lookup;
    } else {
      parts["plan"] = split.plan;
      parts["compile"] = split.compile;
    }
    reply["cold"]["split"] = parts;
  }

private:
  int get() {
    support::Stopwatch watch;
    Result<session::Compilation> result = compileOperator(op, request);
    const int64_t whole = watch.nanoseconds();
    if (!result.ok() || result->kernel.cache.origin != origin)
      return 1;
    made.emplace(std::move(*result));
    split = {whole, 0, 0, 0, 0, 0};
    for (const StageTime &time : made->kernel.times) {
      // The parts of a stage have its name before a point.
      if (time.stage.find('.') != std::string::npos)
        continue;
      auto nanoseconds = static_cast<int64_t>(time.seconds * 1e9);
      (time.stage == "codegen" ? split.compile
       : time.stage == "load"  ? split.load
       : time.stage == "cache" ? split.lookup
                               : split.plan) += nanoseconds;
      split.trace -= nanoseconds;
    }
    return 0;
  }

  int launch() {
    support::Stopwatch watch;
    if (!made ||
        !made->kernel.executable.launch(steps.list[0].arguments, steps.options)
             .ok())
      return 1;
    split.firstCall = watch.nanoseconds();
    return 0;
  }

  /// In nanoseconds, of the last call.
  struct Split {
    int64_t trace = 0, lookup = 0, plan = 0, compile = 0, load = 0,
            firstCall = 0;
  };

  const kernels::Operator &op;
  session::RunRequest request;
  ExecutableOrigin origin;
  TemporaryFolder folder;
  std::optional<session::Compilation> made;
  Split split;
};

template <typename Made, typename... Args>
Result<std::unique_ptr<Problem>> make(Args &&...args) {
  auto problem = std::make_unique<Made>(std::forward<Args>(args)...);
  if (Result<void> status = problem->bind(); !status)
    return status.error();
  return std::unique_ptr<Problem>(std::move(problem));
}

Error malformed(std::string message) {
  return {ErrorFamily::Usage, "bench.worker", std::move(message), {}};
}

/// Arrays of a row by name; those whose name begins with '$' lie between steps.
using RowArrays = std::map<std::string, TensorRef, std::less<>>;

/// Compiles an operator and binds arrays: `names` maps its parameters.
Result<void> addStep(Steps &steps, const RowSpec &row,
                     const std::function<std::string(std::string_view)> &names,
                     const RowArrays &arrays) {
  const kernels::Operator *op = kernels::findOperator(row.operatorName);
  if (!op)
    return Error{ErrorFamily::Unsupported,
                 "bench.operator",
                 fmt::format("there is no operator '{}'", row.operatorName),
                 {}};
  session::RunRequest wanted = row.runRequest();
  Result<session::Compilation> compiled = compileOperator(*op, wanted);
  if (!compiled)
    return compiled.error();
  std::vector<Argument> arguments;
  for (const ProgramParameter &parameter : compiled->program.parameters()) {
    if (!parameter.isView) {
      auto set = row.settings.find(parameter.name);
      if (set == row.settings.end())
        std::visit([&](auto number) { arguments.emplace_back(number); },
                   parameter.defaultValue);
      else
        std::visit(
            [&](auto value) {
              arguments.emplace_back(static_cast<double>(value));
            },
            set->second);
      continue;
    }
    auto found = arrays.find(names(parameter.name));
    if (found == arrays.end())
      return malformed(
          fmt::format("the request lacks array '{}'", names(parameter.name)));
    arguments.emplace_back(found->second);
  }
  steps.list.push_back({std::move(*compiled), std::move(arguments)});
  return {};
}

/// The steps of a variant: each an operator, its dimensions in terms of the
/// row's, and its arrays in terms of the row's arrays and of arrays between
/// steps.
Result<void> addVariant(Steps &steps, const RowSpec &row, const json &list,
                        RowArrays arrays) {
  for (const json &entry : list) {
    RowSpec step = row;
    step.operatorName = entry.at("operator");
    step.settings.clear();
    step.present.clear();
    step.dims.clear();
    for (const auto &[name, value] : entry.at("dims").items()) {
      auto found = row.dims.find(value.get<std::string>());
      if (found == row.dims.end())
        return malformed(fmt::format("a step names dimension {}, which the row "
                                     "lacks",
                                     value.dump()));
      step.dims.emplace(name, found->second);
    }
    const json &given = entry.at("arrays");
    auto names = [&](std::string_view parameter) {
      return given.value(std::string(parameter), std::string(parameter));
    };
    const kernels::Operator *op = kernels::findOperator(step.operatorName);
    for (const auto &[parameter, name] : given.items()) {
      const kernels::ArrayInfo *info =
          op ? kernels::findArray(*op, parameter) : nullptr;
      if (!info || !name.get<std::string>().starts_with("$") ||
          arrays.count(name.get<std::string>()))
        continue;
      Result<Array> made = Array::allocate(
          row.dtype, kernels::arrayExtents(*info, step.dims, {}));
      if (!made)
        return made.error();
      steps.temporaries.push_back(std::make_unique<Array>(std::move(*made)));
      arrays.emplace(name.get<std::string>(), steps.temporaries.back()->view());
    }
    if (Result<void> status = addStep(steps, step, names, arrays); !status)
      return status.error();
  }
  return {};
}

class Subject : public Arm {
public:
  json describe() override {
    return {
        {"name", "tessera"},
        {"version", TESSERA_VERSION},
        {"mathMode", "default tier: fused multiply-add, free order of "
                     "unordered sums, subnormals kept"},
        {"boundaries", {"native", "prepared", "call", "batch", "cold", "disk"}},
        {"details", {{"isa", name(defaultIsa())}}}};
  }

  Result<std::unique_ptr<Problem>>
  prepare(const json &request, const SharedMemory &memory) override {
    Result<RowSpec> row = RowSpec::fromJson(request);
    if (!row)
      return row.error();
    Result<std::vector<SharedArray>> list = requestArrays(request, memory);
    if (!list)
      return list.error();
    RowArrays arrays;
    for (const SharedArray &array : *list)
      arrays.emplace(array.name, memory.view(array));
    const kernels::Operator *op = kernels::findOperator(row->operatorName);
    Steps steps;
    steps.options.threads = row->threads;
    Result<void> made =
        request.contains("steps")
            ? addVariant(steps, *row, request["steps"], arrays)
            : addStep(
                  steps, *row,
                  [](std::string_view name) { return std::string(name); },
                  arrays);
    if (!made)
      return made.error();
    // The threads of a library are set by launches.
    const bool isLibrary =
        std::any_of(steps.list.begin(), steps.list.end(), [](const Step &step) {
          return step.executable().info().vendor;
        });
    if (row->boundary == "native" && row->threads == 1 && !isLibrary)
      return make<NativeProblem>(std::move(steps));
    if (row->boundary == "native" || row->boundary == "prepared")
      return make<PreparedProblem>(std::move(steps));
    if ((row->boundary == "cold" || row->boundary == "disk") && op &&
        steps.list.size() == 1)
      return make<ColdProblem>(std::move(steps), *op, row->runRequest(),
                               row->boundary == "disk"
                                   ? ExecutableOrigin::Disk
                                   : ExecutableOrigin::Compiled);
    if (row->boundary == "call" || row->boundary == "batch")
      return make<CallProblem>(std::move(steps));
    return Error{ErrorFamily::Unsupported,
                 "bench.boundary",
                 fmt::format("no boundary '{}' on the CPU", row->boundary),
                 {}};
  }
};

} // namespace

std::unique_ptr<Arm> makeSubject() { return std::make_unique<Subject>(); }

} // namespace tessera::bench
