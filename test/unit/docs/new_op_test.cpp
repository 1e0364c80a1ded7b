//===- docs/new_op_test.cpp - The lists of docs/howto/new-op.md -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page says which files an operation touches. For the two that it walks
// through, those are exactly the files of the compiler that mention it. (That
// the code it quotes stands in them is checked with all other quotes.)
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// The first column of the table below a heading.
std::set<std::string> listedFiles(const std::string &heading) {
  std::set<std::string> files;
  std::istringstream lines(docs::readSource("docs/howto/new-op.md"));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#"))
      inside = line == heading;
    else if (inside && line.starts_with("| `"))
      files.insert(line.substr(3, line.find('`', 3) - 3));
  }
  EXPECT_FALSE(files.empty()) << heading;
  return files;
}

/// The files of the compiler that mention a word in any spelling of case.
std::set<std::string> mentioningFiles(const std::string &word) {
  std::set<std::string> files;
  fs::path root(TESSERA_SOURCE_DIR);
  for (const char *folder : {"include", "src"})
    for (const auto &entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file())
        continue;
      std::string path = fs::relative(entry.path(), root).generic_string();
      std::string text = docs::readSource(path);
      std::transform(text.begin(), text.end(), text.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      if (text.find(word) != std::string::npos)
        files.insert(path);
    }
  return files;
}

TEST(NewOp, ListsEveryFileOfAnOpOfTheDialect) {
  EXPECT_EQ(listedFiles("### All files of `tile.sigmoid`"),
            mentioningFiles("sigmoid"));
}

TEST(NewOp, ListsEveryFileOfAnUpstreamOp) {
  EXPECT_EQ(listedFiles("### All files of `math.log1p`"),
            mentioningFiles("log1p"));
}

} // namespace
} // namespace tessera
