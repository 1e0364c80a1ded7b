//===- plan.h - The record of what was decided ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A Plan says how each loop nest of a kernel is realized. Planning reads
// analyses and a target description and writes a Plan; realization reads it and
// decides nothing itself.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLAN_PLAN_H
#define TESSERA_PLAN_PLAN_H

#include "analysis/phases.h"
#include "target/target.h"

#include <string>
#include <vector>

namespace tessera {

/// How the last, incomplete vector of a loop is done.
enum class TailForm {
  /// One vector under a mask.
  Mask,
  /// A loop over single elements.
  Scalar,
};

/// One reason for a decision, with a stable code.
struct Reason {
  std::string code;
  std::string text;
};

/// The decisions for one phase.
struct NestPlan {
  /// The index space, outermost first: "row, col".
  std::string space;
  /// What the nest computes: "reduce max", "store y", ...
  std::string roots;
  /// The dimension whose elements fill the lanes; empty for scalar code.
  std::string vectorDim;
  int64_t lanes = 1;
  /// Vectors per iteration of the vector loop; for a reduction along the vector
  /// dimension also the number of independent partial results.
  int64_t unroll = 1;
  TailForm tail = TailForm::Mask;
  /// A kept dimension of which `tileRows` coordinates are done at once, so that
  /// what is loaded along the vector dimension serves all of them; empty for
  /// none.
  std::string tileDim;
  int64_t tileRows = 1;
  /// The operand of a contraction (0 or 1) that is first copied to memory of
  /// its own, its vectors side by side; -1 for none.
  int packedOperand = -1;
  /// Iterations of a long summation after which the partial sums are added to
  /// outer ones, so that errors grow with the root of the length; 0 for none.
  int64_t sumBlock = 0;
  /// The number of partial sums of a summation, as far as its rounding errors
  /// are concerned.
  int64_t partials = 1;
  /// Estimated time of one run of the nest on one thread.
  double nanoseconds = 0;
  std::vector<Reason> reasons;
  /// Why a pin could not be honoured here; empty when all were.
  std::string pinConflict;
};

/// How the programs of a grid follow one another.
struct GridPlan {
  /// Programs that advance together, phase by phase: while one waits for the
  /// end of a reduction the next one's loop runs.
  int64_t together = 1;
  std::vector<Reason> reasons;
};

/// The decisions for one grid of programs.
struct StagePlan {
  std::string grid;
  int64_t programs = 1;
  GridPlan order;
  std::vector<NestPlan> nests;
};

struct Plan {
  std::string kernel;
  std::string target;
  AliasMode alias = AliasMode::Disjoint;
  std::vector<StagePlan> stages;
  /// Values kept in scratch memory, with their size in bytes.
  std::vector<std::pair<std::string, int64_t>> buffers;

  /// The plan in one line: "rows in parallel; max, sum, store over col in 16
  /// lanes x 4; ...".
  std::string summary() const;
};

/// What planning needs to know of the call beside the kernel: per view
/// parameter and axis, whether the stride is one.
struct StrideFacts {
  std::vector<std::vector<bool>> unit;

  bool isUnit(const Access &access, unsigned axis) const {
    return unit[access.view.getArgNumber()][axis];
  }
};

/// The analyses of one specialized kernel, which planning and realization
/// share.
struct KernelAnalysis {
  KernelAnalysis(tile::KernelOp kernel, AliasMode alias,
                 std::vector<std::vector<int64_t>> extents, StrideFacts strides)
      : kernel(kernel), dims(kernel), accesses(dims, alias, std::move(extents)),
        phases(kernel, accesses), strides(std::move(strides)) {}

  tile::KernelOp kernel;
  DimTable dims;
  AccessAnalysis accesses;
  PhaseAnalysis phases;
  StrideFacts strides;
};

/// The parts of the plan that the author fixed (the kernel's `tile.schedule`).
struct Pins {
  std::string vectorAxis;
  int64_t lanes = 0;
  int64_t unroll = 0;
  std::string tail;
};

/// Reads the pins of a kernel. A pin that this back end cannot honour is an
/// Unsupported error that says why.
Result<Pins> readPins(tile::KernelOp kernel, const Target &target);

/// The decisions for one phase: the pinned ones, and defaults for the rest. A
/// pinned vector axis applies to the nests that have the dimension.
NestPlan planNest(const Phase &phase, const KernelAnalysis &analysis,
                  const Target &target, const Pins &pins);

/// The order of a grid's programs, whose body has been cut into `steps`;
/// `nests` are the plans of its phases, one after another.
GridPlan planGrid(tile::ParallelOp grid, const std::vector<Step> &steps,
                  const std::vector<NestPlan> &nests,
                  const KernelAnalysis &analysis);

} // namespace tessera

#endif // TESSERA_PLAN_PLAN_H
