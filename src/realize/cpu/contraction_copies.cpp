//===- contraction_copies.cpp - Copies of operands in groups --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operands of a contraction by an atom (contraction_atoms.cpp) in memory of
// their own: words of groups side by side along the lanes, or elements side by
// side along the groups. Words that lie side by side along their own dimension
// are transposed in squares of registers.
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/nest.h"
#include "realize/cpu/realize.h"
#include "realize/cpu/transpose.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

void NestEmitter::packWords(Value operand, const NarrowOperand &narrow,
                            const WordBuffer &buffer) {
  packing = {operand, narrow, buffer};
  // Where groups lie side by side along their own dimension, and words are
  // wanted side by side along another, squares of words are transposed.
  const int64_t width = plan.lanes;
  tile::LoadOp load = loadOf(narrow.source, r.analysis.phases);
  const bool isStoredSo =
      narrow.elements == AtomElements::BF16 || atom->elementBits() == 8;
  std::optional<Access> access;
  if (load && groupLevel >= 0 && isStoredSo && width > 1 &&
      vectorLevel == groupLevel + 1 && levels.size() == vectorLevel + 1u &&
      !r.findBuffer(load.getResult()) &&
      liesInGroups(load, levels[groupLevel].dim, r.analysis))
    access = getAccess(load);
  for (unsigned axis = 0; access && axis < access->axes.size(); ++axis) {
    Value offset = access->axes[axis].offset;
    if ((offset && isa<RankedTensorType>(offset.getType())) ||
        (r.analysis.accesses.needsCheck(*access, axis) &&
         !isSeenInside(*access, axis))) {
      access.reset();
      break;
    }
  }
  const int64_t extent = access ? *r.constantExtent(levels[groupLevel].dim) : 0;
  const int64_t side = width * atom->group, squares = extent / side;
  // A square that is not full, with zeros after the last element, where it is
  // less than to gather the words that it has.
  int64_t partial = extent % side;
  if (!emit.target.hasMaskedByteAccess || 4 * partial < side)
    partial = 0;
  if (squares == 0 && partial == 0)
    return emitLevel(0);

  auto word = VectorType::get({width}, b.getI32Type());
  const auto alignment = unsigned(atom->elementBits() / 8);
  const TileBuffer &memory = buffer.memory;
  const int64_t apart =
      memory.strides[tile::indexOf(memory.dims, levels[groupLevel].dim)] *
      atom->group;
  Type storage = b.getIntegerType(atom->elementBits());
  auto square = [&](int64_t columns, int64_t length) {
    Value present =
        length < side ? emit.prefixMask(emit.index(length), side) : Value();
    SmallVector<Value> rows;
    for (copy = 0; copy < columns; ++copy) {
      Value pointer = address(*access).pointer;
      rows.push_back(
          present
              ? b.create<LLVM::BitcastOp>(
                     emit.loc, word, emit.load(pointer, storage, side, present))
                    .getResult()
              : b.create<LLVM::LoadOp>(emit.loc, word, pointer, alignment));
    }
    copy = 0;
    // Lanes past the end are not looked at.
    rows.resize(width, rows.back());
    SmallVector<Value> transposed = transposeVectors(emit, rows, false);
    transposed.resize(llvm::divideCeil(length, atom->group));
    Value pointer = wordAddress(memory);
    for (auto [number, words] : llvm::enumerate(transposed)) {
      if (buffer.flips != 0)
        words = b.create<arith::XOrIOp>(emit.loc, words,
                                        emit.integer(word, buffer.flips));
      emit.store(words,
                 emit.offsetPointer(pointer, memory.element,
                                    emit.index(int64_t(number) * apart)),
                 b.getI32Type(), Value());
    }
  };
  auto emitFrom = [&](auto &self, int level) -> void {
    if (level < groupLevel)
      return loop(level, 0, levels[level].extent.value_or(-1), 1, 1, nullptr,
                  [&] { self(self, level + 1); });
    auto across = [&](int64_t length) {
      const int64_t columns = *levels[vectorLevel].extent;
      const int64_t rest = columns % width;
      loop(vectorLevel, 0, columns / width, width, width, nullptr,
           [&] { square(width, length); });
      loop(vectorLevel, columns - rest, rest > 0, width, width, nullptr,
           [&] { square(rest, length); });
    };
    loop(level, 0, squares, side, 1, nullptr, [&] { across(side); });
    loop(level, squares * side, partial > 0, side, 1, nullptr,
         [&] { across(partial); });
    if (partial > 0)
      return;
    const int64_t first = squares * side, last = extent % atom->group;
    elements = atom->group;
    loop(level, first, (extent - first) / atom->group, atom->group, 1, nullptr,
         [&] { emitLevel(vectorLevel); });
    elements = last;
    loop(level, extent - last, last > 0, atom->group, 1, nullptr,
         [&] { emitLevel(vectorLevel); });
    elements = 1;
  };
  emitFrom(emitFrom, 0);
}

/// Writes the words, or elements, at the current coordinates.
void NestEmitter::emitPacked() {
  for (copy = 0; copy < copies(); ++copy) {
    Value bits, pointer;
    Type storage = b.getI32Type();
    if (groupLevel >= 0) {
      bits = word(packing->operand, packing->narrow);
      if (packing->buffer.flips != 0)
        bits = b.create<arith::XOrIOp>(
            emit.loc, bits,
            emit.integer(bits.getType(), packing->buffer.flips));
    } else {
      storage = b.getIntegerType(atom->elementBits());
      bits = b.create<arith::TruncIOp>(
          emit.loc, laneType(storage, lanes),
          emit.splat(narrowBits(packing->narrow), lanes));
    }
    pointer = wordAddress(packing->buffer.memory);
    emit.store(emit.splat(bits, lanes), pointer, storage, mask);
  }
  copy = 0;
}

/// Memory for the operand of a contraction in groups: words along `adjacent`
/// side by side, or elements where that is the dimension of the groups.
static WordBuffer allocateWords(Realizer &r, Value operand,
                                const ContractionAtom &atom, StringAttr groups,
                                StringAttr adjacent, int64_t lanes,
                                Operation *op) {
  WordBuffer buffer;
  buffer.adjacent = adjacent;
  TileBuffer &memory = buffer.memory;
  memory.element = r.b.getIntegerType(atom.elementBits());
  for (StringAttr dim : tile::getDims(operand.getType()))
    if (dim != groups && dim != adjacent)
      memory.dims.push_back(dim);
  const size_t others = memory.dims.size();
  memory.dims.push_back(groups);
  if (adjacent != groups)
    memory.dims.push_back(adjacent);
  memory.strides.assign(memory.dims.size(), 1);
  memory.dynamicStrides.resize(memory.dims.size());
  // Rows begin at lines, and vectors end in them.
  const int64_t extent =
      llvm::alignTo(*r.constantExtent(groups), atom.wholeElements());
  int64_t elements = 0;
  if (adjacent == groups) {
    elements = llvm::alignTo(extent, atom.group * lanes);
  } else {
    const int64_t across =
        llvm::alignTo(*r.analysis.dims.extentBound(adjacent), lanes);
    memory.strides[others + 1] = atom.group;
    memory.strides[others] = across;
    if (__builtin_mul_overflow(across, extent, &elements))
      elements = largestTile;
  }
  for (size_t axis = others; axis-- > 0;) {
    memory.strides[axis] = elements;
    if (__builtin_mul_overflow(elements,
                               *r.analysis.dims.extentBound(memory.dims[axis]),
                               &elements))
      elements = largestTile;
  }
  if (elements > largestTile / 2) {
    r.fail(op, "unsupported.scratch",
           "an operand of " + Twine(elements) +
               " elements does not fit the scratch memory of one program "
               "(8 GiB); split the dimension into blocks");
    elements = 0;
  }
  memory.bytes = elements * atom.elementBits() / 8;
  memory.pointer = r.allocateBytes(memory.bytes, "packed operand");
  return buffer;
}

void Realizer::packWords(const Phase &phase, const NestPlan &nest) {
  Operation *op = phase.roots[0].op;
  const ContractionAtom &atom = *findAtom(nest.atom);
  const auto dim = [&](StringRef name) {
    return StringAttr::get(b.getContext(), name);
  };
  const StringAttr groups = dim(nest.groupDim);
  const AtomOperands operands = {
      &atom, *narrowOperand(op->getOperand(1 - nest.vectorOperand)),
      *narrowOperand(op->getOperand(nest.vectorOperand))};
  auto pack = [&](int number, const NarrowOperand &narrow, StringAttr adjacent,
                  int64_t flips) {
    Value operand = op->getOperand(number);
    WordBuffer buffer =
        allocateWords(*this, operand, atom, groups, adjacent, nest.lanes, op);
    buffer.flips = flips;
    NestPlan copy;
    copy.id = nest.id;
    copy.atom = nest.atom;
    copy.lanes = nest.lanes;
    copy.tail = nest.tail;
    copy.vectorDim = adjacent.str();
    if (adjacent != groups)
      copy.groupDim = nest.groupDim;
    Phase copied;
    copied.kept = buffer.memory.dims;
    copied.roots.push_back(
        {Root::Kind::Materialize, operand.getDefiningOp(), operand});
    copied.roots[0].layout.assign(copied.kept.begin(), copied.kept.end());
    packOnce(operand, [&] {
      Location outer = emit.loc;
      emit.loc = nestLocation(outer, nest.id);
      NestEmitter emitter(*this, copied, copy);
      const bool fills =
          constantExtent(groups).value_or(0) % atom.wholeElements() != 0;
      if (fills && (adjacent == groups || atom.isTile()))
        emitter.fillWithZeros(buffer.memory);
      emitter.packWords(operand, narrow, buffer);
      emit.loc = outer;
    });
    words[operand] = buffer;
  };
  if (nest.packedOperand >= 0)
    pack(nest.packedOperand, operands.vectors, dim(nest.vectorDim),
         operands.isShifted() ? AtomOperands::shiftedWord : 0);
  if (!nest.packsRows)
    return;
  // Along the groups, but where rows lie side by side.
  tile::LoadOp load = loadOf(operands.rows.source, analysis.phases);
  const bool areRowsAdjacent =
      load && !atom.isTile() &&
      adjacentDim(*getAccess(load), analysis.strides) == dim(nest.tileDim);
  pack(1 - nest.vectorOperand, operands.rows,
       areRowsAdjacent ? dim(nest.tileDim) : groups, 0);
}

} // namespace tessera
