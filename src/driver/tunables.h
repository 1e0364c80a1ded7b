//===- tunables.h - Choosing the values of tunables -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tunable is a number that the author leaves open, with candidates: mostly
// the extent of a block. Its value decides what is traced, so that it is chosen
// before the plan: each combination is traced and its default plan priced, with
// the threads that the dispatcher would use. Nothing is compiled for it. Where
// the author's candidates are extents of blocks that leave threads waiting for
// others, so are blocks that do not.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_TUNABLES_H
#define TESSERA_DRIVER_TUNABLES_H

#include "driver/pipeline.h"
#include "tessera/dsl/kernel.h"

#include "mlir/IR/OwningOpRef.h"

namespace tessera {

struct TunableChoice {
  /// What was traced with the chosen values.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// In the order they were looked at; one is "chosen".
  std::vector<TunableCandidate> candidates;
};

/// Chooses the values of the tunables that `options` leave open. The first
/// combination, the author's own, is left only for one that is predicted to be
/// clearly faster. Nothing if there is nothing to choose, or if the first
/// combination cannot be priced: its compilation says why.
std::optional<TunableChoice>
chooseTunables(const Kernel &source, const TraceOptions &options,
               const std::vector<TunableInfo> &tunables,
               mlir::MLIRContext &context, const CompileRequest &request);

} // namespace tessera

#endif // TESSERA_DRIVER_TUNABLES_H
