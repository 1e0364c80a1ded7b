//===- cache_key.h - What an executable depends on --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The key of a compilation: everything that decides the bits of its object and
// what its executable accepts, computes and says, each part by name. It is
// taken before anything is planned or searched. What a compilation reads and
// the key does not have is checked when an entry is found: the tuned plan
// (CachedExecutable::tunedPlan) and, for tunables that were chosen, what the
// kernel is with their values (CachedExecutable::chosenIr).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_CACHE_KEY_H
#define TESSERA_DRIVER_CACHE_KEY_H

#include "dialect/tile_dialect.h"
#include "driver/program.h"

#include <string>
#include <vector>

namespace tessera {

struct CacheKey {
  struct Part {
    std::string name;
    /// Short text for people, or a hash.
    std::string value;

    bool operator==(const Part &) const = default;
  };
  std::vector<Part> parts;

  /// 32 hexadecimal digits over all parts.
  std::string name() const;
  /// The value of a part; empty if there is none.
  std::string value(std::string_view part) const;
};

/// What a key is made of.
struct CacheSubject {
  /// Not specialized; its tunables have given values or their defaults.
  tile::KernelOp kernel;
  const std::vector<ProgramParameter> &parameters;
  /// For a traced kernel whose tunables are to be chosen: what it was traced
  /// from. Other values of tunables make other traces, which the IR at hand
  /// does not tell, so that the code that traces becomes part of the key.
  const Kernel *source = nullptr;
  const TraceOptions *options = nullptr;
};

/// The key of a complete request.
CacheKey makeCacheKey(const CacheSubject &subject,
                      const CompileRequest &request);

/// This build of Tessera and the LLVM it runs with, as they stand in keys.
std::string cacheCompiler();
std::string cacheLlvm();

/// Why a request is none of the cache's business; empty if it is. What is
/// compiled for it depends on more than a key has, or is asked for to see it
/// made.
std::string whyUncached(const CompileRequest &request);

} // namespace tessera

#endif // TESSERA_DRIVER_CACHE_KEY_H
