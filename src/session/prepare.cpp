//===- session/prepare.cpp - From a request to arguments and code ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/extents.h"
#include "session/state.h"
#include "tessera/device.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cctype>

namespace tessera::session {

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
  options.tier = request.tier.value_or(Tier::Default);
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
  if (Result<void> status = kernels::checkSettings(op, request.settings);
      !status)
    return status.error();
  options.present = request.present;
  options.tunables = request.tunables;
  for (const auto &[name, tensor] : request.inputs)
    if (isOptional(op, name))
      options.present.push_back(name);
  std::vector<ParameterInfo> parameters = op.kernel().parameters();
  std::vector<std::string> settable;
  for (const ParameterInfo &parameter : parameters)
    if (parameter.kind != ParameterInfo::Kind::View)
      settable.push_back(parameter.name);
  for (const auto &[name, value] : request.settings) {
    auto found = std::find_if(
        parameters.begin(), parameters.end(),
        [&](const ParameterInfo &parameter) { return parameter.name == name; });
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
      return usage("strides",
                   fmt::format("'{}' has no array '{}'", program.name(), name));
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
      return Error{ErrorFamily::Unsupported,
                   "memory.exhausted",
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
      arguments.push_back(
          std::visit([](auto number) { return Argument(number); },
                     parameter.defaultValue));
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
  compile.choices = request.choices;
  compile.machine = request.machine;
  compile.savedPlan = request.savedPlan;
  compile.useTunedPlans = request.useTunedPlans;
  compile.useDiskCache = request.useDiskCache;
  compile.vendor = request.vendor;
  compile.prepacked = request.prepacked;
  compile.isa = request.isa;
  compile.threads = request.threads;
  compile.validate = request.validate;
  compile.machineFacts = request.machineFacts;
  compile.command = command();
  compile.stageText = request.stageText;
  return compile;
}

/// A word of a command line as a shell needs it.
static std::string shellWord(const std::string &text) {
  bool isPlain = !text.empty() &&
                 std::all_of(text.begin(), text.end(), [](unsigned char c) {
                   return std::isalnum(c) ||
                          std::string_view("_-+=./,:@%").find(char(c)) !=
                              std::string_view::npos;
                 });
  if (isPlain)
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// The command line that compiles this again, without scalars, threads and
/// seed.
std::string CompiledOperator::State::command() const {
  std::string line = "tessera run ";
  std::string extents;
  auto addExtent = [&](std::string_view dim, int64_t extent) {
    extents +=
        fmt::format("{}{}={}", extents.empty() ? " --dims " : ",", dim, extent);
  };
  if (op) {
    for (std::string_view dim : op->dims)
      addExtent(dim, dims.find(dim)->second);
    line +=
        fmt::format("{}{} --dtype {}", op->name, extents, name(request.dtype));
  } else {
    for (const auto &[dim, extent] : request.dims)
      addExtent(dim, extent);
    line += fmt::format("{} --kernel {}{}", shellWord(program.fileName()),
                        program.name(), extents);
  }
  line += fmt::format(" --isa {}", name(request.isa));
  if (op ? program.tier() != Tier::Default : request.tier.has_value())
    line += program.tier() == Tier::Strict ? " --tier strict"
            : program.tier() == Tier::Fast ? " --tier fast"
                                           : " --tier default";
  if (!request.validate)
    line += " --no-validate";
  if (request.vendor != Vendor::None)
    line += fmt::format(" --vendor {}", name(request.vendor));
  for (const std::string &array : request.prepacked)
    line += " --prepacked " + array;
  if (request.savedPlan)
    line += " --plan " + shellWord(request.savedPlan->name);
  for (const auto &[name, file] : request.inputFiles)
    line += " --input " + shellWord(name + "=" + file);
  if (!op)
    return line;
  // What the trace fixed: constants, and the optional parameters that are
  // there.
  const Kernel source = op->kernel();
  for (const ParameterInfo &parameter : source.parameters()) {
    auto set = request.settings.find(parameter.name);
    if (parameter.kind == ParameterInfo::Kind::Constant &&
        set != request.settings.end())
      line += std::visit(
          [&](auto value) {
            return fmt::format(" --set {}={}", parameter.name, value);
          },
          set->second);
    bool isPresent = std::find(request.present.begin(), request.present.end(),
                               parameter.name) != request.present.end() ||
                     request.inputs.count(parameter.name) > 0;
    if (parameter.optional && isPresent &&
        parameter.kind == ParameterInfo::Kind::View &&
        request.inputFiles.count(parameter.name) == 0)
      line +=
          (parameter.writable ? " --output " : " --input ") + parameter.name;
  }
  return line;
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
  if (!op && request.tier)
    program.setTier(*request.tier);
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

/// An output that no op writes would be compared with what it held before.
Result<void> CompiledOperator::State::checkStored() const {
  for (const ProgramParameter &parameter : program.parameters())
    if (parameter.writable && !parameter.isStored)
      return usage("unstored",
                   fmt::format("writable view '{}' of kernel '{}' is never "
                               "stored to; store a tile into it, or declare "
                               "it read",
                               parameter.name, program.name()));
  return {};
}

Result<void> CompiledOperator::State::prepare(const kernels::Operator *given,
                                              const RunRequest &wanted) {
  Result<std::vector<std::vector<int64_t>>> extents = resolve(given, wanted);
  if (!extents)
    return extents.error();
  if (Result<void> status = checkStored(); !status)
    return status.error();
  if (Result<void> status = makeArrays(*extents); !status)
    return status.error();
  if (Result<void> status = makeArguments(); !status)
    return status.error();
  return compile();
}

/// What is compiled for dense arrays that are nowhere.
Result<CompileRequest> CompiledOperator::State::unseenRequest(
    const kernels::Operator *given, const RunRequest &wanted, Assume assume) {
  Result<std::vector<std::vector<int64_t>>> extents = resolve(given, wanted);
  if (!extents)
    return extents.error();
  CompileRequest compile = compileRequest();
  compile.extents = *extents;
  if (assume == Assume::Dense)
    for (const ProgramParameter &parameter : program.parameters()) {
      const std::vector<int64_t> &own = (*extents)[compile.unitStride.size()];
      auto &unit = compile.unitStride.emplace_back();
      if (!parameter.isView)
        continue;
      TensorRef tensor = TensorRef::dense(nullptr, parameter.dtype, own);
      for (int64_t axis = 0; axis < tensor.rank(); ++axis)
        unit.push_back(own[axis] <= 1 || tensor.strides[axis] == 1);
    }
  return compile;
}

Result<std::vector<std::vector<int64_t>>>
CompiledOperator::State::compileUnseen(const kernels::Operator *given,
                                       const RunRequest &wanted,
                                       Assume assume) {
  Result<CompileRequest> compile = unseenRequest(given, wanted, assume);
  if (!compile)
    return compile.error();
  Result<CompiledKernel> result = program.compile(*compile);
  if (!result)
    return result.error();
  kernel.emplace(std::move(*result));
  return compile->extents;
}

} // namespace tessera::session
