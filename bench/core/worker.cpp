//===- bench/core/worker.cpp - One arm, in a process of its own -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/worker.h"

#include "bench/core/fields.h"
#include "fmt/format.h"
#include "support/timing.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace tessera::bench {

namespace {

/// A reply longer than this is garbage.
constexpr size_t maxReplyBytes = 16 << 20;

/// The descriptor on which the worker writes its replies.
constexpr int replyDescriptor = 3;

Error problem(std::string message) {
  return {ErrorFamily::Unsupported, "bench.worker", std::move(message), {}};
}

/// In the child: nothing here may allocate, so all is ready made.
struct ChildSetup {
  std::vector<char *> arguments, environment;
  cpu_set_t processors;
  bool pinned;
  int input, output, log;
  pid_t parent;
};

/// Moves a descriptor out of the way of those that a child is given, which a
/// caller may have left closed.
void moveUp(int &descriptor) {
  constexpr int first = 10;
  if (descriptor < 0 || descriptor >= first)
    return;
  int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, first);
  if (moved < 0)
    return;
  close(descriptor);
  descriptor = moved;
}

[[noreturn]] void runChild(const ChildSetup &setup) {
  setpgid(0, 0);
  // Die with the coordinator, whatever ends it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != setup.parent)
    _exit(126);
  if (setup.pinned)
    sched_setaffinity(0, sizeof setup.processors, &setup.processors);
  dup2(setup.input, 0);
  dup2(setup.log, 1);
  dup2(setup.log, 2);
  dup2(setup.output, replyDescriptor);
  execvpe(setup.arguments[0], setup.arguments.data(), setup.environment.data());
  _exit(127);
}

} // namespace

Result<std::unique_ptr<Worker>> Worker::start(const WorkerOptions &options) {
  // A worker that is gone shows as an error of write, not as a signal.
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> variables;
  for (char **entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (!options.environment.count(std::string(text.substr(0, text.find('=')))))
      variables.emplace_back(text);
  }
  for (const auto &[name, value] : options.environment)
    variables.push_back(fmt::format("{}={}", name, value));
  variables.push_back(fmt::format("TESSERA_BENCH_REPLY={}", replyDescriptor));

  ChildSetup setup;
  std::vector<std::string> command = options.command;
  for (std::string &argument : command)
    setup.arguments.push_back(argument.data());
  for (std::string &variable : variables)
    setup.environment.push_back(variable.data());
  setup.arguments.push_back(nullptr);
  setup.environment.push_back(nullptr);
  CPU_ZERO(&setup.processors);
  for (int processor : options.affinity)
    CPU_SET(processor, &setup.processors);
  setup.pinned = !options.affinity.empty();
  setup.parent = getpid();

  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0)
    return problem(fmt::format("pipe: {}", std::strerror(errno)));
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]), close(in[1]);
    return problem(fmt::format("pipe: {}", std::strerror(errno)));
  }
  const char *log =
      options.logFile.empty() ? "/dev/null" : options.logFile.c_str();
  setup.log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  for (int *descriptor : {&in[0], &in[1], &out[0], &out[1], &setup.log})
    moveUp(*descriptor);
  setup.input = in[0];
  setup.output = out[1];
  pid_t child = setup.log < 0 ? -1 : fork();
  int error = errno;
  if (child == 0)
    runChild(setup);
  close(in[0]);
  close(out[1]);
  if (setup.log >= 0)
    close(setup.log);
  if (child < 0) {
    close(in[1]), close(out[0]);
    return problem(fmt::format(
        "{} '{}': {}", setup.log < 0 ? "opening" : "starting",
        setup.log < 0 ? log : command[0].c_str(), std::strerror(error)));
  }
  std::unique_ptr<Worker> worker(new Worker);
  worker->process = child;
  worker->requests = in[1];
  worker->replies = out[0];
  return worker;
}

Worker::~Worker() { kill(); }

void Worker::kill() {
  if (process > 0) {
    // Its whole group, for helpers it started.
    ::kill(-process, SIGKILL);
    ::kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    process = -1;
  }
  for (int *descriptor : {&requests, &replies}) {
    if (*descriptor >= 0)
      close(*descriptor);
    *descriptor = -1;
  }
}

Error Worker::fail(const std::string &what) {
  kill();
  return problem(what);
}

std::string Worker::howItEnded() {
  int status = 0;
  // The pipe closes a moment before the process can be waited for.
  for (int tries = 0; tries < 100; ++tries) {
    if (waitpid(process, &status, WNOHANG) == process) {
      ::kill(-process, SIGKILL);
      process = -1;
      if (WIFSIGNALED(status))
        return fmt::format("crashed: signal {} ({})", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
      if (WEXITSTATUS(status) == 127)
        return "could not be started: program not found";
      return fmt::format("exited with status {}", WEXITSTATUS(status));
    }
    usleep(10'000);
  }
  return "closed its reply channel";
}

void Worker::stop() {
  if (process > 0)
    ::kill(-process, SIGSTOP);
}

void Worker::resume() {
  if (process > 0)
    ::kill(-process, SIGCONT);
}

Result<nlohmann::json> Worker::ask(const nlohmann::json &request,
                                   double seconds) {
  if (process <= 0)
    return problem("is not running");
  // A reply that is there already answers nothing, and what comes next would
  // be taken for the answer to another request.
  pollfd early = {replies, POLLIN, 0};
  bool isEarly = poll(&early, 1, 0) > 0 && (early.revents & POLLIN);
  if (isEarly || !buffered.empty())
    return fail("printed garbage: a reply to no request");
  std::string line = request.dump() + "\n";
  for (size_t sent = 0; sent < line.size();) {
    ssize_t count = write(requests, line.data() + sent, line.size() - sent);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail(howItEnded());
    sent += static_cast<size_t>(count);
  }
  support::Stopwatch watch;
  size_t end;
  while ((end = buffered.find('\n')) == std::string::npos) {
    if (buffered.size() > maxReplyBytes)
      return fail("printed garbage: a reply without an end");
    double left = seconds - watch.milliseconds() * 1e-3;
    pollfd waiting = {replies, POLLIN, 0};
    int ready =
        left > 0 ? poll(&waiting, 1, static_cast<int>(left * 1e3) + 1) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      return fail(fmt::format("gave no answer within {:g} s", seconds));
    char chunk[65536];
    ssize_t count = read(replies, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail(howItEnded());
    buffered.append(chunk, static_cast<size_t>(count));
  }
  std::string text = buffered.substr(0, end);
  buffered.erase(0, end + 1);
  nlohmann::json reply = parseJson(text);
  // What every reply has, and what any may have, of the right kind.
  bool isReply = reply.is_object() && reply.contains("status");
  for (const char *field : {"status", "why", "version", "mathMode"})
    isReply = isReply && (!reply.contains(field) || reply[field].is_string());
  isReply =
      isReply && (!reply.contains("identity") || reply["identity"].is_object());
  if (!isReply)
    return fail(fmt::format(
        "printed garbage instead of a reply: {:.80}",
        nlohmann::json(text).dump(-1, ' ', true,
                                  nlohmann::json::error_handler_t::replace)));
  return reply;
}

} // namespace tessera::bench
