//===- interp/options.h - What an interpretation takes and gives -*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plain data around interpret() (interp/interpreter.h), free of MLIR so
// that tools and tests can include it cheaply.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_INTERP_OPTIONS_H
#define TESSERA_INTERP_OPTIONS_H

#include "support/bounded.h"
#include "tessera/error.h"

#include <cstddef>
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
  /// The instances, "row=3, col=0".
  std::string firstInstance;
  std::string secondInstance;
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

} // namespace tessera::interp

namespace tessera {
using interp::InterpretOptions;
using interp::InterpretReport;
} // namespace tessera

#endif // TESSERA_INTERP_OPTIONS_H
