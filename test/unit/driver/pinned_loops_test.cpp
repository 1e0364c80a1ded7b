//===- pinned_loops_test.cpp - Every pin is met or refused ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever a schedule fixes, the kernel compiles for every target, or is
// refused with the pin's name. What compiles for this machine computes the
// same.
//
//===----------------------------------------------------------------------===//

#include "driver/program.h"
#include "kernels/table.h"
#include "plan/plan_record.h"
#include "tessera/dsl.h"
#include "test/unit/planned_machine.h"

#include <gtest/gtest.h>

using namespace tessera;

namespace {

struct Kernels {
  std::string op;
  kernels::Dims dims;
  DType dtype;
  std::vector<Schedule> pins;
  std::vector<Isa> isas;
};

std::string textOf(const Schedule &pins) {
  std::string text;
  if (pins.vectorAxis)
    text += " vectorAxis=" + *pins.vectorAxis;
  if (pins.lanes)
    text += " lanes=" + std::to_string(*pins.lanes);
  if (pins.unroll)
    text += " unroll=" + std::to_string(*pins.unroll);
  if (pins.tail)
    text += " tail=" + *pins.tail;
  return text;
}

/// Compiles the planner's own plan under each of the pins. Returns how many
/// compiled.
int compileAll(const Kernels &each) {
  int compiled = 0;
  for (const Schedule &pins : each.pins)
    for (Isa isa : each.isas) {
      SCOPED_TRACE(each.op + textOf(pins) + " on " + std::string(name(isa)));
      const kernels::Operator *op = kernels::findOperator(each.op);
      TraceOptions options;
      options.storage = each.dtype;
      Result<Program> program =
          Program::fromKernel(op->kernel().schedule(pins), options);
      EXPECT_TRUE(program) << program.error().str();
      if (!program)
        continue;
      CompileRequest request;
      request.isa = isa;
      request.threads = 1;
      request.machine = plannedMachine();
      request.choices = std::make_shared<PlanChoices>();
      for (const ProgramParameter &parameter : program->parameters())
        request.extents.push_back(
            parameter.isView
                ? kernels::arrayExtents(
                      *kernels::findArray(*op, parameter.name), each.dims)
                : std::vector<int64_t>());
      Result<CompiledKernel> made = program->compile(request);
      if (made) {
        ++compiled;
        continue;
      }
      EXPECT_EQ(made.error().family, ErrorFamily::Unsupported)
          << made.error().str();
      EXPECT_EQ(made.error().code, "unsupported.pin") << made.error().str();
    }
  return compiled;
}

std::vector<Schedule> allLanes(std::optional<int64_t> unroll = {}) {
  std::vector<Schedule> pins;
  for (int64_t lanes : {2, 4, 8, 16, 32, 64})
    pins.push_back({.lanes = lanes, .unroll = unroll});
  return pins;
}

const std::vector<Isa> levels = {Isa::X86_64, Isa::Avx2, Isa::Avx512};

// More lanes than the registers hold of two rows.
TEST(PinnedLoops, WideContractions) {
  EXPECT_GE(compileAll({"gemm",
                        {{"m", 64}, {"n", 48}, {"k", 33}},
                        DType::F32,
                        allLanes(),
                        levels}),
            14);
  EXPECT_GE(compileAll({"bmm",
                        {{"batch", 1}, {"m", 9}, {"n", 48}, {"k", 133}},
                        DType::F64,
                        allLanes(),
                        levels}),
            12);
}

TEST(PinnedLoops, WideExponentials) {
  for (DType dtype : {DType::F32, DType::F64})
    for (const char *op : {"softmax", "swiglu"})
      EXPECT_GE(
          compileAll(
              {op, {{"rows", 3}, {"cols", 300}}, dtype, allLanes(), levels}),
          14);
}

TEST(PinnedLoops, Tails) {
  std::vector<Schedule> pins;
  for (const char *tail : {"mask", "scalar", "overlap"})
    for (int64_t lanes : {16, 64})
      pins.push_back({.lanes = lanes, .unroll = 1, .tail = tail});
  // Of 16 lanes, 8 are left, of 64, 40: whole registers.
  EXPECT_GE(compileAll({"layer_norm",
                        {{"rows", 3}, {"cols", 1000}},
                        DType::F64,
                        pins,
                        levels}),
            12);
  EXPECT_GE(
      compileAll(
          {"softmax", {{"rows", 3}, {"cols", 1001}}, DType::F32, pins, levels}),
      12);
}

// Their lanes are groups of elements.
TEST(PinnedLoops, Atoms) {
  const std::vector<Schedule> pins = {
      {.tail = "mask"},
      {.tail = "scalar"},
      {.tail = "overlap"},
      {.unroll = 1},
      {.unroll = 2},
      {.vectorAxis = "n_block"},
      {.lanes = 16},
      {.lanes = 32},
      {.lanes = 16, .unroll = 2, .tail = "mask"}};
  for (const kernels::Dims &dims :
       {kernels::Dims{{"m", 1}, {"n", 128}, {"k", 4096}},
        kernels::Dims{{"m", 65}, {"n", 65}, {"k", 255}}})
    EXPECT_GE(
        compileAll({"gemm_q8",
                    dims,
                    DType::F32,
                    pins,
                    {Isa::Avx2, Isa::Avx512, Isa::Avx512Vnni, Isa::Avx512Amx}}),
        16);
}

} // namespace
