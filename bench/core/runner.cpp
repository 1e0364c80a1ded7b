//===- bench/core/runner.cpp - Workers of a run ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/core/runner.h"

#include "bench/core/environment.h"
#include "bench/core/row_run.h"
#include "fmt/format.h"

#include <algorithm>
#include <filesystem>

namespace tessera::bench {

using nlohmann::json;

int allThreads() {
  return std::max<int>(1, static_cast<int>(allowedProcessors().size()));
}

Runner::Runner(RunnerOptions given, std::vector<Ceiling> ceilings)
    : options(std::move(given)), ceilings(std::move(ceilings)) {}

Runner::~Runner() = default;

void Runner::keepOnly(int threads) {
  std::string end = fmt::format("/{}", threads);
  std::erase_if(workers,
                [&](const auto &entry) { return !entry.first.ends_with(end); });
}

Worker *Runner::worker(const std::string &key, const Peer *peer, int threads,
                       std::string &why) {
  std::unique_ptr<Worker> &worker = workers[fmt::format("{}/{}", key, threads)];
  if (worker && worker->isAlive()) {
    worker->resume();
    return worker.get();
  }
  WorkerOptions wanted;
  std::error_code error;
  if (peer) {
    wanted.command = peer->command;
    wanted.environment = peer->environment;
  } else {
    wanted.command = {std::filesystem::read_symlink("/proc/self/exe", error),
                      "bench-worker"};
  }
  // Every library has a name of its own for the number of threads.
  for (const char *variable :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS", "DNNL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        "TVM_NUM_THREADS", "HL_NUM_THREADS"})
    wanted.environment.emplace(variable, std::to_string(threads));
  // One thread runs on the last processor; the coordinator sleeps meanwhile.
  std::vector<int> processors = allowedProcessors();
  wanted.affinity.assign(
      processors.end() - std::min<ptrdiff_t>(threads, static_cast<ptrdiff_t>(
                                                          processors.size())),
      processors.end());
  if (!options.logFolder.empty())
    wanted.logFile = fmt::format("{}/{}.log", options.logFolder, key);
  Result<std::unique_ptr<Worker>> started = Worker::start(wanted);
  if (!started) {
    why = started.error().message;
    return nullptr;
  }
  worker = std::move(*started);
  Result<json> description =
      worker->ask({{"do", "describe"}}, options.answerSeconds);
  if (!description || (*description)["status"] != "ok") {
    why = description ? description->value("why", "gave no description")
                      : description.error().message;
    worker.reset();
    return nullptr;
  }
  descriptions[key] = std::move(*description);
  return worker.get();
}

json Runner::describePeers() {
  json list = json::array();
  for (const Peer &peer : options.peers) {
    json entry = {{"name", peer.name},
                  {"status", peer.status},
                  {"version", ""},
                  {"mathMode", ""},
                  {"why", peer.why}};
    if (peer.status == "ok") {
      std::string why;
      if (!descriptions.count(peer.name)) {
        if (Worker *one = worker(peer.name, &peer, 1, why))
          one->stop();
      }
      auto found = descriptions.find(peer.name);
      if (found == descriptions.end()) {
        entry["status"] = "failed";
        entry["why"] = why;
      } else {
        entry["version"] = found->second.value("version", "");
        entry["mathMode"] = found->second.value("mathMode", "");
        if (found->second.contains("details"))
          entry["details"] = found->second["details"];
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

json Runner::run(const RowSpec &row,
                 const std::function<void(const std::string &)> &progress) {
  keepOnly(row.threads);
  auto start = [this](const std::string &key, const Peer *peer, int threads,
                      std::string &why) {
    Worker *found = worker(key, peer, threads, why);
    return StartedWorker{found, found ? descriptions[key] : json()};
  };
  return RowRun(row, options, ceilings, start, progress).run();
}

} // namespace tessera::bench
