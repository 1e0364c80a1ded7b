//===- session/verify.h - Judging every element of an output ----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SESSION_VERIFY_H
#define TESSERA_SESSION_VERIFY_H

#include "support/bounded.h"
#include "tessera/error.h"
#include "tessera/tensor.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera::session {

struct WrongElement {
  std::vector<int64_t> index;
  double found = 0;
  double expected = 0;
  /// How far from `expected` a legal result may lie.
  double bound = 0;

  /// "[3, 17]: found 1.5, expected 1.25 within 1e-07".
  std::string str() const;
};

/// The verdict on one output.
struct OutputResult {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> extents;
  /// The largest |found - expected|, infinite where one of the two is no
  /// number, and the bound of that element.
  double maxError = 0;
  double bound = 0;
  /// The largest part of its bound that an accepted element uses, 0 to 1.
  double boundUsed = 0;
  int64_t elements = 0;
  int64_t wrong = 0;
  std::optional<WrongElement> firstWrong;
  /// Elements that the oracle does not decide, because nothing is known of them
  /// or because an intermediate left the compute type's range and the result is
  /// not among the outcomes that this leaves: they were compared with the
  /// interpreter.
  int64_t comparedWithInterpreter = 0;

  bool passed() const { return wrong == 0; }
};

/// What an output should hold, in row-major order: `floats` for floating types;
/// for the others `integers`, or `floats` with exact values where that is
/// empty.
struct Expected {
  std::vector<Bounded> floats;
  std::vector<int64_t> integers;
};

/// The output as the strict interpreter computes it.
using StrictOutput = std::function<Result<TensorRef>()>;

/// Judges every element within `factor` times its bound; where that is not 1,
/// elements of types below 32 bits may be off by one more unit in the last
/// place. `strict` is called when an element needs it.
Result<OutputResult> judgeOutput(const std::string &name,
                                 const TensorRef &actual,
                                 const Expected &expected,
                                 const StrictOutput &strict, double factor = 1);

} // namespace tessera::session

#endif // TESSERA_SESSION_VERIFY_H
