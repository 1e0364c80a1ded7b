//===- support/atomic_file.h - Files that appear complete -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that is written under a temporary name in its folder and renamed once
// it is complete: its path holds the old file or the whole new one. The
// temporary file is removed when the object goes away before that, and, in a
// process that asks for it, when a signal ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_ATOMIC_FILE_H
#define TESSERA_SUPPORT_ATOMIC_FILE_H

#include "tessera/error.h"

#include <cstddef>
#include <string>

namespace tessera::support {

/// Whether `path` stands for an open file descriptor of a process, as
/// /dev/stdout, /dev/fd/1 and /proc/self/fd/1 do, also behind symbolic links. A
/// rename to where it leads would replace the file that the descriptor's owner
/// holds, and write nothing to the descriptor.
bool isDescriptorPath(const std::string &path);

/// Errors are of family Usage, name the path and say why. Their code is
/// "file.write".
class AtomicFile {
public:
  /// Begins a file. An existing `path` must be a regular file and stand for no
  /// descriptor; a symbolic link is followed. `mode` are the permissions of the
  /// new file, which the process's mask restricts.
  static Result<AtomicFile> create(const std::string &path,
                                   unsigned mode = 0666);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Result<void> write(const void *data, size_t size);
  /// Makes the content durable and visible under its path.
  Result<void> commit();

private:
  AtomicFile(std::string path, std::string target, std::string temporary)
      : path(std::move(path)), target(std::move(target)),
        temporary(std::move(temporary)) {}
  Error failure(int reason) const;

  std::string path;
  /// What the rename replaces: where a link points to.
  std::string target;
  /// Empty once there is none.
  std::string temporary;
  int file = -1;
  /// The entry of the table that the signal handler reads, or -1.
  int entry = -1;
};

/// Makes SIGINT, SIGTERM and SIGHUP remove the temporary files of this process
/// before they end it as they would have. A signal that is ignored stays so.
/// For programs, not libraries.
void removeTemporaryFilesOnSignals();

} // namespace tessera::support

#endif // TESSERA_SUPPORT_ATOMIC_FILE_H
