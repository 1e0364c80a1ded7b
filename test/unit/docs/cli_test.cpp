//===- docs/cli_test.cpp - The command line's reference -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>

namespace tessera {
namespace {

/// What a command prints; empty if it fails.
std::string outputOf(const std::string &arguments) {
  std::string command =
      "\"" TESSERA_BINARY_DIR "/bin/tessera\" " + arguments + " 2>&1";
  std::FILE *pipe = popen(command.c_str(), "r");
  if (!pipe)
    return "";
  std::string output;
  char buffer[512];
  while (std::fgets(buffer, sizeof(buffer), pipe))
    output += buffer;
  return pclose(pipe) == 0 ? output : "";
}

std::set<std::string> matches(const std::string &text, const char *form) {
  std::regex expression(form);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end;
       it != end; ++it)
    found.insert((*it)[1].str());
  return found;
}

// Every verb and option that `--help` shows stands in docs/cli.md, and none
// that does not exist.
TEST(CommandLinePage, ListsEveryVerbAndOption) {
  if (!std::filesystem::exists(TESSERA_BINARY_DIR "/bin/tessera"))
    GTEST_SKIP() << "the command is not built";
  std::string page = docs::readSource("docs/cli.md");
  std::set<std::string> verbs =
      matches(outputOf("--help"), "\n  ([a-z-]+) +[a-z]");
  EXPECT_TRUE(verbs.count("run") && verbs.count("tune"));
  std::set<std::string> all;
  for (const std::string &verb : verbs) {
    EXPECT_NE(page.find("\n| `" + verb), std::string::npos) << verb;
    std::set<std::string> options =
        matches(outputOf(verb + " --help"), "[ ,](--[a-z][a-z-]*)");
    EXPECT_TRUE(options.count("--help")) << verb;
    for (const std::string &option : options)
      EXPECT_TRUE(std::regex_search(page, std::regex("`" + option + "[ `=]")) ||
                  option == "--help")
          << verb << " " << option;
    all.insert(options.begin(), options.end());
  }
  all.insert("--version");
  for (const std::string &option : matches(page, "`(--[a-z][a-z-]*)"))
    EXPECT_TRUE(all.count(option)) << option;
}

} // namespace
} // namespace tessera
