//===- session/session.cpp - Compile, run and check a kernel --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/session.h"

#include "kernels/oracle/oracle.h"
#include "session/arrays.h"
#include "session/extents.h"
#include "tessera/device.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace tessera::session {

namespace {

Error usage(std::string code, std::string message) {
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

} // namespace

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
  Result<std::vector<std::vector<int64_t>>>
  compileUnseen(const kernels::Operator *given, const RunRequest &wanted,
                Assume assume);
  CompileRequest compileRequest() const;
  Result<std::vector<std::vector<int64_t>>>
  resolve(const kernels::Operator *given, const RunRequest &wanted);
  Result<void> checkNames() const;
  Result<void> makeArrays(const std::vector<std::vector<int64_t>> &extents);
  Result<void> makeArguments();
  Result<void> compile();
  Result<RunResult> run(const RunValues &values);

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
  const TensorRef *givenArray(const Slot &slot, const RunValues &values) const;
  Result<void> fill(const RunValues &values);
  kernels::GenerateOptions generation(const Slot &slot,
                                      const RunValues &values) const;
  Result<void> launch(const RunValues &values);
  Result<void> time(const RunValues &values, RunResult &result) const;
  Result<void> verify(RunResult &result);
  Arithmetic arithmetic(DType storage) const;
  Result<oracle::OracleResult> runOracle() const;
  Result<std::map<std::string, Expected>> expectations();
  Result<TensorRef> strictOutput(const Slot &slot);
  std::vector<Argument> initialArguments() const;

  /// The elements of all arrays before the launch, by slot; inputs that nothing
  /// may write stay in their own memory.
  std::vector<std::optional<Array>> initial;
  /// What the strict interpreter makes of them, filled when it is needed.
  std::vector<std::optional<Array>> strict;
};

//===----------------------------------------------------------------------===//
// Names, extents, memory
//===----------------------------------------------------------------------===//

/// Whether `name` is an optional parameter.
static bool isOptional(const kernels::Operator &op, std::string_view name) {
  Kernel kernel = op.kernel();
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.name == name)
      return parameter.optional;
  return false;
}

static Result<TraceOptions> traceOptions(const kernels::Operator &op,
                                         const RunRequest &request) {
  TraceOptions options;
  options.storage = request.dtype;
  options.tier = request.tier;
  if (std::find(op.dtypes.begin(), op.dtypes.end(), request.dtype) ==
      op.dtypes.end()) {
    std::vector<std::string_view> known;
    for (DType dtype : op.dtypes)
      known.push_back(name(dtype));
    return usage("dtype",
                 fmt::format("operator '{}' is not made for {}, expected one "
                             "of {}",
                             op.name, name(request.dtype),
                             fmt::join(known, ", ")));
  }
  options.present = request.present;
  for (const auto &[name, tensor] : request.inputs)
    if (isOptional(op, name))
      options.present.push_back(name);
  std::vector<ParameterInfo> parameters = op.kernel().parameters();
  std::vector<std::string> settable;
  for (const ParameterInfo &parameter : parameters)
    if (parameter.kind != ParameterInfo::Kind::View)
      settable.push_back(parameter.name);
  for (const auto &[name, value] : request.settings) {
    auto found = std::find_if(parameters.begin(), parameters.end(),
                              [&](const ParameterInfo &parameter) {
                                return parameter.name == name;
                              });
    if (found == parameters.end() || found->kind == ParameterInfo::Kind::View)
      return usage("set",
                   fmt::format("operator '{}' has no scalar '{}', expected {}",
                               op.name, name,
                               settable.empty()
                                   ? "none"
                                   : fmt::format("one of {}",
                                                 fmt::join(settable, ", "))));
    if (found->kind == ParameterInfo::Kind::Constant)
      options.constants[name] = value;
    else if (found->optional)
      options.present.push_back(name);
  }
  std::sort(options.present.begin(), options.present.end());
  options.present.erase(
      std::unique(options.present.begin(), options.present.end()),
      options.present.end());
  return options;
}

Result<Program> traceOperator(const kernels::Operator &op,
                              const RunRequest &request) {
  Result<TraceOptions> options = traceOptions(op, request);
  if (!options)
    return options.error();
  return Program::fromKernel(op.kernel(), *options);
}

/// Every name the user gave must be one of the program's.
Result<void> CompiledOperator::State::checkNames() const {
  std::string inputs, outputs;
  for (const Slot &slot : slots)
    (slot.isOutput ? outputs : inputs) +=
        ((slot.isOutput ? outputs : inputs).empty() ? "" : ", ") + slot.name;
  for (const auto &[name, tensor] : request.inputs) {
    const Slot *slot = findSlot(name);
    if (slot && slot->isOutput && op)
      return usage("input", fmt::format("'{}' is an output of '{}', expected "
                                        "an input: {}",
                                        name, program.name(), inputs));
    if (!slot)
      return usage("input", fmt::format("'{}' has no input '{}', expected one "
                                        "of {}",
                                        program.name(), name, inputs));
    DType expected = program.parameters()[slot->parameter].dtype;
    if (tensor.dtype != expected)
      return usage("dtype", fmt::format("input '{}': found {}, expected {}",
                                        name, tessera::name(tensor.dtype),
                                        tessera::name(expected)));
  }
  for (const auto &[output, input] : request.inPlace) {
    const Slot *to = findSlot(output), *from = findSlot(input);
    if (!to || !from || !to->isOutput || from->isOutput)
      return usage("in-place",
                   fmt::format("'{}' in the place of '{}': expected an output "
                               "({}) and an input ({})",
                               output, input, outputs, inputs));
  }
  for (const auto &[name, strides] : request.strides)
    if (!findSlot(name))
      return usage("strides", fmt::format("'{}' has no array '{}'",
                                          program.name(), name));
  if (op)
    return {};
  for (const auto &[name, value] : request.settings) {
    bool known = false;
    for (const ProgramParameter &parameter : program.parameters())
      known |= !parameter.isView && parameter.name == name;
    if (!known)
      return usage("set", fmt::format("kernel '{}' has no scalar '{}'",
                                      program.name(), name));
  }
  return {};
}

Result<void> CompiledOperator::State::makeArrays(
    const std::vector<std::vector<int64_t>> &extents) {
  int64_t total = 0;
  for (const Slot &slot : slots) {
    const ProgramParameter &parameter = program.parameters()[slot.parameter];
    int64_t bytes = sizeInBytes(parameter.dtype);
    bool tooLarge = false;
    for (int64_t extent : extents[slot.parameter])
      tooLarge |= __builtin_mul_overflow(bytes, extent, &bytes);
    tooLarge |= __builtin_add_overflow(total, bytes, &total);
    int64_t memory = cpuDevice().memoryBytes;
    if (tooLarge || (memory > 0 && total > memory))
      return Error{ErrorFamily::Unsupported, "memory.exhausted",
                   fmt::format("the arrays up to '{}' {} need {}, this machine "
                               "has {} bytes of memory",
                               slot.name,
                               describeExtents(extents[slot.parameter]),
                               tooLarge ? std::string("more than 2^63 bytes")
                                        : fmt::format("{} bytes", total),
                               memory),
                   {}};
  }
  arrays.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot &slot = slots[i];
    slot.memory = i;
    if (auto same = request.inPlace.find(slot.name);
        same != request.inPlace.end()) {
      slot.memory = static_cast<size_t>(findSlot(same->second) - slots.data());
      continue;
    }
    auto strides = request.strides.find(slot.name);
    const ProgramParameter &parameter = program.parameters()[slot.parameter];
    Result<GuardedArray> array = GuardedArray::create(
        slot.name, parameter.dtype, extents[slot.parameter],
        strides == request.strides.end() ? std::vector<int64_t>()
                                         : strides->second,
        request.edge);
    if (!array)
      return array.error();
    arrays[i].emplace(std::move(*array));
  }
  for (const Slot &slot : slots) {
    const TensorRef &view = viewOf(slot);
    const ProgramParameter &parameter = program.parameters()[slot.parameter];
    if (view.dtype != parameter.dtype ||
        view.extents != extents[slot.parameter])
      return usage("in-place", fmt::format("'{}' does not fit in the place of "
                                           "'{}'",
                                           slot.name, slots[slot.memory].name));
  }
  return {};
}

Result<void> CompiledOperator::State::makeArguments() {
  size_t nextSlot = 0;
  for (const ProgramParameter &parameter : program.parameters()) {
    if (parameter.isView) {
      arguments.push_back(viewOf(slots[nextSlot++]));
      continue;
    }
    auto given = request.settings.find(parameter.name);
    if (given == request.settings.end()) {
      if (!parameter.hasDefault)
        return usage("set", fmt::format("scalar '{}' of '{}' has no value and "
                                        "no default; give --set {}=VALUE",
                                        parameter.name, program.name(),
                                        parameter.name));
      arguments.push_back(parameter.defaultValue);
      continue;
    }
    if (const auto *number = std::get_if<double>(&given->second))
      arguments.push_back(*number);
    else if (const auto *integer = std::get_if<int64_t>(&given->second))
      arguments.push_back(*integer);
    else
      arguments.push_back(int64_t{std::get<bool>(given->second)});
  }
  return {};
}

CompileRequest CompiledOperator::State::compileRequest() const {
  CompileRequest compile;
  compile.isa = request.isa;
  compile.validate = request.validate;
  compile.stageText = request.stageText;
  return compile;
}

Result<void> CompiledOperator::State::compile() {
  if (request.backend == Backend::Interpreter)
    return {};
  Result<CompiledKernel> result =
      program.compileFor(arguments, compileRequest());
  if (!result)
    return result.error();
  kernel.emplace(std::move(*result));
  return {};
}

/// Everything up to the extents of all parameters, in order.
Result<std::vector<std::vector<int64_t>>>
CompiledOperator::State::resolve(const kernels::Operator *given,
                                 const RunRequest &wanted) {
  op = given;
  request = wanted;
  if (!op)
    program.setTier(request.tier);
  for (size_t i = 0; i < program.parameters().size(); ++i) {
    const ProgramParameter &parameter = program.parameters()[i];
    if (parameter.isView)
      slots.push_back({i, parameter.name,
                       op ? kernels::findArray(*op, parameter.name) : nullptr,
                       parameter.writable});
  }
  if (Result<void> status = checkNames(); !status)
    return status.error();
  if (!op)
    return programExtents(program, request);
  Result<kernels::Dims> resolved = operatorDims(*op, request);
  if (!resolved)
    return resolved.error();
  dims = *resolved;
  std::vector<std::vector<int64_t>> extents(program.parameters().size());
  for (const Slot &slot : slots) {
    auto array = request.inputs.find(slot.name);
    extents[slot.parameter] =
        array != request.inputs.end()
            ? array->second.extents
            : kernels::arrayExtents(*slot.info, dims, request.settings);
  }
  return extents;
}

Result<void> CompiledOperator::State::prepare(const kernels::Operator *given,
                                              const RunRequest &wanted) {
  Result<std::vector<std::vector<int64_t>>> extents = resolve(given, wanted);
  if (!extents)
    return extents.error();
  if (Result<void> status = makeArrays(*extents); !status)
    return status.error();
  if (Result<void> status = makeArguments(); !status)
    return status.error();
  return compile();
}

/// Compiles for dense arrays that are nowhere.
Result<std::vector<std::vector<int64_t>>>
CompiledOperator::State::compileUnseen(const kernels::Operator *given,
                                       const RunRequest &wanted,
                                       Assume assume) {
  Result<std::vector<std::vector<int64_t>>> extents = resolve(given, wanted);
  if (!extents)
    return extents.error();
  CompileRequest compile = compileRequest();
  compile.extents = *extents;
  if (assume == Assume::Dense)
    for (const ProgramParameter &parameter : program.parameters()) {
      const std::vector<int64_t> &own =
          (*extents)[compile.unitStride.size()];
      auto &unit = compile.unitStride.emplace_back();
      if (!parameter.isView)
        continue;
      TensorRef tensor = TensorRef::dense(nullptr, parameter.dtype, own);
      for (int64_t axis = 0; axis < tensor.rank(); ++axis)
        unit.push_back(own[axis] <= 1 || tensor.strides[axis] == 1);
    }
  Result<CompiledKernel> result = program.compile(compile);
  if (!result)
    return result.error();
  kernel.emplace(std::move(*result));
  return extents;
}

CompiledOperator::CompiledOperator(std::unique_ptr<State> state)
    : state(std::move(state)) {}
CompiledOperator::CompiledOperator(CompiledOperator &&) noexcept = default;
CompiledOperator &
CompiledOperator::operator=(CompiledOperator &&) noexcept = default;
CompiledOperator::~CompiledOperator() = default;

Result<CompiledOperator>
CompiledOperator::create(const kernels::Operator &op,
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

//===----------------------------------------------------------------------===//
// One run
//===----------------------------------------------------------------------===//

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
      if (Result<void> status =
              kernels::generate(viewOf(slot), slot.name,
                                generation(slot, values));
          !status)
        return status.error();
    }
  }
  // What a launch may overwrite is kept for the oracle.
  for (size_t i = 0; i < slots.size(); ++i) {
    bool isWritten = slots[i].isOutput;
    for (const Slot &other : slots)
      isWritten |= other.isOutput && other.memory == slots[i].memory;
    if (!isWritten)
      continue;
    Result<Array> copy = arrays[slots[i].memory]->copy();
    if (!copy)
      return copy.error();
    initial[i].emplace(std::move(*copy));
  }
  return {};
}

Result<void> CompiledOperator::State::launch(const RunValues &values) {
  if (kernel) {
    LaunchOptions options;
    options.threads = values.threads;
    options.pool = values.pool;
    return kernel->executable.launch(arguments, options);
  }
  InterpretOptions options;
  options.validateIndices = request.validate;
  options.checkRaces = options.checkBounds = request.validate;
  InterpretReport report;
  if (Result<void> status = program.interpret(arguments, options, &report);
      !status)
    return status.error();
  if (std::optional<Error> finding = report.firstFinding())
    return *finding;
  return {};
}

Result<void> CompiledOperator::State::time(const RunValues &values,
                                           RunResult &result) const {
  LaunchOptions options;
  options.threads = values.threads;
  options.pool = values.pool;
  Result<PreparedLaunch> prepared =
      kernel->executable.prepare(arguments, options);
  if (!prepared)
    return prepared.error();
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  double spent = 0;
  while (seconds.size() < 3 ||
         (spent < values.timeSeconds && seconds.size() < 1000)) {
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
      return usage("input", fmt::format("'{}' has no array '{}'",
                                        program.name(), name));
  if (Result<void> status = fill(values); !status)
    return status.error();
  std::vector<support::Hash128> before(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    if (!initial[i])
      before[i] = arrays[slots[i].memory]->hash();

  if (Result<void> status = launch(values); !status)
    return status.error();

  RunResult result;
  auto checkSurroundings = [&](const char *when) {
    for (size_t i = 0; i < slots.size(); ++i) {
      const GuardedArray &array = *arrays[slots[i].memory];
      if (!array.surroundingsIntact())
        result.problems.push_back(fmt::format(
            "bytes around array '{}' were overwritten{}", slots[i].name, when));
      if (!initial[i] && array.hash() != before[i])
        result.problems.push_back(
            fmt::format("input '{}' was changed{}", slots[i].name, when));
    }
  };
  checkSurroundings("");
  if (values.verify) {
    if (Result<void> status = verify(result); !status)
      return status.error();
  }
  // In place, every further run would begin with other values.
  if (kernel && values.timeSeconds > 0 && request.inPlace.empty()) {
    if (Result<void> status = time(values, result); !status)
      return status.error();
    if (result.problems.empty())
      checkSurroundings(" by a later run");
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

Arithmetic CompiledOperator::State::arithmetic(DType storage) const {
  Arithmetic rules = Arithmetic::forTier(storage,
                                         request.tier == Tier::Strict
                                             ? bounded::Tier::Strict
                                             : bounded::Tier::Default);
  if (kernel) {
    rules.partials = kernel->summation.partials;
    rules.extraDepth = kernel->summation.extraDepth;
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
    return Error{ErrorFamily::Internal, "verify.oracle",
                 fmt::format("operator '{}' has no oracle '{}'", op->name,
                             op->oracle),
                 {}};
  oracle::OracleArgs args;
  args.dtype = request.dtype;
  args.arithmetic = arithmetic(request.dtype);
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

Result<void> CompiledOperator::State::verify(RunResult &result) {
  Result<std::map<std::string, Expected>> expected = expectations();
  if (!expected)
    return expected.error();
  for (const Slot &slot : slots) {
    if (!slot.isOutput)
      continue;
    auto found = expected->find(slot.name);
    if (found == expected->end())
      return Error{ErrorFamily::Internal, "verify.oracle",
                   fmt::format("the oracle of '{}' makes no output '{}'",
                               program.name(), slot.name),
                   {}};
    Result<OutputResult> judged =
        judgeOutput(slot.name, viewOf(slot), found->second,
                    [&] { return strictOutput(slot); });
    if (!judged)
      return judged.error();
    result.outputs.push_back(std::move(*judged));
  }
  result.verified = true;
  return {};
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

Result<RunResult> CompiledOperator::run(const RunValues &values) {
  return state->run(values);
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
         std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputResult &output) {
                       return output.passed();
                     });
}

std::string RunResult::failures() const {
  std::string text;
  for (const std::string &problem : problems)
    text += problem + "\n";
  for (const OutputResult &output : outputs)
    if (!output.passed())
      text += fmt::format("output '{}': {} of {} elements are wrong, first {}\n",
                          output.name, output.wrong, output.elements,
                          output.firstWrong->str());
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
