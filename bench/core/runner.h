//===- bench/core/runner.h - Running a suite --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every row of a suite with all its arms: Tessera, a second Tessera as the
// control whose differences are noise, and the peers. Arms are worker processes
// that take turns in balanced orders, on fresh data each round; every output
// element is judged before the first timed call and after the last.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_RUNNER_H
#define TESSERA_BENCH_CORE_RUNNER_H

#include "bench/ceilings/ceilings.h"
#include "bench/core/peers.h"
#include "bench/core/row.h"
#include "bench/core/worker.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tessera::bench {

struct RunnerOptions {
  std::vector<Peer> peers;
  /// At least this many rounds; the design of the order may ask for more.
  int rounds = 12;
  /// Timed samples of a turn.
  int samples = 5;
  uint64_t seed = 1;
  /// The time one row may take for its timed calls, in seconds: slow rows get
  /// fewer samples, and one pass through the design at least.
  double rowSeconds = 20;
  /// The longest an arm may take to answer, in seconds.
  double answerSeconds = 180;
  /// Folder for the output of workers; empty to drop it.
  std::string logFolder;
};

class Runner {
public:
  Runner(RunnerOptions options, std::vector<Ceiling> ceilings);
  ~Runner();

  /// Measures a row. What goes wrong stands in the row.
  nlohmann::json run(const RowSpec &row,
                     const std::function<void(const std::string &)> &progress);

  /// What each peer said of itself, or why it could not.
  nlohmann::json describePeers();

private:
  /// The worker of an arm, started when it is first needed; null with `why`.
  Worker *worker(const std::string &key, const Peer *peer, int threads,
                 std::string &why);
  /// Ends the workers of other thread counts, which hold memory.
  void keepOnly(int threads);

  RunnerOptions options;
  std::vector<Ceiling> ceilings;
  /// By "name/threads".
  std::map<std::string, std::unique_ptr<Worker>> workers;
  std::map<std::string, nlohmann::json> descriptions;
};

/// The threads that 0 stands for.
int allThreads();

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_RUNNER_H
