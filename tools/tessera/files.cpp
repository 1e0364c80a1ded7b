//===- files.cpp - Files that the verbs write -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/files.h"

#include "support/atomic_file.h"
#include "support/env.h"

#include "fmt/format.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace tessera::cli {

namespace {

namespace fs = std::filesystem;

Error cannotWrite(std::string_view option, const std::string &path,
                  const std::string &why) {
  return {ErrorFamily::Usage,
          "usage.file",
          fmt::format("{}: cannot write '{}': {}", option, path, why),
          {}};
}

/// Fails where `path` certainly cannot be written, before work is done.
Result<void> checkWritable(const std::string &path, std::string_view option,
                           Dash dash) {
  if (support::isDescriptorPath(path))
    return cannotWrite(option, path,
                       fmt::format("it stands for an open file, expected the "
                                   "name of one{}",
                                   dash == Dash::IsStandardOutput
                                       ? ", or - for standard output"
                                       : ""));
  std::error_code code;
  fs::path target(path);
  fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (!fs::is_directory(folder, code))
    return cannotWrite(option, path,
                       fmt::format("there is no folder '{}'", folder.string()));
  if (::access(folder.c_str(), W_OK) != 0)
    return cannotWrite(
        option, path,
        fmt::format("folder '{}': {}", folder.string(), std::strerror(errno)));
  if (fs::exists(target, code) && !fs::is_regular_file(target, code))
    return cannotWrite(option, path, "it is there and no regular file");
  return {};
}

/// One text for all spellings of a path.
fs::path canonical(const std::string &path) {
  std::error_code code;
  fs::path result = fs::weakly_canonical(fs::absolute(path, code), code);
  return code ? fs::path(path) : result;
}

} // namespace

Result<void> OutputPaths::take(const std::string &path,
                               const std::string &option, Dash dash) {
  fs::path key = path;
  if (path == "-" && dash == Dash::IsRefused)
    return cannotWrite(option, path, "it is standard output, expected a file");
  if (path != "-") {
    if (Result<void> status = checkWritable(path, option, dash); !status)
      return status;
    key = canonical(path);
    std::optional<std::string> dumps =
        support::envText(support::EnvVariable::DumpDir);
    if (dumps && key.extension() == ".txt" &&
        key.parent_path() == canonical(*dumps))
      return cannotWrite(option, path,
                         "TESSERA_DUMP_DIR keeps its texts in that folder");
  }
  auto [entry, isNew] = taken.emplace(key.string(), option);
  if (isNew)
    return {};
  return cannotWrite(option, path,
                     fmt::format("it is the file of {} as well, expected two "
                                 "files",
                                 entry->second));
}

Result<void> writeFile(const std::string &path, std::string_view content,
                       std::string_view option) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    if (std::fflush(stdout) == 0)
      return {};
    return cannotWrite(option, "standard output", std::strerror(errno));
  }
  auto write = [&]() -> Result<void> {
    Result<support::AtomicFile> file = support::AtomicFile::create(path);
    if (!file)
      return file.error();
    if (Result<void> status = file->write(content.data(), content.size());
        !status)
      return status;
    return file->commit();
  };
  Result<void> status = write();
  if (status)
    return status;
  Error error = status.error();
  error.code = "usage.file";
  error.message = fmt::format("{}: {}", option, error.message);
  return error;
}

} // namespace tessera::cli
