//===- affine.cpp - Indices as factors of a grid's coordinates ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "analysis/affine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <algorithm>

using namespace mlir;

namespace tessera {

IndexRange sum(IndexRange a, IndexRange b) {
  IndexRange result = IndexRange::of(0, 0);
  if (!a.known || !b.known ||
      __builtin_add_overflow(a.low, b.low, &result.low) ||
      __builtin_add_overflow(a.high, b.high, &result.high))
    return {};
  return result;
}

IndexRange scaled(IndexRange a, int64_t factor) {
  int64_t x, y;
  if (!a.known || __builtin_mul_overflow(a.low, factor, &x) ||
      __builtin_mul_overflow(a.high, factor, &y))
    return {};
  return IndexRange::of(std::min(x, y), std::max(x, y));
}

/// Longer expressions are taken as a range.
static constexpr unsigned deepest = 32;

AffineIndex AffineReader::read(Value index, unsigned depth) {
  if (auto found = known.find(index); found != known.end())
    return found->second;
  AffineIndex result = compute(index, depth);
  known[index] = result;
  return result;
}

AffineIndex AffineReader::constant(IndexRange range) {
  const size_t coordinates = grid ? grid.getDims().size() : 0;
  return {SmallVector<int64_t, 3>(coordinates, 0), range};
}

AffineIndex AffineReader::compute(Value index, unsigned depth) {
  AffineIndex result = constant(IndexRange::of(0, 0));
  if (auto argument = dyn_cast<BlockArgument>(index);
      argument && grid && argument.getOwner()->getParentOp() == grid) {
    result.factors[argument.getArgNumber()] = 1;
    return result;
  }
  Operation *op = index.getDefiningOp();
  bool isRead =
      op && depth < deepest &&
      isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp,
          tile::CastOp>(op) &&
      llvm::all_of(
          op->getOperandTypes(),
          [](Type type) { return type.isIndex() || type.isInteger(64); });
  if (!isRead || !(index.getType().isIndex() || index.getType().isInteger(64)))
    return constant(dims.range(index));
  AffineIndex x = read(op->getOperand(0), depth + 1);
  if (op->getNumOperands() == 1)
    return x;
  AffineIndex y = read(op->getOperand(1), depth + 1);
  if (isa<arith::MulIOp>(op)) {
    if (x.isConstant())
      std::swap(x, y);
    if (!y.isConstant())
      return constant(dims.range(index));
    return combine(x, y.rest.low, constant(IndexRange::of(0, 0)), 0);
  }
  return combine(x, 1, y, isa<arith::SubIOp>(op) ? -1 : 1);
}

AffineIndex AffineReader::combine(const AffineIndex &x, int64_t a,
                                  const AffineIndex &y, int64_t b) {
  AffineIndex result = constant(sum(scaled(x.rest, a), scaled(y.rest, b)));
  for (size_t i = 0; i < result.factors.size(); ++i) {
    int64_t p, q;
    if (__builtin_mul_overflow(x.factors[i], a, &p) ||
        __builtin_mul_overflow(y.factors[i], b, &q) ||
        __builtin_add_overflow(p, q, &result.factors[i]))
      return constant({});
  }
  return result;
}

} // namespace tessera
