//===- access.cpp - Addresses, bounds and masks of accesses ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/elementwise.h"
#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"
#include "support/launch_errors.h"

#include <limits>

using namespace mlir;

namespace tessera {

/// Whether the coordinates that this nest runs over keep the axis inside,
/// though the whole extent of its dimension would not.
bool NestEmitter::staysInside(const Access &access, unsigned axis) const {
  const Access::Axis &described = access.axes[axis];
  if (r.interior && r.interior->keepsInside(access, axis, r.analysis.accesses))
    return true;
  if (!described.dim || described.step != 1)
    return false;
  int64_t last = 0;
  if (described.offset) {
    if (isa<RankedTensorType>(described.offset.getType()))
      return false;
    IndexRange offset = r.analysis.dims.range(described.offset);
    if (!offset.known || offset.low < 0)
      return false;
    last = offset.high;
  }
  for (const Level &level : levels)
    if (level.dim == described.dim)
      return level.extent &&
             !__builtin_add_overflow(last, *level.extent - 1, &last) &&
             last < r.analysis.accesses.extent(access, axis);
  return false;
}

/// Whether the axis is inside at all coordinates of its dimension at which what
/// the nest computes is seen: it ends where the arrays do that the results are
/// stored to.
bool NestEmitter::isSeenInside(const Access &access, unsigned axis) const {
  const Access::Axis &described = access.axes[axis];
  int64_t extent = r.analysis.accesses.extent(access, axis);
  return described.step == 1 && llvm::any_of(levels, [&](const Level &level) {
           return level.dim == described.dim && level.limit.known &&
                  level.limit.offset == described.offset && extent > 0 &&
                  level.limit.viewExtent <= extent;
         });
}

NestEmitter::Address NestEmitter::address(const Access &access, bool mayStep) {
  Address result;
  if (mayStep && lanes > 1)
    for (const Level &level : levels)
      if (isVectorDim(level.dim))
        result.step =
            steppedAlong(access, level.dim, r.analysis, r.target).value_or(0);
  const AccessAnalysis &accesses = r.analysis.accesses;
  Type lanes64 = laneType(b.getI64Type(), lanes);
  Value offset;
  unsigned varying = 0;
  bool isAdjacent = true;
  // The stride of an axis of adjacent elements. What each lane adds is needed
  // only if another axis varies with the lanes, too.
  Value unitStride;
  for (unsigned axis = 0; axis < access.axes.size(); ++axis) {
    const Access::Axis &described = access.axes[axis];
    Value position;
    const bool isAlongLanes = described.dim && isVectorDim(described.dim);
    Value lanePart; // i64 vector added to `position`
    auto numberLanes = [&] {
      if (isAlongLanes && !lanePart)
        lanePart = emit.mul(emit.laneNumbers(lanes),
                            emit.integer(lanes64, described.step));
    };
    if (described.dim)
      position = described.step == 1 ? coordinate(described.dim)
                                     : emit.mul(coordinate(described.dim),
                                                emit.index(described.step));
    bool isUnit = isAlongLanes && described.step == 1 &&
                  r.analysis.strides.isUnit(access, axis);
    if (described.offset) {
      Value extra = value(described.offset);
      emitCheck(access, axis, extra);
      if (lanesOf(extra) > 1) {
        numberLanes();
        lanePart = lanePart ? emit.add(lanePart, extra) : extra;
        isUnit = false;
      } else {
        if (!extra.getType().isIndex())
          extra = b.createOrFold<arith::IndexCastOp>(emit.loc, b.getIndexType(),
                                                     extra);
        position = position ? emit.add(position, extra) : extra;
      }
    }
    if (!position)
      position = emit.index(0);
    const bool varies = isAlongLanes || lanePart;
    const bool isSeen = accesses.needsCheck(access, axis) &&
                        !staysInside(access, axis) &&
                        isSeenInside(access, axis);
    // Rows of which all are live need no test.
    const bool isLive =
        isSeen && hasLiveRows && described.dim == levels[tileLevel].dim;
    const bool mayLeave = !isLive && accesses.needsCheck(access, axis) &&
                          !staysInside(access, axis);
    if (mayLeave && isSeen && !varies && !access.writes) {
      // Rows that nobody sees read the last one: a row is chosen once, a test
      // would be made for each of its elements.
      position = b.create<arith::MinSIOp>(
          emit.loc, position, emit.index(accesses.extent(access, axis) - 1));
    } else if (result.step != 0 && varies) {
      // Each of the vectors that are loaded has a test of its own.
      if (mayLeave)
        result.stepLimit = accesses.extent(access, axis);
    } else if (mayLeave && !(isSeen && varies && isWhole)) {
      Value indices = emit.toI64(position);
      numberLanes();
      if (lanePart)
        indices = emit.add(emit.splat(indices, lanes), lanePart);
      Value limit =
          emit.integer(indices.getType(), accesses.extent(access, axis));
      Value inside = emit.compare(arith::CmpIPredicate::ult, indices, limit);
      result.inside = emit.logicalAnd(result.inside, inside);
      if (accesses.stepMayOverflow(described))
        result.inside =
            emit.logicalAnd(result.inside, staysIn64Bits(described));
    }
    Value stride = r.stride(access, axis);
    Value distance = emit.mul(position, stride);
    offset = offset ? emit.add(offset, distance) : distance;
    if (!varies)
      continue;
    if (result.step != 0) {
      result.stepPosition = position;
      continue;
    }
    ++varying;
    isAdjacent &= isUnit;
    if (isUnit && !unitStride) {
      unitStride = stride;
      continue;
    }
    numberLanes();
    Value scaled = emit.mul(lanePart, emit.splat(emit.toI64(stride), lanes));
    result.laneOffsets =
        result.laneOffsets ? emit.add(result.laneOffsets, scaled) : scaled;
  }
  result.pointer = emit.offsetPointer(r.viewPointer(access.view),
                                      access.viewType().getElementType(),
                                      offset ? offset : emit.index(0));
  if (varying == 1 && isAdjacent) {
    result.isContiguous = true;
  } else if (unitStride) {
    Value scaled = emit.mul(emit.laneNumbers(lanes),
                            emit.splat(emit.toI64(unitStride), lanes));
    result.laneOffsets =
        result.laneOffsets ? emit.add(result.laneOffsets, scaled) : scaled;
  }
  return result;
}

/// Whether step * index + offset is what it seems where its wrapped value is
/// inside the axis.
Value NestEmitter::staysIn64Bits(const Access::Axis &axis) {
  Value index = emit.toI64(coordinate(axis.dim));
  if (isVectorDim(axis.dim))
    index = emit.add(emit.splat(index, lanes), emit.laneNumbers(lanes));
  auto step = static_cast<uint64_t>(axis.step);
  uint64_t magnitude = axis.step < 0 ? 0 - step : step;
  auto last = static_cast<int64_t>(
      static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / magnitude);
  Value fits = emit.compare(arith::CmpIPredicate::ule, index,
                            emit.integer(index.getType(), last));
  if (axis.step > 0 || !axis.offset)
    return fits;
  // Two numbers below zero may wrap to a small one; other sums that wrap are
  // outside.
  Value offset = emit.toI64(value(axis.offset));
  return emit.logicalAnd(fits, emit.compare(arith::CmpIPredicate::sge, offset,
                                            emit.integer(offset.getType(), 0)));
}

/// In a checking stage, reports an offset read from data that is outside the
/// axis. A dimension added to it may overhang, as it may with a computed
/// offset.
void NestEmitter::emitCheck(const Access &access, unsigned axis, Value offset) {
  if (!r.checksOnly || !AccessAnalysis::isDataDependent(access.axes[axis]))
    return;
  Value wrong = outside(offset, r.analysis.accesses.extent(access, axis));
  if (access.mask)
    wrong = emit.logicalAnd(wrong, value(access.mask));
  tile::KernelOp kernel = r.analysis.kernel;
  r.emitCheck(
      wrong,
      launchError(access.op,
                  launcherror::index(
                      kernel.getArgName(access.view.getArgNumber()), axis,
                      r.analysis.accesses.extent(access, axis), std::nullopt)));
}

/// Where active lanes of `index` are outside [0, extent).
Value NestEmitter::outside(Value index, int64_t extent) {
  index = emit.toI64(index);
  Value wrong = emit.compare(arith::CmpIPredicate::uge, index,
                             emit.integer(index.getType(), extent));
  return mask ? emit.logicalAnd(wrong, mask) : wrong;
}

Value NestEmitter::loadElement(const Access &access) {
  Address at = address(access, /*mayStep=*/true);
  Type storage = access.viewType().getElementType();
  Type compute = access.viewType().getComputeType();
  Value userMask = access.mask ? value(access.mask) : Value();
  Value wanted = at.inside;
  if (at.step != 0 && at.stepLimit >= 0 && access.fill)
    wanted = emit.logicalAnd(wanted, steppedInside(at));
  if (userMask)
    wanted = emit.logicalAnd(wanted, userMask);
  Value fill = access.fill ? value(access.fill) : Value();
  bool varies = at.isContiguous || at.laneOffsets;

  Value loaded;
  if (at.step != 0) {
    loaded = loadStepped(access, at, userMask);
    if (!fill)
      return loaded;
  } else if (!varies) {
    // One element for all lanes. Only a condition that is the same for all
    // lanes can keep it from being read; a mask that varies selects afterwards.
    Value pointer = at.pointer;
    Value readable = at.inside;
    if (userMask && lanesOf(userMask) == 1)
      readable = emit.logicalAnd(readable, userMask);
    if (readable && lanesOf(readable) == 1)
      pointer = emit.select(readable, pointer, r.safePointer());
    loaded = emit.load(pointer, storage, 1, Value());
  } else {
    Value active = mask;
    if (wanted)
      active = emit.logicalAnd(active, emit.splat(wanted, lanes));
    loaded = at.isContiguous
                 ? emit.load(at.pointer, storage, lanes, active)
                 : emit.gather(at.pointer, storage, at.laneOffsets, active);
    if (at.isContiguous)
      noteLines(access, loaded.getDefiningOp());
    if (prefetches && at.isContiguous)
      prefetchNext(access, at.pointer);
    // Inactive lanes are loaded as zero, the fill when none is written.
    if (!fill)
      return loaded;
  }
  if (!wanted)
    return loaded;
  if (!fill)
    fill = emit.zero(compute);
  return emit.select(wanted, loaded, fill);
}

/// Prefetches what the next program loads in place of what was loaded at
/// `pointer`.
void NestEmitter::prefetchNext(const Access &access, Value pointer) {
  auto found =
      llvm::find_if(prefetches->loads, [&](const PrefetchedAccess &ahead) {
        return ahead.op == access.op;
      });
  if (found == prefetches->loads.end())
    return;
  Value distance = emit.index(0);
  for (auto [axis, ahead] : llvm::enumerate(found->ahead))
    if (ahead != 0)
      distance =
          emit.add(distance, emit.mul(r.stride(access, axis),
                                      emit.index(ahead * r.programsAhead())));
  Type storage = access.viewType().getElementType();
  prefetchVector(emit.offsetPointer(pointer, storage, distance), storage,
                 /*isStored=*/false);
}

/// The address of what is stored at these coordinates, which need not be inside
/// the view; null if that is not known yet, or differs from lane to lane.
Value NestEmitter::storedAddress(const Access &access) {
  Value offset = emit.index(0);
  for (auto [axis, described] : llvm::enumerate(access.axes)) {
    Value position = emit.index(0);
    if (described.dim)
      position =
          emit.mul(coordinate(described.dim), emit.index(described.step));
    if (described.offset) {
      // One that is computed after this nest comes too late.
      if (isa<RankedTensorType>(described.offset.getType()) ||
          (!isa<BlockArgument>(described.offset) &&
           !r.hasScalar(described.offset)))
        return {};
      position = emit.add(position, r.scalar(described.offset));
    }
    offset = emit.add(offset, emit.mul(position, r.stride(access, axis)));
  }
  return emit.offsetPointer(r.viewPointer(access.view),
                            access.viewType().getElementType(), offset);
}

/// Prefetches what a later nest stores at these coordinates.
void NestEmitter::prefetchStored(const Access &access) {
  if (Value pointer = storedAddress(access))
    prefetchVector(pointer, access.viewType().getElementType(),
                   /*isStored=*/true);
}

/// Prefetches a vector, line by line; of the vectors of an iteration that share
/// a line, the first.
void NestEmitter::prefetchVector(Value pointer, Type storage, bool isStored) {
  int64_t bytes = lanes * storageBytes(storage);
  if (bytes < cacheLine && vectorOf(copy) * bytes % cacheLine != 0)
    return;
  emit.prefetch(pointer, isStored);
  for (int64_t at = cacheLine; at < bytes; at += cacheLine)
    emit.prefetch(emit.offsetPointer(pointer, storage,
                                     emit.index(at / storageBytes(storage))),
                  isStored);
}

void NestEmitter::storeElement(const Access &access, Value tile) {
  Value element = value(tile);
  Address at = address(access);
  Type storage = access.viewType().getElementType();
  Value wanted = at.inside;
  if (access.mask)
    wanted = emit.logicalAnd(wanted, value(access.mask));
  if (r.checksOnly)
    return;
  if (!at.isContiguous && !at.laneOffsets) {
    if (!wanted) {
      emit.store(element, at.pointer, storage, Value());
      return;
    }
    auto ifOp = b.create<scf::IfOp>(emit.loc, wanted, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
    emit.store(element, at.pointer, storage, Value());
    return;
  }
  Value active = mask;
  if (wanted)
    active = emit.logicalAnd(active, emit.splat(wanted, lanes));
  element = emit.splat(element, lanes);
  if (at.isContiguous && plan.storesAround && !active && lanes > 1)
    emit.storeAround(element, at.pointer, storage,
                     plan.alignsStores
                         ? 1
                         : alignedShare(access, vectorDim, lanes, r.analysis));
  else if (at.isContiguous)
    noteLines(access, emit.store(element, at.pointer, storage, active));
  else
    emit.scatter(element, at.pointer, storage, at.laneOffsets, active);
}

void NestEmitter::noteLines(const Access &access, Operation *accessing) {
  // What was loaded may have been converted.
  while (accessing && accessing->getNumResults() == 1 &&
         !isa<LLVM::LoadOp, LLVM::MaskedLoadOp>(accessing))
    accessing = accessing->getNumOperands() > 0
                    ? accessing->getOperand(0).getDefiningOp()
                    : nullptr;
  if (lanes == 1 || !accessing)
    return;
  const double share = 1 - alignedShare(access, vectorDim, lanes, r.analysis);
  if (share == 0)
    return;
  const int64_t element = storageBytes(access.viewType().getElementType());
  const int64_t bytes =
      std::min(lanes * element, int64_t(emit.target.vectorBits) / 8);
  accessing->setAttr(
      acrossAttribute,
      b.getF64FloatAttr(share * double(bytes - element) / double(cacheLine)));
}

void NestEmitter::scatterElement(tile::ScatterOp op) {
  Access access = *getAccess(op);
  Value element = value(op.getValue());
  Address at = address(access);
  Type storage = access.viewType().getElementType();
  Value wanted = at.inside;
  if (access.mask)
    wanted = emit.logicalAnd(wanted, value(access.mask));
  if (r.checksOnly)
    return;
  auto combine = [&] {
    Value old = emit.load(at.pointer, storage, 1, Value());
    emit.store(emitCombine(emit, op.getCombiner(), old, element), at.pointer,
               storage, Value());
  };
  if (!wanted)
    return combine();
  auto ifOp = b.create<scf::IfOp>(emit.loc, wanted, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  combine();
}

} // namespace tessera
