//===- passes.h - Reductions in one loop or in several ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_PASSES_H
#define TESSERA_ANALYSIS_PASSES_H

namespace tessera {

/// Where a reduction whose elements depend on an earlier one's result is
/// computed.
enum class Passes {
  /// In a loop of its own, after the earlier one's.
  Separate,
  /// In the earlier one's loop where a law allows it (reduction_algebra.h).
  Joined,
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_PASSES_H
