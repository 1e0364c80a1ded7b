//===- test/unit/run/contraction_test.cpp - Products at every boundary ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of the kernel table, in every type and at every level, around
// the boundaries that their plans have: rows of a tile, vectors and groups of
// them, blocks of the programs and of the reduced dimension, which are made
// small. Decisions of the plans are edited, arrays are strided either way and
// touch a guard page. The suite takes a seeded share of the cases, the soak all
// of them:
//
//   TESSERA_CONTRACTION_SEED=n     which share the suite takes
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include "driver/program.h"
#include "plan/plan_record.h"
#include "support/guarded_buffer.h"
#include "tessera/dsl.h"
#include "test/unit/emulation/emulator.h"
#include "test/unit/planned_machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::Operator;
using kernels::ValueClass;
using session::RunRequest;

bool isProduct(const Operator &op) {
  auto has = [&](std::string_view dim) {
    return std::find(op.dims.begin(), op.dims.end(), dim) != op.dims.end();
  };
  return has("m") && has("n") && has("k");
}

/// Whether it multiplies integers of 8 bits.
bool takesBytes(const Operator &op) {
  const Kernel kernel = op.kernel();
  const auto &all = kernel.parameters();
  return std::any_of(all.begin(), all.end(), [](const ParameterInfo &one) {
    return one.dtype == DType::I8 || one.dtype == DType::U8;
  });
}

std::vector<Subject> products() {
  std::vector<Subject> result;
  for (const Subject &subject : subjects(cpuMachines()))
    if (isProduct(*subject.op))
      result.push_back(subject);
  return result;
}

/// A setting of everything but extents and plan.
struct Variant {
  kernels::Settings settings;
  std::vector<std::string> present;
};

/// Every combination of swapped operands, named settings and optional arrays.
std::vector<Variant> variantsOf(const Operator &op) {
  std::vector<Variant> all(1);
  auto multiply = [&](auto with) {
    std::vector<Variant> more;
    for (const Variant &variant : all)
      with(variant, more);
    all = std::move(more);
  };
  for (const kernels::ArrayInfo &array : op.arrays)
    if (!array.swappedBy.empty())
      multiply([&](Variant variant, std::vector<Variant> &more) {
        for (bool isSwapped : {false, true}) {
          variant.settings[std::string(array.swappedBy)] = isSwapped;
          more.push_back(variant);
        }
      });
  for (const kernels::ConstantRange &range : op.ranges)
    multiply([&](Variant variant, std::vector<Variant> &more) {
      for (int64_t value = range.low; value <= range.high; ++value) {
        variant.settings[std::string(range.name)] = value;
        more.push_back(variant);
      }
    });
  const Kernel kernel = op.kernel();
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.optional && parameter.kind == ParameterInfo::Kind::View)
      multiply([&](Variant variant, std::vector<Variant> &more) {
        more.push_back(variant);
        variant.present.push_back(parameter.name);
        more.push_back(variant);
      });
  return all;
}

/// The extents at which something begins or ends, and those beside them.
std::vector<int64_t> around(std::initializer_list<int64_t> boundaries) {
  std::set<int64_t> extents{0, 1};
  for (int64_t boundary : boundaries)
    for (int64_t extent : {boundary - 1, boundary, boundary + 1})
      extents.insert(std::max<int64_t>(extent, 0));
  return {extents.begin(), extents.end()};
}

/// Numbers that depend on a text alone, one after another.
class Draw {
public:
  explicit Draw(std::string text) : text(std::move(text)) {}

  template <typename T> T from(const std::vector<T> &values) {
    return values[stableHash(text + std::to_string(drawn++)) % values.size()];
  }

private:
  std::string text;
  int drawn = 0;
};

class Contractions : public testing::TestWithParam<Subject> {
protected:
  const Operator &op() const { return *GetParam().op; }

  /// The contraction's nests under default decisions.
  std::vector<NestPlan> nestsOf(const RunRequest &given) {
    RunRequest request = given;
    request.choices = std::make_shared<PlanChoices>();
    std::vector<NestPlan> nests;
    auto compiled = session::compileOperator(op(), request);
    EXPECT_TRUE(compiled.ok()) << compiled.error().str();
    if (compiled)
      for (const StagePlan &stage : compiled->kernel.plan->stages)
        for (const NestPlan &nest : stage.nests)
          if (nest.roots.find("contract") != std::string::npos)
            nests.push_back(nest);
    return nests;
  }

  /// Each decision left to the planner or one of a few.
  NestChoice drawChoice(Draw &draw) {
    NestChoice choice;
    using Number = std::optional<int64_t>;
    using Flag = std::optional<bool>;
    const Number none;
    choice.unroll = draw.from<Number>({none, none, 1, 2, 3});
    choice.tileRows = draw.from<Number>({none, none, 1, 2, 3, 5, 6, 12});
    choice.reducedBlock = draw.from<Number>({none, none, 0, 1, 4, 7});
    choice.packs = draw.from<Flag>({{}, {}, false, true});
    choice.epilogue = draw.from<Flag>({{}, {}, false});
    choice.tail = draw.from<std::optional<TailForm>>(
        {std::nullopt, std::nullopt, TailForm::Scalar, TailForm::Mask});
    return choice;
  }

  /// The strides of all arrays: as they are, with room between rows, or
  /// backwards.
  void spread(RunRequest &request, int kind) {
    if (kind == 0)
      return;
    for (const kernels::ArrayInfo &array : op().arrays) {
      const Kernel kernel = op().kernel();
      const auto &all = kernel.parameters();
      auto parameter =
          std::find_if(all.begin(), all.end(), [&](const ParameterInfo &one) {
            return one.name == array.name;
          });
      if (parameter->optional &&
          std::find(request.present.begin(), request.present.end(),
                    array.name) == request.present.end())
        continue;
      std::vector<int64_t> extents =
          kernels::arrayExtents(array, request.dims, request.settings);
      std::vector<int64_t> strides(extents.size());
      int64_t next = 1;
      for (size_t axis = extents.size(); axis-- > 0;) {
        strides[axis] = kind == 2 ? -next : next;
        next = next * std::max<int64_t>(extents[axis], 1) + 3;
      }
      request.strides[std::string(array.name)] = std::move(strides);
    }
  }

  bool run(const RunRequest &request, const std::string &what, Draw &draw) {
    auto compiled = session::CompiledOperator::create(op(), request);
    if (!compiled) {
      ADD_FAILURE() << what << ": " << compiled.error().str();
      return false;
    }
    for (const StagePlan &stage : compiled->compiled()->plan->stages)
      for (const NestPlan &nest : stage.nests) {
        auto chosen = request.choices->nests.find(nest.id);
        if (chosen != request.choices->nests.end() &&
            chosen->second.tileRows == nest.tileRows)
          ++honoured;
      }
    for (ValueClass values :
         {ValueClass::Normal,
          draw.from<ValueClass>({ValueClass::SprinkledNan,
                                 ValueClass::Subnormal, ValueClass::HugeOffset,
                                 ValueClass::SprinkledInfinity})}) {
      session::RunValues run;
      run.valueClass = values;
      auto result = compiled->run(onMachine(run, request));
      if (result.ok() && result->passed())
        continue;
      ADD_FAILURE() << what << " with " << kernels::name(values)
                    << " values, plan " << compiled->compiled()->planSummary
                    << ": "
                    << (result ? result->failures() : result.error().str());
      return false;
    }
    return true;
  }

  /// Runs one in about `share` of the cases.
  void sweep(uint64_t share) {
    const char *given = std::getenv("TESSERA_CONTRACTION_SEED");
    const std::string seed = given ? given : "";
    // Small blocks, and a group of vectors and a few rows in each.
    const int64_t lanes = GetParam().machine.lanes(), blockM = 13,
                  blockN = 2 * lanes + 5;
    // A share is one of variants and then of their cases.
    const std::vector<Variant> variants = variantsOf(op());
    const uint64_t all = variants.size() * op().dtypes.size(),
                   ofVariants =
                       share > 1 ? std::clamp<uint64_t>(all / 4, 1, 8) : 1,
                   ofCases = share / ofVariants,
                   first = stableHash(GetParam().name() + seed);
    uint64_t number = first;
    for (DType dtype : op().dtypes)
      for (const Variant &variant : variants) {
        if (number++ % ofVariants != 0)
          continue;
        if (addsNarrowProducts(GetParam().machine.isa) &&
            dtype != DType::BF16 && !takesBytes(op()))
          continue; // The code of avx512.
        RunRequest request =
            requestFor(GetParam(), {{"batch", 2}, {"group", 2}}, dtype);
        for (auto it = request.dims.begin(); it != request.dims.end();)
          it = std::find(op().dims.begin(), op().dims.end(), it->first) ==
                       op().dims.end()
                   ? request.dims.erase(it)
                   : std::next(it);
        request.settings = variant.settings;
        request.present = variant.present;
        request.machine = plannedMachine();
        request.threads = 1;
        request.tunables = {{"block_m", blockM}, {"block_n", blockN}};
        for (const char *dim : {"m", "n", "k"})
          request.dims[dim] = 40;
        std::vector<NestPlan> nests = nestsOf(request);
        ASSERT_FALSE(nests.empty());
        const NestPlan &nest = nests[0];
        const int64_t rows = nest.tileRows, group = nest.lanes * nest.unroll;
        const std::vector<int64_t> downs = around(
                                       {rows, 2 * rows, blockM, 2 * blockM}),
                                   acrosses = around(
                                       {nest.lanes, group, blockN, 2 * blockN}),
                                   depths = around({4, 7, nest.lanes, group});
        const std::string name =
            describe(op(), request) + " seed " + seed + " ";
        Draw draw(name);
        auto one = [&](int64_t m, int64_t n, int64_t k) {
          const std::string text = name + std::to_string(m) + " x " +
                                   std::to_string(n) + " x " +
                                   std::to_string(k);
          if (stableHash(text) % ofCases != 0)
            return true;
          Draw forCase(text);
          RunRequest own = request;
          own.dims["m"] = m;
          own.dims["n"] = n;
          own.dims["k"] = k;
          own.dims = admissible(op(), own.dims);
          auto choices = std::make_shared<PlanChoices>();
          for (const NestPlan &each : nests)
            choices->nests[each.id] = drawChoice(forCase);
          choices->edges[0] =
              forCase.from<Edges>({Edges::Apart, Edges::Checked});
          own.choices = choices;
          own.edge = forCase.from<session::Edge>(
              {session::Edge::End, session::Edge::Begin});
          spread(own, forCase.from<int>({0, 0, 1, 2}));
          ++cases;
          wrong += run(own, describe(op(), own), forCase) ? 0 : 1;
          return wrong < 4;
        };
        // Every boundary of each extent beside some of the others', and some of
        // all triples.
        for (int64_t m : downs)
          if (!one(m, draw.from(acrosses), draw.from(depths)))
            return;
        for (int64_t n : acrosses)
          if (!one(draw.from(downs), n, draw.from(depths)))
            return;
        for (int64_t k : depths)
          if (!one(draw.from(downs), draw.from(acrosses), k))
            return;
        for (int i = 0; i < 40; ++i)
          if (!one(draw.from(downs), draw.from(acrosses), draw.from(depths)))
            return;
      }
    RecordProperty("cases", cases);
  }

  int cases = 0, wrong = 0;
  /// Nests with as many rows as were chosen.
  int honoured = 0;
};

class ContractionsSoak : public Contractions {};

TEST_P(Contractions, AgreeWithTheOracle) { sweep(/*share=*/96); }

TEST_P(ContractionsSoak, AgreeWithTheOracle) {
  sweep(/*share=*/1);
  // Edits of plans are no dead letters.
  EXPECT_GT(honoured, cases / 10);
}

std::string subjectName(const testing::TestParamInfo<Subject> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Contractions, testing::ValuesIn(products()),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(Run, ContractionsSoak, testing::ValuesIn(products()),
                         subjectName);

//===----------------------------------------------------------------------===//
// In order
//===----------------------------------------------------------------------===//

template <typename T> Result<Program> inOrder(Order order, DType storage) {
  return Program::fromKernel(
      kernel("in_order", "a, b, c",
             [order](View<const T, 2> a, View<const T, 2> b, View<T, 2> c) {
               Dim m = dim("m", c.extent(0)), n = dim("n", c.extent(1));
               Dim k = dim("k", a.extent(1));
               for (auto [i, j] : parallel(blocks(m, 13), blocks(n, 37)))
                 store(c(i, j), contract(load(a(i, k)), load(b(k, j)), k,
                                         {.order = order}));
             }),
      {.storage = storage});
}

/// Runs a product with the bits of the interpreter.
void agreeExactly(const Result<Program> &program, DType dtype, int64_t m,
                  int64_t n, int64_t k, const PlanChoices &choices,
                  const std::string &what) {
  ASSERT_TRUE(program.ok()) << program.error().str();
  using support::GuardedBuffer;
  struct Memory {
    std::vector<GuardedBuffer> buffers;
    std::vector<Argument> arguments;
  };
  const std::vector<std::vector<int64_t>> extents = {{m, k}, {k, n}, {m, n}};
  auto make = [&](GuardedBuffer::Edge edge) {
    Memory memory;
    for (const std::vector<int64_t> &shape : extents) {
      const int64_t bytes = shape[0] * shape[1] * sizeInBytes(dtype);
      auto buffer = GuardedBuffer::create(bytes, edge);
      EXPECT_TRUE(buffer.ok()) << buffer.error().str();
      TensorRef tensor = TensorRef::dense(buffer->data(), dtype, shape);
      kernels::GenerateOptions options;
      options.seed = uint64_t(memory.buffers.size());
      options.low = -100;
      options.high = 100;
      if (!isFloat(dtype))
        options.valueClass = ValueClass::Integers;
      auto filled = kernels::generate(tensor, "x", options);
      EXPECT_TRUE(filled.ok()) << filled.error().str();
      memory.arguments.push_back(tensor);
      memory.buffers.push_back(std::move(*buffer));
    }
    return memory;
  };
  Memory expected = make(GuardedBuffer::Edge::End);
  auto strict = program->interpret(expected.arguments, {});
  ASSERT_TRUE(strict.ok()) << what << ": " << strict.error().str();
  for (Isa isa : hostIsas()) {
    // An order is the author's: no level has other instructions for it.
    if (addsNarrowProducts(isa))
      continue;
    CompileRequest request;
    request.isa = isa;
    request.choices = std::make_shared<const PlanChoices>(choices);
    auto compiled = program->compileFor(expected.arguments, request);
    ASSERT_TRUE(compiled.ok()) << what << ": " << compiled.error().str();
    for (auto edge : {GuardedBuffer::Edge::End, GuardedBuffer::Edge::Begin}) {
      Memory actual = make(edge);
      auto run = compiled->executable.launch(actual.arguments);
      ASSERT_TRUE(run.ok()) << what << ": " << run.error().str();
      ASSERT_TRUE(actual.buffers[2].slackIntact()) << what;
      ASSERT_EQ(std::memcmp(actual.buffers[2].data(),
                            expected.buffers[2].data(),
                            size_t(actual.buffers[2].size())),
                0)
          << what << " on " << name(isa) << ", " << compiled->planSummary;
    }
  }
}

/// One in `share` of the orders, types, extents and plans.
void sweepOrders(uint64_t share) {
  const char *given = std::getenv("TESSERA_CONTRACTION_SEED");
  const std::string seed = given ? given : "";
  for (Order order : {Order::Left, Order::Right, Order::Tree})
    for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16,
                        DType::I8, DType::I32}) {
      Result<Program> program =
          dtype == DType::I8    ? inOrder<int8_t>(order, DType::F32)
          : dtype == DType::I32 ? inOrder<int32_t>(order, DType::F32)
                                : inOrder<Float>(order, dtype);
      for (int64_t m : around({6, 13}))
        for (int64_t n : around({8, 16, 37, 64}))
          for (int64_t k : {0, 1, 4, 5, 33}) {
            const std::string what =
                "order " + std::to_string(int(order)) + " of " +
                std::string(name(dtype)) + ", " + std::to_string(m) + " x " +
                std::to_string(n) + " x " + std::to_string(k);
            if (stableHash(what + seed) % share != 0)
              continue;
            Draw draw(what);
            PlanChoices choices;
            choices.edges[0] = draw.from<Edges>({Edges::Apart, Edges::Checked});
            agreeExactly(program, dtype, m, n, k, choices, what);
            if (testing::Test::HasFatalFailure())
              return;
          }
    }
}

TEST(ContractionsInOrder, HaveTheInterpretersBits) { sweepOrders(60); }

TEST(ContractionsInOrderSoak, HaveTheInterpretersBits) { sweepOrders(1); }

} // namespace
} // namespace tessera::runtest
