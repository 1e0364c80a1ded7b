//===- kernels/oracle/exponentials.h - Shifted exponentials -----*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// exp(x - max) and its sum, which softmax, cross-entropy and attention share:
// exact maxima on the oracle's side, and a radius that covers both the two-pass
// form and the one-pass form that rescales its partial sums.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_EXPONENTIALS_H
#define TESSERA_KERNELS_ORACLE_EXPONENTIALS_H

#include "support/bounded.h"

#include <vector>

namespace tessera::oracle {

struct Exponentials {
  /// -inf without terms.
  Bounded maximum;
  /// exp(x - maximum) as the two-pass form gives it.
  std::vector<Bounded> terms;
  /// The same as it stands in a sum: rescaled at each new maximum if the plan
  /// may do so.
  std::vector<Bounded> summands;
  Bounded sum;
};

Exponentials exponentials(const std::vector<Bounded> &x,
                          const Arithmetic &arithmetic);

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_EXPONENTIALS_H
