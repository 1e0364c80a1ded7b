//===- dsl/reduce.cpp - Reductions and scans ------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera {

namespace {

tile::Order orderOf(Order order) { return static_cast<tile::Order>(order); }

/// A tensor operand and the dimensions it is combined along.
struct Reduced {
  Operand input;
  SmallVector<StringAttr> over;
};

/// Checks that every dimension of `over` is one of the tile's.
bool hasDims(TraceContext &context, Value value, ArrayRef<StringAttr> over,
             const char *what, const Arg &arg) {
  for (StringAttr dim : over)
    if (!llvm::is_contained(tile::getDims(value.getType()), dim)) {
      std::string dims = context.spellDims(value.getType());
      const char *hint = "";
      for (StringAttr own : tile::getDims(value.getType()))
        if (context.blockOf(own) == dim)
          hint = "; reduce along the block, the dim() of its coordinate";
      context.error(arg.where, "dsl.dimension",
                    concat(what, " along dimension ", context.declaredAt(dim),
                           ", which the tile made at ", spell(arg.value.site),
                           " does not have; it is ",
                           dims.empty() ? "a scalar" : "a tile" + dims, hint));
      return false;
    }
  return true;
}

std::optional<Reduced> prepare(TraceContext &context, const Arg &arg,
                               const DimList &over, const char *what) {
  Reduced reduced;
  std::optional<Operand> input = context.single(arg);
  if (!input || !context.find(over, arg.where, reduced.over))
    return std::nullopt;
  if (over.dims.empty()) {
    context.error(arg.where, "dsl.dimension",
                  concat(what, " over no dimension, expected at least one"));
    return std::nullopt;
  }
  reduced.input = *input;
  if (!hasDims(context, input->value, reduced.over, what, arg))
    return std::nullopt;
  return reduced;
}

Type without(Type type, ArrayRef<StringAttr> over) {
  SmallVector<StringAttr> rest;
  for (StringAttr dim : tile::getDims(type))
    if (!llvm::is_contained(over, dim))
      rest.push_back(dim);
  return tile::getTileType(tile::getElement(type), rest);
}

enum Class : unsigned { Floats = 1, Integers = 2, Bools = 4 };

bool isOf(DType type, unsigned classes) {
  if (type == DType::Bool)
    return classes & Bools;
  return classes & (isFloat(type) ? Floats : Integers);
}

Tile wrongClass(TraceContext &context, const char *what, const Arg &arg,
                DType type) {
  return context.fail(arg.where, "dsl.type",
                      concat(what, " of a tile of ", name(type),
                             ", for which it is not defined; convert with "
                             "cast()"));
}

Tile namedReduce(const char *what, const Arg &arg, const DimList &over,
                 Order order, unsigned classes, tile::Combiner combiner,
                 tile::Combiner unsignedCombiner) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Reduced> reduced = prepare(*context, arg, over, what);
  if (!reduced)
    return context->poison(arg.where);
  auto [input, names] = *reduced;
  if (!isOf(input.dtype, classes))
    return wrongClass(*context, what, arg, input.dtype);
  auto op = context->builder.create<tile::ReduceOp>(
      context->loc(arg.where), TypeRange(without(input.value.getType(), names)),
      isUnsigned(input.dtype) ? unsignedCombiner : combiner, orderOf(order),
      ValueRange(input.value), ValueRange(), context->strings(names));
  return context->make(op.getResult(0), input.dtype, arg.where);
}

Tile namedScan(const char *what, const Arg &arg, const Dim &along,
               const ScanOptions &options, tile::Combiner combiner,
               tile::Combiner unsignedCombiner) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Reduced> reduced = prepare(*context, arg, along, what);
  if (!reduced)
    return context->poison(arg.where);
  auto [input, names] = *reduced;
  if (!isOf(input.dtype, Floats | Integers))
    return wrongClass(*context, what, arg, input.dtype);
  auto op = context->builder.create<tile::ScanOp>(
      context->loc(arg.where), TypeRange(input.value.getType()),
      isUnsigned(input.dtype) ? unsignedCombiner : combiner,
      orderOf(options.order), ValueRange(input.value), ValueRange(), names[0],
      options.exclusive, options.reverse);
  return context->make(op.getResult(0), input.dtype, arg.where);
}

Tile argReduce(const char *what, const Arg &arg, const Dim &along,
               tile::Combiner combiner, tile::Combiner unsignedCombiner) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Reduced> reduced = prepare(*context, arg, along, what);
  if (!reduced)
    return context->poison(arg.where);
  auto [input, names] = *reduced;
  if (!isOf(input.dtype, Floats | Integers))
    return wrongClass(*context, what, arg, input.dtype);
  Type type = tile::withElement(without(input.value.getType(), names),
                                context->builder.getI64Type());
  return context->make(
      context->builder.create<tile::ArgReduceOp>(
          context->loc(arg.where), type,
          isUnsigned(input.dtype) ? unsignedCombiner : combiner, input.value,
          names[0]),
      DType::I64, arg.where);
}

/// The inputs of a custom combination: of the same dimensions, with identities.
struct Custom {
  SmallVector<Value> inputs, identities;
  SmallVector<DType> dtypes;
  SmallVector<StringAttr> over;
  SmallVector<Type> elements;
};

std::optional<Custom> prepareCustom(TraceContext &context, ArrayRef<Arg> inputs,
                                    const DimList &over,
                                    ArrayRef<Arg> identities, const char *what,
                                    Site where) {
  Custom custom;
  if (inputs.empty() || inputs.size() != identities.size()) {
    context.error(where, "dsl.count",
                  concat(what, " has ", inputs.size(), " tiles and ",
                         identities.size(), " identities, expected as many"));
    return std::nullopt;
  }
  for (const Arg &arg : inputs) {
    std::optional<Operand> input = context.single(arg);
    if (!input)
      return std::nullopt;
    custom.inputs.push_back(context.fromIndex(input->value, arg.where));
    custom.dtypes.push_back(input->dtype);
  }
  context.unifyDims(custom.inputs, where);
  if (over.dims.empty() || !context.find(over, where, custom.over) ||
      !hasDims(context, custom.inputs[0], custom.over, what, inputs[0]))
    return std::nullopt;
  for (auto [arg, dtype, input] :
       llvm::zip(identities, custom.dtypes, custom.inputs)) {
    Value identity = context.operand(arg, dtype, false, "an identity");
    if (!identity)
      return std::nullopt;
    if (isa<RankedTensorType>(identity.getType())) {
      context.error(arg.where, "dsl.type",
                    "an identity has dimensions, expected a scalar");
      return std::nullopt;
    }
    custom.identities.push_back(context.fromIndex(identity, arg.where));
    custom.elements.push_back(tile::getElement(input.getType()));
  }
  return custom;
}

std::vector<Tile> poisons(TraceContext *context, size_t count, Site where) {
  std::vector<Tile> tiles;
  for (size_t i = 0; i < count; ++i)
    tiles.push_back(context ? context->poison(where) : Tile());
  return tiles;
}

} // namespace

bool buildCombiner(TraceContext &context, Region &region, ArrayRef<Type> types,
                   ArrayRef<DType> dtypes, const Combiner &combine,
                   Site where) {
  Block *block = &region.emplaceBlock();
  SmallVector<Value> left, right;
  for (Type type : types)
    left.push_back(block->addArgument(type, context.loc(where)));
  for (Type type : types)
    right.push_back(block->addArgument(type, context.loc(where)));
  bool fine = true;
  context.isolated(block, where, "a combiner", [&] {
    std::vector<Tile> lhs, rhs;
    for (auto [value, dtype] : llvm::zip(left, dtypes))
      lhs.push_back(context.make(value, dtype, where));
    for (auto [value, dtype] : llvm::zip(right, dtypes))
      rhs.push_back(context.make(value, dtype, where));
    std::vector<Tile> results = combine(lhs, rhs);
    SmallVector<Value> values;
    if (results.size() != types.size()) {
      context.error(where, "dsl.count",
                    concat("a combiner returns ", results.size(),
                           " values, expected ", types.size()));
      fine = false;
    }
    for (size_t i = 0; i < results.size() && fine; ++i) {
      Value value = context.use(results[i].value(), where);
      if (value && (results[i].dtype() != dtypes[i] ||
                    !(value = context.coerce(value, types[i], where))))
        context.error(results[i].value().site, "dsl.type",
                      concat("a combiner returns ", name(results[i].dtype()),
                             ", expected a scalar of ", name(dtypes[i])));
      fine &= bool(value);
      values.push_back(value);
    }
    context.yield(fine ? ValueRange(values) : ValueRange(), where);
  });
  return fine;
}

Tile sum(Arg a, DimList over, Order order) {
  return namedReduce("sum()", a, over, order, Floats | Integers,
                     tile::Combiner::Add, tile::Combiner::Add);
}
Tile prod(Arg a, DimList over, Order order) {
  return namedReduce("prod()", a, over, order, Floats | Integers,
                     tile::Combiner::Mul, tile::Combiner::Mul);
}
Tile max(Arg a, DimList over, Order order) {
  return namedReduce("max()", a, over, order, Floats | Integers,
                     tile::Combiner::Max, tile::Combiner::UMax);
}
Tile min(Arg a, DimList over, Order order) {
  return namedReduce("min()", a, over, order, Floats | Integers,
                     tile::Combiner::Min, tile::Combiner::UMin);
}
Tile maxNum(Arg a, DimList over, Order order) {
  return namedReduce("maxNum()", a, over, order, Floats, tile::Combiner::MaxNum,
                     tile::Combiner::MaxNum);
}
Tile minNum(Arg a, DimList over, Order order) {
  return namedReduce("minNum()", a, over, order, Floats, tile::Combiner::MinNum,
                     tile::Combiner::MinNum);
}
Tile any(Arg a, DimList over) {
  return namedReduce("any()", a, over, Order::Unordered, Bools,
                     tile::Combiner::Or, tile::Combiner::Or);
}
Tile all(Arg a, DimList over) {
  return namedReduce("all()", a, over, Order::Unordered, Bools,
                     tile::Combiner::And, tile::Combiner::And);
}

Tile mean(Arg a, DimList over, Order order) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Tile total = namedReduce("mean()", a, over, order, Floats,
                           tile::Combiner::Add, tile::Combiner::Add);
  if (!total.valid())
    return total;
  Tile count;
  for (const Dim &dim : over.dims) {
    SmallVector<StringAttr> names;
    context->find(DimList(dim), a.where, names);
    Tile size = context->make(
        context->builder.create<tile::DimSizeOp>(
            context->loc(a.where), context->builder.getIndexType(), names[0]),
        DType::I64, a.where);
    count =
        count.valid() ? Arg::at(count, a.where) * Arg::at(size, a.where) : size;
  }
  Tile divisor = cast(Arg::at(count, a.where), total.dtype());
  return Arg::at(total, a.where) / Arg::at(divisor, a.where);
}

Statistics statistics(Arg a, DimList over, Order order) {
  auto at = [&](const Tile &tile) { return Arg::at(tile, a.where); };
  Tile first = mean(a, over, order);
  Tile centered = a - at(first);
  Tile correction = mean(at(centered), over, order);
  Tile square = mean(at(at(centered) * at(centered)), over, order);
  Tile variance = at(square) - at(at(correction) * at(correction));
  // Of equal elements far from zero the difference is rounding errors alone.
  return {at(first) + at(correction), at(centered) - at(correction),
          max(at(variance), 0)};
}

Tile argMax(Arg a, const Dim &along) {
  return argReduce("argMax()", a, along, tile::Combiner::Max,
                   tile::Combiner::UMax);
}
Tile argMin(Arg a, const Dim &along) {
  return argReduce("argMin()", a, along, tile::Combiner::Min,
                   tile::Combiner::UMin);
}

Tile cumsum(Arg a, const Dim &along, ScanOptions options) {
  return namedScan("cumsum()", a, along, options, tile::Combiner::Add,
                   tile::Combiner::Add);
}
Tile cumprod(Arg a, const Dim &along, ScanOptions options) {
  return namedScan("cumprod()", a, along, options, tile::Combiner::Mul,
                   tile::Combiner::Mul);
}
Tile cummax(Arg a, const Dim &along, ScanOptions options) {
  return namedScan("cummax()", a, along, options, tile::Combiner::Max,
                   tile::Combiner::UMax);
}
Tile cummin(Arg a, const Dim &along, ScanOptions options) {
  return namedScan("cummin()", a, along, options, tile::Combiner::Min,
                   tile::Combiner::UMin);
}

std::vector<Tile> reduce(std::vector<Arg> inputs, DimList over,
                         std::vector<Arg> identities, const Combiner &combine,
                         Order order) {
  TraceContext *context = TraceContext::current();
  Site where = inputs.empty() ? Site() : inputs[0].where;
  if (!context)
    return poisons(context, inputs.size(), where);
  auto custom =
      prepareCustom(*context, inputs, over, identities, "reduce()", where);
  if (!custom)
    return poisons(context, inputs.size(), where);
  SmallVector<Type> results;
  for (Value input : custom->inputs)
    results.push_back(without(input.getType(), custom->over));
  auto op = context->builder.create<tile::ReduceOp>(
      context->loc(where), TypeRange(results), tile::Combiner::Custom,
      orderOf(order), custom->inputs, custom->identities,
      context->strings(custom->over));
  if (!buildCombiner(*context, op.getRegion(), custom->elements, custom->dtypes,
                     combine, where))
    return poisons(context, inputs.size(), where);
  std::vector<Tile> tiles;
  for (auto [value, dtype] : llvm::zip(op.getResults(), custom->dtypes))
    tiles.push_back(context->make(value, dtype, where));
  return tiles;
}

Tile reduce(Arg a, DimList over, Arg identity,
            const std::function<Tile(Tile, Tile)> &combine, Order order) {
  return reduce(
      std::vector<Arg>{a}, over, std::vector<Arg>{identity},
      [&](std::span<const Tile> left, std::span<const Tile> right) {
        return std::vector<Tile>{combine(left[0], right[0])};
      },
      order)[0];
}

std::vector<Tile> scan(std::vector<Arg> inputs, const Dim &along,
                       std::vector<Arg> identities, const Combiner &combine,
                       ScanOptions options) {
  TraceContext *context = TraceContext::current();
  Site where = inputs.empty() ? Site() : inputs[0].where;
  if (!context)
    return poisons(context, inputs.size(), where);
  auto custom =
      prepareCustom(*context, inputs, along, identities, "scan()", where);
  if (!custom)
    return poisons(context, inputs.size(), where);
  auto op = context->builder.create<tile::ScanOp>(
      context->loc(where), ValueRange(custom->inputs).getTypes(),
      tile::Combiner::Custom, orderOf(options.order), custom->inputs,
      custom->identities, custom->over[0], options.exclusive, options.reverse);
  if (!buildCombiner(*context, op.getRegion(), custom->elements, custom->dtypes,
                     combine, where))
    return poisons(context, inputs.size(), where);
  std::vector<Tile> tiles;
  for (auto [value, dtype] : llvm::zip(op.getResults(), custom->dtypes))
    tiles.push_back(context->make(value, dtype, where));
  return tiles;
}

} // namespace tessera
