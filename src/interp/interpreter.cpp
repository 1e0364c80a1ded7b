//===- interpreter.cpp - Reference interpreter ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/interpreter.h"

#include "interp/compiler.h"

#include <cfenv>
#include <cmath>

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
              (secondWrites ? "write" : "read") + ") and at " + first.file +
              ":" + std::to_string(first.line) + ":" +
              std::to_string(first.column) + " (" +
              (firstWrites ? "write" : "read") +
              "); expected independent instances",
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
    bool ok = bindViews() && execute();
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
  bool fail(const char *code, std::string message) {
    return context.fail(ErrorFamily::Launch, code, std::move(message));
  }

  bool bindViews() {
    kernelPosition = positionOf(kernel.getLoc());
    context.where = &kernelPosition;
    unsigned parameters = kernel.getBody().getNumArguments();
    if (arguments.size() > parameters)
      return fail("launch.argument-count",
                  "found " + std::to_string(arguments.size()) +
                      " arguments, expected " + std::to_string(parameters));
    std::vector<View> views;
    for (unsigned i = 0; i < parameters; ++i) {
      auto type =
          dyn_cast<tile::ViewType>(kernel.getBody().getArgument(i).getType());
      if (!type)
        continue;
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

  bool checkView(unsigned i, tile::ViewType type, const std::string &name) {
    const auto *tensor =
        i < arguments.size() ? std::get_if<TensorRef>(&arguments[i]) : nullptr;
    if (!tensor)
      return fail("launch.argument-kind",
                  "'" + name + "' is a view, found " +
                      (i < arguments.size() ? "a scalar" : "no argument"));
    if (tensor->rank() != type.getRank() ||
        tensor->strides.size() != tensor->extents.size())
      return fail("launch.rank",
                  "'" + name + "' has rank " + std::to_string(tensor->rank()) +
                      ", expected " + std::to_string(type.getRank()));
    DType expected = storageType(type.getElementType());
    if (tensor->dtype != expected)
      return fail("launch.dtype",
                  "'" + name + "' has element type " +
                      std::string(tessera::name(tensor->dtype)) +
                      ", expected " + std::string(tessera::name(expected)));
    bool isEmpty = false;
    for (int64_t axis = 0; axis < tensor->rank(); ++axis) {
      isEmpty |= tensor->extents[axis] == 0;
      if (tensor->extents[axis] < 0)
        return fail("launch.negative-extent",
                    "axis " + std::to_string(axis) + " of '" + name +
                        "' has extent " +
                        std::to_string(tensor->extents[axis]) +
                        ", expected at least 0");
    }
    if (!isEmpty && !tensor->data)
      return fail("launch.null-data", "'" + name + "' has no data");
    if (type.isWritable() && overlapsItself(*tensor))
      return fail("launch.self-overlap",
                  "'" + name +
                      "' is written and has elements that overlap each other; "
                      "expected distinct elements");
    return true;
  }

  bool bindScalar(unsigned i, Slot slot) {
    Type type = kernel.getBody().getArgument(i).getType();
    Kind kind = kindOf(type);
    std::string name = kernel.getArgName(i).str();
    Tile &tile = machine.slots[slot];
    if (!tile.reset(context, kind, {}))
      return false;
    if (i >= arguments.size()) {
      Attribute value = kernel.getArgDefaults()[i];
      if (isa<UnitAttr>(value))
        return fail("launch.argument-count",
                    "'" + name + "' has no argument and no default");
      tile.set(0, constantScalar(value, kind));
      return true;
    }
    if (std::holds_alternative<TensorRef>(arguments[i]))
      return fail("launch.argument-kind",
                  "'" + name + "' is a scalar, found a view");
    const auto *integer = std::get_if<int64_t>(&arguments[i]);
    const auto *real = std::get_if<double>(&arguments[i]);
    if (isFloat(kind)) {
      double value = integer ? static_cast<double>(*integer) : *real;
      if (kind == Kind::F32)
        value =
            integer ? static_cast<float>(*integer) : static_cast<float>(value);
      tile.set(0, realScalar(value));
      return true;
    }
    int64_t value = 0;
    if (integer)
      value = *integer;
    else if (std::trunc(*real) == *real && std::fabs(*real) < 0x1p63)
      value = static_cast<int64_t>(*real);
    else
      return fail("launch.scalar", "'" + name + "' is an integer, found " +
                                       std::to_string(*real));
    if (!fits(kind, value))
      return fail("launch.scalar", "'" + name + "' is " +
                                       std::to_string(value) +
                                       ", which does not fit its " +
                                       std::to_string(widthOf(kind)) + " bits");
    tile.set(0, integerScalar(canonical(widthOf(kind), value)));
    return true;
  }

  /// True when `value` is a signed or unsigned number of the kind's width.
  static bool fits(Kind kind, int64_t value) {
    int width = widthOf(kind);
    if (width == 64)
      return true;
    int64_t smallest = width == 1 ? 0 : -(int64_t{1} << (width - 1));
    return value >= smallest && value < (int64_t{1} << width);
  }

  bool execute() {
    Compiler compiler(machine, kernel);
    Block body;
    if (!compiler.compile(body))
      return false;
    context.where = &kernelPosition;
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (!isa<tile::ViewType>(argument.getType()) &&
          !bindScalar(argument.getArgNumber(), compiler.slotOf(argument)))
        return false;
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
        output.elements.back().leftRange |= context.undecidedControl;
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
