//===- plan_atoms.cpp - The contraction atom of a nest --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_atoms.h"

#include "plan/nest_planner.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera {

/// What has the same elements in another order, or repeated.
static Value withoutMoves(Value tile) {
  while (Operation *op = tile.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, tile::TransposeOp>(op) ||
        !isa<RankedTensorType>(op->getOperand(0).getType()))
      break;
    tile = op->getOperand(0);
  }
  return tile;
}

std::optional<NarrowOperand> narrowOperand(Value operand) {
  if (!isa<RankedTensorType>(operand.getType()))
    return std::nullopt;
  Value tile = withoutMoves(operand);
  Operation *op = tile.getDefiningOp();
  if (auto load = dyn_cast_or_null<tile::LoadOp>(op)) {
    // What fills masked places need not be a narrow number.
    auto view = cast<tile::ViewType>(load.getView().getType());
    if (!view.getElementType().isBF16() || load.getFill())
      return std::nullopt;
    return NarrowOperand{operand, AtomElements::BF16, false};
  }
  auto cast = dyn_cast_or_null<tile::CastOp>(op);
  if (!cast || !isa<RankedTensorType>(cast.getInput().getType()) ||
      !tile::getElement(cast.getInput().getType()).isInteger(8) ||
      !tile::getElement(cast.getType()).isInteger(32))
    return std::nullopt;
  return NarrowOperand{cast.getInput(), AtomElements::Int8,
                       cast.getUnsignedFrom()};
}

tile::LoadOp loadOf(Value tile, const PhaseAnalysis &phases) {
  while (Operation *op = tile.getDefiningOp()) {
    if (phases.isMaterialized(tile))
      return {};
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return load;
    if (!isa<tile::BroadcastOp, tile::TransposeOp>(op))
      return {};
    tile = op->getOperand(0);
  }
  return {};
}

bool liesInGroups(tile::LoadOp load, StringAttr dim,
                  const KernelAnalysis &analysis) {
  Access access = *getAccess(load);
  if (access.mask)
    return false;
  int64_t uses = 0;
  for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
    const Access::Axis &described = access.axes[axis];
    if (described.offset && isa<RankedTensorType>(described.offset.getType()) &&
        llvm::is_contained(tile::getDims(described.offset.getType()), dim))
      return false;
    if (described.dim != dim)
      continue;
    ++uses;
    if (described.step != 1 || !analysis.strides.isUnit(access, axis) ||
        analysis.accesses.needsCheck(access, axis))
      return false;
  }
  return uses == 1;
}

bool NestPlanner::mayGroup(Value operand) const {
  // From a kept operand to what it was widened from there may be no way back:
  // that may have been overwritten.
  for (Value tile = operand; Operation *op = tile.getDefiningOp();
       tile = op->getOperand(0)) {
    if (!isDeferred(op) || analysis.phases.isMaterialized(tile))
      return false;
    if (!isa<tile::BroadcastOp, tile::TransposeOp>(op))
      break;
  }
  return analysis.dims.elements(tile::getDims(operand.getType())).has_value();
}

StringAttr NestPlanner::groupDimension(const NarrowOperand &rows) const {
  auto contract = tile::ContractOp(tiled);
  StringAttr found;
  tile::LoadOp load = loadOf(rows.source, analysis.phases);
  for (StringAttr dim : phase.reduced) {
    auto varies = [&](Value operand) {
      return llvm::is_contained(tile::getDims(operand.getType()), dim);
    };
    if (!varies(contract.getLhs()) || !varies(contract.getRhs()) ||
        !analysis.dims.extent(dim))
      continue;
    if (load && liesInGroups(load, dim, analysis))
      return dim;
    if (!found || *analysis.dims.extent(dim) > *analysis.dims.extent(found))
      found = dim;
  }
  return found;
}

bool NestPlanner::fitsTiles() const {
  // The results lie in memory row by row, along the vectors.
  auto contract = tile::ContractOp(tiled);
  return tileDim && phase.reduced.size() == 1 &&
         !tile::getDims(contract.getType()).empty() &&
         tile::getDims(contract.getType()).back() == plan.vectorDim &&
         llvm::all_of(phase.kept, [&](StringAttr dim) {
           return analysis.dims.extent(dim).has_value();
         });
}

bool NestPlanner::copiesWords(const ContractionAtom &atom,
                              const NarrowOperand &vectors) const {
  if (atom.isTile())
    return true;
  if (choice.packs)
    return *choice.packs;
  // Bytes or halves that lie apart are put together faster by squares.
  tile::LoadOp load = loadOf(vectors.source, analysis.phases);
  if (!load ||
      adjacentDim(*getAccess(load), analysis.strides) != vectorDimension())
    return true;
  // A copy is written and read again, which pays where words are used twice: by
  // groups of rows, or by other programs that share it.
  auto contract = tile::ContractOp(tiled);
  Value operand = contract->getOperand(vectorOperand);
  SmallVector<StringAttr> dims = tile::getDims(operand.getType());
  for (StringAttr dim : phase.kept) {
    if (llvm::is_contained(dims, dim))
      continue;
    const int64_t extent = extentOf(dim).value_or(2);
    if (extent > (dim == tileDim ? plan.tileRows : 1))
      return true;
  }
  auto grid = dyn_cast<tile::ParallelOp>(contract->getParentOp());
  std::optional<SmallVector<unsigned>> along;
  if (grid)
    along = sharedCoordinates(grid, operand, analysis);
  if (!along)
    return false;
  for (auto [number, dim] : llvm::enumerate(grid.getDims()))
    if (!llvm::is_contained(*along, number) &&
        analysis.dims.extent(cast<StringAttr>(dim)) != 1)
      return true;
  return false;
}

void NestPlanner::chooseAtom() {
  auto contract = tile::ContractOp(tiled);
  if (contract.getOrder() != tile::Order::Unordered ||
      plan.lanes != target.lanes32() || (choice.packs == false && !choice.atom))
    return;
  Value rowOperand = contract->getOperand(1 - vectorOperand),
        vectors = contract->getOperand(vectorOperand);
  std::optional<NarrowOperand> rowsFrom = narrowOperand(rowOperand),
                               vectorsFrom = narrowOperand(vectors);
  if (!rowsFrom || !vectorsFrom ||
      rowsFrom->elements != vectorsFrom->elements || !mayGroup(rowOperand) ||
      !mayGroup(vectors))
    return;
  // One array's elements, lane by lane, are no rows.
  if (!tileDim && llvm::is_contained(tile::getDims(rowOperand.getType()),
                                     vectorDimension()))
    return;
  StringAttr dim = groupDimension(*rowsFrom);
  if (!dim)
    return;
  // Neither what the caller has copied nor a share of the reduced dimension
  // lies in groups.
  if (prepackedLoad(vectors, planning.choices, analysis) ||
      prepackedLoad(rowOperand, planning.choices, analysis))
    return;
  if (isa<tile::ParallelOp>(contract->getParentOp()) &&
      llvm::any_of(planning.choices.splits,
                   [](const auto &stage) { return stage.second > 1; })) {
    reason("atom.splits", "programs share the contraction");
    return;
  }
  Type result = tile::getElement(contract.getType());
  tile::KernelOp kernel = analysis.kernel;
  const CoreCosts &costs = machine.costs(target);
  const ContractionAtom *chosen = nullptr;
  for (const std::string &name : target.atoms) {
    const ContractionAtom &atom = *findAtom(name);
    const bool isFloat = atom.elements == AtomElements::BF16;
    if (atom.elements != rowsFrom->elements ||
        !(isFloat ? result.isF32() : result.isInteger(32)) ||
        *analysis.dims.extent(dim) < atom.group)
      continue;
    if (atom.flushesSubnormals && kernel.getTier() == tile::Tier::Strict) {
      reason("atom.strict", "the tier keeps subnormal numbers, which " + name +
                                " takes for zero");
      continue;
    }
    // The sum that makes up for the shift is over one dimension.
    if (AtomOperands{&atom, *rowsFrom, *vectorsFrom}.isShifted() &&
        phase.reduced.size() != 1)
      continue;
    if (atom.isTile() && !fitsTiles())
      continue;
    plan.alternatives.atoms.push_back(name);
    if (choice.atom)
      continue;
    // Products of integers that are widened first take several instructions.
    const bool isFaster =
        !isFloat || atom.isTile() ||
        costs.dotCycles / double(atom.group) < 1 / costs.multiplyRate();
    if (!isFaster)
      reason("atom.slower",
             name + " takes " + llvm::formatv("{0:f1}", costs.dotCycles).str() +
                 " cycles for " + std::to_string(atom.group) +
                 " products of a lane, more than multiply-adds of widened "
                 "elements");
    else if (!chosen)
      chosen = &atom;
  }
  if (choice.atom && llvm::is_contained(plan.alternatives.atoms, *choice.atom))
    chosen = findAtom(*choice.atom);
  if (!chosen)
    return;
  plan.atom = chosen->name;
  plan.groupDim = dim.getValue().str();
  plan.vectorOperand = vectorOperand;
  const bool copies = copiesWords(*chosen, *vectorsFrom);
  if (copies)
    plan.packedOperand = vectorOperand;
  tile::LoadOp load = loadOf(rowsFrom->source, analysis.phases);
  const bool isStoredSo =
      chosen->elements == AtomElements::BF16 || chosen->elementBits() == 8;
  plan.packsRows = !load || !isStoredSo || !liesInGroups(load, dim, analysis);
  if (chosen->isTile()) {
    // Tiles are read as a whole: nothing beside the array, and no less than
    // they have along the groups.
    plan.tileRows = 32;
    plan.unroll = 2;
    plan.packsRows |= *analysis.dims.extent(dim) % chosen->wholeElements() != 0;
    if (load) {
      Access access = *getAccess(load);
      for (unsigned axis = 0; axis < access.axes.size(); ++axis)
        plan.packsRows |= analysis.accesses.needsCheck(access, axis);
    }
  }
  reason("atom.chosen",
         plan.atom + " (" + chosen->instructions.data() + "): " +
             Twine(chosen->group) + " of '" + plan.groupDim + "' in a lane; " +
             (!copies ? plan.packsRows ? "the rows are copied in groups"
                                       : "groups are put together in "
                                         "registers"
              : plan.packsRows ? "both operands are copied in groups"
                               : "the operand with the vectors is copied in "
                                 "groups"));
}

} // namespace tessera
