//===- bench/ceilings/loop_table.cpp - Bandwidth and arithmetic loops -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "bench/ceilings/loop_table.h"

namespace tessera::bench {

namespace {

namespace width128 {
constexpr int lanes = 4;
#include "bench/ceilings/loops.h"
} // namespace width128

#pragma clang attribute push(__attribute__((target("avx2,fma"))),              \
                             apply_to = function)
namespace width256 {
constexpr int lanes = 8;
#include "bench/ceilings/loops.h"
} // namespace width256
#pragma clang attribute pop

#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,fma"))),  \
                             apply_to = function)
namespace width512 {
constexpr int lanes = 16;
#include "bench/ceilings/loops.h"
} // namespace width512
#pragma clang attribute pop

} // namespace

const LoopTable &loopTable(int64_t vectorBits) {
  return vectorBits >= 512   ? width512::table
         : vectorBits >= 256 ? width256::table
                             : width128::table;
}

} // namespace tessera::bench
