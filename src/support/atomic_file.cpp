//===- atomic_file.cpp - Files that appear complete -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The names of unfinished files stand in a table of fixed size, because a
// signal handler may neither allocate nor lock.
//
//===----------------------------------------------------------------------===//

#include "support/atomic_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tessera::support {

namespace {

/// Bytes moved by one system call; larger requests are cut by the system.
constexpr size_t transferBytes = size_t{1} << 30;

enum EntryState : int { Free, Filling, Ready };

struct Entry {
  std::atomic<int> state{Free};
  std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free);

/// More unfinished files than this at one time stay where a signal leaves them.
std::array<Entry, 16> entries;

int addEntry(const std::string &path) {
  if (path.size() >= entries[0].path.size())
    return -1;
  for (size_t i = 0; i < entries.size(); ++i) {
    int expected = Free;
    if (!entries[i].state.compare_exchange_strong(expected, Filling))
      continue;
    std::copy(path.begin(), path.end(), entries[i].path.begin());
    entries[i].path[path.size()] = '\0';
    entries[i].state.store(Ready, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void removeEntry(int entry) {
  if (entry >= 0)
    entries[static_cast<size_t>(entry)].state.store(Free);
}

/// Calls nothing that is not async-signal-safe.
extern "C" void onSignal(int number) {
  for (Entry &entry : entries)
    if (entry.state.load(std::memory_order_acquire) == Ready)
      ::unlink(entry.path.data());
  // SA_RESETHAND has put the default action back.
  ::raise(number);
}

Error writeError(const std::string &path, const std::string &why) {
  return {ErrorFamily::Usage,
          "file.write",
          "cannot write '" + path + "': " + why,
          {}};
}

/// Makes the rename durable. Not every file system can; that is no failure.
void syncDirectoryOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int file =
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0)
    return;
  ::fsync(file);
  ::close(file);
}

/// The folder of `path`, without links; empty when there is none.
std::string canonicalFolder(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  char *resolved = ::realpath(folder.c_str(), nullptr);
  if (!resolved)
    return {};
  std::string result(resolved);
  std::free(resolved);
  return result;
}

/// The file that a rename to `path` should replace.
Result<std::string> resolveTarget(const std::string &path) {
  if (isDescriptorPath(path))
    return writeError(path, "it stands for an open file, expected a regular "
                            "file or a new name");
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    struct stat link;
    if (::lstat(path.c_str(), &link) == 0)
      return writeError(path,
                        "it is a symbolic link to nowhere, expected a file");
    return path;
  }
  if (!S_ISREG(status.st_mode))
    return writeError(
        path, std::string("it is ") +
                  (S_ISDIR(status.st_mode) ? "a directory" : "a special file") +
                  ", expected a regular file or a new name");
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved)
    return writeError(path, std::strerror(errno));
  std::string target(resolved);
  std::free(resolved);
  return target;
}

} // namespace

bool isDescriptorPath(const std::string &path) {
  std::string place = path;
  // One link at a time: the last one of a descriptor leads to what is open.
  for (int links = 0; links < 40; ++links) {
    const std::string folder = canonicalFolder(place);
    if (folder.starts_with("/proc/") && folder.ends_with("/fd"))
      return true;
    std::array<char, PATH_MAX> text;
    const ssize_t size = ::readlink(place.c_str(), text.data(), text.size());
    if (folder.empty() || size <= 0)
      return false;
    const std::string next(text.data(), static_cast<size_t>(size));
    place = next.front() == '/' ? next : folder + "/" + next;
  }
  return false;
}

Result<AtomicFile> AtomicFile::create(const std::string &path, unsigned mode) {
  Result<std::string> target = resolveTarget(path);
  if (!target)
    return target.error();
  static std::atomic<unsigned> counter{0};
  AtomicFile result(path, *target,
                    *target + "." + std::to_string(::getpid()) + "-" +
                        std::to_string(counter.fetch_add(1)) + ".tmp");
  // Known to the handler before it exists.
  result.entry = addEntry(result.temporary);
  result.file = ::open(result.temporary.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (result.file >= 0)
    return result;
  const int reason = errno;
  // Somebody else's file of that name stays.
  result.temporary.clear();
  return result.failure(reason);
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)),
      temporary(std::exchange(other.temporary, {})),
      file(std::exchange(other.file, -1)),
      entry(std::exchange(other.entry, -1)) {}

AtomicFile::~AtomicFile() {
  if (file >= 0)
    ::close(file);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
  removeEntry(entry);
}

Error AtomicFile::failure(int reason) const {
  return writeError(path, std::strerror(reason));
}

Result<void> AtomicFile::write(const void *data, size_t size) {
  const auto *next = static_cast<const char *>(data);
  while (size > 0) {
    const ssize_t done = ::write(file, next, std::min(size, transferBytes));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return failure(errno);
    next += done;
    size -= static_cast<size_t>(done);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  int reason = ::fsync(file) == 0 ? 0 : errno;
  // The close can report a write error.
  if (::close(std::exchange(file, -1)) != 0 && reason == 0)
    reason = errno;
  if (reason == 0 && ::rename(temporary.c_str(), target.c_str()) != 0)
    reason = errno;
  if (reason != 0)
    return failure(reason);
  temporary.clear();
  syncDirectoryOf(target);
  return {};
}

void removeTemporaryFilesOnSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old = {};
    if (::sigaction(number, nullptr, &old) != 0 || old.sa_handler == SIG_IGN)
      continue;
    struct sigaction action = {};
    action.sa_handler = onSignal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace tessera::support
