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

/// What a processor can run at all.
enum class Architecture { X86_64, AArch64 };

/// As in "an AArch64 machine": "x86-64", "AArch64".
std::string_view name(Architecture architecture);

/// The instruction-set levels code is generated for. They have no order: which
/// of them a machine runs is asked with hostRuns().
enum class Isa {
  X86_64,
  Avx2,
  Avx512,
  /// With dot products of bytes.
  Avx512Vnni,
  /// And of bf16.
  Avx512Bf16,
  /// And of tile registers.
  Avx512Amx,
  Neon
};

std::string_view name(Isa isa);

/// How the floating-point control register of a thread is read and set.
struct FloatControl {
  /// LLVM's intrinsics.
  std::string read, write;
  /// The intrinsics take the address of the register's value instead of
  /// returning and taking the value itself.
  bool throughMemory;
  int64_t bits;
  /// Round to nearest, subnormals kept, all exceptions masked.
  int64_t standard;
  /// The bits that control; others are flags of what has happened.
  int64_t mask;
};

/// One micro-architecture level: a row of the table in target.cpp.
struct Target {
  Isa isa;
  std::string name;
  Architecture architecture;
  /// A machine runs the levels of its architecture up to its own.
  int level;
  /// What LLVM is told: processor level and feature string.
  std::string triple;
  std::string cpu;
  std::string features;
  /// Width of the vector registers in bits, and their number.
  int64_t vectorBits;
  int64_t vectorRegisters;
  /// Registers for addresses and counters, without the stack pointer.
  int64_t generalRegisters;
  bool hasFma;
  /// Conversions between f16 and f32 in hardware.
  bool hasF16c;
  /// Loads and stores under a mask for 32- and 64-bit lanes, and for 8- and
  /// 16-bit lanes.
  bool hasMaskedAccess;
  bool hasMaskedByteAccess;
  /// Vectors of f32 to bf16, to nearest even, as one instruction that takes
  /// subnormal numbers for zeros.
  bool hasBf16Conversion = false;
  /// x * 2^n as one instruction.
  bool hasScalef;
  /// Arithmetic takes one element from memory into all lanes of an operand.
  bool broadcastsOperands;
  /// LLVM's conversions of vectors of 64-bit integers to f32 round once; where
  /// they do not, they go through f64.
  bool roundsInt64ToF32Once;
  /// The larger and the smaller of two floats as one instruction that
  /// propagates NaN and orders -0 below +0.
  bool hasExactExtrema;
  /// Names of the contraction atoms it has (contraction_atoms.h), the better
  /// ones first.
  std::vector<std::string> atoms;
  FloatControl floatControl;

  /// Lanes of a vector of 32-bit elements.
  int64_t lanes32() const { return vectorBits / 32; }
};

/// The description of a level.
const Target &getTarget(Isa isa);

/// The highest level this machine can run. This is the one dispatch point.
Isa hostIsa();

/// Whether this machine can run code of a level: its architecture is the
/// machine's and its level not above the machine's.
bool hostRuns(Isa isa);

/// The levels this machine can run, lowest first.
std::vector<Isa> hostIsas();

/// The level to compile for when none is asked for: the host's, or what the
/// debugging variable TESSERA_ISA names, as far as the host can run it.
Isa defaultIsa();

/// Parses the name of a level or "native"; a level that the host cannot
/// run is an Unsupported error unless `forOtherHost`.
Result<Isa> parseIsa(std::string_view text, bool forOtherHost = false);

} // namespace tessera

#endif // TESSERA_TARGET_TARGET_H
