//===- bench/core/row_run.h - One row and all its arms ----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_ROW_RUN_H
#define TESSERA_BENCH_CORE_ROW_RUN_H

#include "bench/core/memory.h"
#include "bench/core/runner.h"

#include <optional>

namespace tessera::bench {

/// A peer promises no error bound; it passes within this multiple of Tessera's.
inline constexpr double peerBoundFactor = 16;

struct StartedWorker {
  /// Null when it could not be started.
  Worker *worker = nullptr;
  nlohmann::json description;
};

using StartWorker = std::function<StartedWorker(
    const std::string &key, const Peer *peer, int threads, std::string &why)>;

/// A row that is not run, and why. It counts as failed.
nlohmann::json unmeasuredRow(const RowSpec &row, const std::string &why);

class RowRun {
public:
  RowRun(const RowSpec &row, const RunnerOptions &options,
         const std::vector<Ceiling> &ceilings, StartWorker start,
         std::function<void(const std::string &)> progress)
      : row(row), options(options), ceilings(ceilings), start(std::move(start)),
        progress(std::move(progress)) {}

  nlohmann::json run();

private:
  struct Arm {
    std::string name;
    /// "subject", "control", "variant" or "peer".
    std::string role;
    const Peer *peer = nullptr;
    const Variant *variant = nullptr;
    Worker *worker = nullptr;
    nlohmann::json json;
    bool isActive = false;
    /// One call lasts long: it is not repeated to calibrate.
    bool isLong = false;
    /// Nanoseconds of one call, and what a turn makes of it.
    double callNanoseconds = 0;
    int64_t inner = 1, warm = 1, samples = 1;

    /// Whether a library computes the row in the place of compiled loops.
    bool isLibrary() const {
      return variant && variant->vendor != Vendor::None;
    }
  };

  void listArms();
  Result<void> makeMemory();
  uint64_t seedOf(size_t round) const { return options.seed + 1 + round; }
  /// Fresh inputs, the same for all arms.
  Result<void> fillInputs(uint64_t seed);
  void prepare(int index);
  void calibrate(Arm &arm);
  /// Ends peers that are hopelessly behind and would take the row's time.
  void dropSlowPeers();
  void planTurns();
  void turn(int index);
  /// Sends a request; a failure ends the arm.
  std::optional<nlohmann::json> ask(Arm &arm, const nlohmann::json &request);
  /// The sample times of a "time" request; nothing when the arm failed.
  std::optional<std::vector<int64_t>> time(Arm &arm, int64_t warm,
                                           int64_t samples, int64_t inner);
  void fail(Arm &arm, const std::string &status, const std::string &why);
  /// Fails an arm that wrote where it must not, and mends the damage.
  void checkMemory(Arm &arm);
  /// Judges every element of an arm's outputs.
  void judge(int index, const char *when);
  nlohmann::json hashes(const std::vector<SharedArray> &arrays) const;
  void runRounds();
  nlohmann::json finish();

  const RowSpec &row;
  const RunnerOptions &options;
  const std::vector<Ceiling> &ceilings;
  StartWorker start;
  std::function<void(const std::string &)> progress;

  std::optional<session::CompiledOperator> reference;
  std::optional<SharedMemory> memory;
  std::vector<Arm> arms;
  std::vector<std::vector<int>> orders;
  /// Of the inputs that the arms are prepared with.
  nlohmann::json inputHashes;
  nlohmann::json result;
};

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_ROW_RUN_H
