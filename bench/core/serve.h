//===- bench/core/serve.h - The worker's side of the protocol ---*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A worker reads requests from standard input and writes replies to the
// descriptor that TESSERA_BENCH_REPLY names (docs/benchmarking.md). What is
// timed is an Arm: Tessera itself, or a native peer plug-in.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_BENCH_CORE_SERVE_H
#define TESSERA_BENCH_CORE_SERVE_H

#include "bench/core/memory.h"
#include "tessera/error.h"

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace tessera::bench {

/// One row, ready to run.
class Problem {
public:
  virtual ~Problem() = default;
  /// Computes the outputs once; 0 on success.
  virtual int run() = 0;
  /// The part of run() that is timed, and what it takes after any number of
  /// these to have the outputs.
  virtual int timed() { return run(); }
  virtual int complete() { return 0; }
  /// Adds "identity", "detail" and "cold" to the reply.
  virtual void describe(nlohmann::json &reply) const = 0;
};

class Arm {
public:
  virtual ~Arm() = default;
  virtual nlohmann::json describe() = 0;
  /// Fails with Unsupported where the arm has no such operation.
  virtual Result<std::unique_ptr<Problem>>
  prepare(const nlohmann::json &request, const SharedMemory &memory) = 0;
};

/// A peer plug-in (bench/peers/peer.h). Fails with Usage where the file cannot
/// be loaded or lacks a function.
Result<std::unique_ptr<Arm>> loadPlugin(const std::string &file);

/// Answers requests until "quit" or the end of the input. Returns the exit
/// status of the process.
int serve(Arm &arm);

/// The arrays of a "prepare" request. Fails with Usage where it is malformed
/// or an array does not lie within the memory.
Result<std::vector<SharedArray>> requestArrays(const nlohmann::json &request,
                                               const SharedMemory &memory);

} // namespace tessera::bench

#endif // TESSERA_BENCH_CORE_SERVE_H
