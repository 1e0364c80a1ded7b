//===- fuzz/generator.cpp - Structure of random programs --===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "generator.h"

#include <algorithm>

namespace tessera::fuzz {

static constexpr int64_t maxTileElements = 4200;

void Generator::declareDims() {
  static const std::vector<int64_t> wide = {0,  1,  2,  3,  5,  7,  8,  9,  15,
                                            16, 17, 31, 32, 33, 64, 65, 100};
  static const std::vector<int64_t> narrow = {0, 1, 1, 2, 3, 4, 5, 8, 17};
  static const std::vector<int64_t> few = {0, 1, 2, 3, 5, 7};
  auto add = [&](const std::string &name, const std::vector<int64_t> &extents) {
    int64_t extent = random.pick(extents);
    // Empty dimensions make programs dull; most are not.
    if (extent == 0 && random.chance(0.7))
      extent = extents.back();
    program.dims.push_back({name, extent, {}, false});
  };
  int64_t parallel = random.between(1, 2);
  for (int64_t i = 0; i < parallel; ++i) {
    parallelDims.push_back("p" + std::to_string(i));
    add(parallelDims.back(), few);
  }
  parallelDims.push_back("q");
  add("q", few);
  int64_t tiles = random.between(1, 3);
  for (int64_t i = 0; i < tiles; ++i) {
    allTileDims.push_back(std::string(1, char('a' + i)));
    add(allTileDims.back(), i == 0 ? wide : narrow);
  }
  // The long dimension is not always the last one of a tile.
  if (random.chance(0.4))
    random.shuffle(allTileDims);
  if (tiles >= 2 && random.chance(0.5)) {
    program.dims.push_back({"ab", 0, {"a", "b"}, false});
    allTileDims.push_back("ab");
  }
  serialDims = {"k"};
  add("k", few);
  if (random.chance(0.2))
    allTileDims.push_back("k");
  if (random.chance(0.1))
    allTileDims.push_back("p0");
}

int64_t Generator::elements(const Dims &dims) const {
  int64_t product = 1;
  for (const std::string &dim : dims)
    product *= std::max<int64_t>(program.extent(dim), 1);
  return product;
}

Dims Generator::furtherDims(const Dims &dims) const {
  Dims further;
  for (const std::string &dim : scope.tileDims) {
    Dims more = dims;
    more.push_back(dim);
    if (std::find(dims.begin(), dims.end(), dim) == dims.end() &&
        elements(more) <= maxTileElements && more.size() <= 4)
      further.push_back(dim);
  }
  return further;
}

Dims Generator::randomDims() {
  Dims dims;
  int64_t count = random.chance(0.15) ? 0 : random.between(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    Dims further = furtherDims(dims);
    if (further.empty())
      break;
    dims.push_back(i == 0 && random.chance(0.6) ? further[0]
                                                : random.pick(further));
  }
  return dims;
}

std::string Generator::randomElement() {
  if (random.chance(0.75))
    return mainElement;
  static const std::vector<std::string> all = {"f32", "f64", "i8",  "i16",
                                               "i32", "i64", "f32", "i1"};
  return random.pick(all);
}

Value Generator::emit(std::string head, const std::string &element,
                      const Dims &dims) {
  Value value{fresh("v"), element, dims};
  block->push_back({std::move(head), {value}, false, {}, {}, {}});
  scope.values.push_back(value);
  --budget;
  return value;
}

Block Generator::inRegion(const std::function<void()> &fill) {
  Block region;
  Block *outer = block;
  Scope saved = scope;
  block = &region;
  fill();
  block = outer;
  scope = std::move(saved);
  return region;
}

void Generator::statements(int count, int depth) {
  for (int i = 0; i < count && budget > 0; ++i)
    statement(depth);
}

void Generator::statement(int depth) {
  double choice = random.unit();
  if (depth > 0 && choice < 0.12)
    return serialLoop(depth - 1);
  if (depth > 0 && choice < 0.2)
    return branch(depth - 1);
  if (depth > 0 && inGrid && choice < 0.26)
    return nestedParallel(depth - 1);
  if (inGrid && choice < 0.29)
    return dataDim();
  if (choice < 0.36) {
    scatter(2);
    return;
  }
  store(static_cast<int>(random.between(1, 4)));
}

/// A loop whose carried values are tiles or scalars; its body may store.
void Generator::serialLoop(int depth) {
  std::string dim = random.chance(0.8) ? "k" : random.pick(scope.tileDims);
  for (const Coordinate &coordinate : scope.coordinates)
    if (coordinate.dim == dim)
      return;
  if (program.extent(dim) > 9)
    dim = "k";
  bool isTileDim = std::find(scope.tileDims.begin(), scope.tileDims.end(),
                             dim) != scope.tileDims.end();
  std::vector<Value> inits, carried, results;
  for (int64_t i = random.between(0, 2); i > 0; --i)
    inits.push_back(get(randomElement(), randomDims(), 2));
  std::string name = fresh("i");
  std::string head =
      (random.chance(0.15) ? "tile.pipeline %" : "tile.serial %") + name +
      " in \"" + dim + "\"";
  for (size_t i = 0; i < inits.size(); ++i) {
    carried.push_back({fresh("c"), inits[i].element, inits[i].dims});
    results.push_back({fresh("v"), inits[i].element, inits[i].dims});
    head += std::string(i ? ", " : " carry(") + carried[i].ref() + " = " +
            inits[i].ref() + " : " + inits[i].type();
  }
  if (!inits.empty())
    head += ")";
  Block body = inRegion([&] {
    scope.coordinates.push_back({name, dim, false});
    (void)isTileDim;
    for (const Value &value : carried)
      scope.values.push_back(value);
    statements(static_cast<int>(random.between(inits.empty() ? 1 : 0, 2)),
               depth);
    if (inits.empty())
      return;
    std::string yield = "tile.yield ", types;
    for (size_t i = 0; i < carried.size(); ++i) {
      // Carries that ignore their old value are rare.
      Value value = random.chance(0.8)
                        ? elementwise(carried[i].element, carried[i].dims, 2)
                        : get(carried[i].element, carried[i].dims, 2);
      yield += (i ? ", " : "") + value.ref();
      types += (i ? ", " : "") + value.type();
    }
    block->push_back({yield + " : " + types, {}, true, {}, {}, {}});
  });
  block->push_back({head, results, false, {std::move(body)}, {""}, {}});
  for (const Value &value : results)
    scope.values.push_back(value);
}

void Generator::branch(int depth) {
  Value condition = get("i1", {}, 2);
  std::vector<Value> results;
  std::string types;
  for (int64_t i = random.between(0, 2); i > 0; --i) {
    results.push_back({fresh("v"), randomElement(), randomDims()});
    types += (types.empty() ? "" : ", ") + results.back().type();
  }
  auto half = [&] {
    return inRegion([&] {
      statements(static_cast<int>(random.between(results.empty() ? 1 : 0, 1)),
                 depth);
      if (results.empty())
        return;
      std::string yield = "tile.yield ";
      for (size_t i = 0; i < results.size(); ++i)
        yield +=
            (i ? ", " : "") + get(results[i].element, results[i].dims, 2).ref();
      block->push_back({yield + " : " + types, {}, true, {}, {}, {}});
    });
  };
  std::string head = "tile.if " + condition.ref();
  if (!results.empty())
    head += " -> (" + types + ")";
  Statement statement{head, results, false, {half()}, {"", ""}, {"else"}};
  if (!results.empty() || random.chance(0.5))
    statement.regions.push_back(half());
  block->push_back(std::move(statement));
  for (const Value &value : results)
    scope.values.push_back(value);
}

void Generator::nestedParallel(int depth) {
  for (const Coordinate &coordinate : scope.coordinates)
    if (coordinate.dim == "q")
      return;
  std::string name = fresh("i");
  Block body = inRegion([&] {
    scope.coordinates.push_back({name, "q", true});
    statements(static_cast<int>(random.between(1, 2)), depth);
  });
  block->push_back({"tile.parallel (%" + name + ") in [\"q\"]",
                    {},
                    false,
                    {std::move(body)},
                    {""},
                    {}});
}

/// A dimension whose extent is loaded: usable as a loop's or a fold's, and in
/// tiles.
void Generator::dataDim() {
  Value loaded = load("i64", {}, 1);
  Value bounded;
  if (random.chance(0.5)) {
    Value low = constant("i64", "0"), high = constant("i64", "9");
    Value positive = emit(
        "arith.maxsi " + loaded.ref() + ", " + low.ref() + " : i64", "i64", {});
    bounded =
        emit("arith.minsi " + positive.ref() + ", " + high.ref() + " : i64",
             "i64", {});
  } else {
    // As small, but not in a form that bounds the memory of tiles over it.
    Value bits = constant("i64", "7");
    bounded = emit("arith.andi " + loaded.ref() + ", " + bits.ref() + " : i64",
                   "i64", {});
  }
  Value extent =
      emit("tile.cast " + bounded.ref() + " : i64 -> index", "index", {});
  std::string name = fresh("d");
  block->push_back(
      {"tile.dim \"" + name + "\" = " + extent.ref(), {}, true, {}, {}, {}});
  // Its extent for the generator's own estimates.
  program.dims.push_back({name, 9, {}, true});
  Dims saved = scope.tileDims, over{name};
  // Its product with another dimension, for reshapes.
  if (random.chance(0.4) && program.extent(allTileDims[0]) <= 100) {
    Value other = emit("tile.dim_size \"" + allTileDims[0] + "\"", "index", {});
    Value product =
        emit("arith.muli " + extent.ref() + ", " + other.ref() + " : index",
             "index", {});
    over.push_back(name + "x");
    block->push_back({"tile.dim \"" + over[1] + "\" = " + product.ref(),
                      {},
                      true,
                      {},
                      {},
                      {}});
    program.dims.push_back({over[1], 0, {name, allTileDims[0]}, true});
  }
  // Reductions over it are what a kernel of lengths does.
  Value result;
  for (int i = 0; i < 2; ++i) {
    Dims kept = random.chance(0.5) ? Dims{} : Dims{allTileDims[0]};
    std::string element = randomElement();
    scope.tileDims = {random.pick(over)};
    if (scope.tileDims != Dims{name})
      kept.clear();
    bool done = random.chance(0.7) ? reduce(element, kept, 2, result)
                                   : fold(element, kept, 2, result);
    scope.tileDims = saved;
    if (done)
      store(0);
  }
  scope.tileDims = saved;
  // Tiles over the dimension are out of sight from here on.
  std::erase_if(scope.values, [&](const Value &value) {
    return std::find_first_of(value.dims.begin(), value.dims.end(),
                              over.begin(), over.end()) != value.dims.end();
  });
}

void Generator::grid() {
  // Views of earlier grids are written again or only read.
  written.clear();
  for (const ViewSpec &view : program.views)
    if (view.writable && random.chance(0.5))
      written.insert(view.name);
  scope.tileDims = allTileDims;
  if (random.chance(0.08)) {
    inGrid = false;
    statements(static_cast<int>(random.between(1, 2)), 1);
    return;
  }
  inGrid = true;
  std::string head = "tile.parallel (", dims;
  std::vector<Coordinate> coordinates;
  int64_t count = random.between(1, int64_t(parallelDims.size()) - 1);
  Dims chosen(parallelDims.begin(), parallelDims.begin() + count);
  random.shuffle(chosen);
  for (const std::string &dim : chosen) {
    coordinates.push_back({fresh("i"), dim, true});
    head += (coordinates.size() > 1 ? ", %" : "%") + coordinates.back().name;
    dims += (coordinates.size() > 1 ? ", \"" : "\"") + dim + "\"";
  }
  // A grid's own dimension may also be spanned by tiles inside it.
  Block body = inRegion([&] {
    scope.coordinates.insert(scope.coordinates.end(), coordinates.begin(),
                             coordinates.end());
    statements(static_cast<int>(random.between(1, 4)), 2);
  });
  block->push_back(
      {head + ") in [" + dims + "]", {}, false, {std::move(body)}, {""}, {}});
  inGrid = false;
}

/// In-place use: a writable view that is the same array as another view. Where
/// that makes a race the runner takes it back.
void Generator::shareMemory() {
  // Two written views never share.
  std::set<std::string> shared;
  for (ViewSpec &view : program.views)
    for (const ViewSpec &other : program.views) {
      if (&other == &view)
        break;
      if (other.dtype == view.dtype && view.writable && !other.writable &&
          other.sameAs.empty() && view.sameAs.empty() &&
          program.extents(view) == program.extents(other) &&
          random.chance(0.4) && shared.insert(other.name).second)
        view.sameAs = other.name;
    }
}

RandomProgram Generator::run() {
  static const std::vector<std::string> mains = {
      "f32", "f32", "f32", "f32", "f32", "f32", "f32",
      "f64", "f64", "i32", "i64", "i8",  "i16", "f32"};
  mainElement = random.pick(mains);
  program.strict = random.chance(0.6);
  double kind = random.unit();
  contents = kind < 0.6    ? Contents::Tame
             : kind < 0.8  ? Contents::SmallIntegers
             : kind < 0.95 ? Contents::Special
                           : Contents::Wild;
  declareDims();
  block = &program.body;
  budget = static_cast<int>(random.between(6, 45));
  int64_t grids = random.chance(0.7) ? 1 : random.between(2, 3);
  for (int64_t i = 0; i < grids; ++i)
    grid();
  program.removeDead();
  shareMemory();
  return std::move(program);
}

RandomProgram generate(uint64_t seed) {
  // Programs that lost all their stores are made again from a derived seed.
  for (uint64_t attempt = 0;; ++attempt) {
    RandomProgram program = Generator(seed + (attempt << 40)).run();
    program.seed = seed;
    if (!program.body.empty())
      return program;
  }
}

} // namespace tessera::fuzz
