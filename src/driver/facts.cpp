//===- facts.cpp - What can be counted in a compiled kernel ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/facts.h"

#include "codegen/cpu/math_accuracy.h"
#include "realize/cpu/realize.h"
#include "target/contraction_atoms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

namespace {

/// Counts elements and operations of the kernel as the author wrote it.
class WorkCounter {
public:
  WorkCounter(tile::KernelOp kernel, const KernelAnalysis &analysis,
              const std::vector<std::vector<int64_t>> &extents)
      : kernel(kernel), analysis(analysis), extents(extents) {}

  WorkEstimate run() {
    WorkEstimate work;
    llvm::MapVector<unsigned, double> read, written;
    kernel.walk([&](Operation *op) {
      if (std::optional<Access> access = getAccess(op)) {
        double elements = repetitions(op) * accessElements(*access);
        (access->writes ? written : read)[access->view.getArgNumber()] +=
            elements;
        return;
      }
      work.flops += repetitions(op) * operations(op);
    });
    for (auto [view, elements] : read)
      work.bytesRead += viewBytes(view, elements);
    for (auto [view, elements] : written)
      work.bytesWritten += viewBytes(view, elements);
    return work;
  }

  Traffic traffic() {
    const WorkEstimate work = run();
    Traffic traffic{double(work.bytesRead), double(work.bytesWritten)};
    llvm::MapVector<unsigned, double> byEach;
    kernel.walk([&](tile::LoadOp load) {
      const Access access = *getAccess(load);
      const double elements = repetitions(load) * accessElements(access);
      Type element = access.viewType().getElementType();
      traffic.readByPrograms +=
          elements * double((element.getIntOrFloatBitWidth() + 7) / 8);
      if (auto parallel = load->getParentOfType<tile::ParallelOp>();
          parallel && isSameForAll(access, parallel))
        byEach[access.view.getArgNumber()] +=
            elements / std::max(programsOf(parallel), 1.0);
    });
    for (auto [view, elements] : byEach)
      traffic.readByEach += double(viewBytes(view, elements));
    return traffic;
  }

private:
  double extentOf(StringAttr dim) const {
    return double(analysis.dims.extent(dim).value_or(1));
  }

  double elementsOf(Type type) const {
    double elements = 1;
    for (StringAttr dim : tile::getDims(type))
      elements *= extentOf(dim);
    return elements;
  }

  double accessElements(const Access &access) const {
    Value value;
    if (auto load = dyn_cast<tile::LoadOp>(access.op))
      value = load.getResult();
    else if (auto store = dyn_cast<tile::StoreOp>(access.op))
      value = store.getValue();
    else
      value = cast<tile::ScatterOp>(access.op).getValue();
    return elementsOf(value.getType());
  }

  /// No view is moved more than once.
  int64_t viewBytes(unsigned view, double elements) {
    double all = 1;
    for (int64_t extent : extents[view])
      all *= double(extent);
    Type element =
        cast<tile::ViewType>(kernel.getBody().getArgument(view).getType())
            .getElementType();
    int64_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
    return int64_t(std::min(std::min(elements, all) * double(bytes), 0x1p62));
  }

  /// How often the op runs.
  double repetitions(Operation *op) const {
    double times = 1;
    for (Operation *parent = op->getParentOp(); parent && parent != kernel;
         parent = parent->getParentOp()) {
      if (auto parallel = dyn_cast<tile::ParallelOp>(parent)) {
        times *= programsOf(parallel);
      } else if (isa<tile::SerialOp, tile::PipelineOp, tile::FoldOp>(parent)) {
        times *= extentOf(parent->getAttrOfType<StringAttr>("dim"));
      }
    }
    return times;
  }

  double programsOf(tile::ParallelOp parallel) const {
    double programs = 1;
    for (Attribute dim : parallel.getDims())
      programs *= extentOf(cast<StringAttr>(dim));
    return programs;
  }

  /// Whether all programs read the same elements.
  static bool isSameForAll(const Access &access, tile::ParallelOp parallel) {
    return llvm::none_of(access.axes, [&](const Access::Axis &axis) {
      return axis.offset ||
             (axis.dim && llvm::is_contained(parallel.getDims(), axis.dim));
    });
  }

  double operations(Operation *op) const {
    if (op->getNumResults() == 0)
      return 0;
    Type type = op->getResult(0).getType();
    if (auto contract = dyn_cast<tile::ContractOp>(op)) {
      double products = elementsOf(type);
      for (Attribute dim : contract.getOver())
        products *= extentOf(cast<StringAttr>(dim));
      return isa<FloatType>(tile::getElement(type)) ? 2 * products : 0;
    }
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      type = reduce.getInputs()[0].getType();
    if (!isa<FloatType>(tile::getElement(type)))
      return 0;
    if (isa<math::FmaOp>(op))
      return 2 * elementsOf(type);
    if (isa<tile::ReduceOp, tile::ScanOp, tile::MaxNumOp, tile::MinNumOp,
            tile::SigmoidOp, arith::AddFOp, arith::SubFOp, arith::MulFOp,
            arith::DivFOp, arith::MaximumFOp, arith::MinimumFOp>(op) ||
        isa_and_nonnull<math::MathDialect>(op->getDialect()))
      return elementsOf(type);
    return 0;
  }

  tile::KernelOp kernel;
  const KernelAnalysis &analysis;
  const std::vector<std::vector<int64_t>> &extents;
};

} // namespace

WorkEstimate estimateWork(tile::KernelOp kernel, const KernelAnalysis &analysis,
                          const std::vector<std::vector<int64_t>> &extents) {
  return WorkCounter(kernel, analysis, extents).run();
}

Traffic trafficOf(tile::KernelOp kernel, const KernelAnalysis &analysis,
                  const std::vector<std::vector<int64_t>> &extents) {
  return WorkCounter(kernel, analysis, extents).traffic();
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

SummationPlan summationOf(const Plan &plan) {
  std::optional<SummationPlan> result;
  auto take = [&](int64_t partials, int64_t extraDepth) {
    if (!result) {
      result = SummationPlan{partials, extraDepth};
      return;
    }
    result->partials = std::min(result->partials, partials);
    result->extraDepth = std::max(result->extraDepth, extraDepth);
  };
  for (const StagePlan &stage : plan.stages)
    for (const NestPlan &nest : stage.nests) {
      StringRef roots = nest.roots;
      const auto [first, last] = stage.order.splitNests;
      if (!roots.contains("reduce add") && !roots.contains("reduce custom") &&
          !roots.contains("contract") && !roots.contains("scan"))
        continue;
      // Reduced dimensions carry a plus sign in the nest's space.
      SmallVector<StringRef> space, reduced;
      StringRef(nest.space).split(space, ", ");
      for (StringRef dim : space)
        if (dim.consume_front("+"))
          reduced.push_back(dim);
      bool alongLanes = !nest.vectorDim.empty() && reduced.size() == 1 &&
                        reduced[0] == nest.vectorDim &&
                        !roots.contains("reduce custom") &&
                        !roots.contains("contract") && !roots.contains("scan");
      if (!alongLanes) {
        take(1, 0);
        continue;
      }
      // The vectors that do not fill an iteration and the tail go to the first
      // partial sum of each lane; parts are added up one after another.
      int64_t tail = nest.tail == TailForm::Scalar ? nest.lanes : 1;
      const bool isShared = nest.id >= first && nest.id <= last;
      take(nest.partials,
           nest.unroll + tail + (isShared ? stage.order.splits - 1 : 0));
    }
  SummationPlan sums = result.value_or(SummationPlan());
  for (const StagePlan &stage : plan.stages)
    for (const NestPlan &nest : stage.nests) {
      sums.shifted |= nest.law == rowOf(Law::Shift).name;
      sums.aboutReference |= nest.law == rowOf(Law::Powers).name;
      if (const ContractionAtom *atom = findAtom(nest.atom))
        sums.flushesContractions |= atom->flushesSubnormals;
    }
  return sums;
}

//===----------------------------------------------------------------------===//
// The realized module
//===----------------------------------------------------------------------===//

static int64_t lanesOfType(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

namespace {
/// A memory access of a realized module.
struct RealizedAccess {
  int64_t lanes = 1;
  int64_t AccessCounts::*counter = nullptr;
};
} // namespace

/// Whether an address is in what a stage is called with: the pointers, strides
/// and scalars of the launch or the status, but no element of an array.
static bool isInCallRecord(Value address) {
  bool isWhole = true;
  while (auto element = address.getDefiningOp<LLVM::GEPOp>()) {
    address = element.getBase();
    isWhole = false;
  }
  auto argument = dyn_cast<BlockArgument>(address);
  if (!argument ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return false;
  // Behind the status, scratch memory holds elements.
  return isWhole || argument.getArgNumber() != scratchArgument;
}

static std::optional<RealizedAccess> realizedAccess(Operation *op) {
  if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
    if (isInCallRecord(load.getAddr()))
      return std::nullopt;
    int64_t lanes = lanesOfType(load.getType());
    return RealizedAccess{lanes, lanes > 1 ? &AccessCounts::vectorLoads
                                           : &AccessCounts::scalarLoads};
  }
  if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
    if (isInCallRecord(store.getAddr()))
      return std::nullopt;
    int64_t lanes = lanesOfType(store.getValue().getType());
    return RealizedAccess{lanes, lanes > 1 ? &AccessCounts::vectorStores
                                           : &AccessCounts::scalarStores};
  }
  if (auto load = dyn_cast<LLVM::MaskedLoadOp>(op))
    return RealizedAccess{lanesOfType(load.getType()),
                          &AccessCounts::maskedLoads};
  if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op))
    return RealizedAccess{lanesOfType(store.getValue().getType()),
                          &AccessCounts::maskedStores};
  if (auto gather = dyn_cast<LLVM::masked_gather>(op))
    return RealizedAccess{lanesOfType(gather->getResult(0).getType()),
                          &AccessCounts::gathers};
  if (auto scatter = dyn_cast<LLVM::masked_scatter>(op))
    return RealizedAccess{lanesOfType(scatter.getValue().getType()),
                          &AccessCounts::scatters};
  return std::nullopt;
}

static std::optional<vmath::Function> functionOf(Operation *op) {
  using vmath::Function;
  return llvm::TypeSwitch<Operation *, std::optional<Function>>(op)
      .Case([](math::ExpOp) { return Function::Exp; })
      .Case([](math::Exp2Op) { return Function::Exp2; })
      .Case([](math::ExpM1Op) { return Function::Expm1; })
      .Case([](tile::SigmoidOp) { return Function::Sigmoid; })
      .Case([](math::TanhOp) { return Function::Tanh; })
      .Case([](math::ErfOp) { return Function::Erf; })
      .Case([](math::LogOp) { return Function::Log; })
      .Case([](math::Log2Op) { return Function::Log2; })
      .Case([](math::Log1pOp) { return Function::Log1p; })
      .Case([](math::RsqrtOp) { return Function::Rsqrt; })
      .Case([](math::SinOp) { return Function::Sin; })
      .Case([](math::CosOp) { return Function::Cos; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Counts a function's use and states its error.
static void noteFunction(vmath::Function function, Type type,
                         const Target &target, tile::Tier tier, Facts &facts) {
  bool isF64 = getElementTypeOrSelf(type).isF64();
  StringRef name = vmath::name(function);
  for (FunctionUse &use : facts.functions)
    if (use.name == name && use.isF64 == isF64) {
      ++use.uses;
      return;
    }
  vmath::MathIsa level = target.hasScalef ? vmath::MathIsa::Avx512
                         : target.hasFma  ? vmath::MathIsa::Avx2
                                          : vmath::MathIsa::Baseline;
  vmath::Accuracy accuracy = tier == tile::Tier::Strict
                                 ? vmath::Accuracy::Strict
                                 : vmath::Accuracy::Default;
  vmath::StatedBound bound =
      vmath::statedBound(function, isF64, accuracy, level);
  facts.functions.push_back({name.str(), isF64, bound.constant, bound.perX, 1});
}

void describeKernel(tile::KernelOp kernel, const KernelAnalysis &analysis,
                    Facts &facts) {
  auto accumulate = [&](std::string what, Type type) {
    std::string name;
    llvm::raw_string_ostream(name) << tile::getElement(type);
    std::pair<std::string, std::string> entry{std::move(what), name};
    if (!llvm::is_contained(facts.accumulations, entry))
      facts.accumulations.push_back(std::move(entry));
  };
  kernel.walk([&](Operation *op) {
    if (auto dim = dyn_cast<tile::DimOp>(op)) {
      if (std::optional<int64_t> extent = constantIndex(dim.getExtent()))
        facts.dims.emplace_back(dim.getName().str(), *extent);
    } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      accumulate("reduce " +
                     tile::stringifyCombiner(reduce.getCombiner()).str(),
                 reduce.getInputs()[0].getType());
    } else if (auto scan = dyn_cast<tile::ScanOp>(op)) {
      accumulate("scan " + tile::stringifyCombiner(scan.getCombiner()).str(),
                 scan.getInputs()[0].getType());
    } else if (auto contract = dyn_cast<tile::ContractOp>(op)) {
      accumulate("contract", contract.getResult().getType());
    }
    if (std::optional<Access> access = getAccess(op))
      for (unsigned axis = 0; axis < access->axes.size(); ++axis) {
        ++facts.bounds.axes;
        facts.bounds.checked += analysis.accesses.needsCheck(*access, axis);
      }
  });
}

void countRealized(ModuleOp module, const Target &target, tile::Tier tier,
                   Facts &facts) {
  auto constant = [](Value value) { return constantIndex(value); };
  // Entry functions only switch the floating-point state.
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.getSymName().ends_with("_body"))
      continue;
    llvm::DenseMap<Operation *, size_t> numbers;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        LoopFact fact;
        fact.function = function.getSymName().drop_back(5).str();
        for (Operation *parent = op->getParentOp(); parent != function;
             parent = parent->getParentOp())
          fact.depth += isa<scf::ForOp, scf::WhileOp>(parent);
        std::optional<int64_t> low = constant(loop.getLowerBound()),
                               high = constant(loop.getUpperBound()),
                               step = constant(loop.getStep());
        fact.step = step.value_or(0);
        if (low && high && step && *step > 0)
          fact.trips = *high > *low ? (*high - *low - 1) / *step + 1 : 0;
        fact.carried = loop.getInitArgs().size();
        numbers[op] = facts.loops.size();
        facts.loops.push_back(std::move(fact));
        return;
      }
      if (std::optional<vmath::Function> function = functionOf(op))
        noteFunction(*function, op->getOperand(0).getType(), target, tier,
                     facts);
      std::optional<RealizedAccess> access = realizedAccess(op);
      if (!access)
        return;
      ++(facts.accesses.*access->counter);
      auto loop = op->getParentOfType<scf::ForOp>();
      if (!loop)
        return;
      LoopFact &fact = facts.loops[numbers[loop]];
      ++fact.accesses;
      fact.lanes = std::max(fact.lanes, access->lanes);
    });
  }
}

} // namespace tessera
