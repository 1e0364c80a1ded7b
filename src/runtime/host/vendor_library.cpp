//===- vendor_library.cpp - A library that computes products --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/host/vendor_library.h"

#include "support/env.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <span>

namespace tessera {

namespace {

struct Interface {
  std::span<const char *const> files;
  const char *install;
};

constexpr const char *cblasFiles[] = {"libopenblas.so.0", "libblis.so.4",
                                      "libcblas.so.3"};
constexpr const char *oneDnnFiles[] = {"libdnnl.so.3", "libdnnl.so.2"};

Interface interfaceOf(Vendor vendor) {
  if (vendor == Vendor::OneDnn)
    return {oneDnnFiles, "oneDNN (libdnnl3 or libdnnl2)"};
  return {cblasFiles,
          "OpenBLAS (libopenblas0-pthread) or BLIS (libblis4-pthread)"};
}

template <typename Function> Function lookUp(void *handle, const char *symbol) {
  return reinterpret_cast<Function>(::dlsym(handle, symbol));
}

/// BLIS counts in its own integers, which are as long as pointers.
void (*setBlisThreads)(int64_t) = nullptr;
void setThreadsOfBlis(int threads) { setBlisThreads(threads); }

} // namespace

VendorLibrary::VendorLibrary(void *handle, std::string file)
    : handle(handle), fileName(std::move(file)) {
  setThreads = lookUp<void (*)(int)>(handle, "openblas_set_num_threads");
  if (setThreads)
    return;
  if (auto blis =
          lookUp<void (*)(int64_t)>(handle, "bli_thread_set_num_threads")) {
    setBlisThreads = blis;
    setThreads = setThreadsOfBlis;
    return;
  }
  // Found among what the library itself is linked with.
  setThreads = lookUp<void (*)(int)>(handle, "omp_set_num_threads");
  perCaller = setThreads != nullptr;
}

Result<std::shared_ptr<VendorLibrary>> VendorLibrary::open(Vendor vendor) {
  static std::mutex opening;
  // Never destroyed: launches may go on while the process ends.
  static auto &known =
      *new std::map<std::string, std::shared_ptr<VendorLibrary>>;
  std::lock_guard lock(opening);
  const Interface wanted = interfaceOf(vendor);
  const std::optional<std::string> given =
      support::envText(support::EnvVariable::VendorLibrary);
  std::vector<std::string> files(wanted.files.begin(), wanted.files.end());
  if (given)
    files.assign(1, *given);
  std::string why;
  for (const std::string &file : files) {
    std::shared_ptr<VendorLibrary> &library = known[file];
    if (!library)
      if (void *handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
        library.reset(new VendorLibrary(handle, file));
    if (library)
      return library;
    if (const char *text = ::dlerror(); text && given)
      why = fmt::format(": {}", text);
  }
  return Error{
      ErrorFamily::Unsupported,
      "vendor.library",
      given ? fmt::format("TESSERA_VENDOR_LIBRARY is '{}', which cannot be "
                          "opened{}",
                          *given, why)
            : fmt::format("found none of {} for '{}'; install {}, or name the "
                          "file in TESSERA_VENDOR_LIBRARY",
                          fmt::join(files, ", "), name(vendor), wanted.install),
      {}};
}

Result<void *> VendorLibrary::find(const std::string &function) const {
  if (void *address = ::dlsym(handle, function.c_str()))
    return address;
  return Error{ErrorFamily::Unsupported,
               "vendor.library",
               fmt::format("library '{}' has no function '{}'; name another "
                           "one in TESSERA_VENDOR_LIBRARY",
                           fileName, function),
               {}};
}

int32_t VendorLibrary::run(int threads, const std::function<int32_t()> &body) {
  if (!setThreads)
    return body();
  if (perCaller) {
    setThreads(threads);
    return body();
  }
  {
    std::shared_lock together(mutex);
    if (current == threads)
      return body();
  }
  std::unique_lock alone(mutex);
  if (current != threads) {
    setThreads(threads);
    current = threads;
  }
  return body();
}

} // namespace tessera
