//===- tile_op_lists.h - The ops of a Tile program as type lists -*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every consumer of Tile IR (interpreter, realization, ...) dispatches over
// these lists with dispatchOp. Its handler must have a `visit` overload for
// each op of the list, so an op that is added to the dialect, or to the
// allow-list of upstream ops, does not compile until each consumer handles it
// or turns it down with a reason.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECT_TILE_OP_LISTS_H
#define TESSERA_DIALECT_TILE_OP_LISTS_H

#include "dialect/tile_dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tessera::tile {

template <typename... Ops> struct OpList {};

/// Every op of the Tile dialect, from its ODS records.
using TileOps = OpList<
#define GET_OP_LIST
#include "tile_ops.cpp.inc"
    >;

/// The upstream ops a Tile program may use, each with the meaning that
/// docs/semantics.md gives it.
using UpstreamOps =
    OpList<mlir::arith::ConstantOp, mlir::arith::IndexCastOp,
           mlir::arith::SelectOp, mlir::arith::AddFOp, mlir::arith::SubFOp,
           mlir::arith::MulFOp, mlir::arith::DivFOp, mlir::arith::NegFOp,
           mlir::arith::MaximumFOp, mlir::arith::MinimumFOp,
           mlir::arith::CmpFOp, mlir::arith::AddIOp, mlir::arith::SubIOp,
           mlir::arith::MulIOp, mlir::arith::AndIOp, mlir::arith::OrIOp,
           mlir::arith::XOrIOp, mlir::arith::MaxSIOp, mlir::arith::MinSIOp,
           mlir::arith::MaxUIOp, mlir::arith::MinUIOp, mlir::arith::CmpIOp,
           mlir::math::AbsFOp, mlir::math::AbsIOp, mlir::math::CeilOp,
           mlir::math::CosOp, mlir::math::ErfOp, mlir::math::ExpOp,
           mlir::math::Exp2Op, mlir::math::ExpM1Op, mlir::math::FloorOp,
           mlir::math::FmaOp, mlir::math::LogOp, mlir::math::Log1pOp,
           mlir::math::Log2Op, mlir::math::RoundEvenOp, mlir::math::RsqrtOp,
           mlir::math::SinOp, mlir::math::SqrtOp, mlir::math::TanhOp,
           mlir::math::TruncOp>;

namespace detail {
template <typename Handler, typename Return, typename... Ops>
bool tryDispatch(mlir::Operation *op, Handler &handler, Return &result,
                 OpList<Ops...>) {
  auto attempt = [&]<typename Op>() {
    auto typed = llvm::dyn_cast<Op>(op);
    if (!typed)
      return false;
    result = handler.visit(typed);
    return true;
  };
  return (attempt.template operator()<Ops>() || ...);
}
template <typename... Ops> bool isOneOf(mlir::Operation *op, OpList<Ops...>) {
  return llvm::isa<Ops...>(op);
}
} // namespace detail

/// Calls `handler.visit(op)` with `op` cast to its class. `unknown` is returned
/// for an op outside both lists, which the verifier excludes.
template <typename Return, typename Handler>
Return dispatchOp(mlir::Operation *op, Handler &&handler, Return unknown) {
  Return result = std::move(unknown);
  if (!detail::tryDispatch(op, handler, result, TileOps{}))
    detail::tryDispatch(op, handler, result, UpstreamOps{});
  return result;
}

/// True when a kernel may contain `op`.
inline bool isAllowedOp(mlir::Operation *op) {
  return detail::isOneOf(op, TileOps{}) || detail::isOneOf(op, UpstreamOps{});
}

} // namespace tessera::tile

#endif // TESSERA_DIALECT_TILE_OP_LISTS_H
