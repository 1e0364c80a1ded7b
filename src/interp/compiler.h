//===- interp/compiler.h - Translation of a kernel for the machine *- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates each op once into a closure (see machine.h). There is one `visit`
// per op of the lists in tile_op_lists.h, so a new op does not compile until it
// has a meaning here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_COMPILER_H
#define TESSERA_INTERP_COMPILER_H

#include "dialect/tile_dialect.h"
#include "dialect/tile_op_lists.h"
#include "interp/access.h"
#include "interp/machine.h"
#include "interp/reduction.h"
#include "interp/scalar_ops.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <memory>

namespace tessera::interp {

/// The first file position inside a location.
SourcePosition positionOf(mlir::Location location);

/// The kind of a tile or scalar type.
Kind kindOf(mlir::Type type);

/// The dtype of a view's element type.
DType storageType(mlir::Type type);

/// The values that depend on loaded elements.
llvm::DenseSet<mlir::Value> dataDependentValues(tile::KernelOp kernel);

/// A scalar constant of `kind`.
Scalar constantScalar(mlir::Attribute value, Kind kind);

/// The named combiner on elements of `kind`.
Combination combinationOf(tile::Combiner combiner, Kind kind);

/// The named combiner of each value that a combining region yields; empty when
/// some value is combined in another way.
std::vector<Combination> componentCombinations(mlir::Region &region);

class Compiler {
public:
  Compiler(Machine &machine, tile::KernelOp kernel);

  /// Translates the kernel's body; false after an error in the context.
  bool compile(Block &body);

  Slot slotOf(mlir::Value value);
  unsigned viewOf(mlir::Value value) const { return viewNumbers.lookup(value); }

  // Structure.
  bool visit(tile::KernelOp op);
  bool visit(tile::DimOp op);
  bool visit(tile::ExtentOp op);
  bool visit(tile::DimSizeOp op);
  bool visit(tile::ParallelOp op);
  bool visit(tile::SerialOp op);
  bool visit(tile::PipelineOp op);
  bool visit(tile::StageOp op);
  bool visit(tile::FoldOp op);
  bool visit(tile::IfOp op);
  bool visit(tile::YieldOp op);

  // Memory.
  bool visit(tile::LoadOp op);
  bool visit(tile::StoreOp op);
  bool visit(tile::ScatterOp op);

  // Shape.
  bool visit(tile::BroadcastOp op);
  bool visit(tile::TransposeOp op);
  bool visit(tile::ReshapeOp op);
  bool visit(tile::IotaOp op);
  bool visit(tile::GatherOp op);

  // Reductions.
  bool visit(tile::ReduceOp op);
  bool visit(tile::ScanOp op);
  bool visit(tile::ArgReduceOp op);
  bool visit(tile::SortOp op);
  bool visit(tile::ContractOp op);

  // Elementwise, Tile's own.
  bool visit(tile::DivOp op);
  bool visit(tile::RemOp op);
  bool visit(tile::ShlOp op);
  bool visit(tile::ShrOp op);
  bool visit(tile::MaxNumOp op);
  bool visit(tile::MinNumOp op);
  bool visit(tile::SigmoidOp op);
  bool visit(tile::RoundToOp op);
  bool visit(tile::CastOp op);

  // Elementwise, upstream.
  bool visit(mlir::arith::ConstantOp op);
  bool visit(mlir::arith::IndexCastOp op);
  bool visit(mlir::arith::SelectOp op);
  bool visit(mlir::arith::AddFOp op);
  bool visit(mlir::arith::SubFOp op);
  bool visit(mlir::arith::MulFOp op);
  bool visit(mlir::arith::DivFOp op);
  bool visit(mlir::arith::NegFOp op);
  bool visit(mlir::arith::MaximumFOp op);
  bool visit(mlir::arith::MinimumFOp op);
  bool visit(mlir::arith::CmpFOp op);
  bool visit(mlir::arith::AddIOp op);
  bool visit(mlir::arith::SubIOp op);
  bool visit(mlir::arith::MulIOp op);
  bool visit(mlir::arith::AndIOp op);
  bool visit(mlir::arith::OrIOp op);
  bool visit(mlir::arith::XOrIOp op);
  bool visit(mlir::arith::MaxSIOp op);
  bool visit(mlir::arith::MinSIOp op);
  bool visit(mlir::arith::MaxUIOp op);
  bool visit(mlir::arith::MinUIOp op);
  bool visit(mlir::arith::CmpIOp op);
  bool visit(mlir::math::AbsFOp op);
  bool visit(mlir::math::AbsIOp op);
  bool visit(mlir::math::CeilOp op);
  bool visit(mlir::math::CosOp op);
  bool visit(mlir::math::ErfOp op);
  bool visit(mlir::math::ExpOp op);
  bool visit(mlir::math::Exp2Op op);
  bool visit(mlir::math::ExpM1Op op);
  bool visit(mlir::math::FloorOp op);
  bool visit(mlir::math::FmaOp op);
  bool visit(mlir::math::LogOp op);
  bool visit(mlir::math::Log1pOp op);
  bool visit(mlir::math::Log2Op op);
  bool visit(mlir::math::RoundEvenOp op);
  bool visit(mlir::math::RsqrtOp op);
  bool visit(mlir::math::SinOp op);
  bool visit(mlir::math::SqrtOp op);
  bool visit(mlir::math::TanhOp op);
  bool visit(mlir::math::TruncOp op);

private:
  using Dims = llvm::SmallVector<unsigned, 4>;

  bool compileRegion(mlir::Region &region, Block &block);
  bool compileOp(mlir::Operation *op);
  void emit(std::function<bool()> run);

  Block &newBlock() { return machine.blocks.emplace_back(); }
  unsigned dimOf(mlir::StringAttr name);
  Dims dimsOf(mlir::Type type);
  llvm::SmallVector<Slot, 4> slotsOf(mlir::ValueRange values);

  template <typename Op> std::shared_ptr<Access> accessOf(Op op);
  template <typename Loop> bool visitLoop(Loop op);
  template <typename Op> bool visitFloat(Op op, FloatBinary binary);
  template <typename Op> bool visitFloat(Op op, FloatUnary unary);
  template <typename Op> bool visitInt(Op op, IntBinary binary);
  bool emitUnary(mlir::Operation *op, FloatUnary unary);
  bool emitBinary(mlir::Operation *op, FloatBinary binary);
  bool emitBinary(mlir::Operation *op, IntBinary binary);

  bool emitReordered(mlir::Operation *op);

  /// An axis of a view that a dimension binds.
  struct Binding {
    unsigned dim = 0;
    unsigned view = 0;
    unsigned axis = 0;
    SourcePosition where;
  };

  Machine &machine;
  tile::KernelOp kernel;
  llvm::SmallVector<Binding> bindings;
  Block *current = nullptr;
  unsigned depth = 0;
  Slot nextSlot = 0;
  llvm::DenseMap<mlir::Value, Slot> slotNumbers;
  llvm::DenseMap<mlir::Value, unsigned> viewNumbers;
  llvm::DenseMap<mlir::StringAttr, unsigned> dimNumbers;
  llvm::DenseSet<mlir::Value> dataDependent;
};

} // namespace tessera::interp

#endif // TESSERA_INTERP_COMPILER_H
