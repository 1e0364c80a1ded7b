//===- fuzz/generator_memory.cpp - Random accesses of views -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "generator.h"

#include <algorithm>

namespace tessera::fuzz {

DType Generator::storageFor(const std::string &element) {
  if (element == "f32") {
    static const std::vector<DType> narrow = {DType::BF16,   DType::F16,
                                              DType::BF16,   DType::F16,
                                              DType::F8E4M3, DType::F8E5M2};
    return random.chance(0.75) ? DType::F32 : random.pick(narrow);
  }
  if (element == "f64")
    return DType::F64;
  if (element == "i1")
    return DType::Bool;
  bool isSigned = random.chance(0.7);
  if (element == "i8")
    return isSigned ? DType::I8 : DType::U8;
  if (element == "i16")
    return isSigned ? DType::I16 : DType::U16;
  if (element == "i32")
    return isSigned ? DType::I32 : DType::U32;
  return isSigned ? DType::I64 : DType::U64;
}

bool Generator::isActive(const ViewSpec &view) const {
  return inGrid && view.writable && written.count(view.name) > 0;
}

/// Whether the axes fit an access of `dims` in the present scope.
bool Generator::reusable(const ViewSpec &view, const Dims &dims,
                         bool forWrite) const {
  if (forWrite && !view.writable)
    return false;
  if (forWrite && inGrid && !written.count(view.name))
    return false;
  Dims spanned;
  for (const AxisSpec &axis : view.axes)
    if (!axis.isCoordinate)
      spanned.push_back(axis.dim);
  if (spanned != dims)
    return false;
  if (!isActive(view))
    return true;
  for (const Coordinate &coordinate : scope.coordinates)
    if (coordinate.isParallel &&
        std::none_of(view.axes.begin(), view.axes.end(),
                     [&](const AxisSpec &axis) {
                       return axis.isCoordinate && axis.dim == coordinate.dim;
                     }))
      return false;
  return true;
}

int64_t Generator::viewFor(const std::string &element, const Dims &dims,
                           bool writable) {
  std::vector<int64_t> fitting;
  for (size_t i = 0; i < program.views.size(); ++i)
    if (computeSpelling(program.views[i].dtype) == element &&
        reusable(program.views[i], dims, writable))
      fitting.push_back(static_cast<int64_t>(i));
  if (!fitting.empty() &&
      (random.chance(writable ? 0.35 : 0.5) || program.views.size() > 12))
    return random.pick(fitting);
  if (program.views.size() > 16)
    return -1;

  ViewSpec view;
  view.name = fresh(writable ? "y" : "x");
  view.dtype = storageFor(element);
  view.writable = writable;
  view.seed = random.next();
  view.contents = random.chance(0.85) ? contents : Contents::SmallIntegers;
  for (const std::string &dim : dims)
    view.axes.push_back({dim, 0, false});
  auto insert = [&](AxisSpec axis) {
    view.axes.insert(
        view.axes.begin() +
            random.below(static_cast<int64_t>(view.axes.size()) + 1),
        std::move(axis));
  };
  // A bare coordinate binds the axis; an extent from data could not match.
  for (const Coordinate &coordinate : scope.coordinates)
    if (program.findDim(coordinate.dim)->isData)
      continue;
    else if (coordinate.isParallel ? writable || random.chance(0.7)
                                   : random.chance(0.5))
      insert({coordinate.dim, 0, true});
  if (random.chance(0.1) || view.axes.empty())
    insert({"", random.between(1, 4), true});
  program.views.push_back(view);
  if (writable)
    written.insert(view.name);
  return static_cast<int64_t>(program.views.size()) - 1;
}

/// An index scalar, mostly within or near 0 to extent - 1.
Value Generator::indexScalar(int64_t extent, int depth) {
  std::vector<Value> known;
  for (const Value &value : scope.values)
    if (value.element == "index" && value.dims.empty())
      known.push_back(value);
  if (!known.empty() && random.chance(0.3))
    return random.pick(known);
  double choice = random.unit();
  if (choice < 0.45 || depth <= 0) {
    int64_t index = random.chance(0.8)
                        ? random.between(0, std::max<int64_t>(extent - 1, 0))
                        : random.between(-3, extent + 3);
    return emit("arith.constant " + std::to_string(index) + " : index", "index",
                {});
  }
  if (choice < 0.75 && !scope.coordinates.empty()) {
    const Coordinate &coordinate = random.pick(scope.coordinates);
    Value offset = emit("arith.constant " +
                            std::to_string(random.between(-2, 3)) + " : index",
                        "index", {});
    static const std::vector<std::string> ops = {
        "arith.addi", "arith.subi", "arith.muli", "arith.maxsi", "tile.rem"};
    return emit(random.pick(ops) + " %" + coordinate.name + ", " +
                    offset.ref() + " : index",
                "index", {});
  }
  // An index from data.
  Value loaded = get("i64", {}, 1);
  return emit(random.chance(0.5)
                  ? "tile.cast " + loaded.ref() + " : i64 -> index"
                  : "arith.index_cast " + loaded.ref() + " : i64 to index",
              "index", {});
}

std::string Generator::subscripts(const ViewSpec &given, const Dims &dims,
                                  bool mustInject, int depth) {
  // The list of views may grow while offsets are made.
  const ViewSpec view = given;
  bool active = isActive(view);
  std::vector<std::string> texts;
  std::vector<std::string> offsetTypes;
  bool allBare = true;
  auto offset = [&](const Value &value) {
    offsetTypes.push_back(value.type());
    return value.ref();
  };
  size_t number = 0;
  for (size_t i = 0; i < view.axes.size(); ++i) {
    const AxisSpec &axis = view.axes[i];
    const DimSpec *dim = axis.dim.empty() ? nullptr : program.findDim(axis.dim);
    int64_t extent = !dim          ? axis.extent
                     : dim->isData ? 9
                                   : program.extent(axis.dim);
    if (axis.isCoordinate) {
      const Coordinate *coordinate = nullptr;
      for (const Coordinate &candidate : scope.coordinates)
        if (candidate.dim == axis.dim)
          coordinate = &candidate;
      bool isFree = !coordinate || !(active && coordinate->isParallel);
      if (coordinate && !(isFree && random.chance(0.25))) {
        offsetTypes.push_back("index");
        texts.push_back("%" + coordinate->name);
      } else {
        texts.push_back(offset(indexScalar(extent, depth)));
        allBare = false;
      }
      continue;
    }
    const std::string &name = dims[number++];
    // A view's axis bound to a dimension from data would have to match it.
    bool canBind = !dim->isData;
    double choice = random.unit();
    std::string quoted = "\"" + name + "\"";
    if (canBind && choice < 0.55) {
      texts.push_back(quoted);
      continue;
    }
    allBare = false;
    if (choice < 0.75 || depth <= 0) {
      // Shifted.
      int64_t shift = random.chance(0.3) ? 0 : random.between(-3, 4);
      Value by =
          random.chance(0.7)
              ? emit("arith.constant " + std::to_string(shift) + " : index",
                     "index", {})
              : indexScalar(4, depth);
      texts.push_back(quoted + " + " + offset(by));
    } else if (choice < 0.9 || mustInject) {
      // Strided, forwards or backwards.
      static const std::vector<int64_t> steps = {2, 3, -1, -2, -1, 1};
      int64_t step = random.pick(steps);
      int64_t start = step < 0 ? (extent - 1) * (random.chance(0.8) ? 1 : 2)
                               : random.between(-2, 2);
      Value by = emit("arith.constant " + std::to_string(start) + " : index",
                      "index", {});
      texts.push_back(quoted + " * " + std::to_string(step) + " + " +
                      offset(by));
    } else {
      // A gather: indices from data or from coordinates.
      Value indices = get("i64", {name}, std::min(depth, 2));
      texts.push_back(offset(indices));
    }
  }
  std::string text = "[", types;
  for (size_t i = 0; i < texts.size(); ++i)
    text += (i ? ", " : "") + texts[i];
  text += "]";
  if (std::any_of(offsetTypes.begin(), offsetTypes.end(),
                  [](const std::string &type) { return type != "index"; })) {
    for (const std::string &type : offsetTypes)
      types += (types.empty() ? "" : ", ") + type;
    text += " at(" + types + ")";
  }
  if (allBare && random.chance(0.2))
    text += " promised";
  return text;
}

Value Generator::load(const std::string &element, const Dims &dims, int depth) {
  int64_t number = viewFor(element, dims, /*writable=*/false);
  if (number < 0)
    return constantTile(element, dims);
  std::string head = "tile.load %" + program.views[number].name +
                     subscripts(program.views[number], dims, false, depth);
  if (random.chance(0.25)) {
    Value fill = random.chance(0.7) ? constant(element, literal(element))
                                    : get(element, {}, depth - 1);
    head += " fill(" + fill.ref() + " : " + element + ")";
  }
  if (depth > 0 && random.chance(0.12)) {
    Value mask = get("i1", dims, depth - 1);
    head += " mask(" + mask.ref() + " : " + mask.type() + ")";
  }
  return emit(head + " : " + viewType(program.views[number]) + " -> " +
                  tileType(element, dims),
              element, dims);
}

bool Generator::store(int depth) {
  std::string element = randomElement();
  Dims dims = randomDims();
  Value value = get(element, dims, depth);
  int64_t number = viewFor(element, dims, /*writable=*/true);
  if (number < 0)
    return false;
  std::string head = "tile.store " + value.ref() + ", %" +
                     program.views[number].name +
                     subscripts(program.views[number], dims, true, 1);
  if (random.chance(0.1)) {
    Value mask = get("i1", dims, 1);
    head += " mask(" + mask.ref() + " : " + mask.type() + ")";
  }
  head += " : " + value.type() + ", " + viewType(program.views[number]);
  block->push_back({head, {}, true, {}, {}, {}});
  return true;
}

bool Generator::scatter(int depth) {
  std::string element = randomElement();
  Dims dims = randomDims();
  Value value = get(element, dims, depth);
  int64_t number = viewFor(element, dims, /*writable=*/true);
  if (number < 0)
    return false;
  std::string head = "tile.scatter " + namedCombiner(element) + " " +
                     value.ref() + ", %" + program.views[number].name +
                     subscripts(program.views[number], dims, false, 2);
  if (random.chance(0.15)) {
    Value mask = get("i1", dims, 1);
    head += " mask(" + mask.ref() + " : " + mask.type() + ")";
  }
  head += " : " + value.type() + ", " + viewType(program.views[number]);
  block->push_back({head, {}, true, {}, {}, {}});
  return true;
}

} // namespace tessera::fuzz
