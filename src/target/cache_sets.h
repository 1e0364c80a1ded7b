//===- cache_sets.h - What stays in the sets of a cache ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line has a place in the ways of one set, which its address decides: lines
// as far apart as a way is long share a set. Rows a power of two apart use few
// sets, and leave a cache that is far from full. Everything that plans or
// prices accesses by whether data stay asks here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_CACHE_SETS_H
#define TESSERA_TARGET_CACHE_SETS_H

#include <cstdint>

namespace tessera {

struct MemoryLevel;

/// Rows of an array that are touched in turn: how many, the bytes of each, and
/// from the begin of one to that of the next.
struct SpacedRows {
  int64_t rows = 0;
  int64_t bytes = 0;
  int64_t apart = 0;

  static SpacedRows together(double bytes) {
    return {1, static_cast<int64_t>(bytes), 0};
  }
  /// Whether something lies between them.
  bool areApart() const { return rows > 1 && apart > bytes; }
};

/// The bytes of the lines that the rows lie in, on average over where the first
/// one begins.
double lineBytes(const SpacedRows &rows);

/// Of lines that are touched in turn, again and again, and of other bytes in
/// between, the share that is found in a cache.
double shareKept(const MemoryLevel &level, const SpacedRows &rows,
                 double otherBytes);

/// How many rows have one line each in a cache at once.
int64_t mostRowsKept(const MemoryLevel &level, int64_t apart);

} // namespace tessera

#endif // TESSERA_TARGET_CACHE_SETS_H
