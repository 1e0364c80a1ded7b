//===- packed.h - Arrays in the layout of one executable --------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_HOST_PACKED_H
#define TESSERA_RUNTIME_HOST_PACKED_H

#include "tessera/buffer.h"
#include "tessera/executable.h"

#include <string>

namespace tessera {

/// What a Packed refers to.
struct PackedArray {
  Buffer panels;
  /// PackedParameter::tag of what it was packed for.
  std::string tag;
  /// For messages: "'b' of kernel 'gemm', 1024x4096 f32".
  std::string what;
};

namespace runtime {

/// The address of the panels for parameter `number`, which takes them; a Launch
/// error where the argument is no packed array, an empty one, or one that was
/// packed for something else.
Result<void *> bindPacked(const ExecutableInfo &info, size_t number,
                          const Argument &argument);

} // namespace runtime
} // namespace tessera

#endif // TESSERA_RUNTIME_HOST_PACKED_H
