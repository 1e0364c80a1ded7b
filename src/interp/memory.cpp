//===- memory.cpp - Views as the interpreter sees them --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/memory.h"

#include "interp/scalar_ops.h"
#include "support/float_convert.h"
#include "support/launch_errors.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tessera::interp {

Kind computeKind(DType type) {
  switch (computeType(type)) {
  case DType::Bool:
    return Kind::I1;
  case DType::I8:
  case DType::U8:
    return Kind::I8;
  case DType::I16:
  case DType::U16:
    return Kind::I16;
  case DType::I32:
  case DType::U32:
    return Kind::I32;
  case DType::F64:
    return Kind::F64;
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    return Kind::F32;
  case DType::I64:
  case DType::U64:
    return Kind::I64;
  }
  return Kind::I64;
}

namespace {

int64_t readInt(DType type, const char *address) {
  uint64_t bits = 0;
  int64_t size = sizeInBytes(type);
  // Little-endian: the low bytes come first.
  std::memcpy(&bits, address, size);
  if (type == DType::Bool)
    return bits != 0;
  return canonical(static_cast<int>(8 * size), static_cast<int64_t>(bits));
}

/// A view's bytes as absolute addresses.
struct Range {
  int64_t begin, end;
  unsigned view;
};

} // namespace

bool Memory::bind(std::vector<View> bound) {
  views = std::move(bound);
  groups.clear();
  std::vector<Range> ranges;
  for (unsigned i = 0; i < views.size(); ++i) {
    const TensorRef &tensor = views[i].tensor;
    std::optional<ByteRange> bytes = reachableBytes(tensor);
    if (!bytes)
      return context.fail(*launcherror::memory(views[i].name, tensor));
    auto data = static_cast<int64_t>(reinterpret_cast<intptr_t>(tensor.data));
    ranges.push_back({data + bytes->begin, data + bytes->end, i});
  }
  llvm::sort(ranges,
             [](const Range &a, const Range &b) { return a.begin < b.begin; });
  int64_t groupBegin = 0, groupEnd = 0;
  DType groupType = DType::Bool;
  bool groupMixed = false, groupWritable = false;
  for (const Range &range : ranges) {
    View &view = views[range.view];
    if (range.begin == range.end)
      continue; // Never accessed.
    int64_t size = sizeInBytes(view.tensor.dtype);
    if (groups.empty() || range.begin >= groupEnd) {
      groups.emplace_back();
      groups.back().granule = size;
      groupBegin = groupEnd = range.begin;
      groupType = view.tensor.dtype;
      groupMixed = groupWritable = false;
    }
    Group &group = groups.back();
    view.group = static_cast<unsigned>(groups.size() - 1);
    view.base =
        static_cast<int64_t>(reinterpret_cast<intptr_t>(view.tensor.data)) -
        groupBegin;
    group.granule =
        std::gcd(std::gcd(group.granule, size), range.begin - groupBegin);
    groupEnd = std::max(groupEnd, range.end);
    groupMixed |= view.tensor.dtype != groupType || group.granule != size;
    groupWritable |= view.writable;
    if (context.oracle && groupMixed && groupWritable)
      return context.fail(ErrorFamily::Unsupported, "interpreter.alias",
                          "'" + view.name +
                              "' shares bytes with a view of another type or "
                              "alignment; the oracle needs views that overlap "
                              "to have one type and whole elements in common");
  }
  return true;
}

char *Memory::address(const View &view, int64_t offset) const {
  return static_cast<char *>(view.tensor.data) +
         offset * sizeInBytes(view.tensor.dtype);
}

int64_t Memory::cellsPerElement(unsigned view) const {
  return sizeInBytes(views[view].tensor.dtype) /
         groups[views[view].group].granule;
}

RaceDetector::Cell &Memory::raceCell(unsigned index, int64_t offset,
                                     int64_t k) {
  const View &view = views[index];
  Group &group = groups[view.group];
  int64_t byte = view.base + offset * sizeInBytes(view.tensor.dtype);
  return group.races[byte / group.granule + k];
}

void Memory::load(unsigned index, int64_t offset, Tile &tile, int64_t i) {
  const View &view = views[index];
  DType type = view.tensor.dtype;
  const char *from = address(view, offset);
  if (!context.oracle) {
    if (type == DType::F32) {
      float value;
      std::memcpy(&value, from, sizeof(value));
      tile.reals()[i] = value;
    } else if (isFloat(tile.kind())) {
      tile.reals()[i] = support::loadFloat(type, from);
    } else {
      tile.ints()[i] = readInt(type, from);
    }
    return;
  }
  Group &group = groups[view.group];
  int64_t cell = (view.base + offset * sizeInBytes(type)) / group.granule;
  const Shadow *shadow = group.shadows.find(cell);
  if (shadow && !shadow->written)
    shadow = nullptr;
  if (isFloat(tile.kind())) {
    tile.bounds()[i] = shadow ? shadow->bounded
                              : Bounded::exact(support::loadFloat(type, from));
    return;
  }
  tile.ints()[i] = shadow ? shadow->integer : readInt(type, from);
  tile.setUnknown(i, shadow && shadow->unknown);
}

bool Memory::store(unsigned index, int64_t offset, const Tile &tile, int64_t i,
                   bool certain) {
  const View &view = views[index];
  if (context.oracle)
    return storeShadow(view, offset, tile, i, certain);
  DType type = view.tensor.dtype;
  char *to = address(view, offset);
  Undo undo{to, 0, static_cast<uint8_t>(sizeInBytes(type))};
  std::memcpy(&undo.bytes, to, undo.size);
  if (journal.size() == journal.capacity()) {
    size_t capacity = std::max<size_t>(64, 2 * journal.capacity());
    if (!context.allocate((capacity - journal.capacity()) * sizeof(Undo)))
      return false;
    journal.reserve(capacity);
  }
  journal.push_back(undo);
  if (isFloat(tile.kind())) {
    support::storeFloat(type, to, tile.reals()[i]);
  } else {
    uint64_t bits = static_cast<uint64_t>(tile.ints()[i]);
    std::memcpy(to, &bits, undo.size);
  }
  return true;
}

bool Memory::storeShadow(const View &view, int64_t offset, const Tile &tile,
                         int64_t i, bool certain) {
  DType type = view.tensor.dtype;
  Group &group = groups[view.group];
  int64_t cell = (view.base + offset * sizeInBytes(type)) / group.granule;
  Shadow &shadow = group.shadows[cell];
  bool existed = shadow.written;
  if (!existed && !context.allocate(sizeof(Shadow)))
    return false;
  if (!existed && !certain) {
    const char *from = address(view, offset);
    if (isFloat(tile.kind()))
      shadow.bounded = Bounded::exact(support::loadFloat(type, from));
    else
      shadow.integer = readInt(type, from);
  }
  shadow.written = true;
  if (isFloat(tile.kind())) {
    Bounded value =
        roundBounded(tile.bounds()[i], type, context.arithmetic(tile.kind()));
    shadow.bounded =
        certain ? value
                : bounded::select(bounded::Tri::Unknown, value, shadow.bounded);
    return true;
  }
  bool unknown = tile.isUnknown(i);
  if (!certain)
    unknown |= shadow.unknown || shadow.integer != tile.ints()[i];
  shadow.unknown = unknown;
  shadow.integer = tile.ints()[i];
  return true;
}

Bounded Memory::finalElement(unsigned index, int64_t offset) {
  const View &view = views[index];
  DType type = view.tensor.dtype;
  Group &group = groups[view.group];
  int64_t cell = (view.base + offset * sizeInBytes(type)) / group.granule;
  const Shadow *shadow = group.shadows.find(cell);
  if (shadow && !shadow->written)
    shadow = nullptr;
  const char *from = address(view, offset);
  if (tessera::isFloat(type))
    return shadow ? shadow->bounded
                  : Bounded::exact(support::loadFloat(type, from));
  int64_t bits = shadow ? shadow->integer : readInt(type, from);
  int width = static_cast<int>(8 * sizeInBytes(type));
  long double value = isUnsigned(type)
                          ? static_cast<long double>(unsignedValue(width, bits))
                          : static_cast<long double>(bits);
  return shadow && shadow->unknown ? Bounded::undecided(value)
                                   : Bounded::exact(value);
}

void Memory::rollBack() {
  for (auto undo = journal.rbegin(); undo != journal.rend(); ++undo)
    std::memcpy(undo->address, &undo->bytes, undo->size);
  journal.clear();
}

} // namespace tessera::interp
