//===- realize.h - A planned kernel as loops and vectors --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: turns a specialized kernel into functions of loops (scf), lane
// arithmetic (arith, math on scalars and one-dimensional vectors) and memory
// access (llvm). Precondition: extents are specialized and the kernel verifies.
// Place: after planning, before code generation, which expands math functions
// and lowers to LLVM IR.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REALIZE_CPU_REALIZE_H
#define TESSERA_REALIZE_CPU_REALIZE_H

#include "plan/plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tessera {

/// One stage function of the realized module. Its signature is StageEntry of
/// tessera/executable.h.
struct RealizedStage {
  std::string symbol;
  int64_t programs = 0;
  int64_t scratchBytes = 0;
  /// Stage::workspaceBytes and Stage::workspaceZeroBytes.
  int64_t workspaceBytes = 0;
  int64_t workspaceZeroBytes = 0;
};

/// What tells, in the workspace, how many parts of a program are done: one per
/// program, on lines of their own.
inline constexpr int64_t counterBytes = 64;

/// The parameter of a stage function that is its scratch memory; those before
/// it describe the launch.
constexpr unsigned scratchArgument = 5;

/// The function that packs an array for the caller.
struct RealizedPack {
  /// One program per panel.
  RealizedStage stage;
  unsigned parameter = 0;
  int64_t panelBytes = 0;
};

struct RealizedKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<RealizedStage> stages;
  std::vector<RealizedPack> packs;
  Plan plan;
  /// What the numbers that stages return mean.
  std::vector<Error> checks;
};

struct RealizeOptions {
  /// Adds a first stage that checks every data-dependent index and writes
  /// nothing.
  bool validate = false;
};

Result<RealizedKernel> realizeForCpu(const Planning &planning,
                                     const RealizeOptions &options = {});

/// Destroys a module, each of its operations once: left to itself, what is
/// inside loops is visited for every one of them.
void discard(mlir::OwningOpRef<mlir::ModuleOp> module);

/// Marks branches that are taken but for the last programs of a grid.
inline constexpr llvm::StringLiteral usualAttr = "tessera.usual";

/// For pricing: marks prefetches of what the same program reads later.
inline constexpr llvm::StringLiteral soonAttribute = "tessera.soon";

/// For pricing: marks loops of a program over blocks of what it works on.
inline constexpr llvm::StringLiteral blocksAttribute = "tessera.blocks";

/// For pricing. On an scf.if whose regions do the same, one of them for
/// programs that touch no edge: the share of these. On an scf.for that ends
/// early in programs at an edge: how often its body runs, on average over all
/// programs and in those that touch none.
inline constexpr llvm::StringLiteral shareAttribute = "tessera.share";
inline constexpr llvm::StringLiteral tripsAttribute = "tessera.trips";
/// On a stage function: the sum of NestPlan::jumps, and the largest
/// NestPlan::blockBytes and NestPlan::busyShare.
inline constexpr llvm::StringLiteral jumpsAttribute = "tessera.jumps";
inline constexpr llvm::StringLiteral blockAttribute = "tessera.block";
inline constexpr llvm::StringLiteral busyAttribute = "tessera.busy";
/// On a stage function: NestPlan::repeats of all nests, six numbers each.
inline constexpr llvm::StringLiteral repeatsAttribute = "tessera.repeats";
/// On an scf.if: the share of programs that take it.
inline constexpr llvm::StringLiteral takenAttribute = "tessera.taken";
/// On a load or store of a vector: the lines beyond the first that one of its
/// registers touches, on average. None where vectors begin with lines.
inline constexpr llvm::StringLiteral acrossAttribute = "tessera.across";

/// The location of the operations of a nest, and the nest (NestPlan::id) that
/// an operation of a realized module belongs to, if any.
mlir::Location nestLocation(mlir::Location outer, int64_t id);
std::optional<int64_t> nestOf(mlir::Operation *op);

/// Loads the dialects that realization emits.
void loadRealizationDialects(mlir::MLIRContext &context);

} // namespace tessera

#endif // TESSERA_REALIZE_CPU_REALIZE_H
