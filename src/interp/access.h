//===- interp/access.h - Subscripted access to views ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads, stores and scatters share how subscripts become elements: one table
// of indices per axis over the dimensions that the axis depends on, combined
// element by element in row-major order of the access's dimensions.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_ACCESS_H
#define TESSERA_INTERP_ACCESS_H

#include "interp/machine.h"
#include "interp/reduction.h"

#include <optional>
#include <vector>

namespace tessera::interp {

/// One subscript: step * dim + offset.
struct Axis {
  /// Position of `dim` among the access's dimensions; -1 for none.
  int dim = -1;
  int64_t step = 0;
  std::optional<Slot> offset;
  /// Positions of the offset tile's axes among the access's dimensions.
  llvm::SmallVector<unsigned, 4> offsetDims;
  /// The offset was computed from loaded values.
  bool dataDependent = false;
};

struct Access {
  unsigned view = 0;
  /// 1-based number in Machine::sites.
  uint32_t site = 0;
  bool promised = false;
  /// The dimensions spanned, in the order of the tile's axes.
  llvm::SmallVector<unsigned, 4> dims;
  llvm::SmallVector<Axis, 4> axes;
  std::optional<Slot> mask;

  /// Working memory of one execution, kept to save allocations.
  struct Table {
    std::vector<int64_t> indices;
    Extents strides;
  };
  std::vector<Table> tables;
};

/// tile.load; `fill` is zero when absent.
bool load(Machine &machine, Access &access, std::optional<Slot> fill,
          Slot result);
/// tile.store.
bool store(Machine &machine, Access &access, Slot value);
/// tile.scatter.
bool scatter(Machine &machine, Access &access, const Combination &combination,
             Slot value);

} // namespace tessera::interp

#endif // TESSERA_INTERP_ACCESS_H
