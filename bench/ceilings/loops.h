//===- bench/ceilings/loops.h - Bandwidth and arithmetic loops --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included once per vector width, inside a namespace and with `lanes` floats
// per vector defined: explicit vectors, four at a time, nothing left to chance.
// No include guard.
//
//===----------------------------------------------------------------------===//

using Vector __attribute__((vector_size(lanes * 4), may_alias)) = float;

constexpr int64_t step = 4 * lanes;

/// Sums `count` floats (a multiple of `step`).
inline void read(const float *a, const float *, float *, int64_t count) {
  Vector s0 = {}, s1 = {}, s2 = {}, s3 = {};
  for (int64_t i = 0; i < count; i += step) {
    s0 += *reinterpret_cast<const Vector *>(a + i);
    s1 += *reinterpret_cast<const Vector *>(a + i + lanes);
    s2 += *reinterpret_cast<const Vector *>(a + i + 2 * lanes);
    s3 += *reinterpret_cast<const Vector *>(a + i + 3 * lanes);
  }
  s0 += s1 + s2 + s3;
  // The sum is needed, so the loads are.
  asm volatile("" : : "x"(s0));
}

/// Loads `count` floats and does nothing with them, so that no latency bounds
/// it.
inline void load(const float *a, const float *, float *, int64_t count) {
  for (int64_t i = 0; i < count; i += step)
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < step; j += lanes) {
      Vector value = *reinterpret_cast<const Vector *>(a + i + j);
      asm volatile("" : : "x"(value));
    }
}

template <bool NonTemporal> inline void put(float *target, Vector value) {
  if constexpr (NonTemporal)
    __builtin_nontemporal_store(value, reinterpret_cast<Vector *>(target));
  else
    *reinterpret_cast<Vector *>(target) = value;
}

template <bool NonTemporal>
inline void copy(const float *a, const float *, float *y, int64_t count) {
  for (int64_t i = 0; i < count; i += step)
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < step; j += lanes)
      put<NonTemporal>(y + i + j, *reinterpret_cast<const Vector *>(a + i + j));
}

template <bool NonTemporal>
inline void triad(const float *a, const float *b, float *y, int64_t count) {
  for (int64_t i = 0; i < count; i += step)
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < step; j += lanes)
      put<NonTemporal>(y + i + j,
                       *reinterpret_cast<const Vector *>(a + i + j) +
                           *reinterpret_cast<const Vector *>(b + i + j));
}

template <bool NonTemporal>
inline void write(const float *, const float *, float *y, int64_t count) {
  Vector value = {1.5f};
  for (int64_t i = 0; i < count; i += step)
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < step; j += lanes)
      put<NonTemporal>(y + i + j, value);
}

/// `count` times 16 independent multiply-adds of one vector each: enough to
/// hide a latency of 4 cycles on two units, twice over. All numbers stay
/// normal: others take longer on some machines.
inline void multiplyAdd(const float *a, const float *, float *, int64_t count) {
  constexpr int chains = 16;
  Vector x = *reinterpret_cast<const Vector *>(a) * 1e-12f, sums[chains] = {};
  for (int64_t i = 0; i < count; ++i) {
#pragma clang loop unroll(full)
    for (Vector &sum : sums) {
      sum = __builtin_elementwise_fma(x, x, sum);
      asm volatile("" : "+x"(sum));
    }
  }
  for (Vector &sum : sums)
    asm volatile("" : : "x"(sum));
}

inline constexpr LoopTable table = {
    lanes,        load,        read,         copy<false>, copy<true>,
    triad<false>, triad<true>, write<false>, write<true>, multiplyAdd,
};
