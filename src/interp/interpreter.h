//===- interp/interpreter.h - Reference interpreter -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a kernel as docs/semantics.md says, for tests, for `tessera run --target
// interp` and as the second opinion of every back end. Speed is not its aim;
// being right in every corner is.
//
// In Strict mode each operation is done in its compute type and rounded once.
// In Oracle mode every floating element is a Bounded: the real number that the
// program denotes and how far a legal execution may lie from it.
//
// When interpret() returns an error, the memory of the arguments holds what it
// held before the call.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_INTERPRETER_H
#define TESSERA_INTERP_INTERPRETER_H

#include "dialect/tile_dialect.h"
#include "support/bounded.h"
#include "tessera/error.h"
#include "tessera/executable.h"

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::interp {

enum class Mode : uint8_t { Strict, Oracle };

struct InterpretOptions {
  Mode mode = Mode::Strict;
  /// Record conflicting accesses between instances of one parallel region.
  bool checkRaces = false;
  /// Record accesses that are declared in bounds and are not.
  bool checkBounds = false;
  /// Make an index computed from loaded values that lies outside its axis a
  /// Launch error.
  bool validateIndices = false;
  /// Operations and elements to execute at most; 0 means no limit.
  int64_t stepLimit = 20'000'000'000;
  /// Bytes of tiles and bookkeeping alive at most; 0 means no limit.
  int64_t memoryLimit = int64_t{8} << 30;
  /// Findings of each kind to record at most.
  size_t maxFindings = 16;
  /// Oracle mode: the rules for values computed in f32 and in f64. By default
  /// those of the kernel's tier with any summation order.
  std::optional<Arithmetic> arithmeticF32;
  std::optional<Arithmetic> arithmeticF64;
};

/// Two accesses of different instances of one parallel region to one element,
/// at least one of them a write.
struct Conflict {
  /// The parameter accessed second, and the element's indices in it.
  std::string view;
  std::vector<int64_t> element;
  bool firstWrites = false;
  bool secondWrites = false;
  SourcePosition first;
  SourcePosition second;

  Error toError() const;
};

/// An access declared in bounds that reached outside its view.
struct BoundsViolation {
  std::string view;
  int64_t axis = 0;
  int64_t index = 0;
  int64_t extent = 0;
  SourcePosition where;

  Error toError() const;
};

/// Oracle mode: what one writable view holds after the run.
struct OracleOutput {
  /// Position of the parameter.
  unsigned argument = 0;
  std::string name;
  /// The elements in row-major order, rounded to the storage type. Integers are
  /// exact, or have leftRange set where they depend on a comparison that the
  /// bounds do not decide.
  std::vector<Bounded> elements;
};

struct InterpretReport {
  std::vector<Conflict> conflicts;
  std::vector<BoundsViolation> boundsViolations;
  std::vector<OracleOutput> outputs;
  /// Oracle mode: a branch, a trip count or the address of a store depended on
  /// something the bounds do not decide. Every output has leftRange set then.
  bool undecidedControl = false;
  /// Operations and elements executed.
  int64_t steps = 0;

  /// The first finding as an error: Diagnostic family, with its location.
  std::optional<Error> firstFinding() const;
};

/// Runs `kernel` on `arguments`, in parameter order; trailing scalars that have
/// a default may be left out. In Oracle mode nothing is written: the results
/// are in `report`, which is required then.
///
/// Launch errors: number, rank, dtype, extents or strides of the arguments; a
/// dimension whose extent disagrees with a view indexed by it, or is negative;
/// reshapes of unequal counts; with validateIndices, an index out of range.
/// Unsupported: a limit of `options` was reached.
Result<void> interpret(tile::KernelOp kernel,
                       llvm::ArrayRef<Argument> arguments,
                       const InterpretOptions &options = {},
                       InterpretReport *report = nullptr);

} // namespace tessera::interp

namespace tessera {
using interp::interpret;
using interp::InterpretOptions;
using interp::InterpretReport;
} // namespace tessera

#endif // TESSERA_INTERP_INTERPRETER_H
