//===- register_pressure.cpp - What finds no register ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "search/register_pressure.h"

#include "codegen/llvm/interleave.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Operation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace mlir;

namespace tessera {

namespace {

int64_t registersOf(Type type, const Target &target) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getElementType().isIndex() ||
      vector.getElementTypeBitWidth() == 1)
    return 0;
  const int64_t bits =
      vector.getNumElements() * int64_t(vector.getElementTypeBitWidth());
  return std::max<int64_t>(1, bits / target.vectorBits);
}

/// What the loop needs beside the values that it makes.
struct Needs {
  /// How often constants are used, and what they take.
  struct Constant {
    int64_t uses = 0;
    int64_t registers = 0;
  };
  llvm::MapVector<Attribute, Constant> constants;
  /// Registers of running results, and of what does not change.
  int64_t held = 0;
};

Needs needsOf(Block &body, const Target &target) {
  Needs needs;
  for (BlockArgument carried : body.getArguments().drop_front())
    needs.held += registersOf(carried.getType(), target);
  llvm::SetVector<Value> around;
  for (Operation &op : body)
    for (Value operand : op.getOperands()) {
      const int64_t registers = registersOf(operand.getType(), target);
      if (registers == 0)
        continue;
      Attribute constant;
      if (matchPattern(operand, m_Constant(&constant))) {
        // A register is zeroed without loading anything.
        if (!matchPattern(operand, m_Zero()) &&
            !matchPattern(operand, m_AnyZeroFloat())) {
          needs.constants[constant].uses += 1;
          needs.constants[constant].registers = registers;
        }
      } else if (operand.getParentBlock() != &body && around.insert(operand)) {
        needs.held += registers;
      }
    }
  return needs;
}

/// The most registers that values of the block take at once, in its order.
int64_t liveOf(Block &body, const Target &target) {
  llvm::DenseMap<Value, Operation *> last;
  for (Operation &op : body.without_terminator())
    for (Value operand : op.getOperands())
      if (operand.getDefiningOp() && operand.getParentBlock() == &body)
        last[operand] = &op;
  int64_t live = 0, most = 0;
  for (Operation &op : body.without_terminator()) {
    llvm::SmallDenseSet<Value> ended;
    for (Value operand : op.getOperands())
      if (last.lookup(operand) == &op && ended.insert(operand).second &&
          !matchPattern(operand, m_Constant()))
        live -= registersOf(operand.getType(), target);
    for (Value result : op.getResults())
      if (last.contains(result) && !matchPattern(result, m_Constant()))
        live += registersOf(result.getType(), target);
    most = std::max(most, live);
  }
  return most;
}

} // namespace

RegisterPressure pressureOf(Block &body, const Target &target) {
  Needs needs = needsOf(body, target);
  if (needs.constants.empty()) {
    RegisterPressure pressure;
    pressure.together = double(
        std::clamp<int64_t>((target.vectorRegisters - needs.held) /
                                std::max<int64_t>(1, liveOf(body, target)),
                            1, mostChainsTogether));
    return pressure;
  }
  int64_t constants = 0, chains = std::numeric_limits<int64_t>::max();
  for (const auto &[value, constant] : needs.constants) {
    constants += constant.registers;
    chains = std::min(chains, constant.uses);
  }
  const int64_t registers = target.vectorRegisters;
  // Results of chains wait until those of a group are there.
  const int64_t grouped = std::min(chains, registers / 8);
  const int64_t live =
      std::max<int64_t>(1, liveOf(body, target) - (grouped - 1));
  const int64_t beside = needs.held + constants + 2 * live > registers
                             ? std::min(constants, int64_t(registersForLoaded))
                             : constants;
  const int64_t together =
      std::clamp<int64_t>((registers - needs.held - beside) / live, 1,
                          std::min(chains, int64_t(mostChainsTogether)));
  int64_t room = registers - needs.held - live * together;
  RegisterPressure pressure;
  pressure.together = double(together);
  if (room < 0)
    pressure.spills =
        double(-room) * std::ceil(double(chains) / double(together));
  SmallVector<Needs::Constant> byUse;
  for (const auto &[value, constant] : needs.constants)
    byUse.push_back(constant);
  llvm::sort(byUse, [](const Needs::Constant &a, const Needs::Constant &b) {
    return std::tie(a.uses, a.registers) > std::tie(b.uses, b.registers);
  });
  for (const Needs::Constant &constant : byUse) {
    room -= constant.registers;
    if (room < 0)
      pressure.constants += double(constant.registers) *
                            std::ceil(double(constant.uses) / double(together));
  }
  return pressure;
}

} // namespace tessera
