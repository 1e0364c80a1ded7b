//===- docs/pages.h - Reading the documentation -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of the documentation need of a page: its text, its fenced
// blocks, and the sources it speaks of. Blocks that show C++ are compared with
// the sources by scripts/docs_snippets.py.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_DOCS_PAGES_H
#define TESSERA_TEST_UNIT_DOCS_PAGES_H

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tessera::docs {

/// The text of a file given by its path from the repository root.
inline std::string readSource(const std::string &path) {
  std::ifstream file(std::string(TESSERA_SOURCE_DIR "/") + path);
  EXPECT_TRUE(file) << path << " cannot be read";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A fenced block of a page.
struct CodeBlock {
  std::string language;
  std::string text;
  /// Of its first line, from 1.
  unsigned line = 0;
};

/// The fenced blocks of a language in a page; of every language if it is empty.
inline std::vector<CodeBlock> codeBlocks(const std::string &page,
                                         const std::string &language = "") {
  std::vector<CodeBlock> blocks;
  std::istringstream lines(readSource(page));
  std::string line;
  bool inside = false;
  for (unsigned number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("```")) {
      if (!inside)
        blocks.push_back({line.substr(3), "", number + 1});
      inside = !inside;
    } else if (inside) {
      blocks.back().text += line + "\n";
    }
  }
  EXPECT_FALSE(inside) << page << ": a block does not end";
  if (!language.empty())
    std::erase_if(blocks, [&](const CodeBlock &block) {
      return block.language != language;
    });
  return blocks;
}

} // namespace tessera::docs

#endif // TESSERA_TEST_UNIT_DOCS_PAGES_H
