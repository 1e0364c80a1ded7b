//===- aligned.cpp - Loops that begin at an aligned element ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With NestPlan::alignsStores the vector level is
//
//   the elements before the first whose store is aligned
//   groups of vectors, then single vectors
//   the elements that are left, fewer than a vector has
//
// How many there are of each is known at run time alone. What is stored is
// still tested for being aligned, vector by vector: elements may lie anywhere.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include <utility>

using namespace mlir;

namespace tessera {

/// The number of elements of the vector level before the first that is stored
/// at a multiple of the size of a vector; null where no address is known.
Value NestEmitter::elementsBeforeAligned(unsigned level) {
  for (const Root &root : phase->roots) {
    if (root.kind != Root::Kind::Store)
      continue;
    const Access access = *getAccess(root.op);
    if (alignedShare(access, vectorDim, plan.lanes, r.analysis) == 1)
      continue;
    enter(level, emit.index(0));
    Value pointer = storedAddress(access);
    if (!pointer)
      continue;
    Type i64 = b.getI64Type();
    const int64_t size = storageBytes(access.viewType().getElementType());
    Value address = b.create<LLVM::PtrToIntOp>(emit.loc, i64, pointer);
    Value bytes = b.create<arith::AndIOp>(
        emit.loc,
        b.create<arith::SubIOp>(emit.loc, emit.integer(i64, 0), address),
        emit.integer(i64, plan.lanes * size - 1));
    return b.create<arith::IndexCastOp>(
        emit.loc, b.getIndexType(),
        b.create<arith::DivUIOp>(emit.loc, bytes, emit.integer(i64, size)));
  }
  return {};
}

/// The last elements of an aligned loop, or those before its vectors: `count`
/// from `first` on, fewer than a vector has.
void NestEmitter::emitRest(unsigned level, Value first, Value count,
                           function_ref<void()> inner) {
  if (plan.tail == TailForm::Scalar) {
    lanes = 1;
    loopOf(level, first, emit.add(first, count), 1, 1, plan.lanes / 2, inner);
    lanes = plan.lanes;
    return;
  }
  const int64_t savedVectors = std::exchange(vectors, 1);
  mask = emit.prefixMask(count, plan.lanes);
  enter(level, first);
  inner();
  mask = {};
  vectors = savedVectors;
}

/// A loop whose bounds are known at run time, of about `trips` iterations.
void NestEmitter::loopOf(unsigned level, Value first, Value last, int64_t step,
                         int64_t vectorCount, int64_t trips,
                         function_ref<void()> body) {
  const int64_t savedVectors = std::exchange(vectors, vectorCount);
  auto forOp = b.create<scf::ForOp>(emit.loc, first, last, emit.index(step));
  forOp->setAttr(tripsAttribute,
                 b.getDenseF64ArrayAttr({double(trips), double(trips)}));
  if (!levels[level].anchor)
    levels[level].anchor = forOp;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forOp.getBody()->getTerminator());
  enter(level, forOp.getInductionVar());
  body();
  vectors = savedVectors;
}

bool NestEmitter::emitAlignedVectors(unsigned level,
                                     function_ref<void()> inner) {
  Value before = elementsBeforeAligned(level);
  if (!before)
    return false;
  const int64_t extent = *levels[level].extent;
  const int64_t group = plan.lanes * plan.unroll;
  // Up to the last whole number of vectors, or of groups.
  auto endOf = [&](Value first, int64_t step) -> Value {
    Value left = b.create<arith::SubIOp>(emit.loc, emit.index(extent), first);
    Value over = b.create<arith::RemUIOp>(emit.loc, left, emit.index(step));
    return b.create<arith::SubIOp>(emit.loc, emit.index(extent), over);
  };
  lanes = plan.lanes;
  emitRest(level, emit.index(0), before, inner);
  Value next = endOf(before, group);
  const int64_t whole = extent - plan.lanes / 2;
  loopOf(level, before, next, group, plan.unroll, whole / group, inner);
  if (plan.unroll > 1) {
    Value last = endOf(next, plan.lanes);
    loopOf(level, next, last, plan.lanes, 1, whole % group / plan.lanes, inner);
    next = last;
  }
  emitRest(level, next,
           b.create<arith::SubIOp>(emit.loc, emit.index(extent), next), inner);
  lanes = 1;
  return true;
}

} // namespace tessera
