//===- test/unit/structure/atoms_test.cpp - Code of contraction atoms ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops of products in groups are made of the atom's instruction, with nothing
// gathered or kept on the stack; which plans have one, and why others do not.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "plan/plan_record.h"
#include "target/machine.h"

#include <gmock/gmock.h>

#include <sstream>

namespace tessera::structuretest {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The machine whose dot products of bf16 are as fast as other operations.
const Machine &fastDots() {
  static const Machine machine = [] {
    Machine fast = genericMachine(Isa::Avx512Bf16);
    for (CoreCosts &costs : fast.core)
      costs.dotCycles = 1 / costs.multiplyRate();
    return fast;
  }();
  return machine;
}

session::RunRequest product(int64_t m, int64_t n, int64_t k, Isa isa,
                            DType dtype = DType::F32) {
  return {.dims = {{"m", m}, {"n", n}, {"k", k}},
          .dtype = dtype,
          .isa = isa,
          .machine = &fastDots()};
}

/// The lines between labels that have the most of an instruction.
std::string loopWith(std::string_view text, const std::string &instruction) {
  std::istringstream lines{std::string(text)};
  std::string line, block, best;
  size_t most = 0;
  auto end = [&] {
    const size_t count = linesWith(block, instruction).empty() ? 0 : [&] {
      size_t found = 0;
      for (size_t at = 0; (at = block.find(instruction, at)) != block.npos;
           ++at)
        ++found;
      return found;
    }();
    if (count > most) {
      most = count;
      best = block;
    }
    block.clear();
  };
  while (std::getline(lines, line)) {
    if (line.find(':') != line.npos && line[0] != '\t')
      end();
    else
      block += line + "\n";
  }
  end();
  return best;
}

void expectTight(const Emitted &code, const std::string &instruction) {
  const std::string loop = loopWith(code["asm"], instruction);
  EXPECT_THAT(linesWith(loop, instruction), Not(IsEmpty())) << code["asm"];
  EXPECT_THAT(linesWith(loop, "v?p?gather|\\(%rsp|vpmulld|vpinsr"), IsEmpty())
      << loop;
}

TEST(AtomCode, LoopsAreMadeOfTheInstruction) {
  const kernels::Operator &bytes = *kernels::findOperator("gemm_q8");
  for (Isa isa : {Isa::Avx512Vnni, Isa::Avx512Bf16}) {
    Emitted code = emit(bytes, product(256, 256, 256, isa));
    EXPECT_THAT(code.plan, HasSubstr("m_block x6, packed, dpbusd)"));
    expectTight(code, "vpdpbusd");
  }
  for (Isa isa : {Isa::X86_64, Isa::Avx2, Isa::Avx512}) {
    Emitted code = emit(bytes, product(256, 256, 256, isa));
    EXPECT_THAT(code.plan, HasSubstr(", packed, maddw)"));
    expectTight(code, "pmaddwd");
  }
  Emitted code = emit(*kernels::findOperator("gemm"),
                      product(256, 256, 256, Isa::Avx512Bf16, DType::BF16));
  EXPECT_THAT(code.plan, HasSubstr("m_block x6, packed, dpbf16)"));
  expectTight(code, "vdpbf16ps");
}

// What is used once is not copied: bytes of four rows become words by shuffles.
TEST(AtomCode, WordsAreMadeInRegisters) {
  const kernels::Operator &bytes = *kernels::findOperator("gemm_q8");
  for (int64_t m : {1, 6}) {
    Emitted code = emit(bytes, product(m, 64, 64, Isa::Avx512Vnni));
    EXPECT_THAT(code.plan, HasSubstr("dpbusd)"));
    EXPECT_THAT(code.plan, Not(HasSubstr("packed")));
    const std::string loop = loopWith(code["asm"], "vpdpbusd");
    EXPECT_THAT(linesWith(loop, "vpermd"), Not(IsEmpty())) << loop;
    EXPECT_THAT(linesWith(loop, "vpshufb"), Not(IsEmpty())) << loop;
    // Addresses of rows may be on the stack, vectors are not.
    EXPECT_THAT(linesWith(loop, "gather|vpslld|vpinsr|\\(%rsp.*%[xyz]mm"),
                IsEmpty())
        << loop;
  }
  // Three groups of rows use a copy, and so do programs that share one.
  EXPECT_THAT(emit(bytes, product(18, 64, 64, Isa::Avx512Vnni)).plan,
              HasSubstr("packed, dpbusd)"));
  EXPECT_THAT(emit(*kernels::findOperator("gemm"),
                   product(1, 64, 64, Isa::Avx512Bf16, DType::BF16))
                  .plan,
              HasSubstr("(n_block x16 x4, dpbf16)"));
}

// Rows of an array beyond the second-level cache are streams of more than a
// line at a time, also of bytes.
TEST(AtomCode, BytesAreReadInStreams) {
  Emitted code = emit(*kernels::findOperator("gemm_q8"),
                      product(1, 4096, 1024, Isa::Avx512Vnni));
  EXPECT_THAT(code.plan, HasSubstr("(n_block x16 x8, by 16, dpbusd)"));
}

// An atom of bf16 leaves no subnormal numbers, which the instruction that
// rounds to bf16 would take for zeros; a product with a scale may.
TEST(AtomCode, ResultsWithoutSubnormalsAreRoundedByOneInstruction) {
  const kernels::Operator &gemm = *kernels::findOperator("gemm"),
                          &scaled = *kernels::findOperator("gemm_epilogue");
  const std::string rounding = "vcvtneps2bf16", shift = "vpmovdw|vpsrld";
  for (int64_t k : {64, 61}) {
    const std::string text =
        emit(gemm, product(64, 64, k, Isa::Avx512Bf16, DType::BF16))["asm"];
    EXPECT_THAT(linesWith(text, rounding), Not(IsEmpty())) << text;
    EXPECT_THAT(linesWith(text, shift), IsEmpty()) << text;
  }
  for (const Emitted &code :
       {emit(scaled, product(64, 64, 64, Isa::Avx512Bf16, DType::BF16)),
        emit(gemm, product(64, 64, 64, Isa::Avx512Vnni, DType::BF16))}) {
    EXPECT_THAT(linesWith(code["asm"], rounding), IsEmpty()) << code["asm"];
    EXPECT_THAT(linesWith(code["asm"], shift), Not(IsEmpty())) << code["asm"];
  }
}

// The element that is left of the last group takes no vectors to the stack.
TEST(AtomCode, RestsOfGroupsSpillNothing) {
  const std::string text =
      emit(*kernels::findOperator("gemm"),
           product(126, 64, 61, Isa::Avx512Bf16, DType::BF16))["asm"];
  EXPECT_THAT(linesWith(text, "vdpbf16ps"), Not(IsEmpty())) << text;
  EXPECT_THAT(linesWith(text, "\\(%rsp.*%zmm|%zmm.*\\(%rsp"), IsEmpty())
      << text;
}

// Words that lie along the reduced dimension are transposed, also those of a
// square that is not full.
TEST(AtomCode, PartsOfSquaresAreTransposed) {
  session::RunRequest request =
      product(64, 64, 61, Isa::Avx512Bf16, DType::BF16);
  request.settings["trans_b"] = true;
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  Emitted code = emit(gemm, request);
  EXPECT_THAT(code.plan, HasSubstr("packed, dpbf16"));
  EXPECT_THAT(linesWith(code["asm"], "gather"), IsEmpty()) << code["asm"];
  EXPECT_THAT(linesWith(code["asm"], "vmovdqu16.*\\{%k[1-7]\\} \\{z\\}"),
              Not(IsEmpty()))
      << code["asm"];
  // Few words are less than a square.
  request.dims["k"] = 7;
  EXPECT_THAT(linesWith(emit(gemm, request)["asm"], "gather"), Not(IsEmpty()));
}

// What belongs to a group of weights is loaded before the loop over its bytes,
// none of which is compared with the array's extent.
TEST(AtomCode, GroupsOfWeightsAreOutside) {
  Emitted code =
      emit(*kernels::findOperator("gemm_q4"),
           {.dims = {{"m", 1}, {"n", 4096}, {"k", 1024}, {"group", 64}},
            .isa = Isa::Avx512Vnni,
            .machine = &fastDots()});
  EXPECT_THAT(code.plan, HasSubstr("+groups, +pairs (n_block x16 x8, by 1)"));
  const std::string loop = loopWith(code["asm"], "vfmadd");
  EXPECT_THAT(linesWith(loop, "%k[1-7]|cmov|set[a-z]+\\s"), IsEmpty()) << loop;
}

// Weights that several groups of rows use are made of their bytes once.
TEST(AtomCode, WeightsThatRowsShareAreCopied) {
  Emitted code =
      emit(*kernels::findOperator("gemm_q4"),
           {.dims = {{"m", 16}, {"n", 256}, {"k", 1024}, {"group", 128}},
            .isa = Isa::Avx512Vnni,
            .machine = &fastDots()});
  EXPECT_THAT(code.plan, HasSubstr("m_block x8, packed)"));
}

// The shapes of tiles are loaded before the first is used, and released.
TEST(AtomCode, TilesHaveTheirShapes) {
  struct Form {
    const char *op;
    DType dtype;
    const char *atom, *instruction;
  };
  for (const Form &form : {Form{"gemm_q8", DType::F32, "tiles8", "tdpbssd"},
                           Form{"gemm", DType::BF16, "tiles16", "tdpbf16ps"}}) {
    Emitted code = emit(*kernels::findOperator(form.op),
                        product(256, 256, 256, Isa::Avx512Amx, form.dtype));
    EXPECT_THAT(code.plan, HasSubstr(form.atom));
    const std::string &text = code["asm"];
    const size_t shapes = text.find("ldtilecfg"),
                 product = text.find(form.instruction),
                 release = text.find("tilerelease");
    EXPECT_LT(shapes, product);
    EXPECT_LT(product, release);
    ASSERT_NE(release, text.npos);
    // Four products of two by two tiles, and nothing else but their loads.
    std::string loop = loopWith(text, form.instruction);
    EXPECT_THAT(linesWith(loop, "%[xyz]mm|\\(%rsp"), IsEmpty()) << loop;
  }
}

TEST(AtomCode, WhatTakesLongerIsNotTaken) {
  session::RunRequest request =
      product(256, 256, 256, Isa::Avx512Bf16, DType::BF16);
  Machine slow = fastDots();
  for (CoreCosts &costs : slow.core)
    costs.dotCycles = 4 / costs.multiplyRate();
  request.machine = &slow;
  const kernels::Operator &gemm = *kernels::findOperator("gemm");
  EXPECT_THAT(emit(gemm, request).plan, Not(HasSubstr("dpbf16")));
  request.machine = &fastDots();
  request.tier = Tier::Strict;
  EXPECT_THAT(emit(gemm, request).plan, Not(HasSubstr("dpbf16")));
  // Too few elements make no group.
  EXPECT_THAT(emit(gemm, product(64, 64, 1, Isa::Avx512Bf16, DType::BF16)).plan,
              Not(HasSubstr("dpbf16")));
}

} // namespace
} // namespace tessera::structuretest
