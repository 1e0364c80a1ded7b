//===- access.cpp - Subscripted access to views ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/access.h"

#include "support/launch_errors.h"

#include <limits>
#include <tuple>

namespace tessera::interp {

namespace {

constexpr int64_t outside = std::numeric_limits<int64_t>::min();
/// A data-dependent offset out of range in a validating run.
constexpr int64_t invalid = outside + 1;
/// Oracle mode: an index that the bounds do not decide.
constexpr int64_t undecided = outside + 2;
constexpr int64_t lastMark = undecided;

/// Fills the table of one axis.
bool tabulate(Machine &machine, const Access &access, unsigned axisNumber,
              const Extents &extents, Access::Table &table) {
  const Axis &axis = access.axes[axisNumber];
  int64_t extent = machine.memory.view(access.view).tensor.extents[axisNumber];
  llvm::SmallVector<bool, 4> depends(extents.size(), false);
  if (axis.dim >= 0)
    depends[axis.dim] = true;
  for (unsigned position : axis.offsetDims)
    depends[position] = true;

  Extents own, dimStride, offsetStride;
  Extents offsetDense;
  const Tile *offset = axis.offset ? &machine.slots[*axis.offset] : nullptr;
  if (offset)
    offsetDense = denseStrides(offset->extents());
  table.strides.assign(extents.size(), 0);
  for (size_t position = 0; position < extents.size(); ++position) {
    if (!depends[position])
      continue;
    own.push_back(extents[position]);
    dimStride.push_back(static_cast<int>(position) == axis.dim ? 1 : 0);
    offsetStride.push_back(0);
    for (size_t k = 0; k < axis.offsetDims.size(); ++k)
      if (axis.offsetDims[k] == position)
        offsetStride.back() = offsetDense[k];
  }
  Extents dense = denseStrides(own);
  for (size_t position = 0, k = 0; position < extents.size(); ++position)
    if (depends[position])
      table.strides[position] = dense[k++];

  int64_t count = elementCount(own).value_or(0);
  if (!machine.context.charge(count))
    return false;
  table.indices.resize(count);
  Walk walk(own);
  unsigned dimCursor = walk.add(dimStride);
  unsigned offsetCursor = walk.add(offsetStride);
  bool validate = machine.options.validateIndices && axis.dataDependent;
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    int64_t base = offset ? offset->ints()[walk[offsetCursor]] : 0;
    int64_t index;
    if (offset && offset->isUnknown(walk[offsetCursor]))
      index = undecided;
    else if (validate && (base < 0 || base >= extent))
      index = invalid;
    else if (__builtin_mul_overflow(axis.step, walk[dimCursor], &index) ||
             __builtin_add_overflow(index, base, &index) || index <= lastMark)
      index = outside;
    table.indices[i] = index;
  }
  return true;
}

enum class Reach : uint8_t { Inside, Outside, Undecided };

/// One element of an access.
struct Element {
  Reach reach = Reach::Inside;
  int64_t offset = 0;
  /// False when a mask that the bounds do not decide covers it.
  bool certain = true;
};

class Accessor {
public:
  Accessor(Machine &machine, Access &access)
      : machine(machine), access(access),
        view(machine.memory.view(access.view)),
        extents(machine.extentsOf(access.dims)) {}

  const Extents &tileExtents() const { return extents; }

  /// Calls `visit(i, element)` for each element that the mask does not rule
  /// out, in row-major order, and `masked(i)` for the others.
  template <typename Visit, typename Masked>
  bool forEach(bool writes, Visit visit, Masked masked) {
    size_t rank = access.axes.size();
    std::optional<int64_t> count = elementCount(extents);
    if (!count)
      return machine.context.fail(
          ErrorFamily::Unsupported, "interpreter.memory-limit",
          "a tile has more elements than memory can hold");
    // Elements would be charged before the tables are made for them.
    if (!machine.context.charge(*count))
      return false;
    access.tables.resize(rank);
    if (*count == 0)
      return true;
    for (unsigned axis = 0; axis < rank; ++axis)
      if (!tabulate(machine, access, axis, extents, access.tables[axis]))
        return false;
    Walk walk(extents);
    for (unsigned axis = 0; axis < rank; ++axis)
      walk.add(access.tables[axis].strides);
    const Tile *mask = access.mask ? &machine.slots[*access.mask] : nullptr;
    for (int64_t i = 0; i < *count; ++i, walk.next()) {
      Element element;
      if (mask) {
        element.certain = !mask->isUnknown(i);
        if (element.certain && mask->ints()[i] == 0) {
          masked(i);
          continue;
        }
      }
      if (!locate(walk, element))
        return false;
      if (machine.races && element.reach == Reach::Inside)
        noteRace(walk, element.offset, writes);
      if (!visit(i, element))
        return false;
    }
    return true;
  }

private:
  int64_t indexAt(const Walk &walk, unsigned axis) const {
    return access.tables[axis].indices[walk[axis]];
  }

  bool locate(const Walk &walk, Element &element) {
    int64_t offset = 0;
    for (unsigned axis = 0, rank = access.axes.size(); axis < rank; ++axis) {
      int64_t index = indexAt(walk, axis);
      int64_t extent = view.tensor.extents[axis];
      if (index >= 0 && index < extent) {
        offset += index * view.tensor.strides[axis];
        continue;
      }
      if (index == invalid)
        return failInvalid(walk, axis);
      if (index == undecided) {
        if (element.reach == Reach::Inside)
          element.reach = Reach::Undecided;
        continue;
      }
      element.reach = Reach::Outside;
      if (access.promised && element.certain && machine.options.checkBounds)
        noteViolation(axis, index);
    }
    element.offset = offset;
    return true;
  }

  bool failInvalid(const Walk &walk, unsigned axis) const {
    // The table holds a mark; the offset itself is recomputed for the message.
    const Axis &subscript = access.axes[axis];
    const Tile &offset = machine.slots[*subscript.offset];
    int64_t value = offset.count() == 1 ? offset.ints()[0] : outside;
    int64_t extent = view.tensor.extents[axis];
    for (int64_t i = 0; value == outside && i < offset.count(); ++i)
      if (offset.ints()[i] < 0 || offset.ints()[i] >= extent)
        value = offset.ints()[i];
    (void)walk;
    return machine.context.fail(
        launcherror::index(view.name, axis, extent, value));
  }

  void noteViolation(unsigned axis, int64_t index) {
    auto &found = machine.report.boundsViolations;
    if (found.size() >= machine.options.maxFindings)
      return;
    found.push_back({view.name, axis, index, view.tensor.extents[axis],
                     machine.sites[access.site - 1]});
  }

  void noteRace(const Walk &walk, int64_t offset, bool writes) {
    int64_t cells = machine.memory.cellsPerElement(access.view);
    for (int64_t k = 0; k < cells; ++k) {
      std::optional<RaceDetector::Access> earlier = machine.races->note(
          machine.memory.raceCell(access.view, offset, k), access.site, writes);
      if (earlier)
        addConflict(walk, *earlier, writes);
    }
  }

  void addConflict(const Walk &walk, const RaceDetector::Access &earlier,
                   bool writes) {
    auto &found = machine.report.conflicts;
    Conflict conflict;
    conflict.view = view.name;
    conflict.firstWrites = earlier.writes;
    conflict.secondWrites = writes;
    conflict.first = machine.sites[earlier.site - 1];
    conflict.second = machine.sites[access.site - 1];
    uint64_t pair = uint64_t{earlier.site} << 32 | access.site;
    if (found.size() >= machine.options.maxFindings ||
        !machine.reportedConflicts.insert(pair).second)
      return;
    std::tie(conflict.firstInstance, conflict.secondInstance) =
        machine.races->instances(earlier);
    for (unsigned axis = 0; axis < access.axes.size(); ++axis)
      conflict.element.push_back(indexAt(walk, axis));
    found.push_back(std::move(conflict));
  }

  Machine &machine;
  Access &access;
  const View &view;
  Extents extents;
};

/// What an element that is not read holds.
void fillElement(Machine &machine, std::optional<Slot> fill, Tile &result,
                 int64_t i) {
  if (fill)
    result.copy(i, machine.slots[*fill], 0);
  else
    result.set(i, Scalar());
}

} // namespace

bool load(Machine &machine, Access &access, std::optional<Slot> fill,
          Slot resultSlot) {
  Accessor accessor(machine, access);
  Tile &result = machine.slots[resultSlot];
  Memory &memory = machine.memory;
  const View &view = memory.view(access.view);
  if (!result.reset(machine.context, computeKind(view.tensor.dtype),
                    accessor.tileExtents()))
    return false;
  Tile other;
  auto visit = [&](int64_t i, const Element &element) {
    if (element.reach == Reach::Inside)
      memory.load(access.view, element.offset, result, i);
    else
      fillElement(machine, fill, result, i);
    if (element.reach != Reach::Undecided && element.certain)
      return true;
    // The bounds leave open what is read.
    if (!isFloat(result.kind())) {
      result.setUnknown(i);
      return true;
    }
    if (element.reach == Reach::Undecided) {
      result.bounds()[i].forget();
      return true;
    }
    if (!other.reset(machine.context, result.kind(), {}))
      return false;
    fillElement(machine, fill, other, 0);
    result.bounds()[i] = bounded::select(bounded::Tri::Unknown,
                                         result.bounds()[i], other.bounds()[0]);
    return true;
  };
  auto masked = [&](int64_t i) { fillElement(machine, fill, result, i); };
  return accessor.forEach(/*writes=*/false, visit, masked);
}

bool store(Machine &machine, Access &access, Slot valueSlot) {
  Accessor accessor(machine, access);
  const Tile &value = machine.slots[valueSlot];
  auto visit = [&](int64_t i, const Element &element) {
    if (element.reach == Reach::Undecided)
      machine.context.undecidedControl = true;
    if (element.reach != Reach::Inside)
      return true;
    return machine.memory.store(access.view, element.offset, value, i,
                                element.certain);
  };
  return accessor.forEach(/*writes=*/true, visit, [](int64_t) {});
}

bool scatter(Machine &machine, Access &access, const Combination &combination,
             Slot valueSlot) {
  Accessor accessor(machine, access);
  const Tile &value = machine.slots[valueSlot];
  Tile element;
  if (!element.reset(machine.context, value.kind(), {}))
    return false;
  auto visit = [&](int64_t i, const Element &target) {
    if (target.reach == Reach::Undecided)
      machine.context.undecidedControl = true;
    if (target.reach != Reach::Inside)
      return true;
    machine.memory.load(access.view, target.offset, element, 0);
    element.set(
        0, combine(machine.context, combination, element.get(0), value.get(i)));
    return machine.memory.store(access.view, target.offset, element, 0,
                                target.certain);
  };
  return accessor.forEach(/*writes=*/true, visit, [](int64_t) {});
}

} // namespace tessera::interp
