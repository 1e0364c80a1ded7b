//===- stepped.cpp - Loading every few elements of a row ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements that lie a small constant step apart are loaded in as many whole
// vectors as the step is long, with only the lanes that are wanted active, and
// brought together by shuffles. No other element is read, and what is outside
// of the view is not: each vector has the test of its own elements.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"

#include <algorithm>
#include <cstdlib>

using namespace mlir;

namespace tessera {

/// The elements of `active`, each for `step` lanes in turn, from the lane
/// `first` of all on, in reverse order where the step is negative.
static Value spread(VectorEmitter &emit, Value active, int64_t step,
                    int64_t first) {
  const int64_t lanes = lanesOf(active);
  const int64_t length = std::abs(step);
  SmallVector<int32_t> from;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const int64_t element = (first + lane) / length;
    from.push_back(int32_t(step < 0 ? lanes - 1 - element : element));
  }
  return emit.shuffle(active, from);
}

Value NestEmitter::steppedInside(const Address &at) {
  Type lanes64 = laneType(b.getI64Type(), lanes);
  Value index = emit.add(
      emit.splat(emit.toI64(at.stepPosition), lanes),
      emit.mul(emit.laneNumbers(lanes), emit.integer(lanes64, at.step)));
  return emit.compare(arith::CmpIPredicate::ult, index,
                      emit.integer(lanes64, at.stepLimit));
}

Value NestEmitter::loadStepped(const Access &access, const Address &at,
                               Value userMask) {
  const int64_t step = at.step, length = std::abs(step);
  Type storage = access.viewType().getElementType();
  Type lanes64 = laneType(b.getI64Type(), lanes);
  // From the lowest address on; lane 0 is the last element of all where the
  // step is negative.
  const int64_t lowest = step < 0 ? step * (lanes - 1) : 0;
  Value active = mask;
  if (userMask)
    active = emit.logicalAnd(active, emit.splat(userMask, lanes));
  SmallVector<Value> loaded;
  for (int64_t vector = 0; vector < length; ++vector) {
    const int64_t first = vector * lanes;
    SmallVector<bool> wanted;
    for (int64_t lane = 0; lane < lanes; ++lane)
      wanted.push_back((first + lane) % length == 0);
    Value mine = emit.constant(DenseElementsAttr::get(
        VectorType::get({lanes}, b.getI1Type()), wanted));
    if (at.stepLimit >= 0) {
      Value index = emit.add(emit.splat(emit.toI64(at.stepPosition), lanes),
                             emit.add(emit.laneNumbers(lanes),
                                      emit.integer(lanes64, first + lowest)));
      mine = emit.logicalAnd(mine,
                             emit.compare(arith::CmpIPredicate::ult, index,
                                          emit.integer(lanes64, at.stepLimit)));
    }
    if (at.inside)
      mine = emit.logicalAnd(mine, emit.splat(at.inside, lanes));
    if (active)
      mine = emit.logicalAnd(mine, spread(emit, active, step, first));
    Value pointer =
        emit.offsetPointer(at.pointer, storage, emit.index(first + lowest));
    loaded.push_back(emit.load(pointer, storage, lanes, mine));
  }
  // Vectors before `count` hold the elements of the lanes that are below.
  Value result = loaded[0];
  for (int64_t vector = 0; vector < length; ++vector) {
    if (vector == 0 && length > 1)
      continue;
    SmallVector<int32_t> from;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      // In order of addresses first.
      const int64_t place = lane * length;
      const int64_t inVector = place / lanes;
      int64_t source = lane;
      if (vector <= 1 && inVector == 0)
        source = place;
      else if (inVector == vector)
        source = (length > 1 ? lanes : 0) + place - vector * lanes;
      from.push_back(int32_t(source));
    }
    if (step < 0 && vector == length - 1)
      std::reverse(from.begin(), from.end());
    result = length > 1 ? emit.shuffle(result, loaded[vector], from)
                        : emit.shuffle(result, from);
  }
  return result;
}

} // namespace tessera
