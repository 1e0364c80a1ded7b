//===- report.h - The execution report --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_REPORT_H
#define TESSERA_DRIVER_REPORT_H

#include "driver/pipeline.h"

namespace tessera {

/// The execution report of a compilation as JSON text: plan, passes, loops,
/// allocations, numerics, machine facts, work. It is derived from what was
/// applied and emitted.
std::string makeReport(const PipelineResult &compiled,
                       const ExecutableInfo &info, tile::KernelOp kernel,
                       const CompileRequest &request);

} // namespace tessera

#endif // TESSERA_DRIVER_REPORT_H
