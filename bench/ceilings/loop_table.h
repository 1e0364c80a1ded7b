//===- bench/ceilings/loop_table.h - Bandwidth and arithmetic loops *- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CEILINGS_LOOP_TABLE_H
#define TESSERA_BENCH_CEILINGS_LOOP_TABLE_H

#include <cstdint>

namespace tessera::bench {

using Loop = void (*)(const float *a, const float *b, float *y, int64_t count);

/// The loops of one width (loops.h says what each does). `count` is a multiple
/// of 4 * lanes.
struct LoopTable {
  int64_t lanes;
  Loop load, read, copy, copyNt, triad, triadNt, write, writeNt, multiplyAdd;
};

/// The loops for vectors of so many bits: 128, 256 or 512, and this processor
/// must have them.
const LoopTable &loopTable(int64_t vectorBits);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CEILINGS_LOOP_TABLE_H
