//===- header.h - The C header of an exported kernel ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_HEADER_H
#define TESSERA_TOOLS_TESSERA_HEADER_H

#include "driver/program.h"

#include <string>

namespace tessera::cli {

/// A C99 and C++ header that declares the stage functions of an object and says
/// what their arguments must be.
std::string makeHeader(const CompiledKernel &kernel, const Target &target);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_HEADER_H
