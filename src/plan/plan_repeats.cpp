//===- plan_repeats.cpp - What a contraction reads again ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tiled contraction goes over its rows in groups, and in each over all
// vectors: rows are read again for every vector, all vectors for every group of
// rows. So do rows of sums with the rows of the other operand. Programs read
// again what others have read. Where that comes from is a question of what lies
// between two readings, and of how its rows lie.
//
//===----------------------------------------------------------------------===//

#include "analysis/coordinates.h"
#include "plan/nest_planner.h"
#include "plan/plan_atoms.h"
#include "target/contraction_atoms.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

namespace {

/// As far as arrays are dense; std::nullopt where data decides.
std::optional<SpacedRows> rowsOf(const Access &access, int64_t bytesOfElement,
                                 function_ref<int64_t(StringAttr)> extentOf,
                                 const KernelAnalysis &analysis) {
  SpacedRows rows{1, bytesOfElement, 0};
  int64_t stride = bytesOfElement;
  for (unsigned axis = access.axes.size(); axis-- > 0;) {
    const Access::Axis &described = access.axes[axis];
    if (described.offset && isa<RankedTensorType>(described.offset.getType()))
      return std::nullopt;
    const int64_t extent = described.dim ? extentOf(described.dim) : 1;
    const int64_t apart = std::abs(described.step) * stride;
    if (extent > 1 && rows.rows > 1)
      rows.rows *= extent;
    else if (extent > 1 && apart <= rows.bytes)
      rows.bytes += (extent - 1) * apart;
    else if (extent > 1)
      rows = {extent, rows.bytes, apart};
    stride *= std::max<int64_t>(analysis.accesses.extent(access, axis), 1);
  }
  return rows;
}

} // namespace

std::optional<std::pair<NestPlanner::TileLoop, NestPlanner::TileLoop>>
NestPlanner::tileLoops() const {
  auto contract = phase.roots.size() == 1
                      ? dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op)
                      : tile::ContractOp();
  if (!contract || !tileDim)
    return std::nullopt;
  const TileLoop rows{tileDim, plan.tileRows, 1 - vectorOperand};
  if (!sumsRows)
    return std::pair(rows, TileLoop{vectorDimension(), plan.lanes * plan.unroll,
                                    vectorOperand});
  auto varies = [&](int operand, StringAttr dim) {
    return llvm::is_contained(
        tile::getDims(contract->getOperand(operand).getType()), dim);
  };
  for (int operand : {0, 1})
    for (StringAttr dim : phase.kept)
      if (varies(operand, tileDim) && !varies(1 - operand, tileDim) &&
          varies(1 - operand, dim) && extentOf(dim).value_or(0) > 1) {
        const TileLoop summed{tileDim, plan.tileRows, operand},
            other{dim, 1, 1 - operand};
        const bool isInside =
            llvm::find(phase.kept, tileDim) > llvm::find(phase.kept, dim);
        return isInside ? std::pair(other, summed) : std::pair(summed, other);
      }
  return std::nullopt;
}

std::optional<NestPlanner::OperandRows>
NestPlanner::rowsOfOperand(const TileLoop &loop) const {
  Value operand = phase.roots[0].op->getOperand(loop.operand);
  for (StringAttr dim : tile::getDims(operand.getType()))
    if (!extentOf(dim))
      return std::nullopt;
  const bool isVectors = !sumsRows && loop.operand == vectorOperand;
  const ContractionAtom *atom = findAtom(plan.atom);
  const int64_t size = atom ? atom->elementBits() / 8
                            : bytesOf(tile::getElement(operand.getType()));
  auto whole = [&](StringAttr dim) { return *extentOf(dim); };
  auto part = [&](StringAttr dim) {
    return dim == loop.dim ? std::min(loop.step, *extentOf(dim))
                           : *extentOf(dim);
  };
  OperandRows rows;
  double elements = 1, ofPart = 1;
  for (StringAttr dim : tile::getDims(operand.getType())) {
    elements *= double(whole(dim));
    ofPart *= double(part(dim));
  }
  rows.loadedBytes = elements * double(size);
  const std::optional<NarrowOperand> narrow =
      atom ? narrowOperand(operand) : std::nullopt;
  Value source = narrow ? narrow->source : operand;
  if (auto widened = source.getDefiningOp<tile::CastOp>();
      widened && !analysis.phases.isMaterialized(source))
    source = widened.getInput();
  std::optional<SpacedRows> inArray;
  if (tile::LoadOp load = loadOf(source, analysis.phases)) {
    Access access = *getAccess(load);
    const int64_t stored = bytesOf(access.viewType().getElementType());
    if (readsWindows(access) ||
        !(inArray = rowsOf(access, stored, whole, analysis)))
      return std::nullopt;
    rows.whole = *inArray;
    rows.part = *rowsOf(access, stored, part, analysis);
    rows.pieceFar = rows.whole.areApart() ? double(rows.whole.bytes) : 0;
  }
  const bool isCopied =
      plan.packedOperand >= 0 && (isVectors || plan.packsRows);
  if (!inArray || isCopied) {
    // Side by side; vectors that are taken together lie behind those before.
    rows.whole = SpacedRows::together(elements * double(size));
    rows.part = SpacedRows::together(ofPart * double(size));
    if (isVectors) {
      const int64_t row =
          std::max<int64_t>(*extentOf(vectorDimension()), 1) * size;
      rows.part = {int64_t(elements) * size / row,
                   part(vectorDimension()) * size, row};
    }
  } else if (rows.part.areApart()) {
    rows.piece = double(rows.part.bytes);
    rows.pieceFar = rows.piece;
  }
  return rows;
}

bool NestPlanner::isPushedOutAndShared() const {
  auto grid = dyn_cast<tile::ParallelOp>(tiled->getParentOp());
  std::optional<OperandRows> vectors = rowsOfOperand(tileLoops()->second);
  const MemoryLevel &second = machine.memory[1];
  if (!grid || !vectors || shareKept(second, vectors->whole, 0) == 1 ||
      shareKept(second, SpacedRows::together(vectors->loadedBytes), 0) < 1)
    return false;
  std::optional<SmallVector<unsigned>> along =
      sharedCoordinates(grid, tiled->getOperand(vectorOperand), analysis);
  if (!along)
    return false;
  double sharing = 1;
  for (auto [axis, dim] :
       llvm::enumerate(grid.getDims().getAsRange<StringAttr>()))
    if (!llvm::is_contained(*along, axis))
      sharing *= double(analysis.dims.extent(dim).value_or(1));
  return sharing > 1;
}

void NestPlanner::findRepeatedReads() {
  const ContractionAtom *atom = findAtom(plan.atom);
  if (plan.tileRows == 1 || plan.transposes || plan.regionOperand >= 0 ||
      (atom && atom->isTile()))
    return;
  const auto loops = tileLoops();
  if (!loops)
    return;
  const auto &[outer, inner] = *loops;
  // Loops around and between those of the tile read other elements.
  for (StringAttr dim : llvm::concat<const StringAttr>(
           ArrayRef(phase.kept), ArrayRef(phase.reduced))) {
    std::optional<int64_t> extent = extentOf(dim);
    if (!extent || *extent < 1)
      return;
    if (llvm::is_contained(phase.kept, dim) && *extent > 1 &&
        dim != outer.dim && dim != inner.dim)
      return;
  }
  std::optional<OperandRows> rows = rowsOfOperand(outer),
                             vectors = rowsOfOperand(inner);
  if (!rows || !vectors)
    return;
  Operation *contract = phase.roots[0].op;
  double times = 1;
  Operation *around = contract->getParentOp();
  for (; around && !isa<tile::ParallelOp, tile::KernelOp>(around);
       around = around->getParentOp())
    if (isa<tile::SerialOp, tile::PipelineOp, tile::FoldOp>(around))
      times *=
          double(analysis.dims.extent(around->getAttrOfType<StringAttr>("dim"))
                     .value_or(1));
  auto tripsOf = [&](const TileLoop &loop) {
    return double(llvm::divideCeil(*extentOf(loop.dim), loop.step));
  };
  auto add = [&](double bytes, double piece, const SpacedRows &between,
                 double others) {
    if (bytes > 0)
      plan.repeats.push_back({bytes, piece, between, others});
  };
  // What blocks of the reduced dimension read again is near (blockBytes).
  if (plan.reducedBlock == 0) {
    add(times * rows->loadedBytes * (tripsOf(inner) - 1), rows->piece,
        rows->part, lineBytes(vectors->part));
    add(times * vectors->loadedBytes * (tripsOf(outer) - 1), vectors->piece,
        vectors->whole, lineBytes(rows->part));
  }
  auto grid = dyn_cast_or_null<tile::ParallelOp>(around);
  if (!grid || contract->getParentOp() != around)
    return;
  unsigned innermost = grid.getDims().size() - 1;
  if (plan.packedOperand >= 0)
    innermost = sharedInnermost(grid, contract->getOperand(plan.packedOperand),
                                analysis)
                    .value_or(innermost);
  const double results =
      double(*extentOf(outer.dim)) * double(*extentOf(inner.dim)) *
      double(bytesOf(tile::getElement(contract->getResult(0).getType())));
  auto addOfPrograms = [&](int number, const OperandRows &own,
                           const OperandRows &other) {
    std::optional<SmallVector<unsigned>> along = coordinatesOf(
        contract->getOperand(number), grid, analysis.phases, analysis.accesses);
    if (!along)
      return;
    // Programs that follow one another, and all others, that read the same.
    double next = 1, later = 1;
    for (auto [axis, dim] :
         llvm::enumerate(grid.getDims().getAsRange<StringAttr>()))
      if (!llvm::is_contained(*along, axis))
        (axis == innermost ? next : later) *=
            std::max(1.0, double(analysis.dims.extent(dim).value_or(1)));
    add(own.loadedBytes * (1 - 1 / next), own.piece, own.whole,
        lineBytes(other.whole) + results);
    add(own.loadedBytes / next * (1 - 1 / later), own.pieceFar,
        SpacedRows::together(bytesOfKernel()), 0);
  };
  addOfPrograms(outer.operand, *rows, *vectors);
  addOfPrograms(inner.operand, *vectors, *rows);
}

} // namespace tessera
