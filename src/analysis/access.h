//===- access.h - What accesses of views may touch --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One shape for the three access ops, and the questions asked of it: does an
// axis need a bounds check, may two accesses conflict, do they touch the same
// element at the same coordinates.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_ACCESS_H
#define TESSERA_ANALYSIS_ACCESS_H

#include "analysis/dims.h"
#include "tessera/executable.h"

namespace tessera {

/// A tile.load, tile.store or tile.scatter seen uniformly.
struct Access {
  struct Axis {
    /// Null for none.
    mlir::StringAttr dim;
    int64_t step = 0;
    /// Null for none; an index scalar or a tile of indices.
    mlir::Value offset;
    /// The dimension whose extent the axis must have, null for none.
    mlir::StringAttr bound;
  };

  mlir::Operation *op = nullptr;
  mlir::BlockArgument view;
  llvm::SmallVector<Axis, 4> axes;
  mlir::Value mask;
  mlir::Value fill;
  bool promised = false;
  bool writes = false;

  tile::ViewType viewType() const {
    return llvm::cast<tile::ViewType>(view.getType());
  }
};

/// Whether a value is computed from loaded data.
bool dependsOnData(mlir::Value value);

/// The access that `op` makes; std::nullopt for other ops.
std::optional<Access> getAccess(mlir::Operation *op);

class AccessAnalysis {
public:
  /// `extents` are the views' extents, in parameter order.
  AccessAnalysis(const DimTable &dims, AliasMode alias,
                 std::vector<std::vector<int64_t>> extents)
      : dims(dims), alias(alias), extents(std::move(extents)) {}

  /// The indices the axis takes; unknown when data decides.
  IndexRange range(const Access::Axis &axis) const;

  /// Whether the dimension's index times the step may leave 64 bits, or come
  /// so near that an offset may carry it there.
  bool stepMayOverflow(const Access::Axis &axis) const;

  /// Whether an index of the axis may lie outside the view.
  bool needsCheck(const Access &access, unsigned axis) const;

  /// Whether the axis's index depends on loaded data.
  static bool isDataDependent(const Access::Axis &axis);

  /// Whether the two may touch a common element, one of them writing.
  bool mayConflict(const Access &a, const Access &b) const;

  /// Whether, if they touch a common element at all, they do so at the same
  /// coordinates.
  bool isPointwise(const Access &a, const Access &b) const;

  int64_t extent(const Access &access, unsigned axis) const {
    return extents[access.view.getArgNumber()][axis];
  }

  const DimTable &dimTable() const { return dims; }
  AliasMode aliasMode() const { return alias; }

private:
  const DimTable &dims;
  AliasMode alias;
  std::vector<std::vector<int64_t>> extents;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_H
