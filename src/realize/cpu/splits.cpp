//===- splits.cpp - Reductions that several programs share ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With GridPlan::splits, program p of the grid is done by the programs p * S to
// p * S + S - 1 of the stage:
//
//   what precedes the reduction
//   place[s] = the reduction of share s, from the identity
//   if (counter[p]++ == S - 1)         the last one to come; acquire, release
//     counter[p] = 0                   for the next launch
//     combine place[0], place[1], ...  in this order
//     what follows the reduction
//
// Nobody waits, and the bits do not depend on who comes last. Counters and
// places are in the workspace of the launch: the counters first, each on a line
// of its own, then the places in the order of programs.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/elementwise.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/realizer.h"

#include <utility>

using namespace mlir;

namespace tessera {

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

Value Realizer::workspace() {
  return atEntry([&] {
    int64_t views = 0;
    tile::KernelOp kernel = analysis.kernel;
    for (BlockArgument argument : kernel.getBody().front().getArguments())
      views += isa<tile::ViewType>(argument.getType());
    Value slot = emit.offsetPointer(data, b.getI64Type(), emit.index(views));
    return b
        .create<LLVM::LoadOp>(emit.loc,
                              LLVM::LLVMPointerType::get(b.getContext()), slot)
        .getResult();
  });
}

/// Where the values of a part lie; sets partBytes.
SmallVector<Realizer::PartValue> Realizer::layOutPart(ValueRange results) {
  SmallVector<PartValue> values;
  partBytes = 0;
  for (Value result : results) {
    PartValue &value = values.emplace_back();
    value.result = result;
    value.offset = partBytes;
    if (isTile(result))
      value.buffer = layOut(result.getType(), result.getDefiningOp());
    partBytes += value.buffer.constantSpacing();
  }
  return values;
}

/// A byte offset from a place.
static Value at(VectorEmitter &emit, Value place, int64_t offset) {
  return emit.offsetPointer(place, emit.b.getI8Type(), emit.index(offset));
}

void Realizer::runSharedProgram(tile::ParallelOp op, Value number,
                                const std::vector<Step> &steps) {
  std::string why;
  const std::optional<SplitSite> site = findSplit(op, steps, planning, why);
  const int64_t splits = plan.order.splits;
  int64_t programs = 1;
  for (Attribute dim : op.getDims())
    programs *= constantExtent(cast<StringAttr>(dim)).value_or(1);
  Value program =
      b.create<arith::DivUIOp>(emit.loc, number, emit.index(splits));
  Value split = b.create<arith::RemUIOp>(emit.loc, number, emit.index(splits));
  bindProgram(op, program);
  auto step = steps.begin();
  auto isSite = [&](const Step &one) {
    return (one.immediate ? one.immediate : one.phase.roots[0].op) == site->op;
  };
  for (; !isSite(*step); ++step)
    runStep(*step);

  // A part, left in its place.
  auto fold = dyn_cast_or_null<tile::FoldOp>(step->immediate);
  SmallVector<Value> results(site->op->getResults());
  if (!fold) {
    results.clear();
    for (const Root &root : step->phase.roots)
      llvm::append_range(results, root.op->getResults());
  }
  SmallVector<PartValue> values = layOutPart(results);
  Value memory = workspace();
  Value places = at(emit, memory, programs * counterBytes);
  places = emit.offsetPointer(
      places, b.getI8Type(), emit.mul(program, emit.index(splits * partBytes)));
  Value place = emit.offsetPointer(places, b.getI8Type(),
                                   emit.mul(split, emit.index(partBytes)));
  if (fold)
    runFoldPart(fold, split, values, place);
  else
    runLoopsPart(step->phase, *site, split, values, place);

  // The last one to come.
  Type i32 = b.getI32Type();
  Value counter = emit.offsetPointer(
      memory, b.getI8Type(), emit.mul(program, emit.index(counterBytes)));
  Value before = b.create<LLVM::AtomicRMWOp>(emit.loc, LLVM::AtomicBinOp::add,
                                             counter, emit.integer(i32, 1),
                                             LLVM::AtomicOrdering::acq_rel);
  Value isLast = emit.compare(arith::CmpIPredicate::eq, before,
                              emit.integer(i32, splits - 1));
  auto ifOp = b.create<scf::IfOp>(emit.loc, isLast, /*withElseRegion=*/false);
  ifOp->setAttr(takenAttribute, b.getF64FloatAttr(1 / double(splits)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  b.create<LLVM::StoreOp>(emit.loc, emit.integer(i32, 0), counter);
  if (fold)
    combineFolds(fold, values, places);
  else
    combineParts(values, places);
  if (!fold && !step->phase.epilogue.empty()) {
    Phase next;
    next.roots = step->phase.epilogue;
    rootSpace(next.roots[0], next.kept, next.reduced);
    runPhase(next);
  }
  for (++step; step != steps.end(); ++step)
    runStep(*step);
}

void Realizer::runFoldPart(tile::FoldOp op, Value split,
                           ArrayRef<PartValue> values, Value place) {
  const int64_t splits = plan.order.splits;
  Value size = extent(op.getDimAttr());
  auto bound = [&](Value part) -> Value {
    return b.create<arith::DivUIOp>(emit.loc, emit.mul(size, part),
                                    emit.index(splits));
  };
  // Of no iterations if there are too few.
  runFold(op, bound(split), bound(emit.add(split, emit.index(1))));
  for (const PartValue &value : values) {
    Value target = at(emit, place, value.offset);
    if (const TileBuffer *buffer = findBuffer(value.result))
      b.create<LLVM::MemcpyOp>(emit.loc, target, buffer->pointer,
                               buffer->size(emit), /*isVolatile=*/false);
    else
      emit.store(scalar(value.result), target, value.result.getType(), Value());
  }
}

/// Combines as the fold does, in turns between two places.
void Realizer::combineFolds(tile::FoldOp op, ArrayRef<PartValue> values,
                            Value places) {
  Block &combine = op.getCombine().front();
  // Its inner values were computed elsewhere before.
  combine.walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      buffers.erase(result);
  });
  SmallVector<Value> inits;
  SmallVector<TileBuffer> tiles;
  for (const PartValue &value : values) {
    Value first = at(emit, places, value.offset);
    if (!isTile(value.result)) {
      inits.push_back(emit.load(first, value.result.getType(), 1, Value()));
      continue;
    }
    inits.push_back(first);
    tiles.push_back(value.buffer);
  }
  for (const PartValue &value : values)
    if (isTile(value.result))
      inits.push_back(allocate(value.result.getType(), "fold", op).pointer);
  auto loop =
      b.create<scf::ForOp>(emit.loc, emit.index(1),
                           emit.index(plan.order.splits), emit.index(1), inits);
  const size_t listed = plan.nests.size();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value place = emit.offsetPointer(
        places, b.getI8Type(),
        emit.mul(loop.getInductionVar(), emit.index(partBytes)));
    ValueRange carried = loop.getRegionIterArgs();
    SmallVector<Value> fresh;
    for (const PartValue &value : values) {
      fresh.push_back(at(emit, place, value.offset));
      if (!isTile(value.result))
        fresh.back() =
            emit.load(fresh.back(), value.result.getType(), 1, Value());
    }
    SmallVector<TileBuffer> destinations(tiles);
    for (auto [tile, pointer] :
         llvm::zip(destinations, carried.drop_front(values.size())))
      tile.pointer = pointer;
    SmallVector<Value> yielded = combineOnce(
        combine, carried.take_front(values.size()), fresh, destinations);
    // What has been read is written next.
    for (auto [value, pointer] : llvm::zip(values, carried))
      if (isTile(value.result))
        yielded.push_back(pointer);
    b.create<scf::YieldOp>(emit.loc, yielded);
  }
  // The plan has the nests of the region already.
  plan.nests.resize(listed);
  for (auto [value, result] : llvm::zip(values, loop.getResults())) {
    if (!isTile(value.result)) {
      setScalar(value.result, result);
      continue;
    }
    TileBuffer buffer = value.buffer;
    buffer.pointer = result;
    setBuffer(value.result, buffer);
  }
}

/// The contractions or reductions of a phase over one share; the last one may
/// be shorter.
void Realizer::runLoopsPart(const Phase &phase, const SplitSite &site,
                            Value split, ArrayRef<PartValue> values,
                            Value place) {
  Phase part = phase;
  part.epilogue.clear();
  part.keepsResult = true;
  const auto [most, least] = *sharesOf(*site.extent, plan.order.splits);
  Value begin = emit.mul(split, emit.index(most));
  for (const PartValue &value : values)
    if (isTile(value.result)) {
      TileBuffer buffer = value.buffer;
      buffer.pointer = at(emit, place, value.offset);
      wanted[value.result] = buffer;
    }
  auto run = [&](int64_t extent) {
    share = Share{site.dim, begin, extent};
    runPhase(part);
    share.reset();
    for (const PartValue &value : values)
      if (!isTile(value.result))
        emit.store(scalar(value.result), at(emit, place, value.offset),
                   value.result.getType(), Value());
  };
  if (most == least) {
    run(most);
  } else {
    // Either runs, in the same memory; the plan has their nests once.
    Value isWhole = emit.compare(arith::CmpIPredicate::ne, split,
                                 emit.index(plan.order.splits - 1));
    auto ifOp = b.create<scf::IfOp>(emit.loc, isWhole, /*withElseRegion=*/true);
    ifOp->setAttr(usualAttr, b.getUnitAttr());
    const auto outerScalars = scalars;
    const auto outerBuffers = buffers;
    const int64_t scratchBefore = scratchSize;
    auto branch = [&](Block *target, int64_t extent) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(target->getTerminator());
      run(extent);
      scalars = outerScalars;
      buffers = outerBuffers;
    };
    branch(ifOp.elseBlock(), least);
    const int64_t scratchInside = std::exchange(scratchSize, scratchBefore);
    plan.nests.pop_back();
    const auto sizes = bufferSizes;
    branch(ifOp.thenBlock(), most);
    scratchSize = std::max(scratchSize, scratchInside);
    bufferSizes = sizes;
  }
  for (const PartValue &value : values)
    wanted.erase(value.result);
}

/// How two parts of a result become one.
static Value combined(VectorEmitter &emit, Value result, Value x, Value y) {
  auto reduce = dyn_cast<tile::ReduceOp>(result.getDefiningOp());
  return emitCombine(emit, reduce ? reduce.getCombiner() : tile::Combiner::Add,
                     x, y);
}

/// Combines the parts of contractions, and what these add to, or of reductions,
/// in the first part's place. All have one layout; what lies behind their
/// elements is combined, too.
void Realizer::combineParts(ArrayRef<PartValue> values, Value places) {
  // In order of the parts, from the first one on.
  auto combineAll = [&](Value result, Value first,
                        llvm::function_ref<Value(Value distance)> load) {
    auto loop = b.create<scf::ForOp>(emit.loc, emit.index(1),
                                     emit.index(plan.order.splits),
                                     emit.index(1), first);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(loop.getBody());
    Value part = load(emit.mul(loop.getInductionVar(), emit.index(partBytes)));
    b.create<scf::YieldOp>(
        emit.loc, combined(emit, result, loop.getRegionIterArg(0), part));
    return loop.getResult(0);
  };
  for (const PartValue &value : values) {
    Value place = at(emit, places, value.offset);
    if (!isTile(value.result)) {
      auto loadAt = [&](Value distance) {
        return emit.load(emit.offsetPointer(place, b.getI8Type(), distance),
                         value.result.getType(), 1, Value());
      };
      setScalar(value.result,
                combineAll(value.result, loadAt(emit.index(0)), loadAt));
      continue;
    }
    TileBuffer whole = value.buffer;
    whole.pointer = place;
    Value added;
    if (auto contract =
            dyn_cast<tile::ContractOp>(value.result.getDefiningOp());
        contract && contract.getAcc()) {
      TileBuffer buffer = allocate(value.result.getType(), "result", contract);
      materializeInto(contract.getAcc(), buffer);
      added = buffer.pointer;
    }
    // Whole lines, one after another.
    const int64_t lanes = cacheLine / storageBytes(whole.element);
    auto line =
        b.create<scf::ForOp>(emit.loc, emit.index(0), emit.index(whole.bytes),
                             emit.index(cacheLine));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(line.getBody()->getTerminator());
    auto loadFrom = [&](Value pointer) {
      return emit.load(
          emit.offsetPointer(pointer, b.getI8Type(), line.getInductionVar()),
          whole.element, lanes, Value());
    };
    Value first = loadFrom(whole.pointer);
    if (added)
      first = combined(emit, value.result, loadFrom(added), first);
    Value all = combineAll(value.result, first, [&](Value distance) {
      return loadFrom(
          emit.offsetPointer(whole.pointer, b.getI8Type(), distance));
    });
    emit.store(all,
               emit.offsetPointer(whole.pointer, b.getI8Type(),
                                  line.getInductionVar()),
               whole.element, Value());
    setBuffer(value.result, whole);
  }
}

} // namespace tessera
