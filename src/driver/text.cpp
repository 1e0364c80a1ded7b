//===- text.cpp - Reading Tile IR text ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/text.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

using namespace mlir;

namespace tessera {

/// The parser recurses once per nested region, type or attribute and would
/// exhaust the stack on hostile text.
static constexpr int64_t maxNesting = 256;
static constexpr int64_t maxTextBytes = 64 << 20;

Result<std::string> readTextFile(const std::string &path) {
  auto usage = [&](std::string why) {
    return Error{ErrorFamily::Usage,
                 "usage.file",
                 "cannot read '" + path + "': " + why,
                 {}};
  };
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return usage("no such file");
  if (!std::filesystem::is_regular_file(path, code))
    return usage("not a regular file");
  uintmax_t size = std::filesystem::file_size(path, code);
  if (code)
    return usage(code.message());
  if (size > static_cast<uintmax_t>(maxTextBytes))
    return usage("found " + std::to_string(size) + " bytes, expected at most " +
                 std::to_string(maxTextBytes));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return usage("reading failed");
  return text.str();
}

namespace {

/// Reads text as the parser's lexer does, as far as nesting needs it, and fails
/// where the parser would recurse too deeply or take too long: at brackets, at
/// aliases that stand for nested or ever longer text, at numbers of very many
/// digits, and at affine maps, which Tile IR does without and whose expressions
/// recurse at every operator.
class NestingCheck {
public:
  NestingCheck(const std::string &text, const std::string &fileName)
      : text(text), fileName(fileName) {}

  Result<void> run() {
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (c == '\n') {
        ++line;
        lineBegin = at + 1;
        continue;
      }
      if (llvm::isSpace(c))
        continue;
      if (c == '/' && peek() == '/') {
        while (at + 1 < text.size() && text[at + 1] != '\n')
          ++at;
        continue;
      }
      bool isArrow = c == '>' && last == '-';
      if (Result<void> result = token(c); !result)
        return result;
      last = text[at];
      continues = last == '=' || isArrow;
    }
    return {};
  }

private:
  /// What an alias stands for.
  struct Alias {
    int64_t depth = 0;
    int64_t length = 0;
  };
  static constexpr int64_t maxAliasLength = 1 << 16;
  static constexpr size_t maxNumberLength = 1024;

  char peek() const { return at + 1 < text.size() ? text[at + 1] : '\0'; }

  Error fail(std::string message) const {
    return Error{ErrorFamily::Diagnostic,
                 "text.nesting",
                 std::move(message),
                 {fileName, line, static_cast<unsigned>(at - lineBegin + 1)}};
  }

  Result<void> token(char c) {
    if (c == '"')
      return skipString();
    if (c == '#' || c == '!')
      return aliasOrDialectName();
    if (llvm::isAlpha(c) || c == '_')
      return word();
    if (llvm::isDigit(c))
      return number();
    ++current.length;
    if (c == '{' || c == '(' || c == '[' || c == '<') {
      ++depth;
      return reach(depth);
    }
    // The arrow is not a bracket.
    bool closes = c == '}' || c == ')' || c == ']' || (c == '>' && last != '-');
    if (closes && depth > 0)
      --depth;
    return {};
  }

  Result<void> reach(int64_t level) {
    current.depth = std::max(current.depth, level);
    if (level > maxNesting)
      return fail("brackets nest deeper than " + std::to_string(maxNesting) +
                  " levels");
    return {};
  }

  Result<void> skipString() {
    size_t begin = at;
    while (++at < text.size() && text[at] != '"' && text[at] != '\n')
      if (text[at] == '\\' && peek() != '\n')
        ++at;
    // An unfinished string is the parser's to report.
    if (at < text.size() && text[at] == '\n')
      --at;
    current.length += static_cast<int64_t>(at - begin);
    return {};
  }

  std::string name() {
    size_t begin = at;
    auto isPart = [](char c) {
      return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
    };
    while (at + 1 < text.size() && isPart(text[at + 1])) {
      // "f32->f32" ends before the arrow.
      if (text[at + 1] == '-' && at + 2 < text.size() && text[at + 2] == '>')
        break;
      ++at;
    }
    return text.substr(begin, at - begin + 1);
  }

  Result<void> word() {
    bool beginsLine =
        text.find_first_not_of(" \t\r", lineBegin) == at && depth == 0;
    std::string found = name();
    current.length += static_cast<int64_t>(found.size());
    if (found == "affine_map" || found == "affine_set")
      return fail("found '" + found + "', which Tile IR text does not use");
    // An op of the top level ends an alias's definition.
    if (beginsLine && !continues)
      finishAlias();
    return {};
  }

  /// The parser takes time quadratic in the digits, and reads what no f64 holds
  /// as infinity.
  Result<void> number() {
    size_t begin = at;
    bool startsHere = begin == 0 || (!llvm::isAlnum(text[begin - 1]) &&
                                     text[begin - 1] != '.');
    if (startsHere && std::isinf(std::strtod(decimal().c_str(), nullptr)))
      return fail("found the number " + decimal() + ", which no f64 holds");
    while (llvm::isAlnum(peek()))
      ++at;
    size_t length = at - begin + 1;
    current.length += static_cast<int64_t>(length);
    if (length <= maxNumberLength)
      return {};
    at = begin;
    return fail("found a number of " + std::to_string(length) +
                " characters, expected at most " +
                std::to_string(maxNumberLength));
  }

  /// The floating-point literal that begins here; empty for other numbers and
  /// for those that are too long.
  std::string decimal() const {
    auto digits = [&](size_t from) {
      while (from < text.size() && llvm::isDigit(text[from]))
        ++from;
      return from;
    };
    size_t end = digits(at);
    if (end == text.size() || text[end] != '.')
      return {};
    end = digits(end + 1);
    if (end < text.size() && llvm::toLower(text[end]) == 'e') {
      size_t sign = end + 1;
      if (sign < text.size() && (text[sign] == '+' || text[sign] == '-'))
        ++sign;
      if (size_t last = digits(sign); last > sign)
        end = last;
    }
    return end - at > maxNumberLength ? std::string()
                                      : text.substr(at, end - at);
  }

  Result<void> aliasOrDialectName() {
    std::string found = name();
    size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    bool defines = next != text.npos && text[next] == '=' &&
                   (next + 1 == text.size() || text[next + 1] != '=');
    if (defines && depth == 0) {
      finishAlias();
      defining = found;
      return {};
    }
    auto known = aliases.find(found);
    if (known == aliases.end()) {
      current.length += static_cast<int64_t>(found.size());
      return {};
    }
    // Types and attributes are printed in full at every use.
    expanded += known->second.length;
    if (expanded > maxTextBytes)
      return fail("the text stands for more than " +
                  std::to_string(maxTextBytes) +
                  " characters where its aliases are written out");
    current.length += known->second.length;
    if (current.length > maxAliasLength && !defining.empty())
      return fail("'" + defining + "' stands for more than " +
                  std::to_string(maxAliasLength) + " characters");
    return reach(depth + 1 + known->second.depth);
  }

  void finishAlias() {
    if (!defining.empty())
      aliases[defining] = current;
    defining.clear();
    current = {};
  }

  const std::string &text;
  const std::string &fileName;
  size_t at = 0;
  size_t lineBegin = 0;
  unsigned line = 1;
  int64_t depth = 0;
  /// Characters that the aliases used so far stand for.
  int64_t expanded = 0;
  /// The last character that is no space.
  char last = '\0';
  /// It was "=" or "->", after which a definition goes on.
  bool continues = false;
  /// The alias being defined, empty for none.
  std::string defining;
  Alias current;
  std::map<std::string, Alias> aliases;
};

} // namespace

static SourcePosition positionOf(Location loc) {
  SourcePosition position;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    position = {file.getFilename().str(), file.getLine(), file.getColumn()};
    return WalkResult::interrupt();
  });
  return position;
}

Result<void> checkTextLimits(const std::string &text,
                             const std::string &fileName) {
  return NestingCheck(text, fileName).run();
}

/// Where the text writes `word` outside a comment; the beginning if nowhere.
static SourcePosition positionOfWord(StringRef text, StringRef word,
                                     const std::string &fileName) {
  SourcePosition position{fileName, 1, 1};
  unsigned number = 0;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    ++number;
    size_t column = line.take_front(line.find("//")).find(word);
    if (column != StringRef::npos)
      return {fileName, number, static_cast<unsigned>(column + 1)};
    text = rest;
  }
  return position;
}

Result<OwningOpRef<ModuleOp>> parseTileText(const std::string &text,
                                            const std::string &fileName,
                                            MLIRContext &context) {
  if (Result<void> status = checkTextLimits(text, fileName); !status)
    return status.error();
  std::optional<Error> first;
  int64_t further = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    if (first)
      ++further;
    else
      first = Error{ErrorFamily::Diagnostic, "text.invalid", diagnostic.str(),
                    positionOf(diagnostic.getLocation())};
    return success();
  });
  ParserConfig config(&context);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, config, fileName);
  if (!module) {
    if (!first)
      first = Error{ErrorFamily::Diagnostic,
                    "text.invalid",
                    "the text is not a module",
                    {fileName, 1, 1}};
    if (further > 0)
      first->message += " (and " + std::to_string(further) + " more)";
    return *first;
  }
  Attribute found = (*module)->getAttr("tile.version");
  // A truth value is stored as an integer of one bit.
  auto version = dyn_cast_or_null<IntegerAttr>(found);
  if (version && version.getType().isInteger(1))
    version = nullptr;
  auto at = [&](std::string message) {
    return Error{
        ErrorFamily::Diagnostic, "text.version", std::move(message),
        positionOfWord(text, found ? "tile.version" : "module", fileName)};
  };
  if (found && !version) {
    std::string shown;
    llvm::raw_string_ostream(shown) << found;
    constexpr size_t longest = 60;
    if (shown.size() > longest)
      shown = shown.substr(0, longest) + "...";
    return at("found tile.version = " + shown + ", expected the integer " +
              std::to_string(tile::textVersion));
  }
  if (!version)
    return at("the module carries no version; expected 'module attributes "
              "{tile.version = " +
              std::to_string(tile::textVersion) + " : i64}'");
  if (version.getValue() != tile::textVersion)
    return at("found Tile IR version " +
              llvm::toString(version.getValue(), 10, /*Signed=*/true) +
              ", this build reads version " +
              std::to_string(tile::textVersion));
  return module;
}

Result<tile::KernelOp> findKernel(ModuleOp module, const std::string &fileName,
                                  const std::string &name) {
  // Enough to choose from.
  constexpr size_t maxNames = 32;
  tile::KernelOp found;
  std::string names;
  size_t count = 0, matches = 0;
  for (tile::KernelOp kernel : module.getOps<tile::KernelOp>()) {
    if (count++ < maxNames)
      names += (names.empty() ? "" : ", ") + kernel.getSymName().str();
    if (!name.empty() && kernel.getSymName() != name)
      continue;
    ++matches;
    found = kernel;
  }
  if (count > maxNames)
    names += " and " + std::to_string(count - maxNames) + " more";
  if (matches > 1)
    return Error{ErrorFamily::Usage,
                 "usage.kernel",
                 "'" + fileName + "' holds several kernels; name one of " +
                     names,
                 {}};
  if (!found)
    return Error{ErrorFamily::Usage,
                 "usage.kernel",
                 "'" + fileName + "' holds no kernel" +
                     (name.empty() ? ""
                                   : " '" + name + "'; it has " +
                                         (names.empty() ? "none" : names)),
                 {}};
  return found;
}

} // namespace tessera
