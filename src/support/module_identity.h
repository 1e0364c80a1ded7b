//===- support/module_identity.h - Which build of code runs -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs and shared libraries as parts of keys: what was made by one build of
// some code must not be taken for what another build would make.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_MODULE_IDENTITY_H
#define TESSERA_SUPPORT_MODULE_IDENTITY_H

#include <string>

namespace tessera::support {

/// Names the content of the program or shared library that holds an address:
/// "build 12aa816b..." where the linker left a build identifier, else path,
/// size and time of the last change of its file. Empty where neither can be
/// told.
std::string moduleIdentity(const void *address);

/// The same for this process's program.
std::string programIdentity();

} // namespace tessera::support

#endif // TESSERA_SUPPORT_MODULE_IDENTITY_H
