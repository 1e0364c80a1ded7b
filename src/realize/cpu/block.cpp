//===- block.cpp - Executing the steps of a block -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/window_region.h"
#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"
#include "support/launch_errors.h"

#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <utility>

using namespace mlir;

namespace tessera {

static bool isTile(Value value) {
  return isa<RankedTensorType>(value.getType());
}

/// The prefix of the names of nests.
static constexpr StringRef nestPrefix = "nest ";

Location nestLocation(Location outer, int64_t id) {
  return NameLoc::get(
      StringAttr::get(outer.getContext(), nestPrefix + Twine(id)), outer);
}

std::optional<int64_t> nestOf(Operation *op) {
  auto named = dyn_cast<NameLoc>(op->getLoc());
  if (!named)
    return std::nullopt;
  StringRef name = named.getName().getValue();
  int64_t id = 0;
  if (!name.consume_front(nestPrefix) || name.getAsInteger(10, id))
    return std::nullopt;
  return id;
}

Error launchError(Operation *op, Error error) {
  if (auto loc = dyn_cast<FileLineColLoc>(op->getLoc()))
    error.where = {loc.getFilename().str(), loc.getLine(), loc.getColumn()};
  return error;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

NestPlan Realizer::plannedNest(const Phase &phase) {
  NestPlan nest = planNest(phase, planning, layouts);
  if (!nest.pinConflict.empty())
    fail(phase.roots[0].op, "unsupported.pin",
         "a schedule pin cannot be honoured: " + nest.pinConflict);
  return nest;
}

/// Emits a nest whose operations are located in its name, by which the search
/// tells where a kernel's time goes.
void Realizer::emitNest(const Phase &phase, const NestPlan &nest) {
  Location outer = emit.loc;
  emit.loc = nestLocation(outer, nest.id);
  if (phase.join)
    emitJoined(*this, phase, nest);
  else
    NestEmitter(*this, phase, nest).run();
  emit.loc = outer;
}

void Realizer::record(const NestPlan &nest) { plan.nests.push_back(nest); }

void Realizer::packOperand(Value operand, const TileBuffer &buffer,
                           const CopiedSpans &spans) {
  packOnce(operand, [&] { materializeInto(operand, buffer, spans); });
}

void Realizer::packOnce(Value operand, function_ref<void()> copy) {
  std::optional<SmallVector<unsigned>> along;
  // Bodies of programs that are set apart use the same memory for other things;
  // programs that share a contraction copy different parts.
  if (stageGrid && plan.order.edges == Edges::Checked && !share)
    along = sharedCoordinates(stageGrid, operand, analysis);
  if (!along)
    return copy();
  Type i64 = b.getI64Type();
  Value cells = allocateBytes(8 * int64_t(along->size() + 1), "packed for");
  auto cell = [&](unsigned number) {
    return emit.offsetPointer(cells, i64, emit.index(number));
  };
  // The first cell tells whether anything has been packed, the others what.
  atEntry([&] {
    b.create<LLVM::StoreOp>(emit.loc, emit.integer(i64, 0), cell(0));
    return Value();
  });
  Value isThere = emit.compare(arith::CmpIPredicate::ne,
                               b.create<LLVM::LoadOp>(emit.loc, i64, cell(0)),
                               emit.integer(i64, 0));
  SmallVector<Value> wanted{emit.integer(i64, 1)};
  double others = 1;
  tile::ParallelOp grid = stageGrid;
  for (auto [number, dim] : llvm::enumerate(grid.getDims()))
    if (!llvm::is_contained(*along, number))
      others *= double(constantExtent(cast<StringAttr>(dim)).value_or(1));
  for (auto [number, axis] : llvm::enumerate(*along)) {
    wanted.push_back(emit.toI64(scalar(stageGrid.getBody().getArgument(axis))));
    isThere = emit.logicalAnd(
        isThere,
        emit.compare(arith::CmpIPredicate::eq,
                     b.create<LLVM::LoadOp>(emit.loc, i64, cell(number + 1)),
                     wanted.back()));
  }
  auto packs = b.create<scf::IfOp>(emit.loc, emit.logicalNot(isThere),
                                   /*withElseRegion=*/false);
  // A grid without programs packs nothing; a share is a number all the same.
  packs->setAttr(takenAttribute, b.getF64FloatAttr(1 / std::max(others, 1.0)));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(packs.thenBlock()->getTerminator());
  copy();
  for (auto [number, value] : llvm::enumerate(wanted))
    b.create<LLVM::StoreOp>(emit.loc, value, cell(number));
}

void Realizer::runPhase(const Phase &phase) {
  NestPlan nest = plannedNest(phase);
  if (!phase.epilogue.empty() && !nest.epilogue) {
    // What follows is a loop of its own.
    Phase first = phase, next;
    next.roots = std::exchange(first.epilogue, {});
    first.keepsResult = true;
    rootSpace(next.roots[0], next.kept, next.reduced);
    runPhase(first);
    runPhase(next);
    return;
  }
  SmallVector<Value> packed;
  if (!nest.atom.empty() && !checksOnly) {
    packWords(phase, nest);
  } else if (nest.packedOperand >= 0 && !checksOnly) {
    Operation *op = phase.roots[0].op;
    auto pack = [&](int number, StringRef innermost) {
      Value operand = op->getOperand(number);
      // Vectors side by side, whatever the order of the operand's dimensions.
      SmallVector<StringAttr> dims = tile::getDims(operand.getType());
      if (auto *it = llvm::find_if(
              dims, [&](StringAttr dim) { return dim == innermost; });
          it != dims.end())
        std::rotate(it, it + 1, dims.end());
      packed.push_back(operand);
      if (nest.prepacked && number == nest.packedOperand) {
        if (std::optional<TileBuffer> panel = prepackedPanel(operand, dims))
          setBuffer(operand, *panel);
        return;
      }
      std::optional<WindowRegion> region;
      if (number == nest.regionOperand)
        region = windowRegion(operand, analysis.dims, analysis.phases);
      // A part of a window's coordinates has windows of its own.
      if (region && share && llvm::any_of(region->spans, [&](auto &span) {
            return span.first == share->dim;
          }))
        region.reset();
      if (region) {
        TileBuffer buffer = allocateRegion(operand, *region);
        packOperand(operand, buffer, region->spans);
        setBuffer(operand, buffer);
        return;
      }
      TileBuffer buffer =
          allocate(tile::getTileType(tile::getElement(operand.getType()), dims),
                   "packed operand", op);
      packOperand(operand, buffer);
      setBuffer(operand, buffer);
    };
    pack(nest.packedOperand, nest.vectorDim);
    if (nest.packsRows)
      pack(1 - nest.packedOperand, {});
    if (failure)
      return;
  }
  record(nest);
  emitNest(phase, nest);
  for (Value operand : packed)
    buffers.erase(operand);
  words.clear();
}

void Realizer::materializeInto(Value tile, const TileBuffer &buffer,
                               const CopiedSpans &spans) {
  std::optional<TileBuffer> old;
  if (const TileBuffer *own = findBuffer(tile))
    old = *own;
  Phase phase;
  phase.kept = buffer.dims;
  phase.spans = spans;
  Operation *op = tile.getDefiningOp();
  bool isEvaluated = op && isDeferred(op) && !old;
  if (!isEvaluated && old) {
    if (old->pointer == buffer.pointer)
      return;
    // A plain copy between two buffers of the same shape.
    b.create<LLVM::MemcpyOp>(emit.loc, buffer.pointer, old->pointer,
                             buffer.size(emit),
                             /*isVolatile=*/false);
    return;
  }
  setBuffer(tile, buffer);
  phase.roots.push_back({Root::Kind::Materialize, op, tile});
  phase.roots[0].layout.assign(buffer.dims.begin(), buffer.dims.end());
  runPhase(phase);
  buffers.erase(tile);
}

void Realizer::runBlock(Block &block, tile::ParallelOp only, Value first,
                        Value last) {
  for (const Step &step : analysis.phases.schedule(block)) {
    if (only && step.immediate && isa<tile::ParallelOp>(step.immediate)) {
      if (step.immediate == only)
        runParallel(only, first, last);
      continue;
    }
    runStep(step);
  }
  if (checksOnly)
    emitReshapeChecks(block);
}

/// Reshapes between extents that depend on data: the numbers of elements must
/// agree. By the end of a block all extents it uses are known.
void Realizer::emitReshapeChecks(Block &block) {
  for (auto reshape : block.getOps<tile::ReshapeOp>()) {
    auto elements = [&](Type type) {
      Value count = emit.index(1);
      for (StringAttr dim : tile::getDims(type))
        count = emit.mul(count, extent(dim));
      return count;
    };
    Type from = reshape.getInput().getType(), to = reshape.getType();
    if (analysis.dims.elements(tile::getDims(from)) &&
        analysis.dims.elements(tile::getDims(to)))
      continue;
    emitCheck(
        emit.compare(arith::CmpIPredicate::ne, elements(from), elements(to)),
        launchError(reshape, launcherror::reshape(std::nullopt, std::nullopt)));
  }
}

void Realizer::runStep(const Step &step) {
  if (step.immediate)
    runImmediate(*step.immediate);
  else
    runPhase(step.phase);
}

void Realizer::runImmediate(Operation &op) {
  if (auto dim = dyn_cast<tile::DimOp>(op)) {
    declareExtent(dim);
  } else if (auto size = dyn_cast<tile::DimSizeOp>(op)) {
    setScalar(size.getResult(), extent(size.getDimAttr()));
  } else if (auto parallel = dyn_cast<tile::ParallelOp>(op)) {
    runParallel(parallel, {}, {});
  } else if (auto serial = dyn_cast<tile::SerialOp>(op)) {
    runLoop(serial);
  } else if (auto pipeline = dyn_cast<tile::PipelineOp>(op)) {
    runLoop(pipeline);
  } else if (auto fold = dyn_cast<tile::FoldOp>(op)) {
    runFold(fold);
  } else if (auto ifOp = dyn_cast<tile::IfOp>(op)) {
    runIf(ifOp);
  } else if (isa<tile::StageOp, tile::YieldOp>(op)) {
    // Stages only guide the planner; yields are evaluated by their region's op.
  } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
    NestEmitter(*this).storeElement(*getAccess(store), store.getValue());
  } else if (auto scatter = dyn_cast<tile::ScatterOp>(op)) {
    NestEmitter(*this).scatterElement(scatter);
  } else if (op.getNumResults() == 1 && !isTile(op.getResult(0))) {
    NestEmitter nest(*this);
    setScalar(op.getResult(0), nest.evaluate(op.getResult(0)));
  } else {
    fail(&op, "internal.step",
         "op '" + op.getName().getStringRef() + "' has no CPU realization");
  }
}

//===----------------------------------------------------------------------===//
// Loops with carried values
//===----------------------------------------------------------------------===//

/// Evaluates the tiles a region yields into `destinations` (in order of the
/// tile-valued operands) and collects its scalars.
void Realizer::evaluateYield(Operation *yield,
                             ArrayRef<TileBuffer> destinations,
                             SmallVectorImpl<Value> &scalarResults) {
  for (Value yielded : yield->getOperands()) {
    if (isTile(yielded)) {
      materializeInto(yielded, destinations.front());
      destinations = destinations.drop_front();
    } else {
      scalarResults.push_back(scalar(yielded));
    }
  }
}

/// Whether the operation that computes a yielded tile writes it where it is
/// wanted.
static bool isPlaced(Value yielded, Operation *yield) {
  Operation *op = yielded.getDefiningOp();
  return op && op->getBlock() == yield->getBlock() &&
         isa<tile::ReduceOp, tile::ContractOp, tile::IfOp>(op) &&
         llvm::count(yield->getOperands(), yielded) == 1;
}

/// What reduces, contracts or branches writes its results where the yield wants
/// them: no copy is made.
void Realizer::runYielding(Block &block, ArrayRef<TileBuffer> destinations,
                           SmallVectorImpl<Value> &scalarResults) {
  Operation *yield = block.getTerminator();
  SmallVector<Value> placed;
  ArrayRef<TileBuffer> next = destinations;
  for (Value yielded : yield->getOperands()) {
    if (!isTile(yielded))
      continue;
    if (isPlaced(yielded, yield)) {
      wanted[yielded] = next.front();
      placed.push_back(yielded);
    }
    next = next.drop_front();
  }
  runBlock(block);
  evaluateYield(yield, destinations, scalarResults);
  for (Value value : placed)
    wanted.erase(value);
}

template <typename Loop> void Realizer::runLoop(Loop op) {
  // A carried tile has two buffers: the body reads one and writes the other,
  // and the two swap.
  Block &block = op.getBody().front();
  SmallVector<Value> inits;
  SmallVector<TileBuffer> tiles;
  for (Value init : op.getInits()) {
    if (!isTile(init)) {
      inits.push_back(scalar(init));
      continue;
    }
    TileBuffer current = allocate(init.getType(), "carry", op);
    materializeInto(init, current);
    tiles.push_back(current);
  }
  size_t scalarCount = inits.size();
  for (Value init : op.getInits()) {
    if (!isTile(init))
      continue;
    inits.push_back(tiles[(inits.size() - scalarCount) / 2].pointer);
    inits.push_back(allocate(init.getType(), "carry", op).pointer);
  }
  auto loop = b.create<scf::ForOp>(
      emit.loc, emit.index(0), extent(op.getDimAttr()), emit.index(1), inits);
  loop->setAttr(blocksAttribute, b.getUnitAttr());
  auto bind = [&](ValueRange targets, ValueRange carried) {
    ValueRange scalarValues = carried.take_front(scalarCount);
    ValueRange pointers = carried.drop_front(scalarCount);
    size_t tileNumber = 0;
    for (Value target : targets) {
      if (!isTile(target)) {
        setScalar(target, scalarValues.front());
        scalarValues = scalarValues.drop_front();
        continue;
      }
      TileBuffer buffer = tiles[tileNumber];
      buffer.pointer = pointers[2 * tileNumber++];
      setBuffer(target, buffer);
    }
  };
  {
    OpBuilder::InsertionGuard guard(b);
    if (inits.empty())
      b.setInsertionPoint(loop.getBody()->getTerminator());
    else
      b.setInsertionPointToEnd(loop.getBody());
    setScalar(block.getArgument(0), loop.getInductionVar());
    bind(block.getArguments().drop_front(), loop.getRegionIterArgs());
    ValueRange pointers = loop.getRegionIterArgs().drop_front(scalarCount);
    SmallVector<TileBuffer> destinations;
    SmallVector<Value> yielded, swapped;
    for (auto [number, buffer] : llvm::enumerate(tiles)) {
      TileBuffer next = buffer;
      next.pointer = pointers[2 * number + 1];
      destinations.push_back(next);
      swapped.push_back(pointers[2 * number + 1]);
      swapped.push_back(pointers[2 * number]);
    }
    runYielding(block, destinations, yielded);
    llvm::append_range(yielded, swapped);
    if (!inits.empty())
      b.create<scf::YieldOp>(emit.loc, yielded);
  }
  bind(op.getResults(), loop.getResults());
}

/// Runs the region that a constant condition chooses, as if it stood alone.
void Realizer::runDecidedIf(tile::IfOp op, Region &taken) {
  if (taken.empty())
    return;
  Operation *yield = taken.front().getTerminator();
  SmallVector<Value> placed;
  for (auto [result, yielded] :
       llvm::zip(op.getResults(), yield->getOperands()))
    if (isWanted(result) && isPlaced(yielded, yield)) {
      wanted[yielded] = wanted[result];
      placed.push_back(yielded);
    }
  runBlock(taken.front());
  for (Value value : placed)
    wanted.erase(value);
  for (auto [result, yielded] :
       llvm::zip(op.getResults(), yield->getOperands())) {
    if (!isTile(result)) {
      setScalar(result, scalar(yielded));
      continue;
    }
    if (!findBuffer(yielded)) {
      const TileBuffer buffer = allocateFor(result, "branch", op);
      materializeInto(yielded, buffer);
      setBuffer(result, buffer);
      continue;
    }
    const TileBuffer buffer = *findBuffer(yielded);
    setBuffer(result, buffer);
    if (StringAttr layout = layouts.lookup(yielded))
      layouts[result] = layout;
  }
}

/// The share of a loop's iterations in which a condition holds that compares
/// their number with a constant; std::nullopt for others.
static std::optional<double> shareOf(Value condition, const DimTable &dims) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  auto number = dyn_cast<BlockArgument>(compare.getLhs());
  auto fold = number ? dyn_cast<tile::FoldOp>(number.getOwner()->getParentOp())
                     : tile::FoldOp();
  std::optional<int64_t> bound = constantIndex(compare.getRhs());
  if (!fold || number.getArgNumber() != 0 || !bound)
    return std::nullopt;
  std::optional<int64_t> extent = dims.extent(fold.getDimAttr());
  if (!extent || *extent <= 0)
    return std::nullopt;
  return std::clamp(double(*bound) / double(*extent), 0.0, 1.0);
}

void Realizer::runIf(tile::IfOp op) {
  if (APInt decided; matchPattern(op.getCondition(), m_ConstantInt(&decided)))
    return runDecidedIf(op, decided.isZero() ? op.getElseRegion()
                                             : op.getThenRegion());
  SmallVector<Type> scalarTypes;
  SmallVector<TileBuffer> tiles;
  for (Value result : op.getResults()) {
    if (isTile(result)) {
      tiles.push_back(allocateFor(result, "branch", op));
      setBuffer(result, tiles.back());
    } else {
      scalarTypes.push_back(result.getType());
    }
  }
  bool hasElse = !op.getElseRegion().empty();
  auto ifOp = b.create<scf::IfOp>(emit.loc, scalarTypes,
                                  scalar(op.getCondition()), hasElse);
  if (std::optional<double> share = shareOf(op.getCondition(), analysis.dims))
    ifOp->setAttr(takenAttribute, b.getF64FloatAttr(*share));
  auto branch = [&](Region &region, Block *target) {
    OpBuilder::InsertionGuard guard(b);
    bool hasYield =
        !target->empty() && target->back().hasTrait<OpTrait::IsTerminator>();
    if (hasYield)
      b.setInsertionPoint(&target->back());
    else
      b.setInsertionPointToEnd(target);
    SmallVector<Value> yielded;
    runYielding(region.front(), tiles, yielded);
    if (!hasYield)
      b.create<scf::YieldOp>(emit.loc, yielded);
  };
  branch(op.getThenRegion(), ifOp.thenBlock());
  if (hasElse)
    branch(op.getElseRegion(), ifOp.elseBlock());
  size_t number = 0;
  for (Value result : op.getResults())
    if (!isTile(result))
      setScalar(result, ifOp.getResult(number++));
}

} // namespace tessera
