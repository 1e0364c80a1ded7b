//===- session/extents.h - Dimensions from what the user gave ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_EXTENTS_H
#define TESSERA_SESSION_EXTENTS_H

#include "session/session.h"

namespace tessera::session {

/// The extents of all dimensions of an operator: those given, those that given
/// arrays imply, and, if none is given, the operator's defaults. Fails with a
/// Usage error where two sources disagree, an array has a wrong rank, or a
/// dimension stays open.
Result<kernels::Dims> operatorDims(const kernels::Operator &op,
                                   const RunRequest &request);

/// The extents of all parameters of a program, in order; empty for scalars.
Result<std::vector<std::vector<int64_t>>>
programExtents(const Program &program, const RunRequest &request);

/// "[17, 65]".
std::string describeExtents(const std::vector<int64_t> &extents);

} // namespace tessera::session

#endif // TESSERA_SESSION_EXTENTS_H
