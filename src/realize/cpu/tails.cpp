//===- tails.cpp - The last vectors of a contraction's tile ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is left of a tile's vectors, in narrower ones: a pass of its own over
// the rows, after that over whole vectors. Where only programs that end with an
// array have such a rest, it stands behind a test.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

using namespace mlir;

namespace tessera {

void NestEmitter::emitNarrowTails(unsigned level, function_ref<void()> inner) {
  const int64_t extent = *levels[vectorLevel].extent;
  const LiveLimit &limit = levels[vectorLevel].limit;
  // Programs that are known to touch no edge have none.
  if (!limit.known && extent % plan.lanes == 0)
    return;
  isAtTail = true;
  levels[level].anchor = nullptr;
  if (!limit.known) {
    emitRows(level, plan.tailRows, inner);
  } else {
    Value endsEarly =
        emit.compare(arith::CmpIPredicate::slt, end(vectorLevel, extent),
                     emit.index(extent));
    auto branch =
        b.create<scf::IfOp>(emit.loc, endsEarly, /*withElseRegion=*/false);
    const double others =
        r.box ? r.box->share(limit.offset, r.analysis.dims) : 0.5;
    branch->setAttr(takenAttribute, b.getF64FloatAttr(1 - others));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    emitRows(level, plan.tailRows, inner);
  }
  isAtTail = false;
}

/// The last vector of a row.
void NestEmitter::emitNarrowTail(unsigned level, function_ref<void()> inner) {
  const int64_t extent = *levels[level].extent;
  Value first = emit.index(extent - plan.tailElements);
  if (levels[level].limit.known)
    first = b.create<arith::SubIOp>(emit.loc, end(level, extent),
                                    emit.index(plan.tailElements));
  lanes = plan.tailLanes;
  if (plan.tailElements < lanes)
    mask = emit.prefixMask(emit.index(plan.tailElements), lanes);
  isWhole = true;
  const int64_t savedVectors = std::exchange(vectors, 1);
  enter(level, first);
  inner();
  vectors = savedVectors;
  isWhole = false;
  mask = {};
  lanes = 1;
}

} // namespace tessera
