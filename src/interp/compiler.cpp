//===- compiler.cpp - Translation of a kernel: shared parts ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/compiler.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera::interp {

SourcePosition positionOf(Location location) {
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return {file.getFilename().str(), file.getLine(), file.getColumn()};
  return {};
}

Kind kindOf(Type type) {
  Type element = tile::getElement(type);
  if (element.isF32())
    return Kind::F32;
  if (element.isF64())
    return Kind::F64;
  auto integer = dyn_cast<IntegerType>(element);
  switch (integer ? integer.getWidth() : 64) {
  case 1:
    return Kind::I1;
  case 8:
    return Kind::I8;
  case 16:
    return Kind::I16;
  case 32:
    return Kind::I32;
  default:
    return Kind::I64;
  }
}

DType storageType(Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (isa<Float8E4M3FNType>(type))
    return DType::F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return DType::F8E5M2;
  auto integer = cast<IntegerType>(type);
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

Scalar constantScalar(Attribute value, Kind kind) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return realScalar(real.getValueAsDouble());
  auto integer = cast<IntegerAttr>(value);
  return integerScalar(canonical(
      widthOf(kind), static_cast<int64_t>(integer.getValue().getZExtValue())));
}

//===----------------------------------------------------------------------===//
// Data dependence
//===----------------------------------------------------------------------===//

namespace {

class DataDependence {
public:
  llvm::DenseSet<Value> run(tile::KernelOp kernel) {
    do {
      changed = false;
      kernel.getBody().walk([&](Operation *op) { visit(op); });
    } while (changed);
    return std::move(values);
  }

private:
  void mark(Value value) { changed |= values.insert(value).second; }
  void flow(Value from, Value to) {
    if (values.contains(from))
      mark(to);
  }
  bool any(ValueRange operands) {
    return llvm::any_of(operands,
                        [&](Value value) { return values.contains(value); });
  }

  void visit(Operation *op) {
    if (isa<tile::LoadOp>(op) || any(op->getOperands()))
      llvm::for_each(op->getResults(), [&](Value value) {
        if (!isa<tile::SerialOp, tile::PipelineOp, tile::FoldOp>(op))
          mark(value);
      });
    if (auto yield = dyn_cast<tile::YieldOp>(op))
      visitYield(yield);
    if (isa<tile::SerialOp, tile::PipelineOp>(op)) {
      mlir::Block &body = op->getRegion(0).front();
      for (unsigned i = 0; i < op->getNumOperands(); ++i) {
        flow(op->getOperand(i), body.getArgument(i + 1));
        flow(op->getOperand(i), op->getResult(i));
      }
    }
    if (isa<tile::FoldOp>(op) && any(op->getOperands()))
      llvm::for_each(op->getResults(), [&](Value value) { mark(value); });
    // A combining region of loaded values works on loaded values.
    bool combines = isa<tile::ReduceOp, tile::ScanOp>(op) &&
                    op->getRegion(0).getBlocks().size() == 1;
    if (combines && any(op->getOperands()))
      for (Value argument : op->getRegion(0).front().getArguments())
        mark(argument);
  }

  void visitYield(tile::YieldOp yield) {
    Operation *parent = yield->getParentOp();
    for (auto [i, value] : llvm::enumerate(yield.getValues())) {
      if (i < parent->getNumResults())
        flow(value, parent->getResult(i));
      if (isa<tile::SerialOp, tile::PipelineOp>(parent))
        flow(value, parent->getRegion(0).front().getArgument(i + 1));
    }
    auto fold = dyn_cast<tile::FoldOp>(parent);
    if (fold && any(yield.getValues()))
      for (Value argument : fold.getCombine().front().getArguments())
        mark(argument);
  }

  llvm::DenseSet<Value> values;
  bool changed = false;
};

} // namespace

llvm::DenseSet<Value> dataDependentValues(tile::KernelOp kernel) {
  return DataDependence().run(kernel);
}

//===----------------------------------------------------------------------===//
// Compiler
//===----------------------------------------------------------------------===//

Compiler::Compiler(Machine &machine, tile::KernelOp kernel)
    : machine(machine), kernel(kernel) {
  unsigned views = 0;
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    if (isa<tile::ViewType>(argument.getType()))
      viewNumbers[argument] = views++;
    else
      slotOf(argument);
  }
  if (machine.options.validateIndices)
    dataDependent = dataDependentValues(kernel);
  auto collect = [&](auto op) {
    for (unsigned axis = 0; axis < op.getAxisDims().size(); ++axis)
      if (StringAttr dim = op.getBoundDim(axis))
        bindings.push_back(
            {dimOf(dim), viewOf(op.getView()), axis, positionOf(op.getLoc())});
  };
  kernel.getBody().walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<tile::LoadOp, tile::StoreOp, tile::ScatterOp>(collect);
  });
}

bool Compiler::compile(Block &body) {
  if (!compileRegion(kernel.getBody(), body))
    return false;
  machine.slots.resize(nextSlot);
  machine.dimExtents.resize(dimNumbers.size());
  return true;
}

Slot Compiler::slotOf(Value value) {
  auto [entry, inserted] = slotNumbers.try_emplace(value, nextSlot);
  if (inserted)
    ++nextSlot;
  return entry->second;
}

llvm::SmallVector<Slot, 4> Compiler::slotsOf(ValueRange values) {
  llvm::SmallVector<Slot, 4> slots;
  for (Value value : values)
    slots.push_back(slotOf(value));
  return slots;
}

unsigned Compiler::dimOf(StringAttr name) {
  return dimNumbers.try_emplace(name, dimNumbers.size()).first->second;
}

Compiler::Dims Compiler::dimsOf(Type type) {
  Dims dims;
  for (StringAttr name : tile::getDims(type))
    dims.push_back(dimOf(name));
  return dims;
}

bool Compiler::compileRegion(Region &region, Block &block) {
  constexpr unsigned maxDepth = 200;
  if (++depth > maxDepth)
    return machine.context.fail(ErrorFamily::Unsupported, "interpreter.nesting",
                                "regions are nested deeper than " +
                                    std::to_string(maxDepth));
  Block *outer = current;
  current = &block;
  for (Operation &op : region.front())
    if (!compileOp(&op))
      return false;
  current = outer;
  --depth;
  return true;
}

bool Compiler::compileOp(Operation *op) {
  SourcePosition where = positionOf(op->getLoc());
  size_t first = current->instructions.size();
  Block *block = current;
  if (!tile::dispatchOp(op, *this, false))
    return machine.context.fail(ErrorFamily::Internal, "interpreter.op",
                                "the interpreter has no meaning for '" +
                                    op->getName().getStringRef().str() + "'");
  for (size_t i = first; i < block->instructions.size(); ++i)
    block->instructions[i].where = where;
  return true;
}

void Compiler::emit(std::function<bool()> run) {
  current->instructions.push_back({std::move(run), {}});
}

} // namespace tessera::interp
