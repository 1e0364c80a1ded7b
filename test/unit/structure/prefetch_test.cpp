//===- structure/prefetch_test.cpp - What programs prefetch ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "plan/plan_record.h"
#include "stages.h"
#include "tessera/dsl.h"
#include "test/unit/run/cases.h"

#include <gmock/gmock.h>

#include <regex>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const PlanChoices> prefetching(Prefetch prefetch,
                                               int64_t together = 1) {
  PlanChoices choices;
  choices.prefetch[0] = prefetch;
  choices.together[0] = together;
  return std::make_shared<const PlanChoices>(choices);
}

Emitted emitRows(const char *op, int64_t rows, int64_t cols, Isa isa,
                 std::shared_ptr<const PlanChoices> choices = nullptr,
                 DType dtype = DType::F32) {
  session::RunRequest request{
      .dims = rowsOf(rows, cols), .dtype = dtype, .isa = isa};
  request.choices = std::move(choices);
  return emit(*kernels::findOperator(op), std::move(request));
}

size_t count(std::string_view text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos;
       at = text.find(what, at + 1))
    ++found;
  return found;
}

/// The operation that defines a value: the last one of the name, which sibling
/// regions use again, in the text before the use.
std::string definition(std::string_view before, const std::string &value) {
  size_t at = before.rfind(" " + value + " = ");
  if (value.empty() || at == before.npos)
    return "";
  return std::string(before.substr(at, before.find('\n', at) - at));
}

/// The operand of an operation that a regular expression finds.
std::string operand(const std::string &op, const char *expression) {
  std::smatch found;
  return std::regex_search(op, found, std::regex(expression)) ? found[1].str()
                                                              : "";
}

// The element of the program that comes next: the pointer of a load, ahead by
// the stride of the rows times the programs that advance together.
TEST(Prefetch, IsAtTheNextProgramsElement) {
  for (int64_t together : {1, 2}) {
    SCOPED_TRACE(together);
    Emitted code = emitRows("rms_norm", 257, 1538, Isa::Avx512,
                            prefetching(Prefetch::Inputs, together));
    const std::string &loops = code["loops"];
    std::smatch found;
    ASSERT_TRUE(std::regex_search(
        loops, found, std::regex(R"(intr\.prefetch"\((%\w+)\).* rw = 0 )")))
        << loops;
    const std::string_view before =
        std::string_view(loops).substr(0, size_t(found.position()));
    std::string next = definition(before, found[1]),
                pointer = operand(next, R"(getelementptr (%\w+)\[)"),
                distance = definition(before, operand(next, R"(\[(%\w+)\])"));
    EXPECT_NE(before.find("llvm.load " + pointer + " "), before.npos) << next;
    // index_cast(0 + stride * together), what is 0 or 1 folded or not.
    std::string index = definition(before, operand(distance, R"((%\w+) :)"));
    for (std::string term; index.find("addi") != index.npos; index = term) {
      term = definition(before, operand(index, R"(addi (%\w+),)"));
      if (term.find("constant") != term.npos)
        term = definition(before, operand(index, R"(addi %\w+, (%\w+))"));
    }
    if (index.find("muli") != index.npos) {
      EXPECT_THAT(definition(before, operand(index, R"(, (%\w+))")),
                  HasSubstr("constant " + std::to_string(together) + " "));
      index = definition(before, operand(index, R"(muli (%\w+),)"));
    } else {
      EXPECT_EQ(together, 1) << index;
    }
    // The stride is read from the call's description.
    EXPECT_THAT(index, HasSubstr("index_cast"));
    EXPECT_THAT(definition(before, operand(index, R"((%\w+) :)")),
                HasSubstr("llvm.load"));
  }
}

TEST(Prefetch, IsOneInstructionForALine) {
  struct Form {
    Isa isa;
    const char *loaded, *stored;
  };
  for (const Form &form : {Form{Isa::Avx512, "prefetcht0", "prefetchw"},
                           Form{Isa::Avx2, "prefetcht0", "prefetchw"},
                           Form{Isa::Neon, "pldl1keep", "pstl1keep"}}) {
    Emitted none = emitRows("rms_norm", 256, 1024, form.isa,
                            prefetching(Prefetch::None)),
            inputs = emitRows("rms_norm", 256, 1024, form.isa,
                              prefetching(Prefetch::Inputs)),
            both = emitRows("rms_norm", 256, 1024, form.isa,
                            prefetching(Prefetch::InputsAndOutputs));
    SCOPED_TRACE(name(form.isa));
    EXPECT_EQ(count(none["asm"], "prefetch") + count(none["asm"], "prfm"), 0u);
    // Four vectors per iteration, of the line's length or a part of it.
    const size_t lines =
        static_cast<size_t>(4 * getTarget(form.isa).vectorBits / 512);
    EXPECT_EQ(count(inputs["asm"], form.loaded), lines) << inputs["asm"];
    EXPECT_EQ(count(inputs["asm"], form.stored), 0u);
    EXPECT_EQ(count(both["asm"], form.loaded), lines);
    EXPECT_EQ(count(both["asm"], form.stored), lines) << both["asm"];
    EXPECT_THAT(both.plan, HasSubstr("; prefetch inputs and outputs"));
  }
}

TEST(Prefetch, IsChosenWhereRowsComeFromFarCaches) {
  auto plan = [](const char *op, int64_t rows, int64_t cols) {
    return emitRows(op, rows, cols, Isa::Avx512).plan;
  };
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{257, 1538}, {1024, 4096}})
    EXPECT_THAT(plan("rms_norm", rows, cols), HasSubstr("; prefetch "));
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{17, 65}, {64, 256}})
    EXPECT_THAT(plan("rms_norm", rows, cols), Not(HasSubstr("prefetch")))
        << rows << "x" << cols;
  // A loop that reads for the only time has no time to spare, but vectors that
  // cross lines would wait for two.
  EXPECT_THAT(plan("row_sum", 513, 2048), Not(HasSubstr("prefetch")));
  EXPECT_THAT(plan("row_sum", 513, 2051), HasSubstr("; prefetch inputs"));
  // Nothing interrupts their loops.
  for (const char *op : {"add", "copy", "gelu_residual", "rope"})
    EXPECT_THAT(plan(op, 256, 1538), Not(HasSubstr("prefetch")));
}

// The arrays that all programs share are near anyway.
TEST(Prefetch, IsOfWhatMovesWithThePrograms) {
  Emitted code = emitRows("rms_norm", 256, 1024, Isa::Avx512,
                          prefetching(Prefetch::Inputs));
  // x, but not its weights.
  EXPECT_EQ(count(code["loops"], "intr.prefetch"), 4u) << code["loops"];
}

TEST(Prefetch, ChangesNoResult) {
  for (const kernels::Operator *op : rowOperators())
    for (Isa isa : hostIsas()) {
      if (runtest::addsNarrowProducts(isa))
        continue; // The code is that of avx512.
      for (DType dtype : {DType::F32, DType::BF16})
        for (int64_t together : {1, 2}) {
          if (std::find(op->dtypes.begin(), op->dtypes.end(), dtype) ==
              op->dtypes.end())
            continue;
          session::RunRequest request{
              .dims = rowsOf(9, 194), .dtype = dtype, .isa = isa};
          request.choices = prefetching(Prefetch::InputsAndOutputs, together);
          Result<session::RunResult> result =
              session::runOperator(*op, request);
          ASSERT_TRUE(result.ok()) << result.error().str();
          EXPECT_TRUE(result->passed()) << op->name << result->failures();
        }
    }
}

TEST(Prefetch, IsNotPartOfChecks) {
  Kernel picked =
      kernel("picked", "x, which, y",
             [](View<const float, 2> x, View<const int64_t, 1> which,
                View<float, 2> y) {
               Dim rows = dim("rows", x.extent(0)),
                   cols = dim("cols", x.extent(1));
               for (auto row : parallel(rows)) {
                 Tile v = load(x(row, cols));
                 Tile offset = load(x(load(which(row)), cols));
                 store(y(row, cols), (v + offset) / sum(v * v, cols));
               }
             });
  Result<Program> program = Program::fromKernel(picked, {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  session::RunRequest request{.dims = rowsOf(256, 1024), .isa = Isa::Avx512};
  request.validate = true;
  request.choices = prefetching(Prefetch::InputsAndOutputs);
  Emitted code = emit(std::move(*program), request);
  const std::string &loops = code["loops"];
  size_t check = loops.find("@picked_check0_body"),
         stage = loops.find("@picked_stage0_body");
  ASSERT_NE(check, loops.npos);
  ASSERT_NE(stage, loops.npos);
  ASSERT_LT(check, stage);
  EXPECT_EQ(count(loops.substr(check, stage - check), "prefetch"), 0u);
  EXPECT_GT(count(loops.substr(stage), "prefetch"), 0u);
}

} // namespace
} // namespace tessera::structuretest
