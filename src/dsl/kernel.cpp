//===- dsl/kernel.cpp - Kernels and their tracing -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/dsl/kernel.h"

#include "dialect/tile_verify.h"
#include "dsl/context.h"
#include "dsl/signature.h"
#include "dsl/trace.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace tessera {

struct detail::KernelState {
  std::string name;
  Parameters parameters;
  Body body;
  Site where;
  Schedule pins;
  /// What is wrong with the kernel itself; empty when nothing is.
  std::string fault;
};

namespace {

/// One bound parameter of a trace.
struct Bound {
  detail::ViewState view;
  detail::Value scalar;
  bool present = true;
  Constant constant;
};

Error usage(const detail::KernelState &kernel, const char *code,
            std::string message) {
  return {ErrorFamily::Usage,
          code,
          concat("kernel '", kernel.name, "': ", message),
          {kernel.where.file, kernel.where.line, kernel.where.column}};
}

const ParameterInfo *findParameter(const detail::KernelState &kernel,
                                   const std::string &name) {
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.name == name)
      return &parameter;
  return nullptr;
}

/// What is wrong with the options for this kernel.
std::optional<Error> checkOptions(const detail::KernelState &kernel,
                                  const TraceOptions &options) {
  if (!isFloat(options.storage))
    return usage(kernel, "trace.storage",
                 concat("the storage type is ", name(options.storage),
                        ", expected a floating type"));
  for (const auto &[name, value] : options.constants) {
    const ParameterInfo *parameter = findParameter(kernel, name);
    if (!parameter || parameter->kind != ParameterInfo::Kind::Constant)
      return usage(kernel, "trace.constant",
                   concat("there is no constant '", name, "'"));
    if (!convertConstant(value, parameter->dtype.value_or(options.storage)))
      return usage(
          kernel, "trace.constant",
          concat("the value of constant '", name, "' does not fit ",
                 tessera::name(parameter->dtype.value_or(options.storage))));
  }
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.kind == ParameterInfo::Kind::Constant &&
        !parameter.defaultValue && !options.constants.count(parameter.name))
      return usage(kernel, "trace.constant",
                   concat("constant '", parameter.name,
                          "' has no value and no default"));
  for (const std::string &name : options.present) {
    const ParameterInfo *parameter = findParameter(kernel, name);
    if (!parameter || !parameter->optional)
      return usage(kernel, "trace.present",
                   concat("there is no optional parameter '", name, "'"));
  }
  return std::nullopt;
}

Attribute scheduleAttribute(Builder &builder, const Schedule &pins) {
  SmallVector<NamedAttribute> fields;
  auto integer = [&](const char *key, const std::optional<int64_t> &value) {
    if (value)
      fields.push_back(
          builder.getNamedAttr(key, builder.getI64IntegerAttr(*value)));
  };
  auto text = [&](const char *key, const std::optional<std::string> &value) {
    if (value)
      fields.push_back(
          builder.getNamedAttr(key, builder.getStringAttr(*value)));
  };
  text("vector_axis", pins.vectorAxis);
  integer("lanes", pins.lanes);
  integer("unroll", pins.unroll);
  integer("partials", pins.partials);
  if (!pins.tileSizes.empty()) {
    SmallVector<NamedAttribute> sizes;
    for (const auto &[dim, size] : pins.tileSizes)
      sizes.push_back(
          builder.getNamedAttr(dim, builder.getI64IntegerAttr(size)));
    fields.push_back(
        builder.getNamedAttr("tile_sizes", builder.getDictionaryAttr(sizes)));
  }
  text("staging", pins.staging);
  integer("stages", pins.stages);
  text("tail", pins.tail);
  integer("threads", pins.threads);
  integer("grain", pins.grain);
  return builder.getDictionaryAttr(fields);
}

Attribute tunablesAttribute(Builder &builder,
                            const std::vector<TunableInfo> &tunables) {
  SmallVector<NamedAttribute> fields;
  for (const TunableInfo &tunable : tunables)
    fields.push_back(builder.getNamedAttr(
        tunable.name,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("candidates", builder.getDenseI64ArrayAttr(
                                                    tunable.candidates)),
             builder.getNamedAttr("value",
                                  builder.getI64IntegerAttr(tunable.value))})));
  return builder.getDictionaryAttr(fields);
}

/// Warnings in MLIR's terms that reach the author only as an internal error.
Error internal(const detail::KernelState &kernel, std::string message) {
  return {
      ErrorFamily::Internal,
      "trace.invalid-ir",
      concat("kernel '", kernel.name, "' traces to invalid Tile IR: ", message),
      {kernel.where.file, kernel.where.line, kernel.where.column}};
}

} // namespace

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

namespace detail {

static const Bound &boundOf(const void *arguments, size_t index) {
  return (*static_cast<const std::vector<Bound> *>(arguments))[index];
}
ViewState Binder::view(size_t index) const {
  return boundOf(arguments, index).view;
}
detail::Value Binder::scalar(size_t index) const {
  return boundOf(arguments, index).scalar;
}
bool Binder::present(size_t index) const {
  return boundOf(arguments, index).present;
}
Constant Binder::constant(size_t index) const {
  return boundOf(arguments, index).constant;
}

/// One trace from start to end.
struct Tracer {
  const KernelState &kernel;
  const TraceOptions &options;
  TraceContext context;
  std::vector<Bound> bound;

  Tracer(const KernelState &kernel, MLIRContext &mlir,
         const TraceOptions &options)
      : kernel(kernel), options(options), context(mlir, options) {}

  /// Makes the module and its kernel; the builder stands in the body.
  OwningOpRef<ModuleOp> begin() {
    OpBuilder &builder = context.builder;
    auto module = ModuleOp::create(context.loc(kernel.where));
    module->setAttr("tile.version",
                    builder.getI64IntegerAttr(tile::textVersion));
    builder.setInsertionPointToEnd(module.getBody());
    SmallVector<Attribute> names, defaults;
    SmallVector<mlir::Type> types;
    for (const ParameterInfo &parameter : kernel.parameters)
      if (isArgument(parameter)) {
        names.push_back(builder.getStringAttr(parameter.name));
        types.push_back(typeOf(parameter));
        defaults.push_back(defaultOf(parameter, types.back()));
      }
    Operation *op = context.create(
        "tile.kernel", kernel.where, {}, {},
        {builder.getNamedAttr("sym_name", builder.getStringAttr(kernel.name)),
         builder.getNamedAttr("arg_names", builder.getArrayAttr(names)),
         builder.getNamedAttr("arg_defaults", builder.getArrayAttr(defaults)),
         builder.getNamedAttr(
             "tier", tile::TierAttr::get(&context.mlir, static_cast<tile::Tier>(
                                                            options.tier)))},
        1);
    Block *block = &op->getRegion(0).emplaceBlock();
    for (mlir::Type type : types)
      block->addArgument(type, context.loc(kernel.where));
    builder.setInsertionPointToEnd(block);
    bind(*block);
    return module;
  }

  bool isPresent(const ParameterInfo &parameter) {
    return !parameter.optional ||
           llvm::is_contained(options.present, parameter.name);
  }
  bool isArgument(const ParameterInfo &parameter) {
    return parameter.kind != ParameterInfo::Kind::Constant &&
           isPresent(parameter);
  }
  DType dtypeOf(const ParameterInfo &parameter) {
    if (parameter.dtype)
      return *parameter.dtype;
    return parameter.kind == ParameterInfo::Kind::View
               ? options.storage
               : computeType(options.storage);
  }
  mlir::Type typeOf(const ParameterInfo &parameter) {
    DType dtype = dtypeOf(parameter);
    if (parameter.kind == ParameterInfo::Kind::Scalar)
      return context.computeIRType(dtype);
    return tile::ViewType::get(
        &context.mlir, context.storageIRType(dtype), parameter.rank,
        parameter.writable ? tile::Access::Write : tile::Access::Read);
  }
  Attribute defaultOf(const ParameterInfo &parameter, mlir::Type type) {
    Builder &builder = context.builder;
    if (!parameter.defaultValue)
      return builder.getUnitAttr();
    Constant value =
        *convertConstant(*parameter.defaultValue, dtypeOf(parameter));
    if (auto *real = std::get_if<double>(&value))
      return builder.getFloatAttr(type, *real);
    if (auto *boolean = std::get_if<bool>(&value))
      return builder.getBoolAttr(*boolean);
    return builder.getIntegerAttr(type, std::get<int64_t>(value));
  }

  void bind(Block &block) {
    unsigned next = 0;
    for (const ParameterInfo &parameter : kernel.parameters) {
      Bound &entry = bound.emplace_back();
      DType dtype = dtypeOf(parameter);
      entry.present = isPresent(parameter);
      entry.view.dtype = dtype;
      entry.view.rank = parameter.rank;
      entry.view.writable = parameter.writable;
      entry.view.present = entry.present;
      if (parameter.kind == ParameterInfo::Kind::Constant) {
        auto given = options.constants.find(parameter.name);
        entry.constant = *convertConstant(given == options.constants.end()
                                              ? *parameter.defaultValue
                                              : given->second,
                                          dtype);
      } else if (entry.present) {
        detail::Value value =
            context.makeValue(block.getArgument(next++), dtype, kernel.where);
        entry.scalar = entry.view.value = value;
      }
    }
  }

  void run() {
    // The author's code may throw; nothing of ours does.
    try {
      kernel.body(Binder(&bound));
    } catch (const std::exception &exception) {
      context.error(kernel.where, "dsl.exception",
                    concat("the kernel's function throws: ", exception.what()));
    } catch (...) {
      context.error(kernel.where, "dsl.exception",
                    "the kernel's function throws");
    }
    for (const auto &[name, value] : options.tunables) {
      auto known = [&](const TunableInfo &info) { return info.name == name; };
      if (llvm::none_of(context.tunables, known))
        context.diagnostics.push_back(
            usage(kernel, "trace.tunable",
                  concat("there is no tunable '", name, "'")));
    }
    if (context.diagnostics.empty())
      checkStored();
  }

  /// An output that nothing writes would keep what the caller had in it. After
  /// an error the missing store may be the one that failed.
  void checkStored() {
    for (auto [parameter, entry] : llvm::zip(kernel.parameters, bound)) {
      if (!entry.view.writable || !entry.present)
        continue;
      mlir::Value view =
          mlir::Value::getFromOpaquePointer(entry.view.value.handle);
      if (!tile::isStored(view))
        context.error(kernel.where, "dsl.unstored",
                      concat("writable view '", parameter.name,
                             "' is never stored to; store a tile into it, or "
                             "declare it View<const ...>"));
    }
  }
};

} // namespace detail

Result<OwningOpRef<ModuleOp>> trace(const Kernel &kernel, MLIRContext &mlir,
                                    const TraceOptions &options,
                                    std::vector<Error> *diagnostics,
                                    std::vector<TunableInfo> *tunables) {
  const detail::KernelState &state = kernel.state();
  auto failed = [&](Error error) -> Error {
    if (diagnostics)
      diagnostics->push_back(error);
    return error;
  };
  if (!state.fault.empty())
    return failed({ErrorFamily::Diagnostic,
                   "dsl.signature",
                   concat("kernel '", state.name, "': ", state.fault),
                   {state.where.file, state.where.line, state.where.column}});
  if (std::optional<Error> error = checkOptions(state, options))
    return failed(*error);

  tile::loadTileDialects(mlir);
  // The module goes before the tracer, whose retired ops refer to nothing in
  // it.
  detail::Tracer tracer(state, mlir, options);
  OwningOpRef<ModuleOp> module = tracer.begin();
  tracer.run();
  if (tunables)
    *tunables = tracer.context.tunables;
  std::vector<Error> &errors = tracer.context.diagnostics;
  if (!errors.empty()) {
    Error first = errors.front();
    if (errors.size() > 1)
      first.message += concat(" (and ", errors.size() - 1, " more)");
    if (diagnostics)
      *diagnostics = errors;
    return first;
  }

  Operation *op = &module->getBody()->front();
  Builder &builder = tracer.context.builder;
  if (!state.pins.empty())
    op->setAttr("tile.schedule", scheduleAttribute(builder, state.pins));
  if (!tracer.context.tunables.empty())
    op->setAttr("tile.tunables",
                tunablesAttribute(builder, tracer.context.tunables));

  std::string messages;
  ScopedDiagnosticHandler handler(&mlir, [&](Diagnostic &diagnostic) {
    messages += (messages.empty() ? "" : "; ") +
                concat(diagnostic.getLocation(), ": ", diagnostic.str());
    return success();
  });
  if (mlir::failed(verify(*module)))
    return failed(internal(state, messages));
  return module;
}

const char *sourceFile(const Kernel &kernel) {
  return kernel.state().where.file;
}

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

Kernel makeKernel(std::string_view name, std::string_view signature,
                  detail::Parameters parameters, detail::Body body,
                  detail::Site where) {
  auto state = std::make_shared<detail::KernelState>();
  state->name = name;
  state->fault = applySignature(signature, parameters);
  // As the IR has it.
  constexpr size_t longest = 128;
  if (name.empty())
    state->fault = "the kernel has no name";
  else if (!isName(name) || name.size() > longest)
    state->fault = "this name is no name of a kernel; expected a letter or _, "
                   "then letters, digits and _, at most " +
                   std::to_string(longest);
  state->parameters = std::move(parameters);
  state->body = std::move(body);
  state->where = where;
  Kernel kernel;
  kernel.shared = std::move(state);
  return kernel;
}

const std::string &Kernel::name() const { return shared->name; }
const std::vector<ParameterInfo> &Kernel::parameters() const {
  return shared->parameters;
}
const Schedule &Kernel::schedule() const { return shared->pins; }

Kernel Kernel::schedule(Schedule pins) const {
  auto state = std::make_shared<detail::KernelState>(*shared);
  state->pins = std::move(pins);
  Kernel kernel;
  kernel.shared = std::move(state);
  return kernel;
}

Result<std::string> Kernel::text(const TraceOptions &options) const {
  MLIRContext mlir(MLIRContext::Threading::DISABLED);
  auto module = trace(*this, mlir, options);
  if (!module)
    return module.error();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream);
  return text;
}

std::vector<Error> Kernel::diagnostics(const TraceOptions &options) const {
  MLIRContext mlir(MLIRContext::Threading::DISABLED);
  std::vector<Error> diagnostics;
  (void)trace(*this, mlir, options, &diagnostics);
  return diagnostics;
}

Result<std::vector<TunableInfo>>
Kernel::tunables(const TraceOptions &options) const {
  MLIRContext mlir(MLIRContext::Threading::DISABLED);
  std::vector<TunableInfo> tunables;
  auto module = trace(*this, mlir, options, nullptr, &tunables);
  if (!module)
    return module.error();
  return tunables;
}

} // namespace tessera
