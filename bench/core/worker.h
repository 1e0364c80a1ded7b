//===- bench/core/worker.h - One arm, in a process of its own ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A worker answers requests, one line of JSON each (docs/benchmarking.md). It
// is stopped (SIGSTOP) except during its turns, so that no thread of it spins
// while another arm is timed.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_WORKER_H
#define TESSERA_BENCH_CORE_WORKER_H

#include "tessera/error.h"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace tessera::bench {

struct WorkerOptions {
  /// Program and arguments.
  std::vector<std::string> command;
  /// Added to the environment.
  std::map<std::string, std::string> environment;
  /// The processors it may use; empty for all.
  std::vector<int> affinity;
  /// Receives its standard output and standard error; empty to drop them.
  std::string logFile;
};

class Worker {
public:
  static Result<std::unique_ptr<Worker>> start(const WorkerOptions &options);
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;
  ~Worker();

  /// Sends a request and waits for the reply. Fails with Unsupported when the
  /// worker died ("crashed: signal 11"), passed the limit, or answered
  /// something else than one JSON object with a "status"; the worker is gone
  /// after that. A reply with another status than "ok" is no error here.
  Result<nlohmann::json> ask(const nlohmann::json &request, double seconds);

  bool isAlive() const { return process > 0; }
  void stop();
  void resume();

private:
  Worker() = default;
  void kill();
  Error fail(const std::string &what);
  std::string howItEnded();

  pid_t process = -1;
  int requests = -1, replies = -1;
  std::string buffered;
};

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_WORKER_H
