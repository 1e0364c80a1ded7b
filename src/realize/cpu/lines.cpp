//===- lines.cpp - Loops over the lines of a buffer -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/lines.h"

using namespace mlir;

namespace tessera {

void forEachLine(Realizer &realizer, const TileBuffer &buffer, StringAttr along,
                 function_ref<void(Value)> body) {
  OpBuilder &b = realizer.b;
  VectorEmitter &emit = realizer.emit;
  OpBuilder::InsertionGuard guard(b);
  Value base = emit.index(0);
  for (auto [axis, dim] : llvm::enumerate(buffer.dims)) {
    if (dim == along)
      continue;
    auto loop = b.create<scf::ForOp>(emit.loc, emit.index(0),
                                     realizer.extent(dim), emit.index(1));
    b.setInsertionPoint(loop.getBody()->getTerminator());
    base = emit.add(
        base, emit.mul(loop.getInductionVar(), buffer.stride(emit, axis)));
  }
  body(base);
}

} // namespace tessera
