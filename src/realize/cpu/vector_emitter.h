//===- vector_emitter.h - Scalar and vector ops in one form -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits operations on values that are scalars or one-dimensional vectors, so
// that the vector body, its tail and scalar code come from the same source.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_VECTOR_EMITTER_H
#define TESSERA_REALIZE_CPU_VECTOR_EMITTER_H

#include "target/target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace tessera {

/// The number of lanes: 1 for a scalar.
int64_t lanesOf(mlir::Value value);

/// `element` itself for one lane, else a vector of it.
mlir::Type laneType(mlir::Type element, int64_t lanes);

mlir::Type elementOf(mlir::Value value);

class VectorEmitter {
public:
  /// For the function that the builder is at the begin of.
  VectorEmitter(mlir::OpBuilder &builder, mlir::Location loc,
                const Target &target)
      : b(builder), loc(loc), target(target),
        entry(builder.getInsertionBlock()) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  const Target &target;

  // Constants: `type` is a scalar or vector type. Each is emitted once, at the
  // begin of the function.
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value floating(mlir::Type type, double value);
  mlir::Value zero(mlir::Type type);
  mlir::Value index(int64_t value);
  mlir::Value boolean(int64_t lanes, bool value);
  /// The lane numbers 0, 1, ... as i64.
  mlir::Value laneNumbers(int64_t lanes);
  /// Lanes [0, count) true; `count` is an index.
  mlir::Value prefixMask(mlir::Value count, int64_t lanes);

  /// A scalar in every lane; unchanged if it has the lanes already.
  mlir::Value splat(mlir::Value value, int64_t lanes);
  /// Brings all values to the largest number of lanes among them.
  void unify(llvm::SmallVectorImpl<mlir::Value> &values);

  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value logicalAnd(mlir::Value a, mlir::Value b);
  mlir::Value logicalOr(mlir::Value a, mlir::Value b);
  mlir::Value logicalNot(mlir::Value a);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a,
                      mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                      mlir::Value b);
  mlir::Value isNaN(mlir::Value a);
  /// The floating number, computed before what is emitted next begins, by code
  /// of no instructions. LLVM otherwise moves what is used late behind a loop
  /// that lies between, whose registers its operands then take.
  mlir::Value settled(mlir::Value number);

  /// index -> i64.
  mlir::Value toI64(mlir::Value index);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);

  /// Lanes taken from `value` by position.
  mlir::Value shuffle(mlir::Value value, llvm::ArrayRef<int32_t> lanes);
  mlir::Value shuffle(mlir::Value a, mlir::Value b,
                      llvm::ArrayRef<int32_t> lanes);
  mlir::Value extract(mlir::Value vector, int64_t lane);
  mlir::Value bitcast(mlir::Value value, mlir::Type element);

  // Memory. `storage` is the element type of a view (dialect/tile_dialect.td);
  // values are in the compute type. A null mask means all lanes.
  mlir::Value offsetPointer(mlir::Value pointer, mlir::Type storage,
                            mlir::Value index);
  mlir::Value load(mlir::Value pointer, mlir::Type storage, int64_t lanes,
                   mlir::Value mask);
  mlir::Value gather(mlir::Value pointer, mlir::Type storage,
                     mlir::Value offsets, mlir::Value mask);
  /// Returns the operation that stores, if it is a single one.
  mlir::Operation *store(mlir::Value value, mlir::Value pointer,
                         mlir::Type storage, mlir::Value mask);
  /// Stores a vector without a mask past the caches where it is aligned, and
  /// as any other elsewhere. `share` of such vectors are taken to be aligned.
  void storeAround(mlir::Value value, mlir::Value pointer, mlir::Type storage,
                   double share);
  /// What is needed after such stores before another thread reads them.
  void finishStoresAround();
  void scatter(mlir::Value value, mlir::Value pointer, mlir::Type storage,
               mlir::Value offsets, mlir::Value mask);

  /// Asks for the cache line of an address, which need not be mapped, to be
  /// loaded or stored to.
  mlir::Operation *prefetch(mlir::Value pointer, bool isStored);

  /// The type elements of `storage` have in memory and when loaded.
  mlir::Type memoryType(mlir::Type storage);
  mlir::Type computeType(mlir::Type storage);
  /// Converts what was loaded to the compute type, and back for a store, to
  /// nearest even.
  mlir::Value widen(mlir::Value loaded, mlir::Type storage);
  mlir::Value narrow(mlir::Value value, mlir::Type storage);

  /// A constant of any form.
  mlir::Value constant(mlir::TypedAttr attribute);

private:
  mlir::Value constant(mlir::Type type, mlir::Attribute element);
  /// Lanes of `element` that fill one vector register.
  int64_t registerLanes(mlir::Type element) const;
  mlir::Value slice(mlir::Value vector, int64_t first, int64_t count);
  mlir::Value maskedLoad(mlir::Value pointer, mlir::Type type, mlir::Value mask,
                         unsigned alignment);
  mlir::Operation *maskedStore(mlir::Value value, mlir::Value pointer,
                               mlir::Value mask, unsigned alignment);
  mlir::Value narrowBf16(mlir::Value value);
  mlir::Value convertToBf16(mlir::Value value);
  mlir::Value widenSmallFloat(mlir::Value bits, unsigned exponentBits,
                              unsigned mantissaBits, bool hasInfinity);
  mlir::Value narrowSmallFloat(mlir::Value value, unsigned exponentBits,
                               unsigned mantissaBits, bool hasInfinity);

  /// The first block of the function, where constants are.
  mlir::Block *entry;
  /// What has been emitted; of integers also by type and number, which spares
  /// making the attribute.
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::DenseMap<std::pair<mlir::Type, int64_t>, mlir::Value> integers;
};

/// The bytes of a cache line, which one prefetch brings.
inline constexpr int64_t cacheLine = 64;

/// The number of bytes an element of `storage` takes in memory.
int64_t storageBytes(mlir::Type storage);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_VECTOR_EMITTER_H
