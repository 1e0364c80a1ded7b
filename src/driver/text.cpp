//===- text.cpp - Reading Tile IR text ------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/text.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace mlir;

namespace tessera {

/// The parser recurses once per nested region, type or attribute and would
/// exhaust the stack on hostile text.
static constexpr int64_t maxNesting = 256;
static constexpr uintmax_t maxTextBytes = 64 << 20;

Result<std::string> readTextFile(const std::string &path) {
  auto usage = [&](std::string why) {
    return Error{ErrorFamily::Usage, "usage.file",
                 "cannot read '" + path + "': " + why, {}};
  };
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    return usage("no such file");
  if (!std::filesystem::is_regular_file(path, code))
    return usage("not a regular file");
  uintmax_t size = std::filesystem::file_size(path, code);
  if (code)
    return usage(code.message());
  if (size > maxTextBytes)
    return usage("found " + std::to_string(size) + " bytes, expected at most " +
                 std::to_string(maxTextBytes));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return usage("reading failed");
  return text.str();
}

/// Fails where brackets nest too deeply, strings and comments aside.
static Result<void> checkNesting(const std::string &text,
                                 const std::string &fileName) {
  int64_t depth = 0;
  unsigned line = 1, column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    ++column;
    if (c == '\n') {
      ++line;
      column = 0;
    } else if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      while (i + 1 < text.size() && text[i + 1] != '\n')
        ++i;
    } else if (c == '"') {
      while (++i < text.size() && text[i] != '"' && text[i] != '\n') {
        ++column;
        if (text[i] == '\\')
          ++i;
      }
      if (i < text.size() && text[i] == '\n')
        --i;
    } else if (c == '{' || c == '(' || c == '[' || c == '<') {
      if (++depth > maxNesting)
        return Error{ErrorFamily::Diagnostic,
                     "text.nesting",
                     "brackets nest deeper than " +
                         std::to_string(maxNesting) + " levels",
                     {fileName, line, column}};
    } else if (c == '}' || c == ')' || c == ']' || c == '>') {
      // The arrow is not a bracket.
      if (c != '>' || i == 0 || text[i - 1] != '-')
        --depth;
    }
  }
  return {};
}

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

Result<OwningOpRef<ModuleOp>> parseTileText(const std::string &text,
                                            const std::string &fileName,
                                            MLIRContext &context) {
  if (Result<void> nesting = checkNesting(text, fileName); !nesting)
    return nesting.error();
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
      first = Error{ErrorFamily::Diagnostic, "text.invalid",
                    "the text is not a module", {fileName, 1, 1}};
    if (further > 0)
      first->message += " (and " + std::to_string(further) + " more)";
    return *first;
  }
  auto version =
      (*module)->getAttrOfType<IntegerAttr>("tile.version");
  auto at = [&](std::string message) {
    return Error{ErrorFamily::Diagnostic, "text.version", std::move(message),
                 {fileName, 1, 1}};
  };
  if (!version)
    return at("the module carries no version; expected 'module attributes "
              "{tile.version = " +
              std::to_string(tile::textVersion) + " : i64}'");
  if (version.getValue() != tile::textVersion)
    return at("found Tile IR version " +
              std::to_string(version.getValue().getSExtValue()) +
              ", this build reads version " +
              std::to_string(tile::textVersion));
  return module;
}

Result<tile::KernelOp> findKernel(ModuleOp module, const std::string &fileName,
                                  const std::string &name) {
  tile::KernelOp found;
  std::string names;
  for (tile::KernelOp kernel : module.getOps<tile::KernelOp>()) {
    names += (names.empty() ? "" : ", ") + kernel.getSymName().str();
    if (!name.empty() && kernel.getSymName() != name)
      continue;
    if (found)
      return Error{ErrorFamily::Usage, "usage.kernel",
                   "'" + fileName + "' holds several kernels; name one of " +
                       names,
                   {}};
    found = kernel;
  }
  if (!found)
    return Error{ErrorFamily::Usage, "usage.kernel",
                 "'" + fileName + "' holds no kernel" +
                     (name.empty() ? "" : " '" + name + "'; it has " + names),
                 {}};
  return found;
}

} // namespace tessera
