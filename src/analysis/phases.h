//===- phases.h - Cutting a block into loop nests ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of Tile IR is executed as a sequence of steps. Scalar ops and nested
// regions are steps of their own ("immediate"). Tile ops are of two kinds:
//
//  - deferred ops (loads, elementwise ops, broadcasts, ...) are not executed
//    where they stand; they are evaluated, element by element, inside the loop
//    nests of their consumers;
//  - roots (stores, reductions, scans, contractions, sorts, and values that
//    must be kept in a buffer) each need a loop nest over their index space.
//
// A phase is one loop nest that serves one or more roots over the same index
// space. A root joins the phase that is being formed when it does not need a
// result of that phase and no conflict of memory accesses forbids it. Scalar
// arithmetic on results of the phase waits for its end, so that it does not
// keep later roots out of it: the sums of x and of x * x are one phase,
// whatever is computed from the first in between.
//
// A deferred value is kept in a buffer when
//  - it is a load whose memory may be overwritten before its last use,
//  - its consumer needs it at other positions (gather, reshape), or
//  - it is expensive and would be evaluated more than once, or
//  - it is evaluated so often that loading it is cheaper.
//
// With Passes::Joined a reduction also joins the phase whose result it needs,
// where a law of reduction_algebra.h allows it: the phase is then computed
// about a reference that stands for that result.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ANALYSIS_PHASES_H
#define TESSERA_ANALYSIS_PHASES_H

#include "analysis/access.h"
#include "analysis/keeping.h"
#include "analysis/passes.h"
#include "analysis/reduction_algebra.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

struct Root {
  enum class Kind {
    Store,
    Scatter,
    Reduce,
    ArgReduce,
    Contract,
    Scan,
    Sort,
    /// Keeps `value` in a buffer.
    Materialize,
  };
  Kind kind;
  mlir::Operation *op = nullptr;
  mlir::Value value;
  /// Of Materialize: the dimensions of the buffer, the innermost last; empty
  /// for the value's own order.
  llvm::SmallVector<mlir::StringAttr, 4> layout = {};
  /// In a joined phase: how the root depends on the centre.
  Dependence dependence = {};
};

/// Why the reductions of a phase are one loop although some depend on another.
struct Join {
  Law law = Law::Shift;
  tile::ReduceOp first;
  /// The scalar that they depend on, and the scalar operations that compute it
  /// from the result of `first`, in order.
  mlir::Value centre;
  llvm::SmallVector<mlir::Operation *> between;
  /// For Law::Powers: the tile of the deviations, and whether they are
  /// centre - x instead of x - centre.
  mlir::Value deviation;
  bool isReversed = false;
  int64_t count = 0;
};

/// Coordinates that a copy runs over along some of its dimensions, which may be
/// fewer or more than these have.
using CopiedSpans = llvm::SmallVector<std::pair<mlir::StringAttr, int64_t>, 4>;

struct Phase {
  /// The index space: dimensions that results keep, then reduced ones.
  llvm::SmallVector<mlir::StringAttr> kept;
  llvm::SmallVector<mlir::StringAttr> reduced;
  llvm::SmallVector<Root> roots;
  /// Stores and kept values over the kept dimensions that need the phase's
  /// result where they are themselves, and may therefore be done as soon as it
  /// is complete, in its registers.
  llvm::SmallVector<Root> epilogue;
  /// Whether anything but the epilogue needs the result.
  bool keepsResult = true;
  /// Of a copy of what windows read (window_region.h).
  CopiedSpans spans = {};
  std::optional<Join> join;
};

/// One step of a block: an op to execute at once, or a phase.
struct Step {
  mlir::Operation *immediate = nullptr;
  Phase phase;
};

/// Whether a tile op is evaluated inside its consumers' loops.
bool isDeferred(mlir::Operation *op);

/// Whether an elementwise op costs more than a load from the first-level cache.
bool isExpensive(mlir::Operation *op);

/// Whether a scan may be computed a vector at a time along its own dimension:
/// any order, forward, inclusive, with a combiner whose identity is exact.
bool isFreeScan(tile::ScanOp scan);

/// Coordinates below viewExtent - offset are stored, others dropped.
struct LiveLimit {
  bool known = false;
  int64_t viewExtent = 0;
  /// A scalar; null for 0.
  mlir::Value offset;

  bool operator==(const LiveLimit &) const = default;
};

class PhaseAnalysis {
public:
  PhaseAnalysis(tile::KernelOp kernel, const AccessAnalysis &accesses,
                Keeping keeping = Keeping::All,
                Passes passes = Passes::Separate);

  /// The steps of a block of the kernel, in order. What may follow a
  /// contraction in its registers is its epilogue.
  std::vector<Step> schedule(mlir::Block &block) const;

  /// The phases of the whole kernel that a law joins, and why others are not
  /// joined by any.
  size_t countJoins(Law law, llvm::SmallVectorImpl<Refusal> &refusals) const;

  bool joins() const { return passes == Passes::Joined; }

  /// Whether the deferred value is kept in a buffer.
  bool isMaterialized(mlir::Value value) const {
    return materialized.contains(value);
  }

  /// The deferred values evaluated for a root, up to buffers and scalars.
  llvm::SetVector<mlir::Value> cone(const Root &root) const;

  /// Along a dimension of the phase, the coordinates from 0 on at which its
  /// results are seen, or which it copies; std::nullopt if the extent depends
  /// on data.
  std::optional<int64_t> liveExtent(const Phase &phase,
                                    mlir::StringAttr dim) const;

  /// What limits them in the program at hand, where that is the same for all
  /// that sees the results.
  LiveLimit liveLimit(const Phase &phase, mlir::StringAttr dim) const;

private:
  /// The steps without epilogues. With Passes::Joined, why reductions did not
  /// join the loop of what they depend on is added to `refusals`, and what
  /// stays apart because it is kept to `kept`, if given.
  std::vector<Step>
  scheduleLoops(mlir::Block &block,
                llvm::SmallVectorImpl<Refusal> *refusals = nullptr,
                llvm::DenseSet<mlir::Value> *kept = nullptr) const;
  bool mayFollow(const Phase &contraction, const Phase &next) const;
  bool collectLimits(const Root &root, mlir::StringAttr dim,
                     llvm::SmallVectorImpl<LiveLimit> &limits) const;
  void chooseBuffers();
  void requireBuffers(mlir::Block &block);
  void keepSharedValues(mlir::Block &block);
  bool isSmall(mlir::Value tile) const;
  void collectCone(mlir::Value value, llvm::SetVector<mlir::Value> &cone) const;

  tile::KernelOp kernel;
  const AccessAnalysis &accesses;
  const Keeping keeping;
  const Passes passes;
  llvm::DenseSet<mlir::Value> materialized;
  /// Not to be kept, for joins: what they are computed from may be instead.
  llvm::DenseSet<mlir::Value> neverKept;
};

/// The root that an op is; none for deferred and immediate ones.
std::optional<Root> rootOf(mlir::Operation *op);

/// The index space of a root: kept and reduced dimensions.
void rootSpace(const Root &root, llvm::SmallVectorImpl<mlir::StringAttr> &kept,
               llvm::SmallVectorImpl<mlir::StringAttr> &reduced);

} // namespace tessera

#endif // TESSERA_ANALYSIS_PHASES_H
