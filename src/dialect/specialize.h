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
#include <string>
#include <vector>

namespace tessera {

/// Extents per view parameter, in parameter order; empty for scalars.
using ViewExtents = std::vector<std::vector<int64_t>>;

/// Fails with a Launch error when a rank is wrong, a dimension comes out
/// negative, or two axes that one dimension binds disagree.
Result<void> specialize(tile::KernelOp kernel, const ViewExtents &extents);

/// The extents of all views when the kernel's dimensions have the given
/// extents, for callers that know dimensions instead of arrays. Fails with a
/// Usage error when a dimension is unknown or an axis stays undetermined.
Result<ViewExtents> extentsFromDims(tile::KernelOp kernel,
                                    const std::map<std::string, int64_t> &dims);

} // namespace tessera

#endif // TESSERA_DIALECT_SPECIALIZE_H
