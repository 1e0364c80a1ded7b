//===- test/unit/run/layout_test.cpp - Where elements lie -----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operator on views of any strides, in place, and on overlapping memory.
//
//===----------------------------------------------------------------------===//

#include "cases.h"
#include "test/unit/emulation/emulator.h"

#include "kernels/elements.h"
#include "kernels/generate.h"

#include <algorithm>
#include <cstring>

namespace tessera::runtest {
namespace {

using kernels::Dims;
using kernels::ValueClass;
using session::RunRequest;

class Layout : public testing::TestWithParam<Subject> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam().machine); }
};

/// How the elements of an array are spread.
enum class Spread { Padded, Transposed, Reversed, Apart, Broadcast };
constexpr Spread spreads[] = {Spread::Padded, Spread::Transposed,
                              Spread::Reversed, Spread::Apart,
                              Spread::Broadcast};

std::vector<int64_t> stridesFor(Spread spread,
                                const std::vector<int64_t> &extents) {
  size_t rank = extents.size();
  std::vector<int64_t> strides(rank, 1);
  auto nest = [&](const auto &order, int64_t first, int64_t padding) {
    int64_t next = first;
    for (size_t axis : order) {
      strides[axis] = next;
      next *= std::max<int64_t>(extents[axis], 1);
      next += padding;
    }
  };
  std::vector<size_t> innermostFirst;
  for (size_t axis = rank; axis-- > 0;)
    innermostFirst.push_back(axis);
  switch (spread) {
  case Spread::Padded:
    nest(innermostFirst, 1, 3);
    break;
  case Spread::Transposed:
    nest(std::vector<size_t>(innermostFirst.rbegin(), innermostFirst.rend()), 1,
         0);
    break;
  case Spread::Reversed:
    nest(innermostFirst, 1, 0);
    for (int64_t &stride : strides)
      stride = -stride;
    break;
  case Spread::Apart:
    nest(innermostFirst, 3, 2);
    break;
  case Spread::Broadcast:
    nest(innermostFirst, 1, 0);
    strides[0] = 0;
    break;
  }
  return strides;
}

Dims layoutDims(const kernels::Operator &op, int64_t lanes) {
  Dims dims = smallDims(op);
  dims.find(longDim(op))->second = 2 * lanes + 3;
  return admissible(op, dims);
}

bool isOutput(const kernels::Operator &op, std::string_view name) {
  const Kernel kernel = op.kernel();
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.name == name)
      return parameter.writable;
  return false;
}

bool isOptional(const kernels::Operator &op, std::string_view name) {
  const Kernel kernel = op.kernel();
  for (const ParameterInfo &parameter : kernel.parameters())
    if (parameter.name == name)
      return parameter.optional;
  return false;
}

TEST_P(Layout, AnyStrides) {
  const kernels::Operator &op = *GetParam().op;
  const Dims dims = layoutDims(op, GetParam().machine.lanes());
  auto spreadAll = [&](auto spreadOf, DType dtype) {
    RunRequest request = requestFor(GetParam(), dims, dtype);
    for (const kernels::ArrayInfo &array : op.arrays) {
      Spread spread = spreadOf(array);
      if (isOptional(op, array.name))
        continue;
      if (spread == Spread::Broadcast && isOutput(op, array.name))
        spread = Spread::Padded;
      request.strides[std::string(array.name)] =
          stridesFor(spread, kernels::arrayExtents(array, dims));
    }
    check(op, {request, {ValueClass::Normal, ValueClass::SprinkledNan}},
          GetParam().machine);
  };
  // All arrays alike, then each in its own way.
  for (Spread spread : spreads)
    spreadAll([&](const auto &) { return spread; },
              static_cast<int>(spread) % 2 ? DType::BF16 : DType::F32);
  for (int round = 0; round < 3; ++round)
    spreadAll(
        [&](const kernels::ArrayInfo &array) {
          return spreads[stableHash(GetParam().name() +
                                    std::string(array.name) +
                                    std::to_string(round)) %
                         std::size(spreads)];
        },
        round == 0   ? DType::F32
        : round == 1 ? DType::F64
                     : DType::F16);
}

TEST_P(Layout, InPlace) {
  const kernels::Operator &op = *GetParam().op;
  if (op.name == "transpose")
    return; // Its output has another shape.
  if (op.name == "sobel" || op.name == "median3")
    return; // Programs read rows that others write.
  const Dims dims = layoutDims(op, GetParam().machine.lanes());
  for (const kernels::ArrayInfo &output : op.arrays) {
    if (!isOutput(op, output.name) || isOptional(op, output.name))
      continue;
    for (const kernels::ArrayInfo &input : op.arrays) {
      // Every program reads what it writes, and of it alone.
      if (isOutput(op, input.name) || isOptional(op, input.name) ||
          input.content != kernels::Content::Values ||
          input.axes != output.axes || op.name == "attention" ||
          input.name == "table")
        continue;
      for (DType dtype : {DType::F32, DType::BF16}) {
        if (output.name == "index" || output.name == "indices")
          continue;
        RunRequest request = requestFor(GetParam(), dims, dtype);
        request.inPlace = {{std::string(output.name), std::string(input.name)}};
        check(op, {request, {ValueClass::Normal, ValueClass::SprinkledNan}},
              GetParam().machine);
      }
    }
  }
}

std::string subjectName(const testing::TestParamInfo<Subject> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Layout, testing::ValuesIn(subjects(machines())),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(Emulated, Layout,
                         testing::ValuesIn(subjects(emulatedMachines(8))),
                         subjectName);
INSTANTIATE_TEST_SUITE_P(EmulatedSoak, Layout,
                         testing::ValuesIn(subjects(emulatedMachines(1))),
                         subjectName);

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

class Overlap : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override { TESSERA_SKIP_UNLESS_RUNNABLE(GetParam()); }

  static Result<void> launch(const CompiledKernel &kernel,
                             const std::vector<Argument> &arguments) {
    return emulation::launch(GetParam().isa, kernel, arguments);
  }
};

/// The memory of one launch of copy, one row of `cols` elements moved by
/// `shift` elements.
struct Move {
  std::vector<float> memory;
  TensorRef x, y;

  Move(int64_t cols, int64_t shift) {
    memory.resize(static_cast<size_t>(cols + std::abs(shift)));
    for (size_t i = 0; i < memory.size(); ++i)
      memory[i] = static_cast<float>(i);
    float *source = memory.data() + (shift < 0 ? -shift : 0);
    x = TensorRef::dense(source, DType::F32, {1, cols});
    y = TensorRef::dense(source + shift, DType::F32, {1, cols});
  }
};

TEST_P(Overlap, OneRowMovedOntoItself) {
  // A load is a snapshot: no element may be read after it was overwritten.
  const int64_t lanes = GetParam().lanes();
  const kernels::Operator &op = *kernels::findOperator("copy");
  auto program = session::traceOperator(op, {});
  ASSERT_TRUE(program.ok());
  for (int64_t cols : {int64_t{1}, lanes, 4 * lanes + 1, int64_t{1000}})
    for (int64_t shift :
         {int64_t{1}, int64_t{-1}, lanes, -lanes, lanes + 1, int64_t{200}}) {
      Move move(cols, shift);
      std::vector<float> expected(move.memory);
      std::memmove(expected.data() +
                       (static_cast<float *>(move.y.data) - move.memory.data()),
                   expected.data() +
                       (static_cast<float *>(move.x.data) - move.memory.data()),
                   static_cast<size_t>(cols) * sizeof(float));
      const std::vector<Argument> arguments = {move.x, move.y};
      if (GetParam().backend == session::Backend::Cpu) {
        CompileRequest request;
        request.isa = GetParam().isa;
        auto kernel = program->compileFor(arguments, request);
        ASSERT_TRUE(kernel.ok()) << kernel.error().str();
        auto launched = launch(*kernel, arguments);
        ASSERT_TRUE(launched.ok()) << launched.error().str();
      } else {
        ASSERT_TRUE(program->interpret(arguments, {}).ok());
      }
      EXPECT_EQ(move.memory, expected) << cols << " moved by " << shift;
    }
}

TEST_P(Overlap, FastCodeRefusesOverlap) {
  if (GetParam().backend != session::Backend::Cpu)
    return;
  auto program = session::traceOperator(*kernels::findOperator("copy"), {});
  ASSERT_TRUE(program.ok());
  Move apart(100, 100), over(100, 1);
  CompileRequest request;
  request.isa = GetParam().isa;
  auto kernel =
      program->compileFor(std::vector<Argument>{apart.x, apart.y}, request);
  ASSERT_TRUE(kernel.ok()) << kernel.error().str();
  const std::vector<float> before = over.memory;
  auto launched = launch(*kernel, {over.x, over.y});
  ASSERT_FALSE(launched.ok());
  EXPECT_EQ(launched.error().family, ErrorFamily::Launch);
  EXPECT_EQ(over.memory, before);
}

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(Run, Overlap, testing::ValuesIn(machines()),
                         machineName);
INSTANTIATE_TEST_SUITE_P(Emulated, Overlap,
                         testing::ValuesIn(emulatedMachines(1)), machineName);

} // namespace
} // namespace tessera::runtest
