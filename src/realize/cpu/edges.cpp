//===- edges.cpp - Programs at the edges of arrays ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/realize.h"
#include "realize/cpu/realizer.h"

#include <algorithm>
#include <utility>

using namespace mlir;

namespace tessera {

/// The body of one program, whose coordinates are bound; twice, behind a test
/// of the coordinates, where the programs that touch no edge are set apart.
void Realizer::runProgram(tile::ParallelOp op) {
  Block &block = op.getBody().front();
  if (plan.order.edges == Edges::Checked || !box || box->grid != op)
    return runBlock(block);
  Value isInterior;
  for (auto [axis, range] : llvm::enumerate(box->coordinates)) {
    Value coordinate = scalar(block.getArgument(axis));
    auto require = [&](arith::CmpIPredicate predicate, int64_t bound) {
      isInterior = emit.logicalAnd(
          isInterior, emit.compare(predicate, coordinate, emit.index(bound)));
    };
    if (range.low > 0)
      require(arith::CmpIPredicate::sge, range.low);
    if (range.high + 1 <
        analysis.dims.extent(cast<StringAttr>(op.getDims()[axis])))
      require(arith::CmpIPredicate::sle, range.high);
  }
  auto ifOp =
      b.create<scf::IfOp>(emit.loc, isInterior, /*withElseRegion=*/true);
  ifOp->setAttr(shareAttribute,
                b.getF64FloatAttr(double(box->count) / double(box->total)));
  // Either runs, in the same memory; the plan has their nests once.
  const auto outerScalars = scalars;
  const auto outerBuffers = buffers;
  const int64_t scratchBefore = scratchSize;
  auto body = [&](Block *target, const ProgramBox *inside) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(target->getTerminator());
    interior = inside;
    runBlock(block);
    interior = nullptr;
    scalars = outerScalars;
    buffers = outerBuffers;
  };
  body(ifOp.thenBlock(), &*box);
  const int64_t scratchInside = std::exchange(scratchSize, scratchBefore);
  const auto nests = plan.nests;
  const auto sizes = bufferSizes;
  body(ifOp.elseBlock(), nullptr);
  scratchSize = std::max(scratchSize, scratchInside);
  plan.nests = nests;
  bufferSizes = sizes;
}

} // namespace tessera
