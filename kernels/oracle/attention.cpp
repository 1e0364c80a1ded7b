//===- kernels/oracle/attention.cpp - Attention ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/exponentials.h"
#include "kernels/oracle/families.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::oracle {
namespace {

/// The extents: q is [batch, queryHeads, queries, depth], k [batch, keyHeads,
/// keys, depth], v [batch, keyHeads, keys, valueDepth].
struct Shape {
  int64_t batch, queryHeads, queries, depth;
  int64_t keyHeads, keys, valueDepth;
};

struct Problem {
  Shape shape;
  Floats q, k, v;
  Integers lengths;
  bool hasLengths = false;
  Integers mask;
  bool hasMask = false;
  bool causal = false;
  Bounded scale;

  /// Position `key` is within the sequence, not hidden by causality and not
  /// masked.
  bool isVisible(int64_t b, int64_t head, int64_t query, int64_t key) const {
    int64_t length = shape.keys;
    if (hasLengths)
      length = std::clamp<int64_t>(lengths.at(b), 0, shape.keys);
    if (key >= length)
      return false;
    // Bottom-right: the last query sees the whole sequence.
    if (causal && key > query + length - shape.queries)
      return false;
    if (!hasMask)
      return true;
    int64_t maskBatch = mask.extents[0] == 1 ? 0 : b;
    int64_t maskHead = mask.extents[1] == 1 ? 0 : head;
    return mask.at(((maskBatch * mask.extents[1] + maskHead) * shape.queries +
                    query) *
                       shape.keys +
                   key) != 0;
  }
};

Problem readProblem(Inputs &inputs, const Arithmetic &rules) {
  Problem p;
  p.q = inputs.floats("q", 4);
  p.k = inputs.floats("k", 4);
  p.v = inputs.floats("v", 4);
  p.shape = {p.q.extents[0], p.q.extents[1], p.q.extents[2], p.q.extents[3],
             p.k.extents[1], p.k.extents[2], p.v.extents[3]};
  const Shape &shape = p.shape;
  if (p.k.extents[0] != shape.batch || p.k.extents[3] != shape.depth)
    inputs.fail("k", "disagrees with 'q' in the batch or the last extent");
  if (p.v.extents[0] != shape.batch || p.v.extents[1] != shape.keyHeads ||
      p.v.extents[2] != shape.keys)
    inputs.fail("v", "disagrees with 'k' in batch, heads or positions");
  bool headsFit = shape.keyHeads == 0 ? shape.queryHeads == 0
                                      : shape.queryHeads % shape.keyHeads == 0;
  if (!headsFit)
    inputs.fail("q", "has " + std::to_string(shape.queryHeads) +
                         " heads, expected a multiple of the " +
                         std::to_string(shape.keyHeads) + " that 'k' has");
  p.hasLengths = inputs.has("lengths");
  if (p.hasLengths)
    p.lengths = inputs.integersOf("lengths", {shape.batch});
  p.hasMask = inputs.has("mask");
  if (p.hasMask) {
    p.mask = inputs.integers("mask", 4);
    const std::vector<int64_t> &extents = p.mask.extents;
    if ((extents[0] != 1 && extents[0] != shape.batch) ||
        (extents[1] != 1 && extents[1] != shape.queryHeads) ||
        extents[2] != shape.queries || extents[3] != shape.keys)
      inputs.fail("mask", "must be [batch or 1, heads or 1, queries, keys]");
  }
  p.causal = inputs.flag("causal");
  double scale =
      inputs.scalar("scale", 1 / std::sqrt(static_cast<double>(shape.depth)));
  p.scale = bounded::parameter(scale, rules);
  return p;
}

/// scale (q . k), or the same with the scale applied to q first.
Bounded score(const Problem &p, int64_t queryRow, int64_t keyRow,
              const Arithmetic &rules) {
  int64_t depth = p.shape.depth;
  bounded::Summation sum(rules), prescaled(rules);
  for (int64_t d = 0; d < depth; ++d) {
    long double q = p.q.at(queryRow * depth + d);
    long double k = p.k.at(keyRow * depth + d);
    sum.addProduct(q, k);
    prescaled.add(
        mul(mul(p.scale, Bounded::exact(q), rules), Bounded::exact(k), rules));
  }
  return either(mul(p.scale, sum.finishContraction(), rules),
                prescaled.finishContraction());
}

} // namespace

Result<OracleResult> attention(const OracleArgs &args) {
  Inputs inputs(args);
  const Arithmetic &rules = args.arithmetic;
  Problem p = readProblem(inputs, rules);
  if (inputs.error())
    return *inputs.error();
  const Shape &shape = p.shape;
  FloatOutput o(
      args, {shape.batch, shape.queryHeads, shape.queries, shape.valueDepth});
  FloatOutput lse(args, {shape.batch, shape.queryHeads, shape.queries});
  int64_t rows = shape.batch * shape.queryHeads * shape.queries;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t query = row % shape.queries;
    int64_t head = row / shape.queries % shape.queryHeads;
    int64_t b = row / (shape.queries * shape.queryHeads);
    int64_t keyHead = head / (shape.queryHeads / shape.keyHeads);
    int64_t firstKey = (b * shape.keyHeads + keyHead) * shape.keys;

    std::vector<int64_t> visible;
    std::vector<Bounded> scores;
    for (int64_t key = 0; key < shape.keys; ++key)
      if (p.isVisible(b, head, query, key)) {
        visible.push_back(firstKey + key);
        scores.push_back(score(p, row, firstKey + key, rules));
      }
    if (visible.empty()) {
      for (int64_t d = 0; d < shape.valueDepth; ++d)
        o.push(Bounded::exact(0));
      lse.push(Bounded::exact(-std::numeric_limits<long double>::infinity()));
      continue;
    }

    Exponentials e = exponentials(scores, rules);
    Bounded inverse = div(Bounded::exact(1), e.sum, rules);
    for (int64_t d = 0; d < shape.valueDepth; ++d) {
      bounded::Summation early(rules), late(rules);
      for (size_t i = 0; i < visible.size(); ++i) {
        Bounded v = p.v.bounded(visible[i] * shape.valueDepth + d);
        late.add(mul(e.summands[i], v, rules));
        early.add(mul(mul(e.terms[i], inverse, rules), v, rules));
      }
      o.push(either(mul(late.finishContraction(), inverse, rules),
                    early.finishContraction()));
    }
    lse.push(add(e.maximum, log(e.sum, rules), rules));
  }
  return resultOf("o", o.take(), "lse", lse.take());
}

} // namespace tessera::oracle
