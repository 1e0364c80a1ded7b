//===- prepack.cpp - Operands that a caller has packed --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a plan copies a contraction's operand, a caller may do so once for many
// calls: the copies of all programs lie one after another, in the order of the
// coordinates that they depend on, and the launch gets their address in place
// of the array's. What fills them is a function of its own, with the same loops
// as the copy inside a program.
//
//===----------------------------------------------------------------------===//

#include "analysis/coordinates.h"
#include "realize/cpu/realizer.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

/// One line of the cache more than whole vectors may be read past the end.
static constexpr int64_t panelSpacing = 128;

std::optional<TileBuffer> Realizer::prepackedPanel(Value operand,
                                                   ArrayRef<StringAttr> dims) {
  tile::LoadOp load = prepackedLoad(operand, planning.choices, analysis);
  auto refuse = [&](const Twine &why) {
    fail(operand.getDefiningOp(), "prepack.not_packed", why);
    return std::nullopt;
  };
  Access access = *getAccess(load);
  tile::KernelOp kernel = analysis.kernel;
  const std::string name = kernel.getArgName(access.view.getArgNumber()).str();
  if (!stageGrid)
    return refuse("'" + name +
                  "' cannot be prepacked: the kernel is one "
                  "program, expected a grid of programs that "
                  "share its elements");
  std::optional<SmallVector<unsigned>> along =
      coordinatesOf(operand, stageGrid, analysis.phases, analysis.accesses);
  if (!along)
    return refuse("'" + name +
                  "' cannot be prepacked: its elements depend on "
                  "more than the program's coordinates");
  for (OpOperand &use : access.view.getUses())
    if (use.getOwner() != load)
      return refuse("'" + name +
                    "' cannot be prepacked: it is read in more "
                    "than one place");
  auto known = llvm::find_if(prepacked, [&](const PrepackedOperand &other) {
    return other.operand == operand;
  });
  if (known == prepacked.end()) {
    PrepackedOperand made;
    made.operand = operand;
    made.parameter = access.view.getArgNumber();
    made.along = *along;
    made.panel.element = tile::getElement(operand.getType());
    made.panel.dims.assign(dims.begin(), dims.end());
    made.panel.strides.assign(dims.size(), 1);
    made.panel.dynamicStrides.resize(dims.size());
    int64_t elements = 1;
    for (size_t axis = dims.size(); axis-- > 0;) {
      made.panel.strides[axis] = elements;
      if (__builtin_mul_overflow(
              elements, constantExtent(dims[axis]).value_or(0), &elements))
        elements = largestTile;
    }
    for (unsigned axis : made.along)
      if (__builtin_mul_overflow(
              made.panels,
              constantExtent(cast<StringAttr>(stageGrid.getDims()[axis]))
                  .value_or(0),
              &made.panels))
        made.panels = largestTile;
    int64_t total = 0;
    if (__builtin_mul_overflow(elements, storageBytes(made.panel.element),
                               &made.panel.bytes) ||
        made.panel.bytes > largestTile ||
        __builtin_mul_overflow(made.panel.bytes, made.panels, &total) ||
        total > (int64_t{1} << 50))
      return refuse("'" + name + "' cannot be prepacked: it is too large");
    made.spacing = (made.panel.bytes + panelSpacing + 63) / 64 * 64;
    prepacked.push_back(std::move(made));
    known = std::prev(prepacked.end());
  }
  Value number = emit.index(0);
  for (unsigned axis : known->along) {
    number =
        emit.mul(number, extent(cast<StringAttr>(stageGrid.getDims()[axis])));
    number = emit.add(number, scalar(stageGrid.getBody().getArgument(axis)));
  }
  TileBuffer panel = known->panel;
  panel.pointer =
      emit.offsetPointer(viewPointer(access.view), b.getI8Type(),
                         emit.mul(number, emit.index(known->spacing)));
  return panel;
}

void Realizer::runPacking(tile::ParallelOp grid, const PrepackedOperand &what,
                          int64_t destination, Value first, Value last) {
  // Scalars that no data decides: the others are not what is packed.
  auto runScalars = [&](Block &block, tile::ParallelOp until) {
    for (const Step &step : analysis.phases.schedule(block)) {
      Operation *op = step.immediate;
      if (!op || op == until || op->getNumRegions() > 0 ||
          isa<tile::StoreOp, tile::ScatterOp, tile::LoadOp>(op))
        continue;
      if (llvm::none_of(op->getOperands(), dependsOnData))
        runImmediate(*op);
    }
  };
  runScalars(analysis.kernel->getRegion(0).front(), grid);
  Type ptr = LLVM::LLVMPointerType::get(b.getContext());
  Value panels = b.create<LLVM::LoadOp>(
      emit.loc, ptr,
      emit.offsetPointer(data, b.getI64Type(), emit.index(destination)));
  auto loop = b.create<scf::ForOp>(emit.loc, first, last, emit.index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  for (BlockArgument coordinate : grid.getBody().getArguments())
    setScalar(coordinate, emit.index(0));
  Value number = loop.getInductionVar();
  for (unsigned axis : llvm::reverse(what.along)) {
    Value size = extent(cast<StringAttr>(grid.getDims()[axis]));
    setScalar(grid.getBody().getArgument(axis),
              b.create<arith::RemUIOp>(emit.loc, number, size));
    number = b.create<arith::DivUIOp>(emit.loc, number, size);
  }
  runScalars(grid.getBody().front(), {});
  TileBuffer panel = what.panel;
  panel.pointer = emit.offsetPointer(
      panels, b.getI8Type(),
      emit.mul(loop.getInductionVar(), emit.index(what.spacing)));
  materializeInto(what.operand, panel);
}

} // namespace tessera
