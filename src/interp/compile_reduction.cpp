//===- compile_reduction.cpp - Translation of reductions and order --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "interp/compiler.h"

#include <limits>

using namespace mlir;

namespace tessera::interp {

static_assert(
    static_cast<int>(tile::Order::Unordered) ==
        static_cast<int>(Grouping::Unordered) &&
    static_cast<int>(tile::Order::Tree) == static_cast<int>(Grouping::Tree) &&
    static_cast<int>(tile::Order::Left) == static_cast<int>(Grouping::Left) &&
    static_cast<int>(tile::Order::Right) == static_cast<int>(Grouping::Right));

static Grouping groupingOf(tile::Order order) {
  return static_cast<Grouping>(order);
}

Combination combinationOf(tile::Combiner combiner, Kind kind) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Combination result;
  result.kind = kind;
  int width = widthOf(kind);
  int64_t ones = canonical(width, -1);
  int64_t largest = static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1);
  int64_t smallest = canonical(width, ~largest);
  auto set = [&](FloatBinary real, IntBinary integer, double realIdentity,
                 int64_t identity) {
    result.real = real;
    result.integer = integer;
    result.identity = realScalar(realIdentity);
    result.identity.integer = identity;
  };
  switch (combiner) {
  case tile::Combiner::Add:
    set(FloatBinary::Add, IntBinary::Add, 0, 0);
    break;
  case tile::Combiner::Mul:
    set(FloatBinary::Mul, IntBinary::Mul, 1, 1);
    break;
  case tile::Combiner::Max:
    set(FloatBinary::Max, IntBinary::MaxS, -infinity, smallest);
    break;
  case tile::Combiner::Min:
    set(FloatBinary::Min, IntBinary::MinS, infinity, largest);
    break;
  case tile::Combiner::MaxNum:
    set(FloatBinary::MaxNum, IntBinary::MaxS, -infinity, smallest);
    break;
  case tile::Combiner::MinNum:
    set(FloatBinary::MinNum, IntBinary::MinS, infinity, largest);
    break;
  case tile::Combiner::UMax:
    set(FloatBinary::Max, IntBinary::MaxU, 0, 0);
    break;
  case tile::Combiner::UMin:
    set(FloatBinary::Min, IntBinary::MinU, 0, ones);
    break;
  case tile::Combiner::And:
    set(FloatBinary::Add, IntBinary::And, 0, ones);
    break;
  case tile::Combiner::Or:
    set(FloatBinary::Add, IntBinary::Or, 0, 0);
    break;
  case tile::Combiner::Xor:
    set(FloatBinary::Add, IntBinary::Xor, 0, 0);
    break;
  case tile::Combiner::Custom:
    break;
  }
  return result;
}

static std::optional<tile::Combiner> combinerOf(Operation *op) {
  using C = tile::Combiner;
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return C::Add;
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return C::Mul;
  if (isa<arith::MaximumFOp, arith::MaxSIOp>(op))
    return C::Max;
  if (isa<arith::MinimumFOp, arith::MinSIOp>(op))
    return C::Min;
  if (isa<tile::MaxNumOp>(op))
    return C::MaxNum;
  if (isa<tile::MinNumOp>(op))
    return C::MinNum;
  if (isa<arith::MaxUIOp>(op))
    return C::UMax;
  if (isa<arith::MinUIOp>(op))
    return C::UMin;
  if (isa<arith::AndIOp>(op))
    return C::And;
  if (isa<arith::OrIOp>(op))
    return C::Or;
  if (isa<arith::XOrIOp>(op))
    return C::Xor;
  return std::nullopt;
}

std::vector<Combination> componentCombinations(Region &region) {
  mlir::Block &block = region.front();
  auto yield = cast<tile::YieldOp>(block.back());
  size_t n = yield.getValues().size();
  std::vector<Combination> result;
  for (size_t k = 0; k < n; ++k) {
    Operation *op = yield.getValues()[k].getDefiningOp();
    std::optional<tile::Combiner> combiner =
        op && op->getBlock() == &block ? combinerOf(op) : std::nullopt;
    if (!combiner || op->getOperand(0) != block.getArgument(k) ||
        op->getOperand(1) != block.getArgument(n + k))
      return {};
    result.push_back(
        combinationOf(*combiner, kindOf(yield.getValues()[k].getType())));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Reduce and scan
//===----------------------------------------------------------------------===//

namespace {

/// What reduce and scan share at run time.
struct Combined {
  Grouping grouping = Grouping::Unordered;
  llvm::SmallVector<Slot, 2> inputs, identities, results, arguments;
  /// One per input; empty for a region that is no set of named combiners.
  std::vector<Combination> named;
  bool custom = false;
  const Block *region = nullptr;

  Values identityValues(const Machine &m) const {
    Values values;
    for (Slot slot : identities)
      values.push_back(m.slots[slot].get(0));
    return values;
  }

  llvm::SmallVector<const Tile *, 2> inputTiles(const Machine &m) const {
    llvm::SmallVector<const Tile *, 2> tiles;
    for (Slot slot : inputs)
      tiles.push_back(&m.slots[slot]);
    return tiles;
  }
  llvm::SmallVector<Tile *, 2> resultTiles(Machine &m) const {
    llvm::SmallVector<Tile *, 2> tiles;
    for (Slot slot : results)
      tiles.push_back(&m.slots[slot]);
    return tiles;
  }

  /// The named combiner of component k with the identity in force.
  Combination component(const Machine &m, size_t k) const {
    Combination combination = named[k];
    if (custom)
      combination.identity = m.slots[identities[k]].get(0);
    return combination;
  }

  /// Runs the combining region on scalars.
  bool combine(Machine &m, llvm::ArrayRef<Kind> kinds, const Values &left,
               const Values &right, Values &result) const {
    size_t n = left.size();
    for (size_t k = 0; k < 2 * n; ++k) {
      Tile &argument = m.slots[arguments[k]];
      if (!argument.reset(m.context, kinds[k % n], {}))
        return false;
      argument.set(0, k < n ? left[k] : right[k - n]);
    }
    if (!m.run(*region))
      return false;
    result.clear();
    for (Slot slot : region->yields)
      result.push_back(m.slots[slot].get(0));
    return true;
  }
};

} // namespace

template <typename Op>
static Combined describeCombination(Op op, Compiler &compiler) {
  Combined combined;
  combined.grouping = groupingOf(op.getOrder());
  for (Value input : op.getInputs())
    combined.inputs.push_back(compiler.slotOf(input));
  for (Value identity : op.getIdentities())
    combined.identities.push_back(compiler.slotOf(identity));
  for (Value result : op.getResults())
    combined.results.push_back(compiler.slotOf(result));
  combined.custom = op.getCombiner() == tile::Combiner::Custom;
  if (!combined.custom) {
    combined.named.push_back(
        combinationOf(op.getCombiner(), kindOf(op.getInputs()[0].getType())));
    return combined;
  }
  for (Value argument : op.getRegion().front().getArguments())
    combined.arguments.push_back(compiler.slotOf(argument));
  combined.named = componentCombinations(op.getRegion());
  return combined;
}

bool Compiler::visit(tile::ReduceOp op) {
  Combined combined = describeCombination(op, *this);
  if (combined.custom) {
    Block &region = newBlock();
    if (!compileRegion(op.getRegion(), region))
      return false;
    combined.region = &region;
  }
  llvm::SmallVector<bool, 4> reduced;
  for (StringAttr dim : tile::getDims(op.getInputs()[0].getType()))
    reduced.push_back(llvm::is_contained(op.getOver(), dim));
  emit([&m = machine, combined = std::move(combined), reduced] {
    auto inputs = combined.inputTiles(m);
    auto results = combined.resultTiles(m);
    if (!combined.named.empty()) {
      for (size_t k = 0; k < inputs.size(); ++k)
        if (!reduceNamed(m.context, combined.component(m, k), combined.grouping,
                         *inputs[k], reduced, *results[k]))
          return false;
      return true;
    }
    llvm::SmallVector<Kind, 2> kinds;
    for (const Tile *input : inputs)
      kinds.push_back(input->kind());
    auto combine = [&](const Values &left, const Values &right, Values &out) {
      return combined.combine(m, kinds, left, right, out);
    };
    return reduceCustom(m.context, combine, combined.grouping, inputs,
                        combined.identityValues(m), reduced, results);
  });
  return true;
}

bool Compiler::visit(tile::ScanOp op) {
  Combined combined = describeCombination(op, *this);
  if (combined.custom) {
    Block &region = newBlock();
    if (!compileRegion(op.getRegion(), region))
      return false;
    combined.region = &region;
  }
  ScanForm form;
  form.axis = static_cast<unsigned>(tile::indexOf(
      tile::getDims(op.getInputs()[0].getType()), op.getAlongAttr()));
  form.exclusive = op.getExclusive();
  form.reverse = op.getReverse();
  emit([&m = machine, combined = std::move(combined), form] {
    auto inputs = combined.inputTiles(m);
    auto results = combined.resultTiles(m);
    if (!combined.named.empty()) {
      for (size_t k = 0; k < inputs.size(); ++k)
        if (!scanNamed(m.context, combined.component(m, k), combined.grouping,
                       form, *inputs[k], *results[k]))
          return false;
      return true;
    }
    llvm::SmallVector<Kind, 2> kinds;
    for (const Tile *input : inputs)
      kinds.push_back(input->kind());
    auto combine = [&](const Values &left, const Values &right, Values &out) {
      return combined.combine(m, kinds, left, right, out);
    };
    return scanCustom(m.context, combine, combined.grouping, form, inputs,
                      combined.identityValues(m), results);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Order and contraction
//===----------------------------------------------------------------------===//

bool Compiler::visit(tile::ArgReduceOp op) {
  using C = tile::Combiner;
  bool largest = op.getCombiner() == C::Max || op.getCombiner() == C::UMax;
  bool isUnsigned = op.getCombiner() == C::UMax || op.getCombiner() == C::UMin;
  auto axis = static_cast<unsigned>(
      tile::indexOf(tile::getDims(op.getInput().getType()), op.getAlongAttr()));
  Slot input = slotOf(op.getInput()), result = slotOf(op.getResult());
  emit([&m = machine, largest, isUnsigned, axis, input, result] {
    return argReduce(m.context, largest, isUnsigned, m.slots[input], axis,
                     m.slots[result]);
  });
  return true;
}

bool Compiler::visit(tile::SortOp op) {
  bool descending = op.getDescending(), isUnsigned = op.getIsUnsigned();
  auto axis = static_cast<unsigned>(tile::indexOf(
      tile::getDims(op.getInputs()[0].getType()), op.getAlongAttr()));
  auto inputs = slotsOf(op.getInputs()), results = slotsOf(op.getResults());
  emit([&m = machine, descending, isUnsigned, axis, inputs, results] {
    llvm::SmallVector<const Tile *, 4> from;
    llvm::SmallVector<Tile *, 4> to;
    for (size_t k = 0; k < inputs.size(); ++k) {
      from.push_back(&m.slots[inputs[k]]);
      to.push_back(&m.slots[results[k]]);
    }
    return sortTiles(m.context, descending, isUnsigned, from, axis, to);
  });
  return true;
}

/// The strides of a dense tile at the dimensions `wanted`, 0 where it has none.
static Extents stridesAt(llvm::ArrayRef<unsigned> dims, const Tile &tile,
                         llvm::ArrayRef<unsigned> wanted) {
  Extents dense = denseStrides(tile.extents());
  Extents strides;
  for (unsigned dim : wanted) {
    const auto *at = llvm::find(dims, dim);
    strides.push_back(at == dims.end() ? 0 : dense[at - dims.begin()]);
  }
  return strides;
}

bool Compiler::visit(tile::ContractOp op) {
  Dims lhsDims = dimsOf(op.getLhs().getType());
  Dims rhsDims = dimsOf(op.getRhs().getType());
  Dims resultDims = dimsOf(op.getResult().getType());
  // Row-major as the left operand has the dimensions.
  Dims over;
  for (StringAttr dim : tile::getDims(op.getLhs().getType()))
    if (llvm::is_contained(op.getOver(), dim))
      over.push_back(dimOf(dim));
  Slot lhs = slotOf(op.getLhs()), rhs = slotOf(op.getRhs());
  Slot result = slotOf(op.getResult());
  std::optional<Slot> accumulator;
  if (op.getAcc())
    accumulator = slotOf(op.getAcc());
  Grouping grouping = groupingOf(op.getOrder());
  emit([&m = machine, lhsDims, rhsDims, resultDims, over, lhs, rhs, result,
        accumulator, grouping] {
    const Tile &left = m.slots[lhs], &right = m.slots[rhs];
    ContractForm form;
    form.result = m.extentsOf(resultDims);
    form.reduced = m.extentsOf(over);
    form.lhsKept = stridesAt(lhsDims, left, resultDims);
    form.rhsKept = stridesAt(rhsDims, right, resultDims);
    form.lhsReduced = stridesAt(lhsDims, left, over);
    form.rhsReduced = stridesAt(rhsDims, right, over);
    form.grouping = grouping;
    return contract(m.context, form, left, right,
                    accumulator ? &m.slots[*accumulator] : nullptr,
                    m.slots[result]);
  });
  return true;
}

} // namespace tessera::interp
