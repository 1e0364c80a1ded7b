//===- test/unit/run/cases.h - Operators at their edges ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which extents, types and values every operator is run with, and how one such
// case is run. A case is compiled once and serves all its value classes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_RUN_CASES_H
#define TESSERA_TEST_UNIT_RUN_CASES_H

#include "kernels/table.h"
#include "session/session.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtest {

/// Where an operator runs: the interpreter, or the CPU at one level, which may
/// be one that this host only emulates (emulation/emulator.h).
struct Machine {
  session::Backend backend = session::Backend::Cpu;
  Isa isa = hostIsa();
  /// Of the cases of a test, one of so many is run; their texts decide which.
  uint64_t share = 1;

  /// Lanes of a vector of f32; those of the widest level for the interpreter.
  int64_t lanes() const;
  /// "interp", "x86_64", "avx2", "avx512" or "neon".
  std::string name() const;
  /// Whether a case is in the machine's share.
  bool takes(std::string_view theCase) const;
  /// Why nothing can be run here; empty if it can.
  std::string whyNot() const;
};

inline std::ostream &operator<<(std::ostream &stream, const Machine &machine) {
  return stream << machine.name();
}

/// The interpreter and every level of this host.
std::vector<Machine> machines();

/// The levels of this host alone.
std::vector<Machine> cpuMachines();

/// The levels that this host emulates, with one of `share` cases each. Tests on
/// them begin with TESSERA_SKIP_UNLESS_RUNNABLE.
std::vector<Machine> emulatedMachines(uint64_t share);

#define TESSERA_SKIP_UNLESS_RUNNABLE(MACHINE)                                  \
  if (std::string why = (MACHINE).whyNot(); !why.empty())                      \
  GTEST_SKIP() << why

/// One operator on one machine, as a test parameter.
struct Subject {
  const kernels::Operator *op = nullptr;
  Machine machine;

  /// "softmax_avx2".
  std::string name() const;
};
std::ostream &operator<<(std::ostream &stream, const Subject &subject);

/// Whether products are summed, for which levels may have instructions of their
/// own.
bool sumsProducts(const kernels::Operator &op);

/// Whether the level is avx512 with instructions for sums of products of narrow
/// elements, and nothing else: all other code is that of avx512.
bool addsNarrowProducts(Isa isa);

/// Every operator on every machine. A level whose code for an operator is that
/// of another level is left out.
std::vector<Subject> subjects(const std::vector<Machine> &machines);

/// What is compiled, and the classes of values it is run with.
struct Case {
  session::RunRequest request;
  std::vector<kernels::ValueClass> classes;
};

/// A small number that depends on the text alone: for rotations that stay the
/// same from run to run.
uint64_t stableHash(std::string_view text);

/// The extents around which vectors, unrolled loops and blocks begin and end.
std::vector<int64_t> edgeExtents(int64_t lanes);

/// The dimensions with the operator's conditions met: odd widths of rope are
/// rounded up, query heads are a multiple of key heads.
kernels::Dims admissible(const kernels::Operator &op, kernels::Dims dims);

/// Small odd extents for every dimension.
kernels::Dims smallDims(const kernels::Operator &op);

/// The dimension that vectors run along: the last one, or the width of an image
/// on which windows are laid.
std::string_view longDim(const kernels::Operator &op);

/// One dimension at an edge extent, the others small and odd.
std::vector<kernels::Dims> singleSweeps(const kernels::Operator &op,
                                        int64_t lanes);

/// Two dimensions at edge extents, the others small and odd; without the pairs
/// whose arrays have more than `maxElements` elements together.
std::vector<kernels::Dims> pairSweeps(const kernels::Operator &op,
                                      int64_t lanes, int64_t maxElements);

/// The elements of all arrays of the operator.
int64_t totalElements(const kernels::Operator &op, const kernels::Dims &dims);

/// An estimate of the time a run and its oracle need, in elements moved: what
/// decides between all value classes and few.
double work(const kernels::Operator &op, const kernels::Dims &dims);

/// The value classes of the acceptance list.
std::vector<kernels::ValueClass> acceptanceClasses();

/// The request for a subject at some extents; indices that have no valid value
/// there are not validated.
session::RunRequest requestFor(const Subject &subject, kernels::Dims dims,
                               DType dtype);

/// One line that tells which case it is.
std::string describe(const kernels::Operator &op,
                     const session::RunRequest &request);

/// Compiles, runs every class and fails the current test, with the case in the
/// message, for every wrong element, overwritten byte or error. Returns false
/// when something was wrong. A case outside the machine's share is not run.
bool check(const kernels::Operator &op, const Case &theCase,
           const Machine &machine);

/// Lets a run of compiled code use the emulator where the host needs it.
session::RunValues onMachine(session::RunValues values,
                             const session::RunRequest &request);

/// The bytes of an array, in row-major order.
std::vector<unsigned char> bytesOf(const TensorRef &tensor);

} // namespace tessera::runtest

#endif // TESSERA_TEST_UNIT_RUN_CASES_H
