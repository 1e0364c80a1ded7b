//===- link.h - From an object to a shared library --------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_LINK_H
#define TESSERA_TOOLS_TESSERA_LINK_H

#include "target/target.h"
#include "tessera/error.h"

#include <string>

namespace tessera::cli {

/// The bytes of a shared library made of one object, by a linker found in PATH:
/// LLD, which links for every target, or this machine's own for code of its
/// architecture. `name` is what programs that link against the library will ask
/// for; empty for none.
Result<std::string> linkShared(const std::string &object, const Target &target,
                               const std::string &name);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_LINK_H
