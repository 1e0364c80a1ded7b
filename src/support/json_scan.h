//===- json_scan.h - What a file may be before it is read ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files that people edit and exchange hold anything. JSON is looked at token by
// token before a value is made of it, whose making and destruction take memory
// for every level and time for every pair of fields.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SUPPORT_JSON_SCAN_H
#define TESSERA_SUPPORT_JSON_SCAN_H

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::support {

/// Deeper than any file of ours.
constexpr size_t mostJsonNesting = 16;
/// More than any object in a file of ours has.
constexpr size_t mostJsonFields = 10000;

/// Why the text is not JSON of that depth and width with each field once, with
/// the place; empty if it is. `expected` names what the file should hold.
std::string jsonProblem(std::string_view text, std::string_view expected);

/// What a file holds, for a message: cut off if it has more bytes.
std::string excerpt(std::string_view text, size_t most = 60);

} // namespace tessera::support

#endif // TESSERA_SUPPORT_JSON_SCAN_H
