//===- dsl/tile.cpp - Tiles, dimensions, subscripts -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// Tile
//===----------------------------------------------------------------------===//

void Tile::link() {
  if (TraceContext *context = TraceContext::current())
    context->live.add(this, context->nextIdentity++);
}

Tile::Tile() { link(); }
Tile::Tile(const Tile &other) : state(other.state) { link(); }
Tile::Tile(const detail::Value &value) : state(value) { link(); }
Tile::~Tile() { LiveTiles::remove(this); }

Tile &Tile::operator=(const Tile &other) {
  state = other.state;
  // A tile made outside of any trace joins the one that assigns it.
  if (identity == 0)
    link();
  return *this;
}

std::vector<std::string> Tile::dims() const {
  std::vector<std::string> names;
  TraceContext *context = TraceContext::current();
  if (context && valid())
    if (mlir::Value value = context->use(state, state.site))
      for (StringAttr name : tile::getDims(value.getType()))
        names.push_back(name.str());
  return names;
}

Tile &Tile::operator+=(Arg other) {
  return *this = Arg::at(*this, other.where) + other;
}
Tile &Tile::operator-=(Arg other) {
  return *this = Arg::at(*this, other.where) - other;
}
Tile &Tile::operator*=(Arg other) {
  return *this = Arg::at(*this, other.where) * other;
}
Tile &Tile::operator/=(Arg other) {
  return *this = Arg::at(*this, other.where) / other;
}
Tile &Tile::operator&=(Arg other) {
  return *this = Arg::at(*this, other.where) & other;
}
Tile &Tile::operator|=(Arg other) {
  return *this = Arg::at(*this, other.where) | other;
}

detail::Value detail::constantOf(const Arg &number) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Operand constant = context->literal(number);
  return context->makeValue(constant.value, constant.dtype, number.where);
}

detail::Value detail::positionOf(int64_t position, Site where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  return context->makeValue(
      context->integer(position, context->builder.getIndexType(), where),
      DType::I64, where);
}

//===----------------------------------------------------------------------===//
// Dim, Blocks, Coord
//===----------------------------------------------------------------------===//

Extent Dim::size(std::source_location where) const {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  const DimRecord *record = context->find(*this, where);
  if (!record)
    return context->poison(where);
  mlir::Value size = context->builder.create<tile::DimSizeOp>(
      context->loc(where), context->builder.getIndexType(), record->name);
  return context->make(size, DType::I64, where);
}

std::string Dim::name() const {
  TraceContext *context = TraceContext::current();
  if (!context || !handle || trace != context->id)
    return "";
  return static_cast<const DimRecord *>(handle)->name.str();
}

/// A dimension on which every use is silent, for an error already reported.
static Dim poisonDim(TraceContext &context, Site where) {
  Dim dim;
  dim.trace = context.id;
  dim.site = where;
  return dim;
}

Dim dim(std::string_view name, Arg extent) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (name.empty()) {
    context->error(extent.where, "dsl.dimension",
                   "a dimension has an empty name, expected one for readers");
    name = "dim";
  }
  if ((extent.kind == Arg::Kind::Integer && extent.integer < 0)) {
    context->error(extent.where, "dsl.dimension",
                   concat("dimension '", name, "' has extent ", extent.integer,
                          ", expected at least 0"));
    return poisonDim(*context, extent.where);
  }
  mlir::Value size = context->toIndex(extent, "the extent of a dimension");
  if (!size)
    return poisonDim(*context, extent.where);
  return context->declare(name, size, extent.where);
}

Blocks blocks(const Dim &whole, Arg size) {
  Blocks result;
  result.site = size.where;
  TraceContext *context = TraceContext::current();
  if (!context)
    return result;
  const DimRecord *record = context->find(whole, size.where);
  if (size.kind == Arg::Kind::Integer && size.integer <= 0) {
    context->error(
        size.where, "dsl.dimension",
        concat("the block size is ", size.integer, ", expected at least 1"));
    record = nullptr;
  }
  mlir::Value step =
      record ? context->toIndex(size, "the block size") : mlir::Value();
  if (!step) {
    result.outer = result.inner = poisonDim(*context, size.where);
    result.step = result.total = context->poison(size.where);
    return result;
  }
  result.step = context->make(step, DType::I64, size.where);
  result.total =
      context->make(context->builder.create<tile::DimSizeOp>(
                        context->loc(size.where),
                        context->builder.getIndexType(), record->name),
                    DType::I64, size.where);
  // Both are above zero: the form that the bounds of dimensions understand.
  Tile sum =
      Arg::at(result.total, size.where) + Arg::at(result.step, size.where);
  Tile count = Arg::at(Arg::at(sum, size.where) - 1, size.where) /
               Arg::at(result.step, size.where);
  result.outer =
      dim(record->name.str() + "_blocks", Arg::at(count, size.where));
  result.inner = context->declare(record->name.str() + "_block", step,
                                  size.where, record->name);
  return result;
}

Coord TraceContext::coordinate(const Axis &axis, mlir::Value position) {
  Coord coord;
  coord.axis = axis.isBlock ? axis.inner : axis.dim;
  coord.isBlock = axis.isBlock;
  if (!position) {
    coord.position = coord.start = coord.total = poison(axis.where).value();
    return coord;
  }
  coord.position = makeValue(position, DType::I64, axis.where);
  if (axis.isBlock) {
    coord.total = axis.total;
    if (mlir::Value step = use(axis.step, axis.where))
      coord.start = makeValue(
          builder.create<arith::MulIOp>(loc(axis.where), position, step),
          DType::I64, axis.where);
  }
  return coord;
}

Tile index(const Coord &coord, std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (!coord.isBlock)
    return Tile(coord.position);
  return iota(coord.axis, where) + Arg(Tile(coord.start), where);
}

Tile inside(const Coord &block, std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (!block.isBlock)
    return context->fail(where, "dsl.type",
                         "inside() is asked of a coordinate that is no block");
  return Arg(index(block, where), where) < Arg(Tile(block.total), where);
}

Tile iota(const Dim &dim, std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  const DimRecord *record = context->find(dim, where);
  if (!record)
    return context->poison(where);
  Type type = tile::getTileType(context->builder.getI64Type(), {record->name});
  return context->make(context->builder.create<tile::IotaOp>(
                           context->loc(where), type, record->name),
                       DType::I64, where);
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

Subscript::Subscript(const Coord &coord, Location where) : where(where) {
  if (coord.isBlock) {
    dim = coord.axis;
    step = 1;
    offset = coord.start;
  } else {
    offset = coord.position;
  }
}

DimExpr operator*(int64_t step, const DimExpr &expr) {
  DimExpr result = expr;
  TraceContext *context = TraceContext::current();
  if (!context)
    return result;
  if (step == 0 || expr.step * step / step != expr.step) {
    context->error(expr.where, "dsl.subscript",
                   concat("a dimension is multiplied by ", step,
                          ", expected a small number other than 0"));
    result.dim = poisonDim(*context, expr.where);
    return result;
  }
  result.step *= step;
  if (expr.offset.kind != detail::Value::Kind::Empty)
    result.offset = (Arg::at(Tile(expr.offset), expr.where) * step).value();
  return result;
}
DimExpr operator*(const DimExpr &expr, int64_t step) { return step * expr; }

DimExpr operator+(const DimExpr &expr, Arg offset) {
  DimExpr result = expr;
  if (expr.offset.kind != detail::Value::Kind::Empty)
    result.offset = (Arg::at(Tile(expr.offset), offset.where) + offset).value();
  else if (offset.kind == Arg::Kind::Integer)
    result.offset = detail::positionOf(offset.integer, offset.where);
  else
    result.offset = offset.kind == Arg::Kind::Tile ? offset.value
                                                   : detail::constantOf(offset);
  result.where = offset.where;
  return result;
}
DimExpr operator+(Arg offset, const DimExpr &expr) { return expr + offset; }
DimExpr operator-(const DimExpr &expr, Arg offset) { return expr + -offset; }

} // namespace tessera
