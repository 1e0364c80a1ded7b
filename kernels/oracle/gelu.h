//===- kernels/oracle/gelu.h - GELU, bounded --------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_KERNELS_ORACLE_GELU_H
#define TESSERA_KERNELS_ORACLE_GELU_H

#include "support/bounded.h"

namespace tessera::oracle {

struct ValueAndSlope {
  Bounded value;
  Bounded slope;
};

/// GELU, tanh form, and, if wanted, its derivative.
ValueAndSlope gelu(const Bounded &input, bool wantsSlope,
                   const Arithmetic &rules);

} // namespace tessera::oracle

#endif // TESSERA_KERNELS_ORACLE_GELU_H
