//===- docs/new_kernel_test.cpp - The kernel of docs/howto/new-kernel.md --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The page's kernel, oracle and table row, verbatim: the kernel runs at every
// instruction-set level of this machine and in the interpreter, over types and
// awkward extents, and every element is judged; the oracle is compared with the
// interpreter; and an operator of the library is mentioned in exactly the files
// that the page lists.
//
//===----------------------------------------------------------------------===//

#include "pages.h"

#include "kernels/generate.h"
#include "kernels/oracle/arguments.h"
#include "kernels/table.h"
#include "session/session.h"
#include "tessera/dsl.h"
#include "tessera/npy.h"

#include <filesystem>
#include <set>

namespace tessera {

namespace kernels {

// snippet: kernel
Kernel softcap() {
  return kernel(
      "softcap", "x, y, cap = 30",
      [](View<const Float, 2> x, View<Float, 2> y, Scalar<Float> cap) {
        Dim rows = dim("rows", x.extent(0));
        Dim cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row, cols), cap * tanh(load(x(row, cols)) / cap));
      });
}
// end snippet

} // namespace kernels

namespace oracle {

// snippet: oracle
Result<OracleResult> softcap(const OracleArgs &args) {
  Inputs inputs(args);
  Floats x = inputs.floats("x", 2);
  if (inputs.error())
    return *inputs.error();
  const Arithmetic &rules = args.arithmetic;
  Bounded cap = bounded::parameter(inputs.scalar("cap", 30), rules);
  FloatOutput y(args, x.extents);
  perElement(args, elementCount(x.extents), [&](int64_t i) {
    y.place(i, mul(cap, tanh(div(x.bounded(i), cap, rules), rules), rules));
  });
  return resultOf("y", y.take());
}
// end snippet

} // namespace oracle

namespace {

/// A row as makeTable() of kernels/table.cpp has them.
kernels::Operator rowOperator(std::string_view name, std::string_view summary,
                              Kernel (*kernel)(),
                              std::vector<kernels::ArrayInfo> arrays) {
  kernels::Operator op;
  op.name = op.oracle = name;
  op.summary = summary;
  op.dims = {"rows", "cols"};
  op.arrays = std::move(arrays);
  op.kernel = kernel;
  return op;
}

kernels::Operator row() {
  using kernels::softcap;
  const std::vector<std::string_view> matrix = {"rows", "cols"};
  std::vector<kernels::Operator> table = {
      // snippet: row
      rowOperator("softcap", "cap * tanh(x / cap)", softcap,
                  {{"x", matrix}, {"y", matrix}}),
      // end snippet
  };
  return table[0];
}

TEST(NewKernel, EveryLevelAgainstTheInterpreter) {
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16})
    for (Isa isa : hostIsas())
      for (std::pair<int64_t, int64_t> shape :
           {std::pair<int64_t, int64_t>{0, 5},
            {3, 0},
            {1, 1},
            {5, 17},
            {2, 65}}) {
        Result<Program> program =
            Program::fromKernel(kernels::softcap(), {.storage = dtype});
        ASSERT_TRUE(program.ok()) << program.error().str();
        session::RunRequest request;
        request.dims = {{"rows", shape.first}, {"cols", shape.second}};
        request.isa = isa;
        Result<session::RunResult> result =
            session::runProgram(std::move(*program), request);
        ASSERT_TRUE(result.ok()) << result.error().str();
        EXPECT_TRUE(result->passed())
            << name(isa) << ' ' << name(dtype) << ' ' << shape.first << 'x'
            << shape.second << '\n'
            << result->failures();
      }
}

TEST(NewKernel, OracleAgainstTheInterpreter) {
  Result<Array> x = Array::allocate(DType::F32, {4, 33});
  Result<Array> y = Array::allocate(DType::F32, {4, 33});
  ASSERT_TRUE(x.ok() && y.ok());
  for (int i = 0; i < 4 * 33; ++i)
    x->buffer.as<float>()[i] = float(i * i % 97) - 48.5f;
  Result<Program> program = Program::fromKernel(kernels::softcap(), {});
  ASSERT_TRUE(program.ok());
  std::vector<Argument> arguments = {x->view(), y->view(), 30.0};
  Result<void> done = program->interpret(arguments, {});
  ASSERT_TRUE(done.ok()) << done.error().str();
  oracle::OracleArgs args;
  args.inputs["x"] = x->view();
  args.scalars["cap"] = 30;
  Result<oracle::OracleResult> expected = oracle::softcap(args);
  ASSERT_TRUE(expected.ok()) << expected.error().str();
  for (int i = 0; i < 4 * 33; ++i)
    EXPECT_TRUE(bounded::accepts(expected->at("y").values[i],
                                 y->buffer.as<float>()[i], DType::F32))
        << i;
}

TEST(NewKernel, RowDescribesTheKernel) {
  kernels::Operator op = row();
  Kernel kernel = op.kernel();
  EXPECT_EQ(kernel.name(), op.name);
  size_t views = 0;
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.kind == ParameterInfo::Kind::View)
      EXPECT_EQ(op.arrays.at(views++).name, parameter.name);
  EXPECT_EQ(views, op.arrays.size());
}

/// The page's list of files, for an operator that exists: swiglu.
TEST(NewKernel, ListsEveryFileToTouch) {
  std::set<std::string> listed, found;
  std::istringstream lines(docs::readSource("docs/howto/new-kernel.md"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `kernels/") || line.starts_with("| `bench/"))
      listed.insert(line.substr(3, line.find('`', 3) - 3));
  namespace fs = std::filesystem;
  fs::path root(TESSERA_SOURCE_DIR);
  // Suites and peers of the benchmarks may take an operator up, but need not.
  for (const char *folder :
       {"kernels", "src", "include", "tools", "bench/analysis"})
    for (const auto &entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file())
        continue;
      std::string path = fs::relative(entry.path(), root).generic_string();
      std::string text = docs::readSource(path);
      if (text.find("swiglu") != std::string::npos)
        found.insert(path);
    }
  EXPECT_EQ(listed, found);
}

/// The command that writes the benchmarks' table stands on the page as the test
/// of that table names it.
TEST(NewKernel, SaysHowToWriteTheTable) {
  const std::string command =
      "python3 bench/analysis/operators.py build/release/bin/tessera";
  for (const char *file :
       {"docs/howto/new-kernel.md", "bench/analysis/operators.py"})
    EXPECT_NE(docs::readSource(file).find(command), std::string::npos) << file;
}

} // namespace
} // namespace tessera
