//===- test/unit/structure/code_test.cpp - The shape of emitted code ------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What speed rests on, read off the code instead of a clock: vectors without
// gathers, functions inline, masks of single bits, nothing that LLVM vectorized
// on its own, and code that does not grow with the extents.
//
//===----------------------------------------------------------------------===//

#include "stages.h"
#include "test/unit/run/cases.h"

#include "tessera/dsl.h"
#include "gmock/gmock.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <regex>
#include <sstream>
#include <string>

namespace tessera::structuretest {
namespace {

using kernels::Operator;

std::string join(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += "\n" + line;
  return text;
}

/// Fails with the first lines that match.
void expectNone(std::string_view text, const std::string &expression,
                const std::string &what) {
  std::vector<std::string> found = linesWith(text, expression);
  EXPECT_TRUE(found.empty()) << what << join(found);
}

const char *const gathers = "gather|scatter";

struct Variant {
  const Operator *op = nullptr;
  Isa isa = Isa::X86_64;
};
std::ostream &operator<<(std::ostream &stream, const Variant &variant) {
  return stream << variant.op->name << " " << name(variant.isa);
}

std::vector<Variant> variants() {
  std::vector<Variant> result;
  for (const Operator *op : rowOperators())
    for (Isa isa : hostIsas())
      // Elsewhere the code is that of avx512.
      if (!runtest::addsNarrowProducts(isa))
        result.push_back({op, isa});
  return result;
}

std::string variantName(const testing::TestParamInfo<Variant> &info) {
  std::string text = std::string(info.param.op->name) + "_" +
                     std::string(name(info.param.isa));
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

class RowCode : public testing::TestWithParam<Variant> {
protected:
  session::RunRequest requestAt(int64_t rows, int64_t cols, DType dtype) const {
    if (!GetParam().op->evenDim.empty())
      cols += cols % 2;
    return {.dims = rowsOf(rows, cols), .dtype = dtype, .isa = GetParam().isa};
  }
  Emitted emitAt(int64_t rows, int64_t cols, DType dtype = DType::F32) const {
    return emit(*GetParam().op, requestAt(rows, cols, dtype));
  }
};

TEST_P(RowCode, AdjacentElementsAreNeverGathered) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    Emitted code = emitAt(16, 4097, dtype);
    for (const char *stage : {"loops", "llvm", "asm"})
      expectNone(code[stage], gathers,
                 std::string(stage) + " of " + std::string(name(dtype)));
    // A row of a hundred vectors that nothing vectorized would pass as well.
    EXPECT_TRUE(std::regex_search(code.plan, std::regex(R"(\(\w+ x\d)")))
        << code.plan;
    EXPECT_FALSE(linesWith(code["loops"], "vector<").empty());
  }
}

TEST_P(RowCode, FunctionsAreInline) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::F16}) {
    EXPECT_EQ(join(undefinedSymbols(
                  objectOf(*GetParam().op, requestAt(16, 4097, dtype)))),
              "")
        << name(dtype);
  }
}

/// What a kernel's code consists of, in numbers.
struct Size {
  int64_t objectBytes;
  int64_t instructions;
  /// How often it has the body: once for each program that advances with it.
  int64_t bodies;
  /// Twice as much again where a loop has a second one for rare rows beside it.
  int64_t loops;
};

Size sizeOf(const Emitted &code) {
  std::smatch together;
  bool several = std::regex_search(code.plan, together,
                                   std::regex("^parallel rows x(\\d+);"));
  return {static_cast<int64_t>(code.object.size()),
          countInstructions(code["llvm"]), several ? std::stoi(together[1]) : 1,
          code.plan.find(" in one pass") == std::string::npos ? 2 : 4};
}

TEST_P(RowCode, CodeDoesNotGrowWithTheWidth) {
  constexpr int64_t widths[] = {64, 65, 4096, 4099, 1'000'000, 1'000'003};
  std::vector<Size> sizes;
  std::string times;
  for (int64_t width : widths) {
    Emitted code = emitAt(16, width);
    sizes.push_back(sizeOf(code));
    times += " " + std::to_string(static_cast<int>(code.seconds * 1e3));
  }
  std::printf("%s: %lld bytes, ms per width:%s\n",
              testing::PrintToString(GetParam()).c_str(),
              static_cast<long long>(sizes.back().objectBytes), times.c_str());
  // The reference has a main loop and a tail. Wider rows have the same, and at
  // most one more level of partial sums; plans for them may have more vectors
  // per iteration, within bounds.
  const Size &reference = sizes[3];
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_LE(sizes[i].objectBytes / sizes[i].bodies,
              sizes[i].loops * reference.objectBytes / reference.bodies + 512)
        << widths[i];
    EXPECT_LE(sizes[i].instructions / sizes[i].bodies,
              sizes[i].loops * reference.instructions / reference.bodies + 72)
        << widths[i];
  }
  // Nor with the number of rows; stores past the caches are tested for where
  // they go.
  Size many = sizeOf(emitAt(1'000'000, 64));
  EXPECT_LE(many.objectBytes / many.bodies,
            many.loops * sizes[0].objectBytes / sizes[0].bodies + 832);
  // And it is small enough for the compile time to stay where it is.
  for (const Size &size : sizes)
    EXPECT_LE(size.objectBytes, 32 * 1024);
}

INSTANTIATE_TEST_SUITE_P(Structure, RowCode, testing::ValuesIn(variants()),
                         variantName);

//===----------------------------------------------------------------------===//
// Single properties
//===----------------------------------------------------------------------===//

// Contractions are made of fused multiply-adds, which a level without them has
// to call.
TEST(Code, ContractionsCallNothingFromOutside) {
  for (const Operator &op : kernels::operators()) {
    auto rows = rowOperators();
    if (std::find(rows.begin(), rows.end(), &op) != rows.end())
      continue; // Among the rows above.
    session::RunRequest request;
    for (std::string_view dim : op.dims)
      request.dims.emplace(dim, 40);
    for (Isa isa : hostIsas())
      for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
        // Elsewhere the code is that of avx512.
        const bool isNarrow = dtype == DType::BF16 || op.name == "gemm_q8";
        if (!getTarget(isa).hasFma ||
            (runtest::addsNarrowProducts(isa) &&
             !(isNarrow && runtest::sumsProducts(op))))
          continue;
        request.isa = isa;
        request.dtype = dtype;
        EXPECT_EQ(join(undefinedSymbols(objectOf(op, request))), "")
            << op.name << " " << name(isa) << " " << name(dtype);
      }
  }
}

// Where each use had its own, they would be most of what a candidate consists
// of.
TEST(Code, ConstantsAreEmittedOnce) {
  const Emitted made =
      emit(*kernels::findOperator("gemm"),
           {.dims = {{"m", 513}, {"n", 257}, {"k", 129}}, .isa = Isa::Avx512});
  std::map<std::string, int> constants;
  int64_t all = 0;
  std::istringstream lines(made["loops"]);
  for (std::string line; std::getline(lines, line);)
    if (size_t at = line.find("arith.constant"); at != line.npos) {
      ++constants[line.substr(at)];
      ++all;
    }
  EXPECT_GT(constants.size(), 10u);
  // Some belong to the entry functions, or come from folding.
  EXPECT_LT(all, 2 * int64_t(constants.size()));
}

TEST(Code, MasksAreVectorsOfBits) {
  for (Isa isa : hostIsas()) {
    Emitted code = emit(*kernels::findOperator("masked_softmax"),
                        {.dims = rowsOf(16, 4097), .isa = isa});
    std::string lanes = std::to_string(getTarget(isa).lanes32());
    EXPECT_FALSE(linesWith(code["loops"], "vector<" + lanes + "xi1>").empty())
        << name(isa);
    expectNone(code["loops"], gathers, "loops");
    expectNone(code["asm"], gathers, "asm");
    // Selection by a mask, never one element after another.
    expectNone(code["asm"], "pextr|vpextr", "elements of a mask taken out");
  }
}

// A row shorter than a vector: what lies beyond its kept values may be numbers
// that arithmetic is slow for, or that nobody wrote.
TEST(Code, KeptTailsAreReadUnderTheirMask) {
  for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
    if (!hostRuns(isa))
      continue;
    Emitted code = emit(*kernels::findOperator("softmax"),
                        {.dims = {{"rows", 5}, {"cols", 3}}, .isa = isa});
    EXPECT_THAT(code.plan, ::testing::HasSubstr("keep"));
    EXPECT_THAT(linesWith(code["loops"], R"(llvm\.load .*-> vector)"),
                testing::IsEmpty());
    EXPECT_FALSE(linesWith(code["loops"], R"(masked\.load)").empty());
  }
}

TEST(Code, FusedMultiplyAddsFollowTheTier) {
  const Isa isa = hostIsa();
  if (!getTarget(isa).hasFma)
    GTEST_SKIP() << "this host has no fused multiply-add";
  // Strict code fuses nothing between the author's operations.
  auto code = [&](Tier tier) {
    return emit(*kernels::findOperator("rope"),
                {.dims = rowsOf(4, 4096), .isa = isa, .tier = tier})["asm"];
  };
  expectNone(code(Tier::Strict), "vfn?m(add|sub)", "fused in strict code");
  EXPECT_FALSE(linesWith(code(Tier::Default), "vfn?m(add|sub)").empty());
}

/// Packed arithmetic on integers or floats.
const char *const packedArithmetic =
    R"(\s(v?p?(add|sub|mul|fmadd\d+|max|min)(ps|pd)|v?padd[bwdq])\s)";

Emitted emitKernel(const Kernel &kernel, session::RunRequest request) {
  auto program = Program::fromKernel(kernel, {});
  if (!program) {
    ADD_FAILURE() << program.error().str();
    return emit(*kernels::findOperator("copy"), {.dims = rowsOf(1, 1)});
  }
  return emit(std::move(*program), std::move(request));
}

TEST(Code, LoopsThatThePlanLeavesScalarStayScalar) {
  // Additions of integers in order: LLVM's loop vectorizer would take it.
  Kernel ordered = kernel(
      "ordered", "x, y", [](View<const int32_t, 2> x, View<int32_t, 1> y) {
        Dim rows = dim("rows", x.extent(0)), cols = dim("cols", x.extent(1));
        for (auto row : parallel(rows))
          store(y(row), sum(load(x(row, cols)), cols, Order::Left));
      });
  for (Isa isa : hostIsas()) {
    Emitted code = emitKernel(ordered, {.dims = rowsOf(16, 4096), .isa = isa});
    EXPECT_NE(code.plan.find("(scalar)"), std::string::npos) << code.plan;
    expectNone(code["llvm"], R"(<\d+ x )", "vectors in LLVM IR");
    expectNone(code["asm"], packedArithmetic, "packed arithmetic");
  }
}

TEST(Code, NeighbouringScalarsStayScalar) {
  // Four adjacent elements, one by one: bait for superword parallelism.
  Kernel four =
      kernel("four", "x, y", [](View<const float, 2> x, View<float, 2> y) {
        for (auto row : parallel(dim("rows", x.extent(0))))
          for (int64_t i = 0; i < 4; ++i)
            store(y(row, i), load(x(row, i)) * 3 + 1);
      });
  for (Isa isa : hostIsas()) {
    auto program = Program::fromKernel(four, {});
    ASSERT_TRUE(program.ok()) << program.error().str();
    std::string llvm, assembly;
    CompileRequest request;
    request.extents = {{16, 4}, {16, 4}};
    request.isa = isa;
    request.stageText = [&](const char *stage, std::string text) {
      if (std::string_view(stage) == "llvm")
        llvm = std::move(text);
      else if (std::string_view(stage) == "asm")
        assembly = std::move(text);
    };
    auto compiled = program->compile(request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    if (compiled->planSummary.find("(rows x") != std::string::npos)
      continue; // The plan itself made vectors.
    expectNone(llvm, R"(<\d+ x float>)", "vectors in LLVM IR");
    expectNone(assembly, packedArithmetic, "packed arithmetic");
  }
}

//===----------------------------------------------------------------------===//
// AArch64, whose code this host need not be able to run
//===----------------------------------------------------------------------===//

TEST(NeonCode, CallsNothingFromOutside) {
  for (const Operator &op : kernels::operators())
    for (DType dtype : op.dtypes) {
      session::RunRequest request{.dtype = dtype, .isa = Isa::Neon};
      for (std::string_view dim : op.dims)
        request.dims.emplace(dim, 40);
      EXPECT_EQ(join(undefinedSymbols(objectOf(op, request))), "")
          << op.name << " " << name(dtype);
    }
}

TEST(NeonCode, RowsAreVectors) {
  struct Form {
    DType dtype;
    /// What brings a vector of the storage type to vectors of f32 or f64.
    const char *widens, *multiplies;
  };
  for (const Form &form :
       {Form{DType::F32, R"(ldp?r?\s+q\d)", R"(fmla\s+v\d+\.4s)"},
        Form{DType::F64, R"(ldp?r?\s+q\d)", R"(fmla\s+v\d+\.2d)"},
        Form{DType::F16, R"(fcvtl2?\s+v\d+\.4s)", R"(fmla\s+v\d+\.4s)"},
        Form{DType::BF16, R"(u?shll2?\s+v\d+\.4s)", R"(fmla\s+v\d+\.4s)"}}) {
    Emitted code =
        emit(*kernels::findOperator("rms_norm"),
             {.dims = rowsOf(129, 768), .dtype = form.dtype, .isa = Isa::Neon});
    SCOPED_TRACE(name(form.dtype));
    EXPECT_FALSE(linesWith(code["asm"], form.widens).empty());
    EXPECT_FALSE(linesWith(code["asm"], form.multiplies).empty());
    // The extents have no tail: what is scalar belongs to a row.
    expectNone(code["asm"], R"(\s(fmul|fmadd|fcvt)\s+[sdh]\d)",
               "scalar arithmetic on elements");
    expectNone(code["asm"], R"(\sblr?\s+(?!rms_norm_stage0_body))", "a call");
    expectNone(code["llvm"], gathers, "llvm");
  }
}

TEST(NeonCode, ExtremaAreOneInstruction) {
  Emitted code = emit(*kernels::findOperator("row_max"),
                      {.dims = rowsOf(16, 4096), .isa = Isa::Neon});
  EXPECT_FALSE(linesWith(code["asm"], R"(fmax\s+v\d+\.4s)").empty());
  expectNone(code["asm"], R"(\s(fcm|bsl|bit|bif)\w*\s+v)", "selections");
}

TEST(NeonCode, BranchesOnAnyLaneReduceTheMask) {
  // Sine takes its long way where any argument is large.
  Emitted code =
      emitKernel(kernel("sines", "x, y",
                        [](View<const float, 1> x, View<float, 1> y) {
                          Dim n = dim("n", x.extent(0));
                          store(y(n), sin(load(x(n))));
                        }),
                 {.dims = {{"n", 4096}}, .isa = Isa::Neon});
  EXPECT_FALSE(linesWith(code["asm"], R"(u(max|min)v\s)").empty())
      << code["asm"];
}

// Arrays that lie along different dimensions: every access is a vector, and
// shuffles turn what lies between them.
TEST(Code, SquaresAreTransposedInRegisters) {
  std::vector<Isa> isas = hostIsas();
  isas.push_back(Isa::Neon);
  for (Isa isa : isas)
    for (DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      SCOPED_TRACE(std::string(name(isa)) + " " + std::string(name(dtype)));
      Emitted code =
          emit(*kernels::findOperator("transpose"),
               {.dims = rowsOf(256, 512), .dtype = dtype, .isa = isa});
      EXPECT_THAT(code.plan, testing::HasSubstr("transposed"));
      for (const char *stage : {"loops", "llvm", "asm"})
        expectNone(code[stage], gathers, stage);
      const std::string element = dtype == DType::F32   ? "f32"
                                  : dtype == DType::F64 ? "f64"
                                                        : "i16";
      expectNone(code["loops"], R"(llvm\.load .*-> )" + element,
                 "a single element loaded");
      expectNone(code["loops"], R"(llvm\.store .*: )" + element + ",",
                 "a single element stored");
      EXPECT_FALSE(linesWith(code["llvm"], "shufflevector").empty());
    }
}

// Two stages of shuffles with one instruction each; those of whole chunks of
// 128 bits are loads to where they belong.
TEST(Code, ChunksOfSquaresAreLoadedToTheirPlace) {
  if (!hostRuns(Isa::Avx512))
    GTEST_SKIP() << "this host has no AVX-512";
  Emitted code = emit(*kernels::findOperator("transpose"),
                      {.dims = rowsOf(16, 16), .isa = Isa::Avx512});
  std::istringstream lines(code["asm"]);
  int shuffles = 0;
  for (std::string line; std::getline(lines, line);)
    shuffles += std::regex_search(line, std::regex(R"(\svunpck[lh]p[sd]\s)"));
  EXPECT_EQ(shuffles, 2 * 16) << code["asm"];
  expectNone(code["asm"], R"(\sv(perm|shuf|blend))", "other shuffles");
}

// Lines that a square is stored to are asked for early, where they are far.
TEST(Code, LinesOfSquaresAreAskedForWhereTheyAreFar) {
  auto asked = [](int64_t rows, int64_t cols) {
    return linesWith(
               emit(*kernels::findOperator("transpose"),
                    {.dims = rowsOf(rows, cols), .isa = Isa::Avx2})["asm"],
               "prefetchw")
        .size();
  };
  EXPECT_GT(asked(1024, 1024), 0u);
  EXPECT_EQ(asked(32, 32), 0u);
}

/// Of the lines with multiplications in the longest loop, the share that stands
/// before the first division.
double shareBeforeDivision(const std::string &text) {
  std::istringstream lines(text);
  std::vector<std::string> loop, longest;
  bool isCode = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".LBB")) {
      loop.clear();
      isCode = true;
      continue;
    }
    if (!isCode)
      continue;
    loop.push_back(line);
    if (std::regex_search(line, std::regex(R"(\sj[a-z]+\s)"))) {
      if (loop.size() > longest.size())
        longest = loop;
      loop.clear();
    }
  }
  double before = 0, all = 0;
  bool isBefore = true;
  for (const std::string &line : longest) {
    isBefore &= line.find("vdivp") == line.npos;
    if (line.find("vfmadd") == line.npos && line.find("vmulp") == line.npos)
      continue;
    all += 1;
    before += isBefore;
  }
  EXPECT_GT(all, 10) << join(longest);
  EXPECT_TRUE(linesWith(join(longest), R"(\(%rsp)").empty()) << join(longest);
  return before / std::max(all, 1.0);
}

// One after another, the first of n chains would end after an n-th of all
// multiplications. 16 registers hold two chains, of all that there are here,
// and load their constants where both need them.
TEST(Code, ChainsOfVectorsTakeTurns) {
  for (Isa isa : {Isa::Avx512, Isa::Avx2}) {
    if (!hostRuns(isa))
      continue;
    Emitted code = emit(*kernels::findOperator("gelu_residual"),
                        {.dims = rowsOf(64, 256), .isa = isa});
    EXPECT_GT(shareBeforeDivision(code["asm"]), 0.75) << name(isa);
  }
}

// What the tests above look for is found where it is.
TEST(Code, WhatIsLookedForIsFound) {
  Emitted add = emit(*kernels::findOperator("add"), {.dims = rowsOf(4, 4096)});
  EXPECT_FALSE(linesWith(add["asm"], packedArithmetic).empty());
  EXPECT_FALSE(linesWith(add["llvm"], R"(<\d+ x float>)").empty());
  EXPECT_GT(countInstructions(add["llvm"]), 10);
  EXPECT_EQ(linesWith("a\n vgatherdps %zmm0\nb", gathers).size(), 1u);
  // Positions from data: the one access that is gathered by right.
  Kernel lookup = kernel(
      "lookup", "at, x, y",
      [](View<const int64_t, 1> at, View<const float, 1> x, View<float, 1> y) {
        Dim n = dim("n", at.extent(0));
        (void)dim("table", x.extent(0));
        store(y(n), load(x(load(at(n)))));
      });
  if (getTarget(hostIsa()).vectorBits == 512) {
    Emitted code = emitKernel(lookup, {.dims = {{"n", 4096}, {"table", 99}}});
    EXPECT_FALSE(linesWith(code["asm"], gathers).empty());
  }
}

TEST(Code, ObjectsAreTheSameFromRunToRun) {
  for (const char *operatorName : {"softmax", "layer_norm", "gemm"}) {
    const Operator &op = *kernels::findOperator(operatorName);
    session::RunRequest request;
    for (std::string_view dim : op.dims)
      request.dims.emplace(dim, 37);
    EXPECT_EQ(emit(op, request).object, emit(op, request).object)
        << operatorName;
  }
}

} // namespace
} // namespace tessera::structuretest
