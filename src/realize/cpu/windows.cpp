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
// there is no branch that is taken a few times only.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"

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

} // namespace tessera
