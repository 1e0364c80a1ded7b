//===- compile_memory.cpp - Translation of memory and shape ops -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/compiler.h"

#include "support/launch_errors.h"

using namespace mlir;

namespace tessera::interp {

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

template <typename Op> std::shared_ptr<Access> Compiler::accessOf(Op op) {
  auto access = std::make_shared<Access>();
  access->view = viewOf(op.getView());
  machine.sites.push_back(positionOf(op.getLoc()));
  access->site = static_cast<uint32_t>(machine.sites.size());
  access->promised = op.getBounds() == tile::Bounds::Promised;
  SmallVector<StringAttr> dims = op.getAccessDims();
  for (StringAttr dim : dims)
    access->dims.push_back(dimOf(dim));
  for (unsigned i = 0, rank = op.getAxisDims().size(); i < rank; ++i) {
    Axis axis;
    if (!op.getAxisDim(i).empty())
      axis.dim = static_cast<int>(
          tile::indexOf(dims, cast<StringAttr>(op.getAxisDims()[i])));
    axis.step = op.getAxisStep(i);
    if (Value offset = op.getAxisOffset(i)) {
      axis.offset = slotOf(offset);
      for (StringAttr dim : tile::getDims(offset.getType()))
        axis.offsetDims.push_back(tile::indexOf(dims, dim));
      axis.dataDependent = dataDependent.contains(offset);
    }
    access->axes.push_back(std::move(axis));
  }
  if (op.getMask())
    access->mask = slotOf(op.getMask());
  return access;
}

bool Compiler::visit(tile::LoadOp op) {
  std::optional<Slot> fill;
  if (op.getFill())
    fill = slotOf(op.getFill());
  Slot result = slotOf(op.getResult());
  emit([&m = machine, access = accessOf(op), fill, result] {
    return load(m, *access, fill, result);
  });
  return true;
}

bool Compiler::visit(tile::StoreOp op) {
  Slot value = slotOf(op.getValue());
  emit([&m = machine, access = accessOf(op), value] {
    return store(m, *access, value);
  });
  return true;
}

bool Compiler::visit(tile::ScatterOp op) {
  Slot value = slotOf(op.getValue());
  Combination combination =
      combinationOf(op.getCombiner(), kindOf(op.getValue().getType()));
  emit([&m = machine, access = accessOf(op), combination, value] {
    return scatter(m, *access, combination, value);
  });
  return true;
}

bool Compiler::visit(tile::ExtentOp op) {
  unsigned view = viewOf(op.getView());
  unsigned axis = op.getAxis();
  Slot result = slotOf(op.getResult());
  emit([&m = machine, view, axis, result] {
    return m.setIndex(result, m.memory.view(view).tensor.extents[axis]);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Broadcast and transpose: each axis of the result is an axis of the input or
/// none.
bool Compiler::emitReordered(Operation *op) {
  Slot input = slotOf(op->getOperand(0)), result = slotOf(op->getResult(0));
  Dims from = dimsOf(op->getOperand(0).getType());
  Dims to = dimsOf(op->getResult(0).getType());
  emit([&m = machine, from, to, input, result] {
    const Tile &source = m.slots[input];
    Tile &target = m.slots[result];
    Extents extents = m.extentsOf(to);
    if (!target.reset(m.context, source.kind(), extents) ||
        !m.context.charge(target.count()))
      return false;
    Extents dense = denseStrides(source.extents());
    Extents strides(to.size(), 0);
    for (size_t axis = 0; axis < to.size(); ++axis)
      if (const auto *at = llvm::find(from, to[axis]); at != from.end())
        strides[axis] = dense[at - from.begin()];
    Walk walk(extents);
    walk.add(strides);
    for (int64_t i = 0, count = target.count(); i < count; ++i, walk.next())
      target.copy(i, source, walk[0]);
    return true;
  });
  return true;
}

bool Compiler::visit(tile::BroadcastOp op) { return emitReordered(op); }
bool Compiler::visit(tile::TransposeOp op) { return emitReordered(op); }

bool Compiler::visit(tile::ReshapeOp op) {
  Slot input = slotOf(op.getInput()), result = slotOf(op.getResult());
  emit([&m = machine, to = dimsOf(op.getResult().getType()), input, result] {
    Extents extents = m.extentsOf(to);
    const Tile &source = m.slots[input];
    std::optional<int64_t> count = elementCount(extents);
    if (!count)
      return m.context.fail(
          launcherror::reshapeOverflow(source.count(), extents));
    if (count != source.count())
      return m.context.fail(launcherror::reshape(source.count(), count));
    m.slots[result] = source;
    m.slots[result].reshape(extents);
    return true;
  });
  return true;
}

bool Compiler::visit(tile::IotaOp op) {
  Slot result = slotOf(op.getResult());
  emit([&m = machine, dim = dimOf(op.getDimAttr()), result] {
    Tile &target = m.slots[result];
    if (!target.reset(m.context, Kind::I64, m.dimExtents[dim]) ||
        !m.context.charge(target.count()))
      return false;
    for (int64_t i = 0, count = target.count(); i < count; ++i)
      target.ints()[i] = i;
    return true;
  });
  return true;
}

namespace {
struct Gather {
  Slot source = 0, indices = 0, result = 0;
  std::optional<Slot> fill;
  unsigned along = 0;
  std::string dim;
  bool validate = false;
};
} // namespace

static bool runGather(Machine &m, const Gather &gather) {
  const Tile &source = m.slots[gather.source];
  const Tile &indices = m.slots[gather.indices];
  Tile &result = m.slots[gather.result];
  int64_t length = source.extents()[gather.along];
  Extents strides = denseStrides(source.extents());
  int64_t step = strides[gather.along];
  Extents rest(source.extents());
  rest.erase(rest.begin() + gather.along);
  strides.erase(strides.begin() + gather.along);
  Extents extents(indices.extents());
  extents.append(rest.begin(), rest.end());
  if (!result.reset(m.context, source.kind(), extents) ||
      !m.context.charge(result.count()))
    return false;
  if (result.count() == 0)
    return true;
  std::vector<int64_t> offsets = offsetsOf(rest, strides);
  int64_t to = 0;
  for (int64_t i = 0, count = indices.count(); i < count; ++i) {
    int64_t index = indices.ints()[i];
    bool inside = index >= 0 && index < length;
    bool known = !indices.isUnknown(i);
    if (gather.validate && !inside && known)
      return m.context.fail(
          launcherror::gatherIndex(gather.dim, length, index));
    for (int64_t offset : offsets) {
      if (inside)
        result.copy(to, source, index * step + offset);
      else if (gather.fill)
        result.copy(to, m.slots[*gather.fill], 0);
      else
        result.set(to, Scalar());
      if (!known && isFloat(result.kind()))
        result.bounds()[to].forget();
      else if (!known)
        result.setUnknown(to);
      ++to;
    }
  }
  return true;
}

bool Compiler::visit(tile::GatherOp op) {
  Gather gather;
  gather.source = slotOf(op.getSource());
  gather.indices = slotOf(op.getIndices());
  gather.result = slotOf(op.getResult());
  if (op.getFill())
    gather.fill = slotOf(op.getFill());
  gather.along = static_cast<unsigned>(tile::indexOf(
      tile::getDims(op.getSource().getType()), op.getAlongAttr()));
  gather.dim = op.getAlong().str();
  gather.validate = dataDependent.contains(op.getIndices());
  emit([&m = machine, gather] { return runGather(m, gather); });
  return true;
}

} // namespace tessera::interp
