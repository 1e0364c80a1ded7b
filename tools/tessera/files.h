//===- files.h - Files that the verbs write ---------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_FILES_H
#define TESSERA_TOOLS_TESSERA_FILES_H

#include "tessera/error.h"

#include <map>
#include <string>
#include <string_view>

namespace tessera::cli {

/// What "-" is to an option: texts and objects may go to standard output.
enum class Dash { IsStandardOutput, IsRefused };

/// The paths that a call will write, so that no two are one file.
class OutputPaths {
public:
  /// Takes `path` for `option`. Fails where it certainly cannot be written, or
  /// is the file of another option under any spelling.
  Result<void> take(const std::string &path, const std::string &option,
                    Dash dash);

private:
  /// Canonical path to option.
  std::map<std::string, std::string> taken;
};

/// Writes a file through a temporary name in the same folder; "-" is standard
/// output.
Result<void> writeFile(const std::string &path, std::string_view content,
                       std::string_view option);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_FILES_H
