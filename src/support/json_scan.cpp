//===- json_scan.cpp - What a file may be before it is read ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/json_scan.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include <set>
#include <vector>

namespace tessera::support {

namespace {

using Json = nlohmann::json;

/// Looks at every token: text that is no JSON, fields that stand twice and
/// nesting without end have a place here, which the parsed value has lost.
class Scan : public nlohmann::json_sax<Json> {
public:
  explicit Scan(std::string_view expected) : expected(expected) {}

  std::string problem;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t &) override {
    return value();
  }
  bool string(string_t &) override { return value(); }
  bool binary(binary_t &) override { return value(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t &text) override {
    Level &level = levels.back();
    if (level.fields.size() == mostJsonFields) {
      problem = fmt::format("{}: found more than {} fields, expected the form "
                            "of {}",
                            path(levels.size() - 1), mostJsonFields, expected);
      return false;
    }
    level.field = text;
    if (level.fields.insert(text).second)
      return true;
    problem = path(levels.size()) + ": found the field twice, expected it once";
    return false;
  }

  bool parse_error(std::size_t, const std::string &,
                   const nlohmann::detail::exception &error) override {
    std::string_view what = error.what();
    const size_t place = what.find("line ");
    what.remove_prefix(place == what.npos ? 0 : place);
    // The token in the middle may be as long as the file.
    constexpr size_t ends = 100;
    problem = fmt::format("found no JSON, expected {}: {}", expected,
                          what.size() <= 2 * ends
                              ? std::string(what)
                              : fmt::format("{} ... {}", what.substr(0, ends),
                                            what.substr(what.size() - ends)));
    return false;
  }

private:
  struct Level {
    std::set<std::string> fields;
    std::string field;
    size_t element = 0;
  };

  /// Where the innermost of so many levels is read.
  std::string path(size_t count) const {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      if (levels[i].fields.empty())
        text += fmt::format("[{}]", levels[i].element);
      else
        text += (text.empty() ? "" : ".") + excerpt(levels[i].field);
    return text.empty() ? "the whole" : text;
  }
  bool value() {
    if (!levels.empty())
      ++levels.back().element;
    return true;
  }
  bool open() {
    if (levels.size() == mostJsonNesting) {
      problem = fmt::format("{}: found more than {} levels of nesting, "
                            "expected the form of {}",
                            path(levels.size()), mostJsonNesting, expected);
      return false;
    }
    levels.emplace_back();
    return true;
  }
  bool close() {
    levels.pop_back();
    return value();
  }

  std::string_view expected;
  std::vector<Level> levels;
};

} // namespace

std::string jsonProblem(std::string_view text, std::string_view expected) {
  Scan scan(expected);
  return Json::sax_parse(text, &scan) ? std::string() : scan.problem;
}

std::string excerpt(std::string_view text, size_t most) {
  if (text.size() <= most)
    return std::string(text);
  size_t end = most;
  // Not in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return fmt::format("{} ... ({} bytes)", text.substr(0, end), text.size());
}

} // namespace tessera::support
