//===- loop_addresses.cpp - Addresses in loops that carry sums ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/llvm/loop_addresses.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

using namespace llvm;

namespace tessera {

namespace {

/// The pointer operand of an access.
struct Place {
  Instruction *user = nullptr;
  unsigned operand = 0;
  Type *accessed = nullptr;
  const SCEVAddRecExpr *address = nullptr;
};

/// How far a place lies from the first of its group: `factor` times `stride`
/// bytes, or just `factor` where there is no stride.
struct Distance {
  int64_t factor = 0;
  const SCEV *stride = nullptr;
};

std::optional<Place> placeOf(Instruction &instruction) {
  if (auto *load = dyn_cast<LoadInst>(&instruction))
    return Place{load, LoadInst::getPointerOperandIndex(), load->getType()};
  if (auto *store = dyn_cast<StoreInst>(&instruction))
    return Place{store, StoreInst::getPointerOperandIndex(),
                 store->getValueOperand()->getType()};
  if (auto *call = dyn_cast<IntrinsicInst>(&instruction);
      call && call->getIntrinsicID() == Intrinsic::masked_load)
    return Place{call, 0, call->getType()};
  return std::nullopt;
}

class LoopPointers {
public:
  LoopPointers(Loop &loop, ScalarEvolution &evolution,
               const TargetTransformInfo &costs)
      : loop(loop), evolution(evolution), costs(costs),
        layout(loop.getHeader()->getDataLayout()) {}

  void run() {
    if (!loop.getLoopPreheader() || !loop.getLoopLatch())
      return;
    for (Group &group : groups())
      if (isWorthIt(group))
        rewrite(group);
    giveOwnCopies();
  }

private:
  struct Group {
    SmallVector<Place> places;
    SmallVector<Distance> distances;
  };

  /// The places that move by the same step and lie at known distances.
  SmallVector<Group> groups() {
    SmallVector<Group> all;
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block) {
        std::optional<Place> place = placeOf(instruction);
        if (!place)
          continue;
        place->address = dyn_cast<SCEVAddRecExpr>(
            evolution.getSCEV(instruction.getOperand(place->operand)));
        if (!place->address || place->address->getLoop() != &loop ||
            !place->address->isAffine())
          continue;
        bool isPlaced = false;
        for (Group &group : all)
          if (std::optional<Distance> distance = between(group, *place)) {
            group.places.push_back(*place);
            group.distances.push_back(*distance);
            isPlaced = true;
            break;
          }
        if (!isPlaced)
          all.push_back({{*place}, {Distance()}});
      }
    return all;
  }

  std::optional<Distance> between(const Group &group, const Place &place) {
    const SCEVAddRecExpr *first = group.places[0].address;
    if (first->getStepRecurrence(evolution) !=
            place.address->getStepRecurrence(evolution) ||
        evolution.getPointerBase(first) !=
            evolution.getPointerBase(place.address))
      return std::nullopt;
    const SCEV *distance = evolution.getMinusSCEV(place.address, first);
    if (isa<SCEVCouldNotCompute>(distance) ||
        !evolution.isLoopInvariant(distance, &loop))
      return std::nullopt;
    if (auto *constant = dyn_cast<SCEVConstant>(distance))
      return Distance{constant->getAPInt().getSExtValue(), nullptr};
    if (auto *product = dyn_cast<SCEVMulExpr>(distance);
        product && product->getNumOperands() == 2)
      if (auto *factor = dyn_cast<SCEVConstant>(product->getOperand(0));
          factor && factor->getAPInt().isStrictlyPositive())
        return Distance{factor->getAPInt().getSExtValue(),
                        product->getOperand(1)};
    return Distance{1, distance};
  }

  /// Whether the group needs fewer registers then. A counter serves every
  /// address whose step an address can multiply by, with one register for all
  /// places at constant distances that are written as such, and one for each of
  /// the others.
  bool isWorthIt(const Group &group) {
    SmallPtrSet<Value *, 16> bases;
    for (auto [place, distance] : zip(group.places, group.distances))
      if (!distance.stride)
        bases.insert(baseOf(place));
    if (bases.size() > 1)
      return true;
    auto *step = dyn_cast<SCEVConstant>(
        group.places[0].address->getStepRecurrence(evolution));
    if (!step ||
        !isScale(step->getAPInt().getSExtValue(), group.places[0].accessed))
      return true;
    SmallPtrSet<const SCEV *, 16> before, after;
    for (auto [place, distance] : zip(group.places, group.distances))
      if (distance.stride) {
        before.insert(evolution.getMulExpr(
            evolution.getConstant(distance.stride->getType(), distance.factor),
            distance.stride));
        after.insert(inRegister(group, place, distance).first);
      }
    return after.size() < before.size();
  }

  /// The address of a place without what is added to it as a constant.
  Value *baseOf(const Place &place) const {
    Value *address = place.user->getOperand(place.operand);
    APInt offset(layout.getIndexTypeSizeInBits(address->getType()), 0);
    return address->stripAndAccumulateConstantOffsets(
        layout, offset, /*AllowNonInbounds=*/true);
  }

  bool isScale(int64_t scale, Type *accessed) const {
    return scale > 0 && costs.isLegalAddressingMode(accessed, nullptr, 0,
                                                    /*HasBaseReg=*/true, scale);
  }

  /// The value that a distance has in a register, and how often the access
  /// doubles it.
  std::pair<const SCEV *, unsigned>
  inRegister(const Group &group, const Place &place, const Distance &distance) {
    auto multiple = [&](int64_t factor) {
      return evolution.getMulExpr(
          evolution.getConstant(distance.stride->getType(), factor),
          distance.stride);
    };
    // The least of this odd multiple's doubles that another place has.
    int64_t least = distance.factor;
    for (const Distance &other : group.distances)
      if (other.stride == distance.stride && other.factor > 0)
        for (int64_t doubled = other.factor; doubled <= distance.factor;
             doubled *= 2)
          if (doubled == distance.factor)
            least = std::min(least, other.factor);
    unsigned shift = 0;
    while (least << shift < distance.factor &&
           isScale(int64_t{2} << shift, place.accessed))
      ++shift;
    return {multiple(distance.factor >> shift), shift};
  }

  void rewrite(Group &group) {
    BasicBlock *preheader = loop.getLoopPreheader();
    Instruction *before = preheader->getTerminator();
    SCEVExpander expander(evolution, layout, "row");
    const SCEVAddRecExpr *first = group.places[0].address;
    const SCEV *step = first->getStepRecurrence(evolution);
    if (!expander.isSafeToExpandAt(first->getStart(), before) ||
        !expander.isSafeToExpandAt(step, before) ||
        any_of(group.distances, [&](const Distance &distance) {
          return distance.stride &&
                 !expander.isSafeToExpandAt(distance.stride, before);
        }))
      return;
    Type *pointer =
        group.places[0].user->getOperand(group.places[0].operand)->getType();
    Value *start = expander.expandCodeFor(first->getStart(), pointer, before);
    Value *length = expander.expandCodeFor(step, step->getType(), before);
    BasicBlock *header = loop.getHeader();
    IRBuilder<> builder(header, header->begin());
    PHINode *moving = builder.CreatePHI(pointer, 2, "moving");
    IRBuilder<> last(loop.getLoopLatch()->getTerminator());
    moving->addIncoming(start, preheader);
    moving->addIncoming(last.CreatePtrAdd(moving, length), loop.getLoopLatch());
    for (auto [place, distance] : zip(group.places, group.distances)) {
      IRBuilder<> at(place.user);
      Value *address = moving;
      if (distance.stride) {
        auto [multiple, shift] = inRegister(group, place, distance);
        Value *offset =
            expander.expandCodeFor(multiple, multiple->getType(), before);
        address = at.CreatePtrAdd(
            moving, shift > 0 ? at.CreateShl(offset, shift) : offset);
      } else if (distance.factor != 0) {
        address = at.CreatePtrAdd(moving, at.getInt64(distance.factor));
      }
      Value *old = place.user->getOperand(place.operand);
      place.user->setOperand(place.operand, address);
      evolution.forgetValue(old);
      RecursivelyDeleteTriviallyDeadInstructions(old);
    }
  }

  /// Gives the loop registers of its own for the addresses that it reads:
  /// values that live as long as the function are those that the allocator of
  /// registers leaves on the stack, even where a loop with registers to spare
  /// reads them in every iteration.
  void giveOwnCopies() {
    SmallSetVector<Value *, 16> outside;
    for (BasicBlock *block : loop.blocks())
      for (Instruction &instruction : *block)
        for (Value *value : instruction.operands())
          if (isa<Instruction, Argument>(value) && !isa<PHINode>(instruction) &&
              loop.isLoopInvariant(value) && isAddress(value))
            outside.insert(value);
    for (Value *value : outside) {
      Value *copy = ownCopy(value);
      value->replaceUsesWithIf(copy, [&](const Use &use) {
        auto *user = cast<Instruction>(use.getUser());
        return user != copy && loop.contains(user) && !isa<PHINode>(user);
      });
    }
    BasicBlock *preheader = loop.getLoopPreheader();
    for (PHINode &phi : loop.getHeader()->phis())
      if (Value *first = phi.getIncomingValueForBlock(preheader);
          isa<Instruction, Argument>(first) && isAddress(first))
        phi.setIncomingValueForBlock(preheader, ownCopy(first));
  }

  static bool isAddress(Value *value) {
    return value->getType()->isPointerTy() || value->getType()->isIntegerTy(64);
  }

  /// The value again, by code of no instructions, which gives back what it
  /// takes.
  Value *ownCopy(Value *value) {
    Type *type = value->getType();
    IRBuilder<> builder(loop.getLoopPreheader()->getTerminator());
    return builder.CreateCall(
        InlineAsm::get(FunctionType::get(type, type, false), "", "=r,0",
                       /*hasSideEffects=*/false),
        value, "own");
  }

  Loop &loop;
  ScalarEvolution &evolution;
  const TargetTransformInfo &costs;
  const DataLayout &layout;
};

} // namespace

/// Whether the loop carries so many vectors that few registers should go to
/// addresses.
static bool carriesVectors(const Loop &loop) {
  constexpr int several = 4;
  return count_if(loop.getHeader()->phis(), [](const PHINode &phi) {
           return phi.getType()->isVectorTy();
         }) >= several;
}

void shareLoopPointers(Function &function, FunctionAnalysisManager &analyses) {
  // Most functions have no such loop, and need no analysis of their values.
  SmallVector<Loop *> inner;
  for (Loop *loop :
       analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && carriesVectors(*loop))
      inner.push_back(loop);
  if (inner.empty())
    return;
  auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
  auto &costs = analyses.getResult<TargetIRAnalysis>(function);
  for (Loop *loop : inner)
    LoopPointers(*loop, evolution, costs).run();
}

} // namespace tessera
