//===- object_facts.h - What an emitted object holds ------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Purpose: sizes, stack use and registers of the functions of an ELF object,
// read from the machine code itself by disassembling it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_OBJECT_FACTS_H
#define TESSERA_DRIVER_OBJECT_FACTS_H

#include "target/target.h"
#include "tessera/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct FunctionFact {
  std::string name;
  int64_t codeBytes = 0;
  int64_t instructions = 0;
  /// Bytes the prologue reserves, pushed registers included.
  int64_t stackBytes = 0;
  /// Instructions that read or write memory relative to the stack pointer:
  /// spills, reloads and locals.
  int64_t stackAccesses = 0;
  /// Instructions that name a vector register of 512, 256 or 128 bits (the
  /// widest counts).
  int64_t vector512 = 0, vector256 = 0, vector128 = 0;
  /// Distinct vector registers.
  int64_t vectorRegisters = 0;
};

/// The functions of the object, in the order of their addresses.
Result<std::vector<FunctionFact>> readFunctions(const std::string &object,
                                                const Target &target);

} // namespace tessera

#endif // TESSERA_DRIVER_OBJECT_FACTS_H
