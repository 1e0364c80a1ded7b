//===- saved_plan.h - Plans of softmax as text ------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_UNIT_DRIVER_SAVED_PLAN_H
#define TESSERA_TEST_UNIT_DRIVER_SAVED_PLAN_H

#include "driver/plan_file.h"
#include "kernels/table.h"
#include "session/session.h"
#include "test/unit/planned_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::savedplan {

/// A compilation of an operator, its plan as text and its machine code.
struct Made {
  std::string summary;
  std::string source;
  std::string text;
  std::string object;
  std::shared_ptr<const Plan> plan;
};

inline Result<Made> make(std::string_view op, const kernels::Dims &dims,
                         const std::string &plan = "", Isa isa = Isa::Avx2) {
  session::RunRequest request;
  request.dims = dims;
  request.isa = isa;
  // The same plans on any machine.
  request.threads = 2;
  request.machine = plannedMachine();
  if (!plan.empty())
    request.savedPlan = PlanText{"p.json", plan};
  Result<session::Compilation> made =
      session::compileOperator(*kernels::findOperator(op), request);
  if (!made)
    return made.error();
  const CompiledKernel &kernel = made->kernel;
  return Made{kernel.planSummary, kernel.planSource,
              writePlan(*kernel.plan, *kernel.subject), kernel.object,
              kernel.plan};
}

inline const kernels::Dims softmaxDims = {{"rows", 64}, {"cols", 100}};

inline const Made &softmax() {
  static const Made made = *make("softmax", softmaxDims);
  return made;
}

/// A plan of softmax.
inline const std::string &softmaxPlan() { return softmax().text; }

/// The number of a nest of the first stage.
inline int64_t idOf(const Made &made, size_t nest) {
  return made.plan->stages[0].nests[nest].id;
}

/// "\"id\": 7" for a nest of softmax.
inline std::string idField(size_t nest) {
  return "\"id\": " + std::to_string(idOf(softmax(), nest));
}

inline std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "no " << from << " in " << text;
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

inline Error errorOf(const std::string &plan) {
  Result<Made> made = make("softmax", softmaxDims, plan);
  if (!made)
    return made.error();
  ADD_FAILURE() << "expected an error for " << plan;
  return {};
}

/// The message for a plan of softmax that is no good at all.
inline std::string damage(const std::string &plan) {
  Error error = errorOf(plan);
  EXPECT_EQ(error.code, "usage.plan") << error.message;
  EXPECT_EQ(error.family, ErrorFamily::Usage);
  EXPECT_THAT(error.message, testing::StartsWith("plan 'p.json': "));
  return error.message;
}

/// The same for one that cannot be applied.
inline std::string refusal(const std::string &plan) {
  Error error = errorOf(plan);
  EXPECT_EQ(error.code, "unsupported.plan") << error.message;
  EXPECT_EQ(error.family, ErrorFamily::Unsupported);
  return error.message;
}

/// The plan with every "vectors_per_iteration" replaced, and so on.
inline std::string withField(std::string text, const std::string &field,
                             const std::string &value) {
  std::string key = "\"" + field + "\": ";
  size_t at = text.find(key);
  EXPECT_NE(at, std::string::npos);
  size_t end = text.find_first_of(",\n", at);
  return text.replace(at, end - at, key + value);
}

} // namespace tessera::savedplan

#endif // TESSERA_TEST_UNIT_DRIVER_SAVED_PLAN_H
