//===- cache_store.h - Executables on disk ----------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A user's executables: a folder with one file (cache_entry.h) per key. It is
// TESSERA_CACHE_DIR, else tessera/executables in $XDG_CACHE_HOME or ~/.cache;
// TESSERA_CACHE_DIR=off turns it off.
//
// Files appear whole, under their final name, so that readers need no lock and
// the last of several writers wins. Code is executed from here, so that folder
// and file must be this user's and no other's to write. Where the files take
// more than TESSERA_CACHE_MIB, those that were not used for the longest time
// go. What goes wrong is told and is never an error: then there is no cache.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_CACHE_STORE_H
#define TESSERA_DRIVER_CACHE_STORE_H

#include "driver/cache_entry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// None when it is off, or when there is no home to have it in.
std::optional<std::string> cacheFolder();

/// The bytes that the files may take.
int64_t cacheLimit();

/// Why nothing can be kept or found; empty where the folder can be used, or can
/// be made.
std::string cacheProblem();

/// What a look for a key found.
struct CacheLookup {
  std::optional<CachedExecutable> entry;
  /// Why there is none, for people.
  std::string reason;
};

/// The entry of a key, which counts as used now. A file that is damaged or has
/// another key is removed.
CacheLookup findExecutable(const CacheKey &key);

/// Keeps an entry. Returns why that could not be done; empty if it was.
std::string storeExecutable(const CachedExecutable &entry);

/// Forgets the entry of a key.
void dropExecutable(const CacheKey &key);

/// A file of the folder.
struct CacheFile {
  std::string path;
  int64_t bytes = 0;
  /// Seconds since it was used.
  double age = 0;
  Result<CachedExecutable> entry;
};

/// All entries, the most recently used first.
std::vector<CacheFile> listExecutables();

/// Removes all entries, unfinished files and nothing else. Returns how many
/// entries there were.
Result<int64_t> clearExecutables();

/// The entry of the same kernel whose key differs in the fewest parts, of equal
/// ones the last used. None where the kernel has no entry.
struct NearestExecutable {
  std::string path;
  std::vector<CacheState::Difference> differences;
};
std::optional<NearestExecutable> nearestExecutable(const CacheKey &key);

} // namespace tessera

#endif // TESSERA_DRIVER_CACHE_STORE_H
