//===- fuzz/differential.h - One program on two machines --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a random program in the interpreter and as compiled code, on arguments
// with random strides in guarded memory, and compares what they wrote: to the
// bit where every legal execution gives the same bits, else within the radius
// that the interpreter's oracle mode carries along. The same holds for every
// plan that a program may be realized with: random ones are tried beside the
// chosen one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_FUZZ_DIFFERENTIAL_H
#define TESSERA_TEST_UNIT_FUZZ_DIFFERENTIAL_H

#include "random_program.h"

#include "target/target.h"

#include <vector>

namespace tessera::fuzz {

enum class Status : uint8_t {
  Agrees,
  /// The two disagree, or the compiled code or the compiler fails.
  Differs,
  /// The back end refuses with a reason.
  Unsupported,
  /// The program is at fault: it does not verify, races, or is too large.
  Invalid,
  /// Instances of a parallel region conflict.
  Races,
};

struct Outcome {
  Status status = Status::Agrees;
  std::string message;
  bool exact = false;
  int64_t compared = 0;
  /// Elements that the oracle does not decide and that differ.
  int64_t undecided = 0;
  /// Random plans that ran.
  int64_t plans = 0;
};

Outcome runOnce(const RandomProgram &program, const std::vector<Isa> &isas);

/// The same in a child process, so that a crash is an outcome as well.
Outcome runInChild(const RandomProgram &program, const std::vector<Isa> &isas);

/// Cuts pieces out of a program for as long as it still fails in the same
/// class (crash or difference). Gives up after `seconds`.
RandomProgram reduce(RandomProgram program, const std::vector<Isa> &isas,
                     double seconds);

/// Prints this text if the process dies of a signal.
void announce(const std::string &text);

} // namespace tessera::fuzz

#endif // TESSERA_TEST_UNIT_FUZZ_DIFFERENTIAL_H
