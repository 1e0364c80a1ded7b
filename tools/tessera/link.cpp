//===- link.cpp - From an object to a shared library ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tessera/link.h"

#include "fmt/format.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace tessera::cli {

namespace {

Error failed(std::string message) {
  return {ErrorFamily::Internal, "link.failed", "--emit so: " + message, {}};
}

/// The path of a program in PATH.
std::optional<std::string> findProgram(std::string_view name) {
  const char *path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    size_t end = std::min(rest.find(':'), rest.size());
    std::string candidate = fmt::format("{}/{}", rest.substr(0, end), name);
    if (end > 0 && access(candidate.c_str(), X_OK) == 0)
      return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A folder that is removed with all it holds.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::error_code code;
    std::string pattern =
        std::filesystem::temp_directory_path(code).string() + "/tessera-XXXXXX";
    if (!code && mkdtemp(pattern.data()))
      path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// Empty if there is none.
  std::string path;
};

/// Runs a program with its output in a file; 0 if it succeeded.
int run(const std::vector<std::string> &command, const std::string &output) {
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  int status = posix_spawn(&child, arguments[0], &actions, nullptr,
                           arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0)
    return status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return errno;
  return status;
}

} // namespace

Result<std::string> linkShared(const std::string &object, const Target &target,
                               const std::string &name) {
  std::vector<const char *> linkers = {"ld.lld-19", "ld.lld"};
  if (target.architecture == getTarget(hostIsa()).architecture)
    linkers.push_back("ld");
  std::optional<std::string> linker;
  for (const char *candidate : linkers)
    if (!linker)
      linker = findProgram(candidate);
  if (!linker)
    return Error{ErrorFamily::Unsupported,
                 "unsupported.linker",
                 fmt::format("--emit so: found no linker for {} in PATH, "
                             "expected ld.lld; install lld, or use --emit obj "
                             "and link the object",
                             tessera::name(target.architecture)),
                 {}};
  TemporaryFolder folder;
  if (folder.path.empty())
    return failed("no temporary folder can be made");
  const std::string from = folder.path + "/kernel.o";
  const std::string to = folder.path + "/kernel.so";
  const std::string log = folder.path + "/log";
  std::ofstream file(from, std::ios::binary);
  file << object;
  file.close();
  if (!file)
    return failed(fmt::format("{} cannot be written", from));
  std::vector<std::string> command = {*linker, "-shared", "-z", "noexecstack",
                                      "-o",    to,        from};
  if (!name.empty())
    command.insert(command.end(), {"-soname", name});
  if (run(command, log) != 0)
    return failed(fmt::format("{} failed: {}", *linker, contentOf(log)));
  std::string library = contentOf(to);
  if (library.empty())
    return failed(fmt::format("{} made nothing", *linker));
  return library;
}

} // namespace tessera::cli
