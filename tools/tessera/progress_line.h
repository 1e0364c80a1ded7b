//===- progress_line.h - One line that is rewritten -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_PROGRESS_LINE_H
#define TESSERA_TOOLS_TESSERA_PROGRESS_LINE_H

#include "tools/tessera/command_line.h"

#include <string>
#include <unistd.h>

namespace tessera::cli {

/// One line on standard error that is rewritten, on a terminal alone.
class ProgressLine {
public:
  ProgressLine() : isTerminal(isatty(STDERR_FILENO)) {}
  void show(const std::string &text) {
    if (isTerminal)
      printError("\r\033[K{:.{}}", text, 100);
  }
  void clear() {
    if (isTerminal)
      printError("\r\033[K");
  }

private:
  bool isTerminal;
};

/// "12 s left".
inline std::string leftText(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s left", seconds)
                      : fmt::format("{:.0f} min left", seconds / 60);
}

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_PROGRESS_LINE_H
