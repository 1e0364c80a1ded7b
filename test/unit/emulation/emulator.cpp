//===- test/unit/emulation/emulator.cpp - Code of another machine ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Requests and answers are sequences of 8-byte numbers, names (a length, then
// bytes) and the bytes of arrays.
//
//   request  name of the library, control register,
//            blocks: count, then offset in the page, length, bytes of each,
//            views: count, the offset of element (0, ..., 0) of each in its
//            block, the block of each,
//            strides: count, each; scalars: count, each,
//            stages: count, then name, programs, scratch bytes of each
//   answer   status, the stage that returned it, whether everything around the
//            arrays is intact, control register, the bytes of each block
//
//===----------------------------------------------------------------------===//

#include "emulator.h"
#include "tiles.h"

#include "runtime/host/arguments.h"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tessera::emulation {
namespace {

Error failed(std::string message) {
  return {ErrorFamily::Internal, "emulation", std::move(message), {}};
}

/// Runs a program to its end.
Result<void> run(const std::vector<std::string> &command) {
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = posix_spawn(&child, arguments[0], nullptr, nullptr,
                           arguments.data(), environ);
  if (status != 0)
    return failed(command[0] + ": " + std::strerror(status));
  if (waitpid(child, &status, 0) != child || status != 0)
    return failed(fmt::format("{} ended with status {}", command[0], status));
  return {};
}

/// The emulated process, started when it is first needed and again when a
/// kernel has ended it.
class Emulator {
public:
  static Emulator &get() {
    static Emulator emulator;
    return emulator;
  }

  ~Emulator() {
    const bool isOwner = owner == getpid();
    stop();
    std::error_code ignored;
    if (isOwner && !folder.empty())
      std::filesystem::remove_all(folder, ignored);
  }

  Result<void> launch(const CompiledKernel &kernel,
                      std::span<const Argument> arguments, uint64_t *control);

private:
  /// The memory of one array, or of several that overlap.
  struct Block {
    unsigned char *begin, *end;
    size_t bytes() const { return static_cast<size_t>(end - begin); }
  };

  Result<void> start();
  void stop();
  Result<void> link(const std::string &object);
  Result<void> exchange(const ExecutableInfo &info,
                        const runtime::BoundArguments &bound,
                        std::span<const Argument> arguments, uint64_t *control);

  void add(uint64_t number) { addBytes(&number, sizeof number); }
  void addBytes(const void *bytes, size_t count) {
    request.append(static_cast<const char *>(bytes), count);
  }
  void addName(const std::string &text) {
    add(text.size());
    request += text;
  }
  Result<void> send();
  Result<void> receive(void *to, size_t bytes);

  std::mutex mutex;
  std::string folder, library, linked, request;
  int libraries = 0;
  pid_t child = 0;
  /// The process that started it. A fork starts its own, in the same folder.
  pid_t owner = getpid();
  int channel = -1;
};

Result<void> Emulator::start() {
  if (owner != getpid()) {
    stop();
    owner = getpid();
    library.clear();
    linked.clear();
  }
  if (folder.empty()) {
    std::string pattern =
        std::filesystem::temp_directory_path().string() + "/tessera-XXXXXX";
    if (!mkdtemp(pattern.data()))
      return failed(pattern + ": " + std::strerror(errno));
    folder = pattern;
  }
  if (child != 0)
    return {};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return failed(std::string("socketpair: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string command[] = {TESSERA_EMULATOR, "-L", TESSERA_EMULATED_ROOT,
                           TESSERA_EMULATION_SERVER};
  char *arguments[] = {command[0].data(), command[1].data(), command[2].data(),
                       command[3].data(), nullptr};
  int status =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  channel = ends[0];
  if (status != 0) {
    child = 0;
    stop();
    return failed(command[0] + ": " + std::strerror(status));
  }
  // A kernel that does not end is an error, not a test that does not.
  timeval limit = {300, 0};
  setsockopt(channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return {};
}

void Emulator::stop() {
  if (channel >= 0)
    close(channel);
  channel = -1;
  if (child != 0 && owner == getpid()) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  child = 0;
}

Result<void> Emulator::link(const std::string &object) {
  if (object == linked)
    return {};
  if (!library.empty())
    std::filesystem::remove(library);
  // The server tells libraries apart by their names.
  library = fmt::format("{}/{}-{}.so", folder, owner, ++libraries);
  const std::string path = fmt::format("{}/{}.o", folder, owner);
  std::ofstream(path, std::ios::binary) << object;
  linked.clear();
  if (Result<void> status =
          run({TESSERA_EMULATED_LINKER, "-shared", "-o", library, path});
      !status)
    return status;
  linked = object;
  return {};
}

Result<void> Emulator::send() {
  for (size_t at = 0; at < request.size();) {
    ssize_t count =
        ::send(channel, request.data() + at, request.size() - at, MSG_NOSIGNAL);
    if (count <= 0)
      return failed("the emulated process takes no more requests");
    at += static_cast<size_t>(count);
  }
  return {};
}

Result<void> Emulator::receive(void *to, size_t bytes) {
  auto *at = static_cast<char *>(to);
  while (bytes > 0) {
    ssize_t count = recv(channel, at, bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
      return failed("the kernel does not end");
    if (count <= 0)
      return failed("the emulated process ended within the kernel");
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return {};
}

Result<void> Emulator::launch(const CompiledKernel &kernel,
                              std::span<const Argument> arguments,
                              uint64_t *control) {
  std::lock_guard lock(mutex);
  const ExecutableInfo &info = kernel.executable.info();
  runtime::BoundArguments bound;
  if (Result<void> status = runtime::bindArguments(info, arguments, bound);
      !status)
    return status;
  if (Result<void> status = start(); !status)
    return status;
  if (Result<void> status = link(kernel.object); !status)
    return status;
  return exchange(info, bound, arguments, control);
}

Result<void> Emulator::exchange(const ExecutableInfo &info,
                                const runtime::BoundArguments &bound,
                                std::span<const Argument> arguments,
                                uint64_t *control) {
  // The bytes from the first to the last element of each view.
  std::vector<Block> views, blocks;
  for (const Argument &argument : arguments) {
    const auto *view = std::get_if<TensorRef>(&argument);
    if (!view)
      continue;
    auto *data = static_cast<unsigned char *>(view->data);
    Block block{data, data};
    if (view->elements() > 0) {
      block.end += sizeInBytes(view->dtype);
      for (int64_t axis = 0; axis < view->rank(); ++axis) {
        int64_t reach = (view->extents[axis] - 1) * view->strides[axis] *
                        sizeInBytes(view->dtype);
        (reach < 0 ? block.begin : block.end) += reach;
      }
    }
    views.push_back(block);
  }
  std::vector<Block> sorted = views;
  std::sort(sorted.begin(), sorted.end(), [](const Block &a, const Block &b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (const Block &block : sorted)
    if (!blocks.empty() &&
        (block.begin == blocks.back().begin || block.begin < blocks.back().end))
      blocks.back().end = std::max(blocks.back().end, block.end);
    else
      blocks.push_back(block);

  request.clear();
  addName(library);
  add(control ? *control : 0);
  add(blocks.size());
  for (const Block &block : blocks) {
    add(reinterpret_cast<uintptr_t>(block.begin) % 4096);
    add(block.bytes());
    addBytes(block.begin, block.bytes());
  }
  std::vector<size_t> blockOf;
  for (const Block &view : views)
    for (size_t i = 0; i < blocks.size(); ++i)
      if (view.begin >= blocks[i].begin && view.end <= blocks[i].end) {
        blockOf.push_back(i);
        break;
      }
  add(views.size());
  for (size_t i = 0; i < views.size(); ++i)
    add(static_cast<uint64_t>(static_cast<unsigned char *>(bound.data[i]) -
                              blocks[blockOf[i]].begin));
  for (size_t block : blockOf)
    add(block);
  add(bound.strides.size());
  addBytes(bound.strides.data(), bound.strides.size() * sizeof(int64_t));
  add(bound.scalars.size());
  addBytes(bound.scalars.data(), bound.scalars.size() * sizeof(uint64_t));
  add(info.stages.size());
  for (const Stage &stage : info.stages) {
    addName(stage.symbol);
    add(static_cast<uint64_t>(stage.programs));
    add(static_cast<uint64_t>(stage.scratchBytes));
    add(static_cast<uint64_t>(stage.workspaceBytes));
    add(static_cast<uint64_t>(stage.workspaceZeroBytes));
  }

  struct {
    int64_t status;
    uint64_t stage, intact, control;
  } answer = {};
  Result<void> done = send();
  if (done)
    done = receive(&answer, sizeof answer);
  for (const Block &block : blocks)
    if (done)
      done = receive(block.begin, block.bytes());
  if (!done) {
    stop();
    return done;
  }
  if (control)
    *control = answer.control;
  if (!answer.intact)
    return failed("bytes around an array or scratch memory were overwritten");
  if (answer.status == 0)
    return {};
  if (answer.status < 1 ||
      static_cast<size_t>(answer.status) > info.checks.size())
    return failed(
        fmt::format("stage {} returned {}", answer.stage, answer.status));
  return info.checks[static_cast<size_t>(answer.status) - 1];
}

} // namespace

std::vector<Isa> emulatedIsas() {
  return hostRuns(Isa::Neon) ? std::vector<Isa>{} : std::vector{Isa::Neon};
}

std::vector<Isa> runnableIsas() {
  std::vector<Isa> result = hostIsas();
  for (Isa isa : emulatedIsas())
    if (whyNotRunnable(isa).empty())
      result.push_back(isa);
  return result;
}

std::string whyNotRunnable(Isa isa) {
  if (hostRuns(isa) || (isa == Isa::Avx512Amx && emulatesTiles()))
    return "";
  if (getTarget(isa).architecture != Architecture::AArch64)
    return "this host cannot run " + std::string(name(isa)) + " code";
  return TESSERA_WHY_NO_EMULATION;
}

Result<void> launchEmulated(const CompiledKernel &kernel,
                            std::span<const Argument> arguments,
                            uint64_t *control) {
  return Emulator::get().launch(kernel, arguments, control);
}

Result<void> launch(Isa isa, const CompiledKernel &kernel,
                    std::span<const Argument> arguments,
                    const LaunchOptions &options) {
  if (hostRuns(isa))
    return kernel.executable.launch(arguments, options);
  return isa == Isa::Avx512Amx ? launchWithTiles(kernel, arguments)
                               : launchEmulated(kernel, arguments);
}

} // namespace tessera::emulation
