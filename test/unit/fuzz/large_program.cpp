//===- fuzz/large_program.cpp - Programs with very much in them -----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "large_program.h"

namespace tessera::fuzz {

const char *name(LargeKind kind) {
  static const char *const names[largeKinds] = {
      "functions",  "gelus",           "arithmetic", "fan-out", "long-lived",
      "reductions", "many reductions", "outputs",    "mixed"};
  return names[int(kind)];
}

namespace {

class LargeGenerator {
public:
  LargeGenerator(DType storage, LargeShape shape, uint64_t seed)
      : random(seed), storage(storage), element(computeSpelling(storage)) {
    program.seed = seed;
    program.strict = random.chance(0.3);
    program.dims.push_back({"r", shape.rows, {}, false});
    if (shape.middle > 0) {
      dims.push_back("m");
      program.dims.push_back({"m", shape.middle, {}, false});
    }
    dims.push_back("c");
    program.dims.push_back({"c", shape.columns, {}, false});
  }

  RandomProgram run(LargeKind kind, int64_t length) {
    for (int i = 0; i < 2; ++i) {
      const std::string view = addView("x", /*writable=*/false);
      inputs.push_back(emit("tile.load %" + view + subscripts() + " : " +
                            viewType(program.views.back()) + " -> " +
                            tileType(element, dims)));
    }
    half = constant("0.5");
    tenth = constant("0.1");
    const Value result = make(kind, length, inputs[0]);
    store(result);
    program.body.push_back({"tile.parallel (%i) in [\"r\"]",
                            {},
                            false,
                            {std::move(block)},
                            {""},
                            {}});
    return std::move(program);
  }

private:
  Value emit(std::string head) {
    Value value{"v" + std::to_string(counter++), element, dims};
    block.push_back({std::move(head), {value}, false, {}, {}, {}});
    return value;
  }
  Value unary(const std::string &op, const Value &x) {
    return emit(op + " " + x.ref() + " : " + x.type());
  }
  Value binary(const std::string &op, const Value &x, const Value &y) {
    return emit(op + " " + x.ref() + ", " + y.ref() + " : " + x.type());
  }
  Value spread(const std::string &scalar) {
    return emit("tile.broadcast %" + scalar + " : " + element + " -> " +
                tileType(element, dims));
  }
  Value constant(const std::string &literal) {
    const std::string scalar = "s" + std::to_string(counter++);
    block.push_back({"arith.constant " + literal + " : " + element,
                     {Value{scalar, element, {}}},
                     false,
                     {},
                     {},
                     {}});
    return spread(scalar);
  }
  Value factor() {
    return constant("0." + std::to_string(random.between(100, 900)));
  }

  std::string addView(const char *prefix, bool writable) {
    ViewSpec view;
    view.name = prefix + std::to_string(program.views.size());
    view.dtype = storage;
    view.writable = writable;
    view.seed = random.next();
    view.axes.push_back({"r", 0, true});
    for (const std::string &dim : dims)
      view.axes.push_back({dim, 0, false});
    program.views.push_back(view);
    return view.name;
  }
  std::string subscripts() const {
    std::string text = "[%i";
    for (const std::string &dim : dims)
      text += ", \"" + dim + "\"";
    return text + "]";
  }
  void store(const Value &value) {
    const std::string view = addView("y", /*writable=*/true);
    block.push_back({"tile.store " + value.ref() + ", %" + view + subscripts() +
                         " : " + value.type() + ", " +
                         viewType(program.views.back()),
                     {},
                     true,
                     {},
                     {},
                     {}});
  }

  /// A function that keeps what is bounded bounded, and errors small.
  Value function(const Value &x, const std::string &which) {
    if (which == "math.exp" || which == "math.exp2" || which == "math.expm1")
      return unary(which, unary("arith.negf", unary("math.absf", x)));
    if (which == "math.log1p" || which == "math.log2")
      return unary(which, binary("arith.addf", unary("math.absf", x), half));
    return unary(which, x);
  }
  std::string anyFunction() {
    static const std::vector<std::string> all = {
        "math.sin",  "math.cos", "math.exp",   "math.exp2", "math.expm1",
        "math.tanh", "math.erf", "math.log1p", "math.log2", "tile.sigmoid"};
    return random.pick(all);
  }

  Value arithmetic(const Value &x, const Value &y) {
    // Halves of sums, products of bounded values and extrema stay bounded.
    switch (random.below(4)) {
    case 0:
      return binary("arith.mulf", binary("arith.addf", x, y), half);
    case 1:
      return binary("arith.mulf", binary("arith.subf", x, y), half);
    case 2:
      return binary("arith.maximumf", x, y);
    default:
      return binary("arith.minimumf", x, binary("arith.addf", y, tenth));
    }
  }

  Value reduce(const Value &x) {
    static const std::vector<std::string> combiners = {"max", "min", "max_num",
                                                       "max"};
    const std::string scalar = "s" + std::to_string(counter++);
    std::string over;
    for (const std::string &dim : dims)
      over += (over.empty() ? "\"" : ", \"") + dim + "\"";
    // Sums of many elements are brought back by a bounded function.
    const bool isSum = random.chance(0.4);
    block.push_back({"tile.reduce " + (isSum ? "add" : random.pick(combiners)) +
                         " unordered " + x.ref() + " over [" + over +
                         "] : " + x.type() + " -> " + element,
                     {Value{scalar, element, {}}},
                     false,
                     {},
                     {},
                     {}});
    if (!isSum)
      return spread(scalar);
    const std::string bounded = "s" + std::to_string(counter++);
    block.push_back({"math.tanh %" + scalar + " : " + element,
                     {Value{bounded, element, {}}},
                     false,
                     {},
                     {},
                     {}});
    return spread(bounded);
  }

  Value make(LargeKind kind, int64_t length, const Value &from) {
    Value v = from;
    switch (kind) {
    case LargeKind::Functions: {
      const std::string one = random.chance(0.5) ? anyFunction() : "";
      for (int64_t i = 0; i < length; ++i)
        v = function(v, one.empty() ? anyFunction() : one);
      return v;
    }
    case LargeKind::Gelus: {
      const Value scale = constant("0.70710678"), one = constant("1.0");
      for (int64_t i = 0; i < length; i += 5) {
        const Value t = unary("math.erf", binary("arith.mulf", v, scale));
        v = binary("arith.mulf", binary("arith.mulf", v, half),
                   binary("arith.addf", t, one));
      }
      return v;
    }
    case LargeKind::Arithmetic: {
      std::vector<Value> last = {v, inputs[1], half};
      for (int64_t i = 0; i < length; i += 2) {
        last.push_back(arithmetic(last.back(), random.pick(last)));
        if (last.size() > 8)
          last.erase(last.begin());
      }
      return last.back();
    }
    case LargeKind::FanOut: {
      for (int64_t i = 0; i < length; i += 4) {
        const Value t =
            function(binary("arith.mulf", from, factor()), anyFunction());
        v = binary("arith.mulf", binary("arith.addf", v, t), half);
      }
      return v;
    }
    case LargeKind::LongLived: {
      std::vector<Value> all = {v, inputs[1]};
      for (int64_t i = 0; i < length; i += 3)
        all.push_back(arithmetic(random.pick(all), random.pick(all)));
      for (const Value &one : all)
        v = binary("arith.maximumf", v, one);
      return v;
    }
    case LargeKind::Reductions: {
      for (int64_t i = 0; i < length; i += 3)
        v = function(binary("arith.subf", v, reduce(v)),
                     random.chance(0.5) ? "math.tanh" : "math.exp");
      return v;
    }
    case LargeKind::ManyReductions: {
      std::vector<Value> results;
      for (int64_t i = 0; i < length; i += 3)
        results.push_back(reduce(
            function(binary("arith.mulf", from, factor()), anyFunction())));
      for (const Value &result : results)
        v = binary("arith.mulf", binary("arith.addf", v, result), half);
      return v;
    }
    case LargeKind::Outputs: {
      for (int64_t i = 0; i < length; i += 3)
        store(random.chance(0.5)
                  ? binary("arith.mulf", from, factor())
                  : function(binary("arith.mulf", from, factor()),
                             anyFunction()));
      return v;
    }
    case LargeKind::Mixed: {
      while (length > 0) {
        const int64_t part = std::min(
            length, random.between(10, std::max<int64_t>(length / 2, 11)));
        v = make(LargeKind(random.below(largeKinds - 1)), part, v);
        length -= part;
      }
      return v;
    }
    }
    return v;
  }

  Random random;
  RandomProgram program;
  DType storage;
  std::string element;
  Dims dims;
  Block block;
  std::vector<Value> inputs;
  Value half, tenth;
  int counter = 0;
};

} // namespace

RandomProgram generateLarge(LargeKind kind, int64_t length, DType storage,
                            LargeShape shape, uint64_t seed) {
  return LargeGenerator(storage, shape, seed).run(kind, length);
}

} // namespace tessera::fuzz
