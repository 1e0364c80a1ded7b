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
static std::string quotedList(const Dims &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", \"" : "\"") + dims[i] + "\"";
  return text + "]";
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
    Value iota = emit("tile.iota \"" + dims[0] + "\" : " +
                          tileType("i64", dims),
                      "i64", dims);
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
      "arith.addf",     "arith.subf",     "arith.mulf",   "arith.addf",
      "arith.mulf",     "arith.divf",     "arith.maximumf",
      "arith.minimumf", "tile.max_num",   "tile.min_num"};
  static const std::vector<std::string> unary = {
      "arith.negf", "math.absf",      "math.ceil",  "math.floor",
      "math.sqrt",  "math.roundeven", "math.trunc", "arith.negf"};
  static const std::vector<std::string> functions = {
      "math.cos",  "math.erf",  "math.exp",  "math.exp2", "math.expm1",
      "math.log",  "math.log1p", "math.log2", "math.rsqrt", "math.sin",
      "math.tanh", "tile.sigmoid"};
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
#ifdef AVOID
  if (element == "f64" && choice < 0.9)
    choice = 1;
#endif
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
      "arith.addi",  "arith.subi",  "arith.muli",  "arith.andi", "arith.ori",
      "arith.xori",  "arith.maxsi", "arith.minsi", "arith.maxui",
      "arith.minui", "tile.div",    "tile.rem",    "tile.shl",   "tile.shr"};
  std::string type = " : " + tileType(element, dims);
  Value a = get(element, dims, depth);
  if (random.chance(0.1))
    return emit("math.absi " + a.ref() + type, element, dims);
  Value b = get(element, dims, depth);
  const std::string &op = random.pick(binary);
  std::string flag =
      op.rfind("tile.", 0) == 0 && random.chance(0.3) ? " unsigned" : "";
  return emit(op + " " + a.ref() + ", " + b.ref() + flag + type, element,
              dims);
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
  std::string op = isFloatElement(element)
                       ? "arith.cmpf " + random.pick(floats)
                       : "arith.cmpi " + random.pick(ints);
  return emit(op + ", " + a.ref() + ", " + b.ref() + " : " + a.type(), "i1",
              dims);
}

Value Generator::cast(const std::string &element, const Dims &dims,
                      int depth) {
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

/// Between "ab" and its factors, or any order of them.
bool Generator::reshape(const std::string &element, const Dims &dims,
                        int depth, Value &result) {
  Dims from = dims;
  if (int64_t at = position(dims, "ab"); at < int64_t(dims.size())) {
    if (position(dims, "a") < int64_t(dims.size()) ||
        position(dims, "b") < int64_t(dims.size()))
      return false;
    from[at] = "a";
    from.insert(from.begin() + at + random.below(2), "b");
    std::sort(from.begin() + at, from.begin() + at + 2);
    if (random.chance(0.5))
      std::swap(from[at], from[at + 1]);
  } else if (program.findDim("ab") && dims.size() == 2 &&
             position(dims, "a") < 2 && position(dims, "b") < 2) {
    from = {"ab"};
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
#ifdef AVOID
  if (dims.empty())
    return false;
#endif
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

//===----------------------------------------------------------------------===//
// Reductions and order
//===----------------------------------------------------------------------===//

std::string Generator::namedCombiner(const std::string &element) {
  static const std::vector<std::string> floats = {
      "add", "max", "min", "add", "mul", "max_num", "min_num"};
  static const std::vector<std::string> ints = {
      "add", "mul", "max", "min", "umax", "umin", "and", "or", "xor"};
  static const std::vector<std::string> bools = {"and", "or", "xor"};
  return isFloatElement(element) ? random.pick(floats)
         : element == "i1"       ? random.pick(bools)
                                 : random.pick(ints);
}

std::string Generator::order() {
  static const std::vector<std::string> orders = {
      "unordered", "unordered", "unordered", "left", "right", "tree"};
  return random.pick(orders);
}

Generator::Combine Generator::combineRegion(const std::vector<Value> &types,
                                            bool lawful) {
  Combine combine;
  std::vector<Value> left, right;
  for (const Value &type : types)
    left.push_back({fresh("l"), type.element, type.dims});
  for (const Value &type : types)
    right.push_back({fresh("r"), type.element, type.dims});
  combine.header = "^bb0(";
  for (const std::vector<Value> *side : {&left, &right})
    for (const Value &value : *side)
      combine.header += (combine.header.back() == '(' ? "" : ", ") +
                        value.ref() + ": " + value.type();
  combine.header += "):";
  std::vector<std::pair<std::string, std::string>> laws; // op, identity
  for (const Value &type : types) {
    bool isFloat = isFloatElement(type.element);
    switch (random.below(type.element == "i1" ? 1 : 3)) {
    case 0:
      laws.push_back(type.element == "i1" ? std::pair("arith.xori", "false")
                     : isFloat            ? std::pair("arith.addf", "0.0")
                                          : std::pair("arith.addi", "0"));
      break;
    case 1:
      laws.push_back(isFloat ? std::pair("arith.mulf", "1.0")
                             : std::pair("arith.xori", "0"));
      break;
    default:
      if (isFloat)
        laws.push_back({"arith.maximumf",
                        type.element == "f64" ? "0xFFF0000000000000"
                                              : "0xFF800000"});
      else
        laws.push_back({"arith.andi", "-1"});
    }
  }
  for (size_t i = 0; i < types.size(); ++i) {
    Value identity = constant(types[i].element, laws[i].second);
    if (!types[i].dims.empty())
      identity = emit("tile.broadcast " + identity.ref() + " : " +
                          identity.element + " -> " + types[i].type(),
                      types[i].element, types[i].dims);
    combine.identities.push_back(identity);
  }
  Block *outer = block;
  Scope saved = scope;
  block = &combine.body;
  std::string yield = "tile.yield ", names, list;
  for (size_t i = 0; i < types.size(); ++i) {
    Value value = emit(laws[i].first + " " + left[i].ref() + ", " +
                           right[i].ref() + " : " + types[i].type(),
                       types[i].element, types[i].dims);
    if (!lawful && isFloatElement(types[i].element) && random.chance(0.7)) {
      // Shows the order: 2 l + r and the like.
      static const std::vector<std::string> ops = {"arith.subf", "arith.addf",
                                                   "arith.mulf",
                                                   "arith.maximumf"};
      value = emit(random.pick(ops) + " " + value.ref() + ", " +
                       (random.chance(0.7) ? left[i] : right[i]).ref() + " : " +
                       types[i].type(),
                   types[i].element, types[i].dims);
    }
    names += (i ? ", " : "") + value.ref();
    list += (i ? ", " : "") + value.type();
  }
  block->push_back({yield + names + " : " + list, {}, true, {}, {}, {}});
  block = outer;
  scope = std::move(saved);
  return combine;
}

bool Generator::reduce(const std::string &element, const Dims &dims, int depth,
                       Value &result) {
  Dims further = furtherDims(dims);
  if (further.empty())
    return false;
  Dims over{random.pick(further)}, input = dims;
  input.insert(input.begin() + random.below(int64_t(dims.size()) + 1), over[0]);
  if (Dims more = furtherDims(input); !more.empty() && random.chance(0.25)) {
    over.push_back(random.pick(more));
    input.insert(input.begin() + random.below(int64_t(input.size()) + 1),
                 over[1]);
  }
  std::string how = order();
  if (random.chance(0.8)) {
    Value from = get(element, input, depth);
    result = emit("tile.reduce " + namedCombiner(element) + " " + how + " " +
                      from.ref() + " over " + quotedList(over) + " : " +
                      from.type() + " -> " + tileType(element, dims),
                  element, dims);
    return true;
  }
  std::vector<Value> inputs, scalars, results;
  for (int64_t i = random.between(1, 2); i > 0; --i) {
    std::string type = i == 1 ? element : randomElement();
    inputs.push_back(get(type, input, depth));
    scalars.push_back({"", type, {}});
    results.push_back({fresh("v"), type, dims});
  }
  Combine combine = combineRegion(scalars, how == "unordered");
  std::string names, identities, types, from, to;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string comma = i ? ", " : "";
    names += comma + inputs[i].ref();
    identities += comma + combine.identities[i].ref();
    types += comma + scalars[i].element;
    from += comma + inputs[i].type();
    to += comma + results[i].type();
  }
  block->push_back({"tile.reduce custom " + how + " " + names + " identity(" +
                        identities + " : " + types + ") over " +
                        quotedList(over) + " : " + from + " -> " + to +
                        " combine",
                    results,
                    false,
                    {std::move(combine.body)},
                    {combine.header},
                    {}});
  scope.values.insert(scope.values.end(), results.begin(), results.end());
  result = results.back();
  return true;
}

bool Generator::scan(const std::string &element, const Dims &dims, int depth,
                     Value &result) {
  if (dims.empty())
    return false;
  std::string how = random.chance(0.5) ? "unordered" : "left";
  std::string flags;
  if (random.chance(0.3))
    flags += " exclusive";
  if (random.chance(0.3)) {
    flags += " reverse";
#ifdef AVOID
    if (how == "left")
#else
    if (how == "left" && random.chance(0.7))
#endif
      how = "right";
  }
  std::string along = " along \"" + random.pick(dims) + "\"" + flags + " : ";
  Value input = get(element, dims, depth);
  if (random.chance(0.75)) {
    result = emit("tile.scan " + namedCombiner(element) + " " + how + " " +
                      input.ref() + along + input.type() + " -> " +
                      input.type(),
                  element, dims);
    return true;
  }
  Combine combine =
      combineRegion({Value{"", element, {}}}, how == "unordered");
  Value scanned{fresh("v"), element, dims};
  block->push_back({"tile.scan custom " + how + " " + input.ref() +
                        " identity(" + combine.identities[0].ref() + " : " +
                        element + ")" + along + input.type() + " -> " +
                        input.type() + " combine",
                    {scanned},
                    false,
                    {std::move(combine.body)},
                    {combine.header},
                    {}});
  scope.values.push_back(scanned);
  result = scanned;
  return true;
}

bool Generator::argReduce(const Dims &dims, int depth, Value &result) {
  Dims further = furtherDims(dims);
  if (further.empty())
    return false;
  std::string along = random.pick(further);
  Dims input = dims;
  input.insert(input.begin() + random.below(int64_t(dims.size()) + 1), along);
  std::string element = random.chance(0.3) ? "i32" : mainElement;
  std::vector<std::string> combiners = {"max", "min"};
  if (!isFloatElement(element))
    combiners = {"max", "min", "umax", "umin"};
  Value from = get(element, input, depth);
  result = emit("tile.arg_reduce " + random.pick(combiners) + " " +
                    from.ref() + " along \"" + along + "\" : " + from.type() +
                    " -> " + tileType("i64", dims),
                "i64", dims);
  return true;
}

bool Generator::sort(const std::string &element, const Dims &dims, int depth,
                     Value &result) {
  if (dims.empty())
    return false;
  std::string flags;
  if (random.chance(0.4))
    flags += " descending";
  std::vector<Value> inputs, results;
  if (random.chance(0.4))
    inputs.push_back(get(mainElement, dims, depth));
  inputs.push_back(get(element, dims, depth));
  if (!isFloatElement(inputs[0].element) && random.chance(0.3))
    flags += " unsigned";
  std::string names, types;
  for (const Value &input : inputs) {
    names += (names.empty() ? "" : ", ") + input.ref();
    types += (types.empty() ? "" : ", ") + input.type();
    results.push_back({fresh("v"), input.element, dims});
  }
  block->push_back({"tile.sort " + names + " along \"" + random.pick(dims) +
                        "\"" + flags + " : " + types + " -> " + types,
                    results,
                    false,
                    {},
                    {},
                    {}});
  scope.values.insert(scope.values.end(), results.begin(), results.end());
  result = results.back();
  return true;
}

bool Generator::contract(const std::string &element, const Dims &dims,
                         int depth, Value &result) {
  if (element == "i1")
    return false;
  Dims over;
  if (Dims further = furtherDims(dims); !further.empty())
    over.push_back(random.pick(further));
  else if (random.chance(0.7))
    return false;
  Dims lhs = over, rhs = over;
  for (const std::string &dim : dims) {
    int64_t side = random.below(3);
    if (side != 1)
      lhs.push_back(dim);
    if (side != 0)
      rhs.push_back(dim);
  }
  random.shuffle(lhs);
  random.shuffle(rhs);
  Value a = get(element, lhs, depth), b = get(element, rhs, depth);
  std::string head = "tile.contract " + a.ref() + ", " + b.ref();
  if (random.chance(0.4)) {
    Value acc = get(element, dims, depth);
    head += " acc(" + acc.ref() + " : " + acc.type() + ")";
  }
  head += " over " + quotedList(over);
  std::vector<std::string> orders = {"left", "right", "tree"};
#ifdef AVOID
  orders = {"left"};
#endif
  if (random.chance(0.35))
    head += " {order = #tile<order " + random.pick(orders) + ">}";
  result = emit(head + " : " + a.type() + ", " + b.type() + " -> " +
                    tileType(element, dims),
                element, dims);
  return true;
}

bool Generator::fold(const std::string &element, const Dims &dims, int depth,
                     Value &result) {
  std::string dim = "k";
  if (!scope.tileDims.empty() && program.findDim(scope.tileDims[0])->isData)
    dim = scope.tileDims[0];
  else if (random.chance(0.3) && program.extent(scope.tileDims[0]) <= 9)
    dim = scope.tileDims[0];
  for (const Coordinate &coordinate : scope.coordinates)
    if (coordinate.dim == dim)
      return false;
  if (std::find(dims.begin(), dims.end(), dim) != dims.end())
    return false;
  std::string how = order();
  if (how == "tree")
    how = "left";
  std::vector<Value> types{{"", element, dims}};
  if (random.chance(0.25))
    types.push_back({"", randomElement(), {}});
  Combine combine = combineRegion(types, how == "unordered");
  std::string name = fresh("i"), inits, list, yield;
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    inits += (i ? ", " : "") + combine.identities[i].ref();
    list += (i ? ", " : "") + types[i].type();
    results.push_back({fresh("v"), types[i].element, types[i].dims});
  }
  Block body = inRegion([&] {
    scope.coordinates.push_back({name, dim, false});
    for (size_t i = 0; i < types.size(); ++i)
      yield += (i ? ", " : "") +
               get(types[i].element, types[i].dims, depth).ref();
    block->push_back(
        {"tile.yield " + yield + " : " + list, {}, true, {}, {}, {}});
  });
  block->push_back({"tile.fold %" + name + " in \"" + dim + "\" " + how +
                        " init(" + inits + " : " + list + ")",
                    results,
                    false,
                    {std::move(body), std::move(combine.body)},
                    {"", combine.header},
                    {"combine"}});
  scope.values.insert(scope.values.end(), results.begin(), results.end());
  result = results[0];
  return true;
}

} // namespace tessera::fuzz
