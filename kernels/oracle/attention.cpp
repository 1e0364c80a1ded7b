//===- kernels/oracle/attention.cpp - Attention ---------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/oracle/arguments.h"
#include "kernels/oracle/exponentials.h"
#include "kernels/oracle/families.h"
#include "kernels/oracle/products.h"

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

/// The visible keys of a query, as positions in the sequence.
using Keys = std::vector<int64_t>;

/// The rows of one head of keys and values.
struct Head {
  Factors keys, values;
  const double *valueData;
  int64_t valueDepth;

  Head(const Problem &p, int64_t head)
      : keys(p.k.data.data() + head * p.shape.keys * p.shape.depth,
             p.shape.depth, p.shape.keys, 1, p.shape.depth),
        values(p.v.data.data() + head * p.shape.keys * p.shape.valueDepth,
               p.shape.keys, p.shape.valueDepth, p.shape.valueDepth, 1),
        valueData(p.v.data.data() + head * p.shape.keys * p.shape.valueDepth),
        valueDepth(p.shape.valueDepth) {}
};

/// What one query needs, kept from query to query.
struct Scratch {
  Row row, other;
  std::vector<Bounded> factors, scores, visibleScores;
  Keys visible;
  std::vector<Bounded> late;
  std::vector<double> gathered;
};

/// scale (q . k), or the same with the scale applied to q first, for each key.
void makeScores(const Problem &p, int64_t queryRow, const Head &head,
                const Products &products, const Arithmetic &rules,
                Scratch &scratch) {
  int64_t depth = p.shape.depth;
  const double *q = p.q.data.data() + queryRow * depth;
  scratch.row.setExact(q, 1, depth);
  scratch.factors.clear();
  for (int64_t d = 0; d < depth; ++d)
    scratch.factors.push_back(mul(p.scale, Bounded::exact(q[d]), rules));
  scratch.other.setBounded(scratch.factors);
  scratch.scores.resize(static_cast<size_t>(p.shape.keys));
  for (int64_t panel = 0; panel < head.keys.panels(); ++panel) {
    products.sums(scratch.row, head.keys, panel,
                  [&](int64_t key, const bounded::Summation &sum) {
                    scratch.scores[static_cast<size_t>(key)] =
                        mul(p.scale, sum.finishContraction(), rules);
                  });
    products.sums(scratch.other, head.keys, panel,
                  [&](int64_t key, const bounded::Summation &prescaled) {
                    Bounded &score = scratch.scores[static_cast<size_t>(key)];
                    score = either(score, prescaled.finishContraction());
                  });
  }
}

/// The values at the visible keys. They are copied unless they are the first.
void makeOutputs(const Head &head, const Exponentials &e,
                 const Products &products, const Arithmetic &rules,
                 Scratch &scratch, FloatOutput &o, int64_t begin) {
  const Keys &visible = scratch.visible;
  auto terms = static_cast<int64_t>(visible.size());
  std::optional<Factors> gathered;
  if (visible.back() + 1 != terms) {
    scratch.gathered.clear();
    for (int64_t key : visible)
      scratch.gathered.insert(scratch.gathered.end(),
                              head.valueData + key * head.valueDepth,
                              head.valueData + (key + 1) * head.valueDepth);
    gathered.emplace(scratch.gathered.data(), terms, head.valueDepth,
                     head.valueDepth, 1);
  }
  const Factors &values = gathered ? *gathered : head.values;

  Bounded inverse = div(Bounded::exact(1), e.sum, rules);
  scratch.factors.clear();
  for (const Bounded &term : e.terms)
    scratch.factors.push_back(mul(term, inverse, rules));
  scratch.row.setBounded(e.summands);
  scratch.other.setBounded(scratch.factors);
  scratch.late.resize(static_cast<size_t>(head.valueDepth));
  for (int64_t panel = 0; panel < values.panels(); ++panel) {
    products.sums(scratch.row, values, panel,
                  [&](int64_t d, const bounded::Summation &late) {
                    scratch.late[static_cast<size_t>(d)] =
                        mul(late.finishContraction(), inverse, rules);
                  });
    products.sums(scratch.other, values, panel,
                  [&](int64_t d, const bounded::Summation &early) {
                    o.place(begin + d,
                            either(scratch.late[static_cast<size_t>(d)],
                                   early.finishContraction()));
                  });
  }
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
  Products products(rules, args.products);
  int64_t group = shape.keyHeads == 0 ? 0 : shape.queryHeads / shape.keyHeads;
  int64_t rowsPerHead = group * shape.queries;
  // Queries that share what they keep.
  constexpr int64_t rowsPerTask = 8;
  for (int64_t keyHead = 0; keyHead < shape.batch * shape.keyHeads; ++keyHead) {
    if (rowsPerHead == 0)
      break;
    Head head(p, keyHead);
    inParallel(
        args, (rowsPerHead + rowsPerTask - 1) / rowsPerTask, [&](int64_t task) {
          Scratch scratch;
          int64_t last = std::min((task + 1) * rowsPerTask, rowsPerHead);
          for (int64_t i = task * rowsPerTask; i < last; ++i) {
            int64_t row = keyHead * rowsPerHead + i;
            int64_t query = row % shape.queries;
            int64_t queryHead = row / shape.queries % shape.queryHeads;
            int64_t b = keyHead / shape.keyHeads;
            scratch.visible.clear();
            for (int64_t key = 0; key < shape.keys; ++key)
              if (p.isVisible(b, queryHead, query, key))
                scratch.visible.push_back(key);
            int64_t begin = row * shape.valueDepth;
            if (scratch.visible.empty()) {
              for (int64_t d = 0; d < shape.valueDepth; ++d)
                o.place(begin + d, Bounded::exact(0));
              lse.place(row,
                        Bounded::exact(
                            -std::numeric_limits<long double>::infinity()));
              continue;
            }
            makeScores(p, row, head, products, rules, scratch);
            scratch.visibleScores.clear();
            for (int64_t key : scratch.visible)
              scratch.visibleScores.push_back(
                  scratch.scores[static_cast<size_t>(key)]);
            Exponentials e = exponentials(scratch.visibleScores, rules);
            makeOutputs(head, e, products, rules, scratch, o, begin);
            lse.place(row, add(e.maximum, log(e.sum, rules), rules));
          }
        });
  }
  return resultOf("o", o.take(), "lse", lse.take());
}

} // namespace tessera::oracle
