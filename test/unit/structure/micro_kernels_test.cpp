//===- test/unit/structure/micro_kernels_test.cpp - Inner loops -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops that contractions spend their time in, read off the machine code:
// each holds the products that its plan says, loads what these need once, and
// nothing from the stack.
//
//===----------------------------------------------------------------------===//

#include "stages.h"

#include "plan/plan_record.h"
#include "target/machine.h"
#include "target/target.h"
#include "test/unit/planned_machine.h"

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

namespace tessera::structuretest {
namespace {

using kernels::Operator;

/// Instructions that follow one another, and where they go on.
struct Block {
  std::vector<std::string> code;
  std::set<size_t> next;
  /// The blocks without which this one is not reached, itself included.
  std::set<size_t> dominators;
};

/// The blocks of a text of x86 assembly, in its order.
std::vector<Block> blocksOf(const std::string &text) {
  std::vector<Block> blocks(1);
  std::map<std::string, size_t> labels;
  const std::regex label(R"(^([.\w]+):)"), jump(R"(^(j\w+)\s+([.\w]+)$)");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    line.erase(0, line.find_first_not_of(" \t"));
    line.erase(line.find_last_not_of(" \t") + 1);
    std::smatch found;
    if (std::regex_search(line, found, label)) {
      labels[found[1]] = blocks.size();
      blocks.emplace_back();
    } else if (!line.empty() && line[0] != '.') {
      blocks.back().code.push_back(line);
      if (line[0] == 'j' || line.starts_with("ret"))
        blocks.emplace_back();
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string last =
        blocks[i].code.empty() ? "" : blocks[i].code.back();
    std::smatch found;
    const bool jumps = std::regex_match(last, found, jump);
    if (jumps && labels.count(found[2]))
      blocks[i].next.insert(labels[found[2]]);
    if (!last.starts_with("ret") && !(jumps && found[1] == "jmp") &&
        i + 1 < blocks.size())
      blocks[i].next.insert(i + 1);
  }
  return blocks;
}

void findDominators(std::vector<Block> &blocks) {
  std::vector<std::set<size_t>> before(blocks.size());
  std::set<size_t> all;
  for (size_t i = 0; i < blocks.size(); ++i) {
    all.insert(i);
    for (size_t next : blocks[i].next)
      before[next].insert(i);
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i].dominators = before[i].empty() ? std::set<size_t>{i} : all;
  for (bool isChanged = true; isChanged;) {
    isChanged = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (before[i].empty())
        continue;
      std::set<size_t> common = all;
      for (size_t each : before[i])
        std::erase_if(common, [&](size_t one) {
          return !blocks[each].dominators.count(one);
        });
      common.insert(i);
      isChanged |= common != blocks[i].dominators;
      blocks[i].dominators = std::move(common);
    }
  }
}

/// The innermost loops of a text of x86 assembly.
std::vector<std::vector<std::string>> innermostLoops(const std::string &text) {
  std::vector<Block> blocks = blocksOf(text);
  findDominators(blocks);
  // By their first block: what reaches a jump back to it without passing it.
  std::map<size_t, std::set<size_t>> loops;
  for (size_t from = 0; from < blocks.size(); ++from)
    for (size_t first : blocks[from].next) {
      if (!blocks[from].dominators.count(first))
        continue;
      std::set<size_t> &loop = loops[first];
      loop.insert(first);
      std::vector<size_t> open{from};
      while (!open.empty()) {
        const size_t each = open.back();
        open.pop_back();
        if (!loop.insert(each).second)
          continue;
        for (size_t i = 0; i < blocks.size(); ++i)
          if (blocks[i].next.count(each))
            open.push_back(i);
      }
    }
  std::vector<std::vector<std::string>> result;
  for (const auto &[first, loop] : loops) {
    if (std::any_of(loops.begin(), loops.end(), [&](const auto &other) {
          return other.first != first && loop.count(other.first);
        }))
      continue;
    std::vector<std::string> &code = result.emplace_back();
    for (size_t each : loop)
      code.insert(code.end(), blocks[each].code.begin(),
                  blocks[each].code.end());
  }
  return result;
}

int64_t countOf(const std::vector<std::string> &loop, const char *expression) {
  const std::regex regex(expression);
  return std::count_if(loop.begin(), loop.end(), [&](const std::string &line) {
    return std::regex_search(line, regex);
  });
}

const char *const products =
    R"(^(vfn?m(add|sub)\d+p[sdh]|vpmulld|vpmaddwd|vpdp\w+|vdpbf16ps)\s)";
const char *const onStack = R"(\(%rsp)";
const char *const memory = R"(\(%(?!rip))";

std::string textOf(const std::vector<std::string> &loop) {
  std::string text;
  for (const std::string &line : loop)
    text += "\n  " + line;
  return text;
}

struct MicroKernel {
  const Operator *op = nullptr;
  DType dtype = DType::F32;
  Isa isa = Isa::Avx2;
  /// The constant that swaps the axes of an operand; empty for none.
  std::string swapped;

  std::string name() const {
    std::string text = std::string(op->name) + "_" +
                       std::string(tessera::name(dtype)) + "_" +
                       std::string(tessera::name(isa));
    return swapped.empty() ? text : text + "_" + swapped;
  }
};
std::ostream &operator<<(std::ostream &stream, const MicroKernel &kernel) {
  return stream << kernel.name();
}

/// Those of the kernel table that are products of two matrices.
std::vector<MicroKernel> microKernels() {
  std::vector<MicroKernel> result;
  for (const Operator &op : kernels::operators()) {
    auto has = [&](std::string_view dim) {
      return std::find(op.dims.begin(), op.dims.end(), dim) != op.dims.end();
    };
    // Operands of which groups have something in common are computed from
    // several arrays.
    if (!has("m") || !has("n") || !has("k") || !op.multipleOf.empty())
      continue;
    std::vector<std::string> swaps{""};
    for (const kernels::ArrayInfo &array : op.arrays)
      if (!array.swappedBy.empty())
        swaps.emplace_back(array.swappedBy);
    for (DType dtype : op.dtypes)
      for (Isa isa : {Isa::Avx2, Isa::Avx512})
        for (const std::string &swapped : swaps)
          result.push_back({&op, dtype, isa, swapped});
  }
  return result;
}

class MicroKernels : public testing::TestWithParam<MicroKernel> {
protected:
  /// The nest of the contraction and the assembly of the kernel.
  struct Compiled {
    NestPlan nest;
    std::string assembly;
  };

  void compile(int64_t extent, Compiled &compiled) {
    const MicroKernel &kernel = GetParam();
    session::RunRequest request{.dtype = kernel.dtype, .isa = kernel.isa};
    for (std::string_view dim : kernel.op->dims)
      request.dims[std::string(dim)] = dim == "batch"   ? 2
                                       : dim == "group" ? 32
                                       : dim == "k"     ? 512
                                                        : extent;
    if (!kernel.swapped.empty())
      request.settings[kernel.swapped] = true;
    request.machine = plannedMachine();
    request.threads = 1;
    request.useTunedPlans = false;
    request.stageText = [&](const char *stage, std::string text) {
      if (std::string_view(stage) == "asm")
        compiled.assembly = std::move(text);
    };
    auto made = session::compileOperator(*kernel.op, request);
    ASSERT_TRUE(made.ok()) << made.error().str();
    for (const StagePlan &stage : made->kernel.plan->stages)
      for (const NestPlan &nest : stage.nests)
        if (nest.roots.find("contract") != std::string::npos)
          compiled.nest = nest;
    ASSERT_FALSE(compiled.nest.vectorDim.empty()) << made->kernel.planSummary;
    SCOPED_TRACE(made->kernel.planSummary);
  }
};

// At extents that the blocks divide, and at others.
TEST_P(MicroKernels, HoldProductsAndWhatTheseNeed) {
  for (int64_t extent : {512, 130}) {
    Compiled compiled;
    compile(extent, compiled);
    if (HasFatalFailure())
      return;
    const NestPlan &nest = compiled.nest;
    const bool isReduced =
        nest.space.find("+" + nest.vectorDim) != std::string::npos;
    SCOPED_TRACE(std::to_string(extent) + ": " + std::to_string(nest.tileRows) +
                 " rows, " + std::to_string(nest.unroll) + " vectors of " +
                 std::to_string(nest.lanes));
    // Sums are of the compute type, those of small integers i32.
    const Kernel source = GetParam().op->kernel();
    const DType sums = source.parameters()[0].dtype.value_or(GetParam().dtype);
    const int64_t bits = sums == DType::F64 ? 64 : 32;
    const int64_t registers = std::max<int64_t>(
        1, nest.lanes * bits / getTarget(GetParam().isa).vectorBits);
    const int64_t expected = nest.tileRows * nest.unroll * registers;
    bool isFound = false;
    for (const std::vector<std::string> &loop :
         innermostLoops(compiled.assembly)) {
      const int64_t count = countOf(loop, products);
      // The loops that only the last rows or vectors go through, too.
      if (count < 4)
        continue;
      // Loops of a narrower last vector have one register for each row.
      const int64_t broadcasts =
          countOf(loop, R"(\{1to|vp?broadcast\w+\s+-?\w*\()");
      const bool isNarrow = nest.tailLanes > 0 && broadcasts == count &&
                            nest.unroll * registers > 1;
      const bool isMain = count % expected == 0 && !isNarrow;
      // Of the others a pointer may be there.
      EXPECT_LE(countOf(loop, onStack), isMain ? 0 : 2) << textOf(loop);
      EXPECT_EQ(countOf(loop, "gather|scatter|vpinsr|vpextr"), 0)
          << textOf(loop);
      if (!isMain)
        continue;
      isFound = true;
      const int64_t steps = count / expected;
      const int64_t loads = isReduced
                                ? (nest.tileRows + 1) * nest.unroll * registers
                                : nest.tileRows + nest.unroll * registers;
      EXPECT_LE(countOf(loop, memory), steps * loads) << textOf(loop);
      if (!isReduced)
        EXPECT_LE(broadcasts, steps * nest.tileRows) << textOf(loop);
    }
    EXPECT_TRUE(isFound) << "no loop of " << expected << " products";
  }
}

INSTANTIATE_TEST_SUITE_P(Structure, MicroKernels,
                         testing::ValuesIn(microKernels()),
                         [](const testing::TestParamInfo<MicroKernel> &info) {
                           return info.param.name();
                         });

// Filters a page apart have one place in each way of the nearest cache, which
// has eight here.
TEST(MicroKernels, RowsAPageApartAreFew) {
  auto planOf = [](int64_t channels) {
    return emit(*kernels::findOperator("conv2d"),
                {.dims = {{"n", 1},
                          {"c", channels},
                          {"h", 4},
                          {"w", 14},
                          {"f", 64},
                          {"kh", 1},
                          {"kw", 1}},
                 .settings = {{"pad", 1}},
                 .isa = Isa::Avx512,
                 .machine = &genericMachine(Isa::Avx512)})
        .plan;
  };
  ASSERT_EQ(genericMachine(Isa::Avx512).memory[0].bytes, 8 * 4096);
  EXPECT_NE(planOf(1024).find("f_block x8"), std::string::npos) << planOf(1024);
  EXPECT_NE(planOf(1040).find("f_block x16"), std::string::npos)
      << planOf(1040);
}

// Pixels side by side lie a constant apart: one pointer serves all of them, and
// leaves registers for as many products as there are.
TEST(MicroKernels, PixelsOfAnImageShareAPointer) {
  session::RunRequest request{.dims = {{"n", 1},
                                       {"c", 64},
                                       {"h", 8},
                                       {"w", 56},
                                       {"f", 64},
                                       {"kh", 3},
                                       {"kw", 3}},
                              .settings = {{"pad", 1}},
                              .isa = Isa::Avx512,
                              .threads = 1,
                              .machine = plannedMachine()};
  const Operator &conv = *kernels::findOperator("conv2d");
  auto first = session::compileOperator(conv, request);
  ASSERT_TRUE(first.ok()) << first.error().str();
  auto choices = std::make_shared<PlanChoices>();
  for (const StagePlan &stage : first->kernel.plan->stages)
    for (const NestPlan &nest : stage.nests)
      if (nest.roots.starts_with("contract")) {
        choices->nests[nest.id].vectorDim = "f_block";
        choices->nests[nest.id].unroll = 2;
        choices->nests[nest.id].tileRows = 14;
      }
  request.choices = choices;
  bool isFound = false;
  for (const std::vector<std::string> &loop :
       innermostLoops(emit(conv, request)["asm"])) {
    if (countOf(loop, products) < 28)
      continue;
    isFound = true;
    EXPECT_EQ(countOf(loop, products), 28) << textOf(loop);
    EXPECT_EQ(countOf(loop, onStack), 0) << textOf(loop);
    EXPECT_EQ(countOf(loop, memory), 16) << textOf(loop);
  }
  EXPECT_TRUE(isFound);
}

/// A machine that starts twice as many vectors of half the width.
const Machine &machineOfHalves() {
  static const Machine machine = [] {
    Machine made = genericMachine(Isa::Avx512);
    for (size_t width : {0, 1, 2}) {
      made.core[width].operationsPerCycle = width == 2 ? 2 : 4;
      made.core[width].multipliesPerCycle = width == 2 ? 1 : 2;
      made.core[width].dotCycles = width == 2 ? 1 : 0.5;
    }
    return made;
  }();
  return machine;
}

// What is left of the vectors takes narrower ones where these are started at a
// higher rate, for rows of their own: in one block and where blocks hang over.
TEST(MicroKernels, LastVectorsAreNarrow) {
  auto compile = [](int64_t n, const Machine &machine) {
    return emit(*kernels::findOperator("gemm"),
                {.dims = {{"m", 48}, {"n", n}, {"k", 64}},
                 .isa = Isa::Avx512,
                 .machine = &machine});
  };
  auto products = [](const Emitted &code, const char *registers) {
    int64_t most = 0;
    for (const auto &loop : innermostLoops(code["asm"]))
      most = std::max(most, countOf(loop, registers));
    return most;
  };
  const char *const halves = R"(^vfmadd.*%ymm\d+$)";
  for (int64_t n : {17, 71, 81, 193}) {
    const Emitted code = compile(n, machineOfHalves());
    EXPECT_NE(code.plan.find(", the last x8 by 16"), std::string::npos)
        << code.plan;
    EXPECT_EQ(products(code, halves), 16) << code["asm"];
    // Nothing but products and what is loaded for them.
    for (const auto &loop : innermostLoops(code["asm"]))
      if (countOf(loop, halves) > 0)
        EXPECT_EQ(countOf(loop, "vblend|gather"), 0) << textOf(loop);
  }
  // Where nothing is gained, and where more lanes are left.
  EXPECT_EQ(compile(81, *plannedMachine()).plan.find("last"),
            std::string::npos);
  EXPECT_EQ(compile(73, machineOfHalves()).plan.find("last"),
            std::string::npos);
}

// Programs that end with an array compute its rows and no others: none is
// stored under a mask, or read in place of one that is not there.
TEST(MicroKernels, LastRowsAreLive) {
  for (int64_t m : {65, 127, 513}) {
    const Emitted code = emit(*kernels::findOperator("gemm"),
                              {.dims = {{"m", m}, {"n", 64}, {"k", 64}},
                               .tunables = {{"block_m", 64}, {"block_n", 64}},
                               .isa = Isa::Avx512,
                               .machine = plannedMachine()});
    EXPECT_NE(code.plan.find("m_block x6"), std::string::npos) << code.plan;
    EXPECT_EQ(code.plan.find("edges apart"), std::string::npos) << code.plan;
    EXPECT_TRUE(linesWith(code["asm"], R"(\{%k[1-7]\})").empty())
        << code["asm"];
  }
}

// What the tests above look for is found where it is.
TEST(MicroKernels, LoopsAreFound) {
  auto loops = innermostLoops(R"(
kernel:
	pushq	%rax
.LBB0_1:                        # header
	vmovups	(%rdi), %zmm1
.LBB0_2:
	vfmadd231ps	8(%rsp), %zmm0, %zmm1
	vfmadd231ps	(%rsi,%rax,4){1to16}, %zmm0, %zmm1
	incq	%rax
	jne	.LBB0_2
	jne	.LBB0_1
	retq
)");
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].size(), 4u);
  EXPECT_EQ(countOf(loops[0], products), 2);
  EXPECT_EQ(countOf(loops[0], onStack), 1);
  EXPECT_EQ(countOf(loops[0], memory), 2);
}

} // namespace
} // namespace tessera::structuretest
