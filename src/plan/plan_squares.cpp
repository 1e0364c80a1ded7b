//===- plan_squares.cpp - Where elements are transposed in registers ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/squares.h"

#include "analysis/window_region.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

/// Whether the index of an axis depends on a dimension through its offset.
static bool isInOffset(const Access::Axis &axis, StringAttr dim) {
  return axis.offset &&
         llvm::is_contained(tile::getDims(axis.offset.getType()), dim);
}

StringAttr adjacentDim(const Access &access, const StrideFacts &strides) {
  for (auto [number, axis] : llvm::enumerate(access.axes)) {
    StringAttr dim = axis.dim;
    if (!dim || axis.step != 1 || !strides.isUnit(access, number) ||
        llvm::count_if(access.axes, [&](const Access::Axis &other) {
          return other.dim == dim;
        }) > 1)
      continue;
    if (llvm::none_of(access.axes, [&](const Access::Axis &other) {
          return isInOffset(other, dim);
        }))
      return dim;
  }
  return {};
}

static int64_t bitsOf(Type element) {
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// Elementwise nests
//===----------------------------------------------------------------------===//

/// Squares of more accesses are not looked for: a turned access whose mask
/// turns another is emitted by recursion.
static constexpr size_t mostPlaces = 64;

Squares::Squares(const Phase &phase, const KernelAnalysis &analysis,
                 ArrayRef<Access> accesses, const Layouts &layouts)
    : phase(phase), analysis(analysis) {
  auto isElementwise = [](const Root &root) {
    return root.kind == Root::Kind::Store ||
           root.kind == Root::Kind::Materialize;
  };
  if (!phase.reduced.empty() || phase.kept.size() < 2 ||
      !llvm::all_of(phase.roots, isElementwise))
    return;
  for (const Access &access : accesses) {
    Place &place = places.emplace_back();
    for (const Access::Axis &axis : access.axes) {
      if (axis.dim)
        place.dims.push_back(axis.dim);
      if (axis.offset)
        llvm::append_range(place.dims, tile::getDims(axis.offset.getType()));
    }
    place.adjacent = adjacentDim(access, analysis.strides);
  }
  llvm::DenseSet<Value> kept;
  for (const Root &root : phase.roots)
    if (root.kind == Root::Kind::Materialize) {
      kept.insert(root.value);
      addBuffer(root.layout.empty()
                    ? ArrayRef(tile::getDims(root.value.getType()))
                    : ArrayRef(root.layout));
    }
  for (const Root &root : phase.roots)
    for (Value value : analysis.phases.cone(root)) {
      Type element = tile::getElement(value.getType());
      // Of what varies along one dimension no square is made.
      if (tile::getDims(value.getType()).size() >= 2)
        widestBits = std::max(widestBits, bitsOf(element));
      Operation *op = value.getDefiningOp();
      const bool isRead =
          !op || !isDeferred(op) || analysis.phases.isMaterialized(value);
      if (isRead && !kept.contains(value))
        addBuffer(tile::getDims(value.getType()), layouts.lookup(value));
    }
  if (places.size() > mostPlaces)
    places.clear();
}

void Squares::addBuffer(ArrayRef<StringAttr> dims, StringAttr innermost) {
  if (dims.empty())
    return;
  Place &place = places.emplace_back();
  llvm::append_range(place.dims, dims);
  place.adjacent = innermost ? innermost : dims.back();
  place.isBuffer = true;
}

int64_t Squares::buffers(StringAttr dim, bool adjacent) const {
  return llvm::count_if(places, [&](const Place &place) {
    return place.isBuffer && llvm::is_contained(place.dims, dim) &&
           (place.adjacent == dim) == adjacent;
  });
}

int64_t Squares::turnedWith(StringAttr dim, StringAttr other) const {
  return llvm::count_if(places, [&](const Place &place) {
    return place.adjacent == other && llvm::is_contained(place.dims, dim);
  });
}

StringAttr Squares::partner(StringAttr dim) const {
  StringAttr best;
  int64_t most = 0;
  if (!llvm::is_contained(phase.kept, dim))
    return best;
  for (StringAttr other : phase.kept) {
    if (other == dim ||
        analysis.phases.liveExtent(phase, other).value_or(0) < 2)
      continue;
    int64_t count = turnedWith(dim, other);
    if (count > most) {
      most = count;
      best = other;
    }
  }
  return best;
}

int64_t Squares::turned(StringAttr dim) const {
  StringAttr other = isForgone ? StringAttr() : partner(dim);
  return other ? turnedWith(dim, other) : 0;
}

int64_t Squares::mostRows(StringAttr dim, int64_t lanes,
                          const Target &target) const {
  StringAttr other = partner(dim);
  if (!other || lanes < 2)
    return 1;
  const int64_t extent = *analysis.phases.liveExtent(phase, other);
  const int64_t registers =
      std::max<int64_t>(1, lanes * widestBits / target.vectorBits);
  // A square and what takes its place share the registers.
  int64_t rows = 1;
  while (rows < lanes && rows < extent &&
         2 * rows * registers <= target.vectorRegisters / 2)
    rows *= 2;
  return rows;
}

//===----------------------------------------------------------------------===//
// Operands of contractions
//===----------------------------------------------------------------------===//

/// So many rows share enough of what is loaded.
static constexpr int64_t fewRows = 8;

/// The dimension by itself, if there are so many rows.
static RowsOfVectors rowsAlong(tile::ContractOp contract, const Phase &phase,
                               StringAttr dim, const Planning &planning,
                               int64_t fewest = fewRows) {
  const KernelAnalysis &analysis = planning.analysis;
  // Without fused multiply-adds an ordered contraction keeps nothing in
  // registers (findTile).
  const bool isFloat = isa<FloatType>(tile::getElement(contract.getType()));
  if (contract.getOrder() == tile::Order::Tree ||
      (isFloat && !planning.target.hasFma &&
       contract.getOrder() != tile::Order::Unordered) ||
      !llvm::is_contained(phase.kept, dim))
    return {};
  auto varies = [&](Value operand) {
    return llvm::is_contained(tile::getDims(operand.getType()), dim);
  };
  if (varies(contract.getLhs()) == varies(contract.getRhs()))
    return {};
  Value operand =
      varies(contract.getRhs()) ? contract.getRhs() : contract.getLhs();
  SmallVector<StringAttr> dims = tile::getDims(operand.getType());
  int64_t rows = 0;
  for (StringAttr other : phase.kept)
    if (!llvm::is_contained(dims, other))
      rows =
          std::max(rows, analysis.phases.liveExtent(phase, other).value_or(0));
  if (rows < fewest)
    return {};

  RowsOfVectors result{.isShared = true,
                       .areOfResult =
                           tile::getDims(contract.getType()).back() == dim};
  Operation *op = operand.getDefiningOp();
  if (!op || !isDeferred(op) || analysis.phases.isMaterialized(operand))
    return result;
  for (Value value :
       analysis.phases.cone({Root::Kind::Materialize, op, operand})) {
    Operation *source = value.getDefiningOp();
    std::optional<Access> access = source ? getAccess(source) : std::nullopt;
    if (!access ||
        (value != operand && analysis.phases.isMaterialized(value)) ||
        !llvm::is_contained(tile::getDims(value.getType()), dim))
      continue;
    StringAttr adjacent = adjacentDim(*access, analysis.strides);
    if (adjacent == dim)
      continue;
    if (steppedAlong(*access, dim, analysis, planning.target)) {
      // The rows of a result of few vectors share too little of the work.
      constexpr int64_t fewVectors = 4;
      if (analysis.phases.liveExtent(phase, dim).value_or(0) <
          fewVectors * planning.target.lanes32())
        return {};
      continue;
    }
    if (!adjacent || !llvm::is_contained(dims, adjacent))
      return {};
    ++result.copied;
  }
  // The copy has to stay in a cache.
  std::optional<int64_t> elements = analysis.dims.elements(dims);
  const int64_t bytes =
      std::max<int64_t>(bitsOf(tile::getElement(operand.getType())) / 8, 1);
  if (result.copied > 0 &&
      (!elements || *elements > planning.machine.memory[2].bytes / 4 / bytes))
    return {};
  return result;
}

RowsOfVectors rowsOfVectors(const Phase &phase, StringAttr dim,
                            const Planning &planning) {
  auto contract = phase.roots.size() == 1
                      ? dyn_cast_or_null<tile::ContractOp>(phase.roots[0].op)
                      : tile::ContractOp();
  if (!contract)
    return {};
  RowsOfVectors rows = rowsAlong(contract, phase, dim, planning);
  auto needsNoCopy = [&](StringAttr other) {
    RowsOfVectors others = rowsAlong(contract, phase, other, planning);
    return others.isShared && others.copied == 0;
  };
  auto varies = [&](Value operand) {
    return llvm::is_contained(tile::getDims(operand.getType()), dim);
  };
  Value other =
      varies(contract.getRhs()) ? contract.getLhs() : contract.getRhs();
  const bool isOfWindows =
      windowRegion(other, planning.analysis.dims, planning.analysis.phases)
          .has_value();
  // Rows of a small image are few, and vectors along them shorter still.
  if (!rows.isShared && isOfWindows)
    rows = rowsAlong(contract, phase, dim, planning, fewRows / 2);
  if (rows.copied == 0 || llvm::none_of(phase.kept, needsNoCopy))
    return rows;
  const int64_t bytes =
      std::max<int64_t>(bitsOf(tile::getElement(other.getType())) / 8, 1);
  std::optional<int64_t> elements =
      planning.analysis.dims.elements(tile::getDims(other.getType()));
  const bool isNear =
      elements && *elements <= planning.machine.memory[0].bytes / bytes;
  if (rows.areOfResult && isNear)
    return rows;
  rows.isSecond = true;
  return isOfWindows ? rows : RowsOfVectors();
}

double bytesOfArrays(ArrayRef<Access> accesses,
                     const KernelAnalysis &analysis) {
  double bytes = 0;
  llvm::DenseSet<Value> seen;
  for (const Access &access : accesses) {
    if (!seen.insert(access.view).second)
      continue;
    double size = double(bitsOf(access.viewType().getElementType())) / 8;
    for (unsigned axis = 0; axis < access.axes.size(); ++axis)
      size *= double(analysis.accesses.extent(access, axis));
    bytes += size;
  }
  return bytes;
}

} // namespace tessera
