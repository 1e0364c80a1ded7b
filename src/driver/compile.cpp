//===- compile.cpp - From a kernel to an executable -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/compile.h"

#include "driver/program.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

namespace tessera {

namespace {

struct Known {
  Executable executable;
  /// CompileRecord::key.
  std::string key;
};

/// A traced kernel and what it was compiled to, by shape.
struct Entry {
  explicit Entry(const Kernel &kernel) : kernel(kernel) {}

  /// Keeps the kernel's identity from being reused.
  Kernel kernel;
  std::mutex mutex;
  std::optional<Program> program;
  std::map<std::string, Known> executables;
};

class Cache {
public:
  static Cache &get() {
    static Cache cache;
    return cache;
  }

  std::shared_ptr<Entry> entry(const Kernel &kernel, const std::string &key) {
    std::lock_guard lock(mutex);
    std::shared_ptr<Entry> &entry = entries[{&kernel.state(), key}];
    if (!entry)
      entry = std::make_shared<Entry>(kernel);
    return entry;
  }

  void clear() {
    std::lock_guard lock(mutex);
    entries.clear();
  }

private:
  std::mutex mutex;
  std::map<std::pair<const void *, std::string>, std::shared_ptr<Entry>>
      entries;
};

std::string traceKey(const TraceOptions &options) {
  std::ostringstream key;
  key << name(options.storage) << ';' << int(options.tier);
  // All bits of a floating number: constants that differ are other kernels.
  key << std::hexfloat;
  for (const auto &[name, value] : options.constants)
    std::visit([&](auto v) { key << ';' << name << '=' << v; }, value);
  for (const std::string &name : options.present)
    key << ";+" << name;
  for (const auto &[name, value] : options.tunables)
    key << ';' << name << ':' << value;
  return key.str();
}

/// What a compilation depends on: extents, unit strides and overlaps.
std::string shapeKey(std::span<const Argument> arguments,
                     const CompileRequest &request) {
  std::ostringstream key;
  key << int(request.isa) << request.validate << int(request.vendor);
  for (const std::string &name : request.prepacked)
    key << ';' << name;
  std::vector<const TensorRef *> views;
  for (const Argument &argument : arguments) {
    key << '|';
    const auto *view = std::get_if<TensorRef>(&argument);
    if (!view)
      continue;
    for (int64_t axis = 0; axis < view->rank(); ++axis)
      key << view->extents[axis]
          << (view->extents[axis] <= 1 || view->strides[axis] == 1 ? "u,"
                                                                   : ",");
    for (size_t other = 0; other < views.size(); ++other)
      if (mayOverlap(*views[other], *view))
        key << '~' << other
            << (views[other]->data == view->data &&
                        views[other]->strides == view->strides &&
                        views[other]->extents == view->extents
                    ? "="
                    : "");
    views.push_back(view);
  }
  return key.str();
}

} // namespace

Result<Executable> compile(const Kernel &kernel,
                           std::span<const Argument> arguments,
                           const CompileOptions &options,
                           CompileRecord *record) {
  TraceOptions traceOptions = options.trace;
  size_t position = 0;
  for (const ParameterInfo &parameter : kernel.parameters()) {
    if (parameter.kind == ParameterInfo::Kind::Constant)
      continue;
    bool isAbsent =
        parameter.optional &&
        std::find(traceOptions.present.begin(), traceOptions.present.end(),
                  parameter.name) == traceOptions.present.end();
    if (isAbsent)
      continue;
    if (position >= arguments.size())
      break;
    const auto *view = std::get_if<TensorRef>(&arguments[position++]);
    if (view && parameter.kind == ParameterInfo::Kind::View &&
        !parameter.dtype) {
      traceOptions.storage = view->dtype;
      break;
    }
  }
  Result<Isa> isa = parseIsa(options.isa);
  if (!isa)
    return isa.error();
  Result<Vendor> vendor = parseVendor(options.vendor);
  if (!vendor) {
    Error error = vendor.error();
    error.message = "CompileOptions::vendor: " + error.message;
    return error;
  }
  CompileRequest request;
  request.isa = *isa;
  request.vendor = *vendor;
  request.prepacked = options.prepacked;
  request.validate = options.validate;
  request.useDiskCache = options.diskCache;

  std::shared_ptr<Entry> entry =
      Cache::get().entry(kernel, traceKey(traceOptions));
  std::lock_guard lock(entry->mutex);
  if (!entry->program) {
    Result<Program> traced = Program::fromKernel(kernel, traceOptions);
    if (!traced)
      return traced.error();
    entry->program.emplace(std::move(*traced));
  }
  std::string key = shapeKey(arguments, request);
  auto known = entry->executables.find(key);
  if (known != entry->executables.end()) {
    if (record)
      *record = {ExecutableOrigin::Memory, known->second.key, {}, {}};
    return known->second.executable;
  }
  Result<CompiledKernel> compiled =
      entry->program->compileFor(arguments, request);
  if (!compiled)
    return compiled.error();
  if (record)
    *record = compiled->cache;
  entry->executables.emplace(key,
                             Known{compiled->executable, compiled->cache.key});
  return compiled->executable;
}

std::string_view name(ExecutableOrigin origin) {
  switch (origin) {
  case ExecutableOrigin::Compiled:
    return "compiled";
  case ExecutableOrigin::Memory:
    return "memory";
  case ExecutableOrigin::Disk:
    return "disk";
  }
  return "";
}

Result<void> launch(const Kernel &kernel, std::span<const Argument> arguments,
                    const CompileOptions &options,
                    const LaunchOptions &launchOptions) {
  Result<Executable> executable = compile(kernel, arguments, options);
  if (!executable)
    return executable.error();
  return executable->launch(arguments, launchOptions);
}

void clearCompileCache() { Cache::get().clear(); }

} // namespace tessera
