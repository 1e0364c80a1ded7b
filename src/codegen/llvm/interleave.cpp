//===- interleave.cpp - Mixing independent chains of arithmetic -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/interleave.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>
#include <tuple>

using namespace llvm;

namespace tessera {

namespace {

/// Shorter chains are looked beyond by any core.
constexpr size_t shortest = 8;

bool writesMemory(const Instruction &instruction) {
  auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction);
  if (intrinsic && intrinsic->getIntrinsicID() == Intrinsic::prefetch)
    return false;
  return instruction.mayHaveSideEffects();
}

/// Registers that the value takes.
unsigned registersOf(const Value &value, unsigned registerBits) {
  auto *vector = dyn_cast<FixedVectorType>(value.getType());
  if (!vector || vector->getScalarSizeInBits() == 1)
    return 0;
  return unsigned(divideCeil(uint64_t(vector->getNumElements()) *
                                 vector->getScalarSizeInBits(),
                             registerBits));
}

/// What stands between two writes to memory.
class Stretch {
public:
  Stretch(ArrayRef<Instruction *> instructions, Instruction *end,
          unsigned registers, unsigned registerBits)
      : all(instructions), end(end), registers(registers),
        registerBits(registerBits) {}

  void run() {
    findChains();
    const size_t together = chainsTogether();
    if (together < 2)
      return;
    for (size_t first = 0; first < chains.size(); first += together)
      mix(ArrayRef(chains).slice(first,
                                 std::min(together, chains.size() - first)));
    for (Instruction *instruction : all)
      place(instruction);
    for (Instruction *instruction : order)
      instruction->moveBefore(end);
  }

private:
  using Chain = SmallVector<Instruction *>;

  /// Arithmetic on vectors that depends on one another. What many chains share,
  /// such as an element that was loaded into all lanes, connects none.
  void findChains() {
    DenseSet<Instruction *> arithmetic;
    EquivalenceClasses<Instruction *> classes;
    for (Instruction *instruction : all) {
      // What begins a chain, a load or a broadcast, goes where it is used.
      if (!isArithmetic(*instruction))
        continue;
      arithmetic.insert(instruction);
      classes.insert(instruction);
      for (Value *operand : instruction->operands())
        if (auto *from = dyn_cast<Instruction>(operand);
            from && arithmetic.contains(from))
          classes.unionSets(instruction, from);
    }
    MapVector<Instruction *, Chain> byLeader;
    for (Instruction *instruction : all)
      if (arithmetic.contains(instruction))
        byLeader[classes.getLeaderValue(instruction)].push_back(instruction);
    for (auto &[leader, chain] : byLeader)
      if (chain.size() >= shortest)
        chains.push_back(std::move(chain));
  }

  bool isArithmetic(const Instruction &instruction) const {
    return instruction.getType()->isVectorTy() &&
           !isa<LoadInst, InsertElementInst, PHINode>(instruction) &&
           !isBroadcast(instruction) && !instruction.mayReadFromMemory();
  }

  static bool isBroadcast(const Instruction &instruction) {
    auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction);
    return shuffle && shuffle->isZeroEltSplat();
  }

  /// As many chains as find room beside what all of them need.
  size_t chainsTogether() const {
    if (chains.size() < 2)
      return 0;
    DenseSet<const Value *> shared;
    unsigned constants = 0, held = 0, live = 0;
    for (const Chain &chain : chains) {
      for (const Instruction *instruction : chain)
        for (const Value *operand : instruction->operands())
          if (isShared(operand) && shared.insert(operand).second)
            (isa<Constant>(operand) ? constants : held) +=
                registersOf(*operand, registerBits);
      live = std::max(live, liveOf(chain));
    }
    // Constants that find no register are loaded where they are used, which
    // all chains of a group do at the same time.
    if (held + constants + 2 * live > registers)
      constants = std::min(constants, registersForLoaded);
    held += constants;
    size_t together =
        live == 0 || held >= registers ? 0 : size_t((registers - held) / live);
    together = std::min({together, size_t(mostChainsTogether), chains.size()});
    // Equal groups.
    if (together >= 2)
      together = divideCeil(chains.size(), divideCeil(chains.size(), together));
    return together;
  }

  /// A constant, or a value from elsewhere. Zeros and splats that instructions
  /// have themselves are rare enough not to look for.
  bool isShared(const Value *value) const {
    auto *instruction = dyn_cast<Instruction>(value);
    return instruction ? instruction->getParent() != end->getParent()
                       : isa<Constant, Argument>(value);
  }

  /// The most registers that values of the chain, and what is loaded for it,
  /// take at once.
  unsigned liveOf(const Chain &chain) const {
    DenseMap<const Value *, size_t> last;
    for (auto [position, instruction] : enumerate(chain)) {
      for (const Value *operand : instruction->operands())
        if (isa<Instruction>(operand) && !isShared(operand))
          last[operand] = position;
      last.try_emplace(instruction, chain.size());
    }
    SmallVector<int> change(chain.size() + 2);
    DenseSet<const Value *> seen;
    auto begin = [&](const Value *value, size_t position) {
      if (!seen.insert(value).second)
        return;
      int count = int(registersOf(*value, registerBits));
      change[position] += count;
      change[last.lookup(value) + 1] -= count;
    };
    for (auto [position, instruction] : enumerate(chain)) {
      for (const Value *operand : instruction->operands())
        if (last.contains(operand))
          begin(operand, position);
      begin(instruction, position + 1);
    }
    int live = 0, peak = 0;
    for (int step : change)
      peak = std::max(peak, live += step);
    return unsigned(peak);
  }

  /// The instructions of the chains in turn, each chain as far along as the
  /// others.
  void mix(ArrayRef<Chain> group) {
    struct Turn {
      double progress;
      size_t chain;
      Instruction *instruction;
    };
    SmallVector<Turn> turns;
    for (auto [number, chain] : enumerate(group))
      for (auto [position, instruction] : enumerate(chain))
        turns.push_back(
            {double(position) / double(chain.size()), number, instruction});
    // Equal ones are of different chains.
    llvm::sort(turns, [](const Turn &a, const Turn &b) {
      return std::tie(a.progress, a.chain) < std::tie(b.progress, b.chain);
    });
    for (const Turn &turn : turns)
      place(turn.instruction);
  }

  /// After what it depends on.
  void place(Instruction *instruction) {
    if (!left.contains(instruction) || !placed.insert(instruction).second)
      return;
    for (Value *operand : instruction->operands())
      if (auto *from = dyn_cast<Instruction>(operand))
        place(from);
    order.push_back(instruction);
  }

  ArrayRef<Instruction *> all;
  Instruction *end;
  unsigned registers, registerBits;
  SmallVector<Chain> chains;
  DenseSet<Instruction *> left{all.begin(), all.end()}, placed;
  SmallVector<Instruction *> order;
};

} // namespace

void interleaveChains(Function &function, FunctionAnalysisManager &analyses) {
  auto &costs = analyses.getResult<TargetIRAnalysis>(function);
  const unsigned bits = unsigned(
      costs.getRegisterBitWidth(TargetTransformInfo::RGK_FixedWidthVector)
          .getFixedValue());
  const unsigned registers =
      costs.getNumberOfRegisters(costs.getRegisterClassForType(
          true, FixedVectorType::get(Type::getFloatTy(function.getContext()),
                                     bits / 32)));
  if (bits == 0)
    return;
  for (BasicBlock &block : function) {
    SmallVector<Instruction *> stretch;
    for (Instruction &instruction : make_early_inc_range(block)) {
      if (isa<PHINode>(instruction))
        continue;
      if (!writesMemory(instruction) && !instruction.isTerminator()) {
        stretch.push_back(&instruction);
        continue;
      }
      if (stretch.size() >= 2 * shortest)
        Stretch(stretch, &instruction, registers, bits).run();
      stretch.clear();
    }
  }
}

} // namespace tessera
