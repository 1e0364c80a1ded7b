//===- plan_contraction.cpp - Register tiles, packing and blocks ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/nest_planner.h"
#include "plan/plan_atoms.h"
#include "target/contraction_atoms.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tessera {

void NestPlanner::findTile() {
  if (plan.vectorDim.empty() || phase.roots.size() != 1)
    return;
  if (llvm::none_of(phase.kept,
                    [&](StringAttr dim) { return dim == plan.vectorDim; }))
    return findRowsOfSums();
  tiled = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
  if (!tiled || tiled.getOrder() == tile::Order::Tree)
    return;
  // Without fused multiply-adds an ordered contraction calls a function for
  // each element: no registers are kept across it.
  bool isFloat = isa<FloatType>(tile::getElement(tiled.getType()));
  if (isFloat && !target.hasFma && tiled.getOrder() != tile::Order::Unordered)
    return;
  auto varies = [](Value operand, StringRef dim) {
    return llvm::any_of(tile::getDims(operand.getType()),
                        [&](StringAttr other) { return other == dim; });
  };
  vectorOperand = varies(tiled.getRhs(), plan.vectorDim) ? 1 : 0;
  Value along = tiled->getOperand(vectorOperand);
  for (StringAttr dim : phase.kept)
    if (dim != plan.vectorDim && !varies(along, dim) &&
        extentOf(dim).value_or(0) >= 2)
      tileDim = dim;
}

void NestPlanner::findRowsOfSums() {
  auto contract = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
  if (!contract || contract.getOrder() != tile::Order::Unordered ||
      pins.unroll > 1)
    return;
  int64_t most = 2;
  StringAttr summed;
  for (StringAttr dim : phase.kept)
    if (int64_t rows = std::min(extentOf(dim).value_or(0), plan.lanes);
        rows >= most) {
      most = rows;
      summed = dim;
    }
  if (!summed)
    return;
  // A power of two of them has its sums in as many lanes.
  most = std::min(most, addressedRows(summed));
  int64_t registers = registersPerVector(contract);
  for (int64_t rows = 2;
       rows <= most && (rows + 2) * registers <= target.vectorRegisters;
       rows *= 2) {
    plan.tileRows = rows;
    if (choice.tileRows == rows)
      break;
  }
  // Wide vectors may leave registers for no second row.
  if (plan.tileRows == 1)
    return;
  tileDim = summed;
  plan.tileDim = tileDim.getValue().str();
  sumsRows = true;
  reason("tile.sums", Twine(plan.tileRows) + " of '" + plan.tileDim +
                          "' together: their lanes are added up at once");
  choosePrefetchedRows(contract);
}

int64_t NestPlanner::addressedRows(StringAttr dim) const {
  // Those that hang over are replaced by the array's last one. Beside them are
  // the address of the vectors, how far it moves, and the counter.
  return analysis.phases.liveLimit(phase, dim).known
             ? target.generalRegisters - 3
             : std::numeric_limits<int64_t>::max();
}

int64_t NestPlanner::rowsInNearestCache() const {
  Value rows = tiled->getOperand(1 - vectorOperand);
  if (auto widened = rows.getDefiningOp<tile::CastOp>();
      widened && !analysis.phases.isMaterialized(rows))
    rows = widened.getInput();
  tile::LoadOp load = loadOf(rows, analysis.phases);
  if (!load)
    return std::numeric_limits<int64_t>::max();
  return mostRowsKept(machine.memory[0], bytesApart(*getAccess(load), tileDim));
}

int64_t NestPlanner::bytesApart(const Access &access, StringAttr dim) const {
  int64_t apart = bytesOf(access.viewType().getElementType());
  for (unsigned axis = access.axes.size(); axis-- > 0;) {
    if (access.axes[axis].dim == dim)
      return apart * std::abs(access.axes[axis].step);
    apart *= std::max<int64_t>(analysis.accesses.extent(access, axis), 1);
  }
  return 0;
}

void NestPlanner::choosePrefetchedRows(tile::ContractOp contract) {
  // Further reduced dimensions would have loops of their own inside.
  if (phase.reduced.size() != 1)
    return;
  auto *tiledLevel = llvm::find(phase.kept, tileDim);
  for (Value operand : {contract.getLhs(), contract.getRhs()}) {
    auto load = operand.getDefiningOp<tile::LoadOp>();
    SmallVector<StringAttr> dims = tile::getDims(operand.getType());
    if (!load || analysis.phases.isMaterialized(operand) ||
        !llvm::is_contained(dims, tileDim))
      continue;
    int64_t repeats = 1;
    for (auto *level = tiledLevel + 1; level != phase.kept.end(); ++level)
      if (!llvm::is_contained(dims, *level))
        repeats *= extentOf(*level).value_or(1);
    plan.prefetchesRows |= repeats > 1;
  }
  if (plan.prefetchesRows)
    reason("prefetch.rows",
           "rows are read repeatedly while the next ones are on their way");
}

int64_t NestPlanner::registersPerVector(tile::ContractOp contract) const {
  Type element = tile::getElement(contract.getType());
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return std::max<int64_t>(1, plan.lanes * bits / target.vectorBits);
}

void NestPlanner::chooseTile() {
  if (tiled && !tileDim)
    return chooseAtom();
  if (!tileDim || sumsRows)
    return;
  int64_t extent = *extentOf(tileDim);
  const CoreCosts &costs = machine.costs(target);
  // Cycles of one step of the contraction: the multiply-adds or the loads, two
  // elements of rows in a cycle, and the latency of a multiply-add between two
  // of one accumulator.
  auto cycles = [&](int64_t rows, int64_t vectors) {
    double products = double(rows * vectors) / costs.multiplyRate();
    double loads = 0.5 * double(rows) +
                   double(vectors) / std::min(2.0, costs.loadsPerCycle);
    return std::max({products, loads, 4.0}) + 0.2 * loads;
  };
  // Where a multiplication and an addition are two instructions, what is
  // between them takes a register.
  const bool isFused =
      target.hasFma && isa<FloatType>(tile::getElement(tiled.getType()));
  const int64_t products = isFused ? 0 : 1;
  auto registers = [&](int64_t rows, int64_t vectors) {
    return (rows * vectors + vectors + 1 + products) *
           registersPerVector(tiled);
  };
  const int64_t most = std::min(
      {extent, int64_t{16}, addressedRows(tileDim), rowsInNearestCache()});
  // The rows for so many vectors, and what a step takes per vector.
  auto bestRows = [&](int64_t vectors, double again) {
    std::pair<double, int64_t> best{std::numeric_limits<double>::max(), 1};
    for (int64_t rows = 1; rows <= most; ++rows) {
      if (rows > 1 && registers(rows, vectors) >= target.vectorRegisters)
        break;
      int64_t rest = extent % rows;
      double total = double(extent / rows) * cycles(rows, vectors) +
                     (rest ? cycles(rest, vectors) : 0);
      total = total / double(vectors) +
              again * double(llvm::divideCeil(extent, rows));
      if (total < best.first)
        best = {total, rows};
    }
    return best;
  };
  int64_t rows = bestRows(plan.unroll, 0).second;
  // Vectors that come from far away in blocks are read from the second-level
  // cache for every group of rows. Fewer of them leave registers for more rows,
  // if that is clearly better.
  constexpr double clearly = 0.95;
  if (isReadInBlocks(extent / rows) && !choice.unroll && !choice.tileRows &&
      !pins.unroll) {
    const double again = double(target.vectorBits) / 8 * costs.gigahertz /
                         machine.memory[1].read;
    double least = bestRows(plan.unroll, again).first;
    for (int64_t vectors = plan.unroll / 2; vectors >= 1; vectors /= 2)
      if (auto [cost, number] = bestRows(vectors, again);
          cost < clearly * least) {
        least = cost;
        rows = number;
        plan.unroll = vectors;
      }
  }
  plan.tileRows = rows;
  const int64_t wanted = choice.tileRows.value_or(0);
  if (wanted >= 1 &&
      wanted <= std::min({extent, int64_t{16}, addressedRows(tileDim)}) &&
      (wanted == 1 || registers(wanted, plan.unroll) < target.vectorRegisters))
    plan.tileRows = wanted;
  if (plan.tileRows == 1)
    return;
  plan.tileDim = tileDim.getValue().str();
  reason("tile.rows",
         Twine(plan.tileRows) + " of '" + plan.tileDim +
             "' together: " + Twine(registers(plan.tileRows, plan.unroll)) +
             " of " + Twine(target.vectorRegisters) + " registers");
  chooseAtom();
  if (plan.atom.empty())
    choosePacking(extent / plan.tileRows);
}

int64_t NestPlanner::stepsInside() const {
  int64_t inner = 1;
  for (StringAttr dim : ArrayRef(phase.reduced).drop_front())
    inner *= *extentOf(dim);
  return inner;
}

int64_t NestPlanner::streamBlock() const {
  return std::max<int64_t>(1, int64_t(machine.streams) / stepsInside());
}

bool NestPlanner::comesInStreams() const {
  std::optional<Access> streamed = streamedOperand();
  const int64_t block = streamBlock();
  return streamed && !readsWindows(*streamed) && mayBlockGroups(block) &&
         stepsInside() <= 4 * int64_t(machine.streams) &&
         viewBytes(*streamed) > machine.memory[1].bytes &&
         *extentOf(phase.reduced[0]) > block &&
         *extentOf(vectorDimension()) > plan.lanes * plan.unroll;
}

bool NestPlanner::isReadInBlocks(int64_t uses) const {
  if (choice.reducedBlock)
    return *choice.reducedBlock > 0;
  return mayBlock() && !packsFor(uses) && comesInStreams();
}

bool NestPlanner::liesTogether(Value operand) const {
  auto load = operand.getDefiningOp<tile::LoadOp>();
  if (!load)
    return false;
  Access access = *getAccess(load);
  const unsigned last = access.axes.size() - 1;
  const Access::Axis &row = access.axes[last];
  return last > 0 && row.dim && row.dim.getValue() == plan.vectorDim &&
         row.step == 1 && !row.offset &&
         extentOf(row.dim) == analysis.accesses.extent(access, last) &&
         access.axes[last - 1].dim && access.axes[last - 1].step == 1 &&
         tile::getDims(operand.getType()).size() == 2;
}

int64_t NestPlanner::operationsOf(Value operand) const {
  llvm::SetVector<Value> reached;
  reached.insert(operand);
  const size_t rank = tile::getDims(operand.getType()).size();
  int64_t count = 0;
  for (size_t number = 0; number < reached.size(); ++number) {
    Value value = reached[number];
    Operation *op = value.getDefiningOp();
    // Values that do not vary with all of it are computed before.
    if (!op || !isDeferred(op) || analysis.phases.isMaterialized(value) ||
        !isa<RankedTensorType>(value.getType()) ||
        tile::getDims(value.getType()).size() < rank || isa<tile::LoadOp>(op))
      continue;
    count += !isa<tile::BroadcastOp, tile::TransposeOp>(op);
    for (Value source : op->getOperands())
      reached.insert(source);
  }
  return count;
}

bool NestPlanner::staysInWholeLines(Value operand) const {
  constexpr int64_t line = 64;
  auto load = operand.getDefiningOp<tile::LoadOp>();
  if (!load)
    return false;
  Access access = *getAccess(load);
  Type element = access.viewType().getElementType();
  const unsigned last = access.axes.size() - 1;
  const Access::Axis &row = access.axes[last];
  // What is widened is widened once in a copy.
  if (element != tile::getElement(operand.getType()) || !row.dim ||
      row.dim.getValue() != plan.vectorDim || row.step != 1 ||
      !analysis.strides.isUnit(access, last) ||
      analysis.accesses.extent(access, last) * bytesOf(element) % line != 0)
    return false;
  // Of the axes that the operand varies along.
  double bytes = double(bytesOf(element));
  for (unsigned axis = 0; axis <= last; ++axis)
    if (access.axes[axis].dim)
      bytes *= double(analysis.accesses.extent(access, axis));
  return bytes <= double(machine.memory[1].bytes);
}

bool NestPlanner::packsFor(int64_t uses) const {
  Value operand = tiled->getOperand(vectorOperand);
  // What is computed again for every use pays for a copy soon.
  const int64_t fewUses = operationsOf(operand) < 3 ? 5 : 2;
  Operation *op = operand.getDefiningOp();
  std::optional<int64_t> elements =
      analysis.dims.elements(tile::getDims(operand.getType()));
  const bool lieApart = rowsOfVectors(vectorDimension()).copied > 0;
  if (!op || !isDeferred(op) || analysis.phases.isMaterialized(operand) ||
      !elements ||
      (!choice.packs &&
       ((uses < fewUses && !lieApart && !isPushedOutAndShared()) ||
        liesTogether(operand) || staysInWholeLines(operand))))
    return false;
  const int64_t size = bytesOf(tile::getElement(operand.getType()));
  return choice.packs
             ? *choice.packs
             : lieApart || (*elements <= machine.memory[1].bytes / 2 / size &&
                            *elements > machine.memory[0].bytes / 2 / size);
}

void NestPlanner::choosePacking(int64_t uses) {
  if (!packsFor(uses))
    return;
  Value operand = tiled->getOperand(vectorOperand);
  const int64_t size = bytesOf(tile::getElement(operand.getType()));
  std::optional<int64_t> elements =
      analysis.dims.elements(tile::getDims(operand.getType()));
  plan.packedOperand = vectorOperand;
  reason("pack.operand", "its " + Twine(*elements * size) + " bytes are read " +
                             Twine(uses) + " times, from memory of their own");
  Value rows = tiled->getOperand(1 - vectorOperand);
  if (regionOf(operand)) {
    plan.regionOperand = vectorOperand;
    reason("pack.region", "its windows overlap: each element is copied once");
  } else if (copiesRowsOfWindows(rows)) {
    plan.regionOperand = 1 - vectorOperand;
    plan.packsRows = true;
    reason("pack.region", "windows of the other operand overlap and cross "
                          "edges: each element is copied once, and what lies "
                          "beyond the edges with them");
    return;
  }
  // Each element of a row is widened for every vector, and once in a copy.
  auto load = dyn_cast_or_null<tile::LoadOp>(rows.getDefiningOp());
  std::optional<int64_t> rowElements =
      analysis.dims.elements(tile::getDims(rows.getType()));
  if (!load || analysis.phases.isMaterialized(rows) || !rowElements ||
      *rowElements > machine.memory[1].bytes / 4 / size ||
      getAccess(load)->viewType().getElementType() ==
          tile::getElement(rows.getType()))
    return;
  plan.packsRows = true;
  reason("pack.rows", "elements of the other operand are widened once");
}

tile::LoadOp prepackedLoad(Value operand, const PlanChoices &choices,
                           const KernelAnalysis &analysis) {
  if (choices.prepacked.empty())
    return {};
  while (auto transpose = operand.getDefiningOp<tile::TransposeOp>())
    operand = transpose.getInput();
  auto load = operand.getDefiningOp<tile::LoadOp>();
  if (!load)
    return {};
  tile::KernelOp kernel = analysis.kernel;
  StringRef name =
      kernel.getArgName(cast<BlockArgument>(load.getView()).getArgNumber());
  return choices.prepacked.count(name.str()) ? load : tile::LoadOp();
}

bool NestPlanner::isPrepacked(const Access &access) const {
  if (planning.choices.prepacked.empty() || phase.roots.size() != 1)
    return false;
  auto contract = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
  if (!contract)
    return false;
  return llvm::any_of(
      ValueRange({contract.getLhs(), contract.getRhs()}), [&](Value operand) {
        tile::LoadOp load = prepackedLoad(operand, planning.choices, analysis);
        return load && load == access.op;
      });
}

bool NestPlanner::takesPrepacked(StringAttr dim) const {
  if (planning.choices.prepacked.empty() || phase.roots.size() != 1)
    return false;
  auto contract = dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op);
  if (!contract || !llvm::is_contained(phase.kept, dim))
    return false;
  auto varies = [&](Value operand) {
    return llvm::is_contained(tile::getDims(operand.getType()), dim);
  };
  Value mine =
      varies(contract.getRhs()) ? contract.getRhs() : contract.getLhs();
  return varies(contract.getLhs()) != varies(contract.getRhs()) &&
         prepackedLoad(mine, planning.choices, analysis);
}

void NestPlanner::choosePrepacked() {
  if (!tiled)
    return;
  Value operand = tiled->getOperand(vectorOperand);
  if (!prepackedLoad(operand, planning.choices, analysis) ||
      analysis.phases.isMaterialized(operand) ||
      !analysis.dims.elements(tile::getDims(operand.getType())))
    return;
  plan.packedOperand = vectorOperand;
  plan.prepacked = true;
  reason("pack.before", "the caller has copied it before the launch");
}

bool NestPlanner::mayBlock() const {
  if (!tiled || phase.reduced.empty() ||
      tile::ContractOp(tiled).getOrder() == tile::Order::Right)
    return false;
  return llvm::all_of(phase.reduced, [&](StringAttr dim) {
    return extentOf(dim).value_or(0) > 0;
  });
}

bool NestPlanner::mayBlockGroups(int64_t block) const {
  const ContractionAtom *atom = findAtom(plan.atom);
  return !atom || (block % atom->group == 0 && !atom->isTile() &&
                   *extentOf(phase.reduced[0]) % atom->group == 0);
}

void NestPlanner::chooseReducedBlock() {
  if (!mayBlock())
    return;
  int64_t extent = *extentOf(phase.reduced[0]);
  if (choice.reducedBlock) {
    if (!mayBlockGroups(*choice.reducedBlock))
      return;
    if (*choice.reducedBlock < extent)
      plan.reducedBlock = *choice.reducedBlock;
    return;
  }
  // An array that is not copied and comes from far away: its rows are streams
  // that prefetchers follow, as many as they can.
  const int64_t block = streamBlock();
  if (plan.packedOperand >= 0 || !comesInStreams())
    return;
  plan.reducedBlock = block;
  reason("reduced.streams", Twine(block) + " of '" +
                                phase.reduced[0].getValue() +
                                "' for all results before the next: rows "
                                "that come from memory are read along");
}

double NestPlanner::viewBytes(const Access &access) const {
  double bytes = double(bytesOf(access.viewType().getElementType()));
  for (unsigned axis = 0; axis < access.axes.size(); ++axis)
    bytes *= double(analysis.accesses.extent(access, axis));
  return bytes;
}

std::optional<Access> NestPlanner::streamedOperand() const {
  if (plan.vectorDim.empty() || phase.roots.size() != 1)
    return std::nullopt;
  Operation *op = phase.roots[0].op;
  if (tiled)
    return streamedBy(tile::ContractOp(tiled)->getOperand(vectorOperand));
  if (phase.roots[0].kind != Root::Kind::Materialize)
    return std::nullopt;
  auto load = dyn_cast_or_null<tile::LoadOp>(op);
  return load ? getAccess(load) : std::nullopt;
}

std::optional<Access> NestPlanner::streamedBy(Value operand) const {
  // The one array of which every step reads another vector.
  tile::LoadOp found;
  llvm::SetVector<Value> reached;
  reached.insert(operand);
  for (size_t number = 0; number < reached.size(); ++number) {
    Value value = reached[number];
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    SmallVector<StringAttr> dims = tile::getDims(value.getType());
    auto varies = [&](StringAttr dim) { return llvm::is_contained(dims, dim); };
    if (!varies(vectorDimension()) || !llvm::all_of(phase.reduced, varies))
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || !isDeferred(op) || isa<tile::TransposeOp>(op) ||
        analysis.phases.isMaterialized(value))
      return std::nullopt;
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (found)
        return std::nullopt;
      found = load;
      continue;
    }
    for (Value source : op->getOperands())
      reached.insert(source);
  }
  return found ? getAccess(found) : std::nullopt;
}

void NestPlanner::findJumps() {
  std::optional<Access> access = streamedOperand();
  if (!access || plan.packedOperand >= 0)
    return;
  // Of a jump, what is left where several streams are read side by side.
  // Measured on one micro-architecture (bench/results).
  constexpr double amongStreams = 300.0 / 420;
  // Rows that are read side by side are streams if more than a line is read of
  // one before the next.
  constexpr int64_t line = 64;
  const int64_t group =
      plan.lanes * plan.unroll * bytesOf(access->viewType().getElementType());
  const bool areStreams = plan.reducedBlock > 0 && group > line;
  const bool isAlong = !tiled || areStreams;
  // Whole rows that follow each other are one stream.
  if (tiled && plan.lanes * plan.unroll >= *extentOf(vectorDimension()) &&
      liesTogether(tile::ContractOp(tiled)->getOperand(vectorOperand)))
    return;
  for (unsigned axis = 0; axis < access->axes.size(); ++axis) {
    if (!access->axes[axis].dim || access->axes[axis].dim != plan.vectorDim ||
        !analysis.strides.isUnit(*access, axis))
      continue;
    int64_t piece =
        isAlong ? *extentOf(vectorDimension()) : plan.lanes * plan.unroll;
    int64_t row = analysis.accesses.extent(*access, axis);
    // An array without elements has no rows, whatever moves along them.
    if (row == 0 || (piece >= row && isAlong))
      return;
    double pieces = viewBytes(*access) / double(std::min(piece, row)) /
                    double(bytesOf(access->viewType().getElementType()));
    plan.jumps = pieces * (areStreams ? amongStreams : 1);
  }
}

double NestPlanner::bytesOfBlock() const {
  auto contract = tile::ContractOp(tiled);
  double bytes = 0;
  for (Value tile :
       {contract.getLhs(), contract.getRhs(), contract.getResult()}) {
    double size = double(bytesOf(tile::getElement(tile.getType())));
    for (StringAttr dim : tile::getDims(tile.getType()))
      size *= dim == phase.reduced[0] ? double(plan.reducedBlock)
                                      : double(extentOf(dim).value_or(1));
    bytes += size;
  }
  return bytes;
}

void NestPlanner::chooseEpilogue() {
  const ContractionAtom *atom = findAtom(plan.atom);
  plan.alternatives.hasEpilogue = tiled && !phase.epilogue.empty() &&
                                  plan.reducedBlock == 0 &&
                                  !(atom && atom->isTile());
  const bool isAcross = plan.alternatives.hasEpilogue && isStoredAcross();
  plan.epilogue =
      plan.alternatives.hasEpilogue && choice.epilogue.value_or(!isAcross);
  if (!plan.epilogue) {
    if (isAcross)
      reason("epilogue.across", "what follows stores along other lanes, in a "
                                "loop that transposes the results");
    return;
  }
  for (const Root &root : phase.epilogue)
    plan.roots += ", " + rootName(root);
  reason("epilogue.registers",
         "what follows is done while the results are in registers");
}

} // namespace tessera
