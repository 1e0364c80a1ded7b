//===- dsl/branch.cpp - Branches, folds and isolated bodies ---------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regions whose body is a lambda of the author.
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace tessera {

using Kind = detail::Value::Kind;

void TraceContext::isolated(Block *block, Site where, const char *what,
                            llvm::function_ref<void()> body) {
  Scope scope;
  scope.id = nextScope++;
  scope.kind = ScopeKind::Isolated;
  scope.op = block->getParentOp();
  scope.outside = builder.saveInsertionPoint();
  scope.order = Order::Unordered;
  scope.site = where;
  scope.what = what;
  live.each([&](Tile *tile) {
    detail::Value &state = LiveTiles::state(tile);
    if (state.kind == Kind::Defined && state.trace == id)
      scope.entries.push_back(
          {LiveTiles::identity(tile), Value::getFromOpaquePointer(state.handle),
           Value::getFromOpaquePointer(state.handle), state.site});
  });
  scopes.push_back(scope);
  auto restore = llvm::make_scope_exit([&] {
    scopes.pop_back();
    builder.restoreInsertionPoint(scope.outside);
  });
  builder.setInsertionPointToEnd(block);
  body();
  checkUnassigned(scope);
}

std::vector<Tile> fold(Axis a, std::vector<Arg> initial, Order order,
                       const std::function<std::vector<Tile>(Coord)> &body,
                       const Combiner &combine) {
  TraceContext *context = TraceContext::current();
  std::vector<Tile> results;
  if (!context)
    return std::vector<Tile>(initial.size());
  const DimRecord *record = context->find(a.dim, a.where);
  SmallVector<Value> inits;
  SmallVector<Type> types;
  SmallVector<DType> dtypes;
  for (const Arg &arg : initial) {
    results.push_back(context->poison(a.where));
    if (auto operand = context->single(arg)) {
      inits.push_back(operand->value);
      types.push_back(operand->value.getType());
      dtypes.push_back(operand->dtype);
    }
  }
  if (initial.empty())
    context->error(a.where, "dsl.count",
                   "a fold has no initial value, expected at least one");
  if (!record || initial.empty() || inits.size() != initial.size())
    return results;
  OpBuilder &builder = context->builder;
  Operation *op = context->create(
      "tile.fold", a.where, inits, types,
      {builder.getNamedAttr("dim", record->name),
       builder.getNamedAttr(
           "order", tile::OrderAttr::get(&context->mlir,
                                         static_cast<tile::Order>(order)))},
      2);
  Block *block = &op->getRegion(0).emplaceBlock();
  Value position =
      block->addArgument(builder.getIndexType(), context->loc(a.where));
  bool fine = true;
  context->isolated(block, a.where, "fold", [&] {
    std::vector<Tile> values = body(context->coordinate(a, position));
    SmallVector<Value> yields;
    if (values.size() != types.size()) {
      context->error(a.where, "dsl.count",
                     concat("the body of a fold returns ", values.size(),
                            " values, expected ", types.size()));
      fine = false;
    }
    for (size_t i = 0; i < values.size() && fine; ++i) {
      Value value = context->use(values[i].value(), a.where);
      Value fitted =
          value ? context->coerce(value, types[i], a.where) : Value();
      if (value && !fitted)
        context->error(values[i].value().site, "dsl.type",
                       concat("the body of a fold returns ", value.getType(),
                              ", expected ", types[i]));
      fine &= bool(fitted);
      yields.push_back(fitted);
    }
    context->yield(fine ? ValueRange(yields) : ValueRange(), a.where);
  });
  fine &= buildCombiner(*context, op->getRegion(1), types, dtypes, combine,
                        a.where);
  if (!fine)
    return results;
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = context->make(op->getResult(i), dtypes[i], a.where);
  return results;
}

namespace {

/// A tile's value when a branch begins, and at the end of each branch.
struct Assigned {
  detail::Value before, then, otherwise;
  bool inThen = false, inElse = false;
};

bool differs(const detail::Value &a, const detail::Value &b) {
  return a.kind != b.kind || a.handle != b.handle;
}

/// The type that both branches can give a tile; null if there is none.
Type commonType(TraceContext &context, Value a, Value b) {
  if (a.getType() == b.getType())
    return a.getType();
  SmallVector<StringAttr> dims = tile::getDims(a.getType());
  for (StringAttr dim : tile::getDims(b.getType()))
    if (!llvm::is_contained(dims, dim))
      dims.push_back(dim);
  Type element = tile::getElement(a.getType());
  if (element.isIndex())
    element = context.builder.getI64Type();
  return tile::getTileType(element, dims);
}

} // namespace

void if_(Arg condition, const std::function<void()> &thenBody,
         const std::function<void()> &elseBody) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return;
  Value test =
      context->operand(condition, DType::Bool, false, "the condition of if_()");
  if (test && isa<RankedTensorType>(test.getType())) {
    context->error(condition.where, "dsl.type",
                   concat("the condition of if_() is a tile",
                          context->spellDims(test.getType()),
                          ", expected a scalar; use select() for elements"));
    test = {};
  }
  if (!test)
    test = context->integer(0, context->builder.getI1Type(), condition.where);

  Site where = condition.where;
  OpBuilder &builder = context->builder;
  Operation *op = context->create("tile.if", where, test, {}, {}, 2);
  auto outside = builder.saveInsertionPoint();
  auto restore =
      llvm::make_scope_exit([&] { builder.restoreInsertionPoint(outside); });

  llvm::MapVector<uint64_t, Assigned> tiles;
  context->live.each([&](Tile *tile) {
    tiles[LiveTiles::identity(tile)].before = LiveTiles::state(tile);
  });
  auto run = [&](Region &region, const std::function<void()> &body,
                 bool isThen) {
    builder.setInsertionPointToEnd(&region.emplaceBlock());
    if (body)
      body();
    context->live.each([&](Tile *tile) {
      auto it = tiles.find(LiveTiles::identity(tile));
      if (it == tiles.end())
        return;
      Assigned &assigned = it->second;
      detail::Value &state = LiveTiles::state(tile);
      (isThen ? assigned.then : assigned.otherwise) = state;
      (isThen ? assigned.inThen : assigned.inElse) =
          differs(state, assigned.before);
      state = assigned.before;
    });
  };
  run(op->getRegion(0), thenBody, true);
  run(op->getRegion(1), elseBody, false);

  SmallVector<Value> thenValues, elseValues;
  SmallVector<std::pair<uint64_t, DType>> results;
  Block *thenBlock = &op->getRegion(0).front();
  Block *elseBlock = &op->getRegion(1).front();
  llvm::DenseMap<uint64_t, Tile *> live;
  context->live.each(
      [&](Tile *tile) { live[LiveTiles::identity(tile)] = tile; });
  for (auto &[identity, assigned] : tiles) {
    if (!assigned.inThen && !assigned.inElse)
      continue;
    Tile *tile = live.lookup(identity);
    if (!tile)
      continue;
    detail::Value &state = LiveTiles::state(tile);
    detail::Value then = assigned.inThen ? assigned.then : assigned.before;
    detail::Value otherwise =
        assigned.inElse ? assigned.otherwise : assigned.before;
    Site site = assigned.inThen ? then.site : otherwise.site;
    state.kind = Kind::Poison;
    if (then.kind == Kind::Poison || otherwise.kind == Kind::Poison)
      continue;
    if (then.kind == Kind::Empty || otherwise.kind == Kind::Empty) {
      // Only this branch needed it: it has no value afterwards.
      state.kind = Kind::Empty;
      continue;
    }
    builder.setInsertionPointToEnd(thenBlock);
    Value a = context->use(then, site);
    builder.setInsertionPointToEnd(elseBlock);
    Value b = context->use(otherwise, site);
    if (!a || !b)
      continue;
    Type type =
        then.dtype == otherwise.dtype ? commonType(*context, a, b) : Type();
    if (type) {
      builder.setInsertionPointToEnd(thenBlock);
      a = context->coerce(a, type, site);
      builder.setInsertionPointToEnd(elseBlock);
      b = context->coerce(b, type, site);
    }
    if (!type || !a || !b) {
      context->error(
          site, "dsl.branch",
          concat("a tile is ", name(then.dtype), " (made at ", spell(then.site),
                 ") after one branch of if_() and ", name(otherwise.dtype),
                 " (made at ", spell(otherwise.site),
                 ") after the other, expected one type"));
      continue;
    }
    thenValues.push_back(a);
    elseValues.push_back(b);
    results.push_back({identity, then.dtype});
  }
  builder.setInsertionPointToEnd(thenBlock);
  context->yield(thenValues, where);
  builder.setInsertionPointToEnd(elseBlock);
  context->yield(elseValues, where);

  builder.setInsertionPoint(op);
  Operation *branch = context->create("tile.if", where, test,
                                      ValueRange(thenValues).getTypes(), {}, 2);
  branch->getRegion(0).takeBody(op->getRegion(0));
  // A branch that computes nothing is left out where nothing needs it.
  if (elseBody || !results.empty())
    branch->getRegion(1).takeBody(op->getRegion(1));
  op->erase();
  builder.setInsertionPointAfter(branch);
  outside = builder.saveInsertionPoint();
  for (auto [result, value] : llvm::zip(results, branch->getResults())) {
    detail::Value &state = LiveTiles::state(live.lookup(result.first));
    state = context->makeValue(value, result.second, where);
  }
}

} // namespace tessera
