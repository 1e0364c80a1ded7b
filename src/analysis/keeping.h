//===- keeping.h - Which values are kept ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_KEEPING_H
#define TESSERA_ANALYSIS_KEEPING_H

namespace tessera {

/// Which values that several nests need are kept in memory instead of being
/// evaluated again.
enum class Keeping {
  /// Whatever is cheaper to load than to evaluate.
  All,
  /// Only what takes a function or a division to evaluate.
  Expensive,
  /// Only what has to be.
  Required,
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_KEEPING_H
