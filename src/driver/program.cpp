//===- program.cpp - A kernel from any source, ready to compile -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"

#include "dialect/specialize.h"
#include "dialect/tile_verify.h"
#include "driver/load_kernel.h"
#include "driver/program_cache.h"
#include "driver/report.h"
#include "driver/text.h"
#include "driver/tunables.h"
#include "dsl/trace.h"
#include "interp/interpreter.h"
#include "realize/cpu/realize.h"
#include "support/launch_errors.h"
#include "tessera/pool.h"

#include "llvm/Support/raw_ostream.h"

#include <chrono>

using namespace mlir;

namespace tessera {

Program::Program(std::unique_ptr<State> state) : state(std::move(state)) {}
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;
Program::~Program() = default;

static double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static DType dtypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return DType::Bool;
    case 8:
      return isUnsigned ? DType::U8 : DType::I8;
    case 16:
      return isUnsigned ? DType::U16 : DType::I16;
    case 32:
      return isUnsigned ? DType::U32 : DType::I32;
    default:
      return isUnsigned ? DType::U64 : DType::I64;
    }
  }
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(type))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return DType::F8E5M2;
  return type.isF64() ? DType::F64 : DType::F32;
}

/// Fills in what the parameters say about themselves.
static std::vector<ProgramParameter> describeParameters(tile::KernelOp kernel) {
  std::vector<ProgramParameter> parameters;
  for (auto [argument, value] :
       llvm::zip(kernel.getBody().getArguments(), kernel.getArgDefaults())) {
    ProgramParameter &parameter = parameters.emplace_back();
    parameter.name = kernel.getArgName(argument.getArgNumber()).str();
    if (auto view = dyn_cast<tile::ViewType>(argument.getType())) {
      parameter.isView = true;
      parameter.dtype = dtypeOf(view.getElementType());
      parameter.rank = view.getRank();
      parameter.writable = view.isWritable();
      parameter.isStored = tile::isStored(argument);
      continue;
    }
    parameter.dtype = dtypeOf(argument.getType());
    if (auto number = dyn_cast<FloatAttr>(value)) {
      parameter.hasDefault = true;
      parameter.defaultValue = number.getValueAsDouble();
    } else if (auto number = dyn_cast<IntegerAttr>(value)) {
      parameter.hasDefault = true;
      // The bit of a bool is no sign.
      parameter.defaultValue = parameter.dtype == DType::Bool
                                   ? int64_t(number.getValue().getZExtValue())
                                   : number.getValue().getSExtValue();
    }
  }
  return parameters;
}

/// Scalars have no sign in the IR; the author's function knows it.
static void setSigns(std::vector<ProgramParameter> &parameters,
                     const std::vector<ParameterInfo> &infos) {
  for (ProgramParameter &parameter : parameters)
    for (const ParameterInfo &info : infos) {
      if (parameter.isView || parameter.name != info.name || !info.dtype ||
          !isUnsigned(*info.dtype))
        continue;
      parameter.dtype = *info.dtype;
      if (auto *number = std::get_if<int64_t>(&parameter.defaultValue)) {
        int bits = 8 * int(sizeInBytes(parameter.dtype));
        *number &= int64_t(~uint64_t(0) >> (64 - bits));
      }
    }
}

Result<Program> Program::fromKernel(const Kernel &kernel,
                                    const TraceOptions &options) {
  auto state = std::make_unique<State>();
  Result<OwningOpRef<ModuleOp>> traced =
      trace(kernel, state->context, options, nullptr, &state->tunables);
  if (!traced)
    return traced.error();
  state->source = kernel;
  state->options = options;
  state->module = std::move(*traced);
  Program program(std::move(state));
  auto kernels = program.state->module->getOps<tile::KernelOp>();
  program.state->kernel = *kernels.begin();
  program.state->name = program.state->kernel.getSymName().str();
  program.state->parameters = describeParameters(program.state->kernel);
  setSigns(program.state->parameters, kernel.parameters());
  return program;
}

Result<Program> Program::fromText(const std::string &text,
                                  const std::string &fileName,
                                  const std::string &kernelName) {
  auto state = std::make_unique<State>();
  // What a text may hold does not depend on what is done with it.
  loadRealizationDialects(state->context);
  Result<OwningOpRef<ModuleOp>> parsed =
      parseTileText(text, fileName, state->context);
  if (!parsed)
    return parsed.error();
  state->module = std::move(*parsed);
  Result<tile::KernelOp> kernel =
      findKernel(state->module.get(), fileName, kernelName);
  if (!kernel)
    return kernel.error();
  state->kernel = *kernel;
  state->name = state->kernel.getSymName().str();
  state->fileName = fileName;
  state->parameters = describeParameters(state->kernel);
  return Program(std::move(state));
}

Result<Program> Program::fromFile(const std::string &path,
                                  const std::string &kernelName) {
  Result<std::string> text = readTextFile(path);
  if (!text)
    return text.error();
  return fromText(*text, path, kernelName);
}

const std::string &Program::name() const { return state->name; }

const std::string &Program::fileName() const { return state->fileName; }

const std::vector<ProgramParameter> &Program::parameters() const {
  return state->parameters;
}

std::vector<std::string> Program::dims() const {
  std::vector<std::string> names;
  state->kernel.walk(
      [&](tile::DimOp dim) { names.push_back(dim.getName().str()); });
  return names;
}

std::string Program::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  state->module->print(stream);
  return text + "\n";
}

Tier Program::tier() const {
  return static_cast<Tier>(state->kernel.getTier());
}

void Program::setTier(Tier tier) {
  state->kernel.setTier(static_cast<tile::Tier>(tier));
}

Result<std::vector<std::vector<int64_t>>> Program::deriveExtents(
    const std::map<std::string, int64_t> &dims,
    const std::vector<std::optional<std::vector<int64_t>>> &known) const {
  std::lock_guard lock(state->mutex);
  return tessera::deriveExtents(state->kernel, dims, known);
}

static std::string
parameterNames(const std::vector<ProgramParameter> &parameters) {
  std::string names;
  for (const ProgramParameter &parameter : parameters)
    names += (names.empty() ? "" : ", ") + parameter.name;
  return names;
}

/// Fails if the arrays together have more bytes than 63 bits count: nothing
/// that is computed of their sizes would be true.
static Result<void>
checkSizes(const std::vector<std::vector<int64_t>> &extents,
           const std::vector<ProgramParameter> &parameters) {
  int64_t total = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].isView)
      continue;
    // An array without elements has strides.
    int64_t bytes = sizeInBytes(parameters[i].dtype);
    bool tooLarge = false, isEmpty = false;
    std::string shown;
    for (int64_t extent : extents[i]) {
      shown += (shown.empty() ? "" : ", ") + std::to_string(extent);
      isEmpty |= extent == 0;
      tooLarge |= extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes);
    }
    tooLarge |= !isEmpty && __builtin_add_overflow(total, bytes, &total);
    if (tooLarge)
      return Error{ErrorFamily::Usage,
                   "usage.extents",
                   "the arrays up to '" + parameters[i].name + "' [" + shown +
                       "] have more than 2^63 bytes",
                   {}};
  }
  return {};
}

/// The request with a unit stride along the last axis where it says nothing.
static Result<CompileRequest>
completed(const CompileRequest &given, const std::string &name,
          const std::vector<ProgramParameter> &parameters) {
  CompileRequest request = given;
  if (request.extents.size() != parameters.size())
    return launcherror::count(name, parameters.size(),
                              parameterNames(parameters),
                              request.extents.size());
  if (Result<void> sizes = checkSizes(request.extents, parameters); !sizes)
    return sizes.error();
  request.unitStride.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto &unit = request.unitStride[i];
    if (unit.empty() && parameters[i].rank > 0) {
      unit.assign(parameters[i].rank, false);
      unit.back() = true;
    }
  }
  return request;
}

Result<std::vector<double>>
Program::predict(const CompileRequest &given, const PlanChoices &choices,
                 std::span<const Machine> machines) const {
  std::lock_guard lock(state->mutex);
  Result<CompileRequest> request =
      completed(given, state->name, state->parameters);
  if (!request)
    return request.error();
  loadRealizationDialects(state->context);
  OwningOpRef<ModuleOp> work = state->module->clone();
  tile::KernelOp kernel = cast<tile::KernelOp>(
      SymbolTable::lookupSymbolIn(work.get(), state->name));
  return predictForCpu(kernel, *request, choices,
                       llvm::ArrayRef(machines.data(), machines.size()));
}

namespace {
/// The module with the values of open tunables that a saved plan has or that
/// are chosen.
struct TunedModule {
  /// Null where the program's own will do.
  OwningOpRef<ModuleOp> module;
  std::vector<std::pair<std::string, int64_t>> values;
  std::vector<TunableCandidate> candidates;
};
} // namespace

static Result<TunedModule> withTunables(Program::State &state,
                                        const CompileRequest &request) {
  TunedModule made;
  if (!state.source || state.tunables.empty())
    return made;
  // A library has its own blocks.
  if (request.vendor != Vendor::None && !request.savedPlan)
    return made;
  if (!request.savedPlan) {
    std::optional<TunableChoice> choice = chooseTunables(
        *state.source, state.options, state.tunables, state.context, request);
    if (!choice)
      return made;
    made.module = std::move(choice->module);
    made.candidates = std::move(choice->candidates);
    for (const TunableCandidate &candidate : made.candidates)
      if (candidate.code == "chosen")
        made.values = candidate.values;
    return made;
  }
  Result<SavedPlan> saved = readPlan(*request.savedPlan);
  if (!saved)
    return saved.error();
  TraceOptions options = state.options;
  for (const auto &[name, value] : saved->subject.tunables)
    if (llvm::any_of(state.tunables, [&](const TunableInfo &tunable) {
          return tunable.name == name;
        }))
      options.tunables.insert({name, value});
  made.values.assign(options.tunables.begin(), options.tunables.end());
  Result<OwningOpRef<ModuleOp>> traced =
      trace(*state.source, state.context, options);
  if (!traced) {
    // With the author's values the kernel was traced before.
    Error error = traced.error();
    std::string values;
    for (const auto &[name, value] : options.tunables)
      values +=
          (values.empty() ? "" : ",") + name + "=" + std::to_string(value);
    error.message = "plan '" + saved->name + "': tunables: with " + values +
                    ": " + error.message;
    return error;
  }
  made.module = std::move(*traced);
  return made;
}

/// What a compilation assumes of a request whose extents are known.
static Result<CompileRequest> admitted(const Program::State &state,
                                       const CompileRequest &given) {
  Result<CompileRequest> complete =
      completed(given, state.name, state.parameters);
  if (!complete)
    return complete.error();
  CompileRequest &request = *complete;
  if (request.threads <= 0)
    request.threads = defaultTaskPool().threads();
  for (const std::string &name : request.prepacked) {
    auto known =
        llvm::find_if(state.parameters, [&](const ProgramParameter &parameter) {
          return parameter.isView && parameter.name == name;
        });
    if (known == state.parameters.end() || known->isStored)
      return Error{ErrorFamily::Usage,
                   "usage.prepacked",
                   "'" + name +
                       "' is to be prepacked, expected an array that "
                       "kernel '" +
                       state.name + "' reads",
                   {}};
  }
  if (request.vendor != Vendor::None && !request.prepacked.empty())
    return Error{ErrorFamily::Usage,
                 "usage.prepacked",
                 "a library is asked for, which takes no prepacked arrays; "
                 "leave out one of them",
                 {}};
  return complete;
}

namespace {
/// A kernel and what is needed to keep it on disk.
struct Made {
  CompiledKernel kernel;
  PipelineResult pipeline;
  ChosenTrace chosen;
};
} // namespace

/// Everything from tunables to loaded code.
static Result<Made> make(Program::State &state, const CompileRequest &request) {
  loadRealizationDialects(state.context);
  auto start = std::chrono::steady_clock::now();
  Result<TunedModule> tuned = withTunables(state, request);
  if (!tuned)
    return tuned.error();
  const double choosing = secondsSince(start);
  // Compilation specializes a copy.
  OwningOpRef<ModuleOp> work =
      tuned->module ? std::move(tuned->module)
                    : OwningOpRef<ModuleOp>(state.module->clone());
  tile::KernelOp kernel =
      cast<tile::KernelOp>(SymbolTable::lookupSymbolIn(work.get(), state.name));
  kernel.setTier(state.kernel.getTier());
  ChosenTrace chosen;
  if (request.useDiskCache && !tuned->values.empty())
    chosen = {tuned->values, traceHash(kernel)};
  Result<PipelineResult> compiled = compileForCpu(kernel, request);
  if (!compiled)
    return compiled.error();
  compiled->tunables = std::move(tuned->candidates);
  if (!compiled->tunables.empty())
    compiled->times.insert(compiled->times.begin(), {"tunables", choosing});

  start = std::chrono::steady_clock::now();
  Result<ExecutableInfo> info =
      loadKernel(state.name, state.parameters, request,
                 {compiled->object, compiled->stages, compiled->packs,
                  compiled->checks, compiled->plan.vendor});
  if (!info)
    return info.error();
  compiled->times.push_back({"load", secondsSince(start)});
  std::string report = makeReport(*compiled, *info, kernel, request);
  CompiledKernel made{Executable(std::move(*info))};
  made.object = compiled->object;
  made.plan = std::make_shared<const Plan>(compiled->plan);
  made.subject = std::make_shared<const PlanSubject>(compiled->subject);
  made.planSource = compiled->planSource;
  made.planSummary = compiled->plan.summary();
  made.times = compiled->times;
  made.report = std::move(report);
  made.summation = compiled->facts.summation;
  made.work = compiled->facts.work;
  return Made{std::move(made), std::move(*compiled), std::move(chosen)};
}

Result<CompiledKernel> Program::compile(const CompileRequest &given) const {
  std::lock_guard lock(state->mutex);
  Result<CompileRequest> request = admitted(*state, given);
  if (!request)
    return request.error();
  std::string whyNot =
      request->useDiskCache ? whyUncached(*request) : "it is not asked for";
  if (!whyNot.empty()) {
    request->useDiskCache = false;
    Result<Made> made = make(*state, *request);
    if (!made)
      return made.error();
    made->kernel.cache.whyCompiled = made->kernel.cache.whyNotKept = whyNot;
    return std::move(made->kernel);
  }
  auto start = std::chrono::steady_clock::now();
  const CacheKey key = programKey(*state, *request);
  CacheLookup lookup = findCurrent(*state, *request, key);
  if (lookup.entry) {
    const double seconds = secondsSince(start);
    start = std::chrono::steady_clock::now();
    Result<CompiledKernel> loaded =
        loadCached(*state, *request, std::move(*lookup.entry));
    if (loaded) {
      loaded->times = {{"cache", seconds}, {"load", secondsSince(start)}};
      return loaded;
    }
    dropExecutable(key);
    lookup.reason = "its object cannot be loaded: " + loaded.error().message;
  }
  Result<Made> made = make(*state, *request);
  if (!made)
    return made.error();
  CompileRecord &record = made->kernel.cache;
  record.key = key.name();
  record.whyCompiled = lookup.reason;
  record.whyNotKept =
      keepCompiled(key, *request, made->pipeline, made->kernel, made->chosen);
  return std::move(made->kernel);
}

Result<CacheState> Program::cacheState(const CompileRequest &given) const {
  std::lock_guard lock(state->mutex);
  Result<CompileRequest> request = admitted(*state, given);
  if (!request)
    return request.error();
  CacheState result;
  result.reason = whyUncached(*request);
  if (!result.reason.empty())
    return result;
  const CacheKey key = programKey(*state, *request);
  CacheLookup lookup = findCurrent(*state, *request, key);
  result.key = key.name();
  result.isHit = lookup.entry.has_value();
  result.reason = std::move(lookup.reason);
  if (std::optional<NearestExecutable> nearest = nearestExecutable(key)) {
    result.path = std::move(nearest->path);
    result.differences = std::move(nearest->differences);
  }
  return result;
}

Result<CompiledKernel> Program::compileFor(std::span<const Argument> arguments,
                                           CompileRequest request) const {
  request.extents.clear();
  request.unitStride.clear();
  // What a launch says of them, before their extents are taken for granted.
  const std::vector<ProgramParameter> &parameters = state->parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ProgramParameter &parameter = parameters[i];
    if (i >= arguments.size()) {
      if (parameter.isView || !parameter.hasDefault)
        return launcherror::count(state->name, parameters.size(),
                                  parameterNames(parameters), arguments.size());
      continue;
    }
    bool isView = std::holds_alternative<TensorRef>(arguments[i]);
    if (isView && !parameter.isView)
      return launcherror::viewForScalar(parameter.name, parameter.dtype);
    if (!isView && parameter.isView)
      return launcherror::scalarForView(parameter.name, parameter.rank,
                                        parameter.dtype);
  }
  std::vector<const TensorRef *> views;
  for (const Argument &argument : arguments) {
    auto &extents = request.extents.emplace_back();
    auto &unit = request.unitStride.emplace_back();
    const auto *view = std::get_if<TensorRef>(&argument);
    if (!view)
      continue;
    views.push_back(view);
    extents = view->extents;
    for (int64_t axis = 0; axis < view->rank(); ++axis)
      unit.push_back(view->extents[axis] <= 1 || view->strides[axis] == 1);
  }
  request.extents.resize(state->parameters.size());
  request.unitStride.resize(state->parameters.size());
  // The fallback forms are compiled only for calls that need them.
  size_t number = 0;
  std::vector<std::pair<const TensorRef *, bool>> known;
  for (const ProgramParameter &parameter : state->parameters)
    if (parameter.isView && number < views.size())
      known.push_back({views[number++], parameter.writable});
  for (auto &[view, writable] : known)
    for (auto &[other, otherWritable] : known) {
      if (view == other || !writable || !mayOverlap(*view, *other))
        continue;
      bool same =
          view->data == other->data && view->extents == other->extents &&
          view->strides == other->strides && view->dtype == other->dtype;
      AliasMode needed = same ? AliasMode::InPlace : AliasMode::Overlap;
      request.alias = std::max(request.alias, needed);
    }
  return compile(request);
}

Result<void> Program::interpret(std::span<const Argument> arguments,
                                const InterpretOptions &options,
                                InterpretReport *report) const {
  std::lock_guard lock(state->mutex);
  // The interpreter sees scalars as the IR has them, without a sign.
  std::vector<Argument> bits(arguments.begin(), arguments.end());
  for (auto [parameter, argument] : llvm::zip(state->parameters, bits)) {
    if (parameter.isView || !isUnsigned(parameter.dtype) ||
        std::holds_alternative<TensorRef>(argument))
      continue;
    uint64_t slot = 0;
    if (Result<void> status =
            launcherror::storeScalar(parameter.name, parameter.dtype,
                                     launcherror::Number(argument), slot);
        !status)
      return status.error();
    argument =
        llvm::SignExtend64(slot, 8 * unsigned(sizeInBytes(parameter.dtype)));
  }
  return tessera::interpret(state->kernel, bits, options, report);
}

} // namespace tessera
