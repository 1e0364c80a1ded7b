//===- structure/join_test.cpp - Dependent reductions in one loop ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_record.h"
#include "stages.h"
#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>

#include <limits>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::shared_ptr<const PlanChoices> choose(Passes passes, int64_t together = 1) {
  PlanChoices choices;
  choices.passes = passes;
  choices.together[0] = together;
  return std::make_shared<const PlanChoices>(choices);
}

/// A kernel of one row at a time, from what a row's tile gives: a scalar is
/// stored per row.
using Body = std::function<Tile(const Tile &x, const Tile &w, const Dim &cols)>;

template <typename T> Kernel rowKernel(const Body &body) {
  return kernel(
      "row", "x, w, y",
      [=](View<const T, 2> x, View<const T, 2> w, View<T, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row), body(load(x(row, cols)), load(w(row, cols)), cols));
      });
}

Result<session::Compilation>
compileRow(const Body &body, std::shared_ptr<const PlanChoices> choices,
           TraceOptions options = {}) {
  Result<Program> program =
      Program::fromKernel(rowKernel<float>(body), options);
  if (!program)
    return program.error();
  session::RunRequest request{.dims = rowsOf(8, 300), .isa = Isa::Avx2};
  request.choices = std::move(choices);
  request.machine = plannedMachine();
  return session::compileProgram(std::move(*program), request);
}

struct Case {
  const char *name;
  Body body;
  /// The law that joins it, the code that says why none does, or "none" where
  /// nothing is looked at.
  const char *expected;
};

Tile centred(const Tile &x, const Dim &cols) { return x - mean(x, cols); }

const std::vector<Case> &cases() {
  static const std::vector<Case> list = {
      // Shift.
      {"log-sum-exp",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile m = max(x, cols);
         return m + log(sum(exp(x - m), cols));
       },
       "shift"},
      {"weights, masks, factors, signs",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile m = max(x, cols);
         Tile e = -(w * exp(-(m - x)) * 3.0 / (w * w + 1));
         return sum(select(w > 0, e, 0), cols);
       },
       "shift"},
      {"another value than the one of the maximum",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         return sum(exp(w - max(x, cols)), cols);
       },
       "shift"},
      {"a temperature, base two, and squares of exponentials",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile e = exp2((x - max(x, cols)) * 0.5);
         return sum(e * e + e * e, cols);
       },
       "shift"},
      {"two masks",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile m = max(select(w > 0, x, -infinity), cols);
         return sum(select(w > 0, exp(x - m), w * exp(x - m)), cols);
       },
       "shift"},
      {"a minimum",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(exp(min(x, cols) - x), cols);
       },
       "shift"},
      // Powers.
      {"variance",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile c = centred(x, cols);
         return mean(c * c, cols);
       },
       "powers"},
      {"statistics",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return statistics(x, cols).variance;
       },
       "powers"},
      {"variance of a product, times a reciprocal",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile v = x * w;
         Tile m = sum(v, cols) * (1.0 / 300);
         return sum((v - m) * -(m - v), cols);
       },
       "powers"},
      {"deviations from what is not the mean",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile m = mean(x, cols) * 0.9 + 0.25;
         return sum((m - x) * (m - x), cols) + sum(m - x, cols);
       },
       "powers"},
      {"a function of the sum",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile m = tanh(mean(x, cols));
         return sum((x - m) * (x - m), cols);
       },
       "powers"},
      {"positions, other reductions, and a second centre beside",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile c = centred(x, cols);
         Tile spread = mean(c * c, cols);
         Tile highest = max(w, cols), place = argMax(x, cols);
         Tile d = centred(w, cols);
         return spread + highest + mean(d * d, cols) +
                cast(place, spread.dtype());
       },
       "powers"},
      // Refusals.
      {"a cube",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile c = centred(x, cols);
         return sum(c * c * c, cols);
       },
       "algebra.form"},
      {"a logarithm of exponentials",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(log(exp(x - max(x, cols))), cols);
       },
       "algebra.form"},
      {"entropy: an exponential times its exponent",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile d = x - max(x, cols);
         return sum(d * exp(d), cols);
       },
       "algebra.form"},
      {"an exponential plus what it does not scale",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         return sum(exp(x - max(x, cols)) + w, cols);
       },
       "algebra.form"},
      {"a mask whose other side is not zero",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         return sum(select(w > 0, exp(x - max(x, cols)), 1.0), cols);
       },
       "algebra.form"},
      {"a choice by the centre",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile m = max(x, cols);
         return sum(select(x >= m, exp(x - m), 0), cols);
       },
       "algebra.form"},
      {"rounding in between",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(roundTo(exp(x - max(x, cols)), DType::BF16), cols);
       },
       "algebra.form"},
      {"a temperature that is not a constant",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         return sum(exp((x - max(x, cols)) * w), cols);
       },
       "algebra.form"},
      {"exponentials that grow away from the centre",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(exp(max(x, cols) - x), cols);
       },
       "algebra.centre"},
      {"exponentials about a mean",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(exp(x - mean(x, cols)), cols);
       },
       "algebra.centre"},
      {"a maximum that is not the whole centre",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(exp(x - (max(x, cols) + 1)), cols);
       },
       "algebra.centre"},
      {"squares about a maximum",
       [](const Tile &x, const Tile &, const Dim &cols) {
         Tile c = x - max(x, cols);
         return sum(c * c, cols);
       },
       "algebra.centre"},
      {"covariance: two centres",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         return sum(centred(x, cols) * centred(w, cols), cols);
       },
       "algebra.centre"},
      {"deviations of other elements",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile c = w - mean(x, cols);
         return sum(c * c, cols);
       },
       "algebra.element"},
      {"weighted squares",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile c = centred(x, cols);
         return sum(w * (c * c), cols);
       },
       "algebra.form"},
      {"masked squares",
       [](const Tile &x, const Tile &w, const Dim &cols) {
         Tile c = centred(x, cols);
         return sum(select(w > 0, c * c, 0), cols);
       },
       "algebra.form"},
      {"deviations alone",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(centred(x, cols), cols);
       },
       "algebra.reference"},
      {"a product of exponentials",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return prod(exp(x - max(x, cols)), cols);
       },
       "algebra.combiner"},
      {"a fixed order",
       [](const Tile &x, const Tile &, const Dim &cols) {
         return sum(exp(x - max(x, cols)), cols, Order::Left);
       },
       "none"},
  };
  return list;
}

std::string lawOf(const Plan &plan) {
  for (const StagePlan &stage : plan.stages)
    for (const NestPlan &nest : stage.nests)
      if (!nest.law.empty())
        return nest.law;
  return "";
}

bool isJoined(const Case &row) {
  const std::string_view expected = row.expected;
  return expected == "shift" || expected == "powers";
}

TEST(ReductionAlgebra, ProvesOrSaysWhyNot) {
  for (const Case &row : cases()) {
    SCOPED_TRACE(row.name);
    const bool isRefused = !isJoined(row);
    Result<session::Compilation> joined =
        compileRow(row.body, choose(Passes::Joined));
    ASSERT_TRUE(joined.ok()) << joined.error().str();
    EXPECT_EQ(lawOf(*joined->kernel.plan), isRefused ? "" : row.expected);
    // The search looks at it, or has the reason.
    Result<session::Compilation> searched = compileRow(row.body, nullptr);
    ASSERT_TRUE(searched.ok()) << searched.error().str();
    std::string code = "none";
    for (const PlanCandidate &candidate : searched->kernel.plan->candidates)
      if (candidate.what.starts_with("dependent reductions"))
        code = candidate.code;
    if (isRefused)
      EXPECT_EQ(code, row.expected);
    else if (row.expected == std::string_view("shift"))
      EXPECT_EQ(code, "none") << "saved plans alone join by it";
    else
      EXPECT_FALSE(code == "none" || code.starts_with("algebra.")) << code;
  }
}

TEST(ReductionAlgebra, StrictKernelsAreRoundedAsWritten) {
  TraceOptions options;
  options.tier = Tier::Strict;
  Result<session::Compilation> joined =
      compileRow(cases()[0].body, choose(Passes::Joined), options);
  ASSERT_TRUE(joined.ok()) << joined.error().str();
  EXPECT_EQ(lawOf(*joined->kernel.plan), "");
}

size_t count(std::string_view text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos;
       at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(JoinedPasses, HaveOneLoopLess) {
  for (const char *op : {"layer_norm", "residual_layer_norm", "softmax",
                         "masked_softmax", "cross_entropy"}) {
    SCOPED_TRACE(op);
    std::string loops[2];
    for (Passes passes : {Passes::Separate, Passes::Joined}) {
      session::RunRequest request{.dims = rowsOf(64, 1024), .isa = Isa::Avx512};
      request.choices = choose(passes);
      request.validate = false;
      loops[size_t(passes)] =
          emit(*kernels::findOperator(op), std::move(request))["loops"];
    }
    // One loop is behind a branch that rows rarely take.
    EXPECT_EQ(count(loops[0], "scf.for"), count(loops[1], "scf.for"));
    EXPECT_EQ(count(loops[0], "tessera.usual"), 0u);
    EXPECT_EQ(count(loops[1], "tessera.usual"), 1u);
  }
}

session::RunRequest joinedRequest(int64_t rows, int64_t cols, Isa isa,
                                  int64_t together = 1) {
  session::RunRequest request{.dims = rowsOf(rows, cols), .isa = isa};
  request.choices = choose(Passes::Joined, together);
  return request;
}

constexpr kernels::ValueClass valueClasses[] = {
    kernels::ValueClass::Normal,
    kernels::ValueClass::Integers,
    kernels::ValueClass::NegativeInfinity,
    kernels::ValueClass::SprinkledNan,
    kernels::ValueClass::SprinkledInfinity,
    kernels::ValueClass::Subnormal,
    kernels::ValueClass::HugeOffset,
    kernels::ValueClass::SignedZeros,
    kernels::ValueClass::LargeMagnitude};

constexpr Isa isas[] = {Isa::X86_64, Isa::Avx2, Isa::Avx512};

TEST(JoinedPasses, AreWithinTheBounds) {
  for (const char *op : {"layer_norm", "residual_layer_norm", "softmax",
                         "masked_softmax", "cross_entropy"})
    for (auto [rows, cols] :
         {std::pair<int64_t, int64_t>{5, 2}, {4, 33}, {9, 300}, {2, 9000}})
      for (Isa isa : isas) {
        if (!hostRuns(isa) || (cols > 300 && isa != hostIsa()))
          continue;
        for (DType dtype : {DType::F32, DType::BF16, DType::F64}) {
          if (dtype != DType::F32 && isa != hostIsa())
            continue;
          session::RunRequest request =
              joinedRequest(rows, cols, isa, cols % 2 + 1);
          request.dtype = dtype;
          Result<session::CompiledOperator> compiled =
              session::CompiledOperator::create(*kernels::findOperator(op),
                                                request);
          ASSERT_TRUE(compiled.ok()) << compiled.error().str();
          EXPECT_NE(lawOf(*compiled->compiled()->plan), "");
          for (kernels::ValueClass valueClass : valueClasses) {
            session::RunValues values;
            values.seed = uint64_t(cols);
            values.valueClass = valueClass;
            Result<session::RunResult> result = compiled->run(values);
            ASSERT_TRUE(result.ok()) << result.error().str();
            EXPECT_TRUE(result->passed())
                << op << " " << rows << "x" << cols << " " << name(isa) << " "
                << name(dtype) << " class " << int(valueClass) << "\n"
                << result->failures();
          }
        }
      }
}

/// Runs the joined kernel on the values and judges every element by the
/// interpreter's bounds.
template <typename T>
void runJoined(const Case &row, int64_t rows, int64_t cols,
               const session::RunValues &values) {
  Result<Program> program = Program::fromKernel(rowKernel<T>(row.body), {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  session::RunRequest request = joinedRequest(rows, cols, hostIsa());
  Result<session::RunResult> result =
      session::runProgram(std::move(*program), request, values);
  ASSERT_TRUE(result.ok()) << result.error().str();
  EXPECT_TRUE(result->passed()) << result->failures();
}

TEST(JoinedPasses, KernelsOfUsersAreWithinTheInterpretersBounds) {
  for (const Case &row : cases()) {
    if (!isJoined(row))
      continue;
    for (kernels::ValueClass valueClass : valueClasses) {
      SCOPED_TRACE(std::string(row.name) + ", class " +
                   std::to_string(int(valueClass)));
      session::RunValues values;
      values.valueClass = valueClass;
      runJoined<float>(row, 5, 300, values);
      runJoined<BF16>(row, 3, 67, values);
      runJoined<double>(row, 3, 67, values);
    }
  }
}

/// Rows that a few elements say little or nothing about.
std::vector<float> hardRow(int kind, int64_t cols) {
  std::vector<float> row(static_cast<size_t>(cols));
  for (int64_t i = 0; i < cols; ++i) {
    float usual = static_cast<float>((i * 37) % 64) / 32 - 1;
    float &x = row[static_cast<size_t>(i)];
    // Where the reference is sampled: eight or four elements.
    bool isSampled = false;
    for (int64_t count : {4, 8})
      for (int64_t k = 0; k < count; ++k)
        isSampled |= i == (2 * k + 1) * cols / (2 * count);
    switch (kind) {
    case 0: // one value
      x = 3.1f;
      break;
    case 1: // outliers that are all that is sampled
      x = isSampled ? 1e6f : usual;
      break;
    case 2: // all but what is sampled is invisible or far below
      x = isSampled ? usual : -1e30f;
      break;
    case 3: // the samples are far below
      x = isSampled ? -100.0f : usual;
      break;
    case 4: // the samples are invisible
      x = isSampled ? -std::numeric_limits<float>::infinity() : usual;
      break;
    case 5: // a slope, far from zero
      x = 1e5f + static_cast<float>(i);
      break;
    case 6: // sums of the samples pass the range
      x = isSampled ? 3e38f : -3e38f;
      break;
    case 7: // squares pass the range
      x = i % 2 ? 1e19f : -1e19f;
      break;
    case 8: // one element that outweighs all others
      x = i == cols / 3 ? 1e8f : usual;
      break;
    case 9: // an infinity that is sampled
      x = i == cols / 8 ? std::numeric_limits<float>::infinity() : usual;
      break;
    case 10: // both infinities
      x = i == 1   ? std::numeric_limits<float>::infinity()
          : i == 5 ? -std::numeric_limits<float>::infinity()
                   : usual;
      break;
    case 11: // NaN in the tail
      x = i == cols - 1 ? std::numeric_limits<float>::quiet_NaN() : usual;
      break;
    case 12: // small steps about what is too large for a reference
      x = 1.25e18f * (1 + static_cast<float>((i * 37) % 64) / (1 << 20));
      break;
    default: // small steps about a large number
      x = 4194304.0f + usual;
      break;
    }
  }
  return row;
}
constexpr int hardRows = 14;

TEST(JoinedPasses, RowsThatSamplesSayNothingAbout) {
  for (int64_t cols : {67, 300, 1500}) {
    std::vector<float> x, w;
    for (int kind = 0; kind < hardRows; ++kind) {
      std::vector<float> row = hardRow(kind, cols);
      x.insert(x.end(), row.begin(), row.end());
    }
    for (size_t i = 0; i < x.size(); ++i)
      w.push_back(i % 5 == 0 ? -0.5f : 1.25f);
    session::RunValues values;
    values.inputs["x"] =
        TensorRef::dense(x.data(), DType::F32, {hardRows, cols});
    values.inputs["w"] =
        TensorRef::dense(w.data(), DType::F32, {hardRows, cols});
    for (const Case &row : cases()) {
      if (!isJoined(row))
        continue;
      SCOPED_TRACE(std::string(row.name) + ", " + std::to_string(cols));
      runJoined<float>(row, hardRows, cols, values);
    }
    values.inputs.erase("w");
    for (const char *op : {"layer_norm", "softmax"}) {
      SCOPED_TRACE(op);
      Result<session::RunResult> result = session::runOperator(
          *kernels::findOperator(op), joinedRequest(hardRows, cols, hostIsa()),
          values);
      ASSERT_TRUE(result.ok()) << result.error().str();
      EXPECT_TRUE(result->passed()) << result->failures();
    }
  }
}

} // namespace
} // namespace tessera::structuretest
