//===- price.cpp - Predicted time of realized code ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/price.h"

#include "realize/cpu/realize.h"
#include "realize/cpu/vector_emitter.h"
#include "search/register_pressure.h"
#include "target/contraction_atoms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

using namespace mlir;

namespace tessera {

namespace {

/// Iterations of a loop whose length is not known.
constexpr double unknownTrips = 16;
/// How often a branch that guards rare cases is taken, and any other.
constexpr double rare = 0.02, even = 0.5;

std::optional<int64_t> constantOf(Value value) {
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    if (auto number = dyn_cast<IntegerAttr>(constant.getValue()))
      return number.getInt();
  return std::nullopt;
}

/// The upper bound of a loop: a constant, or the least of a minimum.
std::optional<int64_t> upperOf(Value value) {
  if (auto minimum = value.getDefiningOp<arith::MinSIOp>())
    for (Value operand : minimum->getOperands())
      if (std::optional<int64_t> constant = constantOf(operand))
        return constant;
  return constantOf(value);
}

/// The iterations of a loop, as far as constants tell. The inner loop of a sum
/// in blocks begins at the counter of the outer one and ends a constant
/// distance after it, or with the row.
double tripsOf(scf::ForOp loop) {
  std::optional<int64_t> step = constantOf(loop.getStep());
  if (!step || *step <= 0)
    return unknownTrips;
  auto count = [&](double length) {
    return std::max(0.0, std::ceil(length / double(*step)));
  };
  std::optional<int64_t> lower = constantOf(loop.getLowerBound()),
                         upper = upperOf(loop.getUpperBound());
  if (lower && upper)
    return count(double(*upper) - double(*lower));
  auto minimum = loop.getUpperBound().getDefiningOp<arith::MinSIOp>();
  if (!minimum)
    return unknownTrips;
  for (Value bound : minimum->getOperands()) {
    auto sum = bound.getDefiningOp<arith::AddIOp>();
    if (!sum)
      continue;
    for (unsigned side : {0, 1})
      if (sum->getOperand(side) == loop.getLowerBound())
        if (std::optional<int64_t> length =
                constantOf(sum->getOperand(1 - side)))
          return count(double(*length));
  }
  return unknownTrips;
}

/// A block: what one execution takes.
struct Block {
  Counts counts;
  /// Cycles from its begin to the end of its longest chain.
  double latency = 0;
  /// The longest chain from a carried value to a yielded one.
  double recurrence = 0;
  /// The latencies of all its operations, and whether there are loops in it.
  double latencies = 0;
  bool hasLoops = false;
  /// Chains that stand side by side, instruction by instruction.
  double together = 1;
  /// Cycles of the loops in it, as far as the core cannot look beyond them to
  /// what comes next; of the longest of them.
  double exposed = 0;
  double longest = 0;
  /// Arithmetic that loops inside it leave to it: invariant in them.
  Counts hoisted;
};

class Pricer {
public:
  /// `called` are the functions that are parts of the prices of other stages.
  Pricer(const Target &target, const Machine &machine,
         llvm::StringSet<> &called)
      : target(target), costs(machine.costs(target)),
        operations(target, machine), called(called) {}

  StagePrice run(func::FuncOp function) {
    StagePrice price;
    price.symbol = function.getSymName().str();
    auto figure = [&](StringRef name) {
      auto attribute = function->getAttrOfType<FloatAttr>(name);
      return attribute ? attribute.getValueAsDouble() : 0;
    };
    price.jumps = figure(jumpsAttribute);
    price.blockBytes = figure(blockAttribute);
    price.busyShare = figure(busyAttribute);
    price.repeats = repeatsOf(function);
    function->walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op))
        calleeOf(call);
      price.instructions += int64_t(singleOf(op).counts.instructions);
      price.emitted += emittedBeside(op);
      auto branch = dyn_cast<scf::IfOp>(op);
      if (branch && branch->hasAttr(usualAttr))
        branch.getElseRegion().walk([&](Operation *inner) {
          price.rareInstructions +=
              int64_t(singleOf(inner).counts.instructions);
        });
    });
    // Stages share what they call.
    for (const auto &[name, callee] : callees)
      if (called.insert(name).second)
        price.instructions += callee.instructions;
    price.emitted += price.instructions;
    // The loop over the programs is the one without constant bounds.
    scf::ForOp grid;
    for (auto loop : function.getBody().front().getOps<scf::ForOp>())
      if (isa_and_present<arith::IndexCastOp>(
              loop.getLowerBound().getDefiningOp()) &&
          !constantOf(loop.getLowerBound()))
        grid = loop;
    Block body = grid ? priceBlock(*grid.getBody())
                      : priceBlock(function.getBody().front());
    double programs = grid ? double(stepOf(grid)) : 1;
    double cycles = grid ? programCycles(body) : body.latency;
    price.together = programs;
    price.blocks = blocks;
    price.cycles =
        std::max(cycles, operations.throughput(body.counts)) / programs;
    price.throughputCycles = operations.throughput(body.counts) / programs;
    price.counts.add(body.counts, 1 / programs);
    for (auto [id, loops] : nestCycles)
      price.nestCycles[id] = loops / programs;
    return price;
  }

private:
  static std::vector<RepeatedRead> repeatsOf(func::FuncOp function) {
    std::vector<RepeatedRead> repeats;
    auto attribute =
        function->getAttrOfType<DenseF64ArrayAttr>(repeatsAttribute);
    if (!attribute)
      return repeats;
    constexpr size_t figures = 6;
    for (ArrayRef<double> left = attribute.asArrayRef(); left.size() >= figures;
         left = left.drop_front(figures))
      repeats.push_back({left[0],
                         left[1],
                         {int64_t(left[2]), int64_t(left[3]), int64_t(left[4])},
                         left[5]});
    return repeats;
  }

  static int64_t stepOf(scf::ForOp loop) {
    return constantOf(loop.getStep()).value_or(1);
  }

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  /// What is known of an operation by itself.
  struct Single {
    bool isFree = false;
    Counts counts;
  };

  /// Found once for each operation.
  const Single &singleOf(Operation *op) {
    auto [known, isNew] = numbers.try_emplace(op, singles.size());
    if (isNew) {
      Single &single = singles.emplace_back();
      single.isFree = OperationCosts::isFree(op);
      if (!single.isFree && op->getNumRegions() == 0)
        single.counts = operations.countsOf(op);
    }
    return singles[known->second];
  }

  /// What is emitted for an operation beside its instructions: addresses, and
  /// one lane after another what no instruction does for vectors.
  static int64_t emittedBeside(Operation *op) {
    if (isa<LLVM::GEPOp>(op))
      return 1;
    auto vector = op->getNumResults() == 1
                      ? dyn_cast<VectorType>(op->getResult(0).getType())
                      : VectorType();
    constexpr int64_t perDivision = 4;
    return vector && isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                         arith::RemUIOp>(op)
               ? perDivision * vector.getNumElements()
               : 0;
  }

  /// A function of the module that is called, looked at once.
  struct Callee {
    Block block;
    int64_t instructions = 0;
  };

  const Callee &calleeOf(func::CallOp call) {
    auto found = callees.find(call.getCallee());
    if (found != callees.end())
      return found->second;
    Callee callee;
    auto function = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
        call, call.getCalleeAttr());
    callee.block = priceBlock(function.front());
    function->walk([&](Operation *op) {
      callee.instructions += int64_t(singleOf(op).counts.instructions);
    });
    // Calling and returning; no vector stays in a register meanwhile, so that
    // about one is stored and loaded again.
    Counts &counts = callee.block.counts;
    counts.instructions += 4;
    counts.loads += 1;
    counts.stores += 1;
    callee.block.latency += costs.loadLatency;
    return callees.emplace(call.getCallee(), std::move(callee)).first->second;
  }

  //===--------------------------------------------------------------------===//
  // Blocks
  //===--------------------------------------------------------------------===//

  /// Of code that many instructions long, the share of its time in which the
  /// core does not work on what follows. While it is at some instruction it
  /// looks ahead by the length of its window: of code as long as the window, at
  /// the same place of the next execution, so that two are done at once.
  double shareAlone(double instructions) const {
    return instructions / (instructions + costs.reorderWindow);
  }

  /// Of one of many executions of a block, one after another: the cycles in
  /// which its chains keep the core from what follows.
  double chainCycles(const Block &block) const {
    const double chains = chainsOf(block);
    return block.latency * chains *
           shareAlone(block.counts.instructions / chains);
  }

  /// Without loops, chains that do not depend on one another stand one behind
  /// the other, or groups of them: as many executions of a shorter block.
  static double chainsOf(const Block &block) {
    return block.hasLoops || block.latency == 0
               ? 1
               : std::max(1.0,
                          block.latencies / block.latency / block.together);
  }

  /// Of the same, the cycles in which it works.
  double busyCycles(const Block &block) const {
    return std::max(
        {operations.throughput(block.counts), block.recurrence, block.exposed});
  }

  /// Where both are alike, neither hides the other entirely.
  static double besideEachOther(double busy, double waiting) {
    return std::cbrt(std::pow(busy, 3) + std::pow(waiting, 3));
  }

  /// The chain of a block with loops is mostly what they work on.
  double iterationCycles(const Block &block) const {
    const double busy = busyCycles(block), waiting = chainCycles(block);
    return block.hasLoops ? std::max(busy, waiting)
                          : besideEachOther(busy, waiting);
  }

  /// Of one of many programs: chains of whole programs have many parts, of
  /// which the core finds some to do, whatever it waits for, and some wait even
  /// where there is enough to do: half of the chain (docs/planner.md). A
  /// program that is little more than one loop works all the time.
  double programCycles(const Block &block) const {
    constexpr double waited = 0.5, little = 0.2;
    double share = waited;
    if (block.latency > 0)
      share = waited * std::clamp((1 - block.longest / block.latency) / little,
                                  0.0, 1.0);
    return besideEachOther(busyCycles(block), share * chainCycles(block));
  }

  /// The values from around an operation that its regions take.
  const SmallVector<Value> &takenInside(Operation *op) {
    auto [known, isNew] = taken.try_emplace(op);
    if (!isNew)
      return known->second;
    llvm::SetVector<Value> values;
    for (Region &region : op->getRegions())
      for (mlir::Block &block : region) {
        auto take = [&](ValueRange operands) {
          for (Value operand : operands)
            if (operand.getParentBlock() != &block)
              values.insert(operand);
        };
        for (Operation &inner : block) {
          take(inner.getOperands());
          if (inner.getNumRegions() > 0)
            take(takenInside(&inner));
        }
      }
    return taken[op] = values.takeVector();
  }

  Block priceBlock(mlir::Block &block) {
    Block result;
    // When values are ready after the begin of the block, and after its carried
    // values (only of what depends on them).
    llvm::DenseMap<Value, double> ready, since;
    llvm::DenseSet<Value> invariant;
    bool isLoop = isa_and_present<scf::ForOp>(block.getParentOp());
    for (BlockArgument argument : block.getArguments())
      if (isLoop && argument.getArgNumber() > 0)
        since[argument] = 0;
    for (Operation &op : block) {
      double start = 0;
      std::optional<double> carried;
      auto need = [&](Value operand) {
        if (auto found = ready.find(operand); found != ready.end())
          start = std::max(start, found->second);
        if (auto found = since.find(operand); found != since.end())
          carried = std::max(carried.value_or(0), found->second);
      };
      // What else stands in another block is known before this one.
      if (op.getNumRegions() > 0)
        for (Value operand : takenInside(&op))
          if (operand.getParentBlock() == &block)
            need(operand);
      for (Value operand : op.getOperands())
        if (operand.getParentBlock() == &block)
          need(operand);
      if (isa<scf::YieldOp>(op)) {
        if (isLoop && carried)
          result.recurrence = std::max(result.recurrence, *carried);
        continue;
      }
      double latency = 0;
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        latency = addLoop(loop, priceBlock(*loop.getBody()),
                          expectedTrips(loop), result);
      } else if (auto loop = dyn_cast<scf::WhileOp>(op);
                 loop && loop->hasAttr(tripsAttribute)) {
        Block body = priceBlock(loop.getAfter().front());
        body.counts.add(priceBlock(loop.getBefore().front()).counts);
        latency = addLoop(loop, std::move(body), expectedTrips(loop), result);
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        latency = addBranch(branch, result);
      } else if (auto call = dyn_cast<func::CallOp>(op)) {
        const Block &called = calleeOf(call).block;
        result.counts.add(called.counts);
        result.latencies += called.latencies;
        latency = called.latency;
      } else {
        const Single &single = singleOf(&op);
        // What does not change in a loop is computed before it.
        bool moves = isLoop &&
                     llvm::all_of(op.getOperands(),
                                  [&](Value operand) {
                                    return operand.getParentBlock() != &block ||
                                           invariant.contains(operand);
                                  }) &&
                     isMemoryEffectFree(&op);
        if (moves) {
          invariant.insert(op.result_begin(), op.result_end());
          result.hoisted.add(single.counts);
          continue;
        }
        if (!single.isFree) {
          result.counts.add(single.counts);
          latency = operations.latencyOf(&op);
          result.latencies += latency;
        }
      }
      for (Value value : op.getResults()) {
        ready[value] = start + latency;
        if (carried)
          since[value] = *carried + latency;
      }
      result.latency = std::max(result.latency, start + latency);
    }
    return result;
  }

  /// Adds a loop to the block around it; returns its time.
  double addLoop(Operation *loop, Block body, double trips, Block &outer) {
    if (loop->hasAttr(blocksAttribute))
      blocks = std::max(blocks, trips);
    // The counter, its comparison and the branch are one or two instructions.
    constexpr double control = 2;
    body.counts.instructions += control;
    if (isInnermost(loop))
      addPressure(pressureOf(loop->getRegions().back().front(), target), body);
    double iteration = iterationCycles(body);
    // The last iteration's chain begins when its operations are started, the
    // last of several chains when those before it are. A loop that may not run
    // at all has one iteration at most. One of loops that is longer than the
    // window is done when the next begins.
    const bool overlaps = body.counts.instructions < costs.reorderWindow;
    const double last =
        overlaps ? body.latency
        : body.hasLoops
            ? 0
            : std::max(0.0, body.latency - iteration / chainsOf(body));
    double cycles = trips > 1 ? trips * iteration + last
                              : trips * std::max(iteration, body.latency);
    Counts all;
    all.add(body.counts, trips);
    all.bubbles += 1;
    // A core foresees the end of loops that are short. While it turns back from
    // beyond others, what waits in its window goes on.
    constexpr double foreseen = 24;
    if (trips > foreseen) {
      const double waiting =
          costs.reorderWindow *
          std::max(0.0, iteration / body.counts.instructions -
                            1 / costs.instructionsPerCycle);
      const double lost = std::max(0.0, costs.mispredictCycles - waiting);
      all.mispredictions += lost / costs.mispredictCycles;
      cycles += lost;
    }
    if (std::optional<int64_t> id = nestOf(loop); id && isInnermost(loop))
      nestCycles[*id] += std::max(cycles, operations.throughput(all)) *
                         repeatsOf(loop) * weight;
    outer.counts.add(all);
    outer.counts.add(body.hoisted);
    outer.hasLoops = true;
    outer.longest = std::max(outer.longest, cycles);
    outer.exposed += cycles * shareAlone(all.instructions);
    return cycles;
  }

  static bool isInnermost(Operation *loop) {
    return isa<scf::ForOp>(loop) && cast<scf::ForOp>(loop)
                                        .getBody()
                                        ->getOps<LoopLikeOpInterface>()
                                        .empty();
  }

  void addPressure(const RegisterPressure &pressure, Block &body) const {
    body.together = pressure.together;
    body.counts.loads += pressure.constants + pressure.spills;
    body.counts.stores += pressure.spills;
    body.counts.instructions +=
        2 * pressure.spills +
        (target.broadcastsOperands ? 0 : pressure.constants);
  }

  /// Of a loop whose end data decides, what it says of itself.
  double expectedTrips(Operation *loop) const {
    auto trips = loop->getAttrOfType<DenseF64ArrayAttr>(tripsAttribute);
    return trips ? trips[isInside ? 1 : 0] : tripsOf(cast<scf::ForOp>(loop));
  }

  /// How often a loop runs in one iteration of the loop over programs.
  double repeatsOf(Operation *loop) const {
    double repeats = 1;
    for (Operation *parent = loop->getParentOp(); parent;
         parent = parent->getParentOp()) {
      auto counted = dyn_cast<scf::ForOp>(parent);
      // The loop over the programs is counted by its caller.
      if (counted && !constantOf(counted.getLowerBound()) &&
          !parent->hasAttr(tripsAttribute) &&
          !parent->getParentOfType<scf::ForOp>())
        break;
      if (counted || parent->hasAttr(tripsAttribute))
        repeats *= expectedTrips(parent);
    }
    return repeats;
  }

  double addBranch(scf::IfOp branch, Block &outer) {
    if (auto share = branch->getAttrOfType<FloatAttr>(shareAttribute))
      return addShares(branch, share.getValueAsDouble(), outer);
    // Rare cases of functions are guarded by a test of all lanes at once.
    auto test = branch.getCondition().getDefiningOp<arith::CmpIOp>();
    bool isRare =
        test && isa_and_present<LLVM::BitcastOp>(test.getLhs().getDefiningOp());
    const bool isUsual = branch->hasAttr(usualAttr);
    double share = isUsual ? 1 : isRare ? rare : even;
    auto taken = branch->getAttrOfType<FloatAttr>(takenAttribute);
    if (taken)
      share = taken.getValueAsDouble();
    double latency = 0;
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      if (region->empty())
        continue;
      const bool isElse = region == &branch.getElseRegion();
      const double times = !isElse   ? share
                           : taken   ? 1 - share
                           : isUsual ? rare
                                     : share;
      const double outerWeight = std::exchange(weight, weight * times);
      Block body = priceBlock(region->front());
      weight = outerWeight;
      outer.counts.add(body.counts, times);
      outer.exposed += times * body.exposed;
      outer.latencies += times * body.latencies;
      outer.hasLoops |= body.hasLoops;
      outer.longest = std::max(outer.longest, times * body.longest);
      latency = std::max(latency, times * body.latency);
    }
    outer.counts.instructions += 2;
    return latency + 1;
  }

  /// A branch that programs which touch no edge take to the first region. What
  /// the others do in the second is what all would do in it on average, but for
  /// what the former would.
  double addShares(scf::IfOp branch, double share, Block &outer) {
    auto add = [&](Region &region, double times, bool inside) {
      const bool outerInside = std::exchange(isInside, inside);
      const double outerWeight = std::exchange(weight, weight * times);
      Block body = priceBlock(region.front());
      isInside = outerInside;
      weight = outerWeight;
      outer.counts.add(body.counts, times);
      outer.exposed += times * body.exposed;
      outer.latencies += times * body.latencies;
      outer.hasLoops |= body.hasLoops;
      outer.longest = std::max(outer.longest, times * body.longest);
      return times * body.latency;
    };
    double latency = add(branch.getThenRegion(), share, true) +
                     add(branch.getElseRegion(), 1, false) +
                     add(branch.getElseRegion(), -share, true);
    outer.counts.instructions += 2;
    return latency + 1;
  }

  const Target &target;
  const CoreCosts &costs;
  const OperationCosts operations;
  std::map<int64_t, double> nestCycles;
  std::map<StringRef, Callee> callees;
  llvm::StringSet<> &called;
  /// Of operations that were looked at, by number; what their regions take.
  std::vector<Single> singles;
  llvm::DenseMap<Operation *, size_t> numbers;
  llvm::DenseMap<Operation *, SmallVector<Value>> taken;
  /// Iterations of the longest loop over blocks.
  double blocks = 1;
  /// By what it counts in nestCycles.
  double weight = 1;
  /// Whether the program being priced touches no edge.
  bool isInside = false;
};

} // namespace

std::vector<StagePrice> priceStages(ModuleOp module, const Target &target,
                                    const Machine &machine) {
  std::vector<StagePrice> prices;
  llvm::StringSet<> called;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.getSymName().ends_with("_body"))
      prices.push_back(Pricer(target, machine, called).run(function));
  return prices;
}

int64_t emittedOf(const std::vector<StagePrice> &prices) {
  int64_t emitted = 0;
  for (const StagePrice &stage : prices)
    emitted += stage.emitted;
  return emitted;
}

} // namespace tessera
