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
};

/// Compiles `kernel` for arguments of these shapes, strides and overlaps; their
/// contents do not matter. Arguments are in parameter order, without constants
/// and absent optional parameters. The result is kept in memory: a second call
/// with the same kernel and shapes returns the same executable. Thread-safe.
///
/// Errors: Diagnostic for a wrong kernel, Launch for arguments that do not fit
/// it, Unsupported for what this machine or build cannot do.
Result<Executable> compile(const Kernel &kernel,
                           std::span<const Argument> arguments,
                           const CompileOptions &options = {});

/// compile() and Executable::launch().
Result<void> launch(const Kernel &kernel, std::span<const Argument> arguments,
                    const CompileOptions &options = {},
                    const LaunchOptions &launchOptions = {});

/// Forgets the executables compile() has kept; those in use stay valid.
void clearCompileCache();

} // namespace tessera

#endif // TESSERA_COMPILE_H
