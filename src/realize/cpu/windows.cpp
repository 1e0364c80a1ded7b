//===- windows.cpp - Inner loops of few iterations ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The innermost of several reduced loops, over the row of a window, is emitted
// iteration by iteration where registers hold what all of them need: offsets
// and tests of edges are then constants, which outer loops need not repeat, and
// there is no branch that is taken a few times only. Where the nest has several
// sums for each result, the iterations take turns with them.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

bool NestEmitter::fitsRegisters(int64_t iterations) const {
  constexpr int64_t most = 8;
  if (iterations < 2 || iterations > most || phase->roots.size() != 1 ||
      !phase->roots[0].op)
    return false;
  for (Value value : r.analysis.phases.cone(phase->roots[0])) {
    Operation *op = value.getDefiningOp();
    if (op && isDeferred(op) && isExpensive(op))
      return false;
  }
  Type element = tile::getElement(phase->roots[0].op->getResult(0).getType());
  const int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  const int64_t perVector =
      std::max<int64_t>(1, lanes * bits / emit.target.vectorBits);
  return (copies() + iterations * (vectors + rows)) * perVector <=
         emit.target.vectorRegisters;
}

/// Without the inner loop, what an iteration needs beside the sums is the same
/// for all of the outer loops' iterations.
bool NestEmitter::isWindow(unsigned level) const {
  if (level + 1 != levels.size() || level <= keptLevels ||
      int(level) == vectorLevel || int(level) == groupLevel)
    return false;
  std::optional<int64_t> extent = extentOf(level);
  return extent && !levels[level].limit.known && fitsRegisters(*extent);
}

void NestEmitter::emitWindow(unsigned level, States &states) {
  const int64_t extent = *extentOf(level);
  const int64_t count = int64_t(states.size()) / chains;
  for (int64_t i = 0; i < extent; ++i) {
    const int64_t first = i % chains * count;
    States own(states.begin() + first, states.begin() + first + count);
    loop(level, isReversed() ? extent - 1 - i : i, 1, 1, vectors, &own,
         [&] { emitReducedLevel(level + 1, own); });
    std::move(own.begin(), own.end(), states.begin() + first);
  }
}

/// The sums of each result, pair by pair.
void NestEmitter::addUpChains(States &states) {
  const int64_t count = int64_t(states.size()) / chains;
  for (int64_t apart = 1; apart < chains; apart *= 2)
    for (int64_t chain = 0; chain + apart < chains; chain += 2 * apart)
      for (copy = 0; copy < count; ++copy)
        states[chain * count + copy] =
            mergeStates(states[chain * count + copy],
                        states[(chain + apart) * count + copy]);
  copy = 0;
  states.resize(count);
  chains = 1;
}

} // namespace tessera
