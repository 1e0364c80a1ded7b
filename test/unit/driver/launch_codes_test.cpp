//===- launch_codes_test.cpp - One code for one mistake -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The same bad call of compiled code and of the interpreter: the family and the
// code must agree, and the text where both know the same.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"

#include <gtest/gtest.h>

#include <functional>

using namespace tessera;

namespace {

// Gathers rows of x and scales them.
constexpr const char *text = R"(
!in = !tile.view<f32, 2, read>
!ids = !tile.view<i64, 1, read>
!out = !tile.view<f32, 2, write>
module attributes {tile.version = 1 : i64} {
  tile.kernel @pick(%x: !in, %at: !ids, %y: !out, %s: f32, %k: i32 = 3) {
    %rows = tile.extent %at, 0 : !ids
    %cols = tile.extent %x, 1 : !in
    tile.dim "row" = %rows
    tile.dim "col" = %cols
    tile.parallel (%i) in ["row"] {
      %id = tile.load %at[%i] : !ids -> i64
      %row = arith.index_cast %id : i64 to index
      %v = tile.load %x[%row, "col"] : !in -> tensor<?xf32, ["col"]>
      %t = tile.broadcast %s : f32 -> tensor<?xf32, ["col"]>
      %r = arith.mulf %v, %t : tensor<?xf32, ["col"]>
      tile.store %r, %y[%i, "col"] : tensor<?xf32, ["col"]>, !out
    }
  }
})";

struct Arrays {
  std::vector<float> x = std::vector<float>(20, 1), y = std::vector<float>(12);
  std::vector<int64_t> at = {0, 4, 1};

  std::vector<Argument> arguments() {
    return {TensorRef::dense(x.data(), DType::F32, {5, 4}),
            TensorRef::dense(at.data(), DType::I64, {3}),
            TensorRef::dense(y.data(), DType::F32, {3, 4}), 2.0, int64_t{1}};
  }
};

TensorRef &viewOf(std::vector<Argument> &arguments, size_t i) {
  return std::get<TensorRef>(arguments[i]);
}

struct Case {
  const char *what;
  const char *code;
  bool sameText;
  std::function<void(std::vector<Argument> &, Arrays &)> spoil;
};

const Case cases[] = {
    {"no arguments", "launch.count", true,
     [](auto &a, Arrays &) { a.clear(); }},
    {"a view is missing", "launch.count", true,
     [](auto &a, Arrays &) { a.resize(2); }},
    {"a scalar without default is missing", "launch.count", true,
     [](auto &a, Arrays &) { a.resize(3); }},
    {"too many", "launch.count", true,
     [](auto &a, Arrays &) { a.push_back(1.0); }},
    {"a scalar for a view", "launch.kind", false,
     [](auto &a, Arrays &) { a[1] = 1.0; }},
    {"a view for a scalar", "launch.kind", true,
     [](auto &a, Arrays &) { a[3] = a[0]; }},
    {"rank", "launch.rank", true,
     [](auto &a, Arrays &) { viewOf(a, 0).extents = {20}; }},
    {"number of strides", "launch.stride", true,
     [](auto &a, Arrays &) { viewOf(a, 0).strides = {1}; }},
    {"dtype", "launch.dtype", true,
     [](auto &a, Arrays &) { viewOf(a, 0).dtype = DType::I32; }},
    {"extents that disagree", "launch.extent", false,
     [](auto &a, Arrays &) { viewOf(a, 2).extents = {3, 3}; }},
    {"negative extent", "launch.extent", false,
     [](auto &a, Arrays &) { viewOf(a, 1).extents = {-3}; }},
    {"null", "launch.null", true,
     [](auto &a, Arrays &) { viewOf(a, 0).data = nullptr; }},
    {"beyond the address space", "launch.range", true,
     [](auto &a, Arrays &) { viewOf(a, 0).strides = {int64_t{1} << 61, 1}; }},
    {"past the last address", "launch.range", true,
     [](auto &a, Arrays &) {
       viewOf(a, 0).strides = {-(int64_t{1} << 58), 1};
     }},
    {"alignment", "launch.alignment", true,
     [](auto &a, Arrays &) {
       viewOf(a, 0).data = static_cast<char *>(viewOf(a, 0).data) + 1;
     }},
    {"self-overlap", "launch.overlap", true,
     [](auto &a, Arrays &) { viewOf(a, 2).strides = {1, 1}; }},
    {"no integer", "launch.scalar", true,
     [](auto &a, Arrays &) { a[4] = 2.5; }},
    {"too large an integer", "launch.scalar", true,
     [](auto &a, Arrays &) { a[4] = int64_t{1} << 31; }},
    {"too large a number", "launch.scalar", true,
     [](auto &a, Arrays &) { a[3] = 1e300; }},
    {"index from data", "launch.index", false,
     [](auto &, Arrays &arrays) { arrays.at[1] = 5; }},
    {"negative index from data", "launch.index", false,
     [](auto &, Arrays &arrays) { arrays.at[2] = -1; }},
};

TEST(LaunchCodes, InterpreterAndCompiledCodeAgree) {
  Result<Program> program = Program::fromText(text, "pick.mlir");
  ASSERT_TRUE(program) << program.error().str();
  Arrays good;
  CompileRequest request;
  request.isa = hostIsa();
  request.validate = true;
  Result<CompiledKernel> compiled =
      program->compileFor(good.arguments(), request);
  ASSERT_TRUE(compiled) << compiled.error().str();
  InterpretOptions options;
  options.validateIndices = true;
  ASSERT_TRUE(compiled->executable.launch(good.arguments()));
  ASSERT_TRUE(program->interpret(good.arguments(), options));
  for (const Case &one : cases) {
    SCOPED_TRACE(one.what);
    Arrays arrays;
    std::vector<Argument> arguments = arrays.arguments();
    one.spoil(arguments, arrays);
    Result<void> launched = compiled->executable.launch(arguments);
    Result<void> interpreted = program->interpret(arguments, options);
    ASSERT_FALSE(launched);
    ASSERT_FALSE(interpreted);
    EXPECT_EQ(launched.error().code, one.code) << launched.error().str();
    EXPECT_EQ(interpreted.error().code, one.code) << interpreted.error().str();
    EXPECT_EQ(launched.error().family, ErrorFamily::Launch);
    EXPECT_EQ(interpreted.error().family, ErrorFamily::Launch);
    if (one.sameText)
      EXPECT_EQ(launched.error().message, interpreted.error().message);
    EXPECT_EQ(arrays.y, std::vector<float>(12)) << "nothing is written";
  }
}

/// What compiling a call finds, the interpreter finds with the same words.
TEST(LaunchCodes, CompilationAgreesToo) {
  Result<Program> program = Program::fromText(text, "pick.mlir");
  ASSERT_TRUE(program) << program.error().str();
  Arrays arrays;
  std::vector<Argument> arguments = arrays.arguments();
  viewOf(arguments, 2).extents = {3, 3};
  CompileRequest request;
  request.isa = hostIsa();
  Result<CompiledKernel> compiled = program->compileFor(arguments, request);
  Result<void> interpreted = program->interpret(arguments, {});
  ASSERT_FALSE(compiled);
  ASSERT_FALSE(interpreted);
  EXPECT_EQ(compiled.error().code, "launch.extent");
  EXPECT_EQ(compiled.error().code, interpreted.error().code);
  EXPECT_EQ(compiled.error().message, interpreted.error().message);
  EXPECT_EQ(compiled.error().where.line, interpreted.error().where.line);
}

TEST(LaunchCodes, CompilationChecksCountAndKindFirst) {
  Result<Program> program = Program::fromText(text, "pick.mlir");
  ASSERT_TRUE(program) << program.error().str();
  Arrays arrays;
  const std::vector<Argument> good = arrays.arguments();
  CompileRequest request;
  request.isa = hostIsa();
  auto codeOf = [&](const std::vector<Argument> &arguments) {
    Result<CompiledKernel> compiled = program->compileFor(arguments, request);
    return compiled ? std::string("none") : compiled.error().code;
  };
  EXPECT_EQ(codeOf({}), "launch.count");
  EXPECT_EQ(codeOf({good[0]}), "launch.count");
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<Argument> wrong = good;
    if (std::holds_alternative<TensorRef>(wrong[i]))
      wrong[i] = 3.0;
    else
      wrong[i] = good[0];
    EXPECT_EQ(codeOf(wrong), "launch.kind") << i;
  }
}

} // namespace
