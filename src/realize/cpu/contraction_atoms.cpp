//===- contraction_atoms.cpp - Contractions in groups of elements ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose plan names an atom (target/contraction_atoms.h) goes along one
// reduced dimension group by group. A word is the group of one coordinate of
// the other dimensions: its first element has the lowest bits, elements past
// the end of the dimension are zero, in both operands, so that nothing that is
// not a number comes out of them.
//
// The operand with the vectors is copied before: its words lie side by side
// along the vector dimension. Where no copy pays, words are put together where
// they are multiplied. A row's word is loaded from the array where its elements
// are adjacent, else from a copy as well.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

int64_t NestEmitter::slotsOfElement() const {
  return std::max<int64_t>(plan.unroll, 1) *
         (std::max({plan.tileRows, plan.tailRows, int64_t(1)}) +
          (plan.transposes ? plan.lanes : 0));
}

bool NestEmitter::variesWithGroup(Value tile) const {
  return groupLevel >= 0 && llvm::is_contained(tile::getDims(tile.getType()),
                                               levels[groupLevel].dim);
}

/// What is left of the last group, then whole groups: the results of the loop
/// are those of the nest, and what the rest needs takes no registers beside
/// what follows.
void NestEmitter::emitGroups(unsigned level, States *states,
                             function_ref<void()> body) {
  const int64_t extent = *r.constantExtent(levels[level].dim);
  const int64_t group = atom->group;
  const int64_t rest = extent % group;
  elements = rest;
  loop(level, extent - rest, rest > 0, group, vectors, states, body);
  elements = group;
  loop(level, 0, extent / group, group, vectors, states, body);
  elements = 1;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// Where the current coordinates are in a copy: of a word, those of its first
/// element.
Value NestEmitter::wordAddress(const TileBuffer &buffer) {
  Value offset = emit.index(0);
  for (auto [axis, dim] : llvm::enumerate(buffer.dims))
    offset = emit.add(
        offset, emit.mul(coordinate(dim), emit.index(buffer.strides[axis])));
  return emit.offsetPointer(buffer.pointer, buffer.element, offset);
}

/// The bits of a narrow element as i32, higher ones zero but for signs.
Value NestEmitter::narrowBits(const NarrowOperand &narrow) {
  Value source = value(narrow.source);
  Type i32 = laneType(b.getI32Type(), lanesOf(source));
  if (narrow.elements == AtomElements::BF16)
    return b.create<arith::ShRUIOp>(
        emit.loc, emit.bitcast(source, b.getI32Type()), emit.integer(i32, 16));
  if (atom->elementBits() == 8 || narrow.isUnsigned)
    return b.create<arith::ExtUIOp>(emit.loc, i32, source);
  return b.create<arith::ExtSIOp>(emit.loc, i32, source);
}

/// The word of adjacent elements of an array; null where there are none.
Value NestEmitter::loadWord(const NarrowOperand &narrow) {
  const bool isStoredSo =
      narrow.elements == AtomElements::BF16 || atom->elementBits() == 8;
  tile::LoadOp load = loadOf(narrow.source, r.analysis.phases);
  if (!load || !isStoredSo || elements < atom->group ||
      r.findBuffer(load.getResult()) ||
      !liesInGroups(load, levels[groupLevel].dim, r.analysis))
    return {};
  Address at = address(*getAccess(load));
  // Lanes that lie side by side have no words side by side.
  if (at.inside || at.isContiguous)
    return {};
  Type i32 = b.getI32Type();
  const auto bytes = unsigned(atom->elementBits() / 8);
  if (!at.laneOffsets)
    return b.create<LLVM::LoadOp>(emit.loc, i32, at.pointer, bytes);
  Value offsets = emit.toI64(at.laneOffsets);
  Type storage = b.getIntegerType(atom->elementBits());
  auto type = LLVM::getFixedVectorType(at.pointer.getType(), lanesOf(offsets));
  Value pointers = b.create<LLVM::GEPOp>(emit.loc, type, storage, at.pointer,
                                         ValueRange{offsets});
  Type result = laneType(i32, lanes);
  return b.create<LLVM::masked_gather>(emit.loc, result, pointers,
                                       mask ? mask : emit.boolean(lanes, true),
                                       ValueRange{emit.zero(result)}, bytes);
}

/// The words of bytes that lie side by side along the lanes, one vector for
/// each element of the groups; null for others.
Value NestEmitter::interleavedWord(const NarrowOperand &narrow) {
  const int64_t group = atom->group, parts = lanes / group;
  if (atom->elementBits() != 8 || elements < 2 || parts < 1)
    return {};
  auto narrowType = VectorType::get({lanes}, b.getI8Type());
  SmallVector<Value> vectors;
  for (element = 0; element < elements; ++element)
    vectors.push_back(value(narrow.source));
  element = 0;
  if (llvm::any_of(vectors,
                   [&](Value one) { return one.getType() != narrowType; }))
    return {};
  vectors.resize(group, emit.zero(narrowType));
  while (vectors.size() > 1) {
    SmallVector<Value> longer;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      SmallVector<int32_t> order(2 * lanesOf(vectors[i]));
      std::iota(order.begin(), order.end(), 0);
      longer.push_back(emit.shuffle(vectors[i], vectors[i + 1], order));
    }
    vectors = std::move(longer);
  }
  // As many bytes of each element as a part of a register has words, side by
  // side; then the parts by themselves.
  auto words = VectorType::get({lanes}, b.getI32Type());
  Value word = b.create<LLVM::BitcastOp>(emit.loc, words, vectors[0]);
  SmallVector<int32_t> order;
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t number = 0; number < group; ++number)
      order.push_back(int32_t(number * parts + part));
  word = emit.shuffle(word, order);
  auto bytes = VectorType::get({lanes * group}, b.getI8Type());
  order.clear();
  for (int64_t part = 0; part < parts; ++part)
    for (int64_t lane = 0; lane < group; ++lane)
      for (int64_t number = 0; number < group; ++number)
        order.push_back(int32_t((part * group + number) * group + lane));
  Value apart = b.create<LLVM::BitcastOp>(emit.loc, bytes, word);
  return b.create<LLVM::BitcastOp>(emit.loc, words, emit.shuffle(apart, order));
}

Value NestEmitter::evaluateWord(Value operand, const NarrowOperand &narrow) {
  if (const WordBuffer *buffer = r.findWords(operand);
      buffer && (!packing || packing->operand != operand)) {
    bool isVector = llvm::any_of(tile::getDims(operand.getType()),
                                 [&](auto dim) { return isVectorDim(dim); });
    return emit.load(wordAddress(buffer->memory), b.getI32Type(),
                     isVector ? lanes : 1, isVector ? mask : Value());
  }
  if (Value loaded = loadWord(narrow))
    return loaded;
  if (Value interleaved = interleavedWord(narrow))
    return interleaved;
  Value word;
  for (element = 0; element < elements; ++element) {
    Value bits = narrowBits(narrow);
    Type type = bits.getType();
    if (element == 0 && elements > 1 && atom->elementBits() == 16)
      bits =
          b.create<arith::AndIOp>(emit.loc, bits, emit.integer(type, 0xffff));
    if (element > 0)
      bits = b.create<arith::ShLIOp>(
          emit.loc, bits, emit.integer(type, element * atom->elementBits()));
    word = word ? b.create<arith::OrIOp>(emit.loc, word, bits) : bits;
  }
  element = 0;
  // The sign of a single element would stand for the one that is not there.
  if (elements == 1 && atom->elementBits() == 16)
    word = b.create<arith::AndIOp>(emit.loc, word,
                                   emit.integer(word.getType(), 0xffff));
  return word;
}

/// Moves the builder before the loops inside a level that have been begun.
static void beforeLoops(OpBuilder &b, ArrayRef<Operation *> anchors) {
  for (Operation *anchor : anchors)
    if (anchor) {
      b.setInsertionPoint(anchor);
      return;
    }
}

/// The word at the current coordinates; copies that differ in what the operand
/// does not depend on share it.
Value NestEmitter::word(Value operand, const NarrowOperand &narrow) {
  const int level = levelOf(operand);
  element = atom->group;
  auto &cache = levels[level].cache[slotOf(operand)];
  element = 0;
  if (auto found = cache.find(operand); found != cache.end())
    return found->second;
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Operation *> anchors;
  for (unsigned inner = level + 1; inner < levels.size(); ++inner)
    anchors.push_back(levels[inner].anchor);
  beforeLoops(b, anchors);
  Value result = evaluateWord(operand, narrow);
  // Copies are shifted already.
  if (!packing && atoms->isShifted() && !r.findWords(operand) &&
      operand == phase->roots[0].op->getOperand(plan.vectorOperand))
    result = b.create<arith::XOrIOp>(
        emit.loc, result,
        emit.integer(result.getType(), AtomOperands::shiftedWord));
  element = atom->group;
  levels[level].cache[slotOf(operand)][operand] = result;
  element = 0;
  return result;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// accumulator + the products of two words' elements, lane by lane.
Value NestEmitter::atomResult(Value accumulator, Value first, Value second) {
  const int64_t width = lanesOf(accumulator);
  Type i32 = b.getI32Type(), type = accumulator.getType();
  const int64_t bits = atom->elementBits();
  if (width > 1) {
    auto parts = [&](Value word) -> Value {
      if (atom->elements == AtomElements::Int8 && bits == 8)
        return word;
      Type part = atom->elements == AtomElements::BF16 ? Type(b.getBF16Type())
                                                       : b.getI16Type();
      return b.create<LLVM::BitcastOp>(
          emit.loc, VectorType::get({width * atom->group}, part), word);
    };
    SmallVector<Value> operands{parts(first), parts(second)};
    if (atom->accumulates)
      operands.insert(operands.begin(), accumulator);
    auto call = b.create<LLVM::CallIntrinsicOp>(
        emit.loc, TypeRange{type}, b.getStringAttr(atom->intrinsic(32 * width)),
        operands);
    Value result = call->getResult(0);
    return atom->accumulates ? result : emit.add(accumulator, result);
  }
  // A lane alone, element by element.
  auto shift = [&](Value word, int64_t by) {
    return b.createOrFold<arith::ShLIOp>(emit.loc, word, emit.integer(i32, by));
  };
  for (int64_t number = 0; number < atom->group; ++number) {
    const int64_t up = 32 - bits * (number + 1);
    Value x = shift(first, up), y = shift(second, up);
    if (atom->elements == AtomElements::BF16) {
      Value upper = emit.integer(i32, int64_t(0xffff0000));
      x = b.createOrFold<arith::AndIOp>(emit.loc, x, upper);
      y = b.createOrFold<arith::AndIOp>(emit.loc, y, upper);
      accumulator = b.create<math::FmaOp>(emit.loc, emit.bitcast(x, type),
                                          emit.bitcast(y, type), accumulator);
      continue;
    }
    Value down = emit.integer(i32, 32 - bits);
    x = atom->isFirstUnsigned
            ? b.createOrFold<arith::ShRUIOp>(emit.loc, x, down)
            : b.createOrFold<arith::ShRSIOp>(emit.loc, x, down);
    y = b.createOrFold<arith::ShRSIOp>(emit.loc, y, down);
    accumulator = emit.add(accumulator, emit.mul(x, y));
  }
  return accumulator;
}

Value NestEmitter::atomStep(tile::ContractOp contract, Value accumulator) {
  Value row = emit.splat(
      word(contract->getOperand(1 - plan.vectorOperand), atoms->rows), lanes);
  Value vector = emit.splat(
      word(contract->getOperand(plan.vectorOperand), atoms->vectors), lanes);
  // Which of the two has no sign; shifted vectors have what rows have not.
  if (atom->isFirstUnsigned && !atoms->rows.isUnsigned)
    std::swap(row, vector);
  return atomResult(accumulator, row, vector);
}

/// Vectors' elements that are shifted are x + 128, or x - 128, for x: the rows'
/// elements, times that, are too much.
Value NestEmitter::shiftCorrection(tile::ContractOp contract) {
  Value operand = contract->getOperand(1 - plan.vectorOperand);
  int level = 0;
  for (StringAttr dim : tile::getDims(operand.getType()))
    for (unsigned number = 0; number < keptLevels; ++number)
      if (levels[number].dim == dim)
        level = std::max<int>(level, number);
  Level &at = levels[level];
  if (at.corrections.empty()) {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Operation *> anchors;
    for (unsigned inner = level + 1; inner < levels.size(); ++inner)
      anchors.push_back(levels[inner].anchor);
    beforeLoops(b, anchors);
    emitCorrections(operand, at);
  }
  return at.corrections[rowOf(copy)];
}

/// Sums up all rows of an iteration in one loop: their chains overlap.
void NestEmitter::emitCorrections(Value operand, Level &level) {
  const WordBuffer *buffer = r.findWords(operand);
  const StringAttr groups = levels[groupLevel].dim;
  // Words of rows side by side: the rows' sums come in the lanes of one.
  const bool inLanes = buffer && buffer->adjacent != groups;
  const int64_t width = emit.target.lanes32(),
                extent = *r.constantExtent(groups);
  const int64_t step = inLanes ? atom->group : 4 * width;
  const int64_t sums = inLanes ? 1 : rows;
  Type i8 = b.getI8Type();
  auto type = VectorType::get({width}, b.getI32Type());
  Value ones = emit.integer(type, 0x01010101);

  const int64_t outerLanes = std::exchange(lanes, 1);
  const int64_t outerVectors = std::exchange(vectors, 1);
  const int64_t outerCopy = std::exchange(copy, 0);
  Value outerMask = std::exchange(mask, Value());
  Value outerCoordinate = std::exchange(
      levels[groupLevel].coordinate, blockBegin ? blockBegin : emit.index(0));
  SmallVector<Value> begins, insides, totals(sums, emit.zero(type));
  for (copy = 0; copy < sums; ++copy) {
    insides.emplace_back();
    if (buffer) {
      begins.push_back(wordAddress(buffer->memory));
      continue;
    }
    Address at =
        address(*getAccess(loadOf(atoms->rows.source, r.analysis.phases)));
    insides.back() = at.inside;
    // Rows outside the array are zeros, and not read from it.
    begins.push_back(at.inside ? emit.select(at.inside, at.pointer,
                                             r.allocateBytes(extent, "no row"))
                               : at.pointer);
  }
  levels[groupLevel].coordinate = outerCoordinate;
  lanes = outerLanes;
  vectors = outerVectors;
  copy = outerCopy;
  mask = outerMask;

  const int64_t stride =
      inLanes
          ? buffer->memory.strides[tile::indexOf(buffer->memory.dims, groups)]
          : 1;
  auto take = [&](Value at, ValueRange before, Value active) {
    SmallVector<Value> next;
    for (auto [begin, total] : llvm::zip(begins, before)) {
      Value pointer =
          emit.offsetPointer(begin, i8, emit.mul(at, emit.index(stride)));
      Value bytes = emit.load(pointer, i8, 4 * width, active);
      Value words = b.create<LLVM::BitcastOp>(emit.loc, type, bytes);
      next.push_back(atoms->rows.isUnsigned ? atomResult(total, words, ones)
                                            : atomResult(total, ones, words));
    }
    return next;
  };
  // Of a row whole vectors and what is left; of a block, which may be shorter
  // at the end, as many as it takes.
  const int64_t most = blockBegin ? plan.reducedBlock : extent;
  const bool isEven = !blockBegin || extent % plan.reducedBlock == 0;
  Value length =
      isEven
          ? emit.index(most)
          : b.create<arith::SubIOp>(emit.loc, blockEnd, blockBegin).getResult();
  auto takeMasked = [&](Value at, ValueRange before) {
    Value left = b.createOrFold<arith::SubIOp>(emit.loc, length, at);
    return take(at, before,
                inLanes ? Value() : emit.prefixMask(left, 4 * width));
  };
  const int64_t whole = inLanes  ? llvm::alignTo(most, step)
                        : isEven ? most / step * step
                                 : 0;
  auto sumUp = [&](int64_t trips, Value end, auto one) {
    auto loop = b.create<scf::ForOp>(emit.loc, emit.index(0), end,
                                     emit.index(step), totals);
    loop->setAttr(tripsAttribute,
                  b.getDenseF64ArrayAttr({double(trips), double(trips)}));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    b.create<scf::YieldOp>(
        emit.loc, one(loop.getInductionVar(), loop.getRegionIterArgs()));
    totals.assign(loop.result_begin(), loop.result_end());
  };
  if (!isEven && most > step)
    sumUp(llvm::divideCeil(most, step), length, takeMasked);
  else if (inLanes && !isEven)
    sumUp(most / step, length, takeMasked);
  else if (whole > 0)
    sumUp(whole / step, emit.index(whole), [&](Value at, ValueRange before) {
      return take(at, before, Value());
    });
  if (!inLanes && whole < most && (isEven || most <= step))
    totals = takeMasked(emit.index(whole), totals);
  Value factor =
      emit.integer(b.getI32Type(), atoms->rows.isUnsigned ? 128 : -128);
  for (int64_t row = 0; row < rows; ++row) {
    Value sum = inLanes ? emit.extract(totals[0], row)
                        : b.create<LLVM::vector_reduce_add>(
                              emit.loc, b.getI32Type(), totals[row]);
    if (!inLanes && insides[row])
      sum = emit.select(insides[row], sum, emit.zero(sum.getType()));
    level.corrections.push_back(emit.mul(sum, factor));
  }
}

} // namespace tessera
