//===- load_kernel.h - From an object to an executable ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_LOAD_KERNEL_H
#define TESSERA_DRIVER_LOAD_KERNEL_H

#include "driver/program.h"
#include "plan/plan_record.h"

namespace tessera {

/// What code generation leaves of a kernel. Stages have symbols and no entry.
struct KernelCode {
  const std::string &object;
  std::vector<Stage> stages;
  std::vector<PackedParameter> packs;
  std::vector<Error> checks;
  /// The library's function that the object calls.
  std::optional<VendorCall> vendor = {};
};

/// The runtime's half of a kernel, with its code loaded where this machine runs
/// the request's level.
Result<ExecutableInfo>
loadKernel(const std::string &name,
           const std::vector<ProgramParameter> &parameters,
           const CompileRequest &request, KernelCode code);

} // namespace tessera

#endif // TESSERA_DRIVER_LOAD_KERNEL_H
