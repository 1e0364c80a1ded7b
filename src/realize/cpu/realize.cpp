//===- realize.cpp - Stage functions of a kernel --------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/realize.h"

#include "plan/plan_product.h"
#include "realize/cpu/pin_check.h"
#include "realize/cpu/realizer.h"
#include "realize/cpu/vendor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;

namespace tessera {

namespace {

class KernelRealizer {
public:
  explicit KernelRealizer(const Planning &planning)
      : planning(planning), analysis(planning.analysis),
        target(planning.target), builder(analysis.kernel->getContext()),
        kernel(analysis.kernel) {
    result.module = ModuleOp::create(kernel.getLoc());
    result.plan.kernel = kernel.getSymName().str();
    result.plan.target = target.name;
    result.plan.alias = analysis.accesses.aliasMode();
    result.plan.keeping = planning.choices.keeping;
    result.plan.passes = planning.choices.passes;
  }

  Result<RealizedKernel> run(const RealizeOptions &options) {
    if (planning.choices.vendor != Vendor::None)
      return runVendor();
    Block &body = kernel.getBody().front();
    SmallVector<tile::ParallelOp> grids(body.getOps<tile::ParallelOp>());
    if (!canSplit(body))
      grids.assign(1, tile::ParallelOp());
    for (bool checksOnly : {true, false}) {
      if (checksOnly && !(options.validate && hasDataDependentIndex()))
        continue;
      for (auto [number, grid] : llvm::enumerate(grids)) {
        std::string symbol = kernel.getSymName().str() +
                             (checksOnly ? "_check" : "_stage") +
                             std::to_string(number);
        if (std::optional<Error> error =
                emitStage(symbol, number, grid, checksOnly))
          return *error;
      }
    }
    if (std::optional<Error> error = emitPacks())
      return *error;
    if (Result<void> honoured = checkVectorAxis(); !honoured)
      return honoured.error();
    if (Result<void> honoured = checkTail(); !honoured)
      return honoured.error();
    // Planning may have said more than was done.
    if (Result<void> done = checkPins(result.module.get(), result.plan,
                                      planning.pins, analysis, target);
        !done)
      return done.error();
    return std::move(result);
  }

private:
  /// The kernel as one program that calls a library.
  Result<RealizedKernel> runVendor() {
    Result<VendorCall> call = proveProduct(analysis, planning.choices.vendor);
    if (!call)
      return call.error();
    const std::string symbol = kernel.getSymName().str() + "_stage0";
    func::FuncOp function = makeBody(symbol);
    emitVendorCall(result.module.get(), function, *call, kernel, target,
                   result.checks);
    emitEntry(symbol, function);
    StagePlan stage;
    stage.order.reasons.push_back(
        {"vendor.product", "the kernel is proved to be products of a library, "
                           "which was asked for"});
    result.plan.stages.push_back(std::move(stage));
    result.plan.vendor = std::move(*call);
    result.stages.push_back({symbol, 1, 0});
    return std::move(result);
  }

  /// A pinned vector axis must have been used somewhere.
  Result<void> checkVectorAxis() {
    const Pins &pins = planning.pins;
    if (pins.vectorAxis.empty())
      return {};
    std::string why;
    std::set<std::string> others;
    for (const StagePlan &stage : result.plan.stages)
      for (const NestPlan &nest : stage.nests) {
        if (nest.vectorDim == pins.vectorAxis)
          return {};
        if (!nest.vectorDim.empty())
          others.insert("'" + nest.vectorDim + "'");
        for (const Reason &reason : nest.reasons)
          if (nest.vectorDim.empty())
            why = "; " + reason.text;
      }
    return Error{ErrorFamily::Unsupported,
                 "unsupported.pin",
                 "schedule pin 'vector_axis' (vectorAxis in C++) cannot be "
                 "honoured: no loop nest vectorizes '" +
                     pins.vectorAxis + "'" +
                     (others.empty()
                          ? ""
                          : ", expected one of " + llvm::join(others, ", ")) +
                     why,
                 {}};
  }

  /// If there are tails, one of them must overlap where the pin says so.
  Result<void> checkTail() {
    if (planning.pins.tail != "overlap")
      return {};
    bool hasTail = false;
    for (const StagePlan &stage : result.plan.stages)
      for (const NestPlan &nest : stage.nests) {
        if (nest.tail == TailForm::Overlap)
          return {};
        hasTail |= nest.alternatives.hasTail;
      }
    if (!hasTail)
      return {};
    return Error{
        ErrorFamily::Unsupported,
        "unsupported.pin",
        "schedule pin 'tail' cannot be honoured: no loop nest has a "
        "tail whose elements may be done twice; use 'mask' or 'scalar'",
        {}};
  }

  /// Whether data can make a launch wrong: an index or an extent is read.
  bool hasDataDependentIndex() {
    bool found = false;
    kernel.walk([&](Operation *op) {
      if (std::optional<Access> access = getAccess(op))
        for (const Access::Axis &axis : access->axes)
          found |= AccessAnalysis::isDataDependent(axis);
      if (auto gather = dyn_cast<tile::GatherOp>(op))
        found |= dependsOnData(gather.getIndices());
      if (auto dim = dyn_cast<tile::DimOp>(op))
        found |= dependsOnData(dim.getExtent());
    });
    return found;
  }

  /// Whether each top-level tile.parallel can be a stage of its own: everything
  /// beside them can be computed again in each program at no cost.
  bool canSplit(Block &body) {
    SmallVector<Access> writes;
    kernel.walk([&](Operation *op) {
      if (std::optional<Access> access = getAccess(op);
          access && access->writes)
        writes.push_back(*access);
    });
    bool hasGrid = false;
    for (Operation &op : body) {
      if (isa<tile::ParallelOp>(op)) {
        hasGrid = true;
        continue;
      }
      if (isa<tile::DimOp>(op))
        continue;
      if (isDeferred(&op)) {
        if (analysis.phases.isMaterialized(op.getResult(0)))
          return false;
        continue;
      }
      if (auto load = dyn_cast<tile::LoadOp>(op)) {
        for (const Access &write : writes)
          if (analysis.accesses.mayConflict(*getAccess(load), write))
            return false;
        continue;
      }
      if (op.getNumRegions() > 0 || !isMemoryEffectFree(&op) ||
          isa<tile::ReduceOp, tile::ScanOp, tile::SortOp, tile::ContractOp,
              tile::ArgReduceOp>(op))
        return false;
    }
    return hasGrid;
  }

  /// A function with the parameters of a stage and an empty body.
  func::FuncOp makeBody(const std::string &symbol, StringRef suffix = "_body") {
    MLIRContext *context = builder.getContext();
    Type ptr = LLVM::LLVMPointerType::get(context);
    Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
    auto type = builder.getFunctionType({ptr, ptr, ptr, i64, i64, ptr}, {i32});
    builder.setInsertionPointToEnd(result.module->getBody());
    auto function = builder.create<func::FuncOp>(kernel.getLoc(),
                                                 symbol + suffix.str(), type);
    function->setAttr("llvm.linkage",
                      LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
    function.addEntryBlock();
    return function;
  }

  std::optional<Error> emitStage(const std::string &symbol, size_t number,
                                 tile::ParallelOp grid, bool checksOnly) {
    Location loc = kernel.getLoc();
    Type i32 = builder.getI32Type();
    func::FuncOp function = makeBody(symbol);
    builder.setInsertionPointToStart(&function.front());

    Realizer realizer(planning, number, builder, loc, checksOnly);
    realizer.checks = result.checks;
    VectorEmitter &emit = realizer.emit;
    Value scratch = function.getArgument(scratchArgument);
    if (checksOnly)
      builder.create<LLVM::StoreOp>(loc, emit.integer(i32, 0), scratch);
    realizer.begin(function.getArgument(0), function.getArgument(1),
                   function.getArgument(2), scratch);
    auto toIndex = [&](Value value) {
      return builder.create<arith::IndexCastOp>(loc, builder.getIndexType(),
                                                value);
    };
    int64_t programs = 1;
    Block &body = kernel.getBody().front();
    if (grid) {
      realizer.runBlock(body, grid, toIndex(function.getArgument(3)),
                        toIndex(function.getArgument(4)));
      for (Attribute dim : grid.getDims()) {
        realizer.plan.grid += (realizer.plan.grid.empty() ? "" : ", ") +
                              cast<StringAttr>(dim).getValue().str();
        std::optional<int64_t> extent =
            analysis.dims.extent(cast<StringAttr>(dim));
        if (!extent)
          realizer.fail(grid, "unsupported.dynamic-grid",
                        "the extent of the grid's dimension '" +
                            cast<StringAttr>(dim).getValue() +
                            "' is no constant below 2^63: it depends on data, "
                            "or is too large");
        if (__builtin_mul_overflow(programs, extent.value_or(0), &programs))
          realizer.fail(grid, "unsupported.grid",
                        "the grid has more than 2^63 programs");
      }
    } else {
      realizer.plan.order.reasons.push_back(
          {"programs.one", "the kernel is one program"});
      realizer.runBlock(body);
    }
    if (realizer.failure)
      return realizer.failure;
    Value status = emit.integer(i32, 0);
    if (realizer.releaseHeap() || checksOnly)
      status = builder.create<LLVM::LoadOp>(loc, i32, scratch);
    if (llvm::any_of(realizer.plan.nests,
                     [](const NestPlan &nest) { return nest.storesAround; }))
      emit.finishStoresAround();
    builder.create<func::ReturnOp>(loc, status);
    emitEntry(symbol, function);

    double jumps = 0, blockBytes = 0, busyShare = 0;
    SmallVector<double> repeats;
    for (const NestPlan &nest : realizer.plan.nests) {
      for (const RepeatedRead &read : nest.repeats)
        repeats.append({read.bytes, read.piece, double(read.rows.rows),
                        double(read.rows.bytes), double(read.rows.apart),
                        read.otherBytes});
      jumps += nest.jumps;
      blockBytes = std::max(blockBytes, nest.blockBytes);
      busyShare = std::max(busyShare, nest.busyShare);
    }
    function->setAttr(jumpsAttribute, builder.getF64FloatAttr(jumps));
    function->setAttr(blockAttribute, builder.getF64FloatAttr(blockBytes));
    function->setAttr(busyAttribute, builder.getF64FloatAttr(busyShare));
    function->setAttr(repeatsAttribute, builder.getDenseF64ArrayAttr(repeats));
    for (const Realizer::PrepackedOperand &packed : realizer.prepacked)
      packs.push_back({number, grid, packed});
    RealizedStage stage{symbol, programs, realizer.scratchBytes()};
    if (const int64_t splits = realizer.plan.order.splits; splits > 1) {
      // There are few programs: more would not be split.
      stage.programs *= splits;
      stage.workspaceZeroBytes = programs * counterBytes;
      stage.workspaceBytes =
          stage.workspaceZeroBytes + stage.programs * realizer.partBytes;
    }
    realizer.plan.programs = stage.programs;
    result.checks = realizer.checks;
    result.stages.push_back(std::move(stage));
    if (!checksOnly) {
      result.plan.stages.push_back(realizer.plan);
      llvm::append_range(result.plan.buffers, realizer.bufferSizes);
    }
    return std::nullopt;
  }

  /// The functions that pack arrays for the caller, each of which must be read
  /// by one contraction.
  std::optional<Error> emitPacks() {
    Location loc = kernel.getLoc();
    int64_t views = 0;
    for (BlockArgument argument : kernel.getBody().getArguments())
      views += isa<tile::ViewType>(argument.getType());
    for (const std::string &name : planning.choices.prepacked)
      if (llvm::count_if(packs, [&](const Packing &packing) {
            return kernel.getArgName(packing.packed.parameter) == name;
          }) != 1)
        return Error{ErrorFamily::Unsupported,
                     "prepack.not_packed",
                     "'" + name +
                         "' cannot be prepacked: no contraction takes its "
                         "vectors from it, with lanes along a dimension of "
                         "its result",
                     {}};
    for (const auto &[index, packing] : llvm::enumerate(packs)) {
      const Realizer::PrepackedOperand &packed = packing.packed;
      const std::string symbol =
          kernel.getSymName().str() + "_pack" + std::to_string(index);
      func::FuncOp function = makeBody(symbol, "_panels");
      builder.setInsertionPointToStart(&function.front());
      Realizer realizer(planning, packing.stage, builder, loc,
                        /*checksOnly=*/false);
      realizer.begin(function.getArgument(0), function.getArgument(1),
                     function.getArgument(2),
                     function.getArgument(scratchArgument));
      auto toIndex = [&](unsigned number) {
        return builder.create<arith::IndexCastOp>(loc, builder.getIndexType(),
                                                  function.getArgument(number));
      };
      Value first = toIndex(3), last = toIndex(4);
      realizer.runPacking(packing.grid, packed, views, first, last);
      if (realizer.failure)
        return realizer.failure;
      builder.create<func::ReturnOp>(
          loc, realizer.emit.integer(builder.getI32Type(), 0));
      emitEntry(symbol, function);
      result.packs.push_back({{symbol, packed.panels, realizer.scratchBytes()},
                              packed.parameter,
                              packed.spacing});
      PrepackedPlan plan;
      plan.name = kernel.getArgName(packed.parameter).str();
      tile::ParallelOp grid = packing.grid;
      for (unsigned axis : packed.along)
        plan.grid += (plan.grid.empty() ? "" : ", ") +
                     cast<StringAttr>(grid.getDims()[axis]).getValue().str();
      for (StringAttr dim : packed.panel.dims)
        plan.panel += (plan.panel.empty() ? "" : ", ") + dim.getValue().str();
      plan.panels = packed.panels;
      plan.bytes = packed.panel.bytes;
      plan.spacing = packed.spacing;
      result.plan.prepacked.push_back(std::move(plan));
    }
    return std::nullopt;
  }

  /// The exported function: runs the body under the floating-point state that
  /// docs/semantics.md asks for, and restores the caller's. A caller that has
  /// that state already, as nearly all do, is spared the switch, which costs as
  /// much as a short row; its exception flags are then raised as by its own
  /// arithmetic.
  void emitEntry(const std::string &symbol, func::FuncOp body) {
    Location loc = kernel.getLoc();
    builder.setInsertionPointToEnd(result.module->getBody());
    auto entry =
        builder.create<func::FuncOp>(loc, symbol, body.getFunctionType());
    builder.setInsertionPointToStart(entry.addEntryBlock());
    const FloatControl &control = target.floatControl;
    Type ptr = LLVM::LLVMPointerType::get(builder.getContext());
    Type type = builder.getIntegerType(control.bits);
    auto constant = [&](int64_t value) {
      return builder.create<arith::ConstantIntOp>(loc, value, type);
    };
    auto slot = [&]() -> Value {
      return builder.create<LLVM::AllocaOp>(
          loc, ptr, type, constant(1), static_cast<unsigned>(control.bits / 8));
    };
    auto intrinsic = [&](StringRef name, TypeRange results, ValueRange values) {
      return builder.create<LLVM::CallIntrinsicOp>(
          loc, results, builder.getStringAttr(name), values);
    };
    Value saved, own, state;
    if (control.throughMemory) {
      saved = slot();
      own = slot();
      intrinsic(control.read, {}, saved);
      state = builder.create<LLVM::LoadOp>(loc, type, saved);
    } else {
      state = intrinsic(control.read, type, {}).getResult(0);
    }
    Value found =
        builder.create<arith::AndIOp>(loc, state, constant(control.mask));
    Value differs = builder.create<arith::CmpIOp>(
        loc, arith::CmpIPredicate::ne, found, constant(control.standard));
    auto ifDiffers = [&](function_ref<void()> make) {
      auto ifOp = builder.create<scf::IfOp>(loc, differs,
                                            /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
      make();
    };
    ifDiffers([&] {
      if (control.throughMemory)
        builder.create<LLVM::StoreOp>(loc, constant(control.standard), own);
      else
        own = constant(control.standard);
      intrinsic(control.write, {}, own);
    });
    auto call = builder.create<func::CallOp>(loc, body, entry.getArguments());
    ifDiffers([&] {
      intrinsic(control.write, {}, control.throughMemory ? saved : state);
    });
    builder.create<func::ReturnOp>(loc, call.getResults());
  }

  const Planning &planning;
  const KernelAnalysis &analysis;
  const Target &target;
  OpBuilder builder;
  tile::KernelOp kernel;
  /// What the caller packs, for which stage.
  struct Packing {
    size_t stage;
    tile::ParallelOp grid;
    Realizer::PrepackedOperand packed;
  };
  std::vector<Packing> packs;
  RealizedKernel result;
};

} // namespace

Result<RealizedKernel> realizeForCpu(const Planning &planning,
                                     const RealizeOptions &options) {
  return KernelRealizer(planning).run(options);
}

void discard(OwningOpRef<ModuleOp> module) {
  if (!module)
    return;
  module->getOperation()->dropAllReferences();
  Block *top = module->getBody();
  SmallVector<Block *> inside;
  module->walk([&](Block *block) {
    if (block != top)
      inside.push_back(block);
  });
  for (Block *block : inside)
    top->getOperations().splice(top->end(), block->getOperations());
}

void loadRealizationDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                      scf::SCFDialect, LLVM::LLVMDialect>();
}

} // namespace tessera
