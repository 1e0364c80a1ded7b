//===- dsl/region.cpp - Regions and inferred carries ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is built as an op without carries whose body uses placeholders; when
// it closes, the op is made again with the carries that turned out to be needed
// and takes the body over. context.h says how carries are found.
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/ScopeExit.h"

#include <cmath>
#include <exception>
#include <limits>

using namespace mlir;

namespace tessera {

using Kind = detail::Value::Kind;

static const char *spellKind(TraceContext::ScopeKind kind) {
  switch (kind) {
  case TraceContext::ScopeKind::Parallel:
    return "parallel";
  case TraceContext::ScopeKind::Serial:
    return "serial";
  case TraceContext::ScopeKind::Pipeline:
    return "pipeline";
  case TraceContext::ScopeKind::Reduction:
    return "reduction";
  case TraceContext::ScopeKind::Isolated:
    break;
  }
  return "region";
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

uint64_t TraceContext::openRegion(RegionKind kind, std::span<const Axis> axes,
                                  Order order, int64_t window,
                                  Coord *coordinates) {
  Site where = axes[0].where;
  SmallVector<StringAttr> names;
  bool fine = true;
  if (window < 0) {
    error(where, "dsl.pipeline",
          concat("the window of a pipeline is ", window,
                 ", expected at least 0"));
    fine = false;
  }
  for (const Axis &axis : axes) {
    const DimRecord *record = find(axis.dim, axis.where);
    if (record && llvm::is_contained(names, record->name)) {
      error(axis.where, "dsl.dimension",
            concat("a parallel region names dimension '",
                   record->name.getValue(), "' twice, expected once"));
      record = nullptr;
    }
    fine &= record != nullptr;
    if (record)
      names.push_back(record->name);
  }
  if (!fine) {
    // The body is still traced, to find what else is wrong with it.
    for (size_t i = 0; i < axes.size(); ++i)
      coordinates[i] = coordinate(axes[i], {});
    return 0;
  }

  Scope scope;
  scope.id = nextScope++;
  scope.kind = static_cast<ScopeKind>(kind);
  scope.order = order;
  scope.site = where;
  scope.what = spellKind(scope.kind);
  SmallVector<NamedAttribute> attributes;
  const char *opName = "tile.serial";
  if (kind == RegionKind::Parallel) {
    opName = "tile.parallel";
    attributes.push_back(builder.getNamedAttr("dims", strings(names)));
  } else {
    attributes.push_back(builder.getNamedAttr("dim", names[0]));
    if (kind == RegionKind::Pipeline) {
      opName = "tile.pipeline";
      attributes.push_back(
          builder.getNamedAttr("window", builder.getI64IntegerAttr(window)));
    }
  }
  scope.op = create(opName, where, {}, {}, attributes, 1);
  scope.outside = builder.saveInsertionPoint();
  Block *block = &scope.op->getRegion(0).emplaceBlock();
  for (size_t i = 0; i < axes.size(); ++i)
    block->addArgument(builder.getIndexType(), loc(axes[i].where));
  builder.setInsertionPointToEnd(block);

  live.each([&](Tile *tile) {
    detail::Value &state = LiveTiles::state(tile);
    if (state.kind != Kind::Defined || state.trace != id)
      return;
    Value before = Value::getFromOpaquePointer(state.handle);
    for (auto it = forwarded.find(before); it != forwarded.end();
         it = forwarded.find(before))
      before = it->second;
    Region *defined = before.getParentRegion();
    if (!defined || !defined->isAncestor(&scope.op->getRegion(0)))
      return;
    Value placeholder;
    if (kind != RegionKind::Parallel) {
      placeholder = create("builtin.unrealized_conversion_cast", where, {},
                           before.getType())
                        ->getResult(0);
      state.handle = placeholder.getAsOpaquePointer();
    } else {
      placeholder = before;
      state.handle = before.getAsOpaquePointer();
    }
    scope.entries.push_back(
        {LiveTiles::identity(tile), before, placeholder, state.site});
  });
  uint64_t opened = scope.id;
  scopes.push_back(std::move(scope));
  for (size_t i = 0; i < axes.size(); ++i)
    coordinates[i] = coordinate(axes[i], block->getArgument(i));
  return opened;
}

//===----------------------------------------------------------------------===//
// Closing
//===----------------------------------------------------------------------===//

llvm::DenseMap<uint64_t, Tile *> TraceContext::liveByIdentity() {
  llvm::DenseMap<uint64_t, Tile *> tiles;
  live.each([&](Tile *tile) { tiles[LiveTiles::identity(tile)] = tile; });
  return tiles;
}

void TraceContext::forward(Value placeholder, Value value) {
  placeholder.replaceAllUsesWith(value);
  forwarded[placeholder] = value;
  Operation *op = placeholder.getDefiningOp();
  op->remove();
  retired.push_back(op);
}

void TraceContext::checkUnassigned(const Scope &scope) {
  auto tiles = liveByIdentity();
  for (const ScopeEntry &entry : scope.entries) {
    Tile *tile = tiles.lookup(entry.tile);
    if (!tile)
      continue;
    detail::Value &state = LiveTiles::state(tile);
    if (state.kind == Kind::Defined &&
        state.handle == entry.placeholder.getAsOpaquePointer())
      continue;
    if (state.kind == Kind::Defined)
      error(state.site, "dsl.assign",
            concat("a tile from outside (its value was made at ",
                   spell(entry.site), ") is assigned inside the ", scope.what,
                   " at ", spell(scope.site),
                   "; expected a store, or a serial loop, which carries it"));
    state = makeValue(entry.before, state.dtype, entry.site);
    state.kind = Kind::Poison;
  }
}

void TraceContext::closeRegion(uint64_t id) {
  // Regions nest as C++ scopes do, so it is the innermost; a range that is kept
  // beyond its loop has been closed already.
  if (scopes.empty() || scopes.back().id != id)
    return;
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  switch (scope.kind) {
  case ScopeKind::Parallel:
    checkUnassigned(scope);
    builder.restoreInsertionPoint(scope.outside);
    break;
  case ScopeKind::Serial:
  case ScopeKind::Pipeline:
    closeLoop(scope);
    break;
  case ScopeKind::Reduction:
    closeReduction(scope);
    break;
  case ScopeKind::Isolated:
    break;
  }
}

namespace {
struct Carry {
  Tile *tile;
  Value before, placeholder, after;
  DType dtype;
};
} // namespace

void TraceContext::closeLoop(Scope &scope) {
  auto tiles = liveByIdentity();
  SmallVector<Carry> carries;
  for (const ScopeEntry &entry : scope.entries) {
    Tile *tile = tiles.lookup(entry.tile);
    if (tile) {
      detail::Value &state = LiveTiles::state(tile);
      bool same = state.handle == entry.placeholder.getAsOpaquePointer();
      if (state.kind == Kind::Defined && !same) {
        Value after = use(state, state.site);
        Value fitted =
            after ? coerce(after, entry.before.getType(), state.site) : Value();
        if (fitted) {
          carries.push_back(
              {tile, entry.before, entry.placeholder, fitted, state.dtype});
          continue;
        }
        if (after)
          error(state.site, "dsl.carry",
                concat("a tile that the ", scope.what, " loop at ",
                       spell(scope.site), " carries changes from ",
                       entry.before.getType(), " (made at ", spell(entry.site),
                       ") to ", after.getType(),
                       "; expected one type, give the initial value its "
                       "dimensions with full() and its type with cast()"));
        state.kind = Kind::Poison;
      }
    }
    forward(entry.placeholder, entry.before);
    if (tile && LiveTiles::state(tile).kind == Kind::Defined)
      LiveTiles::state(tile).handle = entry.before.getAsOpaquePointer();
  }

  Block *block = &scope.op->getRegion(0).front();
  SmallVector<Value> inits, yields;
  for (const Carry &carry : carries) {
    inits.push_back(carry.before);
    yields.push_back(carry.after);
    forward(carry.placeholder,
            block->addArgument(carry.before.getType(), carry.before.getLoc()));
  }
  // A carry that is yielded by another one's name is its block argument now.
  for (Value &value : yields)
    if (auto it = forwarded.find(value); it != forwarded.end())
      value = it->second;
  yield(yields, scope.site);

  builder.setInsertionPoint(scope.op);
  Operation *loop =
      create(scope.op->getName().getStringRef(), scope.site, inits,
             ValueRange(inits).getTypes(), scope.op->getAttrs(), 1);
  loop->getRegion(0).takeBody(scope.op->getRegion(0));
  scope.op->erase();
  builder.setInsertionPointAfter(loop);
  for (auto [carry, result] : llvm::zip(carries, loop->getResults()))
    LiveTiles::state(carry.tile) =
        makeValue(result, carry.dtype, LiveTiles::state(carry.tile).site);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The identity of a combining operation on `type`, as an attribute.
static TypedAttr identityOf(StringRef op, Type type) {
  OpBuilder builder(type.getContext());
  double infinity = std::numeric_limits<double>::infinity();
  if (isa<FloatType>(type)) {
    double value = llvm::StringSwitch<double>(op)
                       .Cases("arith.maximumf", "tile.max_num", -infinity)
                       .Cases("arith.minimumf", "tile.min_num", infinity)
                       .Case("arith.mulf", 1.0)
                       .Default(0.0);
    return builder.getFloatAttr(type, value);
  }
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  APInt value =
      llvm::StringSwitch<APInt>(op)
          .Case("arith.muli", APInt(width, 1))
          .Case("arith.maxsi", APInt::getSignedMinValue(width))
          .Case("arith.minsi", APInt::getSignedMaxValue(width))
          .Cases("arith.minui", "arith.andi", APInt::getAllOnes(width))
          .Default(APInt::getZero(width));
  return builder.getIntegerAttr(type, value);
}

static bool combinesTwo(Operation *op) {
  static const StringRef names[] = {
      "arith.addf",   "arith.mulf",   "arith.maximumf", "arith.minimumf",
      "tile.max_num", "tile.min_num", "arith.addi",     "arith.muli",
      "arith.maxsi",  "arith.minsi",  "arith.maxui",    "arith.minui",
      "arith.andi",   "arith.ori",    "arith.xori"};
  return op && llvm::is_contained(names, op->getName().getStringRef());
}

void TraceContext::closeReduction(Scope &scope) {
  struct Part {
    Tile *tile;
    Value before, placeholder, contribution;
    Operation *combine;
    DType dtype;
  };
  auto tiles = liveByIdentity();
  SmallVector<Part> parts;
  Block *block = &scope.op->getRegion(0).front();
  for (const ScopeEntry &entry : scope.entries) {
    Tile *tile = tiles.lookup(entry.tile);
    detail::Value *state = tile ? &LiveTiles::state(tile) : nullptr;
    if (state && state->kind == Kind::Defined &&
        state->handle != entry.placeholder.getAsOpaquePointer()) {
      Value after = use(*state, state->site);
      Operation *combine = after ? after.getDefiningOp() : nullptr;
      if (combinesTwo(combine) && combine->getBlock() == block &&
          after.use_empty() && entry.placeholder.hasOneUse() &&
          *entry.placeholder.user_begin() == combine &&
          after.getType() == entry.before.getType()) {
        Value other = combine->getOperand(0) == entry.placeholder
                          ? combine->getOperand(1)
                          : combine->getOperand(0);
        parts.push_back({tile, entry.before, entry.placeholder, other, combine,
                         state->dtype});
        continue;
      }
      if (after)
        error(state->site, "dsl.reduction",
              concat("a tile that the reduction at ", spell(scope.site),
                     " carries (made at ", spell(entry.site),
                     ") is not combined with one value of its own type by one "
                     "operation; expected total = total + value or the like, "
                     "or fold()"));
      state->kind = Kind::Poison;
    }
    forward(entry.placeholder, entry.before);
    if (state && state->kind == Kind::Defined)
      state->handle = entry.before.getAsOpaquePointer();
  }

  if (parts.empty() && diagnostics.empty())
    error(scope.site, "dsl.reduction",
          "the reduction combines nothing; expected a tile from outside that "
          "its body updates, or a serial or parallel loop");

  // Each contribution is yielded, each combining op moves to the other region.
  SmallVector<Value> contributions, inits;
  SmallVector<Type> types;
  bool fromInitial = scope.order == Order::Left || scope.order == Order::Right;
  builder.setInsertionPoint(scope.op);
  for (Part &part : parts) {
    contributions.push_back(part.contribution);
    types.push_back(part.before.getType());
    if (fromInitial) {
      inits.push_back(part.before);
      continue;
    }
    Type element = tile::getElement(part.before.getType());
    Value identity = builder.create<arith::ConstantOp>(
        loc(scope.site),
        identityOf(part.combine->getName().getStringRef(), element));
    inits.push_back(
        expand(identity, tile::getDims(part.before.getType()), scope.site));
  }
  Operation *fold = create(
      "tile.fold", scope.site, inits, types,
      {builder.getNamedAttr("dim", scope.op->getAttr("dim")),
       builder.getNamedAttr(
           "order",
           tile::OrderAttr::get(&mlir, static_cast<tile::Order>(scope.order)))},
      2);
  fold->getRegion(0).takeBody(scope.op->getRegion(0));
  scope.op->erase();
  Block *combiner = &fold->getRegion(1).emplaceBlock();
  for (int side = 0; side < 2; ++side)
    for (Type type : types)
      combiner->addArgument(type, loc(scope.site));
  builder.setInsertionPointToEnd(combiner);
  SmallVector<Value> combined;
  for (size_t i = 0; i < parts.size(); ++i) {
    Operation *copy = builder.clone(*parts[i].combine);
    copy->setOperands(
        {combiner->getArgument(i), combiner->getArgument(i + parts.size())});
    combined.push_back(copy->getResult(0));
  }
  yield(combined, scope.site);
  builder.setInsertionPointToEnd(&fold->getRegion(0).front());
  yield(contributions, scope.site);
  builder.setInsertionPointAfter(fold);
  for (size_t i = 0; i < parts.size(); ++i) {
    Part &part = parts[i];
    Value result = fold->getResult(i);
    if (!fromInitial) {
      Operation *join = builder.clone(*part.combine);
      join->setOperands({part.before, result});
      result = join->getResult(0);
    }
    detail::Value &state = LiveTiles::state(part.tile);
    state = makeValue(result, part.dtype, state.site);
    part.combine->dropAllReferences();
    part.combine->remove();
    retired.push_back(part.combine);
    forward(part.placeholder, result);
  }
}

//===----------------------------------------------------------------------===//
// The range of a loop
//===----------------------------------------------------------------------===//

bool detail::RegionRange::open(std::span<const Axis> axes, Coord *coordinates) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return false;
  exceptions = std::uncaught_exceptions();
  scope = context->openRegion(kind, axes, order, window, coordinates);
  return true;
}

void detail::RegionRange::close() {
  TraceContext *context = TraceContext::current();
  if (context && scope)
    context->closeRegion(scope);
  scope = 0;
}

detail::RegionRange::~RegionRange() {
  TraceContext *context = TraceContext::current();
  if (!context || scope == 0)
    return;
  if (std::uncaught_exceptions() <= exceptions && !context->scopes.empty() &&
      context->scopes.back().id == scope)
    context->error(context->scopes.back().site, "dsl.break",
                   concat("the body of this ", context->scopes.back().what,
                          " loop is left by break or return; it is traced once "
                          "for all iterations, expected it to end normally"));
  close();
}

void stage(std::string_view name, std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return;
  if (context->scopes.empty() ||
      context->scopes.back().kind != TraceContext::ScopeKind::Pipeline) {
    context->error(where, "dsl.stage",
                   concat("stage '", name,
                          "' begins outside of a pipeline, expected it "
                          "directly in the body of one"));
    return;
  }
  context->builder.create<tile::StageOp>(
      context->loc(where),
      context->builder.getStringAttr(StringRef(name.data(), name.size())));
}

int64_t tunable(std::string_view name, std::vector<int64_t> candidates,
                std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return candidates.empty() ? 1 : candidates.front();
  if (name.empty() || candidates.empty()) {
    context->error(where, "dsl.tunable",
                   concat("tunable '", name,
                          "' has no name or no candidates, expected both"));
    return 1;
  }
  for (const TunableInfo &known : context->tunables)
    if (known.name == name) {
      if (known.candidates != candidates)
        context->error(where, "dsl.tunable",
                       concat("tunable '", name,
                              "' has two lists of candidates, expected one"));
      return known.value;
    }
  TunableInfo info{std::string(name), candidates, candidates.front()};
  auto assigned = context->options.tunables.find(info.name);
  if (assigned != context->options.tunables.end())
    info.value = assigned->second;
  context->tunables.push_back(info);
  return info.value;
}

} // namespace tessera
