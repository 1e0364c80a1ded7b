//===- tessera/compile.h - From a kernel to an executable -------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//     std::vector<Argument> arguments = {x, w, y, 1e-6};
//     if (Result<void> done = launch(rms, arguments); !done)
//       std::cerr << done.error().str() << "\n";
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILE_H
#define TESSERA_COMPILE_H

#include "tessera/dsl/kernel.h"
#include "tessera/executable.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What a compilation fixes beside the shapes of its arguments. Everything has
/// a default.
struct CompileOptions {
  /// What the trace fixes. `storage` is taken from the arguments of `Float`
  /// parameters where there are any.
  TraceOptions trace;
  /// "x86-64", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "avx512-amx", or
  /// "native" for the best this machine has.
  std::string isa = "native";
  /// Check indices that are read from arrays before anything is written.
  bool validate = false;
  /// "none", "cblas" or "onednn": the library that is to compute the whole
  /// kernel. An error where the kernel is not proved to be a product that it
  /// offers, or the library is not installed (docs/howto/vendor.md).
  std::string vendor = "none";
  /// Arrays, by name, that launches take as Executable::pack makes them: the
  /// weights of many products. An error where the kernel does not read one so
  /// that it can be packed.
  std::vector<std::string> prepacked;
  /// Keep executables on disk for later processes of this user, and take them
  /// from there (docs/cli.md, cache).
  bool diskCache = true;
};

/// Where an executable came from.
enum class ExecutableOrigin {
  /// It was compiled by this call.
  Compiled,
  /// An earlier call of this process got it.
  Memory,
  /// It was read from disk.
  Disk,
};

/// "compiled", "memory", "disk".
std::string_view name(ExecutableOrigin origin);

/// How a call came by its executable.
struct CompileRecord {
  ExecutableOrigin origin = ExecutableOrigin::Compiled;
  /// The name of the executable on disk; empty where none is looked for.
  std::string key;
  /// Of one that was compiled: why it was not taken from disk, and what keeps
  /// it from being there the next time; empty for nothing.
  std::string whyCompiled;
  std::string whyNotKept;
};

/// Compiles `kernel` for arguments of these shapes, strides and overlaps; their
/// contents do not matter. Arguments are in parameter order, without constants
/// and absent optional parameters. The result is kept in memory: a second call
/// with the same kernel and shapes returns the same executable. It is also kept
/// on disk, where other processes find it. Thread-safe.
///
/// `record`, if it is given, tells where the executable came from.
///
/// Errors: Diagnostic for a wrong kernel, Launch for arguments that do not fit
/// it, Unsupported for what this machine or build cannot do. That nothing can
/// be kept on disk is no error.
Result<Executable> compile(const Kernel &kernel,
                           std::span<const Argument> arguments,
                           const CompileOptions &options = {},
                           CompileRecord *record = nullptr);

/// compile() and Executable::launch().
Result<void> launch(const Kernel &kernel, std::span<const Argument> arguments,
                    const CompileOptions &options = {},
                    const LaunchOptions &launchOptions = {});

/// Forgets the executables compile() has kept in memory; those in use stay
/// valid.
void clearCompileCache();

} // namespace tessera

#endif // TESSERA_COMPILE_H
