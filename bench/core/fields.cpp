//===- bench/core/fields.cpp - Fields of JSON files -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/fields.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace tessera::bench {

using nlohmann::json;

namespace {

Error usage(const std::string &code, std::string message) {
  return {ErrorFamily::Usage, code, std::move(message), {}};
}

template <typename Test> bool all(const json &values, Test test) {
  return std::all_of(values.begin(), values.end(), test);
}

bool isText(const json &value) { return value.is_string(); }

bool isOfKind(const json &value, FieldKind kind) {
  switch (kind) {
  case FieldKind::Text:
    return value.is_string();
  case FieldKind::Flag:
    return value.is_boolean();
  case FieldKind::Whole:
    return value.is_number_integer() && value >= 0 &&
           value <= std::numeric_limits<int>::max();
  case FieldKind::List:
    return value.is_array();
  case FieldKind::Texts:
    return value.is_array() && all(value, isText);
  case FieldKind::Objects:
    return value.is_array() &&
           all(value, [](const json &item) { return item.is_object(); });
  case FieldKind::Object:
    return value.is_object();
  case FieldKind::ObjectOfTexts:
    return value.is_object() && all(value, isText);
  }
  return false;
}

std::string_view nameOf(FieldKind kind) {
  switch (kind) {
  case FieldKind::Text:
    return "a text";
  case FieldKind::Flag:
    return "true or false";
  case FieldKind::Whole:
    return "a whole number of at least 0";
  case FieldKind::List:
    return "a list";
  case FieldKind::Texts:
    return "a list of texts";
  case FieldKind::Objects:
    return "a list of objects";
  case FieldKind::Object:
    return "an object";
  case FieldKind::ObjectOfTexts:
    return "an object of texts";
  }
  return "";
}

} // namespace

std::string shownValue(const json &value) {
  constexpr size_t longest = 40;
  // Bytes that are no UTF-8 are replaced: a message is no place to fail.
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                json::error_handler_t::replace);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

Result<void> checkFields(const json &value, std::span<const Field> fields,
                         OtherFields others, const std::string &code,
                         const std::string &where) {
  if (!value.is_object())
    return usage(code, fmt::format("{}: found {}, expected an object", where,
                                   shownValue(value)));
  for (const Field &field : fields) {
    auto found = value.find(field.name);
    if (found == value.end()) {
      if (field.isRequired)
        return usage(code, fmt::format("{}: field '{}' is missing, expected {}",
                                       where, field.name, nameOf(field.kind)));
    } else if (!isOfKind(*found, field.kind)) {
      return usage(code, fmt::format("{}: field '{}' is {}, expected {}", where,
                                     field.name, shownValue(*found),
                                     nameOf(field.kind)));
    }
  }
  if (others == OtherFields::AreIgnored)
    return {};
  for (const auto &[name, unused] : value.items()) {
    bool isKnown =
        std::any_of(fields.begin(), fields.end(),
                    [&](const Field &field) { return field.name == name; });
    if (isKnown)
      continue;
    std::vector<std::string_view> names;
    for (const Field &field : fields)
      names.push_back(field.name);
    return usage(code,
                 fmt::format("{}: unknown field '{}', expected some of {}",
                             where, name, fmt::join(names, ", ")));
  }
  return {};
}

json parseJson(const std::string &text, bool hasComments) {
  // Values are copied and printed by functions that call themselves, and
  // Python reads no deeper ones either.
  constexpr int deepest = 100;
  bool isDeep = false;
  json value = json::parse(
      text,
      [&](int depth, json::parse_event_t, json &) {
        isDeep |= depth > deepest;
        return !isDeep;
      },
      /*allow_exceptions=*/false, hasComments);
  return isDeep ? json(json::value_t::discarded) : value;
}

Result<json> readJsonFile(const std::string &file, const std::string &code,
                          std::string_view what) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return usage(code, fmt::format("cannot read {} '{}': it is a directory",
                                   what, file));
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::stringstream content;
  if (stream)
    content << stream.rdbuf();
  if (!stream)
    return usage(code,
                 fmt::format("cannot read {} '{}': {}", what, file,
                             errno ? std::strerror(errno) : "reading failed"));
  std::string text = content.str();
  json value = parseJson(text, /*hasComments=*/true);
  if (!value.is_discarded())
    return value;
  // Once more, for the place.
  try {
    auto discard = [](int, json::parse_event_t, json &) { return false; };
    (void)json::parse(text, discard, /*allow_exceptions=*/true,
                      /*ignore_comments=*/true);
    return usage(code, fmt::format("{} '{}' is nested too deep, expected at "
                                   "most 100 levels",
                                   what, file));
  } catch (const json::out_of_range &problem) {
    return usage(code, fmt::format("{} '{}' has a number that is too large: {}",
                                   what, file, problem.what()));
  } catch (const json::parse_error &problem) {
    // The library counts bytes from 1.
    size_t end = std::min(text.size(), std::max<size_t>(problem.byte, 1) - 1);
    auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end),
                       '\n');
    return usage(
        code,
        fmt::format("{} '{}': line {} is not JSON{}", what, file, line,
                    end == text.size() ? ": the file ends too early" : ""));
  }
}

} // namespace tessera::bench
