//===- dsl/shape.cpp - Shape, contraction and order -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

using namespace mlir;

namespace tessera {

static std::string spellNames(TraceContext &context,
                              ArrayRef<StringAttr> names) {
  std::string text = "[";
  for (StringAttr name : names)
    text += (name == names.front() ? "" : ", ") + context.declaredAt(name);
  return text + "]";
}

/// Expands an operand to `dims`, all of which it must not exceed.
static Tile expandTo(TraceContext &context, const Operand &operand,
                     const DimList &dims, Site where, const char *what) {
  SmallVector<StringAttr> names;
  if (!context.find(dims, where, names))
    return context.poison(where);
  Value result = context.expand(operand.value, names, where);
  if (!result)
    return context.fail(where, "dsl.dimension",
                        concat(what, " of a tile",
                               context.spellDims(operand.value.getType()),
                               " to ", spellNames(context, names),
                               ", expected all of the tile's dimensions"));
  return context.make(result, operand.dtype, where);
}

Tile full(DimList dims, Arg value) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Operand> operand = context->single(value);
  if (!operand)
    return context->poison(value.where);
  return expandTo(*context, *operand, dims, value.where, "full()");
}

Tile full(DimList dims, Arg value, DType type) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (computeType(type) != type)
    return context->fail(value.where, "dsl.type",
                         concat("full() of ", name(type),
                                ", a storage type; expected a type that tiles "
                                "compute in"));
  Value constant = context->operand(value, type, false, "full()");
  if (!constant)
    return context->poison(value.where);
  return expandTo(*context, {constant, type}, dims, value.where, "full()");
}

Tile broadcast(Arg a, DimList dims) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Operand> operand = context->single(a);
  if (!operand)
    return context->poison(a.where);
  return expandTo(*context, *operand, dims, a.where, "broadcast()");
}

Tile transpose(Arg a, DimList dims) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Operand> operand = context->single(a);
  if (!operand)
    return context->poison(a.where);
  if (dims.dims.size() != tile::getDims(operand->value.getType()).size())
    return context->fail(a.where, "dsl.dimension",
                         concat("transpose() of a tile",
                                context->spellDims(operand->value.getType()),
                                " names ", dims.dims.size(),
                                " dimensions, expected each of its own once"));
  return expandTo(*context, *operand, dims, a.where, "transpose()");
}

Tile reshape(Arg a, DimList dims) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  std::optional<Operand> operand = context->single(a);
  SmallVector<StringAttr> names;
  if (!operand || !context->find(dims, a.where, names))
    return context->poison(a.where);
  Value value = context->fromIndex(operand->value, a.where);
  Type type = tile::getTileType(tile::getElement(value.getType()), names);
  return context->make(context->builder.create<tile::ReshapeOp>(
                           context->loc(a.where), type, value),
                       operand->dtype, a.where);
}

Tile gather(Arg source, Arg indices, const Dim &along, Arg fill) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Site where = source.where;
  std::optional<Operand> from = context->single(source);
  std::optional<Operand> at = context->single(indices);
  const DimRecord *record = context->find(along, where);
  if (!from || !at || !record)
    return context->poison(where);
  if (!isInteger(at->dtype))
    return context->fail(indices.where, "dsl.type",
                         concat("the positions of gather() are ",
                                name(at->dtype), ", expected integers"));
  SmallVector<StringAttr> dims = tile::getDims(at->value.getType());
  SmallVector<StringAttr> own = tile::getDims(from->value.getType());
  if (!llvm::is_contained(own, record->name))
    return context->fail(where, "dsl.dimension",
                         concat("gather() along ",
                                context->declaredAt(record->name),
                                ", which its source does not have"));
  for (StringAttr dim : own) {
    if (dim == record->name)
      continue;
    if (llvm::is_contained(dims, dim))
      return context->fail(
          where, "dsl.dimension",
          concat("source and positions of gather() share dimension ",
                 context->declaredAt(dim),
                 ", expected none in common but the gathered one"));
    dims.push_back(dim);
  }
  Value position = at->value;
  if (!position.getType().isIndex() && at->dtype != DType::I64)
    position = context->builder.create<tile::CastOp>(
        context->loc(where),
        tile::withElement(position.getType(), context->builder.getI64Type()),
        position, isUnsigned(at->dtype), false);
  Value fillValue;
  if (fill.given()) {
    fillValue = context->operand(fill, from->dtype, false, "the fill");
    if (!fillValue)
      return context->poison(where);
    if (isa<RankedTensorType>(fillValue.getType()))
      return context->fail(fill.where, "dsl.type",
                           "the fill of gather() has dimensions, expected a "
                           "scalar");
  }
  Type type = tile::getTileType(tile::getElement(from->value.getType()), dims);
  return context->make(context->builder.create<tile::GatherOp>(
                           context->loc(where), type, from->value, position,
                           record->name, fillValue),
                       from->dtype, where);
}

Tile contract(Arg a, Arg b, DimList over, ContractOptions options) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Site where = a.where;
  SmallVector<Value> values;
  DType dtype;
  SmallVector<StringAttr> summed;
  if (!context->unifyTypes({&a, &b}, "contract()", values, dtype) ||
      !context->find(over, where, summed))
    return context->poison(where);
  if (dtype == DType::Bool)
    return context->fail(where, "dsl.type",
                         "contract() is applied to bool, expected numbers");
  SmallVector<StringAttr> lhs = tile::getDims(values[0].getType());
  SmallVector<StringAttr> rhs = tile::getDims(values[1].getType());
  for (StringAttr dim : summed)
    if (!llvm::is_contained(lhs, dim) || !llvm::is_contained(rhs, dim))
      return context->fail(
          where, "dsl.dimension",
          concat("contract() sums over ", context->declaredAt(dim),
                 ", which the ",
                 llvm::is_contained(lhs, dim) ? "right" : "left",
                 " operand does not have"));
  SmallVector<StringAttr> kept;
  for (StringAttr dim : llvm::concat<StringAttr>(lhs, rhs))
    if (!llvm::is_contained(summed, dim) && !llvm::is_contained(kept, dim))
      kept.push_back(dim);
  Value acc;
  if (options.acc.given()) {
    acc = context->operand(options.acc, dtype, false, "contract()'s acc");
    if (!acc)
      return context->poison(where);
    SmallVector<StringAttr> own = tile::getDims(acc.getType());
    if (own.size() == kept.size() &&
        std::is_permutation(own.begin(), own.end(), kept.begin()))
      kept = own;
    else if (Value expanded = context->expand(acc, kept, where))
      acc = expanded;
    else
      return context->fail(options.acc.where, "dsl.dimension",
                           concat("contract()'s acc is a tile",
                                  context->spellDims(acc.getType()),
                                  ", expected dimensions ",
                                  spellNames(*context, kept)));
  }
  Type type = tile::getTileType(tile::getElement(values[0].getType()), kept);
  return context->make(context->builder.create<tile::ContractOp>(
                           context->loc(where), type, values[0], values[1], acc,
                           context->strings(summed),
                           static_cast<tile::Order>(options.order)),
                       dtype, where);
}

Sorted sort(Arg a, const Dim &along, bool descending) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Site where = a.where;
  std::optional<Operand> input = context->single(a);
  const DimRecord *record = context->find(along, where);
  if (!input || !record)
    return {context->poison(where), context->poison(where)};
  SmallVector<StringAttr> dims = tile::getDims(input->value.getType());
  if (!llvm::is_contained(dims, record->name) || input->dtype == DType::Bool)
    return {
        context->fail(where, "dsl.dimension",
                      concat("sort() along ", context->declaredAt(record->name),
                             " of a tile of ", name(input->dtype),
                             context->spellDims(input->value.getType()),
                             ", expected numbers over that dimension")),
        context->poison(where)};
  Value positions = context->builder.create<tile::IotaOp>(
      context->loc(where),
      tile::getTileType(context->builder.getI64Type(), {record->name}),
      record->name);
  positions = context->expand(positions, dims, where);
  SmallVector<Value> inputs{input->value, positions};
  auto op = context->builder.create<tile::SortOp>(
      context->loc(where), ValueRange(inputs).getTypes(), inputs, record->name,
      descending, isUnsigned(input->dtype));
  return {context->make(op.getResult(0), input->dtype, where),
          context->make(op.getResult(1), DType::I64, where)};
}

Sorted topK(Arg a, const Dim &along, const Dim &k, bool largest) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Sorted sorted = sort(a, along, largest);
  if (!sorted.values.valid())
    return sorted;
  Tile first = iota(k);
  auto at = [&](const Tile &tile) { return Arg::at(tile, a.where); };
  return {gather(at(sorted.values), at(first), along),
          gather(at(sorted.indices), at(first), along, -1)};
}

} // namespace tessera
