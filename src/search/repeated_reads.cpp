//===- repeated_reads.cpp - What reading again takes ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/repeated_reads.h"

#include <algorithm>

namespace tessera {

double timeOf(const RepeatedRead &read, const Machine &machine) {
  // Of a jump, what is left where a core is busy with the products of what came
  // before.
  constexpr double besideProducts = 0.15, line = 64;
  // Whole lines are moved.
  const double elements = double(read.rows.rows) * double(read.rows.bytes);
  double left = read.bytes;
  if (read.rows.areApart() && elements > 0)
    left *= lineBytes(read.rows) / elements;
  double time = 0;
  for (size_t i = 0; i < machine.memory.size() && left > 0; ++i) {
    const MemoryLevel &level = machine.memory[i];
    const double found = left * shareKept(level, read.rows, read.otherBytes);
    left -= found;
    if (i == 0)
      continue;
    const double jumps =
        i > 1 && read.piece > 0 ? found / std::max(read.piece, line) : 0;
    time += (found + besideProducts * jumps * level.jumpBytes) / level.read;
  }
  return time;
}

} // namespace tessera
