//===- target.h - Target descriptions ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the planner and the code generator know about a CPU, as data. A stage
// asks a description what the target can do, never which generation it is.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TARGET_TARGET_H
#define TESSERA_TARGET_TARGET_H

#include "tessera/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The instruction-set levels code is generated for, in rising order.
enum class Isa { X86_64, Avx2, Avx512 };

std::string_view name(Isa isa);

/// One micro-architecture level: a row of the table in target.cpp.
struct Target {
  Isa isa;
  std::string name;
  /// What LLVM is told: processor level and feature string.
  std::string triple;
  std::string cpu;
  std::string features;
  /// Width of the vector registers in bits, and their number.
  int64_t vectorBits;
  int64_t vectorRegisters;
  bool hasFma;
  /// Conversions between f16 and f32 in hardware.
  bool hasF16c;
  /// Loads and stores under a mask for 32- and 64-bit lanes, and for 8- and
  /// 16-bit lanes.
  bool hasMaskedAccess;
  bool hasMaskedByteAccess;
  /// x * 2^n as one instruction.
  bool hasScalef;

  /// Lanes of a vector of 32-bit elements.
  int64_t lanes32() const { return vectorBits / 32; }
};

/// The description of a level.
const Target &getTarget(Isa isa);

/// The highest level this machine can run. This is the one dispatch point.
Isa hostIsa();

/// The levels this machine can run, lowest first.
std::vector<Isa> hostIsas();

/// The level to compile for when none is asked for: the host's, or what the
/// debugging variable TESSERA_ISA names, as far as the host can run it.
Isa defaultIsa();

/// Parses "x86-64", "avx2", "avx512" or "native"; a level that the host cannot
/// run is an Unsupported error unless `forOtherHost`.
Result<Isa> parseIsa(std::string_view text, bool forOtherHost = false);

} // namespace tessera

#endif // TESSERA_TARGET_TARGET_H
