//===- session/verify.cpp - Judging every element of an output ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/verify.h"

#include "kernels/elements.h"
#include "support/float_format.h"

#include "fmt/format.h"

#include <cmath>
#include <limits>

namespace tessera::session {

namespace {

std::vector<int64_t> indexOf(int64_t linear,
                             const std::vector<int64_t> &extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t axis = extents.size(); axis-- > 0;) {
    index[axis] = linear % extents[axis];
    linear /= extents[axis];
  }
  return index;
}

/// An exact integer as the bits that loadIntegerElement gives.
int64_t integerOf(long double value) {
  return value < 0 ? static_cast<int64_t>(value)
                   : static_cast<int64_t>(static_cast<uint64_t>(value));
}

/// Judges the elements of one output one after another.
class Judge {
public:
  Judge(OutputResult &result, const StrictOutput &strict)
      : result(result), strict(strict) {}

  void integer(int64_t linear, int64_t found, int64_t expected) {
    if (found == expected)
      return;
    noteError(
        std::fabs(static_cast<double>(found) - static_cast<double>(expected)),
        0);
    noteWrong(linear, static_cast<double>(found), static_cast<double>(expected),
              0);
  }

  Result<void> floating(int64_t linear, double found, const Bounded &expected) {
    switch (bounded::judge(expected, found, result.dtype)) {
    case bounded::Verdict::Accept:
      accept(found, expected);
      return {};
    case bounded::Verdict::Reject:
      reject(linear, found, expected);
      return {};
    case bounded::Verdict::Undecided:
      return undecided(linear, found, expected);
    }
    return {};
  }

private:
  void accept(double found, const Bounded &expected) {
    if (!std::isfinite(found) || !std::isfinite(expected.value))
      return;
    long double error = std::fabs(found - expected.value);
    noteError(static_cast<double>(error), static_cast<double>(expected.radius));
    if (expected.radius > 0)
      result.boundUsed =
          std::max(result.boundUsed,
                   std::min(1.0, static_cast<double>(error / expected.radius)));
  }

  void reject(int64_t linear, double found, const Bounded &expected) {
    double error = static_cast<double>(std::fabs(found - expected.value));
    noteError(std::isfinite(error) ? error
                                   : std::numeric_limits<double>::infinity(),
              static_cast<double>(expected.radius));
    noteWrong(linear, found, static_cast<double>(expected.value),
              static_cast<double>(expected.radius));
  }

  Result<void> undecided(int64_t linear, double found,
                         const Bounded &expected) {
    if (reference.empty()) {
      Result<TensorRef> output = strict();
      if (!output)
        return output.error();
      if (isFloat(result.dtype))
        reference = kernels::loadFloats(*output);
      else
        for (int64_t value : kernels::loadIntegers(*output))
          reference.push_back(static_cast<double>(value));
    }
    ++result.comparedWithInterpreter;
    double value = reference[static_cast<size_t>(linear)];
    // Known outcomes were none of it: only the interpreter's own result is
    // legal. Where nothing is known, the rest of the formula may still round:
    // the radius, as far as it goes, holds for the difference.
    bool same = found == value || (std::isnan(found) && std::isnan(value)) ||
                (expected.isUnknown() && std::isfinite(found) &&
                 std::isfinite(value) && std::isfinite(expected.radius) &&
                 std::fabs(found - value) <= expected.radius);
    if (!same)
      reject(linear, found, Bounded::exact(value));
    return {};
  }

  void noteError(double error, double bound) {
    if (error > result.maxError ||
        (result.maxError == 0 && bound > result.bound)) {
      result.maxError = std::max(error, result.maxError);
      result.bound = bound;
    }
  }

  void noteWrong(int64_t linear, double found, double expected, double bound) {
    if (result.wrong++ == 0)
      result.firstWrong =
          WrongElement{indexOf(linear, result.extents), found, expected, bound};
  }

  OutputResult &result;
  const StrictOutput &strict;
  std::vector<double> reference;
};

} // namespace

std::string WrongElement::str() const {
  std::string text = "[";
  for (size_t i = 0; i < index.size(); ++i)
    text += (i ? ", " : "") + std::to_string(index[i]);
  return text + fmt::format("]: found {}, expected {} within {:.3g}", found,
                            expected, bound);
}

Result<OutputResult> judgeOutput(const std::string &name,
                                 const TensorRef &actual,
                                 const Expected &expected,
                                 const StrictOutput &strict, double factor) {
  OutputResult result;
  result.name = name;
  result.dtype = actual.dtype;
  result.extents = actual.extents;
  result.elements = actual.elements();
  bool floating = isFloat(actual.dtype);
  size_t known = expected.integers.empty() ? expected.floats.size()
                                           : expected.integers.size();
  if (known != static_cast<size_t>(result.elements))
    return Error{ErrorFamily::Internal,
                 "verify.size",
                 fmt::format("the oracle made {} elements for output '{}', "
                             "which has {}",
                             known, name, result.elements),
                 {}};
  Judge judge(result, strict);
  std::optional<Error> failure;
  kernels::forEachElement(actual, [&](void *address, int64_t linear) {
    size_t i = static_cast<size_t>(linear);
    if (floating || expected.integers.empty()) {
      double found = floating ? kernels::loadFloatElement(actual.dtype, address)
                              : static_cast<double>(kernels::loadIntegerElement(
                                    actual.dtype, address));
      Bounded value = expected.floats[i];
      if (factor != 1) {
        value.radius *= factor;
        // One more rounding, which the radius of what is rounded once has not.
        if (sizeInBytes(result.dtype) < 4 && floating &&
            std::isfinite(value.value))
          value.radius += static_cast<double>(
              floatFormat(result.dtype).ulp(std::fabs(value.value)));
      }
      if (!floating && !value.leftRange) {
        judge.integer(linear,
                      kernels::loadIntegerElement(actual.dtype, address),
                      integerOf(value.value));
        return;
      }
      if (Result<void> status = judge.floating(linear, found, value);
          !status && !failure)
        failure = status.error();
      return;
    }
    judge.integer(linear, kernels::loadIntegerElement(actual.dtype, address),
                  expected.integers[i]);
  });
  if (failure)
    return *failure;
  return result;
}

} // namespace tessera::session
