//===- bench/core/fields.h - Fields of JSON files ---------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// People write suites and may edit peers.json: what is wrong in such a file is
// told by field, with what was found and what was expected. Code that has
// checked an object may then read its fields without further ado.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_FIELDS_H
#define TESSERA_BENCH_CORE_FIELDS_H

#include "tessera/error.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <string_view>

namespace tessera::bench {

enum class FieldKind {
  Text,
  Flag,
  /// A whole number that an int holds, at least 0.
  Whole,
  List,
  Texts,
  Objects,
  Object,
  ObjectOfTexts,
};

struct Field {
  std::string_view name;
  FieldKind kind;
  bool isRequired = false;
};

enum class OtherFields { AreRefused, AreIgnored };

/// Fails with Usage and `code` unless `value` is an object, has every required
/// field, and each field is of its kind. `where` begins the message: the file
/// and the path to the object.
Result<void> checkFields(const nlohmann::json &value,
                         std::span<const Field> fields, OtherFields others,
                         const std::string &code, const std::string &where);

/// A value as text for a message, cut when it is long.
std::string shownValue(const nlohmann::json &value);

/// A text as JSON; discarded where it is none, holds a number that no double
/// holds, or is nested deeper than 100 levels.
nlohmann::json parseJson(const std::string &text, bool hasComments = false);

/// The JSON of a file, which may have comments. Fails with Usage and `code`
/// where it cannot be read or is none: the message begins with `what` and the
/// path, and says the line.
Result<nlohmann::json> readJsonFile(const std::string &file,
                                    const std::string &code,
                                    std::string_view what);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_FIELDS_H
