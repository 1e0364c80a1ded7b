//===- program_cache.h - Programs and the executables on disk ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between Program::compile() and the store: which entry is a request's, whether
// it is what compiling now would make, and what is kept of a compilation.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_PROGRAM_CACHE_H
#define TESSERA_DRIVER_PROGRAM_CACHE_H

#include "driver/cache_store.h"
#include "driver/pipeline.h"
#include "driver/program_state.h"

namespace tessera {

/// The values of tunables that a compilation chose or a saved plan has, and the
/// hash of what was traced with them (traceHash). Empty where the program's own
/// trace was taken.
struct ChosenTrace {
  std::vector<std::pair<std::string, int64_t>> values;
  std::string ir;
};

/// The hash of a kernel that is not specialized, its lines included.
std::string traceHash(tile::KernelOp kernel);

/// The key of a complete request.
CacheKey programKey(const Program::State &state, const CompileRequest &request);

/// The entry of a key, if it is what compiling now would make.
CacheLookup findCurrent(Program::State &state, const CompileRequest &request,
                        const CacheKey &key);

/// The kernel of an entry with its code loaded. It has no plan and no subject.
Result<CompiledKernel> loadCached(const Program::State &state,
                                  const CompileRequest &request,
                                  CachedExecutable entry);

/// Keeps what was compiled. Returns why it is not kept; empty if it is.
std::string keepCompiled(const CacheKey &key, const CompileRequest &request,
                         const PipelineResult &compiled,
                         const CompiledKernel &kernel,
                         const ChosenTrace &chosen);

} // namespace tessera

#endif // TESSERA_DRIVER_PROGRAM_CACHE_H
