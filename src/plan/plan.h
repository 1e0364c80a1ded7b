//===- plan.h - Deciding how a kernel is realized ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Plan (plan_record.h) says how each loop nest of a kernel is realized.
// Planning reads analyses and target and machine descriptions and writes a
// Plan; realization reads it and decides nothing itself.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_H
#define TESSERA_PLAN_PLAN_H

#include "analysis/phases.h"
#include "plan/plan_record.h"
#include "target/machine.h"
#include "target/target.h"

namespace tessera {

/// What planning needs to know of the call beside the kernel: per view
/// parameter and axis, whether the stride is one.
struct StrideFacts {
  std::vector<std::vector<bool>> unit;

  bool isUnit(const Access &access, unsigned axis) const {
    return unit[access.view.getArgNumber()][axis];
  }
};

/// The dimension along which the elements of an access lie side by side in
/// memory; null for none.
mlir::StringAttr adjacentDim(const Access &access, const StrideFacts &strides);

struct KernelAnalysis;

/// The constant number of elements, positive or negative and small, that the
/// elements of a load lie apart along `dim`, if the target can load them in
/// whole vectors; std::nullopt for other accesses and adjacent elements.
std::optional<int64_t> steppedAlong(const Access &access, mlir::StringAttr dim,
                                    const KernelAnalysis &analysis,
                                    const Target &target);

/// The analyses of one specialized kernel, which planning and realization
/// share.
struct KernelAnalysis {
  KernelAnalysis(tile::KernelOp kernel, AliasMode alias,
                 std::vector<std::vector<int64_t>> extents, StrideFacts strides,
                 Keeping keeping = Keeping::All,
                 Passes passes = Passes::Separate)
      : kernel(kernel), dims(kernel), accesses(dims, alias, std::move(extents)),
        phases(kernel, accesses, keeping, passes), strides(std::move(strides)) {
    kernel->walk<mlir::WalkOrder::PreOrder>(
        [&](mlir::Operation *op) { numbers.insert({op, numbers.size()}); });
  }

  /// The number of the operation that a phase begins with.
  int64_t idOf(const Phase &phase) const {
    return phase.roots.empty() ? -1 : numbers.lookup(phase.roots[0].op);
  }

  tile::KernelOp kernel;
  DimTable dims;
  AccessAnalysis accesses;
  PhaseAnalysis phases;
  StrideFacts strides;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
};

/// The parts of the plan that the author fixed (the kernel's `tile.schedule`).
struct Pins {
  std::string vectorAxis;
  int64_t lanes = 0;
  int64_t unroll = 0;
  std::string tail;
};

/// What every decision rests on.
struct Planning {
  const KernelAnalysis &analysis;
  const Target &target;
  const Machine &machine;
  const Pins &pins;
  const PlanChoices &choices;
};

/// Reads the pins of a kernel. A pin that this back end cannot honour is an
/// Unsupported error that says why.
Result<Pins> readPins(tile::KernelOp kernel, const Target &target);

/// The tiles in memory whose elements are adjacent along another dimension than
/// their last.
using Layouts = llvm::DenseMap<mlir::Value, mlir::StringAttr>;

/// Whether everything that reads the tile from memory finds its elements in any
/// layout.
bool hasFreeLayout(mlir::Value tile);

/// The dimension along which `tile` should be laid out when it is kept: that of
/// a tile of the same dimensions which it is computed from, if that one is not
/// laid out along its last; else null.
mlir::StringAttr layoutFor(mlir::Value tile, const PhaseAnalysis &phases,
                           const Layouts &layouts);

/// The decisions for one phase: the pinned ones, the chosen ones, and defaults
/// for the rest. A pinned vector axis applies to the nests that have the
/// dimension. A choice that is not legal for the nest is not followed.
NestPlan planNest(const Phase &phase, const Planning &planning,
                  const Layouts &layouts = Layouts());

/// The share of the vectors along `dim` that a loop which begins with the rows
/// of an array stores aligned, as far as extents tell.
double alignedShare(const Access &stored, mlir::StringAttr dim, int64_t lanes,
                    const KernelAnalysis &analysis);

/// An access of a nest whose elements another program accesses at a known
/// distance.
struct PrefetchedAccess {
  mlir::Operation *op = nullptr;
  /// By axis, how far its index is ahead in the next program.
  llvm::SmallVector<int64_t, 4> ahead;
};

/// What one nest can prefetch.
struct NestPrefetches {
  /// Loads of the nest, of the next program's elements.
  std::vector<PrefetchedAccess> loads;
  /// Stores of later nests over the same elements, of this program's.
  std::vector<mlir::Operation *> stores;
};

/// By NestPlan::id, the nests of a grid's programs that can prefetch something:
/// for each array that is read along the lanes, the last nest that reads it;
/// for each that is only written so, the first nest of the same loops.
std::map<int64_t, NestPrefetches> findPrefetches(tile::ParallelOp grid,
                                                 const std::vector<Step> &steps,
                                                 const Planning &planning);

/// The order of the programs of stage `number`, whose body has been cut into
/// `steps`: what was chosen, as far as it is legal, else one at a time and
/// without prefetches.
GridPlan planGrid(tile::ParallelOp grid, size_t number,
                  const std::vector<Step> &steps, const Planning &planning);

/// The reduction of a grid's programs that several programs may share: a fold,
/// or loops of contractions or reductions, in any order at the top level of the
/// program, before which nothing is written, so that what precedes it can be
/// done by each of them.
struct SplitSite {
  mlir::Operation *op = nullptr;
  /// The dimension that is cut; its extent, unless data decides it.
  mlir::StringAttr dim;
  std::optional<int64_t> extent;
  /// The most parts.
  int64_t most = 1;
};

/// The site with the most work; null, and `why`, if there is none.
std::optional<SplitSite> findSplit(tile::ParallelOp grid,
                                   const std::vector<Step> &steps,
                                   const Planning &planning, std::string &why);

/// How many coordinates all parts but the last one of such loops have, and the
/// last one. std::nullopt where the last one would have none.
std::optional<std::pair<int64_t, int64_t>> sharesOf(int64_t extent,
                                                    int64_t splits);

/// Decides into how many parts the reductions of stage `number` are cut: as was
/// chosen, where that is legal, else one.
void planSplits(tile::ParallelOp grid, size_t number,
                const std::vector<Step> &steps, const Planning &planning,
                GridPlan &plan);

/// The coordinates of the grid that the packed operand of a nest depends on, if
/// there are others that it does not depend on; std::nullopt elsewhere.
std::optional<llvm::SmallVector<unsigned>>
sharedCoordinates(tile::ParallelOp grid, mlir::Value packed,
                  const KernelAnalysis &analysis);

/// The dimension of the grid along which programs follow one another that share
/// the packed operand, if it is not the last one.
std::optional<unsigned> sharedInnermost(tile::ParallelOp grid,
                                        mlir::Value packed,
                                        const KernelAnalysis &analysis);

/// The load of an array that the caller packs, if a contraction's operand is
/// its elements; null elsewhere.
tile::LoadOp prepackedLoad(mlir::Value operand, const PlanChoices &choices,
                           const KernelAnalysis &analysis);

/// Decides whether the programs of stage `number` that touch no edge of an
/// array have code of their own: where that was chosen, and there are such
/// programs and others.
void planEdges(tile::ParallelOp grid, size_t number, const Planning &planning,
               GridPlan &plan);

} // namespace tessera

#endif // TESSERA_PLAN_PLAN_H
