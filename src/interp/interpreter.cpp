//===- interpreter.cpp - Reference interpreter ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/interpreter.h"

#include "interp/compiler.h"
#include "support/float_convert.h"
#include "support/launch_errors.h"

#include <cfenv>

using namespace mlir;

namespace tessera::interp {

Error Conflict::toError() const {
  std::string at = "[";
  for (int64_t index : element)
    at += (at.size() > 1 ? ", " : "") + std::to_string(index);
  std::string verb = firstWrites && secondWrites ? "write" : "access";
  return {ErrorFamily::Diagnostic, "program.race",
          "two instances of a parallel region " + verb + " element " + at +
              "] of '" + view + "', here (" +
              (secondWrites ? "write" : "read") + ", instance " +
              secondInstance + ") and at " + first.file + ":" +
              std::to_string(first.line) + ":" + std::to_string(first.column) +
              " (" + (firstWrites ? "write" : "read") + ", instance " +
              firstInstance + "); expected independent instances",
          second};
}

Error BoundsViolation::toError() const {
  return {ErrorFamily::Diagnostic, "program.out-of-bounds",
          "index " + std::to_string(index) + " on axis " +
              std::to_string(axis) + " of '" + view + "' lies outside 0 to " +
              std::to_string(extent - 1) +
              ", but the access is declared in bounds",
          where};
}

std::optional<Error> InterpretReport::firstFinding() const {
  if (!boundsViolations.empty())
    return boundsViolations.front().toError();
  if (!conflicts.empty())
    return conflicts.front().toError();
  return std::nullopt;
}

namespace {

/// The default floating-point environment for the extent of a run, whatever the
/// caller's is.
class FloatEnvironment {
public:
  FloatEnvironment() {
    std::fegetenv(&saved);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved); }
  FloatEnvironment(const FloatEnvironment &) = delete;
  FloatEnvironment &operator=(const FloatEnvironment &) = delete;

private:
  std::fenv_t saved;
};

Arithmetic defaultArithmetic(tile::KernelOp kernel, DType type) {
  return Arithmetic::forTier(type, kernel.getTier() == tile::Tier::Strict
                                       ? bounded::Tier::Strict
                                       : bounded::Tier::Default);
}

class Run {
public:
  Run(tile::KernelOp kernel, llvm::ArrayRef<Argument> arguments,
      const InterpretOptions &options, InterpretReport &report)
      : kernel(kernel), arguments(arguments), report(report),
        machine(options, report), context(machine.context) {
    context.arithmeticF32 = options.arithmeticF32
                                ? *options.arithmeticF32
                                : defaultArithmetic(kernel, DType::F32);
    context.arithmeticF64 = options.arithmeticF64
                                ? *options.arithmeticF64
                                : defaultArithmetic(kernel, DType::F64);
  }

  Result<void> run() {
    FloatEnvironment environment;
    bool ok = bindArguments() && execute();
    report.steps = context.stepsDone();
    if (!ok) {
      machine.memory.rollBack();
      return *context.error();
    }
    if (context.oracle)
      collectOutputs();
    return {};
  }

private:
  /// The arguments in order, with the checks of a compiled launch.
  bool bindArguments() {
    kernelPosition = positionOf(kernel.getLoc());
    context.where = &kernelPosition;
    unsigned parameters = kernel.getBody().getNumArguments();
    if (arguments.size() > parameters)
      return failCount();
    std::vector<View> views;
    scalars.assign(parameters, Scalar());
    for (unsigned i = 0; i < parameters; ++i) {
      auto type =
          dyn_cast<tile::ViewType>(kernel.getBody().getArgument(i).getType());
      if (!type) {
        if (!readScalar(i))
          return false;
        continue;
      }
      View view;
      view.name = kernel.getArgName(i).str();
      view.argument = i;
      view.writable = type.isWritable();
      if (!checkView(i, type, view.name))
        return false;
      view.tensor = std::get<TensorRef>(arguments[i]);
      views.push_back(std::move(view));
    }
    return machine.memory.bind(std::move(views));
  }

  bool failCount() {
    std::string names;
    unsigned parameters = kernel.getBody().getNumArguments();
    for (unsigned i = 0; i < parameters; ++i)
      names += (names.empty() ? "" : ", ") + kernel.getArgName(i).str();
    return context.fail(launcherror::count(kernel.getSymName(), parameters,
                                           names, arguments.size()));
  }

  bool checkView(unsigned i, tile::ViewType type, const std::string &name) {
    if (i >= arguments.size())
      return failCount();
    DType expected = storageType(type.getElementType());
    const auto *tensor = std::get_if<TensorRef>(&arguments[i]);
    if (!tensor)
      return context.fail(
          launcherror::scalarForView(name, type.getRank(), expected));
    if (tensor->rank() != type.getRank())
      return context.fail(
          launcherror::rank(name, tensor->rank(), type.getRank()));
    if (tensor->strides.size() != tensor->extents.size())
      return context.fail(launcherror::strideCount(name, tensor->strides.size(),
                                                   tensor->rank()));
    if (tensor->dtype != expected)
      return context.fail(launcherror::dtype(name, tensor->dtype, expected));
    for (int64_t axis = 0; axis < tensor->rank(); ++axis)
      if (tensor->extents[axis] < 0)
        return context.fail(
            launcherror::negativeExtent(name, axis, tensor->extents[axis]));
    if (std::optional<Error> error = launcherror::memory(name, *tensor))
      return context.fail(*error);
    if (type.isWritable())
      if (std::optional<Error> error = launcherror::selfOverlap(name, *tensor))
        return context.fail(*error);
    return true;
  }

  bool readScalar(unsigned i) {
    Type type = kernel.getBody().getArgument(i).getType();
    Kind kind = kindOf(type);
    std::string name = kernel.getArgName(i).str();
    if (i >= arguments.size()) {
      Attribute value = kernel.getArgDefaults()[i];
      if (isa<UnitAttr>(value))
        return failCount();
      scalars[i] = constantScalar(value, kind);
      return true;
    }
    DType dtype = storageType(type);
    if (std::holds_alternative<TensorRef>(arguments[i]))
      return context.fail(launcherror::viewForScalar(name, dtype));
    uint64_t bits = 0;
    if (Result<void> status = launcherror::storeScalar(
            name, dtype, launcherror::Number(arguments[i]), bits);
        !status)
      return context.fail(status.error());
    if (isFloat(kind))
      scalars[i] = realScalar(support::loadFloat(dtype, &bits));
    else
      scalars[i] =
          integerScalar(canonical(widthOf(kind), static_cast<int64_t>(bits)));
    return true;
  }

  bool execute() {
    Compiler compiler(machine, kernel);
    Block body;
    if (!compiler.compile(body))
      return false;
    context.where = &kernelPosition;
    for (BlockArgument argument : kernel.getBody().getArguments()) {
      if (isa<tile::ViewType>(argument.getType()))
        continue;
      Tile &tile = machine.slots[compiler.slotOf(argument)];
      if (!tile.reset(context, kindOf(argument.getType()), {}))
        return false;
      tile.set(0, scalars[argument.getArgNumber()]);
    }
    return machine.run(body);
  }

  void collectOutputs() {
    report.undecidedControl = context.undecidedControl;
    for (unsigned i = 0; i < machine.memory.size(); ++i) {
      const View &view = machine.memory.view(i);
      if (!view.writable)
        continue;
      OracleOutput output{view.argument, view.name, {}};
      std::vector<int64_t> offsets =
          offsetsOf(view.tensor.extents, view.tensor.strides);
      output.elements.reserve(offsets.size());
      for (int64_t offset : offsets) {
        output.elements.push_back(machine.memory.finalElement(i, offset));
        if (context.undecidedControl)
          output.elements.back().forget();
      }
      report.outputs.push_back(std::move(output));
    }
  }

  tile::KernelOp kernel;
  llvm::ArrayRef<Argument> arguments;
  InterpretReport &report;
  Machine machine;
  Context &context;
  SourcePosition kernelPosition;
  /// The values of the scalar parameters, by position.
  std::vector<Scalar> scalars;
};

} // namespace

Result<void> interpret(tile::KernelOp kernel,
                       llvm::ArrayRef<Argument> arguments,
                       const InterpretOptions &options,
                       InterpretReport *report) {
  InterpretReport unused;
  if (report)
    *report = {};
  else if (options.mode == Mode::Oracle)
    return Error{ErrorFamily::Internal,
                 "interpreter.report",
                 "the oracle needs a report for its results",
                 {}};
  return Run(kernel, arguments, options, report ? *report : unused).run();
}

} // namespace tessera::interp
