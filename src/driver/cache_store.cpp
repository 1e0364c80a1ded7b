//===- cache_store.cpp - Executables on disk ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A write is followed by a look at the size of the folder only where this
// process has written much, so that storing does not take longer the more there
// is.
//
//===----------------------------------------------------------------------===//

#include "driver/cache_store.h"

#include "support/atomic_file.h"
#include "support/env.h"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view suffix = ".tse";
constexpr size_t keyDigits = 32;
constexpr int64_t MiB = int64_t{1} << 20;
constexpr int64_t defaultMiB = 256, mostMiB = int64_t{1} << 20;

/// Where files are removed, so many of them that as much of the limit is free.
constexpr double freed = 0.1;
/// After this part of the limit was written, the folder is looked at again:
/// other processes write, too.
constexpr int64_t writtenParts = 8;
/// An unfinished file that is older was left by a process that is gone.
constexpr double abandonedSeconds = 3600;

/// The code of errors about files that are not read.
constexpr const char *unreadable = "cache.unreadable";

/// A descriptor that is closed.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      ::close(number);
  }
  const int number;
};

/// Why code may not be taken from there; empty if it may.
std::string whyUntrusted(const struct stat &status) {
  if (status.st_uid != ::geteuid())
    return fmt::format("it belongs to user {}, expected {}", status.st_uid,
                       ::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("others may write it (mode {:o}), expected that only "
                       "its owner may",
                       status.st_mode & 07777);
  return {};
}

std::string systemText(int reason) { return std::strerror(reason); }

/// Why the folder that is there cannot be used; empty if it can.
std::string whyUnusable(const std::string &folder) {
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0)
    return systemText(errno);
  if (!S_ISDIR(status.st_mode))
    return "it is no directory";
  return whyUntrusted(status);
}

/// Makes the folder if it is not there. Returns why it cannot be used.
std::string makeFolder(const std::string &folder) {
  struct stat status;
  if (::stat(folder.c_str(), &status) != 0) {
    std::error_code code;
    const fs::path parent = fs::path(folder).parent_path();
    if (!parent.empty())
      fs::create_directories(parent, code);
    if (code)
      return code.message();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return systemText(errno);
  }
  return whyUnusable(folder);
}

std::string entryPath(const std::string &folder, const CacheKey &key) {
  return folder + "/" + key.name() + std::string(suffix);
}

/// "0123....tse".
bool isEntryName(std::string_view name) {
  return name.size() == keyDigits + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789abcdef") == keyDigits;
}

/// "0123....tse.PID-NUMBER.tmp", as AtomicFile calls what it has not finished.
bool isUnfinishedName(std::string_view name) {
  const size_t whole = keyDigits + suffix.size();
  return name.size() > whole && isEntryName(name.substr(0, whole)) &&
         name[whole] == '.' && name.ends_with(".tmp");
}

struct FileFacts {
  std::string path;
  int64_t bytes = 0;
  timespec used = {};

  double age() const {
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    return double(now.tv_sec - used.tv_sec) +
           1e-9 * double(now.tv_nsec - used.tv_nsec);
  }
};

struct FolderFacts {
  /// The most recently used first.
  std::vector<FileFacts> entries;
  std::vector<FileFacts> unfinished;
  int64_t bytes = 0;
};

FolderFacts lookAt(const std::string &folder) {
  FolderFacts facts;
  DIR *directory = ::opendir(folder.c_str());
  if (!directory)
    return facts;
  while (const dirent *item = ::readdir(directory)) {
    const bool isEntry = isEntryName(item->d_name);
    if (!isEntry && !isUnfinishedName(item->d_name))
      continue;
    struct stat status;
    if (::fstatat(::dirfd(directory), item->d_name, &status,
                  AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    FileFacts file{folder + "/" + item->d_name, status.st_size, status.st_mtim};
    facts.bytes += file.bytes;
    (isEntry ? facts.entries : facts.unfinished).push_back(std::move(file));
  }
  ::closedir(directory);
  std::sort(facts.entries.begin(), facts.entries.end(),
            [](const FileFacts &a, const FileFacts &b) {
              return std::pair(a.used.tv_sec, a.used.tv_nsec) >
                     std::pair(b.used.tv_sec, b.used.tv_nsec);
            });
  return facts;
}

/// Removes what is too much. Returns the bytes that are left.
int64_t trim(const std::string &folder, int64_t limit) {
  FolderFacts facts = lookAt(folder);
  for (const FileFacts &file : facts.unfinished)
    if (file.age() > abandonedSeconds && ::unlink(file.path.c_str()) == 0)
      facts.bytes -= file.bytes;
  if (facts.bytes <= limit)
    return facts.bytes;
  const auto goal = static_cast<int64_t>((1 - freed) * double(limit));
  // What was used last, stays.
  for (size_t i = facts.entries.size(); i > 1 && facts.bytes > goal; --i)
    if (::unlink(facts.entries[i - 1].path.c_str()) == 0)
      facts.bytes -= facts.entries[i - 1].bytes;
  return facts.bytes;
}

/// After a file of so many bytes was written.
void keepWithinLimit(const std::string &folder, int64_t written) {
  static std::mutex mutex;
  static std::string known;
  static int64_t bytes = 0, since = 0;
  std::lock_guard lock(mutex);
  const int64_t limit = cacheLimit();
  bytes += written;
  since += written;
  if (folder == known && bytes <= limit && since <= limit / writtenParts)
    return;
  known = folder;
  bytes = trim(folder, limit);
  since = 0;
}

/// A file's bytes, if code may be taken from it; else why not. Counts as a use
/// if `isUse`.
Result<std::string> readFile(const std::string &path, bool isUse) {
  const auto fail = [](std::string why) {
    return Error{ErrorFamily::Internal, unreadable, std::move(why), {}};
  };
  Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.number < 0)
    return fail(errno == ELOOP ? "it is a symbolic link" : systemText(errno));
  struct stat status;
  if (::fstat(file.number, &status) != 0)
    return fail(systemText(errno));
  if (!S_ISREG(status.st_mode))
    return fail("it is no regular file");
  if (std::string why = whyUntrusted(status); !why.empty())
    return fail(std::move(why));
  // No object is nearly as long.
  if (status.st_size > 256 * MiB)
    return fail(fmt::format("it has {} bytes", status.st_size));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::read(file.number, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(systemText(errno));
    if (count == 0)
      break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  // Where that cannot be noted, older uses decide what stays.
  if (isUse)
    ::futimens(file.number, nullptr);
  return bytes;
}

Result<CachedExecutable> readEntry(const std::string &path, bool isUse) {
  Result<std::string> bytes = readFile(path, isUse);
  if (!bytes)
    return bytes.error();
  return decodeEntry(*bytes);
}

} // namespace

std::optional<std::string> cacheFolder() {
  if (std::optional<std::string> given =
          support::envText(support::EnvVariable::CacheDir)) {
    if (*given == "off")
      return std::nullopt;
    return given;
  }
  // A relative path is to be ignored, says the standard of the variable.
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/')
    return std::string(cache) + "/tessera/executables";
  const char *home = std::getenv("HOME");
  if (home && *home == '/')
    return std::string(home) + "/.cache/tessera/executables";
  return std::nullopt;
}

int64_t cacheLimit() {
  return MiB * support::envInteger(support::EnvVariable::CacheMiB, 1, mostMiB)
                   .value_or(defaultMiB);
}

/// Why nothing can be made in a folder; empty if it can. Permissions do not
/// tell all of it.
static std::string whyUnwritable(const std::string &folder) {
  const std::string probe =
      folder + "/tessera-probe-" + std::to_string(::getpid());
  if (::mkdir(probe.c_str(), 0700) != 0)
    return systemText(errno);
  ::rmdir(probe.c_str());
  return {};
}

std::string cacheProblem() {
  const std::optional<std::string> folder = cacheFolder();
  if (!folder)
    return "TESSERA_CACHE_DIR says off, or there is no home folder";
  struct stat status;
  if (::stat(folder->c_str(), &status) == 0) {
    if (std::string why = whyUnusable(*folder); !why.empty())
      return fmt::format("'{}' is not used: {}", *folder, why);
    if (std::string why = whyUnwritable(*folder); !why.empty())
      return fmt::format("nothing can be kept in '{}': {}", *folder, why);
    return {};
  }
  // It is made by the first that keeps something: the nearest folder above
  // tells whether that can be done.
  fs::path above = fs::path(*folder).parent_path();
  while (!above.empty() && ::stat(above.c_str(), &status) != 0)
    above = above.parent_path();
  const std::string nearest = above.empty() ? "." : above.string();
  if (std::string why = whyUnwritable(nearest); !why.empty())
    return fmt::format("'{}' cannot be made: '{}': {}", *folder, nearest, why);
  return {};
}

CacheLookup findExecutable(const CacheKey &key) {
  const std::optional<std::string> folder = cacheFolder();
  if (!folder)
    return {{}, cacheProblem()};
  const std::string path = entryPath(*folder, key);
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0)
    return {{}, "there is no entry of this key"};
  if (std::string why = whyUnusable(*folder); !why.empty())
    return {{}, fmt::format("'{}' is not used: {}", *folder, why)};
  Result<CachedExecutable> entry = readEntry(path, /*isUse=*/true);
  if (entry && entry->key.parts == key.parts)
    return {std::move(*entry), {}};
  const std::string why =
      entry ? "found the entry of another key" : entry.error().message;
  // What could not be read may be good.
  if (!entry && entry.error().code == unreadable)
    return {{}, fmt::format("'{}' is not used: {}", path, why)};
  ::unlink(path.c_str());
  return {{}, fmt::format("'{}' was removed: {}", path, why)};
}

std::string storeExecutable(const CachedExecutable &entry) {
  const std::optional<std::string> folder = cacheFolder();
  if (!folder)
    return cacheProblem();
  if (std::string why = makeFolder(*folder); !why.empty())
    return fmt::format("'{}' is not used: {}", *folder, why);
  const std::string bytes = encodeEntry(entry);
  const auto size = static_cast<int64_t>(bytes.size());
  if (size > cacheLimit())
    return fmt::format("{} bytes are more than all entries may take ({})", size,
                       cacheLimit());
  Result<support::AtomicFile> file =
      support::AtomicFile::create(entryPath(*folder, entry.key), 0600);
  if (!file)
    return file.error().message;
  if (Result<void> status = file->write(bytes.data(), bytes.size()); !status)
    return status.error().message;
  if (Result<void> status = file->commit(); !status)
    return status.error().message;
  keepWithinLimit(*folder, size);
  return {};
}

void dropExecutable(const CacheKey &key) {
  if (const std::optional<std::string> folder = cacheFolder())
    ::unlink(entryPath(*folder, key).c_str());
}

std::vector<CacheFile> listExecutables() {
  std::vector<CacheFile> files;
  const std::optional<std::string> folder = cacheFolder();
  if (!folder)
    return files;
  for (const FileFacts &file : lookAt(*folder).entries)
    files.push_back({file.path, file.bytes, file.age(),
                     readEntry(file.path, /*isUse=*/false)});
  return files;
}

Result<int64_t> clearExecutables() {
  int64_t count = 0;
  const std::optional<std::string> folder = cacheFolder();
  if (!folder)
    return count;
  const FolderFacts facts = lookAt(*folder);
  for (const auto *list : {&facts.entries, &facts.unfinished})
    for (const FileFacts &file : *list) {
      if (::unlink(file.path.c_str()) == 0)
        count += list == &facts.entries;
      else if (errno != ENOENT)
        return Error{ErrorFamily::Usage,
                     "usage.cache",
                     fmt::format("'{}' cannot be removed: {}", file.path,
                                 systemText(errno)),
                     {}};
    }
  return count;
}

std::optional<NearestExecutable> nearestExecutable(const CacheKey &key) {
  std::optional<NearestExecutable> nearest;
  for (const CacheFile &file : listExecutables()) {
    if (!file.entry || file.entry->key.value("kernel") != key.value("kernel"))
      continue;
    NearestExecutable one{file.path, {}};
    for (const CacheKey::Part &part : key.parts)
      if (std::string found = file.entry->key.value(part.name);
          found != part.value)
        one.differences.push_back({part.name, std::move(found), part.value});
    if (!nearest || one.differences.size() < nearest->differences.size())
      nearest = std::move(one);
  }
  return nearest;
}

} // namespace tessera
