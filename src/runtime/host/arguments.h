//===- arguments.h - Checking and binding the arguments of a launch --*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checks every launch does, and the arrays that compiled code reads its
// arguments from.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_HOST_ARGUMENTS_H
#define TESSERA_RUNTIME_HOST_ARGUMENTS_H

#include "support/inline_vector.h"
#include "tessera/executable.h"

#include <cstdint>
#include <span>
#include <string>

namespace tessera::runtime {

/// What a StageEntry is called with; see its comment for the layout.
struct BoundArguments {
  support::InlineVector<void *, 12> data;
  support::InlineVector<int64_t, 40> strides;
  support::InlineVector<uint64_t, 8> scalars;
};

/// Checks `arguments` against what the kernel accepts and fills `bound`. The
/// first mistake found, in parameter order, is returned as a Launch error;
/// overlap is checked last.
Result<void> bindArguments(const ExecutableInfo &info,
                           std::span<const Argument> arguments,
                           BoundArguments &bound);

/// Whether an array is what the parameter says, overlap with others aside.
Result<void> checkArray(const ViewParameter &parameter,
                        const TensorRef &tensor);

/// One line that repeats a launch as far as a command line can: the kernel's
/// command, scalars, threads (0 prints none) and what the options add, then a
/// comment with dtype, extents and strides of each view.
std::string describeLaunch(const ExecutableInfo &info,
                           std::span<const Argument> arguments,
                           const LaunchOptions &options);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_HOST_ARGUMENTS_H
