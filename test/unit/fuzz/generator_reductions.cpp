//===- fuzz/generator_reductions.cpp - Random reductions ------------------===//
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

/// ["a", "b"]
static std::string quotedList(const Dims &dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", \"" : "\"") + dims[i] + "\"";
  return text + "]";
}

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
        laws.push_back({"arith.maximumf", type.element == "f64"
                                              ? "0xFFF0000000000000"
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
      static const std::vector<std::string> ops = {
          "arith.subf", "arith.addf", "arith.mulf", "arith.maximumf"};
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

Value Generator::centredSum(const std::string &element, const Value &from,
                            const Dims &over, const Dims &dims) {
  const std::string tile = tileType(element, from.dims);
  auto reduced = [&](const char *combiner, const Value &value) {
    return emit(std::string("tile.reduce ") + combiner + " unordered " +
                    value.ref() + " over " + quotedList(over) + " : " + tile +
                    " -> " + tileType(element, dims),
                element, dims);
  };
  auto binary = [&](const char *op, const Value &a, const Value &b,
                    const Dims &type) {
    return emit(std::string("arith.") + op + " " + a.ref() + ", " + b.ref() +
                    " : " + tileType(element, type),
                element, type);
  };
  const bool isShift = random.chance(0.5);
  Value centre = reduced(isShift ? "max" : "add", from);
  if (!isShift || random.chance(0.1))
    centre = binary("mulf", centre, constantTile(element, dims), dims);
  Value spread = emit("tile.broadcast " + centre.ref() + " : " + centre.type() +
                          " -> " + tile,
                      element, from.dims);
  Value body = isShift || random.chance(0.7)
                   ? binary("subf", from, spread, from.dims)
                   : binary("subf", spread, from, from.dims);
  if (isShift)
    body = emit("math.exp " + body.ref() + " : " + tile, element, from.dims);
  if (!isShift && random.chance(0.8)) {
    if (random.chance(0.4))
      reduced("add", body);
    body = binary("mulf", body, body, from.dims);
  }
  if (random.chance(0.3))
    body = binary("mulf", body, get(element, from.dims, 1), from.dims);
  if (random.chance(0.2))
    body = emit("arith.select " + get("i1", from.dims, 1).ref() + ", " +
                    body.ref() + ", " + constantTile(element, from.dims).ref() +
                    " : " + tileType("i1", from.dims) + ", " + tile,
                element, from.dims);
  return reduced("add", body);
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
    if (isFloatElement(element) && how == "unordered" && random.chance(0.3)) {
      result = centredSum(element, from, over, dims);
      return true;
    }
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
  std::string how = random.chance(0.5) ? order() : "left";
  std::string flags;
  if (random.chance(0.3))
    flags += " exclusive";
  if (random.chance(0.3))
    flags += " reverse";
  std::string along = " along \"" + random.pick(dims) + "\"" + flags + " : ";
  Value input = get(element, dims, depth);
  if (random.chance(0.75)) {
    result =
        emit("tile.scan " + namedCombiner(element) + " " + how + " " +
                 input.ref() + along + input.type() + " -> " + input.type(),
             element, dims);
    return true;
  }
  Combine combine = combineRegion({Value{"", element, {}}}, how == "unordered");
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
  result = emit("tile.arg_reduce " + random.pick(combiners) + " " + from.ref() +
                    " along \"" + along + "\" : " + from.type() + " -> " +
                    tileType("i64", dims),
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
  static const std::vector<std::string> orders = {"left", "right", "tree"};
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
      yield +=
          (i ? ", " : "") + get(types[i].element, types[i].dims, depth).ref();
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
