//===- phases.cpp - Cutting a block into loop nests -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/phases.h"

#include "analysis/evaluation_costs.h"
#include "dialect/tile_op_lists.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace tessera {

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

std::optional<Root> rootOf(Operation *op) {
  auto root = [&](Root::Kind kind) { return Root{kind, op, Value()}; };
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return isTile(store.getValue())
               ? std::optional<Root>(root(Root::Kind::Store))
               : std::nullopt;
  if (isa<tile::ScatterOp>(op))
    return root(Root::Kind::Scatter);
  if (isa<tile::ReduceOp>(op))
    return root(Root::Kind::Reduce);
  if (isa<tile::ArgReduceOp>(op))
    return root(Root::Kind::ArgReduce);
  if (isa<tile::ContractOp>(op))
    return root(Root::Kind::Contract);
  if (isa<tile::ScanOp>(op))
    return root(Root::Kind::Scan);
  if (isa<tile::SortOp>(op))
    return root(Root::Kind::Sort);
  return std::nullopt;
}

bool isDeferred(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         isTile(op->getResult(0)) && !rootOf(op);
}

bool isExpensive(Operation *op) {
  return isa<arith::DivFOp, math::ExpOp, math::Exp2Op, math::ExpM1Op,
             math::LogOp, math::Log2Op, math::Log1pOp, math::TanhOp,
             math::ErfOp, math::SinOp, math::CosOp, math::RsqrtOp, math::SqrtOp,
             tile::SigmoidOp, tile::DivOp, tile::RemOp, tile::RoundToOp,
             tile::GatherOp>(op);
}

bool isFreeScan(tile::ScanOp scan) {
  if (scan.getOrder() != tile::Order::Unordered || scan.getReverse() ||
      scan.getExclusive())
    return false;
  bool isFloat =
      isa<FloatType>(tile::getElement(scan.getInputs()[0].getType()));
  switch (scan.getCombiner()) {
  case tile::Combiner::Add:
  case tile::Combiner::Mul:
  case tile::Combiner::And:
  case tile::Combiner::Or:
  case tile::Combiner::Xor:
    return true;
  case tile::Combiner::Max:
  case tile::Combiner::Min:
  case tile::Combiner::UMax:
  case tile::Combiner::UMin:
    return !isFloat;
  case tile::Combiner::MaxNum:
  case tile::Combiner::MinNum:
  case tile::Combiner::Custom:
    return false;
  }
  return false;
}

/// Of a contraction in any order, the loops over what more of its operands
/// depends on go outside: what depends on these alone is then computed before
/// the inner ones.
static void orderReduced(tile::ContractOp contract,
                         SmallVectorImpl<StringAttr> &reduced) {
  if (reduced.size() < 2 || contract.getOrder() != tile::Order::Unordered)
    return;
  llvm::SetVector<Value> reached;
  reached.insert(contract.getLhs());
  reached.insert(contract.getRhs());
  llvm::DenseMap<StringAttr, int64_t> uses;
  for (size_t number = 0; number < reached.size(); ++number) {
    Value value = reached[number];
    Operation *op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    if (op && isDeferred(op) && !isa<tile::LoadOp>(op)) {
      for (Value operand : op->getOperands())
        reached.insert(operand);
      continue;
    }
    for (StringAttr dim : tile::getDims(value.getType()))
      ++uses[dim];
  }
  // Few of them; equal ones stay as they are.
  auto isOuter = [&](StringAttr a, StringAttr b) {
    return uses.lookup(a) > uses.lookup(b);
  };
  for (auto *at = reduced.begin(); at != reduced.end(); ++at)
    std::rotate(std::upper_bound(reduced.begin(), at, *at, isOuter), at,
                at + 1);
}

void rootSpace(const Root &root, SmallVectorImpl<StringAttr> &kept,
               SmallVectorImpl<StringAttr> &reduced) {
  auto keepRest = [&](Value tile) {
    for (StringAttr dim : tile::getDims(tile.getType()))
      if (!llvm::is_contained(reduced, dim))
        kept.push_back(dim);
  };
  switch (root.kind) {
  case Root::Kind::Store:
    return keepRest(cast<tile::StoreOp>(root.op).getValue());
  case Root::Kind::Scatter:
    return keepRest(cast<tile::ScatterOp>(root.op).getValue());
  case Root::Kind::Materialize:
    return keepRest(root.value);
  case Root::Kind::Reduce: {
    auto reduce = cast<tile::ReduceOp>(root.op);
    // In the order of the tile's axes, which is the order of evaluation.
    for (StringAttr dim : tile::getDims(reduce.getInputs()[0].getType()))
      if (llvm::is_contained(reduce.getOver(), dim))
        reduced.push_back(dim);
    return keepRest(reduce.getInputs()[0]);
  }
  case Root::Kind::ArgReduce:
    reduced.push_back(cast<tile::ArgReduceOp>(root.op).getAlongAttr());
    return keepRest(cast<tile::ArgReduceOp>(root.op).getInput());
  case Root::Kind::Contract: {
    auto contract = cast<tile::ContractOp>(root.op);
    // In the order of the left operand's axes, which is the order of
    // evaluation where there is one.
    for (StringAttr dim : tile::getDims(contract.getLhs().getType()))
      if (llvm::is_contained(contract.getOver(), dim))
        reduced.push_back(dim);
    orderReduced(contract, reduced);
    return keepRest(contract.getResult());
  }
  case Root::Kind::Scan:
    reduced.push_back(cast<tile::ScanOp>(root.op).getAlongAttr());
    return keepRest(cast<tile::ScanOp>(root.op).getInputs()[0]);
  case Root::Kind::Sort:
    reduced.push_back(cast<tile::SortOp>(root.op).getAlongAttr());
    return keepRest(cast<tile::SortOp>(root.op).getInputs()[0]);
  }
}

//===----------------------------------------------------------------------===//
// Cones
//===----------------------------------------------------------------------===//

// Chains of dependent operations are as long as the author makes them: nothing
// here recurses along them.

void PhaseAnalysis::collectCone(Value root,
                                llvm::SetVector<Value> &cone) const {
  SmallVector<Value> worklist{root};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!cone.insert(value))
      continue;
    Operation *op = value.getDefiningOp();
    if (op && isDeferred(op) && !materialized.contains(value))
      for (Value operand : llvm::reverse(op->getOperands()))
        worklist.push_back(operand);
  }
}

llvm::SetVector<Value> PhaseAnalysis::cone(const Root &root) const {
  llvm::SetVector<Value> cone;
  if (root.kind != Root::Kind::Materialize) {
    for (Value operand : root.op->getOperands())
      collectCone(operand, cone);
    return cone;
  }
  cone.insert(root.value);
  if (Operation *op = root.value.getDefiningOp())
    if (isDeferred(op))
      for (Value operand : op->getOperands())
        collectCone(operand, cone);
  return cone;
}

//===----------------------------------------------------------------------===//
// Values that are kept in buffers
//===----------------------------------------------------------------------===//

/// All accesses inside an op, itself included.
static SmallVector<Access> accessesIn(Operation *op) {
  SmallVector<Access> accesses;
  op->walk([&](Operation *inner) {
    if (std::optional<Access> access = getAccess(inner))
      accesses.push_back(*access);
  });
  return accesses;
}

/// The ops of `block` in which `root` is consumed, through deferred ops.
static void collectUsers(Value root, Block &block,
                         llvm::SetVector<Operation *> &users) {
  SmallVector<Value> worklist{root};
  llvm::SmallPtrSet<Value, 8> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (!ancestor)
        continue;
      // A deferred op inside a nested region is evaluated in that region.
      if (!isDeferred(user) || ancestor != user)
        users.insert(ancestor);
      if (isDeferred(user))
        worklist.push_back(user->getResult(0));
    }
  }
}

void PhaseAnalysis::requireBuffers(Block &block) {
  SmallVector<std::pair<Operation *, SmallVector<Access>>> writers;
  for (Operation &op : block) {
    SmallVector<Access> writes;
    for (const Access &access : accessesIn(&op))
      if (access.writes)
        writes.push_back(access);
    if (!writes.empty())
      writers.push_back({&op, writes});
  }
  for (Operation &op : block) {
    if (auto gather = dyn_cast<tile::GatherOp>(op))
      materialized.insert(gather.getSource());
    if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
      if (isTile(reshape.getInput()))
        materialized.insert(reshape.getInput());
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!load || !isTile(load.getResult()) || writers.empty())
      continue;
    Access read = *getAccess(load);
    llvm::SetVector<Operation *> users;
    collectUsers(load.getResult(), block, users);
    Operation *last = nullptr;
    for (Operation *user : users)
      if (!last || last->isBeforeInBlock(user))
        last = user;
    for (auto &[writer, writes] : writers) {
      if (!last || !op.isBeforeInBlock(writer) || last->isBeforeInBlock(writer))
        continue;
      bool isPlainStore = isa<tile::StoreOp>(writer);
      for (const Access &write : writes)
        if (accesses.mayConflict(read, write) &&
            !(writer == last && isPlainStore &&
              accesses.isPointwise(read, write)))
          materialized.insert(load.getResult());
    }
  }
  // Yielded tiles of loops and branches live in buffers of their own; a
  // deferred value among them is evaluated there and needs none here.
}

void PhaseAnalysis::keepSharedValues(Block &block) {
  std::vector<Step> steps = scheduleLoops(block);
  // The places that evaluate each deferred value of this block.
  llvm::MapVector<Value, llvm::SmallDenseSet<unsigned, 4>> places;
  llvm::DenseSet<Value> widened, repeated;
  auto note = [&](const llvm::SetVector<Value> &values, unsigned place,
                  unsigned spaceRank, bool nested) {
    for (Value value : values) {
      Operation *op = value.getDefiningOp();
      if (!op || op->getBlock() != &block || !isDeferred(op) ||
          materialized.contains(value))
        continue;
      places[value].insert(place);
      if (nested)
        repeated.insert(value);
      if (nested || tile::getDims(value.getType()).size() < spaceRank)
        widened.insert(value);
    }
  };
  unsigned place = 0;
  for (const Step &step : steps) {
    ++place;
    if (!step.immediate) {
      unsigned rank = step.phase.kept.size() + step.phase.reduced.size();
      for (const Root &root : step.phase.roots)
        note(cone(root), place, rank, /*nested=*/false);
      continue;
    }
    if (step.immediate->hasTrait<OpTrait::IsTerminator>()) {
      // Each tile that is yielded is evaluated by itself.
      for (Value yielded : step.immediate->getOperands()) {
        llvm::SetVector<Value> needed;
        collectCone(yielded, needed);
        if (isTile(yielded))
          note(needed, ++place, tile::getDims(yielded.getType()).size(),
               /*nested=*/false);
      }
      continue;
    }
    if (step.immediate->getNumRegions() == 0)
      continue;
    llvm::SetVector<Value> inside;
    step.immediate->walk([&](Operation *inner) {
      if (!isDeferred(inner))
        for (Value operand : inner->getOperands())
          collectCone(operand, inside);
    });
    bool repeats =
        isa<tile::SerialOp, tile::PipelineOp, tile::ParallelOp, tile::FoldOp>(
            step.immediate);
    note(inside, place, 0, repeats);
  }
  // The last common values: those whose consumers are not all shared in the
  // same way.
  auto isFrontier = [&](Value value) {
    bool isWidened = widened.contains(value);
    size_t shared = places.find(value)->second.size();
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (user->getBlock() != &block || !isDeferred(user) ||
          neverKept.contains(user->getResult(0)))
        return true;
      auto it = places.find(user->getResult(0));
      if (it == places.end())
        return false;
      return isWidened ? !widened.contains(it->first)
                       : it->second.size() < shared;
    });
  };
  SmallVector<Value> keep;
  EvaluationCosts costs(*this);
  for (auto &[value, where] : places)
    if ((where.size() > 1 || widened.contains(value)) &&
        costs.isExpensive(value) && isFrontier(value) &&
        !neverKept.contains(value))
      keep.push_back(value);
  materialized.insert(keep.begin(), keep.end());
  if (keeping == Keeping::Expensive)
    return;
  // Cheap values one by one: what is kept makes others cheaper. Those that a
  // loop would evaluate in each iteration are evaluated before it.
  constexpr int64_t iterations = 16;
  for (auto &[value, where] : places)
    if (repeated.contains(value) && !materialized.contains(value) &&
        isSmall(value) && isFrontier(value) &&
        costs.isWorthKeeping(value, iterations))
      materialized.insert(value);
  for (auto &[value, where] : places)
    if (where.size() > 1 && !widened.contains(value) &&
        !materialized.contains(value) && !neverKept.contains(value) &&
        isSmall(value) && isFrontier(value) &&
        costs.isWorthKeeping(value, int64_t(where.size())))
      materialized.insert(value);
}

/// Whether a tile is known to stay in the caches that are near.
bool PhaseAnalysis::isSmall(Value tile) const {
  constexpr int64_t mostBytes = 256 << 10;
  Type element = tile::getElement(tile.getType());
  int64_t bytes =
      element.isIndex() ? 8 : (element.getIntOrFloatBitWidth() + 7) / 8;
  std::optional<int64_t> elements =
      accesses.dimTable().elements(tile::getDims(tile.getType()));
  return elements && *elements <= mostBytes / bytes;
}

static SmallVector<Block *> blocksOf(tile::KernelOp kernel) {
  SmallVector<Block *> blocks;
  kernel->walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        blocks.push_back(&block);
  });
  return blocks;
}

PhaseAnalysis::PhaseAnalysis(tile::KernelOp kernel,
                             const AccessAnalysis &accesses, Keeping keeping,
                             Passes passes)
    : kernel(kernel), accesses(accesses), keeping(keeping), passes(passes) {
  chooseBuffers();
  if (passes == Passes::Separate)
    return;
  // Deviations from a centre cannot be kept in a joined loop: the elements that
  // they are computed from are.
  for (Block *block : blocksOf(kernel))
    scheduleLoops(*block, nullptr, &neverKept);
  if (!neverKept.empty()) {
    materialized.clear();
    chooseBuffers();
  }
}

void PhaseAnalysis::chooseBuffers() {
  SmallVector<Block *> blocks = blocksOf(kernel);
  for (Block *block : blocks)
    requireBuffers(*block);
  if (keeping != Keeping::Required)
    for (Block *block : blocks)
      keepSharedValues(*block);
}

size_t PhaseAnalysis::countJoins(Law law,
                                 SmallVectorImpl<Refusal> &refusals) const {
  size_t count = 0;
  if (joins())
    for (Block *block : blocksOf(kernel))
      for (const Step &step : scheduleLoops(*block, &refusals))
        count += step.phase.join && step.phase.join->law == law;
  return count;
}

/// Whether all of `next` may be done element by element as soon as the
/// contraction's result is complete there.
bool PhaseAnalysis::mayFollow(const Phase &contraction,
                              const Phase &next) const {
  if (contraction.roots.size() != 1 ||
      contraction.roots[0].kind != Root::Kind::Contract || next.join ||
      !next.reduced.empty() || next.kept.size() != contraction.kept.size() ||
      !llvm::all_of(next.kept, [&](StringAttr dim) {
        return llvm::is_contained(contraction.kept, dim);
      }))
    return false;
  auto contract = cast<tile::ContractOp>(contraction.roots[0].op);
  Value result = contract.getResult();
  auto readsOf = [&](const Root &root) {
    SmallVector<Access> reads;
    for (Value value : cone(root))
      if (Operation *op = value.getDefiningOp())
        if (std::optional<Access> access = getAccess(op);
            access && !isMaterialized(value))
          reads.push_back(*access);
    return reads;
  };
  const SmallVector<Access> reads = readsOf(contraction.roots[0]);
  bool needsResult = false;
  for (const Root &root : next.roots) {
    if (root.kind == Root::Kind::Store) {
      // The contraction goes on reading after the first elements are stored.
      Access write = *getAccess(root.op);
      if (llvm::any_of(reads, [&](const Access &read) {
            return accesses.mayConflict(read, write);
          }))
        return false;
    } else if (root.kind != Root::Kind::Materialize) {
      return false;
    }
    for (Value value : cone(root)) {
      needsResult |= value == result;
      // These read at other positions.
      if (Operation *op = value.getDefiningOp();
          op && isa<tile::GatherOp, tile::ReshapeOp>(op) &&
          op->getOperand(0) == result)
        return false;
    }
  }
  return needsResult;
}

std::vector<Step> PhaseAnalysis::schedule(Block &block) const {
  std::vector<Step> steps;
  for (Step &step : scheduleLoops(block)) {
    if (steps.empty() || steps.back().immediate || step.immediate ||
        !steps.back().phase.epilogue.empty() ||
        !mayFollow(steps.back().phase, step.phase)) {
      steps.push_back(std::move(step));
      continue;
    }
    Phase &phase = steps.back().phase;
    phase.epilogue = std::move(step.phase.roots);
    llvm::SetVector<Operation *> users;
    collectUsers(phase.roots[0].op->getResult(0), block, users);
    phase.keepsResult = !llvm::all_of(users, [&](Operation *user) {
      return llvm::any_of(phase.epilogue,
                          [&](const Root &root) { return root.op == user; });
    });
  }
  return steps;
}

} // namespace tessera
