//===- kernels/attention.cpp - Attention ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program has a block of queries of all query heads that share a key head, so
// that keys and values are read once for them. It folds over blocks of keys:
// each contributes its own maximum, sum of exponentials and weighted values,
// and two contributions combine to that of both (softmax over parts), so that
// several programs may share a fold. Blocks of keys that every query of the
// program sees need no mask, and come first; blocks that no query sees are not
// among them.
//
// What a query does not see must have no effect on it, NaN included. Keys are
// told apart by a selection of scores. A value that is not a number would reach
// every query through 0 * value; a block with such values, which is rare,
// multiplies each query's own selection of them.
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

#include <limits>

namespace tessera::kernels {

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// What softmax over some of the keys has for each query: the maximum of the
/// scores, the sum of exp(score - maximum), the values weighted by these, and,
/// where a mask decides it, whether any key is seen.
struct Part {
  Tile highest, total, weighted, seen;

  explicit Part(std::span<const Tile> tiles)
      : highest(tiles[0]), total(tiles[1]), weighted(tiles[2]) {
    if (tiles.size() > 3)
      seen = tiles[3];
  }
};

/// What is subtracted from scores: -inf - -inf would be no -inf.
Tile shiftOf(const Tile &highest) {
  return select(highest == -infinity, 0, highest);
}

/// The part of the keys of both.
std::vector<Tile> combine(std::span<const Tile> left,
                          std::span<const Tile> right) {
  Part a(left), b(right);
  Tile highest = max(a.highest, b.highest);
  Tile shift = shiftOf(highest);
  Tile fromA = exp(a.highest - shift), fromB = exp(b.highest - shift);
  std::vector<Tile> both = {highest, a.total * fromA + b.total * fromB,
                            a.weighted * fromA + b.weighted * fromB};
  if (left.size() > 3)
    both.push_back(a.seen | b.seen);
  return both;
}

/// `low` or `high` where `x` is beyond.
Tile clamp(const Tile &x, int64_t low, const Tile &high) {
  return max(min(x, high), low);
}

} // namespace

Kernel attention() {
  return kernel(
      "attention", "q, k, v, lengths, mask, o, lse, scale, causal = false",
      [](View<const Float, 4> q, View<const Float, 4> k, View<const Float, 4> v,
         OptionalView<const int32_t, 1> lengths,
         OptionalView<const bool, 4> mask, View<Float, 4> o,
         OptionalView<Float, 3> lse, OptionalScalar<Float> scale,
         Const<bool> causal) {
        Dim batches = dim("b", q.extent(0)), heads = dim("hq", q.extent(1));
        Dim queries = dim("q", q.extent(2)), depth = dim("d", q.extent(3));
        Dim keyHeads = dim("hkv", k.extent(1)), keys = dim("k", k.extent(2));
        Dim values = dim("dv", v.extent(3));
        const bool isMasked = mask.present();
        // Which axes have one extent; nothing is read here.
        load(q(batches, heads, queries, depth));
        load(k(batches, keyHeads, keys, depth));
        load(v(batches, keyHeads, keys, values));
        load(o(batches, heads, queries, values));
        if (isMasked)
          load(mask(0, 0, queries, keys));
        if (lse.present())
          load(lse(batches, heads, queries));

        // About 64 rows of queries, whole vectors of them if there are as many,
        // of all heads that share keys; where that is too few programs, fewer
        // rows of one head. As many keys as have their scores in the nearest
        // cache.
        const int64_t most = tunable("rows", {64, 16});
        Tile sharing = heads.size() / keyHeads.size();
        Dim group = dim("group", most == 64 ? sharing : Tile(1));
        Dim groups = dim("groups", sharing / group.size());
        Tile height = max(group.size(), 1);
        Dim query = dim("query", clamp(max(most / height / 16 * 16, 16), 1,
                                       max(queries.size(), 1)));
        Dim key =
            dim("key", clamp(clamp(8192 / (height * query.size()), 64, 256), 1,
                             max(keys.size(), 1)));
        Dim down = dim("down", ceilDiv(queries.size(), query.size()));

        for (auto [b, keyHead, part, block] :
             parallel(batches, keyHeads, groups, down)) {
          Tile firstHead =
              index(keyHead) * sharing + index(part) * group.size();
          Tile first = index(block) * query.size();
          Tile length = keys.size();
          if (lengths.present())
            length = clamp(cast(load(lengths(b)), DType::I64), 0, length);
          // A query may see the first so many keys.
          auto limitOf = [&](const Tile &position) {
            return causal ? clamp(position + length - queries.size() + 1, 0,
                                  length)
                          : length;
          };
          Tile limit = limitOf(first + iota(query));

          Tile rows = load(q(b, group + firstHead, query + first, depth));
          const DType type = rows.dtype();
          Tile factor = scale.present() ? Tile(scale)
                                        : 1 / sqrt(cast(depth.size(), type));
          // Before the product: without the factor a score may be beyond f32.
          rows = transpose(rows * factor, {group, depth, query});

          // The part of the keys from `start` on. At the edge some of them are
          // not seen by some queries.
          auto partOf = [&](const Tile &start, const Dim &some, bool isEdge) {
            LoadOptions reading{.promised = true};
            Tile visible;
            if (isEdge) {
              Tile position = start + iota(some);
              reading.mask = position < length;
              visible = position < limit;
              if (isMasked)
                visible =
                    visible &
                    load(mask(min(index(b), mask.extent(0) - 1),
                              min(firstHead + iota(group), mask.extent(1) - 1),
                              query + first, some + start));
            }
            Tile score = contract(
                load(k(b, keyHead, some + start, depth), reading), rows, depth);
            if (isEdge)
              score = select(visible, score, -infinity);
            Tile highest = max(score, some);
            Tile e = exp(score - shiftOf(highest));
            Tile total = sum(e, some);
            Tile weights = load(v(b, keyHead, some + start, values), reading);
            Tile weighted;
            if (isEdge && (causal || isMasked)) {
              weighted = full({group, query, values}, 0.0, type);
              if_(
                  all(abs(weights) < infinity, {some, values}),
                  [&] { weighted = contract(e, weights, some); },
                  [&] {
                    weighted = transpose(
                        contract(e, select(visible, weights, 0), some),
                        {group, query, values});
                  });
            } else {
              weighted = contract(e, weights, some);
            }
            std::vector<Tile> tiles = {highest, total, weighted};
            if (isMasked)
              tiles.push_back(
                  any(broadcast(visible, {some, group, query}), some));
            return tiles;
          };
          std::vector<Tile> parts = {full({group, query}, -infinity, type),
                                     full({group, query}, 0.0, type),
                                     full({group, query, values}, 0.0, type)};
          if (isMasked)
            parts.push_back(full({group, query}, false));

          // Blocks that all queries of the program see, then the others that
          // any of them sees. Where all see the same, the last keys may be less
          // than a block.
          const bool areAlike = !lengths.present() && !causal && !isMasked;
          Tile seenByAll = isMasked ? Tile(0) : limitOf(first);
          Tile seenByAny =
              limitOf(min(first + query.size(), queries.size()) - 1);
          Tile whole = seenByAll / key.size();
          Dim rest = dim("rest", keys.size() % key.size());
          Dim blocks = dim("blocks", ceilDiv(seenByAny, key.size()));
          std::vector<Tile> seen = fold(
              blocks, {parts.begin(), parts.end()}, Order::Unordered,
              [&](Coord i) {
                Tile start = index(i) * key.size();
                if (isMasked)
                  return partOf(start, key, /*isEdge=*/true);
                std::vector<Tile> part = parts;
                auto take = [&](const std::vector<Tile> &found) {
                  for (size_t n = 0; n < part.size(); ++n)
                    part[n] = found[n];
                };
                Tile isWhole = index(i) < whole;
                if (areAlike)
                  isWhole = isWhole | (rest.size() == 0);
                if_(
                    isWhole,
                    [&] { take(partOf(start, key, /*isEdge=*/false)); },
                    [&] {
                      take(partOf(start, areAlike ? rest : key, !areAlike));
                    });
                return part;
              },
              combine);

          Part all(seen);
          Tile seesAny = isMasked ? all.seen : limit > 0;
          // Of scores that are all -inf: NaN, as exp(-inf - -inf) is.
          Tile total = all.total + (all.highest - all.highest);
          store(o(b, group + firstHead, query + first, values),
                select(seesAny, all.weighted * (1 / total), 0));
          if (lse.present())
            store(lse(b, group + firstHead, query + first),
                  select(seesAny, all.highest + log(total), -infinity));
        }
      });
}

} // namespace tessera::kernels
