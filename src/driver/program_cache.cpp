//===- program_cache.cpp - Programs and the executables on disk -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/program_cache.h"

#include "dialect/ir_hash.h"
#include "driver/load_kernel.h"
#include "driver/plan_store.h"
#include "dsl/trace.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera {

std::string traceHash(tile::KernelOp kernel) {
  const tile::IrHash hash = tile::hashIr(kernel);
  return hash.content.hex() + hash.locations.hex();
}

CacheKey programKey(const Program::State &state,
                    const CompileRequest &request) {
  CacheSubject subject{state.kernel, state.parameters};
  if (state.source && !state.tunables.empty()) {
    subject.source = &*state.source;
    subject.options = &state.options;
  }
  return makeCacheKey(subject, request);
}

/// Whether a compilation looks for a tuned plan.
static bool looksForTunedPlan(const CompileRequest &request) {
  return request.useTunedPlans && !request.savedPlan &&
         request.prepacked.empty();
}

/// Why an entry of the request's key is not what compiling now would make;
/// empty if it is.
static std::string whyOutdated(Program::State &state,
                               const CompileRequest &request,
                               const CachedExecutable &entry) {
  if (looksForTunedPlan(request) &&
      tunedPlanHash(entry.tunedKey) != entry.tunedPlan)
    return entry.tunedPlan.empty() ? "there is a tuned plan now"
                                   : "its tuned plan has changed or is gone";
  if (entry.chosen.empty())
    return {};
  TraceOptions options = state.options;
  // The program's own trace has its first values, and is part of the key.
  bool isOwn = true;
  for (const auto &[name, value] : entry.chosen) {
    options.tunables[name] = value;
    isOwn &= llvm::any_of(state.tunables, [&](const TunableInfo &tunable) {
      return tunable.name == name && tunable.value == value;
    });
  }
  if (isOwn)
    return {};
  const std::string other = "what the kernel is with the values of its "
                            "tunables has changed";
  if (!state.source)
    return other;
  Result<mlir::OwningOpRef<mlir::ModuleOp>> traced =
      trace(*state.source, state.context, options);
  if (!traced)
    return other;
  tile::KernelOp kernel = *(*traced)->getOps<tile::KernelOp>().begin();
  kernel.setTier(state.kernel.getTier());
  return traceHash(kernel) == entry.chosenIr ? std::string() : other;
}

CacheLookup findCurrent(Program::State &state, const CompileRequest &request,
                        const CacheKey &key) {
  CacheLookup lookup = findExecutable(key);
  if (!lookup.entry)
    return lookup;
  lookup.reason = whyOutdated(state, request, *lookup.entry);
  if (!lookup.reason.empty())
    lookup.entry.reset();
  return lookup;
}

Result<CompiledKernel> loadCached(const Program::State &state,
                                  const CompileRequest &request,
                                  CachedExecutable entry) {
  Result<ExecutableInfo> info =
      loadKernel(state.name, state.parameters, request,
                 {entry.object, std::move(entry.stages), std::move(entry.packs),
                  std::move(entry.checks)});
  if (!info)
    return info.error();
  CompiledKernel kernel{Executable(std::move(*info))};
  kernel.object = std::move(entry.object);
  kernel.planSource = std::move(entry.planSource);
  kernel.planSummary = std::move(entry.planSummary);
  kernel.report = std::move(entry.report);
  kernel.summation = entry.summation;
  kernel.work = entry.work;
  kernel.cache.origin = ExecutableOrigin::Disk;
  kernel.cache.key = entry.key.name();
  return kernel;
}

std::string keepCompiled(const CacheKey &key, const CompileRequest &request,
                         const PipelineResult &compiled,
                         const CompiledKernel &kernel,
                         const ChosenTrace &chosen) {
  if (compiled.plan.vendor)
    return "a library computes the kernel";
  CachedExecutable entry;
  if (looksForTunedPlan(request)) {
    // One that is there and was not applied is warned about by every process.
    if (!compiled.tunedPlan.empty() && compiled.planSource != "tuned")
      return "there is a tuned plan that cannot be applied";
    if (tunedPlanHash(compiled.subject.key) != compiled.tunedPlan)
      return "its tuned plan was changed meanwhile";
    entry.tunedKey = compiled.subject.key;
    entry.tunedPlan = compiled.tunedPlan;
  }
  entry.key = key;
  entry.extents = compiled.facts.dims;
  entry.chosen = chosen.values;
  entry.chosenIr = chosen.ir;
  entry.planSource = kernel.planSource;
  entry.planSummary = kernel.planSummary;
  entry.summation = kernel.summation;
  entry.work = kernel.work;
  entry.stages = compiled.stages;
  entry.packs = compiled.packs;
  entry.checks = compiled.checks;
  entry.report = kernel.report;
  entry.object = kernel.object;
  return storeExecutable(entry);
}

} // namespace tessera
