//===- bench/machine/core_loops.cpp - Loops with a known number of operations
//===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/machine/core_loops.h"

namespace tessera::bench {

#if defined(__x86_64__)

namespace {

// Code of the lowest level loads lanes one by one and has no masks.
namespace width128 {
constexpr int lanes = 4;
constexpr bool hasFma = false;
#define TESSERA_GATHER(value, base, index)                                     \
  value = Vector {                                                             \
    base[(index)[0]], base[(index)[1]], base[(index)[2]], base[(index)[3]]     \
  }
#include "bench/machine/core_loops.inc"
#undef TESSERA_GATHER
} // namespace width128

#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
namespace width256 {
constexpr int lanes = 8;
constexpr bool hasFma = true;
using Mask __attribute__((vector_size(32))) = int;
#define TESSERA_GATHER(value, base, index)                                     \
  Mask mask;                                                                   \
  asm volatile("vpcmpeqd %1, %1, %1\n\t"                                       \
               "vxorps %0, %0, %0\n\t"                                         \
               "vgatherdps %1, (%2, %3, 4), %0"                                \
               : "=&x"(value), "=&x"(mask)                                     \
               : "r"(base), "x"(*reinterpret_cast<const Vector *>(index)))
#define TESSERA_MASK(mask, data) Mask mask = {-1, -1, -1, -1, -1, -1, -1, 0}
#define TESSERA_MASKED_LOAD(value, mask, from)                                 \
  asm volatile("vmaskmovps (%1), %2, %0" : "=x"(value) : "r"(from), "x"(mask))
#define TESSERA_MASKED_STORE(value, mask, to)                                  \
  asm volatile("vmaskmovps %0, %1, (%2)"                                       \
               :                                                               \
               : "x"(value), "x"(mask), "r"(to)                                \
               : "memory")
#include "bench/machine/core_loops.inc"
#undef TESSERA_GATHER
#undef TESSERA_MASK
#undef TESSERA_MASKED_LOAD
#undef TESSERA_MASKED_STORE
} // namespace width256
#pragma clang attribute pop

#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,fma"))),  \
                             apply_to = function)
namespace width512 {
constexpr int lanes = 16;
constexpr bool hasFma = true;
#define TESSERA_GATHER(value, base, index)                                     \
  asm volatile("kxnorw %%k1, %%k1, %%k1\n\t"                                   \
               "vpxord %0, %0, %0\n\t"                                         \
               "vgatherdps (%1, %2, 4), %0%{%%k1%}"                            \
               : "=&v"(value)                                                  \
               : "r"(base), "v"(*reinterpret_cast<const Vector *>(index))      \
               : "k1")
#define TESSERA_MASK(mask, data) unsigned short mask = 0x7fff
#define TESSERA_MASKED_LOAD(value, mask, from)                                 \
  asm volatile("vmovups (%1), %0%{%2%}%{z%}"                                   \
               : "=v"(value)                                                   \
               : "r"(from), "Yk"(mask))
#define TESSERA_MASKED_STORE(value, mask, to)                                  \
  asm volatile("vmovups %0, (%2)%{%1%}"                                        \
               :                                                               \
               : "v"(value), "Yk"(mask), "r"(to)                               \
               : "memory")
#include "bench/machine/core_loops.inc"
#undef TESSERA_GATHER
#undef TESSERA_MASK
#undef TESSERA_MASKED_LOAD
#undef TESSERA_MASKED_STORE
} // namespace width512
#pragma clang attribute pop

} // namespace

const CoreLoops &coreLoops(int64_t vectorBits) {
  return vectorBits >= 512   ? width512::table
         : vectorBits >= 256 ? width256::table
                             : width128::table;
}

#else

const CoreLoops &coreLoops(int64_t) {
  static const CoreLoops none;
  return none;
}

#endif

void prepareCoreLoops(float *data) {
  const int64_t half = coreLoopBytes / 8;
  for (int64_t i = 0; i < half; ++i)
    data[i] = 1;
  // Positions in the first half, each in another line than the one before.
  int *positions = reinterpret_cast<int *>(data) + half;
  for (int64_t i = 0; i < half; ++i)
    positions[i] = static_cast<int>(i * 37 % half);
  void *last = reinterpret_cast<char *>(data) + coreLoopBytes - sizeof(void *);
  *static_cast<void **>(last) = last;
}

} // namespace tessera::bench
