//===- kernels/attention.cpp - Attention ----------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One program per query. Keys that are not visible are not loaded at all, so
// whatever lies there, NaN included, has no effect.
//
//===----------------------------------------------------------------------===//

#include "kernels/kernels.h"

#include "tessera/dsl.h"

#include <limits>

namespace tessera::kernels {

static constexpr double infinity = std::numeric_limits<double>::infinity();

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
        for (auto [b, head, query] : parallel(batches, heads, queries)) {
          Tile keyHead = index(head) / (heads.size() / keyHeads.size());
          Tile length = keys.size();
          if (lengths.present())
            length = max(min(cast(load(lengths(b)), DType::I64), length), 0);

          Tile position = iota(keys);
          Tile visible = position < length;
          if (causal)
            visible =
                visible & (position <= index(query) + length - queries.size());
          if (mask.present())
            visible = visible & load(mask(min(index(b), mask.extent(0) - 1),
                                          min(index(head), mask.extent(1) - 1),
                                          query, keys));

          Tile product = contract(
              load(q(b, head, query, depth)),
              load(k(b, keyHead, keys, depth), {.mask = visible}), depth);
          Tile factor = scale.present()
                            ? Tile(scale)
                            : 1 / sqrt(cast(depth.size(), product.dtype()));
          Tile score = select(visible, product * factor, -infinity);
          Tile highest = max(score, keys);
          Tile e = select(visible, exp(score - highest), 0);
          Tile total = sum(e, keys);
          Tile weighted = contract(
              e, load(v(b, keyHead, keys, values), {.mask = visible}), keys);
          store(o(b, head, query, values),
                select(any(visible, keys), weighted * (1 / total), 0));
          // Of no visible key: -inf + log 0.
          if (lse.present())
            store(lse(b, head, query), highest + log(total));
        }
      });
}

} // namespace tessera::kernels
