//===- docs/readme_test.cpp - The example of README.md --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The README's program, verbatim, and the messages that README and
// docs/language.md show.
//
//===----------------------------------------------------------------------===//

#include "pages.h"
#include "test/unit/planned_machine.h"

#include "session/session.h"
#include "tessera/compile.h"
#include "tessera/dsl.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace tessera {
namespace {

// snippet: kernel
Kernel gatedNorm =
    kernel("gated_norm", "x, gate, w, y, eps = 1e-6",
           [](View<const Float, 2> x, View<const Float, 2> gate,
              View<const Float, 1> w, View<Float, 2> y, Scalar<Float> eps) {
             Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
             for (auto i : parallel(row)) {
               Tile v = load(x(i, col)), g = load(gate(i, col));
               Tile scale = rsqrt(mean(v * v, col) + eps);
               store(y(i, col), v * scale * load(w(col)) * g * sigmoid(g));
             }
           });
// end snippet

// snippet: run
int run() {
  constexpr int64_t rows = 4, cols = 1000;
  std::vector<float> x(rows * cols, 2), gate(rows * cols, 1), w(cols, 0.5f);
  std::vector<float> y(rows * cols);
  std::vector<Argument> arguments = {
      TensorRef::dense(x.data(), DType::F32, {rows, cols}),
      TensorRef::dense(gate.data(), DType::F32, {rows, cols}),
      TensorRef::dense(w.data(), DType::F32, {cols}),
      TensorRef::dense(y.data(), DType::F32, {rows, cols})};
  if (Result<void> done = launch(gatedNorm, arguments); !done) {
    std::fprintf(stderr, "%s\n", done.error().str().c_str());
    return 1;
  }
  std::printf("y[0] = %f\n", y[0]);
  return 0;
}
// end snippet

TEST(Readme, Runs) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(), 0);
  std::string printed = testing::internal::GetCapturedStdout();
  // 2 / sqrt(4 + 1e-6) * 0.5 * sigmoid(1)
  EXPECT_EQ(printed, "y[0] = 0.365529\n");
  EXPECT_NE(docs::readSource("README.md").find(printed), std::string::npos);
}

/// What is kept for later calls must not trip over the end of the process.
TEST(ReadmeDeathTest, LeavesCleanly) {
  EXPECT_EXIT(std::exit(run()), testing::ExitedWithCode(0), "");
}

/// The plans that the page shows are those of the machines that it names.
TEST(Readme, ShowsThePlans) {
  if (!hostRuns(Isa::Avx512))
    GTEST_SKIP() << "the page shows output of avx512";
  std::string readme = docs::readSource("README.md");
  auto expectShown = [&](const Result<session::Compilation> &compiled) {
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    EXPECT_NE(readme.find("plan: " + compiled->kernel.planSummary),
              std::string::npos)
        << "README.md should show plan: " << compiled->kernel.planSummary;
  };
  expectShown(session::compileOperator(*kernels::findOperator("softmax"),
                                       {.dims = {{"rows", 17}, {"cols", 65}},
                                        .isa = Isa::Avx512,
                                        .machine = plannedMachine()},
                                       session::Assume::Dense));
  Result<Program> program =
      Program::fromFile(TESSERA_SOURCE_DIR "/examples/my_kernel.mlir");
  ASSERT_TRUE(program.ok()) << program.error().str();
  expectShown(session::compileProgram(std::move(*program),
                                      {.dims = {{"row", 16}, {"col", 300}},
                                       .isa = Isa::Avx512,
                                       .machine = plannedMachine()},
                                      session::Assume::Dense));
}

/// The part of an error that does not depend on where the source lies.
std::string messageOf(const Error &error) {
  std::string text = error.str();
  return text.substr(text.find(": error: "));
}

TEST(Readme, ShowsTheMessageOfAWrongKernel) {
  Kernel wrong =
      kernel("gated_norm", "x, y, eps = 1e-6",
             [](View<const Float, 2> x, View<Float, 2> y, Scalar<Float> eps) {
               Dim row = dim("row", x.extent(0));
               Dim col = dim("col", x.extent(1));
               for (auto i : parallel(row)) {
                 Tile v = load(x(i, col));
                 // snippet: wrong
                 Tile scale = rsqrt(mean(v * v, row) + eps);
                 // end snippet
                 store(y(i, col), v * scale);
               }
             });
  std::vector<Error> errors = wrong.diagnostics();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, "dsl.dimension");
  // The message also says where the operand was made and the dimension was
  // declared, with the file's path; the page has "kernel.cpp" for it.
  std::string expected = messageOf(errors[0]);
  for (size_t at; (at = expected.find(__FILE__)) != std::string::npos;)
    expected.replace(at, std::string(__FILE__).size(), "kernel.cpp");
  bool shown = false;
  std::string readme = docs::readSource("README.md");
  for (const docs::CodeBlock &block : docs::codeBlocks("README.md", "text"))
    shown |= block.text.find("[dsl.dimension]") != std::string::npos;
  EXPECT_TRUE(shown) << "README.md should show: kernel.cpp:8" << expected;
  // Line numbers aside.
  auto words = [](std::string text) {
    std::string result;
    for (char c : text)
      if (!std::isdigit(static_cast<unsigned char>(c)) && c != ':' &&
          c != '\n' && c != ' ')
        result += c;
    return result;
  };
  EXPECT_NE(words(readme).find(words(expected)), std::string::npos) << expected;
}

TEST(LanguagePage, ShowsTheMessageOfAWrongKernel) {
  Kernel wrong =
      kernel("wrong", "x, y", [](View<const Float, 1> x, View<Float, 1> y) {
        Dim n = dim("n", x.extent(0));
        Tile v = load(x(n));
        store(y(n), v * iota(n));
      });
  std::vector<Error> errors = wrong.diagnostics();
  ASSERT_EQ(errors.size(), 1u);
  std::string page = docs::readSource("docs/language.md");
  EXPECT_NE(page.find("[" + errors[0].code + "]"), std::string::npos)
      << errors[0].str();
}

} // namespace
} // namespace tessera
