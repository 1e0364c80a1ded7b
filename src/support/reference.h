//===- reference.h - How far a reference may be off -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A joined reduction is computed about a reference r instead of its centre c
// (realize/cpu/join.cpp). These figures decide when that is accepted, and so
// what it may lose (docs/numerics.md, "Reductions about a reference").
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_REFERENCE_H
#define TESSERA_SUPPORT_REFERENCE_H

namespace tessera {

/// Exponents may move by this much.
inline constexpr double mostShift = 8;

/// The squares of deviations from r are at most so many times those from c.
inline constexpr double mostSpread = 4;

} // namespace tessera

#endif // TESSERA_SUPPORT_REFERENCE_H
