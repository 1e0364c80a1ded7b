//===- dsl/memory.cpp - Views, load, store, scatter -----------------------===//
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

/// The subscripts of an access as the dialect takes them.
struct Access {
  Value view;
  SmallVector<Value> offsets;
  SmallVector<StringAttr> axisDims;
  SmallVector<int64_t> steps;
  SmallVector<bool> hasOffset;
  /// The dimensions of the access, in order.
  SmallVector<StringAttr> dims;
};

void addDim(Access &access, StringAttr dim) {
  if (!llvm::is_contained(access.dims, dim))
    access.dims.push_back(dim);
}

/// An offset as the dialect takes it: an index scalar or an i64 tile.
Value offsetOf(TraceContext &context, const detail::Value &offset, Site where) {
  Value value = context.use(offset, where);
  if (!value)
    return {};
  if (!isInteger(offset.dtype)) {
    context.error(where, "dsl.subscript",
                  concat("a view is indexed by a tile of ", name(offset.dtype),
                         ", expected integers"));
    return {};
  }
  Arg arg;
  arg.kind = Arg::Kind::Tile;
  arg.value = offset;
  arg.where = where;
  if (!isa<RankedTensorType>(value.getType()))
    return context.toIndex(arg, "a subscript");
  if (tile::getElement(value.getType()).isInteger(64) ||
      tile::getElement(value.getType()).isIndex())
    return value;
  return context.builder.create<tile::CastOp>(
      context.loc(where),
      tile::withElement(value.getType(), context.builder.getI64Type()), value,
      isUnsigned(offset.dtype), false);
}

/// Translates the subscripts; false after an error.
bool resolve(TraceContext &context, const Ref &ref, Site where,
             Access &access) {
  if (!ref.view.present) {
    context.error(
        where, "dsl.absent",
        "an optional view is used that this call leaves out; expected "
        "a test of present() before");
    return false;
  }
  access.view = context.use(ref.view.value, where);
  if (!access.view)
    return false;
  for (const Subscript &subscript : ref.subscripts) {
    StringAttr dim = context.builder.getStringAttr("");
    if (subscript.step != 0) {
      const DimRecord *record = context.find(subscript.dim, subscript.where);
      if (!record)
        return false;
      dim = record->name;
      if (llvm::is_contained(access.axisDims, dim)) {
        context.error(subscript.where, "dsl.subscript",
                      concat("two axes of a view are indexed by dimension ",
                             context.declaredAt(dim),
                             ", expected different dimensions"));
        return false;
      }
      addDim(access, dim);
    }
    bool offset = subscript.offset.kind != detail::Value::Kind::Empty;
    if (!offset && subscript.step == 0) {
      context.error(subscript.where, "dsl.no-value",
                    "a view is indexed by a tile without a value");
      return false;
    }
    if (offset) {
      Value value = offsetOf(context, subscript.offset, subscript.where);
      if (!value)
        return false;
      access.offsets.push_back(value);
      for (StringAttr name : tile::getDims(value.getType()))
        addDim(access, name);
    }
    access.axisDims.push_back(dim);
    access.steps.push_back(subscript.step);
    access.hasOffset.push_back(offset);
  }
  return true;
}

/// `value` over the dimensions of the access; null after an error.
Value fitToAccess(TraceContext &context, Value value, const Access &access,
                  Site where, const char *what) {
  if (Value fitted = context.expand(value, access.dims, where))
    return fitted;
  for (StringAttr dim : tile::getDims(value.getType()))
    if (!llvm::is_contained(access.dims, dim)) {
      std::string spanned;
      for (StringAttr own : access.dims)
        spanned += (spanned.empty() ? "" : ", ") + context.declaredAt(own);
      context.error(
          where, "dsl.dimension",
          concat(what, " has dimension ", context.declaredAt(dim),
                 ", which the access does not; it ",
                 spanned.empty() ? "is a scalar" : "spans [" + spanned + "]"));
      return {};
    }
  return {};
}

/// The mask of an access: absent (null, true) or over its dimensions.
bool maskOf(TraceContext &context, const Arg &mask, const Access &access,
            Value &result) {
  if (!mask.given())
    return true;
  result = context.operand(mask, DType::Bool, false, "a mask");
  if (result)
    result = fitToAccess(context, result, access, mask.where, "the mask");
  return bool(result);
}

tile::Bounds boundsOf(bool promised) {
  return promised ? tile::Bounds::Promised : tile::Bounds::Checked;
}

/// What store and scatter share; `create` makes the op.
template <typename Create>
void write(const Ref &ref, const Arg &value, const StoreOptions &options,
           const char *what, Create create) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return;
  Access access;
  if (ref.view.present && !ref.view.writable)
    return context->error(value.where, "dsl.read-only",
                          concat(what, " writes to a read-only view; expected "
                                       "a view whose element type is not "
                                       "const"));
  if (!resolve(*context, ref, value.where, access))
    return;
  DType dtype = computeType(ref.view.dtype);
  std::string role = concat("the value of ", what);
  Value stored = context->operand(value, dtype, false, role.c_str());
  if (!stored)
    return;
  stored = context->fromIndex(stored, value.where);
  stored = fitToAccess(*context, stored, access, value.where, role.c_str());
  Value mask;
  if (stored && maskOf(*context, options.mask, access, mask))
    create(*context, access, stored, mask);
}

void scatter(const Ref &ref, const Arg &value, const StoreOptions &options,
             const char *what, tile::Combiner combiner,
             tile::Combiner unsignedCombiner) {
  if (TraceContext *context = TraceContext::current();
      context && ref.view.dtype == DType::Bool)
    return context->error(value.where, "dsl.type",
                          concat(what, " writes to a view of bool, expected "
                                       "numbers"));
  write(ref, value, options, what,
        [&](TraceContext &context, Access &access, Value stored, Value mask) {
          context.builder.create<tile::ScatterOp>(
              context.loc(value.where),
              isUnsigned(ref.view.dtype) ? unsignedCombiner : combiner, stored,
              access.view, access.offsets, mask,
              context.strings(access.axisDims), access.steps, access.hasOffset,
              boundsOf(options.promised));
        });
}

} // namespace

Extent ViewBase::extent(int axis, std::source_location where) const {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  if (!state.present)
    return context->fail(
        where, "dsl.absent",
        "the extent of an optional view is asked that this "
        "call leaves out; expected a test of present() before");
  if (axis < 0 || axis >= state.rank)
    return context->fail(
        where, "dsl.axis",
        state.rank == 0
            ? concat("axis ", axis, " of a view without axes")
            : concat("axis ", axis, " of a view with ", state.rank,
                     state.rank == 1
                         ? " axis, expected 0"
                         : concat(" axes, expected 0 to ", state.rank - 1)));
  Value view = context->use(state.value, where);
  if (!view)
    return context->poison(where);
  return context->make(
      context->builder.create<tile::ExtentOp>(
          context->loc(where), context->builder.getIndexType(), view, axis),
      DType::I64, where);
}

Tile load(const Ref &ref, LoadOptions options, std::source_location where) {
  TraceContext *context = TraceContext::current();
  if (!context)
    return {};
  Access access;
  if (!resolve(*context, ref, where, access))
    return context->poison(where);
  DType dtype = computeType(ref.view.dtype);
  Value fill, mask;
  if (options.fill.given()) {
    fill = context->operand(options.fill, dtype, false, "the fill of load()");
    if (!fill)
      return context->poison(where);
    if (isa<RankedTensorType>(fill.getType()))
      return context->fail(options.fill.where, "dsl.type",
                           "the fill of load() has dimensions, expected a "
                           "scalar");
    fill = context->fromIndex(fill, where);
  }
  if (!maskOf(*context, options.mask, access, mask))
    return context->poison(where);
  Type type = tile::getTileType(context->computeIRType(dtype), access.dims);
  Value result = context->builder.create<tile::LoadOp>(
      context->loc(where), type, access.view, access.offsets, fill, mask,
      context->strings(access.axisDims), access.steps, access.hasOffset,
      boundsOf(options.promised));
  return context->make(result, dtype, where);
}

void store(const Ref &ref, Arg value, StoreOptions options) {
  write(ref, value, options, "store()",
        [&](TraceContext &context, Access &access, Value stored, Value mask) {
          context.builder.create<tile::StoreOp>(
              context.loc(value.where), stored, access.view, access.offsets,
              mask, context.strings(access.axisDims), access.steps,
              access.hasOffset, boundsOf(options.promised));
        });
}

void scatterAdd(const Ref &ref, Arg value, StoreOptions options) {
  scatter(ref, value, options, "scatterAdd()", tile::Combiner::Add,
          tile::Combiner::Add);
}
void scatterMax(const Ref &ref, Arg value, StoreOptions options) {
  scatter(ref, value, options, "scatterMax()", tile::Combiner::Max,
          tile::Combiner::UMax);
}
void scatterMin(const Ref &ref, Arg value, StoreOptions options) {
  scatter(ref, value, options, "scatterMin()", tile::Combiner::Min,
          tile::Combiner::UMin);
}

} // namespace tessera
