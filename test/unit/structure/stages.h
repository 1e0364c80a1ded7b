//===- test/unit/structure/stages.h - What the compiler emitted -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts of one compilation, and what to look for in them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_STRUCTURE_STAGES_H
#define TESSERA_TEST_UNIT_STRUCTURE_STAGES_H

#include "kernels/table.h"
#include "session/session.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::structuretest {

struct Emitted {
  /// "tile", "loops", "llvm" and "asm".
  std::map<std::string, std::string, std::less<>> text;
  std::string object;
  std::string plan;
  /// Wall time of all stages, the printing of texts left out.
  double seconds = 0;

  const std::string &operator[](std::string_view stage) const {
    return text.find(stage)->second;
  }
};

/// Compiles without arrays. A failure fails the test and gives empty texts.
Emitted emit(const kernels::Operator &op, session::RunRequest request);
Emitted emit(Program program, session::RunRequest request);

/// The object alone, in half the time. A failure fails the test and gives none.
std::string objectOf(const kernels::Operator &op, session::RunRequest request);

/// The lines of a text that match a regular expression (ECMAScript), at most
/// three; empty when none does.
std::vector<std::string> linesWith(std::string_view text,
                                   const std::string &expression);

/// Instructions of LLVM IR text: its indented lines in function bodies.
int64_t countInstructions(std::string_view llvmText);

/// The symbols an ELF object file needs and does not define.
std::vector<std::string> undefinedSymbols(std::string_view object);

/// The operators on rows of adjacent elements whose plan is one vector loop
/// after another: all with dimensions rows and cols but transpose
/// and sort.
std::vector<const kernels::Operator *> rowOperators();

/// Dimensions of a row operator.
kernels::Dims rowsOf(int64_t rows, int64_t cols);

} // namespace tessera::structuretest

#endif // TESSERA_TEST_UNIT_STRUCTURE_STAGES_H
