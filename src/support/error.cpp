//===- error.cpp - Printing errors and exit codes -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text form of an Error and the command line's exit status of its family.
//
//===----------------------------------------------------------------------===//

#include "tessera/error.h"

namespace tessera {

std::string Error::str() const {
  std::string text;
  if (!where.file.empty()) {
    text += where.file;
    if (where.line != 0) {
      text += ':' + std::to_string(where.line);
      if (where.column != 0)
        text += ':' + std::to_string(where.column);
    }
    text += ": ";
  }
  text += "error: ";
  text += message;
  if (!code.empty())
    text += " [" + code + "]";
  return text;
}

int exitCode(ErrorFamily family) {
  switch (family) {
  case ErrorFamily::Diagnostic:
  case ErrorFamily::Launch:
  case ErrorFamily::Usage:
    return 2;
  case ErrorFamily::Unsupported:
    return 3;
  case ErrorFamily::Internal:
    return 4;
  }
  return 4;
}

} // namespace tessera
