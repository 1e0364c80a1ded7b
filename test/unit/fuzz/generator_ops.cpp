//===- fuzz/generator_ops.cpp - Random values ---===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "generator.h"

#include <algorithm>

namespace tessera::fuzz {

static bool isFloatElement(const std::string &element) {
  return element == "f32" || element == "f64";
}
static int64_t position(const Dims &dims, const std::string &dim) {
  return std::find(dims.begin(), dims.end(), dim) - dims.begin();
}
//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

std::string Generator::literal(const std::string &element) {
  if (element == "i1")
    return random.chance(0.5) ? "true" : "false";
  if (isFloatElement(element)) {
    static const std::vector<std::string> values = {
        "0.0", "1.0", "-1.0", "0.5", "2.0", "-0.25", "3.0", "1.25", "-0.0"};
    return random.pick(values);
  }
  return std::to_string(random.between(-3, 7));
}

Value Generator::constant(const std::string &element,
                          const std::string &literal) {
  std::string type = element == "i1" ? "" : " : " + element;
  return emit("arith.constant " + literal + type, element, {});
}

Value Generator::leaf(const std::string &element, const Dims &dims) {
  double choice = random.unit();
  if (dims.empty() && element == "index")
    return indexScalar(4, 0);
  if (dims.empty() && !scope.coordinates.empty() && choice < 0.15 &&
      element != "i1")
    return emit("tile.cast %" + random.pick(scope.coordinates).name +
                    " : index -> " + element,
                element, {});
  if (dims.empty() && choice < 0.25) {
    // A scalar parameter.
    for (const ScalarSpec &scalar : program.scalars)
      if (computeSpelling(scalar.dtype) == element)
        return {scalar.name, element, {}};
    if (element == "f32" || element == "i32" || element == "i64" ||
        element == "f64") {
      ScalarSpec scalar{fresh("s"), *parseDType(element),
                        double(random.between(-4, 9))};
      if (isFloatElement(element))
        scalar.value += 0.5;
      program.scalars.push_back(scalar);
      return {scalar.name, element, {}};
    }
  }
  if (dims.size() == 1 && choice < 0.12 && element != "i1") {
    Value iota =
        emit("tile.iota \"" + dims[0] + "\" : " + tileType("i64", dims), "i64",
             dims);
    if (element == "i64")
      return iota;
    return emit("tile.cast " + iota.ref() + " : " + iota.type() + " -> " +
                    tileType(element, dims),
                element, dims);
  }
  if (choice < 0.75)
    return load(element, dims, 0);
  return constantTile(element, dims);
}

Value Generator::constantTile(const std::string &element, const Dims &dims) {
  Value scalar = constant(element, literal(element));
  if (dims.empty())
    return scalar;
  return emit("tile.broadcast " + scalar.ref() + " : " + element + " -> " +
                  tileType(element, dims),
              element, dims);
}

Value Generator::get(const std::string &element, const Dims &dims, int depth) {
  std::vector<Value> known;
  for (const Value &value : scope.values)
    if (value.element == element && value.dims == dims)
      known.push_back(value);
  if (!known.empty() && random.chance(depth > 1 ? 0.35 : 0.6))
    return random.chance(0.5) ? known.back() : random.pick(known);
  if (depth <= 0 || budget <= 0)
    return leaf(element, dims);
  Value result;
  for (int attempt = 0; attempt < 3; ++attempt)
    if (tryOp(element, dims, depth - 1, result))
      return result;
  return elementwise(element, dims, depth - 1);
}

bool Generator::tryOp(const std::string &element, const Dims &dims, int depth,
                      Value &result) {
  switch (random.below(20)) {
  case 0:
  case 1:
  case 2:
    result = load(element, dims, depth);
    return true;
  case 3:
  case 4:
    return broadcast(element, dims, depth, result);
  case 5:
    return transpose(element, dims, depth, result);
  case 6:
    return reshape(element, dims, depth, result);
  case 7:
    return gather(element, dims, depth, result);
  case 8:
  case 9:
    return reduce(element, dims, depth, result);
  case 10:
    return scan(element, dims, depth, result);
  case 11:
    if (element == "i64")
      return argReduce(dims, depth, result);
    return sort(element, dims, depth, result);
  case 12:
    return contract(element, dims, depth, result);
  case 13:
    return random.chance(0.5) && fold(element, dims, depth, result);
  case 14:
    result = cast(element, dims, depth);
    return true;
  default:
    result = elementwise(element, dims, depth);
    return true;
  }
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

Value Generator::elementwise(const std::string &element, const Dims &dims,
                             int depth) {
  if (random.chance(0.12)) {
    Value condition = get("i1", dims, depth - 1);
    Value a = get(element, dims, depth - 1), b = get(element, dims, depth - 1);
    std::string type = tileType(element, dims);
    return emit("arith.select " + condition.ref() + ", " + a.ref() + ", " +
                    b.ref() + " : " +
                    (dims.empty() ? "" : condition.type() + ", ") + type,
                element, dims);
  }
  if (element == "i1")
    return boolOp(dims, depth);
  return isFloatElement(element) ? floatOp(element, dims, depth)
                                 : intOp(element, dims, depth);
}

Value Generator::floatOp(const std::string &element, const Dims &dims,
                         int depth) {
  static const std::vector<std::string> binary = {
      "arith.addf",   "arith.subf",  "arith.mulf",     "arith.addf",
      "arith.mulf",   "arith.divf",  "arith.maximumf", "arith.minimumf",
      "tile.max_num", "tile.min_num"};
  static const std::vector<std::string> unary = {
      "arith.negf", "math.absf",      "math.ceil",  "math.floor",
      "math.sqrt",  "math.roundeven", "math.trunc", "arith.negf"};
  static const std::vector<std::string> functions = {
      "math.cos",   "math.erf", "math.exp",   "math.exp2",
      "math.expm1", "math.log", "math.log1p", "math.log2",
      "math.rsqrt", "math.sin", "math.tanh",  "tile.sigmoid"};
  std::string type = " : " + tileType(element, dims);
  double choice = random.unit();
  Value a = get(element, dims, depth);
  if (choice < 0.6) {
    Value b = get(element, dims, depth);
    return emit(random.pick(binary) + " " + a.ref() + ", " + b.ref() + type,
                element, dims);
  }
  if (choice < 0.8)
    return emit(random.pick(unary) + " " + a.ref() + type, element, dims);
  if (choice < 0.84) {
    Value b = get(element, dims, depth), c = get(element, dims, depth);
    return emit("math.fma " + a.ref() + ", " + b.ref() + ", " + c.ref() + type,
                element, dims);
  }
  if (choice < 0.9) {
    static const std::vector<std::string> types = {"bf16", "f16", "f32",
                                                   "f8E4M3FN", "f8E5M2"};
    return emit("tile.round_to " + a.ref() + " to " + random.pick(types) + type,
                element, dims);
  }
  return emit(random.pick(functions) + " " + a.ref() + type, element, dims);
}

Value Generator::intOp(const std::string &element, const Dims &dims,
                       int depth) {
  static const std::vector<std::string> binary = {
      "arith.addi", "arith.subi",  "arith.muli",  "arith.andi",  "arith.ori",
      "arith.xori", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui",
      "tile.div",   "tile.rem",    "tile.shl",    "tile.shr"};
  std::string type = " : " + tileType(element, dims);
  Value a = get(element, dims, depth);
  if (random.chance(0.1))
    return emit("math.absi " + a.ref() + type, element, dims);
  Value b = get(element, dims, depth);
  const std::string &op = random.pick(binary);
  std::string flag =
      op.rfind("tile.", 0) == 0 && random.chance(0.3) ? " unsigned" : "";
  return emit(op + " " + a.ref() + ", " + b.ref() + flag + type, element, dims);
}

Value Generator::boolOp(const Dims &dims, int depth) {
  if (random.chance(0.25)) {
    static const std::vector<std::string> ops = {"arith.andi", "arith.ori",
                                                 "arith.xori"};
    Value a = get("i1", dims, depth), b = get("i1", dims, depth);
    return emit(random.pick(ops) + " " + a.ref() + ", " + b.ref() + " : " +
                    tileType("i1", dims),
                "i1", dims);
  }
  std::string element = mainElement;
  if (random.chance(0.3))
    element = "i64";
  Value a = get(element, dims, depth), b = get(element, dims, depth);
  static const std::vector<std::string> floats = {
      "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
      "ueq", "ugt", "uge", "ult", "ule", "une", "uno"};
  static const std::vector<std::string> ints = {
      "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
  std::string op = isFloatElement(element) ? "arith.cmpf " + random.pick(floats)
                                           : "arith.cmpi " + random.pick(ints);
  return emit(op + ", " + a.ref() + ", " + b.ref() + " : " + a.type(), "i1",
              dims);
}

Value Generator::cast(const std::string &element, const Dims &dims, int depth) {
  static const std::vector<std::string> all = {"f32", "f64", "i8", "i16",
                                               "i32", "i64", "i1", "f32"};
  std::string from = random.pick(all);
  if (from == element)
    return elementwise(element, dims, depth);
  Value input = get(from, dims, depth);
  std::string flags;
  if (random.chance(0.25))
    flags += " unsigned_from";
  if (random.chance(0.25))
    flags += " unsigned_to";
  return emit("tile.cast " + input.ref() + flags + " : " + input.type() +
                  " -> " + tileType(element, dims),
              element, dims);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

bool Generator::broadcast(const std::string &element, const Dims &dims,
                          int depth, Value &result) {
  if (dims.empty())
    return false;
  Dims from;
  for (const std::string &dim : dims)
    if (random.chance(0.5))
      from.push_back(dim);
  if (from.size() == dims.size())
    from.pop_back();
  Value input = get(element, from, depth);
  result = emit("tile.broadcast " + input.ref() + " : " + input.type() +
                    " -> " + tileType(element, dims),
                element, dims);
  return true;
}

bool Generator::transpose(const std::string &element, const Dims &dims,
                          int depth, Value &result) {
  if (dims.size() < 2)
    return false;
  Dims from = dims;
  random.shuffle(from);
  Value input = get(element, from, depth);
  result = emit("tile.transpose " + input.ref() + " : " + input.type() +
                    " -> " + tileType(element, dims),
                element, dims);
  return true;
}

/// Between a product of dimensions and its factors, or any order of them.
bool Generator::reshape(const std::string &element, const Dims &dims, int depth,
                        Value &result) {
  Dims from = dims;
  const DimSpec *product = nullptr;
  for (const DimSpec &dim : program.dims)
    if (dim.factors.size() == 2 &&
        (position(dims, dim.name) < int64_t(dims.size()) ||
         (dims.size() == 2 && position(dims, dim.factors[0]) < 2 &&
          position(dims, dim.factors[1]) < 2)))
      product = &dim;
  if (product && position(dims, product->name) < int64_t(dims.size())) {
    int64_t at = position(dims, product->name);
    for (const std::string &factor : product->factors)
      if (position(dims, factor) < int64_t(dims.size()))
        return false;
    from[at] = product->factors[0];
    from.insert(from.begin() + at + 1, product->factors[1]);
    if (random.chance(0.5))
      std::swap(from[at], from[at + 1]);
  } else if (product) {
    from = {product->name};
  } else if (dims.size() >= 2) {
    random.shuffle(from);
  } else {
    return false;
  }
  Value input = get(element, from, depth);
  result = emit("tile.reshape " + input.ref() + " : " + input.type() + " -> " +
                    tileType(element, dims),
                element, dims);
  return true;
}

bool Generator::gather(const std::string &element, const Dims &dims, int depth,
                       Value &result) {
  Dims further = furtherDims(dims);
  // The result is the indices' dimensions and then the rest of the source's.
  size_t split = static_cast<size_t>(random.between(0, int64_t(dims.size())));
  Dims indexDims(dims.begin(), dims.begin() + int64_t(split));
  Dims source(dims.begin() + int64_t(split), dims.end());
  std::string along;
  if (!further.empty())
    along = random.pick(further);
  else if (!indexDims.empty())
    along = random.pick(indexDims);
  else
    return false;
  source.insert(source.begin() + random.below(int64_t(source.size()) + 1),
                along);
  if (elements(source) > 4200)
    return false;
  Value from = get(element, source, depth);
  Value indices = get("i64", indexDims, depth);
  std::string head = "tile.gather " + from.ref() + "[" + indices.ref() +
                     "] along \"" + along + "\"";
  if (random.chance(0.4)) {
    Value fill = get(element, {}, 0);
    head += " fill(" + fill.ref() + " : " + element + ")";
  }
  result = emit(head + " : " + from.type() + ", " + indices.type() + " -> " +
                    tileType(element, dims),
                element, dims);
  return true;
}

} // namespace tessera::fuzz
