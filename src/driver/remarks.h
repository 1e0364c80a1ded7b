//===- remarks.h - What an author could change ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_REMARKS_H
#define TESSERA_DRIVER_REMARKS_H

#include "driver/pipeline.h"

namespace tessera {

/// What the kernel as it is written made unavoidable and what it costs, each
/// with what its author could change. Nothing where nothing is in the way.
std::vector<Reason> remarksOn(const PipelineResult &compiled,
                              const ExecutableInfo &info, tile::Tier tier);

} // namespace tessera

#endif // TESSERA_DRIVER_REMARKS_H
