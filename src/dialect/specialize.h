//===- specialize.h - Fixing a kernel's extents -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: replaces every tile.extent by the extent of the array that will be
// passed and folds what becomes constant, so that all later stages see constant
// dimensions. Precondition: a verified kernel. Postcondition: the kernel has no
// tile.extent, and each bound axis agrees with its dimension. Data-dependent
// dimensions stay symbolic.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_SPECIALIZE_H
#define TESSERA_DIALECT_SPECIALIZE_H

#include "dialect/tile_dialect.h"
#include "tessera/error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Extents per view parameter, in parameter order; empty for scalars.
using ViewExtents = std::vector<std::vector<int64_t>>;

/// Fails with a Launch error when a rank is wrong, a dimension comes out
/// negative, or two axes that one dimension binds disagree.
Result<void> specialize(tile::KernelOp kernel, const ViewExtents &extents);

/// The extents of views that are known, in parameter order; parameters at the
/// end may be absent.
using KnownExtents = std::vector<std::optional<std::vector<int64_t>>>;

/// The extents of all views that follow from those of given dimensions and
/// given arrays, whose ranks must be right. Fails with a Usage error when a
/// dimension is unknown, contradicts an array, or an axis stays undetermined.
Result<ViewExtents> deriveExtents(tile::KernelOp kernel,
                                  const std::map<std::string, int64_t> &dims,
                                  const KnownExtents &known);

} // namespace tessera

#endif // TESSERA_DIALECT_SPECIALIZE_H
