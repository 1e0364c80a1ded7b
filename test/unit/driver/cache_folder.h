//===- test/unit/driver/cache_folder.h - A disk cache of a test -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_DRIVER_CACHE_FOLDER_H
#define TESSERA_TEST_UNIT_DRIVER_CACHE_FOLDER_H

#include "driver/cache_store.h"
#include "session/session.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace tessera::cachetest {

namespace fs = std::filesystem;

/// A folder of executables for one test, which does not exist yet.
class CacheFolder : public testing::Test {
protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) /
           ("executables-" + std::to_string(getpid()));
    fs::remove_all(root);
    fs::create_directory(root);
    folder = root / "kept";
    ::setenv("TESSERA_CACHE_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("TESSERA_CACHE_DIR", "off", 1);
    ::unsetenv("TESSERA_CACHE_MIB");
    fs::remove_all(root);
  }

  /// The files in the folder, without their path.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    std::error_code code;
    for (const auto &entry : fs::directory_iterator(folder, code))
      names.push_back(entry.path().filename().string());
    return names;
  }

  /// The only file.
  fs::path onlyFile() const {
    const std::vector<std::string> names = files();
    EXPECT_EQ(names.size(), 1u);
    return names.empty() ? fs::path() : folder / names[0];
  }

  static std::string read(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static void write(const fs::path &path, const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  fs::path root, folder;
};

inline session::Compilation compiledWith(std::string_view op,
                                         const session::RunRequest &request) {
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator(op), request);
  EXPECT_TRUE(made) << op << ": " << made.error().str();
  return std::move(*made);
}

/// A request that uses the disk.
inline session::RunRequest cached(session::RunRequest request) {
  request.useDiskCache = true;
  return request;
}

} // namespace tessera::cachetest

#endif // TESSERA_TEST_UNIT_DRIVER_CACHE_FOLDER_H
