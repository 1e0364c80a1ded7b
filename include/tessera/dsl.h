//===- tessera/dsl.h - Writing kernels --------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything a kernel author includes:
//
//     Kernel rms = kernel("rms", "x, w, y, eps = 1e-6",
//         [](View<const Float, 2> x, View<const Float, 1> w, View<Float, 2> y,
//            Scalar<Float> eps) {
//           Dim row = dim("row", x.extent(0)), col = dim("col", x.extent(1));
//           for (auto i : parallel(row)) {
//             Tile v = load(x(i, col));
//             Tile scale = rsqrt(mean(v * v, col) + eps);
//             store(y(i, col), v * scale * load(w(col)));
//           }
//         });
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DSL_H
#define TESSERA_DSL_H

#include "tessera/dsl/dim.h"
#include "tessera/dsl/kernel.h"
#include "tessera/dsl/ops.h"
#include "tessera/dsl/options.h"
#include "tessera/dsl/region.h"
#include "tessera/dsl/tile.h"
#include "tessera/dsl/view.h"

#endif // TESSERA_DSL_H
