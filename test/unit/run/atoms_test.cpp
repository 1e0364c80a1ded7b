//===- test/unit/run/atoms_test.cpp - Contractions in groups --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of narrow elements by every atom that this host has, or whose tile
// registers it emulates, at extents around groups, tiles and vectors, between
// guard pages: the oracle accepts them. Integers are exact; what is not finite
// stays in its row and column. The suite takes a share of the extents of each
// atom, the soak all of them.
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "plan/plan_record.h"
#include "target/contraction_atoms.h"
#include "tessera/dsl.h"
#include "test/unit/emulation/emulator.h"
#include "test/unit/emulation/tiles.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace tessera::runtest {
namespace {

using kernels::ValueClass;
using session::Edge;
using session::RunRequest;
using testing::HasSubstr;

/// An atom and a level that has it.
struct Atom {
  Isa isa;
  std::string name;
};

/// Every atom at the lowest level of each width of vectors: higher ones have
/// the same instructions for it.
std::vector<Atom> atomsOf(AtomElements elements) {
  std::vector<Isa> isas = hostIsas();
  if (emulation::emulatesTiles())
    isas.push_back(Isa::Avx512Amx);
  std::vector<Atom> all;
  std::set<std::pair<std::string, int64_t>> seen;
  for (Isa isa : isas)
    for (const std::string &name : getTarget(isa).atoms)
      if (findAtom(name)->elements == elements &&
          seen.emplace(name, getTarget(isa).vectorBits).second)
        all.push_back({isa, name});
  return all;
}

/// Whether the operand with the vectors is copied, and in which blocks of the
/// reduced dimension.
NestChoice copying(bool packs, std::optional<int64_t> reducedBlock = {}) {
  NestChoice choice;
  choice.packs = packs;
  choice.reducedBlock = reducedBlock;
  return choice;
}

/// The request with the atom, and what else is chosen, for every contraction
/// that it fits; their number.
int force(const kernels::Operator &op, RunRequest &request, const Atom &atom,
          const NestChoice &others = {}) {
  request.isa = atom.isa;
  request.choices = std::make_shared<PlanChoices>();
  Result<session::Compilation> first = session::compileOperator(op, request);
  EXPECT_TRUE(first.ok()) << first.error().str();
  if (!first)
    return 0;
  auto choices = std::make_shared<PlanChoices>();
  int number = 0;
  // Results in tile registers have their last dimension along the lanes.
  const bool isTile = findAtom(atom.name)->isTile();
  for (const StagePlan &stage : first->kernel.plan->stages)
    for (const NestPlan &nest : stage.nests) {
      const std::vector<std::string> &names = nest.alternatives.atoms,
                                     &dims = nest.alternatives.vectorDims;
      if (std::count(names.begin(), names.end(), atom.name) == 0 &&
          !(isTile && !names.empty()))
        continue;
      NestChoice &choice = choices->nests[nest.id];
      choice = others;
      choice.atom = atom.name;
      if (isTile && std::count(dims.begin(), dims.end(), "n_block") > 0)
        choice.vectorDim = "n_block";
      ++number;
    }
  request.choices = choices;
  return number;
}

/// Runs the operator with the atom; how many contractions took it.
int checkAtom(const char *name, RunRequest request, const Atom &atom,
              const std::vector<ValueClass> &classes,
              const NestChoice &others = {}) {
  const kernels::Operator &op = *kernels::findOperator(name);
  SCOPED_TRACE(atom.name + " on " + std::string(tessera::name(atom.isa)));
  const int number = force(op, request, atom, others);
  check(op, {request, classes}, {session::Backend::Cpu, atom.isa});
  return number;
}

const std::vector<ValueClass> few = {ValueClass::Normal,
                                     ValueClass::SprinkledNan};
const std::vector<ValueClass> all = {ValueClass::Normal,
                                     ValueClass::SprinkledNan,
                                     ValueClass::SprinkledInfinity,
                                     ValueClass::Subnormal,
                                     ValueClass::SignedZeros,
                                     ValueClass::LargeMagnitude};

/// The parameter is the share of pairs of extents and atoms that is run where
/// there are many: one in so many.
class Atoms : public testing::TestWithParam<uint64_t> {
protected:
  bool takes(const Atom &atom, const std::string &what) const {
    return stableHash(what + atom.name + std::string(name(atom.isa))) %
               GetParam() ==
           0;
  }
};

constexpr int64_t lengths[] = {0, 1,  2,  3,  4,  5,  7,  8,
                               9, 31, 32, 33, 63, 65, 131};

TEST_P(Atoms, RemaindersOfGroups) {
  for (const Atom &atom : atomsOf(AtomElements::BF16))
    for (int64_t k : lengths) {
      if (!takes(atom, fmt::format("k {}", k)))
        continue;
      const int taken = checkAtom(
          "gemm",
          {.dims = {{"m", 7}, {"n", 33}, {"k", k}}, .dtype = DType::BF16}, atom,
          all);
      if (!findAtom(atom.name)->isTile())
        EXPECT_EQ(taken, k >= findAtom(atom.name)->group) << k;
    }
  for (const Atom &atom : atomsOf(AtomElements::Int8))
    for (int64_t k : lengths) {
      if (!takes(atom, fmt::format("k {}", k)))
        continue;
      const int taken = checkAtom(
          "gemm_q8", {.dims = {{"m", 7}, {"n", 33}, {"k", k}}}, atom, few);
      if (!findAtom(atom.name)->isTile())
        EXPECT_EQ(taken, k >= findAtom(atom.name)->group) << k;
    }
}

TEST_P(Atoms, RowsAndVectors) {
  for (int64_t m : {1, 2, 6, 13, 67})
    for (int64_t n : {1, 16, 17, 81})
      for (Edge edge : {Edge::End, Edge::Begin}) {
        if (edge == Edge::Begin && m != 13)
          continue;
        kernels::Dims dims = {{"m", m}, {"n", n}, {"k", 13}};
        const std::string what =
            fmt::format("{} x {}, {}", m, n, edge == Edge::End);
        for (const Atom &atom : atomsOf(AtomElements::BF16))
          if (takes(atom, what))
            checkAtom("gemm",
                      {.dims = dims, .dtype = DType::BF16, .edge = edge}, atom,
                      few);
        for (const Atom &atom : atomsOf(AtomElements::Int8))
          if (takes(atom, what))
            checkAtom("gemm_q8", {.dims = dims, .edge = edge}, atom,
                      {ValueClass::Normal});
      }
}

// Words that are put together where they are multiplied, all at once and in
// blocks, of which the last one is shorter.
TEST_P(Atoms, WordsInRegisters) {
  const NestChoice whole = copying(false), blocks = copying(false, 24);
  for (auto [m, n] : {std::pair(int64_t(1), int64_t(81)), {5, 17}})
    for (Edge edge : {Edge::End, Edge::Begin}) {
      auto checkAll = [&, m = m, n = n](const char *op, DType dtype,
                                        const Atom &atom) {
        if (findAtom(atom.name)->isTile())
          return;
        for (auto [k, choice] : {std::pair(int64_t(37), &whole), {64, &blocks}})
          EXPECT_EQ(1, checkAtom(op,
                                 {.dims = {{"m", m}, {"n", n}, {"k", k}},
                                  .dtype = dtype,
                                  .edge = edge},
                                 atom, few, *choice));
      };
      for (const Atom &atom : atomsOf(AtomElements::BF16))
        checkAll("gemm", DType::BF16, atom);
      for (const Atom &atom : atomsOf(AtomElements::Int8))
        checkAll("gemm_q8", DType::F32, atom);
    }
}

// Without that the tests of tiles are about other code.
TEST_P(Atoms, TilesAreEmulatedWhereTheHostHasNone) {
  if (!emulation::emulatesTiles())
    GTEST_SKIP() << "this host has tile registers, or lacks more than these";
  const uint64_t before = emulation::emulatedTileInstructions();
  EXPECT_EQ(1, checkAtom("gemm_q8", {.dims = {{"m", 33}, {"n", 40}, {"k", 70}}},
                         {Isa::Avx512Amx, "tiles8"}, {ValueClass::Normal}));
  EXPECT_GT(emulation::emulatedTileInstructions(), before + 20);
}

TEST_P(Atoms, OperandsInAnyOrder) {
  const int64_t m = 21, n = 37, k = 27;
  for (const Atom &atom : atomsOf(AtomElements::BF16))
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        EXPECT_EQ(1, checkAtom("gemm",
                               {.dims = {{"m", m}, {"n", n}, {"k", k}},
                                .dtype = DType::BF16,
                                .settings = {{"trans_a", transA},
                                             {"trans_b", transB},
                                             {"beta", 0.5}},
                                .present = {"c0"}},
                               atom, all));
  struct Layout {
    std::vector<int64_t> a, b;
  };
  for (const Layout &layout :
       {Layout{{-k, 1}, {n, 1}}, Layout{{k, -1}, {n, 1}},
        Layout{{1, m}, {n, 1}}, Layout{{k, 1}, {1, k}}, Layout{{1, m}, {1, k}},
        Layout{{k + 3, 1}, {-2 * n, 2}}, Layout{{2 * k, 2}, {1, -k}}}) {
    RunRequest request{.dims = {{"m", m}, {"n", n}, {"k", k}},
                       .strides = {{"a", layout.a}, {"b", layout.b}}};
    const std::string what = fmt::format("{} {}", fmt::join(layout.a, ","),
                                         fmt::join(layout.b, ","));
    for (const Atom &atom : atomsOf(AtomElements::Int8))
      if (takes(atom, what))
        checkAtom("gemm_q8", request, atom, {ValueClass::Normal});
    request.dtype = DType::BF16;
    for (const Atom &atom : atomsOf(AtomElements::BF16))
      if (takes(atom, what))
        checkAtom("gemm", request, atom, few);
  }
}

TEST_P(Atoms, BatchesEpiloguesAndAttention) {
  for (const Atom &atom : atomsOf(AtomElements::BF16)) {
    EXPECT_EQ(1,
              checkAtom("bmm",
                        {.dims = {{"batch", 3}, {"m", 9}, {"n", 35}, {"k", 19}},
                         .dtype = DType::BF16},
                        atom, few));
    EXPECT_EQ(1, checkAtom("gemm_epilogue",
                           {.dims = {{"m", 70}, {"n", 70}, {"k", 33}},
                            .dtype = DType::BF16,
                            .settings = {{"activation", 2}},
                            .present = {"bias", "residual"}},
                           atom, {ValueClass::Normal}));
    checkAtom("attention",
              {.dims = {{"b", 1},
                        {"hq", 2},
                        {"hkv", 1},
                        {"q", 33},
                        {"k", 70},
                        {"d", 31},
                        {"dv", 32}},
               .dtype = DType::BF16},
              atom, {ValueClass::Normal});
  }
}

/// c = a b of integers with signs or without, in i32.
template <typename A, typename B> Kernel productOfBytes() {
  return kernel("product", "a, b, c",
                [](View<const A, 2> a, View<const B, 2> b, View<int32_t, 2> c) {
                  Dim m = dim("m", a.extent(0)), n = dim("n", b.extent(1));
                  Dim k = dim("k", a.extent(1));
                  store(c(m, n), contract(cast(load(a(m, k)), DType::I32),
                                          cast(load(b(k, n)), DType::I32), k));
                });
}

template <typename T>
TensorRef dense(std::vector<T> &data, DType dtype,
                std::vector<int64_t> extents) {
  TensorRef tensor;
  tensor.data = data.data();
  tensor.dtype = dtype;
  tensor.strides = {extents[1], 1};
  tensor.extents = std::move(extents);
  return tensor;
}

/// Every pair of the extreme bytes.
template <typename A, typename B>
void checkBytes(DType left, DType right, const Atom &atom) {
  auto program = Program::fromKernel(productOfBytes<A, B>(), {});
  ASSERT_TRUE(program.ok()) << program.error().str();
  struct Form {
    int64_t k, m;
    NestChoice choice;
  };
  const Form forms[] = {
      {4, 13, {}},
      {7, 13, {}},
      {64, 13, {}},
      {133, 13, {}},
      {68, 13, copying(false, 32)},
      {136, 13, copying(true, 72)},
  };
  for (auto [k, m, choice] : forms) {
    const int64_t n = 50;
    std::vector<A> a(size_t(m * k));
    std::vector<B> b(size_t(k * n));
    std::vector<int32_t> c(size_t(m * n), -1);
    const int bytes[] = {-128, 127, 0, -1, 1, 100, -77};
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = A(i % size_t(k) < 4 ? bytes[i / size_t(k) % 2] : bytes[i % 7]);
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = B(i % 3 == 0 ? -128 : bytes[i * i % 7]);
    std::vector<Argument> arguments{dense(a, left, {m, k}),
                                    dense(b, right, {k, n}),
                                    dense(c, DType::I32, {m, n})};
    CompileRequest request;
    request.isa = atom.isa;
    request.choices = std::make_shared<PlanChoices>();
    auto first = program->compileFor(arguments, request);
    ASSERT_TRUE(first.ok()) << first.error().str();
    auto choices = std::make_shared<PlanChoices>();
    for (const NestPlan &nest : first->plan->stages[0].nests)
      (choices->nests[nest.id] = choice).atom = atom.name;
    request.choices = choices;
    auto compiled = program->compileFor(arguments, request);
    ASSERT_TRUE(compiled.ok()) << compiled.error().str();
    EXPECT_THAT(compiled->planSummary, HasSubstr(atom.name));
    auto run = emulation::launch(atom.isa, *compiled, arguments);
    ASSERT_TRUE(run.ok()) << run.error().str();
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        int32_t sum = 0;
        for (int64_t x = 0; x < k; ++x)
          sum += int32_t(a[size_t(i * k + x)]) * int32_t(b[size_t(x * n + j)]);
        ASSERT_EQ(c[size_t(i * n + j)], sum)
            << compiled->planSummary << " at " << i << ", " << j << ", k " << k;
      }
  }
}

TEST_P(Atoms, BytesWithSignsAndWithout) {
  for (const Atom &atom : atomsOf(AtomElements::Int8)) {
    checkBytes<int8_t, int8_t>(DType::I8, DType::I8, atom);
    checkBytes<uint8_t, int8_t>(DType::U8, DType::I8, atom);
    checkBytes<int8_t, uint8_t>(DType::I8, DType::U8, atom);
    checkBytes<uint8_t, uint8_t>(DType::U8, DType::U8, atom);
  }
}

// The order is the author's, and so are subnormal numbers.
TEST_P(Atoms, StrictTiersAndOrdersTakeNone) {
  if (atomsOf(AtomElements::BF16).empty())
    GTEST_SKIP() << "this host has no atom of bf16";
  RunRequest request{.dims = {{"m", 16}, {"n", 32}, {"k", 32}},
                     .dtype = DType::BF16,
                     .tier = Tier::Strict};
  EXPECT_EQ(0, force(*kernels::findOperator("gemm"), request,
                     atomsOf(AtomElements::BF16).back()));
}

INSTANTIATE_TEST_SUITE_P(Share, Atoms, testing::Values(3));
INSTANTIATE_TEST_SUITE_P(Soak, Atoms, testing::Values(1));

} // namespace
} // namespace tessera::runtest
