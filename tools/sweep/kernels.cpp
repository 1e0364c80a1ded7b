//===- sweep/kernels.cpp - Which kernels the host runs -------------*- C++
//-*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dispatch over the tables of kernels.h.
//
//===----------------------------------------------------------------------===//

#include "sweep/kernels.h"

namespace tessera::sweep {

const char *name(Isa isa) {
  constexpr const char *names[isaCount] = {"avx512", "avx2", "baseline"};
  return names[unsigned(isa)];
}

bool hostSupports(Isa isa) {
  switch (isa) {
  case Isa::Avx512:
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw");
  case Isa::Avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case Isa::Baseline:
    return true;
  }
  return false;
}

const KernelTable &kernels(Isa isa) {
  static const auto tables = [] {
    struct {
      KernelTable table[isaCount];
    } t;
    fillAvx512(t.table[unsigned(Isa::Avx512)]);
    fillAvx2(t.table[unsigned(Isa::Avx2)]);
    fillBaseline(t.table[unsigned(Isa::Baseline)]);
    return t;
  }();
  return tables.table[unsigned(isa)];
}

} // namespace tessera::sweep
