//===- nest.cpp - The loop nest of a phase --------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"

#include "analysis/affine.h"
#include "realize/cpu/combination.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/sort.h"
#include "realize/cpu/states.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

NestEmitter::NestEmitter(Realizer &realizer)
    : r(realizer), emit(realizer.emit), b(realizer.b) {}

/// Of a dimension, what programs have that end early: where they begin at
/// multiples of its extent, all the same; else 0.
static int64_t extentAtEdge(const LiveLimit &limit, int64_t extent,
                            const Phase &phase, const DimTable &dims) {
  Operation *op = phase.roots.empty() ? nullptr : phase.roots[0].op;
  if (!op || !limit.offset || dims.range(limit.offset).high >= limit.viewExtent)
    return 0;
  AffineReader reader(op->getParentOfType<tile::ParallelOp>(), dims);
  const AffineIndex begin = reader.read(limit.offset);
  const bool isMultiple = begin.rest.known && begin.rest.low == 0 &&
                          begin.rest.high == 0 &&
                          llvm::all_of(begin.factors, [&](int64_t factor) {
                            return factor >= 0 && factor % extent == 0;
                          });
  return isMultiple ? limit.viewExtent % extent : 0;
}

NestEmitter::NestEmitter(Realizer &realizer, const Phase &phase,
                         const NestPlan &plan)
    : r(realizer), emit(realizer.emit), b(realizer.b), phase(&phase),
      plan(plan), prefetches(realizer.prefetchesOf(plan)) {
  SmallVector<StringAttr> kept(phase.kept), reduced(phase.reduced);
  if (!plan.vectorDim.empty()) {
    vectorDim = StringAttr::get(b.getContext(), plan.vectorDim);
    // The vector level is the innermost of its group: nothing is gained by
    // other loops inside it.
    // The rows of a square are next to it.
    StringAttr rowDim = plan.transposes
                            ? StringAttr::get(b.getContext(), plan.tileDim)
                            : StringAttr();
    for (StringAttr last : {rowDim, vectorDim})
      for (auto *group : {&kept, &reduced})
        if (auto *it = llvm::find(*group, last); it != group->end())
          std::rotate(it, it + 1, group->end());
  }
  keptLevels = kept.size();
  // Checks go over all coordinates, lane by lane or not.
  if (r.checksOnly)
    this->plan.tailLanes = 0;
  if (!plan.atom.empty() && !r.checksOnly)
    atom = findAtom(plan.atom);
  for (StringAttr dim : llvm::concat<StringAttr>(kept, reduced)) {
    if (dim == vectorDim)
      vectorLevel = levels.size();
    if (plan.tileRows > 1 && dim.getValue() == plan.tileDim)
      tileLevel = levels.size();
    if (atom && dim.getValue() == plan.groupDim)
      groupLevel = levels.size();
    Level &level = levels.emplace_back();
    level.dim = dim;
    level.extent = r.checksOnly ? r.constantExtent(dim)
                                : r.analysis.phases.liveExtent(phase, dim);
    if (r.share && r.share->dim == dim) {
      level.extent = r.share->extent;
      level.base = r.share->begin;
      continue;
    }
    if (r.checksOnly)
      continue;
    LiveLimit limit = r.analysis.phases.liveLimit(phase, dim);
    if (limit.known && r.interior) {
      // None of these programs may end early.
      IndexRange offset = r.interior->range(limit.offset, r.analysis.dims);
      limit.known =
          !offset.known || limit.viewExtent - offset.high < level.extent;
    }
    // A limit that is computed after this phase comes too late.
    if (limit.known && r.hasScalar(limit.offset))
      level.limit = limit;
    if (level.limit.known && int(levels.size()) == tileLevel + 1 &&
        !plan.transposes)
      level.edge = extentAtEdge(limit, *level.extent, phase, r.analysis.dims);
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void NestEmitter::enter(unsigned level, Value coordinate) {
  levels[level].coordinate = coordinate;
  for (unsigned inner = level; inner < levels.size(); ++inner) {
    levels[inner].cache.clear();
    levels[inner].cache.resize(slotsOfElement() * (atom ? atom->group + 1 : 1));
    levels[inner].corrections.clear();
    if (inner > level)
      levels[inner].anchor = nullptr;
  }
}

/// Where a loop of a level ends: at `last`, or before, where nothing after it
/// is stored.
Value NestEmitter::end(unsigned level, int64_t last) {
  Value constant = emit.index(last);
  const LiveLimit &limit = levels[level].limit;
  if (!limit.known)
    return constant;
  Value left = b.create<arith::SubIOp>(emit.loc, emit.index(limit.viewExtent),
                                       r.scalar(limit.offset));
  return b.create<arith::MinSIOp>(emit.loc, constant, left);
}

/// A coordinate that is counted from the first one of the level.
Value NestEmitter::fromBase(unsigned level, Value coordinate) {
  const Value base = levels[level].base;
  return base ? emit.add(base, coordinate) : coordinate;
}

/// Of a reduced level, where it is constant.
std::optional<int64_t> NestEmitter::extentOf(unsigned level) const {
  return levels[level].base ? levels[level].extent
                            : r.constantExtent(levels[level].dim);
}

void NestEmitter::loop(unsigned level, int64_t first, int64_t trips,
                       int64_t step, int64_t vectorCount, States *states,
                       function_ref<void()> body) {
  if (trips == 0)
    return;
  int64_t savedVectors = vectors;
  vectors = vectorCount;
  if (trips == 1 && !levels[level].limit.known) {
    enter(level, fromBase(level, emit.index(first)));
    body();
    vectors = savedVectors;
    return;
  }
  SmallVector<Value> inits;
  if (states)
    flatten(*states, inits);
  Value lower = fromBase(level, emit.index(first));
  Value upper = trips < 0 ? r.extent(levels[level].dim)
                          : fromBase(level, end(level, first + trips * step));
  auto forOp =
      b.create<scf::ForOp>(emit.loc, lower, upper, emit.index(step), inits);
  if (levels[level].base)
    forOp->setAttr(tripsAttribute,
                   b.getDenseF64ArrayAttr({double(trips), double(trips)}));
  if (levels[level].limit.known)
    noteTrips(
        forOp, level, trips,
        std::clamp<int64_t>(
            llvm::divideCeilSigned(leastLive(level) - first, step), 0, trips));
  if (!levels[level].anchor)
    levels[level].anchor = forOp;
  {
    OpBuilder::InsertionGuard guard(b);
    if (inits.empty())
      b.setInsertionPoint(forOp.getBody()->getTerminator());
    else
      b.setInsertionPointToEnd(forOp.getBody());
    if (states)
      unflatten(forOp.getRegionIterArgs(), *states);
    Value position = forOp.getInductionVar();
    if (level >= keptLevels && isReversed())
      position = b.create<arith::SubIOp>(
          emit.loc, emit.add(r.extent(levels[level].dim), emit.index(-1)),
          position);
    enter(level, position);
    body();
    if (!inits.empty()) {
      SmallVector<Value> yielded;
      flatten(*states, yielded);
      b.create<scf::YieldOp>(emit.loc, yielded);
    }
  }
  if (states)
    unflatten(forOp.getResults(), *states);
  vectors = savedVectors;
}

/// The tiled level; narrower last vectors are done for all rows after the
/// others.
void NestEmitter::emitTiledLevel(unsigned level, function_ref<void()> inner) {
  emitRows(level, plan.tileRows, inner);
  if (plan.tailLanes > 0)
    emitNarrowTails(level, inner);
}

/// Groups of rows, then the rest as a smaller group.
void NestEmitter::emitRows(unsigned level, int64_t together,
                           function_ref<void()> inner) {
  // Rows of the narrower last vectors are many: each has an address.
  if (levels[level].edge > 0 && !isAtTail)
    return emitLiveRows(level, together, inner);
  int64_t extent = *levels[level].extent;
  int64_t groups = extent / together, rest = extent % together;
  rows = together;
  loop(level, 0, groups, together, vectors, nullptr, inner);
  rows = std::max<int64_t>(rest, 1);
  if (plan.transposes && rest > 0)
    rowMask = emit.prefixMask(emit.index(rest), plan.tileRows);
  loop(level, extent - rest, rest > 0, rest, vectors, nullptr, inner);
  rowMask = {};
  rows = 1;
}

/// Rows of programs that have all of them or as many as the array's edge
/// leaves: groups of which every row is live, then the rest of either.
void NestEmitter::emitLiveRows(unsigned level, int64_t together,
                               function_ref<void()> inner) {
  const int64_t extent = *levels[level].extent, edge = levels[level].edge;
  Value live = end(level, extent);
  Value isWholeBlock =
      emit.compare(arith::CmpIPredicate::eq, live, emit.index(extent));
  auto wholeGroups = [&](int64_t length) { return length / together; };
  Value last = b.create<arith::SubIOp>(
      emit.loc, live,
      b.create<arith::RemUIOp>(emit.loc, live, emit.index(together)));
  hasLiveRows = true;
  rows = together;
  loopBetween(level, emit.index(0), last, together, vectors,
              wholeGroups(extent), wholeGroups(edge), inner);
  auto branch = b.create<scf::IfOp>(emit.loc, isWholeBlock,
                                    /*withElseRegion=*/true);
  const double share =
      r.box ? r.box->share(levels[level].limit.offset, r.analysis.dims) : 0.5;
  branch->setAttr(takenAttribute, b.getF64FloatAttr(share));
  auto rest = [&](Block *block, int64_t length) {
    if (length % together == 0)
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(block->getTerminator());
    rows = length % together;
    enter(level, emit.index(length - rows));
    inner();
  };
  rest(branch.thenBlock(), extent);
  rest(branch.elseBlock(), edge);
  hasLiveRows = false;
  rows = 1;
}

bool NestEmitter::isReversed() const {
  return llvm::any_of(accumulators,
                      [](const auto &a) { return a && a->isReversed(); });
}

void NestEmitter::emitLevel(unsigned level) {
  if (level == keptLevels) {
    if (llvm::any_of(accumulators, [](const auto &a) { return bool(a); }))
      return emitReduction();
    if (level == levels.size())
      return emitBody(nullptr);
  }
  if (level == levels.size())
    return emitBody(nullptr);
  auto inner = [&] { emitLevel(level + 1); };
  levels[level].anchor = nullptr;
  if (int(level) == groupLevel)
    return emitGroups(level, nullptr, inner);
  if (int(level) == tileLevel)
    return emitTiledLevel(level, inner);
  if (int(level) != vectorLevel)
    return loop(level, 0, levels[level].extent.value_or(-1), 1, vectors,
                nullptr, inner);
  if (isAtTail)
    return emitNarrowTail(level, inner);
  if (levels[level].limit.known)
    return emitLiveVectors(level, inner);
  if (plan.alignsStores && emitAlignedVectors(level, inner))
    return;
  emitVectorLevel(level, inner);
}

void NestEmitter::emitVectorLevel(unsigned level, function_ref<void()> inner) {
  int64_t extent = *levels[level].extent;
  int64_t group = plan.lanes * plan.unroll;
  int64_t groups = extent / group;
  int64_t single = extent % group / plan.lanes;
  int64_t tail = extent % plan.lanes;
  lanes = plan.lanes;
  loop(level, 0, groups, group, plan.unroll, nullptr, inner);
  loop(level, groups * group, single, plan.lanes, 1, nullptr, inner);
  if (plan.tailLanes > 0) {
    lanes = 1;
  } else if (plan.tail == TailForm::Mask) {
    mask = emit.prefixMask(emit.index(tail), lanes);
    loop(level, extent - tail, tail > 0, plan.lanes, 1, nullptr, inner);
    mask = {};
    lanes = 1;
  } else if (plan.tail == TailForm::Overlap && extent >= plan.lanes) {
    loop(level, extent - plan.lanes, tail > 0, plan.lanes, 1, nullptr, inner);
    lanes = 1;
  } else {
    lanes = 1;
    loop(level, extent - tail, tail, 1, 1, nullptr, inner);
  }
}

/// The vector level where a program may end early: groups of which every vector
/// is live, then single vectors up to the last that has a live lane.
void NestEmitter::emitLiveVectors(unsigned level, function_ref<void()> inner) {
  int64_t extent = *levels[level].extent;
  int64_t group = plan.lanes * plan.unroll;
  int64_t tail = extent % plan.lanes;
  const int64_t least = leastLive(level);
  Value live = end(level, extent);
  if (levels[level].limit.viewExtent <
      r.analysis.dims.range(levels[level].limit.offset).high)
    live = b.create<arith::MaxSIOp>(emit.loc, live, emit.index(0));
  lanes = plan.lanes;
  Value next = emit.index(0);
  if (plan.unroll > 1 && extent >= group) {
    Value rest = b.create<arith::RemUIOp>(emit.loc, live, emit.index(group));
    Value whole = b.create<arith::SubIOp>(emit.loc, live, rest);
    isWhole = true;
    loopBetween(level, next, whole, group, plan.unroll, extent / group,
                least / group, inner);
    isWhole = false;
    next = whole;
  }
  Value last = live;
  // Programs begin at whole vectors, and the last one is no whole one.
  if (plan.tailLanes > 0)
    last = b.create<arith::AndIOp>(emit.loc, live, emit.index(-plan.lanes));
  if (tail > 0)
    last = b.create<arith::MinSIOp>(emit.loc, live, emit.index(extent - tail));
  int64_t perGroup = plan.unroll > 1 ? group : extent + 1;
  isWhole = plan.tailLanes > 0;
  loopBetween(level, next, last, plan.lanes, 1, extent % perGroup / plan.lanes,
              (least % perGroup + (isWhole ? 0 : plan.lanes - 1)) / plan.lanes,
              inner);
  isWhole = false;
  if (tail > 0) {
    next = emit.index(extent - tail);
    const int64_t tailAtEdge = std::max<int64_t>(least - (extent - tail), 0);
    if (plan.tail == TailForm::Mask) {
      mask = emit.prefixMask(emit.index(tail), lanes);
      loopBetween(level, next, live, plan.lanes, 1, 1, tailAtEdge > 0, inner);
      mask = {};
    } else {
      lanes = 1;
      loopBetween(level, next, live, 1, 1, tail, tailAtEdge, inner);
    }
  }
  lanes = 1;
}

/// The coordinates of a level that are live in the program that ends first.
int64_t NestEmitter::leastLive(unsigned level) const {
  const LiveLimit &limit = levels[level].limit;
  IndexRange offset = r.analysis.dims.range(limit.offset);
  return std::clamp<int64_t>(limit.viewExtent - offset.high, 0,
                             *levels[level].extent);
}

/// How often the body of a loop is expected to run, for pricing.
void NestEmitter::noteTrips(scf::ForOp loop, unsigned level, int64_t trips,
                            int64_t tripsAtEdge) {
  double share =
      r.box ? r.box->share(levels[level].limit.offset, r.analysis.dims) : 0.5;
  double expected = share * double(trips) + (1 - share) * double(tripsAtEdge);
  loop->setAttr(tripsAttribute,
                b.getDenseF64ArrayAttr({expected, double(trips)}));
}

/// A loop over coordinates that are known at run time. Of a program that ends
/// nowhere early it makes `trips` iterations.
void NestEmitter::loopBetween(unsigned level, Value first, Value last,
                              int64_t step, int64_t vectorCount, int64_t trips,
                              int64_t tripsAtEdge, function_ref<void()> body) {
  int64_t savedVectors = vectors;
  vectors = vectorCount;
  auto forOp = b.create<scf::ForOp>(emit.loc, first, last, emit.index(step));
  noteTrips(forOp, level, trips, tripsAtEdge);
  if (!levels[level].anchor)
    levels[level].anchor = forOp;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forOp.getBody()->getTerminator());
  enter(level, forOp.getInductionVar());
  body();
  vectors = savedVectors;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// What follows a contraction, for the results that are in registers.
void NestEmitter::emitEpilogue() {
  for (unsigned level = keptLevels; level < levels.size(); ++level)
    levels[level].anchor = nullptr;
  for (copy = 0; copy < copies(); ++copy)
    for (const Root &root : phase->epilogue)
      emitRoot(root);
  copy = 0;
}

/// A root without running results, at the current coordinates.
void NestEmitter::emitRoot(const Root &root) {
  if (root.kind == Root::Kind::Store)
    storeElement(*getAccess(root.op), cast<tile::StoreOp>(root.op).getValue());
  else if (root.kind == Root::Kind::Scatter)
    scatterElement(cast<tile::ScatterOp>(root.op));
  else if (root.kind == Root::Kind::Materialize)
    if (const TileBuffer *buffer = r.findBuffer(root.value))
      writeBuffer(*buffer, value(root.value));
}

/// Evaluates what is stored for the copies up to `end`, before any of them is:
/// the code generator may then mix their chains of arithmetic (codegen/llvm/
/// interleave.h), which stores would keep apart.
void NestEmitter::evaluateAhead(int64_t end) {
  // What is loaded after a store may be what it stores.
  auto isOnlyStored = [&](tile::StoreOp store) {
    return r.analysis.accesses.aliasMode() == AliasMode::Disjoint &&
           llvm::all_of(store.getView().getUsers(), [](Operation *user) {
             return isa<tile::StoreOp, tile::ExtentOp>(user);
           });
  };
  const int64_t first = copy;
  for (; copy < end; ++copy)
    for (const Root &root : phase->roots) {
      if (root.kind == Root::Kind::Store) {
        auto store = cast<tile::StoreOp>(root.op);
        value(store.getValue());
        if (!isOnlyStored(store))
          break;
      } else if (root.kind == Root::Kind::Scatter) {
        break;
      } else if (root.kind == Root::Kind::Materialize &&
                 r.findBuffer(root.value)) {
        value(root.value);
      }
    }
  copy = first;
}

void NestEmitter::emitBody(States *states) {
  if (packing)
    return emitPacked();
  if (plan.transposes && lanes > 1)
    return emitSquares();
  // As many as are worth mixing, and leave registers for their arithmetic.
  const int64_t chainsAtOnce = emit.target.vectorRegisters / 8;
  const int64_t all = copies();
  for (copy = 0; copy < all; ++copy) {
    if (lanes > 1 && copy % chainsAtOnce == 0)
      evaluateAhead(std::min(all, copy + chainsAtOnce));
    State next;
    for (auto [number, root] : llvm::enumerate(phase->roots)) {
      emitRoot(root);
      if (accumulators[number])
        llvm::append_range(next, accumulators[number]->step(
                                     *this, slice((*states)[copy], number)));
    }
    if (states)
      (*states)[copy] = next;
    if (prefetches && lanes > 1)
      for (Operation *store : prefetches->stores)
        prefetchStored(*getAccess(store));
  }
  copy = 0;
}

/// Whether the lanes of a contraction, which lie along another dimension than
/// rows of its result, are kept side by side.
bool NestEmitter::liesAlongLanes(Value result) {
  return vectorLevel >= 0 && vectorLevel < int(keptLevels) &&
         isa<tile::ContractOp>(result.getDefiningOp()) &&
         tile::getDims(result.getType()).back() != vectorDim &&
         hasFreeLayout(result) && !r.isWanted(result);
}

void NestEmitter::run() {
  const bool isDone = plan.epilogue && !phase->keepsResult;
  auto keep = [&](const Root &root) {
    if (root.kind != Root::Kind::Materialize)
      return false;
    if (!r.findBuffer(root.value))
      r.setBuffer(root.value, r.allocateFor(root.value, "kept", root.op));
    // A value computed by an earlier phase is read from its own buffer.
    if (root.op && isDeferred(root.op))
      evaluatedHere.insert(root.value);
    return true;
  };
  if (plan.epilogue)
    for (const Root &root : phase->epilogue)
      keep(root);
  for (const Root &root : phase->roots) {
    if (!keep(root) && root.op && !isDone)
      for (Value result : root.op->getResults())
        if (isa<RankedTensorType>(result.getType())) {
          // Rows of sums come side by side.
          if (sumsRows() && hasFreeLayout(result) && !r.isWanted(result))
            r.layouts[result] = levels[tileLevel].dim;
          else if (liesAlongLanes(result))
            r.layouts[result] = vectorDim;
          r.setBuffer(result, r.allocateFor(result, "result", root.op));
        }
    accumulators.push_back(makeAccumulator(root, *phase, emit.target));
  }
  if (atom) {
    auto contract = cast<tile::ContractOp>(phase->roots[0].op);
    atoms = {atom, *narrowOperand(contract->getOperand(1 - plan.vectorOperand)),
             *narrowOperand(contract->getOperand(plan.vectorOperand))};
  }
  if (plan.transposes)
    orientValues();
  if (phase->roots.size() == 1 && phase->roots[0].kind == Root::Kind::Sort)
    return emitSort(r, cast<tile::SortOp>(phase->roots[0].op));
  if (phase->roots.size() == 1)
    if (auto scan = dyn_cast_or_null<tile::ScanOp>(phase->roots[0].op);
        scan && isWindowScan(scan))
      return emitWindowScan(r, scan);
  if (atom && atom->isTile())
    return emitTiles();
  if (plan.reducedBlock > 0 && !r.checksOnly)
    return emitReducedBlocks();
  emitLevel(0);
  for (Operation *load : loadedAgain)
    if (load->use_empty())
      load->erase();
}

} // namespace tessera
