//===- vendor_library.h - A library that computes products ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries of products are opened when a kernel that was realized as a call to
// one is loaded, never before, and stay open. The number of threads that one
// uses belongs to the process: a launch sets it, and launches that want
// different numbers wait for each other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_HOST_VENDOR_LIBRARY_H
#define TESSERA_RUNTIME_HOST_VENDOR_LIBRARY_H

#include "support/vendor.h"
#include "tessera/error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace tessera {

class VendorLibrary {
public:
  /// The library that TESSERA_VENDOR_LIBRARY names, else the first of the
  /// interface's usual ones that is there. Fails with Unsupported and says what
  /// to install.
  static Result<std::shared_ptr<VendorLibrary>> open(Vendor vendor);

  /// The file it was found under: "libopenblas.so.0".
  const std::string &file() const { return fileName; }

  /// The address of a function; Unsupported where the library has none.
  Result<void *> find(const std::string &function) const;

  /// Whether the library lets its threads be set.
  bool setsThreads() const { return setThreads != nullptr; }

  /// Calls `body` while the library uses this many threads.
  int32_t run(int threads, const std::function<int32_t()> &body);

private:
  VendorLibrary(void *handle, std::string file);

  void *handle;
  std::string fileName;
  void (*setThreads)(int) = nullptr;
  /// Whether each calling thread has a number of its own.
  bool perCaller = false;
  std::shared_mutex mutex;
  int current = -1;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_HOST_VENDOR_LIBRARY_H
