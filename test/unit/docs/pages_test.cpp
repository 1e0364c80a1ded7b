//===- docs/pages_test.cpp - What holds for every page --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "kernels/table.h"
#include "support/env.h"

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>

namespace tessera {
namespace {

TEST(Pages, CodeIsCodeOfTheTree) {
  std::string command =
      "python3 \"" TESSERA_SOURCE_DIR "/scripts/docs_snippets.py\" 2>&1";
  std::FILE *pipe = popen(command.c_str(), "r");
  ASSERT_TRUE(pipe);
  std::string output;
  char buffer[512];
  while (std::fgets(buffer, sizeof(buffer), pipe))
    output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << output;
}

TEST(Pages, EveryVariableIsDocumented) {
  std::string page = docs::readSource("docs/debugging.md");
  for (const support::EnvEntry &entry : support::envTable()) {
    std::string row = "| `" + std::string(entry.name) + "` | " +
                      std::string(entry.values) + " |";
    EXPECT_NE(page.find(row), std::string::npos)
        << "docs/debugging.md has no row " << row;
  }
  // And no variable that does not exist.
  std::regex variable("`(TESSERA_[A-Z_]+)`");
  for (std::sregex_iterator it(page.begin(), page.end(), variable), end;
       it != end; ++it) {
    bool known = false;
    for (const support::EnvEntry &entry : support::envTable())
      known |= (*it)[1].str() == entry.name;
    EXPECT_TRUE(known) << (*it)[1].str();
  }
}

/// Comments and messages that send a reader to a page name one that exists.
TEST(Pages, SourcesNameExistingPages) {
  namespace fs = std::filesystem;
  fs::path root(TESSERA_SOURCE_DIR);
  std::regex name("docs/[a-z/-]+\\.md");
  for (const char *folder :
       {"include", "src", "kernels", "tools", "test", "scripts", "examples"})
    for (const auto &entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".npy")
        continue;
      std::string path = fs::relative(entry.path(), root).generic_string();
      std::string text = docs::readSource(path);
      for (std::sregex_iterator it(text.begin(), text.end(), name), end;
           it != end; ++it)
        EXPECT_TRUE(fs::exists(root / it->str()))
            << path << " names " << it->str();
    }
}

TEST(Pages, ArchitectureListsEveryLayer) {
  std::string script = docs::readSource("scripts/check_layers.py");
  size_t begin = script.find("LAYERS = {");
  size_t end = script.find("\n}", begin);
  ASSERT_NE(end, std::string::npos);
  std::string table = script.substr(begin, end - begin);
  std::string page = docs::readSource("docs/architecture.md");
  std::regex layer("\"([a-z/]+)\": \\[");
  int count = 0;
  for (std::sregex_iterator it(table.begin(), table.end(), layer), last;
       it != last; ++it, ++count)
    EXPECT_NE(page.find("| `" + (*it)[1].str() + "` |"), std::string::npos)
        << "docs/architecture.md has no row for " << (*it)[1].str();
  EXPECT_GT(count, 10);
}

/// What is turned down is a table of docs/semantics.md, and nothing else is.
TEST(Pages, SemanticsListsEveryRefusal) {
  namespace fs = std::filesystem;
  fs::path root(TESSERA_SOURCE_DIR);
  std::set<std::string> emitted, listed;
  auto collect = [](const std::string &text, const char *form,
                    std::set<std::string> &codes) {
    std::regex code(form);
    for (std::sregex_iterator it(text.begin(), text.end(), code), last;
         it != last; ++it)
      codes.insert((*it)[1].str());
  };
  for (const char *folder :
       {"include", "src", "kernels", "tools/tessera", "bench/core"})
    for (const auto &entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file())
        collect(
            docs::readSource(fs::relative(entry.path(), root).generic_string()),
            "\"(unsupported\\.[a-z0-9-]+)\"", emitted);
  collect(docs::readSource("docs/semantics.md"), "`(unsupported\\.[a-z0-9-]+)`",
          listed);
  EXPECT_GT(emitted.size(), 3u);
  EXPECT_EQ(emitted, listed);
}

/// The operators with words of their own in docs/semantics.md exist.
TEST(Pages, SemanticsNamesOperatorsThatExist) {
  std::string page = docs::readSource("docs/semantics.md");
  size_t begin = page.find("## Operators of the library");
  size_t end = page.find("## ", begin + 3);
  ASSERT_NE(end, std::string::npos);
  std::string section = page.substr(begin, end - begin);
  std::regex name("\\*\\*`([a-z_]+)`");
  int count = 0;
  for (std::sregex_iterator it(section.begin(), section.end(), name), last;
       it != last; ++it, ++count)
    EXPECT_TRUE(kernels::findOperator((*it)[1].str())) << (*it)[1].str();
  EXPECT_GT(count, 5);
}

} // namespace
} // namespace tessera
