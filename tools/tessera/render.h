//===- render.h - Numbers and plans for people ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_RENDER_H
#define TESSERA_TOOLS_TESSERA_RENDER_H

#include "session/session.h"

#include "nlohmann/json_fwd.hpp"

#include <cstdint>
#include <string>

namespace tessera::cli {

/// "3.42 us", "1.2 ms": three significant digits.
std::string timeText(double seconds);

/// "48 KiB", "2 MiB"; plain bytes where they are no whole KiB.
std::string sizeText(int64_t bytes);

/// The text, cut at a word with " ..." when it is longer than `width`.
std::string shortened(const std::string &text, size_t width);

/// The execution report as a page for people: plan, reasons, passes, loops,
/// machine facts.
std::string renderReport(const std::string &report);

/// What a run measured, as the report has it.
nlohmann::ordered_json measuredJson(const session::RunResult &result,
                                    const WorkEstimate &work);

} // namespace tessera::cli

#endif // TESSERA_TOOLS_TESSERA_RENDER_H
