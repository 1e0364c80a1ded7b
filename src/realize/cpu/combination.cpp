//===- combination.cpp - Ordered trees and window scans -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "realize/cpu/combination.h"

#include "realize/cpu/lines.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// TreeStack
//===----------------------------------------------------------------------===//

static int64_t slotBytes(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return storageBytes(getElementTypeOrSelf(type)) *
         (vector ? vector.getNumElements() : 1);
}

static bool isAddress(Type type) { return isa<LLVM::LLVMPointerType>(type); }

TreeStack::TreeStack(Realizer &realizer, SmallVector<Type> elementTypes)
    : r(realizer), types(std::move(elementTypes)) {
  for (Type type : types) {
    TileBuffer &buffer = memory.emplace_back();
    buffer.pointer = r.allocateBytes(levels * slotBytes(type), "tree");
  }
}

TreeStack::TreeStack(Realizer &realizer, TypeRange tileTypes, int64_t most,
                     Operation *op)
    : r(realizer), levels(llvm::Log2_64(std::max<int64_t>(most, 1)) + 1) {
  for (Type type : tileTypes) {
    if (isa<RankedTensorType>(type)) {
      types.push_back(LLVM::LLVMPointerType::get(r.b.getContext()));
      memory.push_back(r.allocate(type, "tree", op, levels));
      continue;
    }
    types.push_back(type);
    memory.emplace_back().pointer =
        r.allocateBytes(levels * slotBytes(type), "tree");
  }
}

Value TreeStack::slot(size_t part, Value level) {
  Value size = isAddress(types[part])
                   ? memory[part].spacing(r.emit)
                   : r.emit.integer(r.b.getI64Type(), slotBytes(types[part]));
  return r.emit.offsetPointer(memory[part].pointer, r.b.getI8Type(),
                              r.emit.mul(level, size));
}

SmallVector<Value> TreeStack::read(Value level) {
  SmallVector<Value> values;
  for (auto [part, type] : llvm::enumerate(types)) {
    if (isAddress(type)) {
      values.push_back(slot(part, level));
      continue;
    }
    auto vector = dyn_cast<VectorType>(type);
    values.push_back(r.emit.load(slot(part, level), getElementTypeOrSelf(type),
                                 vector ? vector.getNumElements() : 1,
                                 Value()));
  }
  return values;
}

void TreeStack::write(Value level, ValueRange values) {
  for (auto [part, value] : llvm::enumerate(values))
    if (isAddress(types[part]))
      r.b.create<LLVM::MemcpyOp>(r.emit.loc, slot(part, level), value,
                                 memory[part].size(r.emit),
                                 /*isVolatile=*/false);
    else
      r.emit.store(value, slot(part, level), elementOf(value), Value());
}

Value TreeStack::hasLevel(Value count, Value level) {
  Value one = r.emit.integer(r.b.getI64Type(), 1);
  Value bit = r.b.create<arith::AndIOp>(
      r.emit.loc, r.b.create<arith::ShRUIOp>(r.emit.loc, count, level), one);
  return r.emit.compare(arith::CmpIPredicate::ne, bit,
                        r.emit.integer(r.b.getI64Type(), 0));
}

Value TreeStack::push(Value count, SmallVector<Value> element,
                      const Combine &combine) {
  // While a subtree of the current size waits, it becomes the left half.
  OpBuilder &b = r.b;
  Location loc = r.emit.loc;
  Value one = r.emit.integer(b.getI64Type(), 1);
  SmallVector<Value> inits = std::move(element);
  inits.push_back(r.emit.integer(b.getI64Type(), 0));
  auto whileOp = b.create<scf::WhileOp>(
      loc, TypeRange(ValueRange(inits)), inits,
      [&](OpBuilder &, Location, ValueRange args) {
        b.create<scf::ConditionOp>(loc, hasLevel(count, args.back()), args);
      },
      [&](OpBuilder &, Location, ValueRange args) {
        SmallVector<Value> joined =
            combine(read(args.back()), args.drop_back());
        joined.push_back(r.emit.add(args.back(), one));
        b.create<scf::YieldOp>(loc, joined);
      });
  ValueRange final = whileOp.getResults();
  write(final.back(), final.drop_back());
  return r.emit.add(count, one);
}

SmallVector<Value> TreeStack::total(Value count, SmallVector<Value> empty,
                                    const Combine &combine) {
  // From the smallest waiting subtree to the largest, each becomes the left
  // half of the result so far.
  OpBuilder &b = r.b;
  Location loc = r.emit.loc;
  SmallVector<Value> inits = std::move(empty);
  inits.push_back(r.emit.boolean(1, false));
  auto loop = b.create<scf::ForOp>(loc, r.emit.index(0), r.emit.index(levels),
                                   r.emit.index(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  ValueRange args = loop.getRegionIterArgs();
  Value level = r.emit.toI64(loop.getInductionVar());
  auto ifOp = b.create<scf::IfOp>(loc, TypeRange(args), hasLevel(count, level),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToEnd(ifOp.thenBlock());
    SmallVector<Value> left = read(level);
    auto second = b.create<scf::IfOp>(loc, TypeRange(args.drop_back()),
                                      args.back(), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard innermost(b);
      b.setInsertionPointToEnd(second.thenBlock());
      b.create<scf::YieldOp>(loc, combine(left, args.drop_back()));
      b.setInsertionPointToEnd(second.elseBlock());
      b.create<scf::YieldOp>(loc, left);
    }
    SmallVector<Value> joined(second.getResults());
    joined.push_back(r.emit.boolean(1, true));
    b.create<scf::YieldOp>(loc, joined);
    b.setInsertionPointToEnd(ifOp.elseBlock());
    b.create<scf::YieldOp>(loc, args);
  }
  b.create<scf::YieldOp>(loc, ifOp.getResults());
  return SmallVector<Value>(loop.getResults().drop_back());
}

//===----------------------------------------------------------------------===//
// Window scans
//===----------------------------------------------------------------------===//

bool isWindowScan(tile::ScanOp op) {
  tile::Order natural =
      op.getReverse() ? tile::Order::Right : tile::Order::Left;
  return op.getOrder() != tile::Order::Unordered && op.getOrder() != natural;
}

namespace {

class WindowScan {
public:
  WindowScan(Realizer &r, tile::ScanOp op)
      : r(r), emit(r.emit), b(r.b), op(op), nest(r), combination(op) {}

  void run() {
    SmallVector<StringAttr> dims = tile::getDims(op.getInputs()[0].getType());
    for (auto [input, result] : llvm::zip(op.getInputs(), op.getResults())) {
      inputs.push_back(r.allocate(input.getType(), "scan", op));
      r.materializeInto(input, inputs.back());
      results.push_back(*r.findBuffer(result));
    }
    stride = inputs[0].stride(emit, tile::indexOf(dims, op.getAlongAttr()));
    length = r.extent(op.getAlongAttr());
    if (op.getOrder() == tile::Order::Tree)
      stack = std::make_unique<TreeStack>(r, combination.types(1));
    forEachLine(r, inputs[0], op.getAlongAttr(), [&](Value base) {
      loop(emit.index(0), length, {}, [&](Value position, ValueRange) {
        element(base, position);
        return SmallVector<Value>();
      });
    });
  }

private:
  /// A loop over [first, last); the body gets the position and the carried
  /// values and returns the next ones.
  SmallVector<Value>
  loop(Value first, Value last, ArrayRef<Value> inits,
       function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto forOp =
        b.create<scf::ForOp>(emit.loc, first, last, emit.index(1), inits);
    OpBuilder::InsertionGuard guard(b);
    if (inits.empty())
      b.setInsertionPoint(forOp.getBody()->getTerminator());
    else
      b.setInsertionPointToEnd(forOp.getBody());
    SmallVector<Value> next =
        body(forOp.getInductionVar(), forOp.getRegionIterArgs());
    if (!inits.empty())
      b.create<scf::YieldOp>(emit.loc, next);
    return SmallVector<Value>(forOp.getResults());
  }

  Value address(const TileBuffer &buffer, Value base, Value position) {
    return emit.offsetPointer(buffer.pointer, buffer.element,
                              emit.add(base, emit.mul(position, stride)));
  }

  SmallVector<Value> read(Value base, Value position) {
    SmallVector<Value> values;
    for (const TileBuffer &buffer : inputs)
      values.push_back(emit.load(address(buffer, base, position),
                                 buffer.element, 1, Value()));
    return values;
  }

  /// The reduction of the window that belongs to `position`.
  void element(Value base, Value position) {
    Value next = emit.add(position, emit.index(1));
    Value first = emit.index(0), last = length;
    if (op.getReverse())
      first = op.getExclusive() ? next : position;
    else
      last = op.getExclusive() ? position : next;
    SmallVector<Value> reduced = op.getOrder() == tile::Order::Tree
                                     ? tree(base, first, last)
                                     : fold(base, first, last);
    for (auto [buffer, value] : llvm::zip(results, reduced))
      emit.store(value, address(buffer, base, position), buffer.element,
                 Value());
  }

  SmallVector<Value> tree(Value base, Value first, Value last) {
    auto combine = [this](ValueRange x, ValueRange y) {
      return combination.combine(nest, x, y);
    };
    SmallVector<Value> count =
        loop(first, last, {emit.integer(b.getI64Type(), 0)},
             [&](Value position, ValueRange carried) {
               return SmallVector<Value>{
                   stack->push(carried[0], read(base, position), combine)};
             });
    return stack->total(count[0], combination.empty(nest, 1), combine);
  }

  SmallVector<Value> fold(Value base, Value first, Value last) {
    bool isRight = op.getOrder() == tile::Order::Right;
    SmallVector<Value> inits = combination.empty(nest, 1);
    inits.push_back(emit.boolean(1, false));
    SmallVector<Value> final =
        loop(first, last, inits, [&](Value position, ValueRange carried) {
          if (isRight)
            position = b.create<arith::SubIOp>(
                emit.loc, emit.add(first, emit.add(last, emit.index(-1))),
                position);
          SmallVector<Value> x = read(base, position);
          ValueRange acc = carried.drop_back();
          SmallVector<Value> joined = isRight
                                          ? combination.combine(nest, x, acc)
                                          : combination.combine(nest, acc, x);
          for (size_t i = 0; i < joined.size(); ++i)
            joined[i] = emit.select(carried.back(), joined[i], x[i]);
          joined.push_back(emit.boolean(1, true));
          return joined;
        });
    final.pop_back();
    return final;
  }

  Realizer &r;
  VectorEmitter &emit;
  OpBuilder &b;
  tile::ScanOp op;
  NestEmitter nest;
  Combination<tile::ScanOp> combination;
  SmallVector<TileBuffer> inputs, results;
  std::unique_ptr<TreeStack> stack;
  Value stride, length;
};

} // namespace

void emitWindowScan(Realizer &realizer, tile::ScanOp op) {
  WindowScan(realizer, op).run();
}

} // namespace tessera
