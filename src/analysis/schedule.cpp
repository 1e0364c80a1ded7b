//===- schedule.cpp - The steps of a block --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/phases.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera {

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

namespace {

/// Forms phases while walking a block.
class Scheduler {
public:
  Scheduler(tile::KernelOp kernel, const PhaseAnalysis &phases,
            const AccessAnalysis &accesses, SmallVectorImpl<Refusal> *refusals,
            llvm::DenseSet<Value> *kept)
      : kernel(kernel), phases(phases), accesses(accesses), refusals(refusals),
        kept(kept) {}

  std::vector<Step> run(Block &block) {
    for (Operation &op : block) {
      if (std::optional<Root> root = rootOf(&op)) {
        addRoot(*root);
      } else if (isDeferred(&op)) {
        if (phases.isMaterialized(op.getResult(0)))
          addRoot({Root::Kind::Materialize, &op, op.getResult(0)});
      } else {
        addImmediate(op);
      }
    }
    close();
    return std::move(steps);
  }

private:
  void close() {
    if (current.join && !isWorthJoining())
      splitJoin();
    if (current.join)
      // Computed with the phase.
      llvm::erase_if(delayed, [&](Operation *op) {
        return llvm::is_contained(current.join->between, op);
      });
    if (!current.roots.empty()) {
      Step &step = steps.emplace_back();
      step.phase = std::move(current);
    }
    for (Operation *op : delayed)
      steps.emplace_back().immediate = op;
    delayed.clear();
    current = {};
    pending.clear();
    buffered.clear();
    reads.clear();
    writes.clear();
  }

  void addImmediate(Operation &op) {
    bool needs = op.getNumRegions() > 0 || isa<tile::StoreOp>(op);
    if (op.hasTrait<OpTrait::IsTerminator>())
      needs = true;
    bool waits = llvm::any_of(op.getOperands(), [&](Value operand) {
      return pending.contains(operand) || buffered.contains(operand);
    });
    if (waits && isScalarArithmetic(op)) {
      // It follows the phase; roots after it that need no result of it may
      // still join the phase.
      delayed.push_back(&op);
      pending.insert(op.result_begin(), op.result_end());
      return;
    }
    needs |= waits;
    if (std::optional<Access> access = getAccess(&op))
      for (const Access &write : writes)
        needs |= accesses.mayConflict(*access, write);
    if (needs)
      close();
    steps.emplace_back().immediate = &op;
  }

  /// Whether an op does nothing but compute scalars from scalars.
  static bool isScalarArithmetic(Operation &op) {
    return op.getNumRegions() == 0 && op.getNumResults() > 0 &&
           isMemoryEffectFree(&op) && !getAccess(&op) &&
           llvm::none_of(op.getOperands(), isTile) &&
           llvm::none_of(op.getResults(), isTile);
  }

  /// Whether the regions of the root's op use a result of the phase.
  bool capturesPending(const Root &root) const {
    bool captures = false;
    if (root.op && root.op->getNumRegions() > 0)
      root.op->walk([&](Operation *inner) {
        captures |= inner != root.op &&
                    llvm::any_of(inner->getOperands(), [&](Value operand) {
                      return pending.contains(operand);
                    });
      });
    return captures;
  }

  static bool standsAlone(const Root &root) {
    switch (root.kind) {
    case Root::Kind::Store:
    case Root::Kind::Materialize:
      return false;
    case Root::Kind::Reduce: {
      auto reduce = cast<tile::ReduceOp>(root.op);
      return reduce.getOrder() != tile::Order::Unordered;
    }
    case Root::Kind::ArgReduce:
      return false;
    case Root::Kind::Scatter:
    case Root::Kind::Contract:
    case Root::Kind::Scan:
    case Root::Kind::Sort:
      return true;
    }
    return true;
  }

  static bool sameSet(ArrayRef<StringAttr> a, ArrayRef<StringAttr> b) {
    return a.size() == b.size() && llvm::all_of(a, [&](StringAttr dim) {
             return llvm::is_contained(b, dim);
           });
  }

  /// Whether the root can be served by the phase being formed.
  bool fits(Root &root, ArrayRef<StringAttr> kept, ArrayRef<StringAttr> reduced,
            const llvm::SetVector<Value> &cone, ArrayRef<Access> rootReads,
            ArrayRef<Access> rootWrites) {
    if (current.roots.empty())
      return true;
    if (standsAlone(root) || standsAlone(current.roots.front()))
      return false;
    SmallVector<StringAttr> space(kept), currentSpace(current.kept);
    llvm::append_range(space, reduced);
    llvm::append_range(currentSpace, current.reduced);
    if (!sameSet(space, currentSpace))
      return false;
    if (!reduced.empty() && !current.reduced.empty() &&
        !sameSet(reduced, current.reduced))
      return false;
    // A loop that may run twice stores nothing that it may read, and gives sums
    // and what is kept alone.
    if (current.join && !isSumOrKept(root))
      return false;
    for (Value value : cone) {
      // These read a buffer at other positions than the current ones.
      if (Operation *op = value.getDefiningOp();
          op && isa<tile::GatherOp, tile::ReshapeOp>(op) &&
          buffered.contains(op->getOperand(0)))
        return false;
    }
    for (const Access &write : rootWrites)
      for (const Access &other : llvm::concat<Access>(reads, writes))
        if (accesses.mayConflict(write, other) &&
            !accesses.isPointwise(write, other))
          return false;
    for (const Access &read : rootReads)
      for (const Access &write : writes)
        if (accesses.mayConflict(read, write) &&
            !accesses.isPointwise(read, write))
          return false;
    llvm::SmallSetVector<Value, 2> needed;
    for (Value value : cone)
      if (pending.contains(value))
        needed.insert(value);
    // What the phase keeps may depend on the centre, too.
    for (const Root &other : current.roots)
      if (other.kind == Root::Kind::Materialize &&
          other.dependence.form != Dependence::Form::Free &&
          cone.contains(other.value))
        needed.insert(current.join->centre);
    return needed.empty() ||
           (phases.joins() && joins(root, needed.getArrayRef()));
  }

  //===--------------------------------------------------------------------===//
  // Joining the phase that a root depends on
  //===--------------------------------------------------------------------===//

  bool refuseJoin(const char *code, const Twine &text) {
    return refuseJoin({code, text.str()});
  }

  bool refuseJoin(Refusal refusal) {
    if (refusals)
      refusals->push_back(std::move(refusal));
    return false;
  }

  static bool isSumOrKept(const Root &root) {
    return root.kind == Root::Kind::Reduce ||
           root.kind == Root::Kind::Materialize;
  }

  /// Whether a law lets the root join the phase although it needs results of
  /// it. Sets its dependence and the phase's join.
  bool joins(Root &root, ArrayRef<Value> needed) {
    if (!isSumOrKept(root))
      return false;
    if (needed.size() != 1)
      return refuseJoin("algebra.centre", "it depends on several results");
    Join join;
    join.centre = needed[0];
    if (isTile(join.centre) || !current.kept.empty())
      return refuseJoin("algebra.rows", "the reductions keep dimensions");
    if (!llvm::all_of(current.roots, isSumOrKept))
      return refuseJoin("algebra.stores",
                        "the loop also stores, or finds positions");
    if (!traceCentre(join))
      return refuseJoin("algebra.centre",
                        "its centre is not computed from one reduction");
    if (current.join && (current.join->centre != join.centre ||
                         current.join->first != join.first))
      return refuseJoin("algebra.centre", "another centre is in the loop");
    const bool isKept = root.kind == Root::Kind::Materialize;
    if (isKept && !isReadByElements(root.value))
      return refuseJoin("algebra.kept", "a value is needed at other positions");
    auto second = isKept ? tile::ReduceOp() : cast<tile::ReduceOp>(root.op);
    JoinQuery query{kernel,
                    join.first,
                    join.centre,
                    second,
                    isKept ? root.value : second.getInputs()[0],
                    accesses.dimTable().elements(current.reduced)};
    std::variant<Licence, Refusal> proof = proveJoin(query);
    if (auto *refusal = std::get_if<Refusal>(&proof)) {
      if (isKept && kept)
        kept->insert(root.value);
      return refuseJoin(std::move(*refusal));
    }
    const Licence &licence = std::get<Licence>(proof);
    if (current.join && current.join->law != licence.law)
      return refuseJoin("algebra.centre", "two laws are in one loop");
    root.dependence = licence.dependence;
    if (!current.join) {
      join.law = licence.law;
      join.count = *query.count;
      current.join = std::move(join);
    }
    return true;
  }

  /// Finds the reduction of the phase that the centre is computed from, and the
  /// scalar operations between them.
  bool traceCentre(Join &join) const {
    llvm::DenseSet<Value> wanted{join.centre};
    SmallVector<Operation *> between;
    for (Operation *op : llvm::reverse(delayed)) {
      if (llvm::none_of(op->getResults(),
                        [&](Value result) { return wanted.contains(result); }))
        continue;
      between.push_back(op);
      for (Value operand : op->getOperands())
        if (pending.contains(operand))
          wanted.insert(operand);
    }
    join.between.assign(between.rbegin(), between.rend());
    for (const Root &root : current.roots) {
      if (root.kind == Root::Kind::Materialize)
        continue;
      for (Value result : root.op->getResults()) {
        if (!wanted.contains(result))
          continue;
        auto reduce = dyn_cast<tile::ReduceOp>(root.op);
        if (join.first || !reduce ||
            root.dependence.form != Dependence::Form::Free)
          return false;
        join.first = reduce;
      }
    }
    return bool(join.first);
  }

  /// Whether all that uses a value evaluates it at its own coordinates, in this
  /// block.
  static bool isReadByElements(Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return user->getBlock() == value.getDefiningOp()->getBlock() &&
             !isa<tile::GatherOp, tile::ReshapeOp>(user) &&
             (isDeferred(user) || isa<tile::ReduceOp, tile::StoreOp>(user));
    });
  }

  /// Deviations alone say nothing about how good a reference is: the squares
  /// do. What is only kept has nothing to gain.
  bool isWorthJoining() {
    for (const Root &root : current.roots) {
      if (root.kind != Root::Kind::Reduce)
        continue;
      if (root.dependence.form == Dependence::Form::Exponential)
        return true;
      if (root.dependence.form != Dependence::Form::Square)
        continue;
      Value deviation = root.dependence.deviation;
      current.join->deviation = deviation;
      current.join->isReversed =
          deviation.getDefiningOp()->getOperand(1) == root.dependence.element &&
          isa<arith::SubFOp>(deviation.getDefiningOp());
      return true;
    }
    return refuseJoin("algebra.reference",
                      "no sum of squares tells how good a reference is");
  }

  /// Makes two phases of one that is not worth joining.
  void splitJoin() {
    Phase rest;
    rest.kept = current.kept;
    rest.reduced = current.reduced;
    SmallVector<Root> own;
    for (Root &root : current.roots) {
      const bool depends = root.dependence.form != Dependence::Form::Free;
      root.dependence = {};
      (depends ? rest.roots : own).push_back(root);
    }
    const Join join = *current.join;
    current.join.reset();
    current.roots = std::move(own);
    Step &step = steps.emplace_back();
    step.phase = std::move(current);
    for (Operation *op : join.between)
      steps.emplace_back().immediate = op;
    llvm::erase_if(delayed, [&](Operation *op) {
      return llvm::is_contained(join.between, op);
    });
    current = std::move(rest);
  }

  void addRoot(Root root) {
    SmallVector<StringAttr> kept, reduced;
    rootSpace(root, kept, reduced);
    llvm::SetVector<Value> cone = phases.cone(root);
    SmallVector<Access> rootReads, rootWrites;
    for (Value value : cone)
      if (Operation *op = value.getDefiningOp())
        if (std::optional<Access> access = getAccess(op);
            access && !phases.isMaterialized(value))
          rootReads.push_back(*access);
    if (root.kind == Root::Kind::Materialize)
      if (std::optional<Access> access = getAccess(root.op))
        rootReads.push_back(*access);
    if (root.kind == Root::Kind::Store || root.kind == Root::Kind::Scatter)
      rootWrites.push_back(*getAccess(root.op));
    if (capturesPending(root) ||
        !fits(root, kept, reduced, cone, rootReads, rootWrites))
      close();
    if (current.roots.empty()) {
      current.kept = kept;
      current.reduced = reduced;
    } else if (current.reduced.empty() && !reduced.empty()) {
      // An elementwise phase becomes one that also reduces.
      current.kept = kept;
      current.reduced = reduced;
    }
    current.roots.push_back(root);
    llvm::append_range(reads, rootReads);
    llvm::append_range(writes, rootWrites);
    if (root.kind == Root::Kind::Materialize)
      buffered.insert(root.value);
    else
      pending.insert(root.op->result_begin(), root.op->result_end());
  }

  tile::KernelOp kernel;
  const PhaseAnalysis &phases;
  const AccessAnalysis &accesses;
  SmallVectorImpl<Refusal> *refusals;
  /// Receives the values that cannot join because they are kept.
  llvm::DenseSet<Value> *kept;
  std::vector<Step> steps;
  Phase current;
  /// Results of the phase being formed and of what is delayed until its end;
  /// values that it keeps in buffers.
  llvm::DenseSet<Value> pending, buffered;
  SmallVector<Operation *> delayed;
  SmallVector<Access> reads, writes;
};

} // namespace

std::vector<Step>
PhaseAnalysis::scheduleLoops(Block &block, SmallVectorImpl<Refusal> *refusals,
                             llvm::DenseSet<Value> *kept) const {
  return Scheduler(kernel, *this, accesses, refusals, kept).run(block);
}

} // namespace tessera
