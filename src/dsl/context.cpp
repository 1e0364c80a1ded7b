//===- dsl/context.cpp - The trace in progress ----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values, constants, dimensions and diagnostics of a trace. Regions are in
// region.cpp.
//
//===----------------------------------------------------------------------===//

#include "dsl/context.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <atomic>
#include <cmath>

using namespace mlir;

namespace tessera {

// The public enums and the dialect's are converted by value.
static_assert(int(Order::Unordered) == int(tile::Order::Unordered) &&
              int(Order::Tree) == int(tile::Order::Tree) &&
              int(Order::Left) == int(tile::Order::Left) &&
              int(Order::Right) == int(tile::Order::Right));
static_assert(int(Tier::Strict) == int(tile::Tier::Strict) &&
              int(Tier::Default) == int(tile::Tier::Default) &&
              int(Tier::Fast) == int(tile::Tier::Fast));

static thread_local TraceContext *currentContext = nullptr;

static uint64_t newTraceId() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

TraceContext *TraceContext::current() { return currentContext; }

TraceContext::TraceContext(MLIRContext &context, const TraceOptions &options)
    : mlir(context), options(options), builder(&context), id(newTraceId()),
      enclosing(currentContext) {
  currentContext = this;
}

TraceContext::~TraceContext() {
  live.clear();
  for (Operation *op : retired)
    op->destroy();
  currentContext = enclosing;
}

//===----------------------------------------------------------------------===//
// Live tiles
//===----------------------------------------------------------------------===//

void LiveTiles::add(Tile *tile, uint64_t identity) {
  tile->identity = identity;
  tile->next = first;
  tile->slot = &first;
  if (first)
    first->slot = &tile->next;
  first = tile;
}

void LiveTiles::remove(Tile *tile) {
  if (tile->slot)
    *tile->slot = tile->next;
  if (tile->next)
    tile->next->slot = tile->slot;
  tile->next = nullptr;
  tile->slot = nullptr;
  tile->identity = 0;
}

void LiveTiles::clear() {
  while (first)
    remove(first);
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

std::string spell(Site site) { return concat(site.file, ":", site.line); }

void TraceContext::error(Site where, const char *code, std::string message) {
  diagnostics.push_back({ErrorFamily::Diagnostic,
                         code,
                         std::move(message),
                         {where.file, where.line, where.column}});
}

Tile TraceContext::fail(Site where, const char *code, std::string message) {
  error(where, code, std::move(message));
  return poison(where);
}

Tile TraceContext::poison(Site where) {
  detail::Value value;
  value.kind = detail::Value::Kind::Poison;
  value.trace = id;
  value.site = where;
  return Tile(value);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Location TraceContext::loc(Site where) {
  return FileLineColLoc::get(&mlir, where.file, where.line, where.column);
}

Type TraceContext::computeIRType(DType type) {
  switch (computeType(type)) {
  case DType::Bool:
    return builder.getI1Type();
  case DType::F64:
    return builder.getF64Type();
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64:
    return builder.getIntegerType(8 * sizeInBytes(type));
  case DType::F32:
  case DType::F16:
  case DType::BF16:
  case DType::F8E4M3:
  case DType::F8E5M2:
    break;
  }
  return builder.getF32Type();
}

Type TraceContext::storageIRType(DType type) {
  if (isUnsigned(type))
    return IntegerType::get(&mlir, 8 * sizeInBytes(type),
                            IntegerType::Unsigned);
  switch (type) {
  case DType::F16:
    return builder.getF16Type();
  case DType::BF16:
    return builder.getBF16Type();
  case DType::F8E4M3:
    return builder.getFloat8E4M3FNType();
  case DType::F8E5M2:
    return builder.getFloat8E5M2Type();
  default: // Every other type is stored as it computes.
    return computeIRType(type);
  }
}

detail::Value TraceContext::makeValue(Value value, DType dtype, Site where) {
  return {value.getAsOpaquePointer(), id, dtype, detail::Value::Kind::Defined,
          where};
}

Tile TraceContext::make(Value value, DType dtype, Site where) {
  return Tile(makeValue(value, dtype, where));
}

Value TraceContext::use(const detail::Value &value, Site where) {
  switch (value.kind) {
  case detail::Value::Kind::Poison:
    return {};
  case detail::Value::Kind::Empty:
    error(where, "dsl.no-value",
          "a tile is used before it is assigned a value");
    return {};
  case detail::Value::Kind::Defined:
    break;
  }
  if (value.trace != id) {
    error(where, "dsl.other-trace",
          concat("a tile made at ", spell(value.site),
                 " belongs to another trace; expected one made while this "
                 "kernel is traced"));
    return {};
  }
  Value ir = Value::getFromOpaquePointer(value.handle);
  for (auto it = forwarded.find(ir); it != forwarded.end();
       it = forwarded.find(ir))
    ir = it->second;
  Region *defined = ir.getParentRegion();
  Region *here = builder.getInsertionBlock()->getParent();
  if (!defined || !defined->isAncestor(here)) {
    error(where, "dsl.out-of-scope",
          concat("a value made at ", spell(value.site),
                 " belongs to a region that has ended; expected a value made "
                 "outside of it, or a tile that the region carries"));
    return {};
  }
  return ir;
}

Value TraceContext::integer(int64_t value, Type type, Site where) {
  return builder.create<arith::ConstantOp>(
      loc(where), cast<TypedAttr>(builder.getIntegerAttr(type, value)));
}

Value TraceContext::constant(double value, DType type, Site where) {
  Type ir = computeIRType(type);
  if (isFloat(type))
    return builder.create<arith::ConstantOp>(
        loc(where), cast<TypedAttr>(builder.getFloatAttr(ir, value)));
  return integer(int64_t(value), ir, where);
}

Operand TraceContext::literal(const Arg &arg) {
  switch (arg.kind) {
  case Arg::Kind::Bool:
    return {integer(arg.integer, builder.getI1Type(), arg.where), DType::Bool};
  case Arg::Kind::Float: {
    DType type = computeType(options.storage);
    return {constant(arg.real, type, arg.where), type};
  }
  default:
    return {integer(arg.integer, builder.getI64Type(), arg.where), DType::I64};
  }
}

/// True when an integer type can hold the number.
static bool fits(const Arg &arg, DType type) {
  if (arg.kind == Arg::Kind::Unsigned && arg.integer < 0)
    return type == DType::U64;
  int bits = 8 * int(sizeInBytes(type));
  if (isUnsigned(type))
    return arg.integer >= 0 && (bits == 64 || arg.integer < (1LL << bits));
  return bits == 64 || (arg.integer >= -(1LL << (bits - 1)) &&
                        arg.integer < (1LL << (bits - 1)));
}

Value TraceContext::operand(const Arg &arg, DType type, bool asIndex,
                            const char *what) {
  auto mismatch = [&](const char *found) {
    error(
        arg.where, "dsl.type",
        concat("operand of ", what, " is ", found, ", expected ", name(type)));
    return Value();
  };
  switch (arg.kind) {
  case Arg::Kind::Absent:
    return {};
  case Arg::Kind::Tile: {
    Value value = use(arg.value, arg.where);
    if (!value || arg.value.dtype == type)
      return value;
    bool isCast = type != DType::Bool && arg.value.dtype != DType::Bool;
    error(arg.where, "dsl.type",
          concat("operand of ", what, " is ", name(arg.value.dtype),
                 ", expected ", name(type),
                 isCast ? "; convert with cast()" : ""));
    return {};
  }
  case Arg::Kind::Bool:
    if (type != DType::Bool)
      return mismatch("a bool");
    return integer(arg.integer, builder.getI1Type(), arg.where);
  case Arg::Kind::Float:
    if (!isFloat(type))
      return mismatch("a floating number");
    if (type == DType::F32 && std::isfinite(arg.real) &&
        std::isinf(static_cast<float>(arg.real)))
      return mismatch("a number out of range");
    return constant(arg.real, type, arg.where);
  case Arg::Kind::Integer:
  case Arg::Kind::Unsigned:
    if (isFloat(type))
      return constant(arg.kind == Arg::Kind::Unsigned
                          ? double(uint64_t(arg.integer))
                          : double(arg.integer),
                      type, arg.where);
    if (type == DType::Bool)
      return mismatch("an integer");
    if (!fits(arg, type))
      return mismatch("a number out of range");
    return integer(arg.integer,
                   asIndex ? builder.getIndexType() : computeIRType(type),
                   arg.where);
  }
  return {};
}

Value TraceContext::fromIndex(Value value, Site where) {
  Type type = value.getType();
  if (!tile::getElement(type).isIndex())
    return value;
  return builder.create<tile::CastOp>(
      loc(where), tile::withElement(type, builder.getI64Type()), value,
      /*unsigned_from=*/false, /*unsigned_to=*/false);
}

Value TraceContext::toIndex(const Arg &arg, const char *what) {
  if (arg.kind != Arg::Kind::Tile) {
    if (arg.kind == Arg::Kind::Integer || arg.kind == Arg::Kind::Unsigned)
      return integer(arg.integer, builder.getIndexType(), arg.where);
    error(arg.where, "dsl.type",
          concat(what, " is not an integer; expected an integer or a scalar "
                       "integer tile"));
    return {};
  }
  Value value = use(arg.value, arg.where);
  if (!value)
    return {};
  if (!isInteger(arg.value.dtype) || isa<RankedTensorType>(value.getType())) {
    error(arg.where, "dsl.type",
          concat(what, " is ", name(arg.value.dtype),
                 spellDims(value.getType()), ", expected a scalar integer"));
    return {};
  }
  if (value.getType().isIndex())
    return value;
  return builder.create<tile::CastOp>(loc(arg.where), builder.getIndexType(),
                                      value, isUnsigned(arg.value.dtype),
                                      /*unsigned_to=*/false);
}

std::optional<Operand> TraceContext::single(const Arg &arg) {
  if (arg.kind != Arg::Kind::Tile)
    return literal(arg);
  Value value = use(arg.value, arg.where);
  if (!value)
    return std::nullopt;
  return Operand{value, arg.value.dtype};
}

bool TraceContext::unifyTypes(ArrayRef<const Arg *> args, const char *what,
                              SmallVectorImpl<Value> &values, DType &dtype) {
  const Arg *first = nullptr;
  bool allIndex = true;
  for (const Arg *arg : args) {
    if (arg->kind != Arg::Kind::Tile)
      continue;
    Value value = use(arg->value, arg->where);
    if (!value)
      return false;
    allIndex &= value.getType().isIndex();
    if (first && first->value.dtype != arg->value.dtype) {
      error(arg->where, "dsl.type",
            concat("operands of ", what, " are ", name(first->value.dtype),
                   " (made at ", spell(first->value.site), ") and ",
                   name(arg->value.dtype), " (made at ", spell(arg->value.site),
                   "); expected one type, convert with cast()"));
      return false;
    }
    if (!first)
      first = arg;
  }
  if (first) {
    dtype = first->value.dtype;
  } else {
    allIndex = false;
    dtype = literal(*args[0]).dtype;
    for (const Arg *arg : args)
      if (arg->kind == Arg::Kind::Float)
        dtype = computeType(options.storage);
  }
  for (const Arg *arg : args) {
    Value value = operand(*arg, dtype, allIndex, what);
    if (!value)
      return false;
    values.push_back(allIndex ? value : fromIndex(value, arg->where));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Dimensions of values
//===----------------------------------------------------------------------===//

void TraceContext::unifyDims(SmallVectorImpl<Value> &values, Site where) {
  // The order of the value with the most dimensions, then what it lacks.
  SmallVector<StringAttr> dims;
  for (Value value : values)
    if (auto own = tile::getDims(value.getType()); own.size() > dims.size())
      dims = own;
  for (Value value : values)
    for (StringAttr dim : tile::getDims(value.getType()))
      if (!llvm::is_contained(dims, dim))
        dims.push_back(dim);
  for (Value &value : values)
    value = expand(value, dims, where);
}

Value TraceContext::expand(Value value, ArrayRef<StringAttr> dims, Site where) {
  Type type = value.getType();
  SmallVector<StringAttr> own = tile::getDims(type), kept;
  if (ArrayRef<StringAttr>(own) == dims)
    return value;
  for (StringAttr dim : dims)
    if (llvm::is_contained(own, dim))
      kept.push_back(dim);
  if (kept.size() != own.size())
    return {};
  value = fromIndex(value, where);
  Type element = tile::getElement(value.getType());
  if (kept != own)
    value = builder.create<tile::TransposeOp>(
        loc(where), tile::getTileType(element, kept), value);
  if (kept.size() != dims.size())
    value = builder.create<tile::BroadcastOp>(
        loc(where), tile::getTileType(element, dims), value);
  return value;
}

Value TraceContext::coerce(Value value, Type type, Site where) {
  if (value.getType() == type)
    return value;
  Type from = tile::getElement(value.getType());
  Type to = tile::getElement(type);
  value = expand(value, tile::getDims(type), where);
  if (!value || value.getType() == type)
    return value;
  bool related = (from.isIndex() && to.isInteger(64)) ||
                 (from.isInteger(64) && to.isIndex());
  if (!related)
    return {};
  return builder.create<tile::CastOp>(loc(where), type, value, false, false);
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

Dim TraceContext::declare(std::string_view name, Value extent, Site where,
                          StringAttr blockOf) {
  auto taken = [&](const std::string &candidate) {
    return llvm::any_of(
        dims, [&](auto &dim) { return dim->name.getValue() == candidate; });
  };
  std::string unique(name);
  for (int suffix = 1; taken(unique); ++suffix)
    unique = concat(name, "_", suffix);
  auto record = std::make_unique<DimRecord>();
  record->name = builder.getStringAttr(unique);
  record->site = where;
  record->blockOf = blockOf;
  record->op = builder.create<tile::DimOp>(loc(where), record->name, extent);
  Dim dim;
  dim.handle = record.get();
  dim.trace = id;
  dim.site = where;
  dims.push_back(std::move(record));
  return dim;
}

const DimRecord *TraceContext::find(const Dim &dim, Site where) {
  if (!dim.handle) {
    // A dimension that failed to be declared has a trace and no record.
    if (dim.trace == 0)
      error(where, "dsl.no-dimension",
            "a dimension is used before dim() gives it one");
    return nullptr;
  }
  if (dim.trace != id) {
    error(where, "dsl.other-trace",
          concat("the dimension declared at ", spell(dim.site),
                 " belongs to another trace; declare it inside this kernel"));
    return nullptr;
  }
  auto *record = static_cast<const DimRecord *>(dim.handle);
  Region *here = builder.getInsertionBlock()->getParent();
  if (!record->op->getParentRegion()->isAncestor(here)) {
    error(where, "dsl.out-of-scope",
          concat("dimension '", record->name.getValue(), "' declared at ",
                 spell(record->site),
                 " belongs to a region that has ended; declare it outside"));
    return nullptr;
  }
  return record;
}

bool TraceContext::find(const DimList &list, Site where,
                        SmallVectorImpl<StringAttr> &names) {
  for (const Dim &dim : list.dims) {
    const DimRecord *record = find(dim, where);
    if (!record)
      return false;
    if (llvm::is_contained(names, record->name)) {
      error(where, "dsl.dimension",
            concat("dimension '", record->name.getValue(),
                   "' is named twice, expected once"));
      return false;
    }
    names.push_back(record->name);
  }
  return true;
}

StringAttr TraceContext::blockOf(StringAttr name) {
  for (auto &dim : dims)
    if (dim->name == name)
      return dim->blockOf;
  return {};
}

std::string TraceContext::declaredAt(StringAttr name) {
  for (auto &dim : dims)
    if (dim->name == name)
      return concat("'", name.getValue(), "' (declared at ", spell(dim->site),
                    ")");
  return name.str();
}

std::string TraceContext::spellDims(Type tile) {
  SmallVector<StringAttr> names = tile::getDims(tile);
  if (names.empty())
    return "";
  std::string text = " over [";
  for (StringAttr name : names)
    text += (name == names.front() ? "" : ", ") + name.str();
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Operation *TraceContext::create(StringRef name, Site where, ValueRange operands,
                                TypeRange results,
                                ArrayRef<NamedAttribute> attributes,
                                unsigned regions) {
  OperationState state(loc(where), name);
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(attributes);
  for (unsigned i = 0; i < regions; ++i)
    state.addRegion();
  return builder.create(state);
}

void TraceContext::yield(ValueRange values, Site where) {
  create("tile.yield", where, values, {});
}

ArrayAttr TraceContext::strings(ArrayRef<StringAttr> names) {
  return builder.getArrayAttr(
      SmallVector<Attribute>(names.begin(), names.end()));
}

} // namespace tessera
